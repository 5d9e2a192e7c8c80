/* Histories and findings out of invented run summaries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/trend.h"
#include "server/base/mem.h"
#include "server/base/rng.h"

#define KEY_A "aaaa000011112222"
#define KEY_B "aabb000011112222"

/* Nights of two series with some rounds each, the newest run first as a store gives them. */
struct history {
    wb_json *runs; /* oldest first while it is filled */
    struct wb_rng rng;
    int night;
};

static double normal(struct wb_rng *r)
{
    return sqrt(-2 * log(1 - wb_rng_unit(r))) * cos(2 * M_PI * wb_rng_unit(r));
}

static wb_json *metric(double value, const char *unit, const char *better)
{
    wb_json *o = wb_json_object();

    wb_json_set_real(o, "value", value);
    wb_json_set_str(o, "unit", unit);
    wb_json_set_str(o, "better", better);
    return o;
}

static wb_json *run_of(struct history *h, const char *key, const char *arm, int round, double level)
{
    WB_AUTO_FREE char *id = wb_strf("run_%03d_%s_%d", h->night, arm, round);
    WB_AUTO_FREE char *campaign = wb_strf("cmp_%03d", h->night);
    WB_AUTO_FREE char *at =
        wb_strf("2026-%02d-%02dT01:%02d:00Z", 1 + h->night / 28, 1 + h->night % 28, round);
    wb_json *s = wb_json_object(), *metrics = wb_json_object(), *headline = wb_json_object();
    wb_json *recipe = wb_json_object();
    double noise = 1 + 0.01 * normal(&h->rng);

    wb_json_set_str(s, "id", id);
    wb_json_set_str(s, "campaign", campaign);
    wb_json_set_str(s, "study", "nightly");
    wb_json_set_str(s, "arm", arm);
    wb_json_set_int(s, "round", round);
    wb_json_set_int(s, "attempt", 1);
    wb_json_set_str(s, "started_at", at);
    wb_json_set_str(s, "outcome", "ok");
    wb_json_set_str(s, "validity", "valid");
    wb_json_set_str(s, "series_key", key);
    wb_json_set_str(recipe, "name", "redis");
    wb_json_set_str(recipe, "version", "7.0.15");
    wb_json_set(s, "recipe", recipe);
    wb_json_set(metrics, "max.throughput", metric(level * noise, "ops/s", "higher"));
    wb_json_set(metrics, "max.p99_ms", metric(2000 / level / noise, "ms", "lower"));
    wb_json_set(s, "metrics", metrics);
    wb_json_set_str(headline, "throughput", "max.throughput");
    wb_json_set_str(headline, "p99", "max.p99_ms");
    wb_json_set(s, "headline", headline);
    return s;
}

static void add_nights(struct history *h, int n, double native, double docker)
{
    for (int i = 0; i < n; i++, h->night++)
        for (int round = 1; round <= 3; round++) {
            wb_json_push(h->runs, run_of(h, KEY_A, "native x1", round, native));
            wb_json_push(h->runs, run_of(h, KEY_B, "docker x1", round, docker));
        }
}

static struct history begin(uint64_t seed)
{
    struct history h = {.runs = wb_json_array()};

    wb_rng_seed(&h.rng, seed);
    return h;
}

/* Newest first; owned. */
static wb_json *summaries(const struct history *h)
{
    wb_json *list = wb_json_array();

    for (size_t i = wb_json_len(h->runs); i-- > 0;)
        wb_json_push(list, wb_json_ref(wb_json_at(h->runs, i)));
    return list;
}

static struct wb_trend_question question(const char *series)
{
    return (struct wb_trend_question){.series = series, .min_percent = NAN};
}

static wb_json *trend_of(const struct history *h, const struct wb_trend_question *q)
{
    WB_AUTO_JSON wb_json *list = summaries(h);
    struct wb_err err = WB_ERR_INIT;
    struct wb_buf text = WB_BUF_INIT(1 << 20);
    wb_json *out = NULL;

    if (wb_trend(list, q, &out, &err) < 0)
        fail_msg("%s", err.root);
    wb_trend_print(out, 80, &text);
    assert_true(text.len > 50 && !text.failed);
    wb_buf_release(&text);
    return out;
}

