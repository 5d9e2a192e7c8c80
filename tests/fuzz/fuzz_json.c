/*
 * JSON, CSV and price books from anywhere: what is taken is written and read back as the same
 * value, and every topic of `stats` and the reports of a campaign answer or refuse, never anything
 * else.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/book.h"
#include "server/analysis/campaign_scaling.h"
#include "server/analysis/compare.h"
#include "server/analysis/explain.h"
#include "server/analysis/gate.h"
#include "server/analysis/remarks.h"
#include "server/analysis/topics.h"
#include "server/analysis/trend.h"
#include "server/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int ok)
{
    if (!ok)
        abort();
}

static void check_round_trip(const wb_json *j)
{
    struct wb_buf first = WB_BUF_INIT(64u << 20), again = WB_BUF_INIT(64u << 20);
    wb_json *back = NULL;

    wb_json_canonical(j, &first);
    require(wb_json_parse(wb_buf_str(&first), first.len, &back, NULL) == 0);
    require(wb_json_equal(j, back));
    wb_json_canonical(back, &again);
    require(first.len == again.len);
    wb_json_free(back);
    wb_buf_release(&first);
    wb_buf_release(&again);
}

/* An answer is owned, printable and comes from rc 0 only; a refusal has a text. */
static void check_answer(int rc, wb_json *answer, const struct wb_err *err,
                         void (*print)(const wb_json *, int, struct wb_buf *))
{
    struct wb_buf text = WB_BUF_INIT(64u << 20);

    require((rc == 0) == (answer != NULL));
    require(rc == 0 || err->root[0] != '\0');
    if (answer != NULL) {
        check_round_trip(answer);
        if (print != NULL)
            print(answer, 80, &text);
    }
    wb_json_free(answer);
    wb_buf_release(&text);
}

/* Every topic of `stats`, from the text as a file, so that its own reader is tried as well. */
static void ask_topics(const char *text, size_t n)
{
    const struct wb_topic_file file = {.path = "-", .text = text, .n = n};

    for (const struct wb_topic *t = wb_topics; t->name != NULL; t++) {
        struct wb_err err = WB_ERR_INIT;
        wb_json *doc = NULL, *answer = NULL;
        int rc = wb_topic_read(t, &file, 1, NULL, &doc, &err);
        require((rc == 0) == (doc != NULL));
        if (rc < 0)
            continue;
        rc = t->answer(doc, &answer, &err);
        check_answer(rc, answer, &err, t->print);
        wb_json_free(doc);
    }
}

static void ask_campaign(const wb_json *j)
{
    const wb_json *plan = wb_json_get(j, "plan"), *summaries = wb_json_get(j, "summaries");
    const struct wb_scaling_question question = {NULL, NULL};
    struct wb_err err = WB_ERR_INIT;
    wb_json *answer = NULL;
    int rc = wb_campaign_report(plan, summaries, &answer, &err);

    check_answer(rc, answer, &err, wb_campaign_report_print);
    answer = NULL;
    rc = wb_campaign_scaling(plan, summaries, &question, &answer, &err);
    check_answer(rc, answer, &err, wb_campaign_scaling_print);
}

static void ask_histories(const wb_json *j)
{
    const wb_json *summaries = wb_json_get(j, "summaries");
    const char *key = wb_json_str_or(wb_json_at(summaries, 0), "series_key", "");
    const struct wb_trend_question q = {.series = key,
                                        .annotations = wb_json_get(j, "annotations"),
                                        .previous = wb_json_get(j, "previous"),
                                        .min_percent = NAN};
    const struct wb_gate_rules rules = {.fail_on_inconclusive = true};
    struct wb_buf text = WB_BUF_INIT(64u << 20);
    struct wb_err err = WB_ERR_INIT;
    wb_json *answer = NULL;
    int rc = wb_trend(summaries, &q, &answer, &err);

    check_answer(rc, answer, &err, wb_trend_print);
    answer = NULL;
    rc = wb_findings(summaries, &q, &answer, &err);
    check_answer(rc, answer, &err, wb_findings_print);
    answer = NULL;
    (void)wb_gate(j, &rules, &answer);
    wb_gate_junit(answer, &text);
    wb_gate_markdown(answer, &text);
    wb_gate_github(answer, &text);
    check_answer(0, answer, &err, wb_gate_print);
    wb_buf_release(&text);
}

/* The summaries as two sides, each run with the document itself as environment and result. */
static void ask_explanations(const wb_json *j)
{
    enum { RUNS = 8 };
    const wb_json *summaries = wb_json_get(j, "summaries"), *marks = wb_json_get(j, "annotations");
    const struct wb_explain_question q = {"m", "higher", 2};
    struct wb_explain_run runs[2][RUNS];
    struct wb_explain_side sides[2] = {
        {.name = "a", .arm = wb_json_get(j, "plan"), .runs = runs[0]},
        {.name = "b", .arm = j, .runs = runs[1]}};
    struct wb_err err = WB_ERR_INIT;
    wb_json *answer = NULL;
    int rc;

    for (size_t i = 0; i < wb_json_len(summaries) && i < (size_t)2 * RUNS; i++) {
        struct wb_explain_side *s = &sides[i % 2];
        const wb_json *run = wb_json_at(summaries, i);
        runs[i % 2][s->n++] = (struct wb_explain_run){run, i > 3 ? run : j, i > 5 ? j : run};
    }
    rc = wb_explain(sides, &q, &answer, &err);
    check_answer(rc, answer, &err, wb_explain_print);
    (void)wb_remark_between(marks, wb_json_at(summaries, 0), wb_json_at(summaries, 1));
    wb_json_free(wb_remarks_on(marks, "c"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    WB_AUTO_FREE char *text = wb_calloc(size + 1, 1);
    struct wb_err err = WB_ERR_INIT;
    struct wb_book book = {0};
    wb_json *j = NULL;

    memcpy(text, data, size);
    if (wb_json_parse(text, size, &j, &err) == 0) {
        check_round_trip(j);
        ask_campaign(j);
        ask_histories(j);
        ask_explanations(j);
        wb_json_free(j);
    }
    ask_topics(text, size);
    if (wb_book_parse("book", text, size, &book, &err) == 0)
        wb_book_release(&book);
    return 0;
}
