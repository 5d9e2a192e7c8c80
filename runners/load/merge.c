#include "runners/load/merge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runners/load/report.h"
#include "runners/load/verdict.h"
#include "server/base/clock.h"
#include "server/base/hist.h"
#include "server/base/mem.h"
#include "server/base/units.h"

#define SKEW_MOST_MS 10.0 /* between the begins of parts */
#define HIST_TEXT_MAX (1u << 20)

static const char *const kinds[] = {"response", "service", "lag"};

/* --- writing --- */

static void set_hist(wb_json *o, const char *key, const struct wb_hist *h)
{
    struct wb_buf text = WB_BUF_INIT(HIST_TEXT_MAX);

    if (h->total > 0) {
        wb_hist_encode(h, &text);
        wb_json_set_str(o, key, wb_buf_str(&text));
    }
    wb_buf_release(&text);
}

wb_json *wb_load_histograms(const struct wb_load_outcome *o)
{
    const struct wb_phase_stats *ph = &o->total.phase[WB_PHASE_MEASURE];
    wb_json *all = wb_json_object(), *ops = wb_json_object();

    for (int i = 0; i < o->nops; i++) {
        const struct wb_op_stats *s = &ph->op[i];
        const struct wb_hist *h[] = {&s->response, &s->service, &s->lag};
        wb_json *op;
        if (s->issued == 0 && s->censored == 0)
            continue;
        op = wb_json_object();
        for (size_t k = 0; k < WB_LEN(kinds); k++)
            set_hist(op, kinds[k], h[k]);
        wb_json_set(ops, o->ops[i], op);
    }
    wb_json_set(all, "operations", ops);
    set_hist(all, "failed_replies", &ph->failed);
    set_hist(all, "own_lag", &ph->own_lag);
    return all;
}

/* --- checking that results belong together --- */

struct merge {
    const wb_json *const *doc;
    const char *const *name;
    size_t n;
    struct wb_err *err;
};

static char *shown(const wb_json *v)
{
    struct wb_buf b = WB_BUF_INIT(4096);

    if (!v)
        return wb_strdup("not there");
    wb_json_line(v, &b);
    return wb_buf_take(&b);
}

static int differ(const struct merge *m, size_t i, const char *field)
{
    WB_AUTO_FREE char *first = shown(wb_json_path(m->doc[0], field));
    WB_AUTO_FREE char *other = shown(wb_json_path(m->doc[i], field));

    return wb_fail(m->err, WB_INVALID,
                   "%s is %s in %s and %s in %s: only results of one workload can be merged", field,
                   first, m->name[0], other, m->name[i]);
}

/* Fields of the job that may be different in each process. */
static bool own_field(const char *key)
{
    return strcmp(key, "part") == 0 || strcmp(key, "cpus") == 0;
}

static int check_job(const struct merge *m, size_t i, const wb_json *from, const wb_json *against)
{
    for (void *it = wb_json_first(from); it; it = wb_json_next(from, it)) {
        const char *key = wb_json_iter_key(it);
        WB_AUTO_FREE char *field = wb_strf("job.%s", key);
        if (!own_field(key) && !wb_json_equal(wb_json_iter_value(it), wb_json_get(against, key)))
            return differ(m, i, field);
    }
    return 0;
}