static const wb_json *change(const wb_json *out, size_t i)
{
    return wb_json_at(wb_json_get(out, "change_points"), i);
}

static void a_step_in_records(void **state)
{
    struct history h = begin(1);
    struct wb_trend_question q = question(KEY_A);
    wb_json *out;

    (void)state;
    add_nights(&h, 30, 1000, 900);
    add_nights(&h, 10, 930, 900);
    out = trend_of(&h, &q);
    assert_int_equal(wb_json_int_or(out, "n", 0), 40);
    assert_int_equal(wb_json_len(wb_json_get(out, "change_points")), 1);
    assert_string_equal(wb_json_str_or(change(out, 0), "first_bad", ""), "cmp_030");
    assert_string_equal(wb_json_str_or(change(out, 0), "last_good", ""), "cmp_029");
    assert_string_equal(wb_json_str_or(change(out, 0), "kind", ""), "regression");
    assert_string_equal(wb_json_str_or(out, "metric", ""), "max.throughput");
    assert_string_equal(wb_json_str_or(out, "unit", ""), "ops/s");
    assert_string_equal(wb_json_str_or(wb_json_get(out, "series"), "key", ""), KEY_A);
    assert_int_equal(wb_json_len(wb_json_get(out, "points")), 40);
    assert_int_equal(wb_json_int_or(wb_json_at(wb_json_get(out, "points"), 0), "n", 0), 3);
    wb_json_free(out);

    /* Lower latency is better: the same step the other way round. */
    q.metric = "max.p99_ms";
    out = trend_of(&h, &q);
    assert_string_equal(wb_json_str_or(change(out, 0), "kind", ""), "regression");
    assert_true(wb_json_real_or(change(out, 0), "change_percent", 0) > 5);
    wb_json_free(out);

    q = question(KEY_B);
    out = trend_of(&h, &q);
    assert_int_equal(wb_json_len(wb_json_get(out, "change_points")), 0);
    wb_json_free(out);
    wb_json_free(h.runs);
}

/* Runs that do not count leave their night; a night without any is a gap. */
static void runs_that_do_not_count(void **state)
{
    struct history h = begin(2);
    struct wb_trend_question q = question(KEY_A);
    wb_json *out;
    const wb_json *points;

    (void)state;
    add_nights(&h, 12, 1000, 900);
    for (int round = 0; round < 3; round++) /* all of night 5 of the first series */
        wb_json_set_str(wb_json_at(h.runs, (size_t)(5 * 6 + 2 * round)), "validity", "invalid");
    wb_json_set_str(wb_json_at(h.runs, 6 * 6), "outcome", "sut-error");
    wb_json_set_str(wb_json_at(h.runs, 7 * 6), "validity", "noisy");
    out = trend_of(&h, &q);
    points = wb_json_get(out, "points");
    assert_int_equal(wb_json_int_or(out, "n", 0), 11);
    assert_int_equal(wb_json_type(wb_json_get(wb_json_at(points, 5), "value")), WB_JSON_NULL);
    assert_non_null(wb_json_string(wb_json_get(wb_json_at(points, 5), "value_reason")));
    assert_int_equal(wb_json_len(wb_json_get(wb_json_at(points, 5), "left_out")), 3);
    assert_int_equal(wb_json_int_or(wb_json_at(points, 6), "n", 0), 2);
    assert_int_equal(wb_json_int_or(wb_json_at(points, 7), "n", 0), 2);
    wb_json_free(out);
    q.accept_noisy = true;
    out = trend_of(&h, &q);
    assert_int_equal(wb_json_int_or(wb_json_at(wb_json_get(out, "points"), 7), "n", 0), 3);
    wb_json_free(out);
    wb_json_free(h.runs);
}

