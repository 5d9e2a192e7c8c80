/* What records say, over REST: comparisons, curves, prices, explanations, histories, findings. The
 * answers are those of the command line (analysis/inquiry.h), computed by the thread that answers
 * and kept with those of the command line. */
#include "server/http/analyses.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/cache.h"
#include "server/analysis/inquiry.h"
#include "server/base/clock.h"
#include "server/base/units.h"

#define API "/api/v1"
#define REFS_MAX 20 /* others of one comparison */
#define REF_MAX 600 /* characters */
#define BOOK_MAX (1u << 20)
#define NOT_COMPARABLE "the figures do not compare"

/* Answers that were kept are looked for in the state folder. */
struct wb_inquiry wb_http_inquiry(const struct wb_context *c)
{
    WB_AUTO_FREE char *dir = wb_strf("%s/answers", c->service->state_dir);

    return (struct wb_inquiry){c->store, wb_cache_open(dir)};
}

/* The answer of an inquiry, which ends here; out is taken, NULL after a failure. */
void wb_http_inquiry_answer(const struct wb_request *q, struct wb_answer *a, struct wb_inquiry *in,
                            int rc, wb_json *out, const struct wb_err *err)
{
    wb_cache_close(in->cache);
    in->cache = NULL;
    if (rc == 0)
        wb_answer_json(q, a, 200, out);
    else if (err->code == WB_CONFLICT && strstr(err->root, NOT_COMPARABLE) != NULL)
        wb_answer_problem(q, a, 409, "not-comparable", err->root, NULL);
    else
        wb_answer_error(q, a, err);
}

static double real_of(const struct wb_request *q, const char *key)
{
    const char *text = wb_request_query(q, key);
    double v = NAN;

    return text != NULL && wb_parse_real(text, -1e300, 1e300, &v, NULL) == 0 ? v : NAN;
}

static bool truth_of(const struct wb_request *q, const char *key)
{
    const char *text = wb_request_query(q, key);

    return text != NULL && strcmp(text, "true") == 0;
}

/* ---- comparisons ---- */

static void compare(struct wb_context *c, const struct wb_request *q, struct wb_answer *a,
                    const struct wb_strv *refs, const struct wb_compare_question *question)
{
    struct wb_inquiry in = wb_http_inquiry(c);
    struct wb_err err = WB_ERR_INIT;
    wb_json *report = NULL;
    int rc = wb_inquiry_compare(&in, refs->v, refs->n, question, &report, &err);

    if (rc == 0) {
        wb_json *others = wb_json_array();

        for (size_t i = 1; i < refs->n; i++)
            wb_json_push(others, wb_json_str(refs->v[i]));
        wb_json_set_str(report, "ref", refs->v[0]);
        wb_json_set(report, "others", others);
    }
    wb_http_inquiry_answer(q, a, &in, rc, report, &err);
}

static void get_comparison(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    const struct wb_compare_question question = {.metric = wb_request_query(q, "metric"),
                                                 .threshold_percent = real_of(q, "threshold"),
                                                 .force = truth_of(q, "force")};
    struct wb_strv refs = {0};

    wb_strv_add(&refs, wb_request_query(q, "ref"));
    for (size_t i = 0; i < q->nquery; i++)
        if (strcmp(q->query[i].key, "other") == 0)
            wb_strv_add(&refs, q->query[i].value);
    compare(c, q, a, &refs, &question);
    wb_strv_release(&refs);
}

static const struct wb_shape comparison_body_rows[] = {
    {"ref", WB_S_TEXT, WB_S_NEED, .min = 1, .max = REF_MAX,
     .help = "CAMPAIGN, CAMPAIGN/ARM, series:KEY@COMMIT or series:KEY@last"},
    {"others", WB_S_TEXT, WB_S_LIST, .min = 1, .max = REF_MAX, .most = REFS_MAX,
     .help = "Each is compared with ref; none: the contrasts of the campaign's own study"},
    {"metric", WB_S_TEXT, .min = 1, .max = 200, .help = "The one that decides"},
    {"threshold", WB_S_REAL, .min = 0, .max = 1000,
     .help = "Percent below which a difference does not matter; the study's unless given"},
    {"force", WB_S_BOOL, .help = "Compare also what does not compare; the answer has forced"},
    {0},
};
static const struct wb_form comparison_body = {
    .name = "ComparisonQuestion",
    .rows = comparison_body_rows,
    .example = "{\"ref\":\"series:7f3a@last\",\"others\":[\"cmp_01M8Q74H/docker x1\"],"
               "\"metric\":\"max.throughput\",\"threshold\":2}"};

static void post_comparison(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    WB_AUTO_JSON wb_json *body = wb_request_object(q, a, &comparison_body);
    const wb_json *others = wb_json_get(body, "others");
    struct wb_strv refs = {0};

    if (body == NULL)
        return;
    wb_strv_add(&refs, wb_json_str_or(body, "ref", ""));
    for (size_t i = 0; i < wb_json_len(others); i++)
        wb_strv_add(&refs, wb_json_string(wb_json_at(others, i)));
    compare(
        c, q, a, &refs,
        &(struct wb_compare_question){.metric = wb_json_str_or(body, "metric", NULL),
                                      .threshold_percent = wb_json_real_or(body, "threshold", NAN),
                                      .force = wb_json_bool_or(body, "force", false)});
    wb_strv_release(&refs);
}

