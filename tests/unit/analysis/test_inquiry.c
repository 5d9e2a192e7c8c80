/* Answers over records, kept and not: the same to the byte, new when what they follow from is. */
#include "tests/unit/record/fixture.h"

#include <math.h>
#include <unistd.h>

#include "server/analysis/cache.h"
#include "server/analysis/inquiry.h"
#include "server/record/annotate.h"
#include "server/record/summary.h"

static const char *const labels[] = {"native x1", "native x2", "native x4"};
#define ARMS 3
#define ROUNDS 8

static wb_json *plan_of(const char *campaign)
{
    wb_json *plan = must_json(
        "{\"study\":\"forms\",\"rounds\":8,\"threshold_percent\":2,\"accept_noisy\":false,"
        "\"contrasts\":[{\"name\":\"x2\",\"arm\":\"native x2\",\"against\":\"native x1\","
        "\"metric\":\"max.throughput\",\"better\":\"higher\",\"primary\":true}]}");
    wb_json *arms = wb_json_array();

    for (size_t i = 0; i < ARMS; i++)
        wb_json_push(arms, sample_arm(labels[i], "native", 1 << i));
    wb_json_set(plan, "arms", arms);
    wb_json_set_str(plan, "campaign", campaign);
    return plan;
}

static void add_run(struct wb_store *s, const char *campaign, int n, double speed)
{
    struct wb_record r = make_record(n);
    struct wb_err err = WB_ERR_INIT;
    int arm = n % ARMS, round = n / ARMS % ROUNDS;
    wb_json *load = wb_json_get(wb_json_at(wb_json_get(r.result, "phases"), 0), "load"), *metrics;
    char commit[41];

    wb_json_free(r.plan);
    r.plan = plan_of(campaign);
    wb_json_set_str(r.summary, "campaign", campaign);
    wb_json_set_str(r.summary, "arm", labels[arm]);
    wb_json_set_str(r.summary, "series_key", arm ? "5e00000000000001" : "5e00000000000000");
    wb_json_set_int(r.summary, "round", round + 1);
    wb_json_set_real(load, "achieved_per_s",
                     speed * (1 << arm) / (1 + 0.2 * ((1 << arm) - 1)) * (1 + 0.01 * round));
    assert_int_equal(wb_summary_metrics(r.result, &metrics, &err), 0);
    wb_json_set(r.summary, "metrics", metrics);
    if (wb_store_commit(s, &r, commit, &err) < 0)
        fail_msg("commit: %s: %s", err.context, err.root);
    wb_record_release(&r);
}

static void add_campaign(struct wb_store *s, const char *campaign, int from, double speed)
{
    for (int n = 0; n < ARMS * ROUNDS; n++)
        add_run(s, campaign, from + n, speed);
}

static int setup(void **state)
{
    struct wb_store *s;

    if (fixture_setup(state) < 0)
        return -1;
    s = open_store(*state, true);
    add_campaign(s, "cmp_01AA", 0, 20000);
    add_campaign(s, "cmp_01AB", 24, 19000);
    wb_store_close(s);
    return 0;
}

/* The id of run n; owned. */
static char *run_id(int n)
{
    struct wb_record r = make_record(n);
    char *id = wb_strdup(r.run);

    wb_record_release(&r);
    return id;
}

/* ---- questions ---- */

static struct wb_book_host hosts[] = {{(char *)(uintptr_t) "*", 1.25, false}};
static struct wb_book book = {(char *)(uintptr_t) "b",
                              (char *)(uintptr_t) "2026-01-01",
                              (char *)(uintptr_t) "EUR",
                              (char *)(uintptr_t) "s",
                              hosts,
                              1};

enum { COMPARE, COMPARE_REFS, SCALING, VALUE, EXPLAIN, EXPLAIN_RUNS, TREND, FINDINGS, QUESTIONS };