static void annotations_of_records(void **state)
{
    struct history h = begin(3);
    struct wb_trend_question q = question(KEY_A);
    WB_AUTO_JSON wb_json *accepted = NULL;
    WB_AUTO_JSON wb_json *moved = NULL;
    WB_AUTO_JSON wb_json *left = NULL;
    const char *text = "[{\"id\":\"cmp_030\",\"type\":\"accepted\"},"
                       "{\"id\":\"cmp_of_others\",\"type\":\"accepted\"}]";
    wb_json *out;

    (void)state;
    add_nights(&h, 30, 1000, 900);
    add_nights(&h, 10, 930, 900);
    assert_int_equal(wb_json_parse(text, strlen(text), &accepted, NULL), 0);
    q.annotations = accepted;
    out = trend_of(&h, &q);
    assert_string_equal(wb_json_str_or(change(out, 0), "state", ""), "accepted");
    wb_json_free(out);

    text = "[{\"id\":\"run_030_native x1_1\",\"type\":\"environment\"}]";
    assert_int_equal(wb_json_parse(text, strlen(text), &moved, NULL), 0);
    q.annotations = moved;
    out = trend_of(&h, &q);
    assert_int_equal(wb_json_len(wb_json_get(out, "change_points")), 0);
    assert_int_equal(wb_json_len(wb_json_get(out, "borders")), 1);
    wb_json_free(out);

    text = "[{\"id\":\"run_030_native x1_1\",\"type\":\"excluded\"},"
           "{\"id\":\"cmp_031\",\"type\":\"excluded\"}]";
    assert_int_equal(wb_json_parse(text, strlen(text), &left, NULL), 0);
    q.annotations = left;
    out = trend_of(&h, &q);
    assert_int_equal(wb_json_int_or(out, "n", 0), 39);
    assert_int_equal(wb_json_int_or(wb_json_at(wb_json_get(out, "points"), 30), "n", 0), 2);
    wb_json_free(out);
    wb_json_free(h.runs);
}

/* A change is accepted by its own id, a host by name or class; notes are for people. */
static void annotations_of_changes_and_hosts(void **state)
{
    static const struct {
        const char *id, *type, *at;
        size_t changes, borders;
    } rows[] = {
        {"h1", "environment", "2026-02-03T00:00:00Z", 0, 1},
        {"class A", "environment", "2026-02-03T00:00:00Z", 0, 1},
        {"class B", "environment", "2026-02-03T00:00:00Z", 1, 0},
        {"h1", "environment", "2027-01-01T00:00:00Z", 1, 0}, /* not yet */
        {"h1", "note", "2026-02-03T00:00:00Z", 1, 0},
        {KEY_A, "note", NULL, 1, 0},
        {"h1", "withdrawn", NULL, 1, 0},
    };
    struct history h = begin(3);
    struct wb_trend_question q = question(KEY_A);
    WB_AUTO_JSON wb_json *before = NULL, *accepted = wb_json_array(), *a = wb_json_object();
    wb_json *out;

    (void)state;
    add_nights(&h, 30, 1000, 900);
    add_nights(&h, 10, 930, 900);
    for (size_t i = 0; i < wb_json_len(h.runs); i++) {
        wb_json *host = wb_json_object();
        wb_json_set_str(host, "name", "h1");
        wb_json_set_str(host, "class", "class A");
        wb_json_set(wb_json_at(h.runs, i), "host", host);
    }
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_JSON wb_json *list = wb_json_array();
        wb_json *one = wb_json_object();
        wb_json_set_str(one, "id", rows[i].id);
        wb_json_set_str(one, "type", rows[i].type);
        wb_json_set_str(one, "at", rows[i].at);
        wb_json_push(list, one);
        q.annotations = list;
        out = trend_of(&h, &q);
        if (wb_json_len(wb_json_get(out, "change_points")) != rows[i].changes ||
            wb_json_len(wb_json_get(out, "borders")) != rows[i].borders)
            fail_msg("%s %s %s", rows[i].type, rows[i].id, rows[i].at);
        wb_json_free(out);
    }
    q.annotations = NULL;
    before = trend_of(&h, &q);
    wb_json_set_str(a, "type", "accepted");
    wb_json_set_str(a, "id", wb_json_str_or(change(before, 0), "id", ""));
    wb_json_push(accepted, wb_json_ref(a));
    q.annotations = accepted;
    out = trend_of(&h, &q);
    assert_string_equal(wb_json_str_or(change(out, 0), "state", ""), "accepted");
    wb_json_free(out);
    wb_json_free(h.runs);
}

