/*
 * Results of other programs become records: whole ones, that list, trend and verify treat as any
 * other, but of which nothing is claimed that is not known.
 */
#include <stdlib.h>
#include <string.h>

#include "server/base/cancel.h"
#include "server/base/clock.h"
#include "server/base/digest.h"
#include "server/base/file.h"
#include "server/record/import.h"
#include "server/record/index.h"
#include "server/record/outside.h"
#include "server/record/summary.h"
#include "server/record/work.h"

#define LINES_MAX 1000000
#define BATCH 2000 /* results that become one commit: what an interruption may lose */
#define UNIT_MAX 40
#define ROUND_MAX 1000000
#define ID_DIGITS 24
#define TEXT_MAX 200                /* bytes of a name, factor, version */
#define MS_FROM 100000000000LL      /* an integer from here on is in milliseconds, */
#define YEAR_2000_MS 946684800000LL /* and a time lies between these */
#define YEAR_2100_MS 4102444800000LL

struct outside {
    const char *source;
    const wb_json *in; /* the line */
    const char *id, *test, *arm, *campaign;
    int64_t started_ms, ended_ms;
    char *arm_text, *campaign_text; /* owned */
};

/* ---- reading a line ---- */

/* A text of one line without controls, at most TEXT_MAX bytes. */
static bool is_name(const char *s)
{
    if (!s || !*s || strlen(s) > TEXT_MAX)
        return false;
    for (const unsigned char *p = (const unsigned char *)s; *p; p++)
        if (*p < 0x20 || *p == 0x7f)
            return false;
    return true;
}

static int need_name(const wb_json *o, const char *key, const char **out, struct wb_err *err)
{
    const wb_json *v = wb_json_get(o, key);

    if (!is_name(wb_json_string(v)))
        return wb_fail(err, WB_INVALID, "%s: needed is a text of one line, at most %d bytes", key,
                       TEXT_MAX);
    *out = wb_json_string(v);
    return 0;
}

static int read_time(const wb_json *o, const char *key, int64_t *ms, struct wb_err *err)
{
    const wb_json *v = wb_json_get(o, key);
    int rc = 0;

    if (wb_json_type(v) == WB_JSON_INT) {
        int64_t n = wb_json_integer(v);

        *ms = n >= MS_FROM ? n : n > 0 ? n * 1000 : 0;
    } else if (wb_json_string(v)) {
        rc = wb_parse_time(wb_json_string(v), ms, err);
    } else {
        return wb_fail(err, WB_INVALID,
                       "%s: needed is a time with Z or offset (2026-11-30T10:00:00Z), or a Unix "
                       "time in seconds or milliseconds",
                       key);
    }
    if (rc == 0 && (*ms < YEAR_2000_MS || *ms >= YEAR_2100_MS))
        rc = wb_fail(err, WB_INVALID, "a time between the years 2000 and 2100 is needed");
    return rc < 0 ? wb_wrap(err, "%s", key) : 0;
}

static int check_factors(const wb_json *factors, struct wb_err *err)
{
    if (factors && wb_json_type(factors) != WB_JSON_OBJECT)
        return wb_fail(err, WB_INVALID, "factors: needed is {name: text}");
    for (void *it = wb_json_first(factors); it; it = wb_json_next(factors, it))
        if (!is_name(wb_json_iter_key(it)) || !is_name(wb_json_string(wb_json_iter_value(it))))
            return wb_fail(err, WB_INVALID,
                           "factors: '%.40s' is not a text of one line (numbers and versions in "
                           "quotes)",
                           wb_json_iter_key(it));
    return 0;
}

/* Keys that may be left out, but are not something else when they are there. */
static int check_optional(const wb_json *in, struct wb_err *err)
{
    static const char *const texts[] = {"name", "version", "host", "host_class", "outcome"};
    const wb_json *round = wb_json_get(in, "round");

    for (size_t i = 0; i < WB_LEN(texts); i++)
        if (wb_json_get(in, texts[i]) && !is_name(wb_json_string(wb_json_get(in, texts[i]))))
            return wb_fail(err, WB_INVALID,
                           "%s: a text of one line, at most %d bytes, is wanted (numbers and "
                           "versions in quotes)",
                           texts[i], TEXT_MAX);
    if (round && (wb_json_type(round) != WB_JSON_INT || wb_json_integer(round) < 1 ||
                  wb_json_integer(round) > ROUND_MAX))
        return wb_fail(err, WB_INVALID, "round: a whole number from 1 to %d is wanted", ROUND_MAX);
    return 0;
}