static int check_same(const struct merge *m, size_t i)
{
    static const char *const fields[] = {"version", "seed", "model"};
    static const char *const whole[] = {"transactions", "curve"};
    const wb_json *a = wb_json_get(m->doc[0], "job"), *b = wb_json_get(m->doc[i], "job");
    int rc;

    if (!wb_json_get(m->doc[i], "operations") || wb_json_type(b) != WB_JSON_OBJECT)
        return wb_fail(m->err, WB_INVALID, "%s is not a result of wb-load", m->name[i]);
    for (size_t k = 0; k < WB_LEN(fields); k++)
        if (!wb_json_equal(wb_json_get(m->doc[0], fields[k]), wb_json_get(m->doc[i], fields[k])))
            return differ(m, i, fields[k]);
    rc = check_job(m, i, a, b);
    if (rc == 0)
        rc = check_job(m, i, b, a);
    if (rc < 0)
        return rc;
    for (size_t k = 0; k < WB_LEN(whole); k++)
        if (wb_json_type(wb_json_get(m->doc[i], whole[k])) != WB_JSON_NULL)
            return wb_fail(m->err, WB_UNSUPPORTED,
                           "%s has %s: only one fixed load of single operations can be merged",
                           m->name[i], whole[k]);
    if (wb_json_type(wb_json_get(m->doc[i], "window")) != WB_JSON_OBJECT)
        return wb_fail(m->err, WB_INVALID, "%s has no measured window", m->name[i]);
    if (wb_json_type(wb_json_get(m->doc[i], "histograms")) != WB_JSON_OBJECT)
        return wb_fail(m->err, WB_INVALID,
                       "%s has no histograms: give --part h/H to each process (1/1 to closed loops "
                       "of their own)",
                       m->name[i]);
    return 0;
}

/* "h/H" of a result; h from 1. */
static int read_part(const struct merge *m, size_t i, int64_t *part, int64_t *parts)
{
    const char *text = wb_json_string(wb_json_path(m->doc[i], "job.part"));
    const char *slash = text ? strchr(text, '/') : NULL;
    WB_AUTO_FREE char *left = slash ? wb_strndup(text, (size_t)(slash - text)) : NULL;

    if (!slash || wb_parse_int(slash + 1, 1, WB_MERGE_MOST, parts, NULL) < 0 ||
        wb_parse_int(left, 1, *parts, part, NULL) < 0)
        return wb_fail(m->err, WB_INVALID, "%s: job.part '%s' is not h/H", m->name[i],
                       text ? text : "");
    return 0;
}

static int check_parts(const struct merge *m)
{
    size_t seen[WB_MERGE_MOST + 1] = {0}; /* 1 + index of the file */
    int64_t part = 0, parts = 0, all = 0;

    for (size_t i = 0; i < m->n; i++) {
        int rc = read_part(m, i, &part, &parts);
        if (rc < 0)
            return rc;
        if (i == 0)
            all = parts;
        if (parts != all)
            return differ(m, i, "job.part");
        if (all == 1)
            continue;
        if (seen[part])
            return wb_fail(m->err, WB_INVALID, "%s and %s are both part %lld/%lld",
                           m->name[seen[part] - 1], m->name[i], (long long)part, (long long)parts);
        seen[part] = i + 1;
    }
    if (all == 1 && strcmp(wb_json_str_or(m->doc[0], "model", ""), "closed") != 0)
        return wb_fail(m->err, WB_INVALID,
                       "%s and %s each offered the whole rate by the same schedule: parts of an "
                       "open loop are made with --part h/H",
                       m->name[0], m->name[1]);
    for (int64_t h = 1; all > 1 && h <= all; h++)
        if (!seen[h])
            return wb_fail(m->err, WB_INVALID, "part %lld/%lld is not among the files",
                           (long long)h, (long long)all);
    return 0;
}

/* --- adding --- */

/* Adds a histogram of a result to `to`. What encoding rounds stands beside it exactly: `figures` is
 * the object with its smallest, largest and mean value. */
static int add_hist(const struct merge *m, size_t i, const char *path, const char *figures,
                    struct wb_hist *to)
{
    WB_AUTO_FREE char *at = wb_strf("histograms.%s", path);
    const char *text = wb_json_string(wb_json_path(m->doc[i], at));
    const wb_json *f = figures ? wb_json_path(m->doc[i], figures) : NULL;
    struct wb_hist h;
    int rc;

