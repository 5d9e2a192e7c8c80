/* `stats changes` against published data, planted changes and hostile input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/changes.h"
#include "server/analysis/compare.h"
#include "server/base/mem.h"
#include "server/base/rng.h"

#define DATA "tests/data/analysis/"

static wb_json *answer_to(const wb_json *in)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *out = NULL;

    if (wb_stats_changes(in, &out, &err) < 0)
        fail_msg("%s", err.root);
    assert_int_equal(wb_json_int_or(out, "analysis_version", 0), WB_ANALYSIS_VERSION);
    assert_non_null(wb_json_string(wb_json_get(out, "method")));
    assert_int_equal(wb_json_type(wb_json_get(out, "warnings")), WB_JSON_ARRAY);
    assert_int_equal(wb_json_type(wb_json_get(out, "n")), WB_JSON_INT);
    return out;
}

static wb_json *parsed(const char *text)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *j = NULL;

    if (wb_json_parse(text, strlen(text), &j, &err) < 0)
        fail_msg("%s: %s", text, err.root);
    return j;
}

static wb_json *answer(const char *text)
{
    WB_AUTO_JSON wb_json *in = parsed(text);

    return answer_to(in);
}

static const wb_json *change(const wb_json *out, size_t i)
{
    return wb_json_at(wb_json_get(out, "change_points"), i);
}

static size_t changes(const wb_json *out)
{
    return wb_json_len(wb_json_get(out, "change_points"));
}

static int64_t index_of(const wb_json *out, size_t i)
{
    return wb_json_int_or(change(out, i), "index", -1);
}

static bool has_flag(const wb_json *out, const char *flag)
{
    const wb_json *flags = wb_json_get(out, "flags");

    for (size_t i = 0; i < wb_json_len(flags); i++)
        if (strcmp(wb_json_string(wb_json_at(flags, i)), flag) == 0)
            return true;
    return false;
}

/* ---- published data ---- */

static bool holds(const wb_json *list, int64_t index, int64_t tolerance)
{
    for (size_t i = 0; i < wb_json_len(list); i++)
        if (llabs(wb_json_integer(wb_json_at(list, i)) - index) <= tolerance)
            return true;
    return false;
}

/* Every expected place is found, and nothing that is neither expected nor allowed. */
static void check_places(const char *file, const wb_json *want, const wb_json *allowed,
                         const wb_json *out, int64_t tolerance)
{
    for (size_t i = 0; i < wb_json_len(want); i++) {
        bool found = false;
        for (size_t k = 0; k < changes(out); k++)
            found |= llabs(index_of(out, k) - wb_json_integer(wb_json_at(want, i))) <= tolerance;
        if (!found)
            fail_msg("%s: no change at %lld", file,
                     (long long)wb_json_integer(wb_json_at(want, i)));
    }
    for (size_t k = 0; k < changes(out); k++)
        if (!holds(want, index_of(out, k), tolerance) &&
            !holds(allowed, index_of(out, k), tolerance))
            fail_msg("%s: change at %lld is too much", file, (long long)index_of(out, k));
}

static int64_t tolerance_of(const wb_json *doc)
{
    const char *text = wb_json_string(wb_json_path(doc, "tolerance.index"));

    return text[2] - '0'; /* "+-1" */
}

static void published_cases(void **state)
{
    static const char *const files[] = {"mongo-ahead",     "mongo-behind",    "mongo-outlier-step",
                                        "mongo-randomish", "mongo-two",       "otava-divzero",
                                        "otava-sequence",  "otava-series1",   "otava-series2",
                                        "otava-single",    "perfherder-step", "tigerbeetle"};

    for (size_t i = 0; i < WB_LEN(files); i++) {
        WB_AUTO_FREE char *path = wb_strf(DATA "changepoint-%s.json", files[i]);
        WB_AUTO_JSON wb_json *doc = NULL;
        const wb_json *want, *allowed;
        wb_json *out;
        assert_int_equal(wb_json_read_file(path, 1 << 20, &doc, NULL), 0);
        want = wb_json_path(doc, "expected.change_points");
        allowed = wb_json_path(doc, "expected.optional_change_points");
        if (want == NULL) {
            want = wb_json_path(doc, "expected.must_include");
            allowed = wb_json_path(doc, "expected.plausible_more");
        }
        assert_true(wb_json_len(want) > 0);
        out = answer_to(wb_json_get(doc, "input"));
        check_places(files[i], want, allowed, out, tolerance_of(doc));
        wb_json_free(out);
    }
}