/* What summary.c does not look at, because it does not need it. */
static int check_units(const wb_json *metrics, struct wb_err *err)
{
    for (void *it = wb_json_first(metrics); it; it = wb_json_next(metrics, it)) {
        const wb_json *unit = wb_json_get(wb_json_iter_value(it), "unit");
        const char *text = wb_json_string(unit);

        if (unit && (!text || (*text && !is_name(text)) || strlen(text) > UNIT_MAX))
            return wb_fail(err, WB_INVALID,
                           "metrics: %.40s: the unit is a text of one line, at most %d bytes",
                           wb_json_iter_key(it), UNIT_MAX);
    }
    return 0;
}

/* "docker x1/gcc-13": the values in the order of their names, so that it depends on nothing else.
 */
static char *arm_of(const wb_json *factors)
{
    struct wb_strv names = {0};
    struct wb_buf b = WB_BUF_INIT(65536);

    for (void *it = wb_json_first(factors); it; it = wb_json_next(factors, it)) {
        size_t i = 0;

        wb_strv_add(&names, wb_json_iter_key(it));
        for (i = names.n - 1; i > 0 && strcmp(names.v[i - 1], names.v[i]) > 0; i--) {
            char *t = names.v[i];

            names.v[i] = names.v[i - 1];
            names.v[i - 1] = t;
        }
    }
    for (size_t i = 0; i < names.n; i++)
        wb_buf_addf(&b, "%s%s", i ? "/" : "", wb_json_str_or(factors, names.v[i], ""));
    wb_strv_release(&names);
    return b.len ? wb_buf_take(&b) : wb_strdup("-");
}

/* The first hex digits of a digest over what makes something one thing. */
static char *short_digest(const char *prefix, const char *a, const char *b)
{
    WB_AUTO_FREE char *text = wb_strf("%s\n%s\n", a, b);
    char hex[WB_SHA256_HEX];

    wb_sha256_of(text, strlen(text), hex);
    return wb_strf("%s%.*s", prefix, ID_DIGITS, hex);
}

static int read_line(struct outside *o, struct wb_err *err)
{
    const char *outcome = wb_json_str_or(o->in, "outcome", "ok"), *word = NULL;
    char day[11] = "";
    int rc = need_name(o->in, "id", &o->id, err);

    if (rc == 0)
        rc = need_name(o->in, "test", &o->test, err);
    if (rc == 0)
        rc = read_time(o->in, "measured_at", &o->started_ms, err);
    o->ended_ms = o->started_ms;
    if (rc == 0 && wb_json_get(o->in, "ended_at"))
        rc = read_time(o->in, "ended_at", &o->ended_ms, err);
    if (rc == 0 && o->ended_ms < o->started_ms)
        rc = wb_fail(err, WB_INVALID, "ended_at is before measured_at");
    if (rc == 0)
        rc = check_factors(wb_json_get(o->in, "factors"), err);
    if (rc == 0)
        rc = check_optional(o->in, err);
    if (rc == 0)
        rc = check_units(wb_json_get(o->in, "metrics"), err);
    if (rc == 0 && !wb_record_is_outcome(outcome))
        rc = wb_fail(err, WB_INVALID, "outcome: '%.40s' is none; ok is one, sut-error another",
                     outcome);
    if (rc == 0 && wb_json_get(o->in, "campaign"))
        rc = need_name(o->in, "campaign", &word, err);
    if (rc == 0 && !wb_day_text(o->started_ms, day))
        rc = wb_fail(err, WB_INVALID, "measured_at is no usable time");
    if (rc < 0)
        return rc;
    o->campaign = o->campaign_text = short_digest("cmp_I", o->source, word ? word : day);
    o->arm = o->arm_text = arm_of(wb_json_get(o->in, "factors"));
    return 0;
}

/* ---- the record ---- */