static void since_and_previous(void **state)
{
    struct history h = begin(4);
    struct wb_trend_question q = question(KEY_A);
    wb_json *out, *before;

    (void)state;
    add_nights(&h, 30, 1000, 900);
    add_nights(&h, 8, 930, 900);
    before = trend_of(&h, &q);
    add_nights(&h, 1, 930, 900);
    q.previous = before;
    q.since = "2026-01-11";
    out = trend_of(&h, &q);
    assert_int_equal(wb_json_int_or(out, "n", 0), 29);
    assert_string_equal(wb_json_str_or(change(out, 0), "id", "a"),
                        wb_json_str_or(change(before, 0), "id", "b"));
    assert_string_equal(wb_json_str_or(change(out, 0), "first_seen", "a"), "cmp_037");
    wb_json_free(out);
    wb_json_free(before);
    wb_json_free(h.runs);
}

static void series_by_name(void **state)
{
    static const struct {
        const char *series, *metric;
        int code;
    } rows[] = {{"aaaa", NULL, WB_NOT_FOUND},
                {"", NULL, WB_NOT_FOUND},
                {"x", NULL, WB_NOT_FOUND},
                {KEY_A, "no.such", WB_NOT_FOUND}};
    struct history h = begin(5);
    WB_AUTO_JSON wb_json *list = NULL;
    WB_AUTO_JSON wb_json *series = NULL;

    (void)state;
    add_nights(&h, 3, 1000, 900);
    list = summaries(&h);
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_trend_question q = question(rows[i].series);
        struct wb_err err = WB_ERR_INIT;
        wb_json *out = NULL;
        q.metric = rows[i].metric;
        assert_int_equal(wb_trend(list, &q, &out, &err), -rows[i].code);
        assert_null(out);
        assert_true(strlen(err.root) > 10);
    }
    series = wb_series_list(list);
    assert_int_equal(wb_json_len(series), 2);
    for (size_t i = 0; i < 2; i++) {
        const wb_json *s = wb_json_at(series, i);
        assert_int_equal(wb_json_int_or(s, "campaigns", 0), 3);
        assert_int_equal(wb_json_int_or(s, "runs", 0), 9);
        assert_string_equal(wb_json_str_or(s, "first_at", ""), "2026-01-01T01:01:00Z");
        assert_string_equal(wb_json_str_or(s, "last_at", ""), "2026-01-03T01:03:00Z");
    }
    wb_json_free(h.runs);
}

/* The same step in two series and two metrics is one finding; nothing is found where nothing is. */
static void findings(void **state)
{
    struct history h = begin(6);
    struct wb_trend_question q = question(NULL);
    struct wb_buf text = WB_BUF_INIT(1 << 20);
    WB_AUTO_JSON wb_json *list = NULL;
    wb_json *found = NULL;
    const wb_json *first;

    (void)state;
    add_nights(&h, 30, 1000, 900);
    list = summaries(&h);
    assert_int_equal(wb_findings(list, &q, &found, NULL), 0);
    assert_int_equal(wb_json_len(found), 0);
    wb_json_free(found);
    wb_json_free(list);

    add_nights(&h, 10, 920, 830);
    add_nights(&h, 10, 920, 900); /* one of the two recovers */
    list = summaries(&h);
    assert_int_equal(wb_findings(list, &q, &found, NULL), 0);
    assert_int_equal(wb_json_len(found), 2);
    first = wb_json_at(found, 0);
    assert_string_equal(wb_json_str_or(first, "kind", ""), "regression");
    assert_string_equal(wb_json_str_or(first, "state", ""), "open");
    assert_string_equal(wb_json_str_or(first, "first_bad", ""), "cmp_030");
    assert_string_equal(wb_json_str_or(first, "at", ""), "2026-02-03T01:01:00Z");
    assert_int_equal(wb_json_len(wb_json_get(first, "changes")), 4);
    assert_string_equal(wb_json_str_or(wb_json_at(found, 1), "kind", ""), "improvement");
    for (size_t i = 0; i < 4; i++) {
        const wb_json *c = wb_json_at(wb_json_get(first, "changes"), i);
        assert_true(wb_json_real_or(c, "q", 9) >= wb_json_real_or(c, "p", 0));
        assert_true(wb_json_real_or(c, "q", 9) <= 0.05);
    }
    wb_findings_print(found, 80, &text);
    assert_non_null(strstr(wb_buf_str(&text), "cmp_030"));
    wb_buf_release(&text);
    wb_json_free(found);

    q.series = KEY_A;
    assert_int_equal(wb_findings(list, &q, &found, NULL), 0);
    assert_int_equal(wb_json_len(found), 1);
    wb_json_free(found);
    wb_json_free(h.runs);
}

