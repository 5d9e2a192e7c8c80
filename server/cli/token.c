/* `token [list|make|revoke]`: who may do what on a server. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/table.h"
#include "server/cli/commands.h"
#include "server/cli/records.h"
#include "server/cli/remote.h"

struct opts {
    struct wb_strv scopes;
    int64_t days;
};
static const struct wb_opt rows[] = {
    {"scope", 0, WB_OPT_LIST, offsetof(struct opts, scopes), "SCOPE", 0, 0,
     "make: what it may do (read); may be given again: runs:write, annotate, hosts:admin, "
     "tokens:admin"},
    {"days", 0, WB_OPT_INT, offsetof(struct opts, days), "N", 1, 3650, "make: it ends after them"},
    {0},
};

static void print_list(const struct wb_cli *cli, const wb_json *items, struct wb_buf *out)
{
    struct wb_table *t = wb_table_new();

    wb_table_column(t, "token", WB_RIGHT);
    wb_table_column(t, "name", WB_LEFT);
    wb_table_column(t, "scopes", WB_LEFT);
    wb_table_column(t, "used (UTC)", WB_RIGHT);
    wb_table_column(t, "ends (UTC)", WB_RIGHT);
    for (size_t i = 0; i < wb_json_len(items); i++) {
        const wb_json *one = wb_json_at(items, i), *scopes = wb_json_get(one, "scopes");
        static const char *const times[] = {"used_at", "expires_at"};
        struct wb_buf words = WB_BUF_INIT(4096);

        for (size_t k = 0; k < wb_json_len(scopes); k++)
            wb_buf_addf(&words, "%s%s", k ? " " : "", wb_json_string(wb_json_at(scopes, k)));
        wb_table_row(t);
        wb_table_cell(t, "%s", wb_json_str_or(one, "id", "?"));
        wb_table_cell(t, "%s", wb_json_str_or(one, "name", "?"));
        wb_table_cell(t, "%s", wb_buf_str(&words));
        for (size_t k = 0; k < WB_LEN(times); k++) {
            struct wb_buf when = WB_BUF_INIT(64);

            if (wb_json_str_or(one, times[k], NULL))
                wb_cli_when(wb_json_str_or(one, times[k], ""), &when);
            wb_table_cell(t, "%s", when.len ? wb_buf_str(&when) : k ? "never" : "not yet");
            wb_buf_release(&when);
        }
        wb_buf_release(&words);
    }
    wb_table_print(t, cli->width, out);
    wb_table_free(t);
}

static int list(const struct wb_cli *cli, struct wb_remote *r, struct wb_err *err)
{
    struct wb_buf out = WB_BUF_INIT(4u << 20);
    wb_json *doc = NULL;
    int rc = wb_remote_get(r, &doc, err, "/api/v1/tokens");

    if (rc < 0)
        return rc;
    if (cli->json) {
        wb_cli_answer(cli, doc, "items");
        return 0;
    }
    print_list(cli, wb_json_get(doc, "items"), &out);
    wb_cli_print(&out);
    wb_json_free(doc);
    return 0;
}

static int make(const struct wb_cli *cli, struct wb_remote *r, const struct opts *o,
                const char *name, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *body = wb_json_object();
    wb_json *scopes = wb_json_array(), *doc = NULL;
    const struct wb_remote_call c = {.method = "POST", .path = "/api/v1/tokens", .body = body};
    int rc;

    for (size_t i = 0; i < o->scopes.n; i++)
        wb_json_push(scopes, wb_json_str(o->scopes.v[i]));
    if (o->scopes.n == 0)
        wb_json_push(scopes, wb_json_str("read"));
    wb_json_set_str(body, "name", name);
    wb_json_set(body, "scopes", scopes);
    if (o->days)
        wb_json_set_int(body, "days", o->days);
    rc = wb_remote_ask(r, &c, &doc, err);
    if (rc < 0)
        return rc;
    if (cli->json) {
        wb_cli_answer(cli, doc, NULL);
        return 0;
    }
    (void)printf("%s\n", wb_json_str_or(doc, "token", "?"));
    (void)fprintf(stderr, "shown this once: keep it in a file that only its owner may read\n");
    wb_json_free(doc);
    return 0;
}

static int revoke(const struct wb_cli *cli, struct wb_remote *r, const char *id, struct wb_err *err)
{
    struct wb_buf path = WB_BUF_INIT(4096), body = WB_BUF_INIT(0);
    struct wb_remote_call c = {.method = "DELETE"};
    int rc;

    wb_buf_adds(&path, "/api/v1/tokens/");
    wb_rest_escape(&path, id);
    c.path = wb_buf_str(&path);
    rc = wb_remote_send(r, &c, &body, err);
    if (rc == 0 && cli->json) {
        wb_json *o = wb_json_object();

        wb_json_set_str(o, "id", id);
        wb_json_set_bool(o, "revoked", true);
        wb_cli_answer(cli, o, NULL);
    } else if (rc == 0) {
        (void)printf("token %s is worth nothing now, nor are its sessions\n", id);
    }
    wb_buf_release(&path);
    wb_buf_release(&body);
    return rc;
}

static int token(const struct wb_cli *cli, const void *opts, int argc, char **argv)
{
    static const char *const verbs[] = {"list", "make", "revoke", NULL};
    const struct opts *o = opts;
    const char *verb = argc ? argv[0] : "list";
    struct wb_remote *r = NULL;
    struct wb_err err = WB_ERR_INIT;
    int rc = 0, v = 0;

    while (verbs[v] && strcmp(verbs[v], verb) != 0)
        v++;
    if (!verbs[v]) {
        WB_AUTO_FREE char *hint = wb_did_you_mean(verb, verbs);

        rc = wb_fail(&err, WB_INVALID, "token %.40s%s; allowed: list, make NAME, revoke ID", verb,
                     hint);
    } else if ((v == 0) != (argc < 2)) {
        rc = wb_fail(&err, WB_INVALID, "token list takes no name; make and revoke take one");
    } else if (v != 1 && (o->scopes.n || o->days)) {
        rc = wb_fail(&err, WB_INVALID, "--scope and --days are for token make");
    }
    if (rc == 0)
        rc = wb_remote_open(cli, &r, &err);
    if (rc == 0)
        rc = v == 0   ? list(cli, r, &err)
             : v == 1 ? make(cli, r, o, argv[1], &err)
                      : revoke(cli, r, argv[1], &err);
    rc = rc < 0 ? wb_remote_fail(cli, r, &err) : WB_EXIT_OK;
    wb_remote_free(r);
    return rc;
}

const struct wb_command wb_cmd_token = {
    .name = "token",
    .args = "[list|make NAME|revoke ID]",
    .summary = "tokens of a server: who may do what",
    .help = "A token is shown once, when it is made; the server keeps only its hash. One cannot\n"
            "give scopes that one has not.\n",
    .examples = "  weighbridge token make ci --scope read --scope runs:write --days 90\n",
    .opts = rows,
    .opts_size = sizeof(struct opts),
    .max_args = 2,
    .remote = token,
};