static char *series_of(const struct outside *o)
{
    WB_AUTO_JSON wb_json *key = wb_json_object();
    const wb_json *factors = wb_json_get(o->in, "factors");
    struct wb_buf text = WB_BUF_INIT(1u << 20);
    char hex[WB_SHA256_HEX];

    wb_json_set_str(key, "source", o->source);
    wb_json_set_str(key, "test", o->test);
    wb_json_set_str(key, "name", wb_json_str_or(o->in, "name", NULL));
    wb_json_set_str(key, "host_class", wb_json_str_or(o->in, "host_class", NULL));
    if (factors)
        wb_json_set(key, "factors", wb_json_ref(factors));
    wb_json_canonical(key, &text);
    wb_sha256_of(wb_buf_str(&text), text.len, hex);
    wb_buf_release(&text);
    return wb_strdup(hex);
}

static void set_time(wb_json *o, const char *key, int64_t ms)
{
    struct wb_buf at = WB_BUF_INIT(64);

    wb_format_time(ms, &at);
    wb_json_set_str(o, key, wb_buf_str(&at));
    wb_buf_release(&at);
}

/* The first metric that is better when higher stands for the throughput. */
static wb_json *headline(const wb_json *metrics)
{
    wb_json *h = wb_json_object();
    const char *throughput = NULL, *p99 = NULL;

    for (void *it = wb_json_first(metrics); it; it = wb_json_next(metrics, it)) {
        const char *name = wb_json_iter_key(it);
        const wb_json *m = wb_json_iter_value(it);

        if (!throughput && !strcmp(wb_json_str_or(m, "better", ""), "higher"))
            throughput = name;
        if (!p99 && strstr(name, "p99") && !strcmp(wb_json_str_or(m, "unit", ""), "ms"))
            p99 = name;
    }
    wb_json_set_str(h, "throughput", throughput);
    wb_json_set_str(h, "p99", p99);
    return h;
}

static wb_json *copy_texts(const wb_json *in, const char *const *keys, const char *const *as)
{
    wb_json *o = wb_json_object();

    for (size_t i = 0; keys[i]; i++)
        wb_json_set_str(o, as[i], wb_json_str_or(in, keys[i], ""));
    return o;
}

static wb_json *summary_of(const struct outside *o, const char *run, wb_json *metrics)
{
    static const char *const recipe[] = {"name", "version", NULL};
    static const char *const host[] = {"host", "host_class", NULL};
    static const char *const host_as[] = {"name", "class", NULL};
    const wb_json *factors = wb_json_get(o->in, "factors");
    WB_AUTO_FREE char *series = series_of(o);
    wb_json *s = wb_json_object(), *from = wb_json_object();

    wb_json_set_str(s, "id", run);
    wb_json_set_str(s, "campaign", o->campaign);
    wb_json_set_str(s, "study", o->test);
    wb_json_set_str(s, "arm", o->arm);
    wb_json_set_int(s, "round", wb_json_int_or(o->in, "round", 1));
    wb_json_set_int(s, "attempt", 1);
    wb_json_set(s, "factors", factors ? wb_json_ref(factors) : wb_json_object());
    wb_json_set(s, "recipe", copy_texts(o->in, recipe, recipe));
    wb_json_set(s, "host", copy_texts(o->in, host, host_as));
    set_time(s, "started_at", o->started_ms);
    set_time(s, "ended_at", o->ended_ms);
    wb_json_set_real(s, "seconds", (double)(o->ended_ms - o->started_ms) / 1000);
    wb_json_set_str(s, "outcome", wb_json_str_or(o->in, "outcome", "ok"));
    wb_json_set(s, "reasons", wb_json_array());
    wb_json_set_str(s, "validity", "unverified");
    wb_json_set(s, "evidence", wb_json_array());
    wb_json_set_str(s, "teardown", "clean");
    wb_json_set_str(s, "series_key", series);
    wb_json_set_bool(s, "windows_short", false);
    wb_json_set(s, "limits", wb_json_array());
    wb_json_set(s, "metrics", metrics);
    wb_json_set(s, "headline", headline(metrics));
    wb_json_set_str(from, "source", o->source);
    wb_json_set_str(from, "id", o->id);
    wb_json_set(s, "imported", from);
    return s;
}

static wb_json *with_schema(void)
{
    wb_json *o = wb_json_object();

    wb_json_set_int(o, "schema", WB_SCHEMA);
    return o;
}

