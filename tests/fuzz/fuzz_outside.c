/*
 * Any bytes as a line of results of another program. What is taken is a whole record: its summary
 * follows from its result, and it is the same record each time.
 */
#include <stdlib.h>
#include <string.h>

#include "server/record/internal.h"
#include "server/record/outside.h"
#include "server/record/summary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_record(const struct wb_record *r, const char *id)
{
    wb_json *metrics = NULL;
    char day[11];

    if (!id || strcmp(wb_json_str_or(r->summary, "id", ""), r->run) != 0 ||
        strncmp(r->run, "run_I", 5) != 0 || !wb_day_text(r->started_ms, day))
        abort();
    if (!wb_record_is_outcome(wb_json_str_or(r->summary, "outcome", "")) ||
        strcmp(wb_json_str_or(r->summary, "validity", ""), "unverified") != 0)
        abort();
    if (wb_summary_metrics(r->result, &metrics, NULL) < 0 ||
        !wb_json_equal(metrics, wb_json_get(r->summary, "metrics")) || wb_json_len(metrics) == 0)
        abort();
    wb_json_free(metrics);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wb_record a = {0}, b = {0};
    struct wb_err err = WB_ERR_INIT;
    char *id = NULL, *again = NULL;
    char *line = wb_calloc(size + 1, 1); /* a NUL inside it does not end it */
    int rc;

    memcpy(line, data, size);
    rc = wb_outside_record("fuzz", line, size, &a, &id, &err);
    if (rc < 0) {
        if (rc != -err.code || !*err.root || a.run)
            abort();
    } else {
        check_record(&a, id);
        if (wb_outside_record("fuzz", line, size, &b, &again, &err) < 0 ||
            strcmp(a.run, b.run) != 0 || !wb_json_equal(a.summary, b.summary))
            abort();
    }
    wb_record_release(&a);
    wb_record_release(&b);
    free(id);
    free(again);
    free(line);
    return 0;
}
