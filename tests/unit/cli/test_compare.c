/* `compare` and `stats` as a person types them: a store with two campaigns, exit codes, output. */
#include "tests/unit/record/fixture.h"

#include <fcntl.h>
#include <unistd.h>

#include "server/cli/cli.h"
#include "server/record/annotate.h"

static const char *const plan_text =
    "{\"campaign\":\"%s\",\"study\":\"forms\",\"rounds\":8,\"threshold_percent\":2,"
    "\"accept_noisy\":false,\"arms\":[{\"label\":\"native x1\",\"form\":\"native\"},"
    "{\"label\":\"docker x1\",\"form\":\"docker\"}],\"contrasts\":[{\"name\":\"docker x1 against "
    "native x1\",\"arm\":\"docker x1\",\"against\":\"native x1\",\"metric\":\"max.throughput\","
    "\"better\":\"higher\",\"primary\":true}]}";

/* Run n of a campaign: arms take turns; docker has `cost` of native's throughput. */
static void add_run(struct wb_store *s, const char *campaign, int n, double cost,
                    const char *host_class, const char *subject)
{
    struct wb_record r = make_record(n);
    struct wb_err err = WB_ERR_INIT;
    bool docker = n % 2;
    int round = n / 2 % 8;
    double rate = 20000 * (1 + 0.03 * round) * (docker ? cost * (1 + 0.002 * (round % 3)) : 1);
    WB_AUTO_FREE char *plan = NULL;
    wb_json *load = wb_json_get(wb_json_at(wb_json_get(r.result, "phases"), 0), "load"), *metrics;
    struct wb_buf b = WB_BUF_INIT(4096);
    char commit[41];

    for (const char *p = plan_text; *p != '\0'; p++) {
        if (p[0] == '%' && p[1] == 's') {
            wb_buf_adds(&b, campaign);
            p++;
        } else {
            wb_buf_addc(&b, *p);
        }
    }
    plan = wb_buf_take(&b);
    wb_json_free(r.plan);
    r.plan = must_json(plan);
    wb_json_set_str(r.summary, "campaign", campaign);
    wb_json_set_str(r.summary, "series_key",
                    subject  ? docker ? "eeee000011112222" : "ffff000011112222"
                    : docker ? "dddd000011112222"
                             : "aaaa000011112222");
    if (subject)
        wb_json_set(r.summary, "subject", must_json(subject));
    wb_json_set_int(r.summary, "round", round + 1);
    wb_json_set_str(wb_json_get(r.summary, "host"), "class", host_class);
    wb_json_set_real(load, "achieved_per_s", rate);
    assert_int_equal(wb_summary_metrics(r.result, &metrics, &err), 0);
    wb_json_set(r.summary, "metrics", metrics);
    if (wb_store_commit(s, &r, commit, &err) < 0)
        fail_msg("commit: %s: %s", err.context, err.root);
    wb_record_release(&r);
}

/* Campaigns of one series with a subject each; the last one is of the oldest build, and has the
 * version and the bits of another commit's. */
static void add_builds(const char *dir)
{
    static const struct {
        const char *campaign, *subject;
    } builds[] = {
        {"cmp_02A", "{\"version\":\"7\",\"commit\":\"abc1\",\"digest\":\"d1\","
                    "\"built\":\"2026-11-02T00:00:00.000Z\"}"},
        {"cmp_02B", "{\"version\":\"7\",\"commit\":\"abd2\",\"digest\":\"d2\","
                    "\"built\":\"2026-11-03T00:00:00.000Z\"}"},
        {"cmp_02C", "{\"version\":\"7\",\"commit\":\"beee01\",\"digest\":\"d3\","
                    "\"built\":\"2026-11-01T00:00:00.000Z\"}"},
        {"cmp_02D", "{\"version\":\"7\",\"commit\":\"beee01\",\"digest\":\"d4\","
                    "\"built\":\"2026-11-01T00:00:00.000Z\"}"},
    };
    struct wb_store *s = open_store(dir, false);

    for (size_t b = 0; b < WB_LEN(builds); b++)
        for (int n = 0; n < 16; n++)
            add_run(s, builds[b].campaign, 100 + (int)b * 16 + n, 0.9, "c", builds[b].subject);
    wb_store_close(s);
}

