/* `scaling` and `value` over records. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/cache.h"
#include "server/analysis/campaign_value.h"
#include "server/analysis/judge.h"
#include "server/analysis/refs.h"

/* ---- scaling ---- */

static int answer_scaling(const wb_json *in, wb_json **out, struct wb_err *err)
{
    const struct wb_scaling_question q = {.metric = wb_json_str_or(in, "metric", NULL),
                                          .over = wb_json_str_or(in, "over", NULL)};

    return wb_campaign_scaling(wb_json_get(in, "plan"), wb_json_get(in, "runs"), &q, out, err);
}

int wb_judge_scaling(const struct wb_judge *j, const char *typed,
                     const struct wb_scaling_question *q, wb_json **out, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *in = wb_json_object();
    struct wb_ref ref = {0};
    int rc = wb_ref_read(j->store, typed, &ref, err);

    if (rc == 0 && ref.arm != NULL)
        rc = wb_fail(err, WB_INVALID, "'%s' is one arm: a curve needs the arms of a campaign",
                     typed);
    if (rc == 0) {
        wb_json_set(in, "plan", wb_json_ref(ref.plan));
        wb_json_set(in, "runs", wb_json_ref(ref.runs));
        wb_json_set_str(in, "metric", q->metric);
        wb_json_set_str(in, "over", q->over);
        rc = wb_cache_answer(j->cache, "scaling", answer_scaling, in, out, err);
    }
    wb_ref_release(&ref);
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

/* Campaigns as they are priced. */
struct priced {
    struct wb_value_source *sources;
    size_t n;
    struct wb_value_question q;
};

static int compute_value(void *arg, wb_json **out, struct wb_err *err)
{
    const struct priced *p = arg;

    return wb_campaign_value(p->sources, p->n, &p->q, out, err);
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

/* Everything that the answer follows from: records, the content of the book, options. */
static wb_json *value_key(const struct priced *p)
{
    wb_json *key = wb_json_object(), *list = wb_json_array();

    for (size_t i = 0; i < p->n; i++) {
        const struct wb_value_source *s = &p->sources[i];
        wb_json *o = wb_json_object();
        wb_json_set(o, "plan", wb_json_ref(s->plan));
        wb_json_set(o, "runs", wb_json_ref(s->summaries));
        wb_json_set_str(o, "prefix", s->prefix);
        wb_json_set_str(o, "arm", s->arm);
        wb_json_push(list, o);
    }
    wb_json_set(key, "sources", list);
    wb_json_set(key, "book", book_json(p->q.book));
    wb_json_set_str(key, "metric", p->q.metric);
    wb_json_set_real(key, "slo_p99_ms", p->q.slo_p99_ms);
    wb_json_set_int(key, "hosts", p->q.hosts);
    return key;
}

static int priced_answer(const struct wb_judge *j, const struct wb_ref *refs, size_t n,
                         const struct wb_judge_value *o, wb_json **out, struct wb_err *err)
{
    struct wb_value_source *sources = wb_calloc(n, sizeof(*sources));
    char **prefixes = wb_calloc(n, sizeof(*prefixes));
    struct priced p = {
        .sources = sources,
        .n = n,
        .q = {
            .book = o->book, .metric = o->metric, .slo_p99_ms = o->slo_p99_ms, .hosts = o->hosts}};
    WB_AUTO_JSON wb_json *key = NULL;
    int rc;

    for (size_t i = 0; i < n; i++) {
        const char *slash = strchr(refs[i].typed, '/');
        prefixes[i] = wb_strndup(refs[i].typed,
                                 slash ? (size_t)(slash - refs[i].typed) : strlen(refs[i].typed));
        sources[i] = (struct wb_value_source){.plan = refs[i].plan,
                                              .summaries = refs[i].runs,
                                              .prefix = n > 1 ? prefixes[i] : NULL,
                                              .arm = refs[i].arm};
    }
    key = value_key(&p);
    rc = wb_cache_compute(j->cache, "value", key, compute_value, &p, out, err);
    for (size_t i = 0; i < n; i++)
        free(prefixes[i]);
    free(prefixes);
    free(sources);
    return rc;
}

int wb_judge_value(const struct wb_judge *j, char *const *typed, size_t n,
                   const struct wb_judge_value *q, wb_json **out, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *notes = wb_json_array(), *forced = wb_json_array();
    struct wb_ref *refs = wb_calloc(n, sizeof(*refs));
    int rc = wb_refs_read(j->store, typed, n, refs, err);

    if (rc == 0)
        rc = guard(refs, n, q->force, notes, forced, err);
    if (rc == 0)
        rc = priced_answer(j, refs, n, q, out, err);
    for (size_t i = 0; i < wb_json_len(notes) && rc == 0; i++)
        wb_json_push(wb_json_get(*out, "warnings"), wb_json_ref(wb_json_at(notes, i)));
    if (rc == 0 && wb_json_len(forced) > 0)
        wb_json_set(*out, "forced", WB_STEAL(forced));
    for (size_t i = 0; i < n; i++)
        wb_ref_release(&refs[i]);
    free(refs);
    return rc;
}