/* *out is released by the caller, also on failure. */
static int make_record(const struct outside *o, struct wb_record *out, struct wb_err *err)
{
    wb_json *metrics = NULL, *arms = wb_json_array(), *arm = wb_json_object();
    int rc;

    out->started_ms = o->started_ms;
    out->run = short_digest("run_I", o->source, o->id);
    out->study = with_schema();
    out->plan = with_schema();
    out->environment = with_schema();
    out->result = with_schema();
    out->events = wb_json_array();
    wb_json_set_str(out->study, "study", o->test);
    wb_json_set_str(arm, "label", o->arm);
    wb_json_push(arms, arm);
    wb_json_set_str(out->plan, "campaign", o->campaign);
    wb_json_set_str(out->plan, "study", o->test);
    wb_json_set(out->plan, "arms", arms);
    wb_json_set(out->plan, "contrasts", wb_json_array());
    wb_json_set(out->result, "phases", wb_json_array());
    wb_json_set(out->result, "imported", wb_json_copy(o->in));
    rc = wb_summary_metrics(out->result, &metrics, err);
    if (rc == 0)
        out->summary = summary_of(o, out->run, metrics);
    return rc;
}

int wb_outside_record(const char *source, const char *line, size_t n, struct wb_record *out,
                      char **id, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *in = NULL;
    struct outside o = {.source = source};
    struct wb_record r = {0};
    int rc = wb_json_parse(line, n, &in, err);

    if (rc == 0 && wb_json_type(in) != WB_JSON_OBJECT)
        rc = wb_fail(err, WB_INVALID, "it is not an object");
    o.in = in;
    *id = wb_strdup(wb_json_str_or(in, "id", NULL));
    if (rc == 0)
        rc = read_line(&o, err);
    if (rc == 0)
        rc = make_record(&o, &r, err);
    free(o.arm_text);
    free(o.campaign_text);
    if (rc < 0)
        wb_record_release(&r);
    else
        *out = r;
    return rc;
}

/* ---- all lines ---- */

struct pending {
    struct wb_record record;
    int64_t line;
};

struct import {
    struct wb_store *s;
    const char *source;
    struct pending v[BATCH];
    size_t n;
    int64_t recorded, already;
    wb_json *refused;
};

static void refuse(struct import *m, int64_t line, const char *id, const struct wb_err *err)
{
    wb_json *o = wb_json_object();
    char text[2 * WB_ERR_TEXT_MAX];

    wb_json_set_int(o, "line", line);
    wb_json_set_str(o, "id", id);
    wb_json_set_str(o, "reason", wb_err_text(err, text, sizeof(text)));
    wb_json_push(m->refused, o);
}

static void forget_pending(struct import *m)
{
    for (size_t i = 0; i < m->n; i++)
        wb_record_release(&m->v[i].record);
    m->n = 0;
}

/* 0: the run is recorded already, WB_NOT_FOUND: not. The index is asked, for a day's folder may
 * hold as many as there are lines. */
static int look_up(struct wb_store *s, const char *run, struct wb_err *err)
{
    struct wb_place p = {0};
    int rc = wb_index_place(s, run, &p, err);

    if (rc == -WB_CORRUPT) /* it cannot be made */
        rc = wb_place_find(s, run, &p, err);
    wb_place_release(&p);
    return rc;
}

/* One after the other, when they did not go together: one of them is too big, or another process
 * records the same. */
static int flush_singly(struct import *m, struct wb_err *err)
{
    char commit[41];
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < m->n; i++) {
        struct wb_record *r = &m->v[i].record;
        struct wb_err why = WB_ERR_INIT;
        bool taken = false;

        rc = wb_store_commit(m->s, r, commit, &why);
        taken = rc == 0;
        if (rc == -WB_CONFLICT && look_up(m->s, r->run, NULL) == 0) {
            m->already++;
            rc = 0;
        } else if (rc == -WB_INVALID || rc == -WB_LIMIT) {
            refuse(m, m->v[i].line, wb_json_str_or(wb_json_get(r->summary, "imported"), "id", NULL),
                   &why);
            rc = 0;
        } else if (rc < 0 && err) {
            *err = why;
        }
        m->recorded += taken;
    }
    return rc;
}