/* ---- of one campaign ---- */

static void get_scaling(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    const struct wb_scaling_question question = {.metric = wb_request_query(q, "metric"),
                                                 .over = wb_request_query(q, "over")};
    struct wb_inquiry in = wb_http_inquiry(c);
    struct wb_err err = WB_ERR_INIT;
    wb_json *out = NULL;
    int rc = wb_inquiry_scaling(&in, q->args[0], &question, &out, &err);

    wb_http_inquiry_answer(q, a, &in, rc, out, &err);
}

static const struct wb_shape book_host_rows[] = {
    {"class", WB_S_TEXT, WB_S_NEED, .min = 1, .max = 200,
     .help = "As records have it; a '*' at the end stands for any rest"},
    {"per_hour", WB_S_REAL, .min = 0, .max = 1e12},
    {"purchase", WB_S_REAL, .min = 0, .max = 1e12},
    {"years", WB_S_REAL, .min = 0, .max = 1000},
    {"power_w", WB_S_REAL, .min = 0, .max = 1e9},
    {"per_kwh", WB_S_REAL, .min = 0, .max = 1e9},
    {0},
};
static const struct wb_form book_host = {.name = "PricedHost", .rows = book_host_rows};
static const struct wb_shape book_rows[] = {
    {"book", WB_S_TEXT, WB_S_NEED, .min = 1, .max = 100},
    {"date", WB_S_TEXT, WB_S_NEED, .min = 1, .max = 40, .help = "A day: 2026-11-01"},
    {"currency", WB_S_TEXT, WB_S_NEED, .min = 1, .max = 40},
    {"source", WB_S_TEXT, WB_S_NEED, .min = 1, .max = 400},
    {"hosts", WB_S_OBJECT, WB_S_NEED | WB_S_LIST, .least = 1, .most = 1000, .of = &book_host},
    {0},
};
static const struct wb_form book_form = {.name = "PriceBook", .rows = book_rows};
static const struct wb_shape value_body_rows[] = {
    {"book", WB_S_OBJECT, WB_S_NEED, .of = &book_form},
    {"others", WB_S_TEXT, WB_S_LIST, .min = 1, .max = REF_MAX, .most = REFS_MAX,
     .help = "Campaigns on other hosts, priced beside this one"},
    {"slo_p99_ms", WB_S_REAL, .min = 1e-6, .max = 3.6e6,
     .help = "What the p99 of a throughput must keep to count"},
    {"metric", WB_S_TEXT, .min = 1, .max = 200},
    {"hosts", WB_S_INT, .min = 1, .max = 10000, .help = "Database hosts that are paid for"},
    {"force", .type = WB_S_BOOL},
    {0},
};
static const struct wb_form value_body = {
    .name = "ValueQuestion",
    .rows = value_body_rows,
    .example = "{\"book\":{\"book\":\"lab-2026\",\"date\":\"2026-11-01\",\"currency\":\"EUR\","
               "\"source\":\"invoices\",\"hosts\":[{\"class\":\"*\",\"per_hour\":1.2}]}}"};

/* The reader of price books takes text; JSON is such text. */
static int read_book(const wb_json *j, struct wb_book *out, struct wb_err *err)
{
    struct wb_buf text = WB_BUF_INIT(BOOK_MAX);
    int rc;

    wb_json_line(j, &text);
    rc = wb_buf_check(&text, "book", err);
    if (rc == 0)
        rc = wb_book_parse("book", wb_buf_str(&text), text.len, out, err);
    wb_buf_release(&text);
    return rc;
}

static void post_value(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    WB_AUTO_JSON wb_json *body = wb_request_object(q, a, &value_body);
    const wb_json *others = wb_json_get(body, "others");
    struct wb_inquiry_value question;
    struct wb_book book = {0};
    struct wb_strv refs = {0};
    struct wb_err err = WB_ERR_INIT;
    struct wb_inquiry in;
    wb_json *out = NULL;
    int rc;

    if (body == NULL)
        return;
    question = (struct wb_inquiry_value){.book = &book,
                                         .metric = wb_json_str_or(body, "metric", NULL),
                                         .slo_p99_ms = wb_json_real_or(body, "slo_p99_ms", NAN),
                                         .hosts = wb_json_int_or(body, "hosts", 0),
                                         .force = wb_json_bool_or(body, "force", false)};
    wb_strv_add(&refs, q->args[0]);
    for (size_t i = 0; i < wb_json_len(others); i++)
        wb_strv_add(&refs, wb_json_string(wb_json_at(others, i)));
    in = wb_http_inquiry(c);
    rc = read_book(wb_json_get(body, "book"), &book, &err);
    if (rc == 0)
        rc = wb_inquiry_value(&in, refs.v, refs.n, &question, &out, &err);
    wb_http_inquiry_answer(q, a, &in, rc, out, &err);
    wb_book_release(&book);
    wb_strv_release(&refs);
}

