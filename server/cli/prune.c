/* `prune`: room on disk. */
#include "server/base/cancel.h"
#include "server/base/clock.h"
#include "server/cli/commands.h"
#include "server/cli/records.h"
#include "server/record/pack.h"

struct options {
    int64_t months;
    bool dry_run;
};
static const struct wb_opt opts[] = {
    {"keep-months", 0, WB_OPT_INT, offsetof(struct options, months), "N", 1, 1200,
     "raw data older than N whole months goes; without it nothing does but by the store's setting"},
    {"dry-run", 'n', WB_OPT_FLAG, offsetof(struct options, dry_run), NULL, 0, 0,
     "only tell what would go"},
    {0},
};

static void print(const wb_json *report, const struct wb_pack_report *packed, bool dry_run)
{
    const wb_json *months = wb_json_get(report, "months");
    struct wb_buf out = WB_BUF_INIT(1u << 20);

    for (size_t i = 0; i < wb_json_len(months); i++) {
        const wb_json *m = wb_json_at(months, i);

        wb_buf_addf(&out, "%s: raw data of %lld runs %s, of %lld pinned ones kept\n",
                    wb_json_str_or(m, "ref", "?"), (long long)wb_json_int_or(m, "runs", 0),
                    dry_run ? "would go" : "is gone", (long long)wb_json_int_or(m, "kept", 0));
    }
    if (wb_json_len(months) == 0)
        wb_buf_adds(&out, "no raw data to take away\n");
    if (packed->done)
        wb_buf_addf(&out, "packed: %zu packs, %zu loose objects\n", packed->packs, packed->loose);
    wb_cli_print(&out);
}

static int prune(const struct wb_cli *cli, const void *options, int argc, char **argv)
{
    const struct options *o = options;
    struct wb_cancel *cancel = wb_cancel_new();
    struct wb_pack_report packed = {0};
    struct wb_err err = WB_ERR_INIT;
    struct wb_store *s = NULL;
    WB_AUTO_JSON wb_json *report = NULL;
    int rc = wb_cli_open_store(cli, &s, &err);

    if (rc == 0)
        rc = wb_cancel_on_signals(cancel, &err);
    if (rc == 0)
        rc = wb_store_prune(s, o->months ? (int)o->months : -1, wb_now_unix_ms(NULL), o->dry_run,
                            &report, &err);
    if (rc == 0 && !o->dry_run)
        rc = wb_store_pack(s, true, cancel, &packed, &err);
    wb_store_close(s);
    wb_cancel_free(cancel);
    if (rc < 0)
        return wb_cli_fail(cli, &err);
    if (cli->json) {
        wb_json_set_bool(report, "packed", packed.done);
        wb_cli_answer(cli, wb_json_ref(report), NULL);
    } else {
        print(report, &packed, o->dry_run);
    }
    return WB_EXIT_OK;
}

const struct wb_command wb_cmd_prune = {
    .name = "prune",
    .summary = "take old raw data away and pack the store",
    .help =
        "Records stay for ever; raw data (full logs, per-second series, histograms) may go after\n"
        "some months. Runs and campaigns that are pinned ('weighbridge annotate ID pin WHY')\n"
        "keep theirs. Then what is loose in the store is packed.\n",
    .examples = "  weighbridge prune --keep-months 6 --dry-run\n",
    .opts = opts,
    .opts_size = sizeof(struct options),
    .run = prune,
};