/* The answer as text, or the error; owned. */
static char *ask(const struct wb_inquiry *j, int what)
{
    char a[] = "cmp_01AA", b[] = "cmp_01AB";
    char *one[] = {a}, *two[] = {a, b};
    const struct wb_compare_question compare = {.threshold_percent = NAN};
    const struct wb_scaling_question scaling = {.over = "instances"};
    const struct wb_inquiry_value value = {.book = &book, .slo_p99_ms = NAN, .force = true};
    const struct wb_history_question history = {.min_percent = NAN};
    WB_AUTO_FREE char *r0 = run_id(0), *r1 = run_id(1);
    WB_AUTO_JSON wb_json *out = NULL;
    struct wb_buf text = WB_BUF_INIT(1u << 20);
    struct wb_err err = WB_ERR_INIT;
    int rc = what == COMPARE        ? wb_inquiry_compare(j, one, 1, &compare, &out, &err)
             : what == COMPARE_REFS ? wb_inquiry_compare(j, two, 2, &compare, &out, &err)
             : what == SCALING      ? wb_inquiry_scaling(j, a, &scaling, &out, &err)
             : what == VALUE        ? wb_inquiry_value(j, two, 2, &value, &out, &err)
             : what == EXPLAIN ? wb_inquiry_explain(j, "cmp_01AA/native x1", "cmp_01AB/native x1",
                                                    NULL, &out, &err)
             : what == EXPLAIN_RUNS ? wb_inquiry_explain(j, r0, r1, NULL, &out, &err)
             : what == TREND        ? wb_inquiry_trend(j, "5e00000000000000", &history, &out, &err)
                                    : wb_inquiry_findings(j, NULL, &history, &out, &err);

    if (rc < 0)
        fail_msg("question %d: %s: %s", what, err.context, err.root);
    wb_json_pretty(out, &text);
    assert_false(text.failed);
    return wb_buf_take(&text);
}

static size_t kept(const char *dir)
{
    WB_AUTO_FREE char *newer = wb_strf("%s/answers/newer", dir);
    struct wb_strv names = {0};
    size_t n;

    if (wb_list_dir(newer, &names, NULL) < 0)
        return 0;
    n = names.n;
    wb_strv_release(&names);
    return n;
}

struct both {
    struct wb_inquiry plain, cached;
};

static struct both begin(const char *dir)
{
    WB_AUTO_FREE char *answers = wb_strf("%s/answers", dir);
    struct wb_store *s = open_store(dir, false);

    WB_IGNORE(wb_remove_tree(answers, NULL));
    return (struct both){{s, NULL}, {s, wb_cache_open(answers)}};
}

static void end(struct both *b)
{
    wb_cache_close(b->cached.cache);
    wb_store_close(b->plain.store);
}

static void kept_answers_are_the_same_bytes(void **state)
{
    struct both b = begin(*state);

    for (int what = 0; what < QUESTIONS; what++) {
        WB_AUTO_FREE char *plain = ask(&b.plain, what), *first = ask(&b.cached, what);
        size_t n = kept(*state);
        WB_AUTO_FREE char *second = ask(&b.cached, what);

        assert_true(n >= 1);
        assert_int_equal(kept(*state), n); /* the second one was found */
        assert_string_equal(first, plain);
        assert_string_equal(second, plain);
    }
    end(&b);
}