    if (!text)
        return 0;
    rc = wb_hist_decode(text, strlen(text), &h, m->err);
    if (rc < 0)
        return wb_wrap(m->err, "%s: %s", m->name[i], at);
    if (f) {
        if (wb_json_int_or(f, "count", -1) != (int64_t)h.total) {
            wb_hist_release(&h);
            return wb_fail(m->err, WB_CORRUPT, "%s: %s does not have the %lld values of %s",
                           m->name[i], at, (long long)wb_json_int_or(f, "count", -1), figures);
        }
        h.min = llround(wb_json_real_or(f, "min_ms", 0) * WB_MS);
        h.max = llround(wb_json_real_or(f, "max_ms", 0) * WB_MS);
        h.sum = (unsigned __int128)llroundl((long double)wb_json_real_or(f, "mean_ms", 0) * WB_MS *
                                            (long double)h.total);
        h.over = (uint64_t)wb_json_int_or(f, "over_range", 0);
    }
    wb_hist_add(to, &h);
    wb_hist_release(&h);
    return 0;
}

static int64_t sum_int(const struct merge *m, const char *path)
{
    int64_t sum = 0;

    for (size_t i = 0; i < m->n; i++)
        sum += wb_json_integer(wb_json_path(m->doc[i], path));
    return sum;
}

/* NAN when one of them is null. */
static double sum_real(const struct merge *m, const char *path)
{
    double sum = 0;

    for (size_t i = 0; i < m->n; i++)
        sum += wb_json_number(wb_json_path(m->doc[i], path), NAN);
    return sum;
}

static double most_real(const struct merge *m, const char *path)
{
    double most = NAN;

    for (size_t i = 0; i < m->n; i++)
        most = fmax(most, wb_json_number(wb_json_path(m->doc[i], path), NAN));
    return most;
}

static void set_real(wb_json *o, const char *key, double v)
{
    if (isnan(v))
        wb_json_set_reason(o, key, "not known of each part");
    else
        wb_json_set_real(o, key, v);
}

/* One operation over all results, its histograms also into `all`. */
static int add_operation(const struct merge *m, const char *name, struct wb_op_stats *all,
                         wb_json **out)
{
    WB_AUTO_FREE char *ok = wb_strf("operations.%s.count", name);
    WB_AUTO_FREE char *failed = wb_strf("operations.%s.failed", name);
    WB_AUTO_FREE char *censored = wb_strf("operations.%s.censored", name);
    bool open = strcmp(wb_json_str_or(m->doc[0], "model", ""), "open") == 0;
    struct wb_op_stats s = {.ok = (uint64_t)sum_int(m, ok),
                            .failed = (uint64_t)sum_int(m, failed),
                            .censored = (uint64_t)sum_int(m, censored)};
    struct wb_hist *to[] = {&s.response, &s.service, &s.lag};
    struct wb_hist *sum[] = {&all->response, &all->service, &all->lag};
    int rc = 0;

    for (size_t k = 0; k < WB_LEN(kinds); k++) {
        WB_AUTO_FREE char *path = wb_strf("operations.%s.%s", name, kinds[k]);
        wb_hist_init_ns(to[k]);
        for (size_t i = 0; i < m->n && rc == 0; i++)
            rc = add_hist(m, i, path, path, to[k]);
        if (rc == 0)
            wb_hist_add(sum[k], to[k]);
    }
    all->ok += s.ok;
    all->failed += s.failed;
    all->censored += s.censored;
    if (rc == 0)
        *out = wb_load_operation(&s, open, false);
    for (size_t k = 0; k < WB_LEN(kinds); k++)
        wb_hist_release(to[k]);
    return rc;
}

static int add_operations(const struct merge *m, wb_json *r)
{
    bool open = strcmp(wb_json_str_or(m->doc[0], "model", ""), "open") == 0;
    wb_json *ops = wb_json_object();
    struct wb_op_stats all = {0};
    int rc = 0;

    wb_hist_init_ns(&all.response);
    wb_hist_init_ns(&all.service);
    wb_hist_init_ns(&all.lag);
    wb_json_set(ops, "all", wb_json_null()); /* stands first */
    for (size_t i = 0; i < m->n && rc == 0; i++) {
        const wb_json *from = wb_json_get(m->doc[i], "operations");
        for (void *it = wb_json_first(from); it && rc == 0; it = wb_json_next(from, it)) {
            const char *name = wb_json_iter_key(it);
            wb_json *op = NULL;
            if (wb_json_get(ops, name))
                continue;
            rc = add_operation(m, name, &all, &op);
            if (rc == 0)
                wb_json_set(ops, name, op);
        }
    }
    wb_json_set(ops, "all", wb_load_operation(&all, open, false));
    wb_json_set(r, "operations", ops);
    wb_hist_release(&all.response);
    wb_hist_release(&all.service);
    wb_hist_release(&all.lag);
    return rc;
}