/* The change is given within a percentage point of that of the means. */
static void published_magnitudes(void **state)
{
    static const struct {
        const char *file;
        double min_percent;
        int places[3]; /* ended by -1 */
        double percent;
    } cases[] = {
        {"otava-series1", 20, {6, -1}, -49.43}, {"otava-series2", 20, {-1}, 0},
        {"otava-series2", 2, {4, -1}, -11.0},   {"otava-single", 2, {10, -1}, -50.2},
        {"mongo-two", 2, {15, 30, -1}, 100},    {"tigerbeetle", 5, {15, 71, -1}, -11.6},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_FREE char *path = wb_strf(DATA "changepoint-%s.json", cases[i].file);
        WB_AUTO_JSON wb_json *doc = NULL;
        wb_json *in, *out;
        size_t n = 0;
        assert_int_equal(wb_json_read_file(path, 1 << 20, &doc, NULL), 0);
        in = wb_json_get(doc, "input");
        wb_json_set_real(in, "min_magnitude_percent", cases[i].min_percent);
        out = answer_to(in);
        while (cases[i].places[n] >= 0)
            n++;
        assert_int_equal(changes(out), n);
        for (size_t k = 0; k < n; k++)
            assert_int_equal(index_of(out, k), cases[i].places[k]);
        if (n > 0)
            assert_true(fabs(wb_json_real_or(change(out, 0), "change_percent", NAN) -
                             cases[i].percent) <= 1);
        wb_json_free(out);
    }
}

static void outlier_is_no_level(void **state)
{
    WB_AUTO_JSON wb_json *doc = NULL;
    wb_json *out;

    assert_int_equal(wb_json_read_file(DATA "changepoint-tigerbeetle.json", 1 << 20, &doc, NULL),
                     0);
    out = answer_to(wb_json_get(doc, "input"));
    assert_true(holds(wb_json_get(out, "outliers"), 10, 0));
    for (size_t i = 0; i < changes(out); i++)
        assert_true(index_of(out, i) != 10 && index_of(out, i) != 11);
    wb_json_free(out);
}

/* ---- planted data ---- */

static double normal(struct wb_rng *r)
{
    return sqrt(-2 * log(1 - wb_rng_unit(r))) * cos(2 * M_PI * wb_rng_unit(r));
}

struct series {
    double v[400];
    size_t n;
};

/* n nights of a level with 2 % of noise. */
static void nights(struct series *s, struct wb_rng *r, size_t n, double level)
{
    for (size_t i = 0; i < n; i++)
        s->v[s->n++] = level * (1 + 0.02 * normal(r));
}

static wb_json *document(const struct series *s)
{
    wb_json *doc = wb_json_object(), *values = wb_json_array();

    for (size_t i = 0; i < s->n; i++)
        wb_json_push(values, isnan(s->v[i]) ? wb_json_null() : wb_json_real(s->v[i]));
    wb_json_set(doc, "values", values);
    wb_json_set_str(doc, "better", "higher");
    return doc;
}

static wb_json *ask(const struct series *s)
{
    WB_AUTO_JSON wb_json *doc = document(s);

    return answer_to(doc);
}

static void annotate(wb_json *doc, int64_t index, const char *type)
{
    wb_json *a = wb_json_object();

    wb_json_set_int(a, "index", index);
    wb_json_set_str(a, "type", type);
    if (wb_json_get(doc, "annotations") == NULL)
        wb_json_set(doc, "annotations", wb_json_array());
    wb_json_push(wb_json_get(doc, "annotations"), a);
}

