#include "server/cli/history.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/cache.h"
#include "server/base/clock.h"
#include "server/base/table.h"
#include "server/base/units.h"
#include "server/record/annotate.h"

#define ANNOTATIONS_MAX (16u << 20)
#define DAY_NS 86400000000000LL
#define SINCE_MAX_DAYS 36500

/* "90d", "12h", or a day or time as it stands in records. Caller frees *out. */
static int since_time(const char *text, char **out, struct wb_err *err)
{
    size_t n = strlen(text);
    struct wb_buf b = WB_BUF_INIT(64);
    int64_t ns;

    if (n >= 10 && text[4] == '-' && text[7] == '-') {
        *out = wb_strdup(text);
        return 0;
    }
    if (n > 1 && text[n - 1] == 'd') {
        WB_AUTO_FREE char *days = wb_strndup(text, n - 1);
        if (wb_parse_int(days, 0, SINCE_MAX_DAYS, &ns, err) < 0)
            return wb_wrap(err, "--since");
        ns *= DAY_NS;
    } else if (wb_parse_duration(text, 0, SINCE_MAX_DAYS * DAY_NS, &ns, NULL) < 0) {
        return wb_fail(err, WB_INVALID,
                       "--since: '%s' is neither a time back (90d, 12h) nor a day (2026-11-30)",
                       text);
    }
    wb_format_time(wb_now_unix_ms(NULL) - ns / 1000000, &b);
    *out = wb_buf_take(&b);
    return 0;
}

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
        rc = since_time(o->since, &h->since, err);
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

/* ---- list series, list findings ---- */

static void print_series(const wb_json *list, int width, struct wb_buf *out)
{
    struct wb_table *t = wb_table_new();

    wb_table_column(t, "series", WB_RIGHT); /* not cut: it is there to be used */
    wb_table_column(t, "study", WB_LEFT);
    wb_table_column(t, "arm", WB_LEFT);
    wb_table_column(t, "recipe", WB_LEFT);
    wb_table_column(t, "nights", WB_RIGHT);
    wb_table_column(t, "runs", WB_RIGHT);
    wb_table_column(t, "newest (UTC)", WB_RIGHT);
    for (size_t i = 0; i < wb_json_len(list); i++) {
        const wb_json *s = wb_json_at(list, i);
        struct wb_buf when = WB_BUF_INIT(64);
        wb_cli_when(wb_json_str_or(s, "last_at", ""), &when);
        wb_table_row(t);
        wb_table_cell(t, "%.16s", wb_json_str_or(s, "id", ""));
        wb_table_cell(t, "%s", wb_json_str_or(s, "study", "-"));
        wb_table_cell(t, "%s", wb_json_str_or(s, "arm", "-"));
        wb_table_cell(t, "%s", wb_json_str_or(s, "recipe", "-"));
        wb_table_cell(t, "%lld", (long long)wb_json_int_or(s, "campaigns", 0));
        wb_table_cell(t, "%lld", (long long)wb_json_int_or(s, "runs", 0));
        wb_table_cell(t, "%s", wb_buf_str(&when));
        wb_buf_release(&when);
    }
    wb_table_print(t, width, out);
    wb_table_free(t);
}

static int fetch(const struct wb_cli *cli, struct wb_store *s, bool findings, wb_json **items,
                 struct wb_err *err)
{
    const struct wb_cli_history_options none = {0};
    struct wb_cli_history h;
    int rc = wb_cli_history_read(cli, s, &none, &h, err);

    if (rc == 0 && findings)
        rc = wb_findings(h.summaries, &h.q, items, err);
    else if (rc == 0)
        *items = wb_series_list(h.summaries);
    wb_cli_history_release(&h);
    return rc;
}

int wb_cli_list_history(const struct wb_cli *cli, const char *what, int64_t limit)
{
    bool findings = strcmp(what, "findings") == 0;
    struct wb_buf out = WB_BUF_INIT(64u << 20);
    struct wb_err err = WB_ERR_INIT;
    struct wb_store *s = NULL;
    WB_AUTO_JSON wb_json *items = NULL;
    WB_AUTO_JSON wb_json *kept = wb_json_array();
    int rc = wb_cli_open_store(cli, &s, &err);

    if (rc == 0)
        rc = fetch(cli, s, findings, &items, &err);
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
        (void)fprintf(stderr, "no %s\n", what);
    else if (findings)
        wb_findings_print(kept, cli->width, &out);
    else
        print_series(kept, cli->width, &out);
    wb_cli_print(&out);
    if (wb_json_len(kept) > 0)
        (void)fprintf(stderr, "'weighbridge trend SERIES' shows the history of one\n");
    return WB_EXIT_OK;
}
