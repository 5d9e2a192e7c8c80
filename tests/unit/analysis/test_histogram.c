/* `stats histogram` against published logs, counting by hand, and damage. The logs of the older
 * forms are those of HdrHistogram (CC0) with the answers of its own tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/compare.h"
#include "server/analysis/histogram.h"
#include "server/analysis/topics.h"
#include "server/base/file.h"
#include "server/base/hist_read.h"
#include "server/base/mem.h"
#include "server/base/rng.h"

#define DATA "tests/data/hdr/"

static wb_json *answer_to(const wb_json *in)
{
    struct wb_err err = WB_ERR_INIT;
    struct wb_buf text = WB_BUF_INIT(1 << 20);
    wb_json *out = NULL;

    if (wb_stats_histogram(in, &out, &err) < 0)
        fail_msg("%s", err.root);
    assert_int_equal(wb_json_int_or(out, "analysis_version", 0), WB_ANALYSIS_VERSION);
    assert_non_null(wb_json_string(wb_json_get(out, "method")));
    assert_int_equal(wb_json_type(wb_json_get(out, "warnings")), WB_JSON_ARRAY);
    assert_int_equal(wb_json_int_or(out, "n", -1), wb_json_int_or(out, "count", -2));
    wb_stats_histogram_print(out, 80, &text);
    assert_true(text.len > 10 && !text.failed);
    wb_buf_release(&text);
    return out;
}

static wb_json *parsed(const char *text)
{
    wb_json *j = NULL;

    if (wb_json_parse(text, strlen(text), &j, NULL) < 0)
        fail_msg("%s", text);
    return j;
}

static wb_json *answer(const char *text)
{
    WB_AUTO_JSON wb_json *in = parsed(text);

    return answer_to(in);
}

static int64_t percentile(const wb_json *out, const char *p)
{
    return wb_json_int_or(wb_json_get(out, "percentiles"), p, -1);
}

/* A document as the command makes it of files. */
static wb_json *document_of(const char *const *texts, size_t n)
{
    struct wb_topic_file files[4];
    wb_json *doc = NULL;

    for (size_t i = 0; i < n; i++)
        files[i] = (struct wb_topic_file){.path = "f", .text = texts[i], .n = strlen(texts[i])};
    assert_int_equal(wb_histogram_read(files, n, NULL, &doc, NULL), 0);
    return doc;
}

/* ---- published ---- */

static void same_percentiles(const wb_json *out, const wb_json *want)
{
    assert_true(wb_json_len(want) >= 10);
    for (void *it = wb_json_first(want); it != NULL; it = wb_json_next(want, it))
        assert_int_equal(percentile(out, wb_json_iter_key(it)),
                         (int64_t)wb_json_number(wb_json_iter_value(it), -2));
}

static void published_log(void **state)
{
    static const struct {
        const char *window;
        double from, to;
    } windows[] = {{"relative_window_5s_to_20s", 5, 20}, {"relative_window_40s_to_60s", 40, 60}};
    WB_AUTO_JSON wb_json *doc = NULL;
    const wb_json *want;
    wb_json *in, *out;

    assert_int_equal(wb_json_read_file(DATA "hdr-jhiccup-v2-log.json", 1 << 20, &doc, NULL), 0);
    in = wb_json_get(doc, "input");
    want = wb_json_get(doc, "expected");
    out = answer_to(in);
    assert_int_equal(wb_json_int_or(out, "entries", 0), wb_json_int_or(want, "entries", -1));
    assert_int_equal(wb_json_int_or(out, "count", 0), wb_json_int_or(want, "count", -1));
    assert_int_equal(wb_json_int_or(out, "max", 0), wb_json_int_or(want, "max", -1));
    assert_int_equal(percentile(out, "99.9"), (int64_t)wb_json_real_or(want, "p99.9", -2));
    assert_true(fabs(wb_json_real_or(out, "start_time", 0) -
                     wb_json_real_or(want, "start_time_s", 1)) < 1e-3);
    same_percentiles(out, wb_json_get(want, "more_percentiles"));
    wb_json_free(out);
    for (size_t i = 0; i < WB_LEN(windows); i++) {
        const wb_json *w = wb_json_get(want, windows[i].window);
        wb_json_set_real(in, "from_s", windows[i].from);
        wb_json_set_real(in, "to_s", windows[i].to);
        out = answer_to(in);
        assert_int_equal(wb_json_int_or(out, "entries", 0), wb_json_int_or(w, "entries", -1));
        assert_int_equal(wb_json_int_or(out, "count", 0), wb_json_int_or(w, "count", -1));
        assert_int_equal(wb_json_int_or(out, "max", 0), wb_json_int_or(w, "max", -1));
        assert_int_equal(percentile(out, "99.9"), (int64_t)wb_json_real_or(w, "p99.9", -2));
        wb_json_free(out);
    }
}