static int setup(void **state)
{
    struct wb_store *s;

    if (fixture_setup(state) < 0)
        return -1;
    s = open_store(*state, true);
    for (int n = 0; n < 16; n++)
        add_run(s, "cmp_01AA", n, 0.9, "c", NULL);
    for (int n = 16; n < 32; n++)
        add_run(s, "cmp_01AB", n, 0.7, "c", NULL);
    for (int n = 32; n < 48; n++)
        add_run(s, "cmp_01Z", n, 0.9, "another class", NULL);
    wb_store_close(s);
    return 0;
}

struct typed {
    int rc;
    char *out, *err; /* owned */
};

static char *drain(const char *path)
{
    char *text = NULL;
    size_t n;

    assert_int_equal(wb_file_read(path, 1 << 20, &text, &n, NULL), 0);
    return text;
}

/* Runs a command line (words parted by '|') in this process with its output in files. */
static struct typed type(const char *dir, const char *line)
{
    WB_AUTO_FREE char *words = wb_strdup(line);
    WB_AUTO_FREE char *store = wb_strf("%s/store.git", dir);
    char *paths[2] = {wb_strf("%s/out", dir), wb_strf("%s/err", dir)};
    char program[] = "weighbridge", flag[] = "--store", *argv[20] = {program};
    struct typed t;
    int argc = 1, kept[2];

