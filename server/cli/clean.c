/* `clean`: after a crash, remove what is left. */
#include <stdlib.h>

#include "server/base/cancel.h"
#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/cli/commands.h"
#include "server/cli/session.h"

struct opts {
    const char *owner;
    int64_t wait_s;
    bool caches;
};
static const struct wb_opt rows[] = {
    {"owner", 0, WB_OPT_TEXT, offsetof(struct opts, owner), "ID", 0, 0,
     "clean the host of another owner, whose store is no more"},
    {"caches", 0, WB_OPT_FLAG, offsetof(struct opts, caches), NULL, 0, 0,
     "also installed prefixes and images, which are made again when they are needed"},
    {"wait-for-host", 0, WB_OPT_INT, offsetof(struct opts, wait_s), "SECONDS", 0, 604800,
     "wait this long while another uses this host"},
    {0},
};

static int print(const struct wb_cli *cli, struct wb_clean_report *r)
{
    struct wb_buf b = WB_BUF_INIT(1u << 20);
    int rc = wb_json_len(r->left) ? WB_EXIT_LEFT : WB_EXIT_OK;

    if (cli->json) {
        wb_json *j = wb_json_object();

        wb_json_set_int(j, "campaigns", (int64_t)r->campaigns);
        wb_json_set_int(j, "runs_recorded", (int64_t)r->runs);
        wb_json_set_int(j, "things_removed", (int64_t)r->things);
        wb_json_set(j, "caches_removed", wb_json_ref(r->pruned));
        wb_json_set(j, "left", wb_json_ref(r->left));
        wb_json_set(j, "notes", wb_json_ref(r->notes));
        wb_cli_answer(cli, j, NULL);
        return rc;
    }
    wb_buf_addf(&b, "%zu interrupted campaigns closed, %zu attempts recorded, %zu things removed\n",
                r->campaigns, r->runs, r->things);
    for (size_t i = 0; i < wb_json_len(r->pruned); i++) {
        const wb_json *p = wb_json_at(r->pruned, i);

        wb_buf_addf(&b, "removed: %s %s\n", wb_json_str_or(p, "kind", ""),
                    wb_json_str_or(p, "id", ""));
    }
    for (size_t i = 0; i < wb_json_len(r->notes); i++)
        wb_buf_addf(&b, "note: %s\n", wb_json_string(wb_json_at(r->notes, i)));
    for (size_t i = 0; i < wb_json_len(r->left); i++) {
        const wb_json *l = wb_json_at(r->left, i);

        wb_buf_addf(&b, "left: %s %s: %s\n", wb_json_str_or(l, "kind", ""),
                    wb_json_str_or(l, "id", ""), wb_json_str_or(l, "why", ""));
    }
    wb_cli_print(&b);
    return rc;
}

/* Where only another owner's things are to be removed, no store of the caller's is needed. */
static int open_session(const struct wb_cli *cli, const struct opts *o, struct wb_session *s,
                        struct wb_err *err)
{
    int rc = wb_places_find(cli, &s->places, err);

    if (rc < 0 || !o->owner || wb_path_exists(s->places.store))
        return rc < 0 ? rc : wb_session_open(cli, false, NULL, s, err);
    if (!wb_safe_name(o->owner))
        return wb_fail(err, WB_INVALID, "'%s' is not the id of an owner", o->owner);
    s->cancel = wb_cancel_new();
    return wb_cancel_on_signals(s->cancel, err);
}

static int run(const struct wb_cli *cli, const void *opts, int argc, char **argv)
{
    const struct opts *o = opts;
    struct wb_session s = {0};
    struct wb_clean_report report = {0};
    struct wb_err err = WB_ERR_INIT;
    int rc = open_session(cli, o, &s, &err);

    if (rc == 0) {
        const struct wb_clean_spec spec = {.store = s.store,
                                           .state_dir = s.places.state,
                                           .docker_socket = s.places.docker_socket,
                                           .owner = o->owner,
                                           .cancel = s.cancel,
                                           .wait_ns = o->wait_s * WB_SEC,
                                           .caches = o->caches};

        rc = wb_engine_clean(&spec, &report, &err);
    }
    rc = rc < 0 ? wb_cli_fail(cli, &err) : print(cli, &report);
    wb_clean_report_release(&report);
    wb_session_release(&s);
    return rc;
}

const struct wb_command wb_cmd_clean = {
    .name = "clean",
    .summary = "after a crash: remove what is left on this host",
    .help =
        "Looks at the ledgers of interrupted campaigns, the kernel and the container engine;\n"
        "removes only what carries this store's owner mark; records interrupted attempts.\n"
        "With --owner, what carries that mark instead; this needs no store.\n"
        "With --caches, also prefixes and images kept from earlier campaigns; artifacts and the\n"
        "base image stay, and so does what a campaign that can be resumed was begun with.\n"
        "A host in quarantine is given free again when nothing is left on it.\n"
        "Exit 16 when something could not be removed.\n",
    .opts = rows,
    .opts_size = sizeof(struct opts),
    .run = run,
    .here = true,
};
