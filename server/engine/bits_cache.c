#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "server/base/file.h"
#include "server/engine/bits_cache.h"

#define ARTIFACTS_MAX 1000

int wb_damaged(struct wb_err *err)
{
    if (err)
        err->code = WB_CORRUPT;
    return -WB_CORRUPT;
}

static bool is_sha256(const char *s)
{
    return s && strlen(s) == 64 && strspn(s, "0123456789abcdef") == 64;
}

/* Debian file names have '+' and '~' in them, beside what wb_safe_name takes. */
static bool safe_file(const char *s)
{
    return s && *s && *s != '.' && *s != '-' && strlen(s) < 256 &&
           strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+~%-") ==
               strlen(s);
}

static int check_shape(const wb_json *list, struct wb_err *err)
{
    if (wb_json_type(list) != WB_JSON_ARRAY || wb_json_len(list) == 0 ||
        wb_json_len(list) > ARTIFACTS_MAX)
        return wb_fail(err, WB_CORRUPT, "artifacts must be a list of 1 to %d", ARTIFACTS_MAX);
    for (size_t i = 0; i < wb_json_len(list); i++) {
        const wb_json *a = wb_json_at(list, i);

        if (!safe_file(wb_json_str_or(a, "file", NULL)) ||
            !is_sha256(wb_json_str_or(a, "sha256", NULL)) || wb_json_int_or(a, "size", -1) < 0 ||
            !wb_json_str_or(a, "package", NULL) || !wb_json_str_or(a, "version", NULL))
            return wb_fail(err, WB_CORRUPT,
                           "artifact %zu must have package, version, file (a plain name), sha256 "
                           "and size",
                           i + 1);
    }
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* SHA-256 over the sorted digests, a line each: independent of names and order. */
static void set_digest(const wb_json *list, char hex[WB_SHA256_HEX])
{
    struct wb_sha256 *d = wb_sha256_new();
    size_t n = wb_json_len(list);
    const char **all = wb_calloc(n, sizeof(*all));

    for (size_t i = 0; i < n; i++)
        all[i] = wb_json_str_or(wb_json_at(list, i), "sha256", "");
    qsort(all, n, sizeof(*all), by_text);
    for (size_t i = 0; i < n; i++) {
        wb_sha256_add(d, all[i], strlen(all[i]));
        wb_sha256_add(d, "\n", 1);
    }
    wb_sha256_end(d, hex);
    free(all);
}

static int check_file(const char *dir, const wb_json *a, struct wb_err *err)
{
    const char *file = wb_json_str_or(a, "file", ""), *want = wb_json_str_or(a, "sha256", "");
    WB_AUTO_FREE char *path = wb_strf("%s/%s", dir, file);
    char have[WB_SHA256_HEX];
    struct stat st;
    int rc;

    if (lstat(path, &st) < 0)
        return errno == ENOENT ? wb_fail(err, WB_CORRUPT, "artifact %s is missing", file)
                               : wb_fail_sys(err, errno, "artifact %s", file);
    if (!S_ISREG(st.st_mode))
        return wb_fail(err, WB_CORRUPT, "artifact %s is not a plain file", file);
    if (st.st_size != wb_json_int_or(a, "size", -1))
        return wb_fail(err, WB_CORRUPT, "artifact %s is damaged: %lld bytes, recorded %lld", file,
                       (long long)st.st_size, (long long)wb_json_int_or(a, "size", -1));
    rc = wb_sha256_file(path, have, err);
    if (rc < 0)
        return rc;
    if (strcmp(have, want) != 0)
        return wb_fail(err, WB_CORRUPT,
                       "artifact %s is damaged: sha256 %.16s..., recorded %.16s...", file, have,
                       want);
    return 0;
}

/* Files that artifacts.json does not list would be installed all the same by a step that takes
 * every file of the folder. */
static int check_extra(const char *dir, const wb_json *list, struct wb_err *err)
{
    struct wb_strv names = {0};
    int rc = wb_list_dir(dir, &names, err);

    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        bool known = !strcmp(names.v[i], "artifacts.json");

        for (size_t k = 0; !known && k < wb_json_len(list); k++)
            known = !strcmp(wb_json_str_or(wb_json_at(list, k), "file", ""), names.v[i]);
        if (!known)
            rc = wb_fail(err, WB_CORRUPT, "%s holds %s, which is not one of its artifacts", dir,
                         names.v[i]);
    }
    wb_strv_release(&names);
    return rc;
}

/* With an artifact of its own a set is another than the recipe's pin is of. */
static int check_subject(const struct wb_recipe_version *v, const wb_json *artifacts,
                         struct wb_err *err)
{
    for (size_t i = 0; i < wb_json_len(artifacts); i++)
        if (!strcmp(wb_json_str_or(wb_json_at(artifacts, i), "sha256", ""), v->artifact_sha256))
            return 0;
    return wb_fail(err, WB_CORRUPT,
                   "none of the %zu artifacts of version %s has the sha256 %.16s... of the study's "
                   "subject: %s",
                   wb_json_len(artifacts), v->version, v->artifact_sha256,
                   v->artifact ? "the recipe cannot install that file, or it was changed meanwhile"
                               : "name its file as subject.artifact");
}

int wb_artifacts_pin(const struct wb_recipe_version *v, const struct wb_bits_info *have,
                     struct wb_err *err)
{
    const char *digest = have->artifact_digest;

    if (v->artifact_sha256)
        return check_subject(v, have->artifacts, err);
    if (!v->digest || !strcmp(v->digest, digest))
        return 0;
    return wb_fail(err, WB_CORRUPT,
                   "the artifacts' digest is %s, the recipe pins %s for version %s: they are other "
                   "files. Fetch from a mirror that has the pinned ones, or change the pin",
                   digest, v->digest, v->version);
}

int wb_artifacts_check(const char *dir, struct wb_bits_info *out, struct wb_err *err)
{
    WB_AUTO_FREE char *list_path = wb_strf("%s/artifacts.json", dir);
    WB_AUTO_JSON wb_json *doc = NULL;
    wb_json *list;
    int rc;

    if (!wb_path_exists(list_path))
        return wb_fail(err, WB_NOT_FOUND, "%s is not there", list_path);
    rc = wb_json_read_file(list_path, WB_ARTIFACT_LIST_MAX, &doc, err);
    if (rc < 0)
        return wb_damaged(err);
    list = wb_json_get(doc, "artifacts");
    rc = check_shape(list, err);
    if (rc < 0) {
        (void)wb_wrap(err, "%s", list_path);
        return rc;
    }
    wb_json_free(out->artifacts);
    out->artifacts = wb_json_ref(list);
    set_digest(list, out->artifact_digest);
    for (size_t i = 0; rc == 0 && i < wb_json_len(list); i++)
        rc = check_file(dir, wb_json_at(list, i), err);
    if (rc == 0)
        rc = check_extra(dir, list, err);
    return rc;
}
