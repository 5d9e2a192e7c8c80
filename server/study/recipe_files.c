#include "server/study/recipe_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "server/base/digest.h"
#include "server/base/file.h"
#include "server/study/recipe_parts.h"

#define FILES_MAX 1000
#define FILE_MAX_BYTES (16 << 20)
#define FOLDER_DEPTH_MAX 8
#define SHARED "shared/"

/* Adds the paths below r->dir/sub, "" for the folder itself. */
static void collect(struct wb_recipe *r, const char *sub, int depth, struct wb_problems *p)
{
    struct wb_err err = WB_ERR_INIT;
    struct wb_strv names = {0};
    WB_AUTO_FREE char *dir = wb_strf("%s%s%s", r->dir, *sub ? "/" : "", sub);

    if (depth > FOLDER_DEPTH_MAX) {
        wb_problem(p, NULL, "too-large", "%s: folders more than %d deep", sub, FOLDER_DEPTH_MAX);
        return;
    }
    if (wb_list_dir(dir, &names, &err) < 0)
        wb_problem(p, NULL, "unreadable", "%s", err.root);
    for (size_t i = 0; i < names.n && r->files.n <= FILES_MAX; i++) {
        WB_AUTO_FREE char *rel = wb_strf("%s%s%s", sub, *sub ? "/" : "", names.v[i]);
        WB_AUTO_FREE char *path = wb_strf("%s/%s", r->dir, rel);
        struct stat st;

        if (!*sub && strcmp(names.v[i], "studies") == 0)
            continue;
        if (lstat(path, &st) < 0) {
            (void)wb_fail_sys(&err, errno, "cannot look at %s", path);
            wb_problem(p, NULL, "unreadable", "%s", err.root);
        } else if (S_ISDIR(st.st_mode))
            collect(r, rel, depth + 1, p);
        else if (S_ISREG(st.st_mode))
            wb_strv_add(&r->files, rel);
        else
            wb_problem(p, NULL, "not-a-file",
                       "%s is neither file nor folder; a recipe has no "
                       "links or special files",
                       rel);
    }
    wb_strv_release(&names);
}

char *wb_recipe_path(const struct wb_recipe *r, const char *file)
{
    char *path = wb_strf("%s/%s", r->dir, file);

    if (strncmp(file, SHARED, strlen(SHARED)) == 0 && !wb_path_exists(path)) {
        free(path);
        path = wb_strf("%s/../%s", r->dir, file);
    }
    return path;
}

bool wb_recipe_has_file(const struct wb_recipe *r, const char *file)
{
    for (size_t i = 0; i < r->files.n; i++)
        if (strcmp(r->files.v[i], file) == 0)
            return true;
    return false;
}

/* Shared files belong to the recipe as its own do: a run cannot be repeated without them. */
static void collect_shared(struct wb_recipe *r, const struct wb_node *at, struct wb_problems *p)
{
    for (size_t i = 0; i < r->shared.n; i++) {
        WB_AUTO_FREE char *file = wb_strf(SHARED "%s", r->shared.v[i]);
        WB_AUTO_FREE char *path = NULL;
        struct stat st;

        if (!wb_safe_name(r->shared.v[i])) {
            wb_problem(p, at, "bad-name", "'%.100s' is no plain file name", r->shared.v[i]);
            continue;
        }
        path = wb_recipe_path(r, file);
        if (wb_recipe_has_file(r, file))
            continue;
        if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
            wb_problem(p, at, "missing-file", "%s is not there, nor in the folder beside this one",
                       file);
        else
            wb_strv_add(&r->files, file);
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void check_step(struct wb_recipe *r, const char *name, mode_t mode, struct wb_problems *p)
{
    const char *names[WB_STEP_COUNT + 1] = {NULL};
    WB_AUTO_FREE char *guess = NULL;
    WB_AUTO_FREE char *list = NULL;
    bool known = wb_recipe_operation_step(r, name);

    for (int s = 0; s < WB_STEP_COUNT; s++) {
        names[s] = wb_step_name(s);
        r->has_step[s] |= strcmp(names[s], name) == 0;
        known |= strcmp(names[s], name) == 0;
    }
    if (known) {
        if (!(mode & S_IXUSR))
            wb_problem(p, NULL, "not-executable", "steps/%s is not executable (chmod +x)", name);
        return;
    }
    guess = wb_did_you_mean(name, names);
    list = wb_word_list(names);
    wb_problem(p, NULL, "unknown-step", "steps/%s is no step%s; allowed: %s%s", name, guess, list,
               r->noperations ? ", and those of the recipe's operations" : "");
}

static void add_line(struct wb_sha256 *d, const char *path, mode_t mode, const char *hex)
{
    WB_AUTO_FREE char *line = wb_strf("%s %c %s\n", path, mode & S_IXUSR ? 'x' : '-', hex);

    wb_sha256_add(d, line, strlen(line));
}

/* recipe.yaml less its versions: a new version must not start a new series. */
static void tree_digest(const struct wb_node *tree, char hex[WB_SHA256_HEX])
{
    struct wb_buf text = WB_BUF_INIT(8 * WB_NODE_TEXT_MAX);
    WB_AUTO_JSON wb_json *j = wb_node_to_json(tree);

    wb_json_del(j, "versions");
    wb_json_canonical(j, &text);
    wb_sha256_of(wb_buf_str(&text), text.len, hex);
    wb_buf_release(&text);
}

void wb_recipe_files_read(struct wb_recipe *r, const struct wb_node *tree, struct wb_problems *p)
{
    struct wb_sha256 *all = wb_sha256_new(), *series = wb_sha256_new();
    char hex[WB_SHA256_HEX];

    collect(r, "", 0, p);
    collect_shared(r, wb_node_get(tree, "shared"), p);
    if (r->files.n > FILES_MAX)
        wb_problem(p, NULL, "too-large", "more than %d files", FILES_MAX);
    if (r->files.n > 0)
        qsort(r->files.v, r->files.n, sizeof *r->files.v, by_text);
    for (size_t i = 0; i < r->files.n; i++) {
        struct wb_err err = WB_ERR_INIT;
        const char *rel = r->files.v[i];
        WB_AUTO_FREE char *path = wb_recipe_path(r, rel);
        struct stat st;

        if (lstat(path, &st) < 0 || st.st_size > FILE_MAX_BYTES) {
            wb_problem(p, NULL, "too-large", "%s is gone or larger than %d MiB", rel,
                       FILE_MAX_BYTES >> 20);
            continue;
        }
        if (wb_sha256_file(path, hex, &err) < 0) {
            wb_problem(p, NULL, "unreadable", "%s", err.root);
            continue;
        }
        if (strncmp(rel, "steps/", 6) == 0)
            check_step(r, rel + 6, st.st_mode, p);
        add_line(all, rel, st.st_mode, hex);
        if (strncmp(rel, "versions/", 9) == 0)
            continue;
        if (strcmp(rel, "recipe.yaml") == 0)
            tree_digest(tree, hex);
        add_line(series, rel, st.st_mode, hex);
    }
    wb_sha256_end(all, r->digest);
    wb_sha256_end(series, r->series_digest);
}