/* Series by series gives what all at once gives. */
static void findings_in_parts(void **state)
{
    static const char *const keys[] = {KEY_A, KEY_B};
    struct history h = begin(6);
    struct wb_trend_question q = question(NULL);
    struct wb_finder *f = wb_finder_new(&q);
    struct wb_buf one = WB_BUF_INIT(1 << 20), parts = WB_BUF_INIT(1 << 20);
    WB_AUTO_JSON wb_json *list = NULL;
    WB_AUTO_JSON wb_json *whole = NULL;
    WB_AUTO_JSON wb_json *found = NULL;
    WB_AUTO_JSON wb_json *order = NULL;

    (void)state;
    add_nights(&h, 30, 1000, 900);
    add_nights(&h, 10, 920, 830);
    add_nights(&h, 10, 920, 900);
    list = summaries(&h);
    order = wb_series_list(list);
    assert_int_equal(wb_json_len(order), WB_LEN(keys));
    assert_int_equal(wb_findings(list, &q, &whole, NULL), 0);
    assert_int_equal(wb_json_len(whole), 2);
    for (size_t k = 0; k < WB_LEN(keys); k++) {
        const char *key = wb_json_str_or(wb_json_at(order, k), "id", "");
        WB_AUTO_JSON wb_json *part = wb_json_array();
        for (size_t i = 0; i < wb_json_len(list); i++)
            if (strcmp(wb_json_str_or(wb_json_at(list, i), "series_key", ""), key) == 0)
                wb_json_push(part, wb_json_ref(wb_json_at(list, i)));
        assert_int_equal(wb_finder_add(f, part, NULL), 0);
    }
    found = wb_finder_end(f);
    wb_finder_free(f);
    wb_json_canonical(whole, &one);
    wb_json_canonical(found, &parts);
    assert_string_equal(wb_buf_str(&parts), wb_buf_str(&one));
    wb_buf_release(&one);
    wb_buf_release(&parts);
    wb_json_free(h.runs);
}

/* Runs of the newest night get this subject. */
static void name_night(const struct history *h, const char *commit, int built_day)
{
    WB_AUTO_FREE char *built = wb_strf("2026-06-%02dT00:00:00.000Z", built_day);
    WB_AUTO_FREE char *campaign = wb_strf("cmp_%03d", h->night - 1);

    for (size_t i = 0; i < wb_json_len(h->runs); i++) {
        wb_json *s = wb_json_at(h->runs, i), *subject;
        if (strcmp(wb_json_str_or(s, "campaign", ""), campaign) != 0)
            continue;
        subject = wb_json_object();
        wb_json_set_str(subject, "commit", commit);
        wb_json_set_str(subject, "built", built);
        wb_json_set(s, "subject", subject);
    }
}

static const char *campaign_at(const wb_json *trend, size_t i)
{
    return wb_json_str_or(wb_json_at(wb_json_get(trend, "points"), i), "campaign", "");
}

static bool warned(const wb_json *out, const char *code)
{
    const wb_json *warnings = wb_json_get(out, "warnings");

    for (size_t i = 0; i < wb_json_len(warnings); i++)
        if (strcmp(wb_json_str_or(wb_json_at(warnings, i), "code", ""), code) == 0)
            return true;
    return false;
}

