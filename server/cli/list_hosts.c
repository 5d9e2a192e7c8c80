#include "server/cli/list_hosts.h"

#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "server/analysis/text.h"
#include "server/base/file.h"
#include "server/base/table.h"
#include "server/cli/records.h"
#include "server/engine/host.h"

static void set_state(wb_json *o, const char *state, const struct wb_err *why)
{
    wb_json_set_bool(o, "here", true);
    wb_json_set_str(o, "state", state);
    wb_json_set_str(o, "text", why ? why->root : NULL);
}

/* Nothing is locked or written: a run may begin just now. */
static void look_here(wb_json *o)
{
    struct wb_err err = WB_ERR_INIT;

    if (!wb_path_exists(WB_HOST_DIR)) /* nobody has ever used it */
        set_state(o, "free", NULL);
    else if (wb_quarantine_check(WB_HOST_DIR, &err) < 0)
        set_state(o, err.code == WB_CONFLICT ? "quarantined" : "unknown", &err);
    else if (wb_host_look(WB_HOST_DIR, &err) < 0)
        set_state(o, err.code == WB_CONFLICT ? "busy" : "unknown", &err);
    else
        set_state(o, "free", NULL);
}

/* A machine that changed its class is there once for each; it does one thing all the same. */
static void add_here(wb_json *items)
{
    struct utsname name;
    bool found = false;
    wb_json *o;

    if (uname(&name) < 0)
        return;
    for (size_t i = 0; i < wb_json_len(items); i++) {
        if (strcmp(wb_json_str_or(wb_json_at(items, i), "id", ""), name.nodename) != 0)
            continue;
        look_here(wb_json_at(items, i));
        found = true;
    }
    if (found)
        return;
    o = wb_json_object();
    wb_json_set_str(o, "id", name.nodename);
    wb_json_set_int(o, "runs", 0);
    wb_json_set_int(o, "ok", 0);
    look_here(o);
    wb_json_push(items, o);
}

static void print(const struct wb_cli *cli, const wb_json *items)
{
    struct wb_buf out = WB_BUF_INIT(4u << 20);
    struct wb_table *t = wb_table_new();

    wb_table_column(t, "host", WB_LEFT);
    wb_table_column(t, "class", WB_LEFT);
    wb_table_column(t, "runs", WB_RIGHT);
    wb_table_column(t, "ok", WB_RIGHT);
    wb_table_column(t, "newest (UTC)", WB_RIGHT);
    wb_table_column(t, "now", WB_RIGHT);
    for (size_t i = 0; i < wb_json_len(items); i++) {
        const wb_json *o = wb_json_at(items, i);
        const char *state = wb_json_str_or(o, "state", "-");
        struct wb_buf when = WB_BUF_INIT(64);

        wb_cli_when(wb_json_str_or(o, "last_at", ""), &when);
        wb_table_row(t);
        wb_table_cell(t, "%s", wb_json_str_or(o, "id", ""));
        wb_table_cell(t, "%s", wb_json_str_or(o, "host_class", "-"));
        wb_table_cell(t, "%lld", (long long)wb_json_int_or(o, "runs", 0));
        wb_table_cell(t, "%lld", (long long)wb_json_int_or(o, "ok", 0));
        wb_table_cell(t, "%s", wb_buf_str(&when));
        wb_table_cell(t, "%s", state);
        wb_table_tint(t, !strcmp(state, "free") || !strcmp(state, "-") ? WB_PLAIN : WB_CAUTION);
        wb_buf_release(&when);
    }
    wb_table_color(t, cli->color);
    wb_table_print(t, cli->width, &out);
    wb_table_free(t);
    for (size_t i = 0; i < wb_json_len(items); i++) {
        const char *text = wb_json_str_or(wb_json_at(items, i), "text", NULL);
        struct wb_buf plain = WB_BUF_INIT(65536);

        if (!text)
            continue;
        wb_buf_addf(&plain, "%s: ", wb_json_str_or(wb_json_at(items, i), "id", ""));
        wb_cli_plain(text, strlen(text), &plain);
        wb_buf_addc(&out, '\n');
        wb_text_wrapped(&out, "", 0, wb_buf_str(&plain), cli->width);
        wb_buf_release(&plain);
        break; /* the same for each class it had */
    }
    wb_cli_print(&out);
}

void wb_cli_print_machines(const struct wb_cli *cli, const wb_json *items)
{
    struct wb_buf out = WB_BUF_INIT(4u << 20);
    struct wb_table *t = wb_table_new();

    wb_table_column(t, "host", WB_LEFT);
    wb_table_column(t, "class", WB_LEFT);
    wb_table_column(t, "now", WB_LEFT);
    wb_table_column(t, "campaign", WB_LEFT);
    for (size_t i = 0; i < wb_json_len(items); i++) {
        const wb_json *o = wb_json_at(items, i);
        const char *state = wb_json_str_or(o, "state", "-");

        wb_table_row(t);
        wb_table_cell(t, "%s", wb_json_str_or(o, "id", ""));
        wb_table_cell(t, "%s", wb_json_str_or(o, "class", "-"));
        wb_table_cell(t, "%s", state);
        wb_table_tint(t, strcmp(state, "free") != 0 ? WB_CAUTION : WB_PLAIN);
        wb_table_cell(t, "%s", wb_json_str_or(o, "campaign", "-"));
    }
    wb_table_color(t, cli->color);
    wb_table_print(t, cli->width, &out);
    wb_table_free(t);
    wb_cli_print(&out);
}

int wb_cli_list_hosts(const struct wb_cli *cli, struct wb_store *s, const struct wb_query *q,
                      struct wb_err *err)
{
    wb_json *items = NULL, *doc;
    int rc = wb_store_hosts(s, q, &items, err);

    if (rc < 0)
        return rc;
    add_here(items);
    if (!cli->json) {
        print(cli, items);
        wb_json_free(items);
        return 0;
    }
    doc = wb_json_object();
    wb_json_set(doc, "items", items);
    wb_json_set_str(doc, "next", NULL);
    wb_cli_answer(cli, doc, "items");
    return 0;
}