static void kinds_and_keys(void **state)
{
    static const struct {
        const char *better;
        double after;
        const char *kind;
    } cases[] = {{"higher", 900, "regression"},
                 {"higher", 1100, "improvement"},
                 {"lower", 900, "improvement"},
                 {"lower", 1100, "regression"},
                 {NULL, 900, "shift"}};

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        struct series s = {.n = 0};
        struct wb_rng r;
        wb_json *doc, *out;
        const wb_json *e;
        wb_rng_seed(&r, 1);
        nights(&s, &r, 30, 1000);
        nights(&s, &r, 20, cases[i].after);
        doc = document(&s);
        if (cases[i].better)
            wb_json_set_str(doc, "better", cases[i].better);
        else
            wb_json_del(doc, "better");
        out = answer_to(doc);
        assert_int_equal(changes(out), 1);
        e = change(out, 0);
        assert_string_equal(wb_json_str_or(e, "kind", ""), cases[i].kind);
        assert_int_equal(index_of(out, 0), 30);
        assert_int_equal(wb_json_int_or(e, "after_index", -1), 29);
        assert_string_equal(wb_json_str_or(e, "state", ""), "open");
        assert_true(wb_json_real_or(e, "p", 1) <= 0.01 && wb_json_real_or(e, "p", 0) > 0);
        assert_true(fabs(wb_json_real_or(e, "change_percent", 0) - (cases[i].after - 1000) / 10) <
                    2.5);
        assert_string_equal(wb_json_str_or(out, "last_point", ""), "ok");
        assert_string_equal(wb_json_str_or(out, "status", ""), "ok");
        assert_int_equal(wb_json_int_or(wb_json_get(out, "baseline"), "from", -1), 30);
        assert_int_equal(wb_json_int_or(wb_json_get(out, "baseline"), "to", -1), 49);
        wb_json_free(out);
        wb_json_free(doc);
    }
}

/* Missing nights are no values and move no index. */
static void gaps(void **state)
{
    struct series s = {.n = 0};
    struct wb_rng r;
    wb_json *out;

    wb_rng_seed(&r, 2);
    nights(&s, &r, 30, 1000);
    nights(&s, &r, 20, 900);
    s.v[3] = s.v[4] = s.v[29] = s.v[30] = s.v[49] = NAN;
    out = ask(&s);
    assert_int_equal(wb_json_int_or(out, "n", 0), 45);
    assert_int_equal(changes(out), 1);
    assert_int_equal(index_of(out, 0), 31);
    assert_int_equal(wb_json_int_or(change(out, 0), "after_index", -1), 28);
    assert_int_equal(wb_json_int_or(wb_json_get(out, "baseline"), "to", -1), 48);
    wb_json_free(out);
}

static void annotations(void **state)
{
    struct series s = {.n = 0};
    struct wb_rng r;
    wb_json *doc, *out;

    wb_rng_seed(&r, 3);
    nights(&s, &r, 30, 1000);
    nights(&s, &r, 20, 900);
    doc = document(&s);
    annotate(doc, 31, "accepted"); /* one night beside the place */
    out = answer_to(doc);
    assert_int_equal(changes(out), 1);
    assert_string_equal(wb_json_str_or(change(out, 0), "state", ""), "accepted");
    wb_json_free(out);
    wb_json_free(doc);

    /* New hardware: nothing is compared across. */
    doc = document(&s);
    annotate(doc, 30, "environment");
    out = answer_to(doc);
    assert_int_equal(changes(out), 0);
    assert_int_equal(wb_json_integer(wb_json_at(wb_json_get(out, "borders"), 0)), 30);
    assert_int_equal(wb_json_int_or(wb_json_get(out, "baseline"), "from", -1), 30);
    wb_json_free(out);
    wb_json_free(doc);

    /* Excluded nights are as good as missing. */
    doc = document(&s);
    for (int64_t i = 30; i < 50; i++)
        annotate(doc, i, "excluded");
    out = answer_to(doc);
    assert_int_equal(changes(out), 0);
    assert_int_equal(wb_json_int_or(out, "n", 0), 30);
    wb_json_free(out);
    wb_json_free(doc);

    /* An accepted change that cannot be seen is a new baseline all the same. */
    doc = document(&s);
    annotate(doc, 15, "accepted");
    out = answer_to(doc);
    assert_int_equal(changes(out), 1);
    assert_string_equal(wb_json_str_or(change(out, 0), "state", ""), "open");
    assert_int_equal(wb_json_integer(wb_json_at(wb_json_get(out, "borders"), 0)), 15);
    wb_json_free(out);
    wb_json_free(doc);
}

