#include "server/cli/history.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/cache.h"
#include "server/base/units.h"
#include "server/cli/filters.h"
#include "server/record/annotate.h"

#define ANNOTATIONS_MAX (16u << 20)

/* Those of the records behind those of the file. */
static int add_recorded(struct wb_store *s, struct wb_cli_history *h, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *recorded = NULL;
    int rc = wb_store_annotations(s, NULL, true, &recorded, err);

    if (h->annotations == NULL)
        h->annotations = wb_json_array();
    for (size_t i = 0; i < wb_json_len(recorded); i++)
        wb_json_push(h->annotations, wb_json_ref(wb_json_at(recorded, i)));
    return rc;
}

int wb_cli_history_read(const struct wb_cli *cli, struct wb_store *s,
                        const struct wb_cli_history_options *o, struct wb_cli_history *h,
                        struct wb_err *err)
{
    WB_AUTO_FREE char *cache_dir = wb_strf("%s/answers", cli->state_dir);
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
    if (rc == 0)
        rc = add_recorded(s, h, err);
    h->q.annotations = h->annotations;
    if (rc == 0)
        h->q.cache = wb_cache_open(cache_dir);
    return rc == 0 ? wb_store_list(s, NULL, &h->summaries, err) : rc;
}

void wb_cli_history_release(struct wb_cli_history *h)
{
    free(h->since);
    wb_json_free(h->annotations);
    wb_json_free(h->summaries);
    wb_cache_close(h->q.cache);
    *h = (struct wb_cli_history){0};
}

/* ---- list findings ---- */

static int fetch(const struct wb_cli *cli, struct wb_store *s, wb_json **items, struct wb_err *err)
{
    const struct wb_cli_history_options none = {0};
    struct wb_cli_history h;
    int rc = wb_cli_history_read(cli, s, &none, &h, err);

    if (rc == 0)
        rc = wb_findings(h.summaries, &h.q, items, err);
    wb_cli_history_release(&h);
    return rc;
}

int wb_cli_list_findings(const struct wb_cli *cli, int64_t limit)
{
    struct wb_buf out = WB_BUF_INIT(64u << 20);
    struct wb_err err = WB_ERR_INIT;
    struct wb_store *s = NULL;
    WB_AUTO_JSON wb_json *items = NULL;
    WB_AUTO_JSON wb_json *kept = wb_json_array();
    int rc = wb_cli_open_store(cli, &s, &err);

    if (rc == 0)
        rc = fetch(cli, s, &items, &err);
    wb_store_close(s);
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