static void published_tags(void **state)
{
    static const struct {
        const char *tag;
        int64_t entries, count;
    } rows[] = {{"A", 21, 16145}, {"", 21, 16145}, {"B", 0, 0}};
    WB_AUTO_JSON wb_json *doc = NULL;
    const wb_json *want;
    wb_json *in, *out;

    assert_int_equal(wb_json_read_file(DATA "hdr-tagged-v2-log.json", 1 << 20, &doc, NULL), 0);
    in = wb_json_get(doc, "input");
    want = wb_json_path(doc, "expected.stat_all");
    out = answer_to(in);
    assert_int_equal(wb_json_int_or(out, "entries", 0), 42);
    assert_int_equal(wb_json_int_or(out, "count", 0), wb_json_int_or(want, "count", -1));
    assert_int_equal(wb_json_int_or(out, "min", -1), wb_json_int_or(want, "min", -2));
    assert_int_equal(wb_json_int_or(out, "max", -1), wb_json_int_or(want, "max", -2));
    assert_true(fabs(wb_json_real_or(out, "mean", 0) / wb_json_real_or(want, "mean", 1) - 1) <
                1e-12);
    assert_true(fabs(wb_json_real_or(out, "stddev", 0) / wb_json_real_or(want, "stddev", 1) - 1) <
                1e-12);
    same_percentiles(out, wb_json_get(want, "value_at_percentile"));
    assert_int_equal(wb_json_len(wb_json_get(out, "tags")), 1);
    assert_string_equal(wb_json_string(wb_json_at(wb_json_get(out, "tags"), 0)), "A");
    assert_int_equal(wb_json_len(wb_json_get(out, "by_tag")), 2);
    wb_json_free(out);
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        wb_json_set_str(in, "tag", rows[i].tag);
        out = answer_to(in);
        assert_int_equal(wb_json_int_or(out, "entries", -1), rows[i].entries);
        assert_int_equal(wb_json_int_or(out, "count", -1), rows[i].count);
        wb_json_free(out);
    }
}

static void older_forms(void **state)
{
    static const struct {
        const char *file;
        double from, to, start;
        int64_t entries, count, p999, max;
    } rows[] = {
        {"jhiccup-v0", 0, 1e9, 1438869961.225, 81, 61256, 1510998015, 1569718271},
        {"jhiccup-v0", 20, 45, 1438869961.225, 25, 18492, 459007, 623103},
        {"jhiccup-v0", 46, 80, 1438869961.225, 34, 25439, 1209008127, 1234173951},
        {"jhiccup-v1", 0, 1e9, 1438867590.285, 88, 65964, 1829765119, 1888485375},
        {"jhiccup-v1", 5, 20, 1438867590.285, 15, 11213, 1019740159, 1032323071},
        {"jhiccup-v1", 50, 80, 1438867590.285, 29, 22630, 1871708159, 1888485375},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_FREE char *path = wb_strf(DATA "%s.hlog", rows[i].file);
        WB_AUTO_FREE char *text = NULL;
        const char *texts[1];
        size_t n;
        wb_json *doc, *out;
        assert_int_equal(wb_file_read(path, 1 << 20, &text, &n, NULL), 0);
        texts[0] = text;
        doc = document_of(texts, 1);
        wb_json_set_real(doc, "from_s", rows[i].from);
        wb_json_set_real(doc, "to_s", rows[i].to);
        out = answer_to(doc);
        assert_int_equal(wb_json_int_or(out, "entries", 0), rows[i].entries);
        assert_int_equal(wb_json_int_or(out, "count", 0), rows[i].count);
        assert_int_equal(wb_json_int_or(out, "max", 0), rows[i].max);
        assert_int_equal(percentile(out, "99.9"), rows[i].p999);
        assert_true(fabs(wb_json_real_or(out, "start_time", 0) - rows[i].start) < 1e-3);
        assert_int_equal(wb_json_len(wb_json_get(out, "bad_lines")), 0);
        wb_json_free(out);
        wb_json_free(doc);
    }
}