static void newest_night(void **state)
{
    static const struct {
        double last[2];
        const char *word;
        size_t suspects;
    } cases[] = {{{1000, 1000}, "ok", 0},    {{1000, 700}, "suspect", 1},
                 {{700, 700}, "suspect", 2}, {{700, 1000}, "ok", 0},
                 {{1000, 1015}, "ok", 0},    {{1000, 1400}, "suspect", 1}};

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        struct series s = {.n = 0};
        struct wb_rng r;
        wb_json *out;
        wb_rng_seed(&r, 4);
        nights(&s, &r, 40, 1000);
        s.v[s.n++] = cases[i].last[0];
        s.v[s.n++] = cases[i].last[1];
        out = ask(&s);
        assert_int_equal(changes(out), 0);
        assert_string_equal(wb_json_str_or(out, "last_point", ""), cases[i].word);
        assert_int_equal(wb_json_len(wb_json_get(out, "suspects")), cases[i].suspects);
        wb_json_free(out);
    }
}

/* A regression of three nights and its recovery are two changes; one or two nights are none. */
static void short_regressions(void **state)
{
    for (size_t length = 1; length <= 7; length++) {
        struct series s = {.n = 0};
        struct wb_rng r;
        wb_json *out;
        wb_rng_seed(&r, 5);
        nights(&s, &r, 30, 1000);
        nights(&s, &r, length, 800);
        nights(&s, &r, 30, 1000);
        out = ask(&s);
        assert_int_equal(changes(out), length < 3 ? 0 : 2);
        assert_int_equal(wb_json_len(wb_json_get(out, "outliers")), length < 3 ? length : 0);
        if (length >= 3) {
            assert_int_equal(index_of(out, 0), 30);
            assert_int_equal(index_of(out, 1), 30 + (int)length);
        }
        wb_json_free(out);
    }
}

static void slopes_are_no_steps(void **state)
{
    struct series s = {.n = 0};
    struct wb_rng r;
    wb_json *out;

    wb_rng_seed(&r, 6);
    for (size_t i = 0; i < 60; i++)
        nights(&s, &r, 1, 1000 * (1 - 0.003 * (double)i));
    out = ask(&s);
    assert_int_equal(changes(out), 0);
    assert_true(has_flag(out, "drift"));
    assert_true(fabs(wb_json_real_or(out, "drift_percent", 0) + 19.4) < 3);
    wb_json_free(out);

    /* A step is no drift. */
    s.n = 0;
    nights(&s, &r, 30, 1000);
    nights(&s, &r, 30, 930);
    out = ask(&s);
    assert_int_equal(changes(out), 1);
    assert_false(has_flag(out, "drift"));
    wb_json_free(out);
}

static void flags(void **state)
{
    struct series s = {.n = 0};
    struct wb_rng r;
    wb_json *out;

    wb_rng_seed(&r, 7);
    for (size_t i = 0; i < 60; i++)
        s.v[s.n++] = (wb_rng_unit(&r) < 0.5 ? 1000 : 1080) * (1 + 0.005 * normal(&r));
    out = ask(&s);
    assert_true(has_flag(out, "multi-modal"));
    assert_int_equal(changes(out), 0);
    wb_json_free(out);

    s.n = 0;
    for (size_t i = 0; i < 80; i++)
        s.v[s.n++] = 1000 * (1 + (i < 50 ? 0.004 : 0.03) * normal(&r));
    out = ask(&s);
    assert_true(has_flag(out, "noise-changed"));
    assert_true(llabs(wb_json_int_or(wb_json_get(out, "noise_change"), "index", 0) - 50) <= 6);
    wb_json_free(out);

    s.n = 0;
    for (size_t i = 0; i < 100; i++) {
        double before = i > 0 ? s.v[i - 1] - 1000 : 0;
        s.v[s.n++] = 1000 + 0.7 * before + 14 * normal(&r);
    }
    out = ask(&s);
    assert_true(has_flag(out, "autocorrelated"));
    wb_json_free(out);

    s.n = 0;
    nights(&s, &r, 60, 1000);
    out = ask(&s);
    assert_int_equal(wb_json_len(wb_json_get(out, "flags")), 0);
    wb_json_free(out);
}