/* What was read becomes one commit. */
static int flush(struct import *m, struct wb_err *err)
{
    struct wb_record *all = wb_calloc(m->n + 1, sizeof(*all));
    char commit[41];
    int rc = 0;

    for (size_t i = 0; i < m->n; i++)
        all[i] = m->v[i].record; /* lent: what a commit puts into it stays with its documents */
    if (m->n)
        rc = wb_store_commit_all(m->s, all, m->n, commit, err);
    if (rc == 0)
        m->recorded += (int64_t)m->n;
    else if (rc == -WB_CONFLICT || rc == -WB_INVALID || rc == -WB_LIMIT)
        rc = flush_singly(m, err);
    forget_pending(m);
    free(all);
    return rc;
}

static bool is_pending(const struct import *m, const char *run)
{
    for (size_t i = 0; i < m->n; i++)
        if (!strcmp(m->v[i].record.run, run))
            return true;
    return false;
}

/* A result that was read well, which is taken: to be recorded, unless it is already. */
static int take(struct import *m, struct wb_record *r, int64_t line, struct wb_err *err)
{
    int rc = is_pending(m, r->run) ? 0 : look_up(m->s, r->run, err);

    if (rc != -WB_NOT_FOUND) {
        m->already += rc == 0;
        wb_record_release(r);
        return rc;
    }
    m->v[m->n++] = (struct pending){*r, line};
    return m->n == BATCH ? flush(m, err) : 0;
}

/* What is wrong with the line is noted; what is wrong with the store ends the import. */
static int import_line(struct import *m, const char *text, size_t n, int64_t line,
                       struct wb_err *err)
{
    WB_AUTO_FREE char *id = NULL;
    struct wb_record r = {0};
    struct wb_err why = WB_ERR_INIT;
    int rc = wb_outside_record(m->source, text, n, &r, &id, &why);

    if (rc < 0) {
        refuse(m, line, id, &why);
        return 0;
    }
    rc = take(m, &r, line, err);
    return rc < 0 ? wb_wrap(err, "line %lld", (long long)line) : 0;
}

static int import_lines(struct import *m, const char *text, size_t n,
                        const struct wb_cancel *cancel, struct wb_err *err)
{
    int64_t line = 0;
    int rc = 0;

    for (size_t at = 0; rc == 0 && at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t len = end ? (size_t)(end - text) - at : n - at;

        if (++line > LINES_MAX)
            rc = wb_fail(err, WB_LIMIT, "more than %d lines of results", LINES_MAX);
        else if (wb_cancelled(cancel))
            rc = wb_fail(err, WB_CANCELLED, "interrupted; the same command goes on");
        else if (len && strspn(text + at, " \t\r") < len)
            rc = import_line(m, text + at, len, line, err);
        at += len + 1;
    }
    if (rc == 0 || rc == -WB_CANCELLED) {
        struct wb_err why = WB_ERR_INIT;
        int last = flush(m, &why);

        if (last < 0 && err)
            *err = why;
        rc = last < 0 ? last : rc;
    }
    forget_pending(m);
    return rc;
}

int wb_store_import_results(struct wb_store *s, const char *source, const char *text, size_t n,
                            const struct wb_cancel *cancel, wb_json **report, struct wb_err *err)
{
    struct import *m;
    wb_json *out;
    int rc;

    if (!wb_safe_name(source))
        return wb_fail(err, WB_INVALID,
                       "source: a word of letters, digits, '.', '_', '@' and '-', not '%.80s'",
                       source ? source : "");
    if (n > WB_RESULTS_MAX)
        return wb_fail(err, WB_LIMIT, "%zu bytes of results, at most %u are read", n,
                       WB_RESULTS_MAX);
    m = wb_calloc(1, sizeof(*m));
    m->s = s;
    m->source = source;
    m->refused = wb_json_array();
    rc = import_lines(m, text, n, cancel, err);
    if (rc < 0 && m->recorded)
        (void)wb_wrap(err, "%lld results were recorded before", (long long)m->recorded);
    out = wb_json_object();
    wb_json_set_str(out, "source", source);
    wb_json_set_int(out, "recorded", m->recorded);
    wb_json_set_int(out, "already", m->already);
    wb_json_set(out, "refused", m->refused);
    free(m);
    if (rc == 0 || rc == -WB_CANCELLED)
        *report = out;
    else
        wb_json_free(out);
    return rc;
}