/* ---- values and records ---- */

static void percentile_rule(void **state)
{
    struct wb_buf b = WB_BUF_INIT(1 << 20);
    wb_json *out = answer("{\"digits\":3,\"values\":[1,2,2,2,2],\"percentiles\":[25,20,0,100]}");

    assert_int_equal(percentile(out, "25"), 2); /* not 1, as where ranks are rounded */
    assert_int_equal(percentile(out, "20"), 1);
    assert_int_equal(percentile(out, "0"), 1);
    assert_int_equal(percentile(out, "100"), 2);
    wb_json_free(out);
    for (int most = 1000; most <= 10000; most += 9000) {
        wb_buf_clear(&b);
        wb_buf_adds(&b, "{\"percentiles\":[50,99.94,100],\"values\":[1");
        for (int i = 2; i <= most; i++)
            wb_buf_addf(&b, ",%d", i);
        wb_buf_adds(&b, "]}");
        out = answer(wb_buf_str(&b));
        assert_int_equal(percentile(out, "50"), most == 1000 ? 500 : 5003);
        assert_int_equal(percentile(out, "99.94"), most == 1000 ? 1000 : 9999);
        assert_int_equal(wb_json_int_or(out, "max", 0), most);
        assert_true(fabs(wb_json_real_or(out, "mean", 0) - (most + 1) / 2.0) < 1e-9);
        wb_json_free(out);
    }
    wb_buf_release(&b);
}

static void overflow_is_counted(void **state)
{
    wb_json *out = answer("{\"lowest\":1,\"highest\":1000,\"digits\":2,"
                          "\"records\":[[10,5],[5000,2]]}");

    assert_int_equal(wb_json_int_or(out, "count", 0), 7);
    assert_int_equal(wb_json_int_or(out, "overflow", 0), 2);
    assert_int_equal(wb_json_int_or(out, "max", 0), 5000);
    wb_json_free(out);
}

/* One value of 100 where one was expected every 10: 90, 80, ... 10 were never measured. */
static void corrected_values(void **state)
{
    wb_json *out = answer("{\"lowest\":1,\"highest\":100000,\"digits\":3,\"expected_interval\":10,"
                          "\"records\":[[5,90],[100,2],[10,3],[19,1],[20,1]]}");
    const wb_json *c = wb_json_get(out, "corrected");

    assert_int_equal(wb_json_int_or(out, "count", 0), 97);
    /* 2 * 9 for the long ones, 10 for the one of 20, none for 19 and 10 */
    assert_int_equal(wb_json_int_or(c, "count", 0), 97 + 18 + 1);
    assert_int_equal(wb_json_int_or(wb_json_get(c, "percentiles"), "90", 0), 50);
    assert_int_equal(percentile(out, "90"), 5);
    assert_int_equal(wb_json_int_or(c, "max", 0), 100);
    wb_json_free(out);
}

static void nothing(void **state)
{
    static const char *const texts[] = {
        "{\"values\":[]}",       "{\"records\":[]}",
        "{\"records\":[[5,0]]}", "{\"base64\":[]}",
        "{\"log\":\"\"}",        "{\"log\":\"#[Histogram log format version 1.3]\\n\"}",
        "{\"logs\":[]}"};
    static const char *const keys[] = {"min", "max", "mean", "stddev", "percentiles"};

    for (size_t i = 0; i < WB_LEN(texts); i++) {
        wb_json *out = answer(texts[i]);
        assert_int_equal(wb_json_int_or(out, "count", -1), 0);
        for (size_t k = 0; k < WB_LEN(keys); k++) {
            WB_AUTO_FREE char *reason = wb_strf("%s_reason", keys[k]);
            assert_int_equal(wb_json_type(wb_json_get(out, keys[k])), WB_JSON_NULL);
            assert_string_equal(wb_json_str_or(out, reason, ""), "no samples");
        }
        wb_json_free(out);
    }
}