static void few_values(void **state)
{
    static const struct {
        const char *text, *status;
        int64_t n;
    } cases[] = {
        {"{\"values\":[]}", "insufficient", 0},
        {"{\"values\":[null,null]}", "insufficient", 0},
        {"{\"values\":[1]}", "insufficient", 1},
        {"{\"values\":[1,2,3,4,5,null,6,7]}", "insufficient", 7},
        {"{\"values\":[1,1,1,1,1,1,1,1]}", "ok", 8},
        {"{\"values\":[0,0,0,0,0,0,0,0,0,0]}", "ok", 10},
        {"{\"values\":[-5,-5,-5,-5,-5,-5,-5,-5,-5,-5]}", "ok", 10},
        {"{\"values\":[1e-140,1e140,1,2,3,4,5,6,7,8]}", "ok", 10},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        struct wb_buf text = WB_BUF_INIT(1 << 20);
        wb_json *out = answer(cases[i].text);
        assert_string_equal(wb_json_str_or(out, "status", ""), cases[i].status);
        assert_int_equal(wb_json_int_or(out, "n", -1), cases[i].n);
        assert_int_equal(changes(out), 0);
        wb_stats_changes_print(out, 80, &text);
        assert_true(text.len > 20 && !text.failed);
        wb_buf_release(&text);
        wb_json_free(out);
    }
}

static void refusals(void **state)
{
    static const struct {
        const char *text, *begin;
    } cases[] = {
        {"[1,2]", "the input must be an object"},
        {"{}", "/values: is missing"},
        {"{\"values\":\"x\"}", "/values: must be a list"},
        {"{\"values\":[1,\"x\"]}", "/values/1: must be a number"},
        {"{\"values\":[1,1e200]}", "/values/1: 1e+200 is out of range"},
        {"{\"values\":[1],\"better\":\"more\"}", "/better: must be"},
        {"{\"values\":[1],\"ids\":[]}", "/ids: has 0 entries, values has 1"},
        {"{\"values\":[1],\"ids\":{}}", "/ids: must be a list"},
        {"{\"values\":[1],\"ids\":[1.5]}", "/ids/0: must be"},
        {"{\"values\":[1],\"annotations\":{}}", "/annotations: must be a list"},
        {"{\"values\":[1],\"annotations\":[1]}", "/annotations/0: must be an object"},
        {"{\"values\":[1],\"annotations\":[{\"index\":0}]}", "/annotations/0/type: must be"},
        {"{\"values\":[1],\"annotations\":[{\"index\":1,\"type\":\"excluded\"}]}",
         "/annotations/0/index: must be a whole number from 0 to 0"},
        {"{\"values\":[1],\"annotations\":[{\"index\":-1,\"type\":\"excluded\"}]}",
         "/annotations/0/index: must be"},
        {"{\"values\":[1,2],\"annotations\":[{\"index\":1,\"to\":0,\"type\":\"excluded\"}]}",
         "/annotations/0/to: must be a whole number from 1 to 1"},
        {"{\"values\":[1],\"ids\":[\"a\"],\"annotations\":[{\"id\":\"b\",\"type\":\"excluded\"}]}",
         "/annotations/0/id: is not among ids"},
        {"{\"values\":[1],\"min_magnitude_percent\":-1}", "/min_magnitude_percent: must be"},
        {"{\"values\":[1],\"window\":3}", "/window: must be"},
        {"{\"values\":[1],\"previous\":[]}", "/previous: must be"},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_JSON wb_json *in = parsed(cases[i].text);
        struct wb_err err = WB_ERR_INIT;
        wb_json *out = NULL;
        assert_int_equal(wb_stats_changes(in, &out, &err), -WB_INVALID);
        assert_null(out);
        if (strncmp(err.root, cases[i].begin, strlen(cases[i].begin)) != 0)
            fail_msg("%s: %s", cases[i].text, err.root);
    }
}

/* ---- properties ---- */

