#include "server/http/filters.h"

#include <string.h>

const char *const wb_sort_words[] = {"started_at", "-started_at", "throughput", "-throughput",
                                     "p99",        "-p99",        NULL};

void wb_query_filters(const struct wb_request *q, struct wb_query *out)
{
    *out = (struct wb_query){.campaign = wb_request_query(q, "campaign"),
                             .study = wb_request_query(q, "study"),
                             .arm = wb_request_query(q, "arm"),
                             .outcome = wb_request_query(q, "outcome"),
                             .validity = wb_request_query(q, "validity"),
                             .series = wb_request_query(q, "series"),
                             .recipe = wb_request_query(q, "recipe"),
                             .version = wb_request_query(q, "version"),
                             .host_class = wb_request_query(q, "host_class"),
                             .since = wb_request_query(q, "since"),
                             .until = wb_request_query(q, "until")};
}

/* Everything that decides what is in the list and in which order, in a fixed order. */
static char *filter_text(const struct wb_request *q)
{
    static const char *const keys[] = {"campaign",   "study",  "arm",    "outcome",
                                       "validity",   "series", "recipe", "version",
                                       "host_class", "since",  "until",  "sort"};
    struct wb_buf b = WB_BUF_INIT(8 * WB_HTTP_TARGET_MAX);
    char *out;

    wb_buf_adds(&b, "runs");
    for (size_t i = 0; i < WB_LEN(keys); i++) {
        const char *v = wb_request_query(q, keys[i]);

        if (v)
            wb_buf_addf(&b, "&%s=%zu:%s", keys[i], strlen(v), v);
    }
    out = wb_buf_take(&b);
    return out;
}

bool wb_runs_query(struct wb_context *c, const struct wb_request *q, struct wb_answer *a,
                   struct wb_query *out, char **filter, char **cursor)
{
    const char *sort = wb_request_query(q, "sort"), *sent = wb_request_query(q, "cursor");
    struct wb_err err = WB_ERR_INIT;
    int64_t limit = 0;
    int rc = wb_request_int(q, "limit", 1, 500, 50, &limit, &err);

    wb_query_filters(q, out);
    if (!sort)
        sort = "-started_at";
    out->ascending = *sort != '-';
    sort += *sort == '-';
    out->order = !strcmp(sort, "throughput") ? WB_BY_THROUGHPUT
                 : !strcmp(sort, "p99")      ? WB_BY_P99
                                             : WB_BY_STARTED;
    out->limit = (size_t)limit;
    *filter = filter_text(q);
    if (rc == 0 && sent)
        rc = wb_cursor_read(c->service, *filter, sent, cursor, &err);
    out->cursor = *cursor;
    if (rc < 0)
        wb_answer_problem(q, a, 400, sent ? "cursor-invalid" : "validation", err.root, NULL);
    return rc == 0;
}