/* ---- encoded ones ---- */

static char *encoded(int64_t lowest, int64_t highest, int digits, const int64_t *v, size_t n)
{
    struct wb_buf b = WB_BUF_INIT(1 << 20);
    struct wb_hist h;

    assert_int_equal(wb_hist_init(&h, lowest, highest, digits, NULL), 0);
    for (size_t i = 0; i < n; i++)
        wb_hist_record(&h, v[i]);
    wb_hist_encode(&h, &b);
    wb_hist_release(&h);
    return wb_buf_take(&b);
}

static void merged_base64(void **state)
{
    static const int64_t a[] = {1000, 2000, 3000}, b[] = {1000000, 70};
    WB_AUTO_FREE char *fine = encoded(1, 3600000000000, 3, a, 3);
    WB_AUTO_FREE char *coarse = encoded(1, 2000000, 2, b, 2);
    wb_json *doc = wb_json_object(), *list = wb_json_array(), *out;

    wb_json_push(list, wb_json_str(fine));
    wb_json_push(list, wb_json_str(coarse));
    wb_json_set(doc, "base64", list);
    out = answer_to(doc);
    assert_int_equal(wb_json_int_or(out, "entries", 0), 2);
    assert_int_equal(wb_json_int_or(out, "count", 0), 5);
    assert_int_equal(wb_json_int_or(out, "min", 0), 70);
    assert_int_equal(percentile(out, "50"), 2007); /* 2 digits: 8 in a bucket from 1024 on */
    wb_json_free(out);

    wb_json_set_int(doc, "lowest", 1);
    wb_json_set_int(doc, "highest", 5000);
    wb_json_set_int(doc, "digits", 3);
    out = answer_to(doc);
    assert_int_equal(percentile(out, "50"), 2000);
    assert_int_equal(wb_json_int_or(out, "overflow", 0), 1);
    wb_json_free(out);
    wb_json_free(doc);

    /* One text alone keeps its own precision. */
    doc = wb_json_object();
    wb_json_set_str(doc, "base64", coarse);
    out = answer_to(doc);
    assert_int_equal(percentile(out, "100"), 1003519);
    wb_json_free(out);
    wb_json_free(doc);
}

/* The four-worker example: percentiles are merged, never averaged. */
static void merging_is_not_averaging(void **state)
{
    struct wb_rng r;
    wb_json *doc = wb_json_object(), *list = wb_json_array(), *out;
    int64_t all[4000], v[1000];
    size_t beyond = 0;

    wb_rng_seed(&r, 1);
    for (size_t w = 0; w < 4; w++) {
        WB_AUTO_FREE char *text = NULL;
        for (size_t i = 0; i < 1000; i++)
            all[1000 * w + i] = v[i] =
                (int64_t)wb_rng_below(&r, w == 3 ? 50000 : 1000) + (w == 3 ? 1000 : 0);
        text = encoded(1, 3600000000, 3, v, 1000);
        wb_json_push(list, wb_json_str(text));
    }
    wb_json_set(doc, "base64", list);
    out = answer_to(doc);
    for (size_t i = 0; i < 4000; i++)
        beyond += all[i] > percentile(out, "99");
    assert_true(beyond <= 40 && beyond > 20);
    wb_json_free(out);
    wb_json_free(doc);
}

/* ---- logs ---- */