    for (char *w = words, *bar; w != NULL; w = bar != NULL ? bar + 1 : NULL) {
        bar = strchr(w, '|');
        if (bar != NULL)
            *bar = '\0';
        argv[argc++] = w;
    }
    argv[argc++] = flag;
    argv[argc++] = store;
    (void)fflush(NULL);
    for (int i = 0; i < 2; i++) {
        int fd = open(paths[i], O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
        kept[i] = fcntl(i + 1, F_DUPFD_CLOEXEC, 10);
        assert_true(fd >= 0 && kept[i] >= 0 && dup2(fd, i + 1) == i + 1);
        close(fd);
    }
    t.rc = wb_cli_main(argc, argv);
    (void)fflush(NULL);
    for (int i = 0; i < 2; i++) {
        dup2(kept[i], i + 1);
        close(kept[i]);
    }
    t.out = drain(paths[0]);
    t.err = drain(paths[1]);
    free(paths[0]);
    free(paths[1]);
    return t;
}

static void check(const char *dir, const char *line, int rc, const char *out, const char *err)
{
    struct typed t = type(dir, line);

    if (t.rc != rc || strstr(t.out, out) == NULL || strstr(t.err, err) == NULL)
        fail_msg("%s: exit %d (must be %d)\n%s\n%s", line, t.rc, rc, t.out, t.err);
    free(t.out);
    free(t.err);
}

static void compares_campaigns_and_arms(void **state)
{
    static const struct {
        const char *line;
        int rc;
        const char *out, *err;
    } cases[] = {
        {"compare|cmp_01AA", 0, "Worse: max.throughput of docker x1 against native x1: 9.8 % lower",
         ""},
        {"compare|cmp_01AA", 0, "weighbridge show cmp_01AA", ""},
        {"compare|01AA|--threshold|20%", 0, "Negligible: max.throughput of docker x1", ""},
        {"compare|01AA/nat|01AA/d", 0, "Worse: max.throughput of docker x1 against native x1", ""},
        {"compare|01AA/docker x1|01AA/native x1", 0,
         "Better: max.throughput of native x1 against docker x1", ""},
        {"compare|01AA/d|01AB/d", 0,
         "Worse: max.throughput of 01AB/docker x1 against 01AA/docker x1", ""},
        {"compare|01AA|01AB", 0,
         "Inconclusive: max.throughput of 01AB/native x1 against 01AA/native x1", ""},
        {"compare|01AA|--metric|latency.p99_ms", 0, "Equivalent: latency.p99_ms of docker x1", ""},
        {"compare|01AA|01Z", 22, "",
         "do not compare: host.class ('c' in 01AA, 'another class' in 01Z)"},
        {"compare|01AA|01Z|--force", 0,
         "forced: host.class differs: 'c' in 01AA, 'another class' in 01Z", ""},
        {"compare|01A", 22, "", "the beginning of more than one campaign: cmp_01AA, cmp_01AB"},
        {"compare|cmp_none", 21, "", "there is no run and no campaign 'cmp_none'"},
        {"compare|01AA/vm|01AA/d", 21, "",
         "there is no arm 'vm' in cmp_01AA; its arms are "
         "'native x1', 'docker x1'"},
        {"compare|01AA/|01AA/d", 22, "", "more than one arm ''"},
        {"compare|01AA/d", 2, "", "is one arm: name what to compare it with"},
        {"compare|01AA/d|01AA/d", 2, "", "have no arms to compare"},
        {"compare|01AA|--metric|speed", 2, "", "has a metric 'speed'; there are latency.p50_ms"},
        {"compare|01AA|--threshold|two", 2, "", "--threshold: 'two' is not a percentage"},
        {"compare|run_01JX8AB000", 2, "", "one run has no spread"},
        {"compare", 2, "", "usage: weighbridge compare CAMPAIGN | REF OTHER..."},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++)
        check(*state, cases[i].line, cases[i].rc, cases[i].out, cases[i].err);
}

static void prints_one_document(void **state)
{
    struct typed t = type(*state, "compare|cmp_01AA|--json");
    wb_json *j = must_json(t.out);
    const wb_json *c = wb_json_at(wb_json_get(j, "contrasts"), 0);

    assert_int_equal(t.rc, 0);
    assert_string_equal(wb_json_str_or(c, "verdict", ""), "worse");
    assert_true(wb_json_bool_or(c, "paired", false));
    assert_int_equal(wb_json_int_or(j, "n", 0), 16);
    wb_json_free(j);
    free(t.out);
    free(t.err);
    t = type(*state, "compare|01AA/d|01AB/d|--json");
    j = must_json(t.out);
    c = wb_json_at(wb_json_get(j, "contrasts"), 0);
    assert_false(wb_json_bool_or(c, "paired", true)); /* rounds of two campaigns are no pairs */
    wb_json_free(j);
    free(t.out);
    free(t.err);
}

static char *given(const char *dir, const char *name, const char *text)
{
    char *path = wb_strf("%s/%s", dir, name);

    assert_int_equal(wb_file_put(path, text, strlen(text), NULL), 0);
    return path;
}

static void stats_read_files_by_content(void **state)
{
    WB_AUTO_FREE char *json =
        given(*state, "q.json", "{\"base\":[1,2,3,4],\"new\":[11,12,13,14],\"better\":\"lower\"}");
    WB_AUTO_FREE char *base = given(*state, "base.csv", "a,b\n1,10\n2,20\n3,30\n4,40\n");
    WB_AUTO_FREE char *other = given(*state, "new.json", "[11,12,13,14]");
    WB_AUTO_FREE char *bad = given(*state, "bad.csv", "base,new\n1,2\n3,x\n");
    WB_AUTO_FREE char *wrong = given(*state, "wrong.json", "{\"base\":[1,\"2\"],\"new\":[1]}");
    WB_AUTO_FREE char *p = given(*state, "p.csv", "p\n0.01\n0.04\n0.5\n");
    WB_AUTO_FREE char *broken = given(*state, "broken", "values: {1, 2\n");
    WB_AUTO_FREE char *semicolons = given(*state, "semi.csv", "base;new\n1;2\n");
    WB_AUTO_FREE char *empty = given(*state, "empty", " \n\n");
    const struct {
        char *line;
        int rc;
        const char *out, *err;
    } cases[] = {
        {wb_strf("stats|topics|--json"), 0, "\"name\": \"validity\"", ""},
        {wb_strf("stats|topics"), 0, "validity: ", ""},
        {wb_strf("stats|compare|%s", json), 0, "worse", ""},
        {wb_strf("stats|compare|%s|--json", json), 0, "\"verdict\": \"worse\"", ""},
        {wb_strf("stats|compare|%s|--better|higher", json), 0, "better", ""},
        {wb_strf("stats|compare|%s|%s|--column|a|--better|lower", base, other), 0, "worse", ""},
        {wb_strf("stats|compare|%s|%s|--column|c", base, other), 2, "", "has no column 'c'"},
        {wb_strf("stats|compare|%s|%s|--column|a|--better|lower", base, base), 0, "inconclusive",
         ""},
        {wb_strf("stats|compare|%s|%s", base, base), 2, "", "has 2 columns: name the one"},
        {wb_strf("stats|compare|%s|--json", bad), 2, "\"line\": 3", ""},
        {wb_strf("stats|compare|%s", bad), 2, "", "line 3: 'x' in column 'new' is not a number"},
        {wb_strf("stats|compare|%s|--json", wrong), 2, "\"pointer\": \"/base/1\"", ""},
        {wb_strf("stats|compare|%s|--better|faster", json), 2, "", "/better: must be"},
        {wb_strf("stats|compare|%s|%s|%s", json, json, json), 2, "", "at most 2 files"},
        {wb_strf("stats|adjust|%s|--json", p), 0, "\"q\": [0.03, 0.06, 0.5]", ""},
        {wb_strf("stats|adjust|%s|--better|lower", p), 2, "", "adjust takes no --better"},
        {wb_strf("stats|spread|%s", p), 2, "", "the columns are p: /values: is missing"},
        {wb_strf("stats|price|%s", p), 2, "", "needs the columns usd_per_hour and"},
        {wb_strf("stats|changes|%s", broken), 2, "", "is no name of a column; JSON begins with"},
        {wb_strf("stats|compare|%s", semicolons), 2, "", "columns are parted by commas"},
        {wb_strf("stats|compare|%s", empty), 2, "", "line 1: the input is empty"},
        {wb_strf("stats|compare|%s|--json", empty), 2, "\"line\": 1", ""},
        {wb_strf("stats|scalling"), 2, "", "there is no topic 'scalling'"},
        {wb_strf("stats|compare|%s/absent", (char *)*state), 21, "", "absent"},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        check(*state, cases[i].line, cases[i].rc, cases[i].out, cases[i].err);
        free(cases[i].line);
    }
}

static void prices_and_curves(void **state)
{
    static const char book[] = "book: lab\ndate: 2026-11-01\ncurrency: EUR\nsource: s\nhosts:\n"
                               "  - {class: c, per_hour: 3.6}\n"
                               "  - {class: \"another*\", per_hour: 7.2}\n";
    WB_AUTO_FREE char *good = given(*state, "book.yaml", book);
    WB_AUTO_FREE char *bad =
        given(*state, "bad.yaml",
              "book: lab\nprice: 3\ndate: 2026-11-01\n"
              "currency: EUR\nsource: s\nhosts:\n  - {class: c, per_hour: 1}\n");
    const struct {
        char *line;
        int rc;
        const char *out, *err;
    } cases[] = {
        {wb_strf("value|01AA|--book|%s", good), 0, "is the cheapest", ""},
        {wb_strf("value|01AA|--book|%s|--slo|5ms|--json", good), 0,
         "\"cheapest_at_slo\": \"native x1\"", ""},
        {wb_strf("value|01AA/docker|--book|%s|--json", good), 0, "\"cheapest\": \"docker x1\"", ""},
        /* hosts are what is compared here */
        {wb_strf("value|01AA|01Z|--book|%s|--json", good), 0, "\"name\": \"01Z/native x1\"", ""},
        {wb_strf("value|01AA"), 2, "", "name a price book with --book"},
        {wb_strf("value|01AA|--book|%s", bad), 2, "", "bad.yaml:2: /price"},
        {wb_strf("value|01AA|--book|%s.absent", good), 21, "", "absent"},
        {wb_strf("value|01AA|--book|%s|--slo|5", good), 2, "", "--slo"},
        {wb_strf("scaling|01AA"), 2, "", "the arms differ in no number"},
        {wb_strf("scaling|01AA/docker"), 2, "", "is one arm"},
        {wb_strf("scaling|99"), 21, "", "99"},
        {wb_strf("compare|01AA|01Z|--force|--json"), 0, "\"forced\": [", ""},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        check(*state, cases[i].line, cases[i].rc, cases[i].out, cases[i].err);
        free(cases[i].line);
    }
}

static void explains(void **state)
{
    static const struct {
        const char *line;
        int rc;
        const char *out, *err;
    } cases[] = {
        {"explain|01AA/nat|01AA/d", 0, "max.throughput of 01AA/d against 01AA/nat: 9.8 % lower",
         ""},
        {"explain|01AA/nat|01AA/d|--json", 0, "\"paired\": true", ""},
        {"explain|01AA/d|01AB/d|--json", 0, "\"paired\": false", ""},
        {"explain|01AA/nat|01AA/d|--metric|latency.p99_ms", 0, "latency.p99_ms of 01AA/d", ""},
        {"explain|01AA/nat|01AA/d|--metric|speed", 2, "", "has a metric 'speed'"},
        {"explain|01AA|01AB", 2, "", "01AA has 2 arms: name one of them as CAMPAIGN/ARM"},
        {"explain|01AA/nat", 2, "", "usage: weighbridge explain A B"},
        {"explain|run_01JX8AB000|run_01JX8AB001", 0, "no verdict: ", ""},
        {"explain|01AA/nat|99", 21, "", "99"},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++)
        check(*state, cases[i].line, cases[i].rc, cases[i].out, cases[i].err);
}

static void names_campaigns_by_their_series(void **state)
{
    static const struct {
        const char *line;
        int rc;
        const char *out, *err;
    } cases[] = {
        /* The newest campaign of the series is 01Z; it is HEAD, so the one before is meant. */
        {"gate|--ref|series:dddd@last|--head|01Z|--force|--json", 0, "\"result\": \"pass\"", ""},
        {"compare|series:dddd@last|01AA/d|--force", 0, "forms: cmp_01Z, 8 rounds", ""},
        {"compare|series:dddd@cmp_01AA|01AB/d", 0, "Worse: max.throughput of 01AB/docker x1", ""},
        {"gate|series:dddd@01AA|01AB/d", 21, "", "behind '@' goes last, a commit ("},
        {"gate|series:dddd@cmp_01AA|01AB/d", 10, "Worse", ""},
        {"compare|series:9999@last|01AA/d", 21, "", "there is no series '9999'"},
        {"compare|series:dddd|01AA/d", 2, "", "is named as series:KEY@last"},
        {"compare|series:@last|01AA/d", 2, "", "is named as series:KEY@last"},
        {"compare|series:dddd@|01AA/d", 2, "", "is named as series:KEY@last"},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++)
        check(*state, cases[i].line, cases[i].rc, cases[i].out, cases[i].err);
}

static void annotate(const char *dir, const char *type, const char *id, const char *at)
{
    const struct wb_annotation a = {
        .type = type, .id = id, .text = "the new rack", .who = "ann", .at = at};
    struct wb_store *s = open_store(dir, false);
    struct wb_err err = WB_ERR_INIT;
    char *own = NULL;

    if (wb_store_annotate(s, &a, &own, &err) < 0)
        fail_msg("%s %s: %s", type, id, err.root);
    free(own);
    wb_store_close(s);
}

/* The id of the first run of a campaign; owned. */
static char *first_run(const char *dir, const char *campaign)
{
    const struct wb_list_filter f = {.campaign = campaign};
    struct wb_store *s = open_store(dir, false);
    WB_AUTO_JSON wb_json *runs = NULL;
    char *id;

    assert_int_equal(wb_store_list(s, &f, &runs, NULL), 0);
    id = wb_strdup(wb_json_str_or(wb_json_at(runs, 0), "id", ""));
    wb_store_close(s);
    return id;
}

/* A trend's points are in the order of the builds; those of one build in that of measuring. */
static void builds_stand_in_their_order(const char *dir)
{
    static const char *const order[] = {"cmp_02C", "cmp_02D", "cmp_02A", "cmp_02B"};
    struct typed t = type(dir, "trend|eeee|--json");
    WB_AUTO_JSON wb_json *doc = must_json(t.out);
    const wb_json *points = wb_json_get(doc, "points");

    assert_int_equal(wb_json_len(points), 4);
    for (size_t i = 0; i < WB_LEN(order); i++)
        assert_string_equal(wb_json_str_or(wb_json_at(points, i), "campaign", ""), order[i]);
    free(t.out);
    free(t.err);
}

/* Builds with names: beee01 is measured last and was made first. */
static void names_builds_by_their_commits(void **state)
{
    static const struct {
        const char *line;
        int rc;
        const char *out, *err;
    } cases[] = {
        {"compare|series:eeee@abc1|series:eeee@abd2", 0, "series:eeee@abd2/docker x1 against", ""},
        {"compare|series:eeee@abc|series:eeee@abd|--json", 0, "\"build.commit differs: 'abc1", ""},
        {"compare|series:eeee@ab|series:eeee@abd2", 22, "", "more than one: abd2, abc1"},
        {"compare|series:eeee@zzz|series:eeee@abd2", 21, "", "a commit (beee01, abd2, abc1), a"},
        {"compare|series:eeee@last|series:eeee@abc1", 0, "forms: cmp_02B", ""},
        {"gate|series:eeee@abc1|series:eeee@last|--json", 0, "series:eeee@last/docker x1", ""},
        {"gate|--ref|series:eeee@beee|--head|series:eeee@last", 0, "", ""},
        {"show|series:eeee@abd2", 0, "cmp_02B", ""},
        {"trend|series:eeee@abd2", 2, "", "is one build: the history is that of the whole series"},
        {"trend|series:eeee|--json", 0, "\"digest-changed\"", ""},
        {"list|series", 0, "abd2", ""},
        {"list|series|--json", 0, "\"commit\": \"beee01\"", ""},
        {"explain|series:eeee@abc1|series:eeee@abd2", 0, "", ""},
        {"value|series:eeee@abc1|--book|no-such", 21, "", "no-such"},
        {"scaling|series:eeee@abc1", 2, "", "is one arm"},
    };

    add_builds(*state);
    for (size_t i = 0; i < WB_LEN(cases); i++)
        check(*state, cases[i].line, cases[i].rc, cases[i].out, cases[i].err);
    builds_stand_in_their_order(*state);
}

/* After those above, because it changes what the store says. */
static void obeys_annotations(void **state)
{
    WB_AUTO_FREE char *run = first_run(*state, "cmp_01AB");
    WB_AUTO_FREE char *why = wb_strf("%s (", run);

    annotate(*state, "note", "cmp_01AB", NULL);
    check(*state, "compare|01AB", 0, "note by ann: the new rack", "");
    annotate(*state, "excluded", run, NULL);
    check(*state, "compare|01AB", 0, why, "");
    check(*state, "compare|01AB|--json", 0, "excluded by an annotation: the new rack", "");
    check(*state, "compare|01AB|--json", 0, "\"n\": 15", "");
    annotate(*state, "environment", "cmp_01AB", NULL);
    check(*state, "compare|01AA/d|01AB/d", 22, "", "its environment changed on ");
    check(*state, "compare|01AA/d|01AB/d|--force", 0, "forced: the environment changed on ", "");
    check(*state, "compare|01AA/d|01AB/d|--force|--json", 0, "\"environment\"", "");
    check(*state, "compare|01AA/nat|01AA/d", 0, "Worse", ""); /* before it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compares_campaigns_and_arms),
        cmocka_unit_test(prints_one_document),
        cmocka_unit_test(stats_read_files_by_content),
        cmocka_unit_test(prices_and_curves),
        cmocka_unit_test(explains),
        cmocka_unit_test(names_campaigns_by_their_series),
        cmocka_unit_test(obeys_annotations),
        cmocka_unit_test(names_builds_by_their_commits),
    };

    return cmocka_run_group_tests(tests, setup, fixture_teardown);
}
