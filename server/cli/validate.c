#include <string.h>
#include <sys/stat.h>

#include "server/base/file.h"
#include "server/cli/commands.h"
#include "server/cli/study_args.h"

static const struct wb_opt opts[] = {WB_STUDY_OPTS, {0}};

/* The folder of a recipe, when that is what a path names: the folder or its recipe.yaml. Caller
 * frees. */
static char *recipe_folder(const char *path)
{
    static const char file[] = "recipe.yaml";
    WB_AUTO_FREE char *inside = wb_strf("%s/%s", path, file);
    size_t n = strlen(path), m = sizeof(file) - 1;

    if (wb_path_exists(inside))
        return wb_strdup(path);
    if (n == m && !strcmp(path, file))
        return wb_strdup(".");
    if (n > m && path[n - m - 1] == '/' && !strcmp(path + n - m, file))
        return wb_strndup(path, n - m - 1);
    return NULL;
}

static void ok_recipe(const char *path, const struct wb_recipe *r, struct wb_buf *out)
{
    WB_AUTO_FREE char *versions = wb_recipe_version_list(r);

    wb_buf_addf(out, "%s: ok, recipe %s with versions %s\n", path, r->name, versions);
}

static void check(const struct wb_cli *cli, const struct wb_study_args *args, const char *path,
                  struct wb_buf *out, struct wb_problems *p)
{
    WB_AUTO_FREE char *folder = recipe_folder(path);
    struct wb_recipe *r = NULL;
    struct wb_study *s = NULL;

    if (folder && (args->profile || args->rounds || args->overrides.n))
        wb_problem(p, NULL, "contradiction",
                   "%s is a recipe: --profile, --rounds and -f are for studies", path);
    else if (folder)
        r = wb_recipe_read(folder, p);
    else
        s = wb_study_args_read(cli, args, path, p);
    if (r)
        ok_recipe(path, r, out);
    if (s)
        wb_buf_addf(out, "%s: ok, study %s\n", path, s->name);
    wb_recipe_free(r);
    wb_study_free(s);
}

static int run(const struct wb_cli *cli, const void *options, int argc, char **argv)
{
    struct wb_problems p = {0};
    struct wb_buf out = WB_BUF_INIT(65536);
    int rc = WB_EXIT_OK;

    check(cli, options, argv[0], &out, &p);
    if (out.len == 0)
        rc = wb_study_problems(cli, &p);
    else if (cli->json)
        wb_cli_answer(cli, wb_problems_json(&p), NULL);
    else
        wb_cli_print(&out);
    wb_buf_release(&out);
    wb_problems_release(&p);
    return rc;
}

const struct wb_command wb_cmd_validate = {
    .name = "validate",
    .args = "STUDY",
    .summary = "check a study or a recipe, all problems at once",
    .help = "Prints one line per problem: file, line, where in the document, what is wrong and\n"
            "what is allowed. A folder with a recipe.yaml, or that file, is checked as a recipe.\n"
            "Starts nothing. Exit code 2 when there are problems.\n",
    .examples = "  weighbridge validate recipes/redis/studies/forms.yaml --profile small\n"
                "  weighbridge validate recipes/redis\n",
    .opts = opts,
    .opts_size = sizeof(struct wb_study_args),
    .min_args = 1,
    .max_args = 1,
    .run = run,
    .no_store = true,
};