static void times_of_logs(void **state)
{
    static const int64_t v[] = {5};
    WB_AUTO_FREE char *h = encoded(1, 1000, 3, v, 1);
    static const struct {
        const char *head;
        double first, second; /* stamps */
        double start;
    } rows[] = {
        {"#[StartTime: 1700000000.5 (seconds since epoch), x]\n", 0.1, 10.1, 1700000000.5},
        {"#[StartTime: 1700000000.5]\n", 1700000000.6, 1700000010.6, 1700000000.5},
        {"#[BaseTime: 1600000000 (seconds since epoch)]\n#[StartTime: 1600000100]\n", 100.1, 110.1,
         1600000100},
        {"", 1700000000.6, 1700000010.6, 1700000000.6},
        {"#[BaseTime: 1600000000]\n", 0.5, 10.5, 1600000000.5},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_FREE char *log = wb_strf("%s%.3f,1,5,%s\r\nTag=x,%.3f,1,5,%s\n", rows[i].head,
                                         rows[i].first, h, rows[i].second, h);
        wb_json *doc = wb_json_object(), *out;
        wb_json_set_str(doc, "log", log);
        wb_json_set_real(doc, "to_s", 10);
        out = answer_to(doc);
        assert_int_equal(wb_json_int_or(out, "entries", 0), 1);
        assert_true(fabs(wb_json_real_or(out, "start_time", 0) - rows[i].start) < 1e-3);
        wb_json_free(out);
        wb_json_set_real(doc, "to_s", 11);
        wb_json_set_real(doc, "from_s", 5);
        out = answer_to(doc);
        assert_int_equal(wb_json_int_or(out, "entries", 0), 1);
        assert_int_equal(wb_json_len(wb_json_get(out, "tags")), 1);
        wb_json_free(out);
        wb_json_free(doc);
    }
}

static void bad_lines(void **state)
{
    static const int64_t v[] = {5};
    static const struct {
        const char *line, *message;
    } rows[] = {
        {"what is this", "an entry needs start, length, maximum and histogram"},
        {"0.1,1,5", "an entry needs"},
        {"Tag=x", "nothing follows the tag"},
        {"Tag=,0.1,1,5,HISTFAAA", "a tag of 0 characters"},
        {"x,1,5,HISTFAAA", "the start is no number"},
        {"0.1,1e999,5,HISTFAAA", "the length is no number"},
        {"0.1,1,nan,HISTFAAA", "the maximum is no number"},
        {"0.1,1,5,HISTFAAA", "histogram: "},
        {"0.1,1,5,", "histogram: base64 of 0 characters"},
        {"0.1,1,5,H!ST", "histogram: no base64"},
        {"#[StartTime: yesterday]", "StartTime is no time"},
        {"#[BaseTime: 1e400]", "BaseTime is no time"},
    };
    WB_AUTO_FREE char *h = encoded(1, 1000, 3, v, 1);

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_FREE char *log = wb_strf("#[x]\n0.1,1,5,%s\n\n%s\n1.1,1,5,%s", h, rows[i].line, h);
        wb_json *doc = wb_json_object(), *out;
        const wb_json *bad;
        wb_json_set_str(doc, "log", log);
        out = answer_to(doc);
        assert_int_equal(wb_json_int_or(out, "entries", 0), 2);
        assert_int_equal(wb_json_int_or(out, "count", 0), 2);
        bad = wb_json_at(wb_json_get(out, "bad_lines"), 0);
        assert_int_equal(wb_json_len(wb_json_get(out, "bad_lines")), 1);
        assert_int_equal(wb_json_int_or(bad, "line", 0), 4);
        if (strncmp(wb_json_str_or(bad, "message", ""), rows[i].message, strlen(rows[i].message)) !=
            0)
            fail_msg("%s: %s", rows[i].line, wb_json_str_or(bad, "message", ""));
        wb_json_free(out);
        wb_json_free(doc);
    }
}

/* Any change of a character leaves the count of the lines that can be read, or fewer. */
static void damaged_logs(void **state)
{
    WB_AUTO_FREE char *text = NULL;
    struct wb_rng r;
    size_t n;

    assert_int_equal(wb_file_read(DATA "jhiccup-v1.hlog", 1 << 20, &text, &n, NULL), 0);
    wb_rng_seed(&r, 3);
    for (int t = 0; t < 300; t++) {
        size_t at = (size_t)wb_rng_below(&r, n);
        char kept = text[at];
        wb_json *doc = wb_json_object(), *out;
        text[at] = (char)(1 + wb_rng_below(&r, 127));
        wb_json_set(doc, "log", wb_json_strn(text, n));
        out = answer_to(doc);
        assert_true(wb_json_int_or(out, "entries", 0) +
                        (int64_t)wb_json_len(wb_json_get(out, "bad_lines")) >=
                    86);
        wb_json_free(out);
        wb_json_free(doc);
        text[at] = kept;
    }
}

