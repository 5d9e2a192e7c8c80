/* `clean`: after a crash, remove what is left. */
#include <stdlib.h>

#include "server/base/cancel.h"
#include "server/cli/commands.h"
#include "server/cli/places.h"
#include "server/engine/engine.h"

static int print(const struct wb_cli *cli, struct wb_clean_report *r)
{
    struct wb_buf b = WB_BUF_INIT(1u << 20);
    int rc = wb_json_len(r->left) ? WB_EXIT_LEFT : WB_EXIT_OK;

    if (cli->json) {
        wb_json *j = wb_json_object();

        wb_json_set_int(j, "campaigns", (int64_t)r->campaigns);
        wb_json_set_int(j, "runs_recorded", (int64_t)r->runs);
        wb_json_set_int(j, "things_removed", (int64_t)r->things);
        wb_json_set(j, "left", r->left);
        wb_cli_print_json(j);
        return rc;
    }
    wb_buf_addf(&b, "%zu interrupted campaigns closed, %zu attempts recorded, %zu things removed\n",
                r->campaigns, r->runs, r->things);
    for (size_t i = 0; i < wb_json_len(r->left); i++) {
        const wb_json *l = wb_json_at(r->left, i);

        wb_buf_addf(&b, "left: %s %s: %s\n", wb_json_str_or(l, "kind", ""),
                    wb_json_str_or(l, "id", ""), wb_json_str_or(l, "why", ""));
    }
    wb_json_free(r->left);
    wb_cli_print(&b);
    return rc;
}

static int run(const struct wb_cli *cli, const void *opts, int argc, char **argv)
{
    struct wb_cancel *cancel = wb_cancel_new();
    struct wb_places places = {0};
    struct wb_store *store = NULL;
    struct wb_clean_report report = {0};
    struct wb_err err = WB_ERR_INIT;
    int rc = wb_places_find(cli, &places, &err);

    if (rc == 0)
        rc = wb_cancel_on_signals(cancel, &err);
    if (rc == 0)
        rc = wb_store_open(places.store, false, NULL, &store, &err);
    if (rc == 0)
        rc = wb_engine_clean(store, places.state, places.docker_socket, cancel, &report, &err);
    if (rc < 0) {
        wb_json_free(report.left);
        rc = wb_cli_fail(cli, &err);
    } else {
        rc = print(cli, &report);
    }
    wb_store_close(store);
    wb_places_release(&places);
    wb_cancel_free(cancel);
    return rc;
}

const struct wb_command wb_cmd_clean = {
    .name = "clean",
    .summary = "after a crash: remove what is left on this host",
    .help = "Looks at the ledgers of interrupted campaigns, the kernel and the container engine;\n"
            "removes only what carries this store's owner mark; records interrupted attempts.\n"
            "Exit 16 when something could not be removed.\n",
    .run = run,
};
