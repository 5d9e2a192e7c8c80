#include "server/cli/history.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/trend.h"
#include "server/base/units.h"
#include "server/cli/compare.h"
#include "server/cli/filters.h"

#define ANNOTATIONS_MAX (16u << 20)

int wb_cli_history_read(const struct wb_cli_history_options *o, struct wb_cli_history *h,
                        struct wb_err *err)
{
    int rc = 0;

    *h = (struct wb_cli_history){
        .q = {.metric = o->metric, .accept_noisy = o->accept_noisy, .min_percent = NAN}};
    if (o->threshold != NULL && wb_parse_percent(o->threshold, 0, 1000, &h->q.min_percent, err) < 0)
        return wb_wrap(err, "--threshold");
    if (o->since != NULL)
        rc = wb_cli_time("since", o->since, &h->since, err);
    h->q.since = h->since;
    if (rc == 0 && o->annotations != NULL)
        rc = wb_json_read_file(o->annotations, ANNOTATIONS_MAX, &h->annotations, err);
    if (rc == 0 && h->annotations != NULL && wb_json_type(h->annotations) != WB_JSON_ARRAY)
        rc = wb_fail(err, WB_INVALID, "%s: must be a list of {id, type}", o->annotations);
    h->q.annotations = h->annotations;
    return rc;
}

void wb_cli_history_release(struct wb_cli_history *h)
{
    free(h->since);
    wb_json_free(h->annotations);
    *h = (struct wb_cli_history){0};
}

/* ---- list findings ---- */

int wb_cli_list_findings(const struct wb_cli *cli, int64_t limit)
{
    struct wb_buf out = WB_BUF_INIT(64u << 20);
    struct wb_err err = WB_ERR_INIT;
    const struct wb_history_question q = {.min_percent = NAN};
    struct wb_inquiry j = {0};
    WB_AUTO_JSON wb_json *items = NULL;
    WB_AUTO_JSON wb_json *kept = wb_json_array();
    int rc = wb_cli_inquiry(cli, &j, &err);

    if (rc == 0)
        rc = wb_inquiry_findings(&j, NULL, &q, &items, &err);
    wb_cli_inquiry_release(&j);
    if (rc < 0)
        return wb_cli_fail(cli, &err);
    for (size_t i = 0; i < wb_json_len(items) && (limit == 0 || i < (size_t)limit); i++)
        wb_json_push(kept, wb_json_ref(wb_json_at(items, i)));
    if (cli->json) {
        wb_json *doc = wb_json_object();
        wb_json_set(doc, "items", wb_json_ref(kept));
        wb_json_set(doc, "next", wb_json_null());
        wb_cli_answer(cli, doc, "items");
        return WB_EXIT_OK;
    }
    if (wb_json_len(kept) == 0)
        (void)fprintf(stderr, "no findings\n");
    else
        wb_findings_print(kept, cli->width, &out);
    wb_cli_print(&out);
    if (wb_json_len(kept) > 0)
        (void)fprintf(stderr, "'weighbridge trend SERIES' shows the history of one\n");
    return WB_EXIT_OK;
}