static int add_failed(const struct merge *m, wb_json *r)
{
    struct wb_hist h;
    int rc = 0;

    wb_hist_init_ns(&h);
    for (size_t i = 0; i < m->n && rc == 0; i++)
        rc = add_hist(m, i, "failed_replies", "failed_replies", &h);
    if (rc == 0 && h.total > 0)
        wb_json_set(r, "failed_replies", wb_load_latency(&h, 0));
    else
        wb_json_set_reason(r, "failed_replies", "no operation failed");
    wb_hist_release(&h);
    return rc;
}

/* When the measured window of a result began and ended, Unix ms. */
static int read_window(const struct merge *m, size_t i, int64_t *from, int64_t *to)
{
    const char *start = wb_json_string(wb_json_path(m->doc[i], "window.start"));
    double seconds = wb_json_number(wb_json_path(m->doc[i], "window.seconds"), -1);

    if (!start || !(seconds > 0 && seconds < 1e9) || wb_parse_time(start, from, NULL) < 0)
        return wb_fail(m->err, WB_INVALID, "%s: window is not {start, seconds}", m->name[i]);
    *to = *from + llround(seconds * 1000);
    return 0;
}

struct span {
    double seconds, skew_ms;
};

/* `window`, the rates and `parts`. */
static int add_window(const struct merge *m, wb_json *r, struct span *span)
{
    int64_t first = INT64_MAX, last_begin = 0, last = 0, longest = 0, from = 0, to = 0;
    wb_json *w = wb_json_object(), *parts = wb_json_array();
    struct wb_buf start = WB_BUF_INIT(64);
    double done = 0;

    for (size_t i = 0; i < m->n; i++) {
        wb_json *p = wb_json_object();
        int rc = read_window(m, i, &from, &to);
        wb_json_push(parts, p);
        if (rc < 0) {
            wb_json_free(w);
            wb_json_free(parts);
            return rc;
        }
        first = from < first ? from : first;
        last_begin = from > last_begin ? from : last_begin;
        last = to > last ? to : last;
        longest = to - from > longest ? to - from : longest;
        done += rint(wb_json_number(wb_json_get(m->doc[i], "achieved_per_s"), 0) *
                     wb_json_number(wb_json_path(m->doc[i], "window.seconds"), 0));
        wb_json_set_str(p, "file", m->name[i]);
        wb_json_set_str(p, "part", wb_json_string(wb_json_path(m->doc[i], "job.part")));
        wb_json_set_str(p, "verdict", wb_json_str_or(m->doc[i], "verdict", ""));
        wb_json_set(p, "window", wb_json_copy(wb_json_get(m->doc[i], "window")));
        wb_json_set(p, "achieved_per_s", wb_json_copy(wb_json_get(m->doc[i], "achieved_per_s")));
    }
    span->skew_ms = (double)(last_begin - first);
    /* Stamps are whole ms; windows of the same ms keep their exact length. */
    span->seconds =
        last - first == longest ? most_real(m, "window.seconds") : (double)(last - first) / 1000;
    wb_format_time(first, &start);
    wb_json_set_str(w, "start", wb_buf_str(&start));
    wb_json_set_real(w, "seconds", span->seconds);
    wb_json_set(r, "window", w);
    wb_json_set_real(r, "start_skew_ms", span->skew_ms);
    if (strcmp(wb_json_str_or(m->doc[0], "model", ""), "open") == 0)
        set_real(r, "offered_per_s", sum_real(m, "offered_per_s"));
    else
        wb_json_set_reason(r, "offered_per_s", "closed loop");
    wb_json_set_real(r, "achieved_per_s", done / span->seconds);
    wb_json_set(r, "parts", parts);
    wb_buf_release(&start);
    return 0;
}