/* Builds that are measured in reverse stand in their own order, with the step where it is. */
static void builds_order_the_nights(void **state)
{
    struct history h = begin(5);
    struct wb_trend_question q = question(KEY_A);
    wb_json *out;

    (void)state;
    for (int i = 0; i < 24; i++) {
        WB_AUTO_FREE char *commit = wb_strf("c%02d", 23 - i);
        add_nights(&h, 1, i < 12 ? 880 : 1000, 900); /* the newer builds are slower */
        name_night(&h, commit, 1 + 23 - i);
    }
    out = trend_of(&h, &q);
    assert_string_equal(campaign_at(out, 0), "cmp_023");
    assert_string_equal(campaign_at(out, 23), "cmp_000");
    assert_int_equal(wb_json_len(wb_json_get(out, "change_points")), 1);
    assert_string_equal(wb_json_str_or(change(out, 0), "kind", ""), "regression");
    assert_string_equal(wb_json_str_or(change(out, 0), "last_good_commit", ""), "c11");
    assert_string_equal(wb_json_str_or(change(out, 0), "first_bad_commit", ""), "c12");
    assert_false(warned(out, "same-build"));
    wb_json_free(out);
    wb_json_free(h.runs);
}

/* What changed while one build was measured again and again is not the build's. */
static void one_build_that_changes_is_told(void **state)
{
    struct history h = begin(6);
    struct wb_trend_question q = question(KEY_A);
    wb_json *out;

    (void)state;
    for (int i = 0; i < 24; i++) {
        add_nights(&h, 1, i < 12 ? 1000 : 880, 900);
        name_night(&h, "same", 1);
    }
    out = trend_of(&h, &q);
    assert_string_equal(campaign_at(out, 0), "cmp_000");
    assert_int_equal(wb_json_len(wb_json_get(out, "change_points")), 1);
    assert_true(warned(out, "same-build"));
    wb_json_free(out);
    wb_json_free(h.runs);
}

/* A change of environment parts the history whatever was built when: an old build that is measured
 * behind it stands behind it. */
static void builds_do_not_cross_a_change_of_environment(void **state)
{
    struct history h = begin(7);
    WB_AUTO_JSON wb_json *annotations = wb_json_array();
    struct wb_trend_question q = question(KEY_A);
    wb_json *out, *a = wb_json_object();

    (void)state;
    for (int i = 0; i < 24; i++) {
        add_nights(&h, 1, i < 12 ? 1000 : 880, 900);
        name_night(&h, "c", i < 12 ? 10 + i : i - 11); /* the later half is of older builds */
    }
    wb_json_set_str(a, "id", "cmp_012");
    wb_json_set_str(a, "type", "environment");
    wb_json_push(annotations, a);
    out = trend_of(&h, &q);
    assert_string_equal(campaign_at(out, 0), "cmp_012");
    wb_json_free(out);
    q.annotations = annotations;
    out = trend_of(&h, &q);
    for (size_t i = 0; i < 24; i++) {
        WB_AUTO_FREE char *want = wb_strf("cmp_%03zu", i);
        assert_string_equal(campaign_at(out, i), want);
    }
    assert_int_equal(wb_json_len(wb_json_get(out, "change_points")), 0);
    assert_int_equal(wb_json_len(wb_json_get(out, "borders")), 1);
    wb_json_free(out);
    wb_json_free(h.runs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_in_records),
        cmocka_unit_test(runs_that_do_not_count),
        cmocka_unit_test(annotations_of_records),
        cmocka_unit_test(annotations_of_changes_and_hosts),
        cmocka_unit_test(since_and_previous),
        cmocka_unit_test(series_by_name),
        cmocka_unit_test(findings),
        cmocka_unit_test(findings_in_parts),
        cmocka_unit_test(builds_order_the_nights),
        cmocka_unit_test(one_build_that_changes_is_told),
        cmocka_unit_test(builds_do_not_cross_a_change_of_environment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
