/*
 * JSON and CSV text from anywhere: what is taken is written and read back as the same value, and
 * the questions of `stats` and of a campaign's report are answered or refused, never anything else.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "server/analysis/compare.h"
#include "server/analysis/csv.h"

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

static void ask(const wb_json *j)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *answer = NULL;
    int rc = wb_stats_compare(j, &answer, &err);

    check_answer(rc, answer, &err, wb_stats_compare_print);
    answer = NULL;
    rc = wb_stats_adjust(j, &answer, &err);
    check_answer(rc, answer, &err, NULL);
    answer = NULL;
    rc = wb_campaign_report(wb_json_get(j, "plan"), wb_json_get(j, "summaries"), &answer, &err);
    check_answer(rc, answer, &err, wb_campaign_report_print);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *j = NULL, *columns = NULL, *question;

    if (wb_json_parse((const char *)data, size, &j, &err) == 0) {
        check_round_trip(j);
        ask(j);
        wb_json_free(j);
    }
    if (wb_csv_columns((const char *)data, size, &columns, &err) == 0) {
        question = wb_csv_compare(columns);
        ask(question);
        wb_json_free(question);
        wb_json_free(columns);
    }
    return 0;
}