/* Every byte of every kept answer turned over in turn: computed again, told right. */
static void damage_is_ignored(void **state)
{
    WB_AUTO_FREE char *newer = wb_strf("%s/answers/newer", (char *)*state);
    struct both b = begin(*state);

    for (int what = 0; what < QUESTIONS; what++) {
        WB_AUTO_FREE char *plain = ask(&b.plain, what);

        for (size_t at = 0; at < 400; at += 37) {
            WB_AUTO_FREE char *again = ask(&b.cached, what);
            struct wb_strv names = {0};

            assert_string_equal(again, plain);
            assert_int_equal(wb_list_dir(newer, &names, NULL), 0);
            for (size_t i = 0; i < names.n; i++) {
                WB_AUTO_FREE char *path = wb_strf("%s/%s", newer, names.v[i]), *text = NULL;
                size_t n;

                assert_int_equal(wb_file_read(path, 1u << 21, &text, &n, NULL), 0);
                if (n == 0)
                    continue; /* cut off before, and not asked for since */
                text[at % n] = (char)(text[at % n] ^ 1);
                assert_int_equal(wb_file_put(path, text, at % 2 ? n : at % n, NULL), 0);
            }
            wb_strv_release(&names);
        }
    }
    end(&b);
}

/* What an answer follows from is all in its key: prices, options, annotations, new runs. */
static void answers_follow_what_they_are_made_of(void **state)
{
    struct both b = begin(*state);
    WB_AUTO_FREE char *run = run_id(3);
    const struct wb_annotation exclude = {
        .id = run, .type = "excluded", .text = "a test", .who = "t"};
    struct wb_err err = WB_ERR_INIT;
    char *before[QUESTIONS];
    char *id = NULL;

    for (int what = 0; what < QUESTIONS; what++)
        before[what] = ask(&b.cached, what);
    hosts[0].per_hour = 2.5;
    {
        WB_AUTO_FREE char *dearer = ask(&b.cached, VALUE), *plain = ask(&b.plain, VALUE);

        assert_string_not_equal(dearer, before[VALUE]);
        assert_string_equal(dearer, plain);
    }
    hosts[0].per_hour = 1.25;
    if (wb_store_annotate(b.plain.store, &exclude, &id, &err) < 0)
        fail_msg("%s", err.root);
    for (int what = 0; what < QUESTIONS; what++) {
        WB_AUTO_FREE char *now = ask(&b.cached, what), *plain = ask(&b.plain, what);

        assert_string_equal(now, plain);
        if (what == COMPARE || what == COMPARE_REFS || what == SCALING || what == TREND)
            assert_string_not_equal(now, before[what]);
        free(before[what]);
        before[what] = WB_STEAL(now);
    }
    add_campaign(b.plain.store, "cmp_01AA", 100, 30000); /* of other rounds, too */
    for (int what = 0; what < QUESTIONS; what++) {
        WB_AUTO_FREE char *now = ask(&b.cached, what), *plain = ask(&b.plain, what);

        assert_string_equal(now, plain);
        if (what == COMPARE || what == SCALING || what == VALUE || what == EXPLAIN)
            assert_string_not_equal(now, before[what]);
        free(before[what]);
    }
    free(id);
    end(&b);
}

static void options_are_part_of_the_question(void **state)
{
    struct both b = begin(*state);
    char a[] = "cmp_01AA/native x1", c[] = "cmp_01AB/native x1";
    char *refs[] = {a, c};
    static const struct wb_compare_question questions[] = {
        {.threshold_percent = NAN},
        {.threshold_percent = 10},
        {.threshold_percent = 10, .metric = "latency.p99_ms"},
        {.threshold_percent = 10, .metric = "latency.p99_ms", .force = true},
    };
    struct wb_err err = WB_ERR_INIT;

    for (size_t i = 0; i < WB_LEN(questions); i++) {
        wb_json *out = NULL;

        for (int again = 0; again < 2; again++) {
            assert_int_equal(wb_inquiry_compare(&b.cached, refs, 2, &questions[i], &out, &err), 0);
            wb_json_free(out);
        }
        assert_int_equal(kept(*state), i + 1);
    }
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_answers_are_the_same_bytes),
        cmocka_unit_test(damage_is_ignored),
        cmocka_unit_test(options_are_part_of_the_question),
        cmocka_unit_test(answers_follow_what_they_are_made_of),
    };

    return cmocka_run_group_tests(tests, setup, fixture_teardown);
}