static void get_explain(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    struct wb_inquiry in = wb_http_inquiry(c);
    struct wb_err err = WB_ERR_INIT;
    wb_json *out = NULL;
    int rc = wb_inquiry_explain(&in, wb_request_query(q, "a"), wb_request_query(q, "b"),
                                wb_request_query(q, "metric"), &out, &err);

    wb_http_inquiry_answer(q, a, &in, rc, out, &err);
}

/* ---- the table ---- */

static const struct wb_shape compare_query[] = {
    {"ref", WB_S_TEXT, WB_S_NEED, .min = 1, .max = REF_MAX,
     .help = "CAMPAIGN, CAMPAIGN/ARM, series:KEY@COMMIT or series:KEY@last"},
    {"other", WB_S_TEXT, WB_S_LIST, .min = 1, .max = REF_MAX, .most = REFS_MAX,
     .help = "Each is compared with ref; none: the contrasts of the campaign's own study"},
    {"metric", WB_S_TEXT, .min = 1, .max = 200, .help = "The one that decides"},
    {"threshold", WB_S_REAL, .min = 0, .max = 1000,
     .help = "Percent below which a difference does not matter"},
    {"force", WB_S_BOOL, .help = "Compare also what does not compare"},
    {0},
};
static const struct wb_shape scaling_query[] = {
    {"metric", WB_S_TEXT, .min = 1, .max = 200},
    {"over", WB_S_TEXT, .min = 1, .max = 200, .help = "'instances' or a factor with numbers"},
    {0},
};
static const struct wb_shape explain_query[] = {
    {"a", WB_S_TEXT, WB_S_NEED, .min = 1, .max = REF_MAX,
     .help = "CAMPAIGN/ARM, series:KEY@COMMIT, a campaign of one arm, or a run"},
    {"b", WB_S_TEXT, WB_S_NEED, .min = 1, .max = REF_MAX},
    {"metric", WB_S_TEXT, .min = 1, .max = 200, .help = "The figure that moved"},
    {0},
};

static const struct wb_shape frame_rows[] = {
    {"method", WB_S_TEXT, .flags = WB_S_NEED},
    {"analysis_version", WB_S_INT, .flags = WB_S_NEED},
    {"warnings", WB_S_OBJECT, .flags = WB_S_NEED | WB_S_LIST},
    {0},
};
static const struct wb_shape comparison_rows[] = {
    {"ref", WB_S_TEXT, .flags = WB_S_NEED},
    {"others", WB_S_TEXT, .flags = WB_S_NEED | WB_S_LIST},
    {"campaign", WB_S_TEXT, .flags = WB_S_NEED | WB_S_NULL},
    {"arms", WB_S_OBJECT, .flags = WB_S_NEED | WB_S_LIST},
    {"contrasts", WB_S_OBJECT, .flags = WB_S_NEED | WB_S_LIST,
     .help = "Effect, interval, p, q, verdict and its sentence, of each pair and metric"},
    {"method", WB_S_TEXT, .flags = WB_S_NEED},
    {"analysis_version", WB_S_INT, .flags = WB_S_NEED},
    {"warnings", WB_S_OBJECT, .flags = WB_S_NEED | WB_S_LIST},
    {0},
};
static const struct wb_form comparison = {
    .name = "Comparison", .rows = comparison_rows, .open = true};
static const struct wb_form scaling = {.name = "Scaling", .rows = frame_rows, .open = true};
static const struct wb_form value = {.name = "Value", .rows = frame_rows, .open = true};
static const struct wb_form explanation = {.name = "Explanation", .rows = frame_rows, .open = true};

const struct wb_route wb_routes_analyses[] = {
    {"GET", API "/comparisons", WB_SCOPE_READ, 0, get_comparison, "getComparison",
     "A reference against others: effects, intervals, verdicts in sentences", compare_query,
     .answer = &comparison, .status = 200, .also = {404, 409, 422}},
    {"POST", API "/comparisons", WB_SCOPE_READ, 0, post_comparison, "compare",
     "The same question as a body", .body = &comparison_body, .answer = &comparison, .status = 200,
     .also = {404, 409}},
    {"GET", API "/campaigns/{campaign}/scaling", WB_SCOPE_READ, 0, get_scaling, "getScaling",
     "How throughput grows with instances or a factor, and where it peaks", scaling_query,
     .answer = &scaling, .status = 200, .also = {409, 422}},
    {"POST", API "/campaigns/{campaign}/value", WB_SCOPE_READ, 0, post_value, "value",
     "What a million operations cost by a price book", .body = &value_body, .answer = &value,
     .status = 200, .also = {409}},
    {"GET", API "/explain", WB_SCOPE_READ, 0, get_explain, "explain",
     "What else differs between two arms or runs, ranked", explain_query, .answer = &explanation,
     .status = 200, .also = {404, 409, 413, 422}},
    {0},
};
