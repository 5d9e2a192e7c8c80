#include <stdio.h>
#include <string.h>

#include "server/base/cancel.h"
#include "server/base/file.h"
#include "server/base/problems.h"
#include "server/base/table.h"
#include "server/cli/commands.h"
#include "server/engine/bits.h"

struct options {
    const char *version;
};
static const struct wb_opt opts[] = {
    {"version", 0, WB_OPT_TEXT, offsetof(struct options, version), "V", 0, 0,
     "only this version of the recipe"},
    {.name = NULL},
};

enum action { FETCH, LIST, VERIFY };
static const char *const actions[] = {"fetch", "list", "verify", NULL};

/* What one version turned out to be. */
struct row {
    const char *state; /* "fetched", "absent", "damaged" */
    struct wb_bits_info info;
    struct wb_err err;
};

static void note(void *arg, const char *text)
{
    fprintf(stderr, "%s %s\n", (const char *)arg, text);
}

static int read_recipe(const struct wb_cli *cli, const char *name, struct wb_recipe **out,
                       struct wb_err *err)
{
    WB_AUTO_FREE char *dir = wb_strf("%s/%s", cli->recipes_dir, name);
    struct wb_problems problems = {0};
    struct wb_buf text = WB_BUF_INIT(65536);
    int rc = 0;

    if (!wb_safe_name(name) || !wb_path_exists(dir))
        return wb_fail(err, WB_NOT_FOUND, "there is no recipe '%s' in %s", name, cli->recipes_dir);
    *out = wb_recipe_read(dir, &problems);
    if (!*out) {
        wb_problems_text(&problems, &text);
        while (text.len && text.data[text.len - 1] == '\n')
            text.data[--text.len] = '\0';
        rc = wb_fail(err, WB_INVALID, "%s", wb_buf_str(&text));
    }
    wb_problems_release(&problems);
    wb_buf_release(&text);
    return rc;
}

static int look(const struct wb_cli *cli, const struct wb_recipe *r,
                const struct wb_recipe_version *v, enum action what, const struct wb_cancel *cancel,
                struct row *row)
{
    char prefix[] = "artifacts:";
    int rc;

    if (what == FETCH)
        rc = wb_bits_fetch(r, v, cli->state_dir, cancel, note, prefix, &row->info, &row->err);
    else
        rc = wb_bits_verify(r, v, cli->state_dir, &row->info, &row->err);
    row->state = rc == 0 ? "fetched" : rc == -WB_CORRUPT ? "damaged" : "absent";
    /* Absence is an answer to list; everything else that is not a look at the files is an error. */
    if (rc == 0 || (what == LIST && (rc == -WB_NOT_FOUND || rc == -WB_CORRUPT)))
        return 0;
    return rc;
}

static wb_json *row_json(const struct wb_recipe_version *v, const struct row *row)
{
    wb_json *j = wb_json_object();
    char text[2 * WB_ERR_TEXT_MAX];

    wb_json_set_str(j, "version", v->version);
    wb_json_set_str(j, "source", v->source);
    wb_json_set_str(j, "state", row->state);
    if (row->info.artifacts) {
        wb_json_set_str(j, "digest", row->info.artifact_digest);
        wb_json_set(j, "artifacts", wb_json_ref(row->info.artifacts));
    } else {
        wb_json_set_reason(j, "digest", "not fetched");
        wb_json_set(j, "artifacts", wb_json_array());
    }
    wb_json_set_str(j, "pinned", v->digest);
    if (row->err.code)
        wb_json_set_str(j, "message", wb_err_text(&row->err, text, sizeof(text)));
    return j;
}

static void table_rows(struct wb_table *t, const struct wb_recipe_version *v, const struct row *row)
{
    size_t n = wb_json_len(row->info.artifacts);

    for (size_t i = 0; i < n || i == 0; i++) {
        const wb_json *a = wb_json_at(row->info.artifacts, i);
        struct wb_buf size = WB_BUF_INIT(64);

        wb_table_row(t);
        wb_table_cell(t, "%s", i ? "" : v->version);
        wb_table_cell(t, "%s", i ? "" : row->state);
        if (a) {
            wb_format_bytes(wb_json_int_or(a, "size", 0), &size);
            wb_table_cell(t, "%s", wb_json_str_or(a, "package", ""));
            wb_table_cell(t, "%s", wb_json_str_or(a, "version", ""));
            wb_table_cell(t, "%s", wb_buf_str(&size));
            wb_table_cell(t, "%.12s", wb_json_str_or(a, "sha256", ""));
        }
        wb_buf_release(&size);
    }
}

