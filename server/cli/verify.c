#include <stdio.h>
#include <string.h>

#include "server/base/table.h"
#include "server/cli/commands.h"
#include "server/cli/records.h"

struct options {
    bool all;
};
static const struct wb_opt opts[] = {
    {"all", 0, WB_OPT_FLAG, offsetof(struct options, all), NULL, 0, 0,
     "the whole store with its history (also without an ID)"},
    {0},
};

/* All runs of a campaign one by one. */
static int verify_campaign(struct wb_store *s, const char *campaign, wb_json *damage, size_t *runs,
                           struct wb_err *err)
{
    const struct wb_list_filter f = {.campaign = campaign};
    WB_AUTO_JSON wb_json *list = NULL;
    int rc = wb_store_list(s, &f, &list, err);

    for (size_t i = 0; rc == 0 && i < wb_json_len(list); i++) {
        size_t n = 0;

        rc = wb_store_verify(s, wb_json_str_or(wb_json_at(list, i), "id", ""), damage, &n, err);
        *runs += n;
    }
    return rc;
}

static int verify_id(struct wb_store *s, const char *text, wb_json *damage, size_t *runs,
                     struct wb_err *err)
{
    struct wb_ref_id id = {0};
    int rc = wb_ref_id_find(s, text, &id, err);

    if (rc == 0)
        rc = id.run ? wb_store_verify(s, id.run, damage, runs, err)
                    : verify_campaign(s, id.campaign, damage, runs, err);
    wb_ref_id_release(&id);
    return rc;
}

static size_t count_damage(const wb_json *damage)
{
    size_t n = 0;

    for (size_t i = 0; i < wb_json_len(damage); i++)
        n += !wb_json_bool_or(wb_json_at(damage, i), "note", false);
    return n;
}

static void print_text(const wb_json *damage, size_t runs)
{
    size_t n = count_damage(damage), notes = wb_json_len(damage) - n;
    struct wb_buf out = WB_BUF_INIT(64u << 20);

    for (size_t i = 0; i < wb_json_len(damage); i++) {
        const wb_json *d = wb_json_at(damage, i);
        const char *run = wb_json_str_or(d, "run", NULL), *text = wb_json_str_or(d, "message", "");

        wb_buf_addf(&out, "%s  %s%s%s: ", wb_json_bool_or(d, "note", false) ? "note  " : "DAMAGE",
                    run ? run : "", run ? "/" : "", wb_json_str_or(d, "file", ""));
        wb_cli_plain(text, strlen(text), &out);
        wb_buf_addc(&out, '\n');
    }
    wb_buf_addf(&out, "%zu run%s verified: ", runs, runs == 1 ? "" : "s");
    if (n)
        wb_buf_addf(&out, "%zu damage%s found", n, n == 1 ? "" : "s");
    else
        wb_buf_adds(&out, "no damage");
    if (notes)
        wb_buf_addf(&out, ", %zu note%s", notes, notes == 1 ? "" : "s");
    wb_buf_addc(&out, '\n');
    wb_cli_print(&out);
}

static int verify(const struct wb_cli *cli, const void *options, int argc, char **argv)
{
    const struct options *o = options;
    WB_AUTO_JSON wb_json *damage = wb_json_array();
    struct wb_err err = WB_ERR_INIT;
    struct wb_store *s = NULL;
    size_t runs = 0;
    bool bad;
    int rc;

    if (o->all && argc > 0) {
        (void)wb_fail(&err, WB_INVALID, "verify takes an ID or --all, not both");
        return wb_cli_fail(cli, &err);
    }
    rc = wb_cli_open_store(cli, &s, &err);
    if (rc == 0)
        rc = argc > 0 ? verify_id(s, argv[0], damage, &runs, &err)
                      : wb_store_verify(s, NULL, damage, &runs, &err);
    wb_store_close(s);
    if (rc < 0)
        return wb_cli_fail(cli, &err);
    bad = count_damage(damage) > 0;
    if (cli->json) {
        wb_json *doc = wb_json_object();

        wb_json_set_bool(doc, "ok", !bad);
        wb_json_set_int(doc, "runs", (int64_t)runs);
        wb_json_set(doc, "damage", wb_json_ref(damage));
        wb_cli_answer(cli, doc, "damage");
    } else {
        print_text(damage, runs);
    }
    return bad ? WB_EXIT_DAMAGE : WB_EXIT_OK;
}

const struct wb_command wb_cmd_verify = {
    .name = "verify",
    .args = "[ID|--all]",
    .summary = "check records: files, digests, figures, history",
    .help =
        "Checks a run, the runs of a campaign, or everything: that each file is there, readable\n"
        "and in canonical form, that digests of files, recipe and raw data match, that the\n"
        "figures of the summary follow from the result, and that no later commit changed it.\n"
        "Raw data that was pruned is a note. Exit code 15: damage was found.\n",
    .opts = opts,
    .opts_size = sizeof(struct options),
    .max_args = 1,
    .run = verify,
};