static void add_counts(const struct merge *m, wb_json *r)
{
    static const char *const keys[] = {
        "misses",   "scheduled",    "ok",        "failed",          "dropped",       "censored",
        "verified", "late_replies", "redirects", "waited_for_slot", "backlog_at_end"};
    wb_json *errors = wb_json_object();

    for (size_t k = 0; k < WB_LEN(keys); k++)
        wb_json_set_int(r, keys[k], sum_int(m, keys[k]));
    for (size_t i = 0; i < m->n; i++) {
        const wb_json *e = wb_json_get(m->doc[i], "errors");
        for (void *it = wb_json_first(e); it; it = wb_json_next(e, it)) {
            const char *class = wb_json_iter_key(it);
            wb_json_set_int(errors, class,
                            wb_json_int_or(errors, class, 0) +
                                wb_json_integer(wb_json_iter_value(it)));
        }
    }
    wb_json_set(r, "errors", errors);
}

static int add_client(const struct merge *m, wb_json *r)
{
    wb_json *c = wb_json_object(), *threads = wb_json_array();
    double ok = rint(wb_json_real_or(r, "achieved_per_s", 0) *
                     wb_json_number(wb_json_path(r, "window.seconds"), 0));
    double cpu = sum_real(m, "client.cpu_s");
    struct wb_hist lag;
    int rc = 0;

    for (size_t i = 0; i < m->n; i++) {
        const wb_json *t = wb_json_path(m->doc[i], "client.threads");
        for (size_t k = 0; k < wb_json_len(t); k++)
            wb_json_push(threads, wb_json_copy(wb_json_at(t, k)));
    }
    set_real(c, "cpu_s", cpu);
    set_real(c, "cpu_s_per_million_ops", ok > 0 ? cpu * 1e6 / ok : NAN);
    wb_json_set(c, "threads", threads);
    set_real(c, "throttled_s", sum_real(m, "client.throttled_s"));
    set_real(c, "throttled_percent", most_real(m, "client.throttled_percent"));
    set_real(c, "steal_percent", most_real(m, "client.steal_percent"));
    set_real(c, "link_percent", most_real(m, "client.link_percent"));
    wb_hist_init_ns(&lag);
    for (size_t i = 0; i < m->n && rc == 0; i++)
        rc = add_hist(m, i, "own_lag", NULL, &lag);
    set_real(c, "lag_p99_ms", lag.total > 0 ? (double)wb_hist_percentile(&lag, 99) / WB_MS : NAN);
    wb_hist_release(&lag);
    wb_json_set_int(c, "sends", sum_int(m, "client.sends"));
    wb_json_set_int(c, "receives", sum_int(m, "client.receives"));
    wb_json_set_int(c, "reconnects", sum_int(m, "client.reconnects"));
    wb_json_set_int(c, "connect_failures", sum_int(m, "client.connect_failures"));
    wb_json_set(r, "client", c);
    return rc;
}

static void add_data(const struct merge *m, wb_json *r)
{
    wb_json *d;

    if (wb_json_type(wb_json_get(m->doc[0], "data")) != WB_JSON_OBJECT) {
        wb_json_set_reason(r, "data", "no load phase was asked for");
        return;
    }
    d = wb_json_object();
    wb_json_set_int(d, "rows", sum_int(m, "data.rows"));
    set_real(d, "seconds", most_real(m, "data.seconds"));
    wb_json_set_int(d, "checked", sum_int(m, "data.checked"));
    wb_json_set_int(d, "mismatched", sum_int(m, "data.mismatched"));
    wb_json_set(r, "data", d);
}