static void same_after_scaling(void **state)
{
    static const double factors[] = {1000, 1e-9, 0.3, 7e20};
    struct series s = {.n = 0};
    struct wb_rng r;
    wb_json *base;

    wb_rng_seed(&r, 8);
    nights(&s, &r, 50, 1000);
    nights(&s, &r, 40, 940);
    nights(&s, &r, 30, 1010);
    base = ask(&s);
    assert_int_equal(changes(base), 2);
    for (size_t f = 0; f < WB_LEN(factors); f++) {
        struct series scaled = s;
        wb_json *out;
        for (size_t i = 0; i < s.n; i++)
            scaled.v[i] *= factors[f];
        out = ask(&scaled);
        assert_int_equal(changes(out), changes(base));
        for (size_t k = 0; k < changes(base); k++) {
            const wb_json *a = change(base, k), *b = change(out, k);
            assert_int_equal(index_of(out, k), index_of(base, k));
            assert_true(wb_json_real_or(a, "p", 0) == wb_json_real_or(b, "p", 1));
            assert_true(fabs(wb_json_real_or(a, "change_percent", 0) -
                             wb_json_real_or(b, "change_percent", 1)) < 1e-9);
            assert_string_equal(wb_json_str_or(a, "id", "a"), wb_json_str_or(b, "id", "b"));
        }
        assert_true(wb_json_equal(wb_json_get(out, "flags"), wb_json_get(base, "flags")));
        wb_json_free(out);
    }
    wb_json_free(base);
}

static void same_answer_twice(void **state)
{
    struct series s = {.n = 0};
    struct wb_rng r;
    wb_json *a, *b;

    wb_rng_seed(&r, 9);
    nights(&s, &r, 40, 1000);
    nights(&s, &r, 10, 930);
    a = ask(&s);
    b = ask(&s);
    assert_true(wb_json_equal(a, b));
    wb_json_free(a);
    wb_json_free(b);
}

/* Night by night with the answer of the night before: the change keeps its name and its first
 * sight, and from-scratch answers say the same. */
static void a_name_for_life(void **state)
{
    struct series s = {.n = 0};
    struct wb_rng r;
    wb_json *before = NULL;
    char id[64] = "", seen[64] = "";

    wb_rng_seed(&r, 10);
    nights(&s, &r, 60, 1000);
    for (size_t night = 0; night < 40; night++) {
        wb_json *doc, *out, *scratch;
        nights(&s, &r, 1, 930);
        doc = document(&s);
        scratch = answer_to(doc);
        if (before != NULL)
            wb_json_set(doc, "previous", before);
        out = answer_to(doc);
        assert_int_equal(changes(out), changes(scratch));
        for (size_t k = 0; k < changes(out); k++)
            assert_int_equal(index_of(out, k), index_of(scratch, k));
        if (changes(out) == 1 && *id == '\0') {
            strcpy(id, wb_json_str_or(change(out, 0), "id", ""));
            strcpy(seen, wb_json_str_or(change(out, 0), "first_seen", ""));
        } else if (*id != '\0') {
            assert_int_equal(changes(out), 1);
            assert_string_equal(wb_json_str_or(change(out, 0), "id", ""), id);
            assert_string_equal(wb_json_str_or(change(out, 0), "first_seen", ""), seen);
        }
        if (night >= 5)
            assert_true(*id != '\0');
        wb_json_free(scratch);
        before = wb_json_ref(out);
        wb_json_free(out);
        wb_json_free(doc);
    }
    wb_json_free(before);
}

/* Runs put in before an event, or taken out, do not rename it when nights have ids; a change that
 * is no more is told, and one that comes back is the old one. */