static struct wb_table *new_table(void)
{
    struct wb_table *t = wb_table_new();

    wb_table_column(t, "version", WB_LEFT);
    wb_table_column(t, "state", WB_LEFT);
    wb_table_column(t, "package", WB_LEFT);
    wb_table_column(t, "package version", WB_LEFT);
    wb_table_column(t, "size", WB_RIGHT);
    wb_table_column(t, "sha256", WB_LEFT);
    return t;
}

/* All versions, or the one asked for. Goes on after damage, so that all of it is seen. */
static int do_versions(const struct wb_cli *cli, const struct wb_recipe *r, const char *version,
                       enum action what, const struct wb_cancel *cancel)
{
    wb_json *items = wb_json_array();
    struct wb_table *t = new_table();
    struct wb_buf out = WB_BUF_INIT(4u << 20);
    struct wb_err first = WB_ERR_INIT;

    for (size_t i = 0; i < r->nversions; i++) {
        const struct wb_recipe_version *v = &r->versions[i];
        struct row row = {0};

        if (version && strcmp(version, v->version) != 0)
            continue;
        if (look(cli, r, v, what, cancel, &row) < 0 && !first.code)
            first = row.err; /* reported at the end; the others at once */
        else if (row.err.code == WB_CORRUPT && !cli->json)
            fprintf(stderr, "artifacts: %s %s: %s\n", r->name, v->version, row.err.root);
        wb_json_push(items, row_json(v, &row));
        table_rows(t, v, &row);
        wb_bits_info_release(&row.info);
        if (first.code == WB_CANCELLED)
            break;
    }
    if (cli->json && !first.code) {
        wb_json *doc = wb_json_object();

        wb_json_set_str(doc, "recipe", r->name);
        wb_json_set(doc, "items", items);
        wb_json_set(doc, "next", wb_json_null());
        items = NULL;
        wb_cli_answer(cli, doc, "items");
    } else if (!cli->json) {
        wb_table_print(t, cli->width, &out);
        wb_cli_print(&out);
    }
    wb_json_free(items);
    wb_table_free(t);
    wb_buf_release(&out);
    if (!first.code)
        return WB_EXIT_OK;
    (void)wb_cli_fail(cli, &first);
    switch (first.code) {
    case WB_CORRUPT:
        return WB_EXIT_DAMAGE;
    case WB_NOT_FOUND:
        return what == FETCH ? WB_EXIT_INFRA : WB_EXIT_NOT_FOUND;
    case WB_CANCELLED:
        return WB_EXIT_INTERRUPTED;
    default:
        return WB_EXIT_INFRA;
    }
}

static int run(const struct wb_cli *cli, const void *options, int argc, char **argv)
{
    const struct options *o = options;
    struct wb_cancel *cancel = wb_cancel_new();
    struct wb_recipe *r = NULL;
    struct wb_err err = WB_ERR_INIT;
    int what = 0, rc = 0, code;

    while (actions[what] && strcmp(actions[what], argv[0]) != 0)
        what++;
    if (!actions[what]) {
        WB_AUTO_FREE char *words = wb_word_list(actions);
        WB_AUTO_FREE char *mean = wb_did_you_mean(argv[0], actions);

        rc = wb_fail(&err, WB_INVALID, "artifacts can %s, not '%s'%s", words, argv[0], mean);
    }
    if (rc == 0)
        rc = read_recipe(cli, argv[1], &r, &err);
    if (r && o->version && !wb_recipe_find_version(r, o->version)) {
        WB_AUTO_FREE char *versions = wb_recipe_version_list(r);

        rc = wb_fail(&err, WB_NOT_FOUND, "recipe %s has no version '%s'; it has %s", r->name,
                     o->version, versions);
    }
    if (rc == 0)
        rc = wb_cancel_on_signals(cancel, &err);
    code = r && rc == 0 ? do_versions(cli, r, o->version, (enum action)what, cancel)
                        : wb_cli_fail(cli, &err);
    wb_recipe_free(r);
    wb_cancel_free(cancel);
    return code;
}

const struct wb_command wb_cmd_artifacts = {
    .name = "artifacts",
    .args = "fetch|list|verify RECIPE",
    .summary = "the files a recipe installs: fetch, list or check them",
    .help = "fetch   fills the cache; after that a run needs no network\n"
            "list    what is in the cache\n"
            "verify  checks every file against its recorded digest (exit 15: damage)\n",
    .opts = opts,
    .opts_size = sizeof(struct options),
    .min_args = 2,
    .max_args = 2,
    .run = run,
    .no_store = true,
};
