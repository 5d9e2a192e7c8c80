#include "server/analysis/histogram.h"

#include <stdlib.h>
#include <string.h>

#include "server/analysis/effect.h"
#include "server/analysis/histogram_parts.h"
#include "server/analysis/input.h"
#include "server/base/mem.h"

#define METHOD "HDR histogram, merged counts, percentiles as in Java's HdrHistogram"
#define BEYOND_LEAST 10 /* samples behind a percentile before it says much */

static const char *const known_keys[] = {"log",
                                         "logs",
                                         "tag",
                                         "from_s",
                                         "to_s",
                                         "base64",
                                         "digits",
                                         "lowest",
                                         "highest",
                                         "records",
                                         "expected_interval",
                                         "percentiles",
                                         "values",
                                         "unit",
                                         "name",
                                         NULL};

static void add_tags(const struct wb_histogram *q, wb_json *answer)
{
    static const double few[] = {50, 99, 99.9};
    wb_json *names = wb_json_array(), *list = wb_json_array();

    for (size_t i = 0; i < q->ntags; i++) {
        const struct wb_tagged *t = &q->tags[i];
        wb_json *o = wb_json_object();
        if (t->tag != NULL)
            wb_json_push(names, wb_json_str(t->tag));
        struct wb_hist h;
        wb_json_set_str(o, "tag", t->tag);
        wb_json_set_int(o, "entries", (int64_t)t->entries);
        if (t->entries > 0) {
            wb_hist_sum_make(&t->sum, &h);
            wb_hist_figures(&h, few, WB_LEN(few), o);
            wb_hist_release(&h);
            wb_json_push(list, o);
        } else {
            wb_json_free(o); /* left out by tag or window */
        }
    }
    wb_json_set(answer, "tags", names);
    wb_json_set(answer, "by_tag", list);
}

/* Percentiles behind which too few samples lie to say much. */
static void warn_thin(const struct wb_histogram *q, wb_json *answer, wb_json *warnings)
{
    wb_json *thin = wb_json_array();
    double count = (double)q->h.total;

    for (size_t i = 0; i < q->npercentiles; i++) {
        double p = q->percentiles[i];
        WB_AUTO_FREE char *key = wb_strf("%.12g", p);
        if (p > 50 && p < 100 && count > 0 && count * (100 - p) / 100 < BEYOND_LEAST)
            wb_json_push(thin, wb_json_str(key));
    }
    if (wb_json_len(thin) > 0)
        wb_analysis_warn(warnings, "thin",
                         "fewer than %d samples lie beyond the highest percentiles (from p%s on)",
                         BEYOND_LEAST, wb_json_string(wb_json_at(thin, 0)));
    wb_json_set(answer, "thin", thin);
}

static void warn_more(const struct wb_histogram *q, wb_json *warnings)
{
    if (q->bad > 0)
        wb_analysis_warn(warnings, "bad-lines", "%zu line%s could not be read and do not count",
                         q->bad, q->bad == 1 ? "" : "s");
    if (q->h.over > 0)
        wb_analysis_warn(warnings, "overflow",
                         "%llu values lie above the highest of %lld: percentiles there are too low",
                         (unsigned long long)q->h.over, (long long)q->h.highest);
    if (q->has_corrected)
        wb_analysis_warn(warnings, "corrected",
                         "the corrected count has values in it that were never measured: it is "
                         "not the number of operations");
}

static char *sentence_of(const struct wb_histogram *q)
{
    const struct wb_hist *h = &q->h;

    if (h->total == 0)
        return wb_strf("No samples in %zu histogram%s.", q->entries, q->entries == 1 ? "" : "s");
    return wb_strf("%llu values: half are at most %lld, 99 %% at most %lld, the largest is %lld.",
                   (unsigned long long)h->total, (long long)wb_hist_java_percentile(h, 50),
                   (long long)wb_hist_java_percentile(h, 99), (long long)h->max);
}

static wb_json *answer_of(struct wb_histogram *q, wb_json *warnings)
{
    const struct wb_hist *h = &q->h;
    WB_AUTO_FREE char *sentence = sentence_of(q);
    wb_json *answer = wb_answer_new(h->total, METHOD);

    wb_json_set_int(answer, "entries", (int64_t)q->entries);
    wb_hist_figures(h, q->percentiles, q->npercentiles, answer);
    wb_json_set_int(answer, "overflow", (int64_t)h->over);
    if (q->has_start)
        wb_json_set_real(answer, "start_time", q->start_time);
    else
        wb_json_set_reason(answer, "start_time", "there is no log with times");
    add_tags(q, answer);
    if (q->has_corrected) {
        wb_json *o = wb_json_object();
        wb_hist_figures(&q->corrected, q->percentiles, q->npercentiles, o);
        wb_json_set(answer, "corrected", o);
    }
    wb_json_set(answer, "bad_lines", wb_json_ref(q->bad_lines));
    warn_thin(q, answer, warnings);
    warn_more(q, warnings);
    wb_answer_end(answer, sentence, warnings);
    return answer;
}

static void question_release(struct wb_histogram *q)
{
    for (size_t i = 0; i < q->ntags; i++) {
        free(q->tags[i].tag);
        wb_hist_sum_release(&q->tags[i].sum);
    }
    free(q->tags);
    if (q->made)
        wb_hist_release(&q->h);
    if (q->has_corrected)
        wb_hist_release(&q->corrected);
    wb_json_free(q->bad_lines);
}

int wb_stats_histogram(const wb_json *in, wb_json **out, struct wb_err *err)
{
    struct wb_histogram q = {.in = in};
    WB_AUTO_JSON wb_json *warnings = wb_json_array();
    struct wb_err local = WB_ERR_INIT;
    int rc;

    if (err == NULL)
        err = &local;
    rc = wb_in_object(in, "log, base64, records or values", err);
    q.bad_lines = wb_json_array();
    if (rc == 0)
        rc = wb_histogram_count(&q, err);
    if (rc == 0) {
        wb_in_known(in, "", known_keys, warnings);
        *out = answer_of(&q, WB_STEAL(warnings));
    }
    question_release(&q);
    return rc;
}