static void refusals(void **state)
{
    static const struct {
        const char *text, *begin;
    } cases[] = {
        {"[]", "the input must be an object"},
        {"{}", "the input must have log"},
        {"{\"values\":[1],\"records\":[]}", "/values: stands beside records"},
        {"{\"values\":[1.5]}", "/values/0: must be a whole number"},
        {"{\"values\":[-1]}", "/values/0: must be a whole number"},
        {"{\"values\":[1e30]}", "/values/0: must be a whole number"},
        {"{\"records\":[[1]]}", "/records/0: must be [value, count]"},
        {"{\"records\":[[1,-1]]}", "/records/0/1: must be"},
        {"{\"records\":5}", "/records: must be a list"},
        {"{\"values\":[1],\"digits\":6}", "/digits: must be"},
        {"{\"values\":[1],\"lowest\":100,\"highest\":150}", "/highest: histogram of"},
        {"{\"values\":[1],\"percentiles\":[101]}", "/percentiles/0: must be"},
        {"{\"values\":[1],\"expected_interval\":0}", "/expected_interval: must be"},
        {"{\"values\":[1000000000000],\"expected_interval\":1}",
         "/expected_interval: 1 is so small"},
        {"{\"base64\":5}", "/base64: must be a text"},
        {"{\"base64\":[5]}", "/base64/0: must be a text"},
        {"{\"base64\":[\"HIST\"]}", "/base64/0: histogram: "},
        {"{\"base64\":[],\"digits\":3}", "/highest: is missing"},
        {"{\"log\":5}", "/log: must be the text"},
        {"{\"log\":\"hello\"}", "line 1: this is no HDR log"},
        {"{\"logs\":5}", "/logs: must be a list"},
    };

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_JSON wb_json *in = parsed(cases[i].text);
        struct wb_err err = WB_ERR_INIT;
        wb_json *out = NULL;
        assert_int_equal(wb_stats_histogram(in, &out, &err), -WB_INVALID);
        assert_null(out);
        if (strncmp(err.root, cases[i].begin, strlen(cases[i].begin)) != 0)
            fail_msg("%s: %s", cases[i].text, err.root);
    }
}

/* ---- files ---- */

static void files_by_content(void **state)
{
    static const int64_t v[] = {5, 6};
    WB_AUTO_FREE char *h = encoded(1, 1000, 3, v, 2);
    WB_AUTO_FREE char *log = wb_strf("0.1,1,5,%s\n", h);
    WB_AUTO_FREE char *lines = wb_strf("%s\n%s\n", h, h);
    WB_AUTO_FREE char *list = wb_strf("[\"%s\"]", h);
    const struct {
        const char *texts[2];
        size_t n;
        int64_t count;
    } rows[] = {{{log}, 1, 2},
                {{log, log}, 2, 4},
                {{lines}, 1, 4},
                {{list}, 1, 2},
                {{"{\"values\":[1,2,3]}"}, 1, 3},
                {{"values\n1\n2\n"}, 1, 2},
                {{"value,count\n1,5\n2,7\n"}, 1, 12}};
    struct wb_topic_file mixed[2] = {{.path = "a", .text = log, .n = strlen(log)},
                                     {.path = "b", .text = "{}", .n = 2}};
    struct wb_err err = WB_ERR_INIT;
    wb_json *doc = NULL;

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        wb_json *in = document_of(rows[i].texts, rows[i].n), *out = answer_to(in);
        assert_int_equal(wb_json_int_or(out, "count", -1), rows[i].count);
        wb_json_free(out);
        wb_json_free(in);
    }
    assert_true(wb_histogram_read(mixed, 2, NULL, &doc, &err) < 0);
    assert_string_equal(err.root, "b is no HDR log: only logs are merged");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_log),
        cmocka_unit_test(published_tags),
        cmocka_unit_test(older_forms),
        cmocka_unit_test(percentile_rule),
        cmocka_unit_test(overflow_is_counted),
        cmocka_unit_test(corrected_values),
        cmocka_unit_test(nothing),
        cmocka_unit_test(merged_base64),
        cmocka_unit_test(merging_is_not_averaging),
        cmocka_unit_test(times_of_logs),
        cmocka_unit_test(bad_lines),
        cmocka_unit_test(damaged_logs),
        cmocka_unit_test(refusals),
        cmocka_unit_test(files_by_content),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
