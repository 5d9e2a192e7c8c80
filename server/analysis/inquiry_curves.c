/* `scaling` and `value` over records. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/campaign_value.h"
#include "server/analysis/inquiry_parts.h"

/* ---- scaling ---- */

static int scaling_of(const void *question, const struct wb_ref *refs, size_t n, wb_json **out,
                      struct wb_err *err)
{
    if (refs[0].arm != NULL)
        return wb_fail(err, WB_INVALID, "'%s' is one arm: a curve needs the arms of a campaign",
                       refs[0].typed);
    return wb_campaign_scaling(refs[0].plan, refs[0].runs, question, out, err);
}

int wb_inquiry_scaling(const struct wb_inquiry *j, const char *ref,
                       const struct wb_scaling_question *q, wb_json **out, struct wb_err *err)
{
    char *typed[] = {wb_strdup(ref)};
    wb_json *options = wb_json_object();
    int rc;

    wb_json_set_str(options, "metric", q->metric);
    wb_json_set_str(options, "over", q->over);
    rc = wb_inquiry_over(j, "scaling", typed, 1, options, scaling_of, q, out, err);
    free(typed[0]);
    return rc;
}

/* ---- value ---- */

/* All campaigns against the first: hosts are what is compared, the rest must match. */
static int guard(const struct wb_ref *refs, size_t n, bool force, wb_json *warnings,
                 wb_json *forced, struct wb_err *err)
{
    static const char *const compared[] = {"host.class", "host.cpu_model", NULL};
    int rc = 0;

    for (size_t i = 1; i < n && rc == 0; i++)
        if (strcmp(refs[0].campaign, refs[i].campaign) != 0)
            rc = wb_ref_guard(&refs[0], &refs[i], force, compared, warnings, forced, err);
    return rc;
}

static wb_json *book_json(const struct wb_book *b)
{
    wb_json *o = wb_json_object(), *hosts = wb_json_array();

    wb_json_set_str(o, "name", b->name);
    wb_json_set_str(o, "date", b->date);
    wb_json_set_str(o, "currency", b->currency);
    wb_json_set_str(o, "source", b->source);
    for (size_t i = 0; i < b->nhosts; i++) {
        wb_json *h = wb_json_object();
        wb_json_set_str(h, "class", b->hosts[i].class);
        wb_json_set_real(h, "per_hour", b->hosts[i].per_hour);
        wb_json_set_bool(h, "owned", b->hosts[i].owned);
        wb_json_push(hosts, h);
    }
    wb_json_set(o, "hosts", hosts);
    return o;
}

static int priced(const void *question, const struct wb_ref *refs, size_t n, wb_json **out,
                  struct wb_err *err)
{
    const struct wb_inquiry_value *o = question;
    const struct wb_value_question q = {
        .book = o->book, .metric = o->metric, .slo_p99_ms = o->slo_p99_ms, .hosts = o->hosts};
    struct wb_value_source *sources = wb_calloc(n, sizeof(*sources));
    char **prefixes = wb_calloc(n, sizeof(*prefixes));
    int rc;

    for (size_t i = 0; i < n; i++) {
        prefixes[i] = wb_ref_head(refs[i].typed);
        sources[i] = (struct wb_value_source){.plan = refs[i].plan,
                                              .summaries = refs[i].runs,
                                              .prefix = n > 1 ? prefixes[i] : NULL,
                                              .arm = refs[i].arm};
    }
    rc = wb_campaign_value(sources, n, &q, out, err);
    for (size_t i = 0; i < n; i++)
        free(prefixes[i]);
    free(prefixes);
    free(sources);
    return rc;
}

static int value_of(const void *question, const struct wb_ref *refs, size_t n, wb_json **out,
                    struct wb_err *err)
{
    const struct wb_inquiry_value *q = question;
    WB_AUTO_JSON wb_json *notes = wb_json_array(), *forced = wb_json_array();
    int rc = guard(refs, n, q->force, notes, forced, err);

    if (rc == 0)
        rc = priced(q, refs, n, out, err);
    for (size_t i = 0; i < wb_json_len(notes) && rc == 0; i++)
        wb_json_push(wb_json_get(*out, "warnings"), wb_json_ref(wb_json_at(notes, i)));
    if (rc == 0 && wb_json_len(forced) > 0)
        wb_json_set(*out, "forced", WB_STEAL(forced));
    return rc;
}

int wb_inquiry_value(const struct wb_inquiry *j, char *const *typed, size_t n,
                     const struct wb_inquiry_value *q, wb_json **out, struct wb_err *err)
{
    wb_json *options = wb_json_object();

    wb_json_set(options, "book", book_json(q->book)); /* its content, not its name */
    wb_json_set_str(options, "metric", q->metric);
    wb_json_set_real(options, "slo_p99_ms", q->slo_p99_ms);
    wb_json_set_int(options, "hosts", q->hosts);
    wb_json_set_bool(options, "force", q->force);
    return wb_inquiry_over(j, "value", typed, n, options, value_of, q, out, err);
}