/* The worst of all, every reason with the file it is from. */
static const char *add_verdict(const struct merge *m, wb_json *r, const struct span *span)
{
    wb_json *reasons = wb_json_array();
    const char *worst = wb_load_worse("valid", "valid");

    for (size_t i = 0; i < m->n; i++) {
        const wb_json *from = wb_json_get(m->doc[i], "reasons");
        worst = wb_load_worse(worst, wb_json_str_or(m->doc[i], "verdict", "failed"));
        for (size_t k = 0; k < wb_json_len(from); k++) {
            wb_json *reason = wb_json_copy(wb_json_at(from, k));
            WB_AUTO_FREE char *text =
                wb_strf("%s: %s", m->name[i], wb_json_str_or(reason, "text", ""));
            wb_json_set_str(reason, "text", text);
            wb_json_set_str(reason, "file", m->name[i]);
            wb_json_push(reasons, reason);
        }
    }
    if (span->skew_ms > SKEW_MOST_MS) {
        wb_json *reason = wb_json_object(), *evidence = wb_json_object();
        WB_AUTO_FREE char *text = wb_strf(
            "the windows began %.0f ms apart: they are not one load all the time", span->skew_ms);
        wb_json_set_real(evidence, "start_skew_ms", span->skew_ms);
        wb_json_set_real(evidence, "limit", SKEW_MOST_MS);
        wb_json_set_str(reason, "code", "start-skew");
        wb_json_set_str(reason, "text", text);
        wb_json_set(reason, "evidence", evidence);
        wb_json_push(reasons, reason);
        worst = wb_load_worse(worst, "noisy");
    }
    wb_json_set_str(r, "verdict", worst);
    wb_json_set(r, "reasons", reasons);
    return worst;
}

static void add_rest(const struct merge *m, wb_json *r)
{
    static const char *const left_out[] = {
        "warm_up", "little_ratio", "transactions", "curve", "sustained_per_s", "steady", "start"};
    wb_json *job = wb_json_copy(wb_json_get(m->doc[0], "job")), *samples = wb_json_array();

    for (size_t k = 0; k < WB_LEN(left_out); k++)
        wb_json_set_reason(r, left_out[k], "merged from several results: see each of them");
    for (size_t i = 0; i < m->n; i++) {
        const wb_json *from = wb_json_get(m->doc[i], "error_samples");
        for (size_t k = 0; k < wb_json_len(from); k++)
            wb_json_push(samples, wb_json_copy(wb_json_at(from, k)));
    }
    wb_json_set(r, "error_samples", samples);
    wb_json_del(job, "part");
    wb_json_del(job, "cpus");
    wb_json_set(r, "job", job);
}

int wb_load_merge(const wb_json *const *docs, const char *const *names, size_t n, wb_json **out,
                  const char **verdict, struct wb_err *err)
{
    struct merge m = {.doc = docs, .name = names, .n = n, .err = err};
    wb_json *r;
    struct span span;
    int rc = 0;

    if (n < 2 || n > WB_MERGE_MOST)
        return wb_fail(err, WB_INVALID, "merge takes 2 to %d results", WB_MERGE_MOST);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = check_same(&m, i);
    if (rc == 0)
        rc = check_parts(&m);
    if (rc < 0)
        return rc;
    r = wb_json_object();
    wb_json_set(r, "version", wb_json_copy(wb_json_get(docs[0], "version")));
    wb_json_set(r, "seed", wb_json_copy(wb_json_get(docs[0], "seed")));
    wb_json_set(r, "model", wb_json_copy(wb_json_get(docs[0], "model")));
    wb_json_set(r, "verdict", wb_json_null());
    wb_json_set(r, "reasons", wb_json_null());
    rc = add_window(&m, r, &span);
    if (rc == 0) {
        *verdict = add_verdict(&m, r, &span);
        add_counts(&m, r);
        rc = add_operations(&m, r);
    }
    if (rc == 0)
        rc = add_failed(&m, r);
    if (rc == 0)
        rc = add_client(&m, r);
    if (rc < 0) {
        wb_json_free(r);
        return rc;
    }
    add_data(&m, r);
    add_rest(&m, r);
    *out = r;
    return 0;
}