static void names_follow_nights(void **state)
{
    struct series s = {.n = 0};
    struct wb_rng r;
    wb_json *doc, *first, *out, *ids;

    wb_rng_seed(&r, 11);
    nights(&s, &r, 40, 1000);
    nights(&s, &r, 20, 900);
    doc = document(&s);
    ids = wb_json_array();
    for (size_t i = 0; i < s.n; i++) {
        WB_AUTO_FREE char *id = wb_strf("run-%zu", i);
        wb_json_push(ids, wb_json_str(id));
    }
    wb_json_set(doc, "ids", ids);
    first = answer_to(doc);
    assert_string_equal(wb_json_str_or(change(first, 0), "first_bad", ""), "run-40");
    assert_string_equal(wb_json_str_or(change(first, 0), "last_good", ""), "run-39");
    wb_json_free(doc);

    memmove(s.v, s.v + 10, 50 * sizeof(double)); /* the ten oldest are gone */
    s.n = 50;
    doc = document(&s);
    ids = wb_json_array();
    for (size_t i = 0; i < s.n; i++) {
        WB_AUTO_FREE char *id = wb_strf("run-%zu", i + 10);
        wb_json_push(ids, wb_json_str(id));
    }
    wb_json_set(doc, "ids", ids);
    wb_json_set(doc, "previous", wb_json_ref(first));
    out = answer_to(doc);
    assert_int_equal(index_of(out, 0), 30);
    assert_string_equal(wb_json_str_or(change(out, 0), "id", ""),
                        wb_json_str_or(change(first, 0), "id", "-"));
    assert_int_equal(wb_json_len(wb_json_get(out, "gone")), 0);
    wb_json_free(out);

    for (int64_t i = 30; i < 50; i++)
        annotate(doc, i, "excluded");
    out = answer_to(doc);
    assert_int_equal(changes(out), 0);
    assert_int_equal(wb_json_len(wb_json_get(out, "gone")), 1);
    wb_json_del(doc, "annotations");
    wb_json_set(doc, "previous", out);
    out = answer_to(doc);
    assert_string_equal(wb_json_str_or(change(out, 0), "id", ""),
                        wb_json_str_or(change(first, 0), "id", "-"));
    wb_json_free(out);
    wb_json_free(first);
    wb_json_free(doc);
}

static void window(void **state)
{
    struct series s = {.n = 0};
    struct wb_rng r;
    wb_json *doc, *out;

    wb_rng_seed(&r, 12);
    nights(&s, &r, 50, 1000);
    nights(&s, &r, 60, 800);
    doc = document(&s);
    wb_json_set_int(doc, "window", 50);
    out = answer_to(doc);
    assert_int_equal(changes(out), 0);
    assert_int_equal(wb_json_int_or(wb_json_get(out, "baseline"), "from", -1), 60);
    assert_string_equal(wb_json_str_or(wb_json_at(wb_json_get(out, "warnings"), 0), "code", ""),
                        "window");
    wb_json_free(out);
    wb_json_free(doc);
}

/* ---- how often it errs ---- */

static void error_rates(void **state)
{
    enum { TRIALS = 150 };
    struct wb_rng r;
    int alarms = 0, found = 0, suspects = 0, flagged = 0;

    wb_rng_seed(&r, 13);
    for (int t = 0; t < TRIALS; t++) {
        struct series s = {.n = 0};
        wb_json *out;
        nights(&s, &r, 60, 1000);
        out = ask(&s);
        alarms += changes(out) > 0;
        suspects += strcmp(wb_json_str_or(out, "last_point", ""), "suspect") == 0;
        flagged += wb_json_len(wb_json_get(out, "flags")) > 0;
        wb_json_free(out);
        nights(&s, &r, 5, 940);
        out = ask(&s);
        for (size_t k = 0; k < changes(out); k++)
            if (llabs(index_of(out, k) - 60) <= 2) {
                found++;
                break;
            }
        wb_json_free(out);
    }
    assert_true(alarms <= 5);
    assert_true(suspects <= 2);
    assert_true(flagged <= 8);
    assert_true(found >= TRIALS * 95 / 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_cases),
        cmocka_unit_test(published_magnitudes),
        cmocka_unit_test(outlier_is_no_level),
        cmocka_unit_test(kinds_and_keys),
        cmocka_unit_test(gaps),
        cmocka_unit_test(annotations),
        cmocka_unit_test(newest_night),
        cmocka_unit_test(short_regressions),
        cmocka_unit_test(slopes_are_no_steps),
        cmocka_unit_test(flags),
        cmocka_unit_test(few_values),
        cmocka_unit_test(refusals),
        cmocka_unit_test(same_after_scaling),
        cmocka_unit_test(same_answer_twice),
        cmocka_unit_test(a_name_for_life),
        cmocka_unit_test(names_follow_nights),
        cmocka_unit_test(window),
        cmocka_unit_test(error_rates),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
