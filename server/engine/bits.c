#include "server/engine/bits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/engine/bits_cache.h"
#include "server/engine/steps.h"
#include "server/engine/tree.h"

#define MANIFEST_MAX (1u << 20) /* bytes of artifacts.json */
#define ARTIFACTS_MAX 1000      /* entries in it */
#define TREE_DEPTH_MAX 64
#define LOCK_PAUSE_NS (100 * WB_MS)
/* Longer than any fetch and install of one version together with those waiting before us. */
#define LOCK_LIMIT_NS (3600 * WB_SEC)

/* One call's parameters and paths. */
struct job {
    const struct wb_recipe *r;
    const struct wb_recipe_version *v;
    const struct wb_cancel *cancel;
    wb_bits_note note;
    void *arg;
    char *cache, *prefixes; /* <state>/cache/artifacts/<recipe>/<version>, <state>/prefix */
};

static void say(const struct job *j, const char *fmt, ...) WB_PRINTF(2, 3);
static void say(const struct job *j, const char *fmt, ...)
{
    va_list ap;
    char *text;

    if (!j->note)
        return;
    va_start(ap, fmt);
    text = wb_vstrf(fmt, ap);
    va_end(ap);
    j->note(j->arg, text);
    free(text);
}

void wb_bits_info_release(struct wb_bits_info *b)
{
    free(b->prefix);
    wb_json_free(b->artifacts);
    *b = (struct wb_bits_info){0};
}

static void add_step_env(const struct job *j, const char *cache, const char *prefix,
                         struct wb_strv *env)
{
    struct wb_buf packages = WB_BUF_INIT(65536);

    for (size_t i = 0; i < j->v->packages.n; i++)
        wb_buf_addf(&packages, "%s%s", i ? " " : "", j->v->packages.v[i]);
    wb_strv_addf(env, "WB_RECIPE_DIR=%s", j->r->dir);
    wb_strv_addf(env, "WB_VERSION=%s", j->v->version);
    wb_strv_addf(env, "WB_SOURCE=%s", j->v->source);
    wb_strv_addf(env, "WB_PACKAGES=%s", wb_buf_str(&packages));
    if (j->v->lock)
        wb_strv_addf(env, "WB_LOCK=%s/%s", j->r->dir, j->v->lock);
    if (j->v->url)
        wb_strv_addf(env, "WB_URL=%s", j->v->url);
    if (j->v->sha512)
        wb_strv_addf(env, "WB_SHA512=%s", j->v->sha512);
    if (j->v->artifact)
        wb_strv_addf(env, "WB_ARTIFACT=%s", j->v->artifact);
    if (j->v->artifact_sha256)
        wb_strv_addf(env, "WB_ARTIFACT_SHA256=%s", j->v->artifact_sha256);
    wb_strv_addf(env, "WB_CACHE=%s", cache);
    if (prefix)
        wb_strv_addf(env, "WB_PREFIX=%s", prefix);
    wb_buf_release(&packages);
}

static int run_step(const struct job *j, enum wb_step step, const char *cache, const char *prefix,
                    struct wb_err *err)
{
    WB_AUTO_JSON wb_json *said = NULL;
    struct wb_strv env = {0};
    int rc;

    add_step_env(j, cache, prefix, &env);
    rc = wb_step_run(j->r, step, env.v, j->cancel, NULL, &said, err);
    wb_strv_release(&env);
    return rc;
}

/* An empty folder beside `final`; leftovers of a killed process are removed. The lock is held. */
static int fresh_folder(const char *final, char **out, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("%s.new", final);
    int rc = wb_remove_tree(path, err);

    if (rc == 0)
        rc = wb_mkdir_all(path, 0755, err);
    if (rc == 0)
        *out = WB_STEAL(path);
    return rc;
}

/* Puts a complete folder in the place of what is there. */
static int move_in(const char *fresh, const char *final, struct wb_err *err)
{
    WB_AUTO_FREE char *old = wb_strf("%s.old", final);
    int rc = wb_remove_tree(old, err);

    if (rc < 0)
        return rc;
    if (rename(final, old) < 0 && errno != ENOENT)
        return wb_fail_sys(err, errno, "cannot move %s aside", final);
    if (rename(fresh, final) < 0)
        return wb_fail_sys(err, errno, "cannot rename %s to %s", fresh, final);
    return wb_remove_tree(old, err);
}

static int fetch(const struct job *j, struct wb_bits_info *out, struct wb_err *err)
{
    WB_AUTO_FREE char *fresh = NULL;
    int rc;

    if (!j->r->has_step[WB_STEP_FETCH])
        return wb_fail(err, WB_NOT_FOUND, "recipe %s has no fetch step and %s is empty", j->r->name,
                       j->cache);
    say(j, "fetching %s %s", j->r->name, j->v->version);
    rc = fresh_folder(j->cache, &fresh, err);
    if (rc < 0)
        return rc;
    rc = run_step(j, WB_STEP_FETCH, fresh, NULL, err);
    if (rc == 0) {
        rc = wb_artifacts_check(fresh, out, err);
        if (rc < 0)
            (void)wb_wrap(err, "recipe %s: what step fetch left", j->r->name);
    }
    if (rc == 0)
        rc = wb_artifacts_pin(j->v, out, err);
    if (rc == 0)
        rc = move_in(fresh, j->cache, err);
    if (rc < 0)
        WB_IGNORE(wb_remove_tree(fresh, NULL)); /* the next try removes it, too */
    return rc;
}

/* The cache is complete afterwards. */
static int have_artifacts(const struct job *j, struct wb_bits_info *out, struct wb_err *err)
{
    struct wb_err why = WB_ERR_INIT;
    char text[2 * WB_ERR_TEXT_MAX], before[WB_SHA256_HEX];
    int fetched, rc = wb_artifacts_check(j->cache, out, &why);

    if (rc == 0)
        rc = wb_artifacts_pin(j->v, out, &why);
    if (rc == 0)
        return 0;
    if (rc != -WB_NOT_FOUND && rc != -WB_CORRUPT) {
        if (err)
            *err = why;
        return rc;
    }
    memcpy(before, out->artifact_digest, sizeof(before));
    if (rc == -WB_CORRUPT)
        say(j, "%s; fetching again", wb_err_text(&why, text, sizeof(text)));
    fetched = fetch(j, out, err);
    if (fetched < 0) {
        if (rc == -WB_CORRUPT)
            (void)wb_wrap(err, "%s; fetching again failed", wb_err_text(&why, text, sizeof(text)));
        return fetched;
    }
    if (*before && strcmp(before, out->artifact_digest) != 0)
        say(j, "the artifacts of %s %s are others than before: %.12s, were %.12s", j->r->name,
            j->v->version, out->artifact_digest, before);
    return 0;
}

/* 0 when prefix and manifest are there and match; digest is filled then. */
static int check_prefix(const char *prefix, const char *manifest, char digest[WB_SHA256_HEX],
                        struct wb_err *err)
{
    WB_AUTO_JSON wb_json *m = NULL;
    const char *want;
    char have[WB_SHA256_HEX];
    int rc;

    if (!wb_path_exists(prefix) || !wb_path_exists(manifest))
        return wb_fail(err, WB_NOT_FOUND, "%s is not there or not complete", prefix);
    if (wb_json_read_file(manifest, MANIFEST_MAX, &m, err) < 0)
        return wb_damaged(err);
    want = wb_json_str_or(m, "digest", "");
    rc = wb_tree_digest(prefix, have, err);
    if (rc == -WB_UNSUPPORTED || rc == -WB_LIMIT)
        return wb_damaged(err);
    if (rc < 0)
        return rc;
    if (strcmp(have, want) != 0)
        return wb_fail(err, WB_CORRUPT,
                       "the installed files in %s were changed: digest %.16s..., was %.16s...",
                       prefix, have, want);
    memcpy(digest, have, sizeof(have));
    return 0;
}

static int write_manifest(const struct job *j, const char *path, const struct wb_bits_info *b,
                          struct wb_err *err)
{
    WB_AUTO_JSON wb_json *m = wb_json_object();
    struct wb_buf text = WB_BUF_INIT(MANIFEST_MAX);
    int rc;

    wb_json_set_str(m, "recipe", j->r->name);
    wb_json_set_str(m, "recipe_digest", j->r->digest);
    wb_json_set_str(m, "version", j->v->version);
    wb_json_set_str(m, "artifact_digest", b->artifact_digest);
    wb_json_set_str(m, "digest", b->digest);
    wb_json_pretty(m, &text);
    rc = wb_buf_check(&text, path, err);
    if (rc == 0)
        rc = wb_file_write(path, wb_buf_str(&text), text.len, 0644, err);
    wb_buf_release(&text);
    return rc;
}

static int install(const struct job *j, const char *prefix, const char *manifest,
                   struct wb_bits_info *out, struct wb_err *err)
{
    WB_AUTO_FREE char *fresh = NULL;
    int rc;

    say(j, "installing %s %s", j->r->name, j->v->version);
    /* Without its manifest a prefix counts as absent: removed first, written last. */
    if (unlink(manifest) < 0 && errno != ENOENT)
        return wb_fail_sys(err, errno, "cannot remove %s", manifest);
    rc = fresh_folder(prefix, &fresh, err);
    if (rc < 0)
        return rc;
    rc = run_step(j, WB_STEP_INSTALL, j->cache, fresh, err);
    if (rc == 0)
        rc = wb_tree_digest(fresh, out->digest, err);
    if (rc == 0)
        rc = move_in(fresh, prefix, err);
    if (rc == 0)
        rc = write_manifest(j, manifest, out, err);
    if (rc < 0)
        WB_IGNORE(wb_remove_tree(fresh, NULL)); /* the next try removes it, too */
    return rc;
}

/* The name stands for everything that the content can depend on. */
static char *prefix_path(const struct job *j, const char *artifact_digest)
{
    WB_AUTO_FREE char *from = wb_strf("%s %s", artifact_digest, j->r->digest);
    char hex[WB_SHA256_HEX];

    wb_sha256_of(from, strlen(from), hex);
    return wb_strf("%s/%s-%s-%.12s", j->prefixes, j->r->name, j->v->version, hex);
}

static int have_prefix(const struct job *j, struct wb_bits_info *out, struct wb_err *err)
{
    WB_AUTO_FREE char *prefix = prefix_path(j, out->artifact_digest);
    WB_AUTO_FREE char *manifest = wb_strf("%s.json", prefix);
    struct wb_err why = WB_ERR_INIT;
    char text[2 * WB_ERR_TEXT_MAX];
    int rc = check_prefix(prefix, manifest, out->digest, &why);

    if (rc < 0 && rc != -WB_NOT_FOUND && rc != -WB_CORRUPT) {
        if (err)
            *err = why;
        return rc;
    }
    if (rc == -WB_CORRUPT)
        say(j, "%s; installing again", wb_err_text(&why, text, sizeof(text)));
    if (rc < 0)
        rc = install(j, prefix, manifest, out, err);
    if (rc == 0)
        out->prefix = WB_STEAL(prefix);
    return rc;
}

static int take_lock(const struct job *j, const char *path, int *fd, struct wb_err *err)
{
    WB_AUTO_FREE char *who =
        wb_strf("process %d, bits of %s %s\n", (int)getpid(), j->r->name, j->v->version);
    int64_t end = wb_now_ns(NULL) + LOCK_LIMIT_NS;
    bool told = false;

    for (;;) {
        struct wb_err why = WB_ERR_INIT;
        int rc = wb_lock_file(path, who, fd, &why);

        if (rc == 0)
            return 0;
        if (rc != -WB_CONFLICT || wb_now_ns(NULL) >= end) {
            if (err)
                *err = why;
            return rc;
        }
        if (!told)
            say(j, "waiting: %s", why.root);
        told = true;
        rc = wb_wait(j->cancel, -1, LOCK_PAUSE_NS, err);
        if (rc < 0)
            return rc;
    }
}

/* Names come from files: they are checked before they become paths. */
static int set_paths(struct job *j, const char *state_dir, struct wb_err *err)
{
    if (!wb_safe_name(j->r->name) || !wb_safe_name(j->v->version))
        return wb_fail(err, WB_INVALID,
                       "recipe '%s' version '%s': names may have letters, digits, '.', '_' and '-'",
                       j->r->name, j->v->version);
    j->cache = wb_strf("%s/cache/artifacts/%s/%s%s%.12s", state_dir, j->r->name, j->v->version,
                       j->v->artifact_sha256 ? "@" : "",
                       j->v->artifact_sha256 ? j->v->artifact_sha256 : "");
    j->prefixes = wb_strf("%s/prefix", state_dir);
    return 0;
}

static int ensure(struct job *j, const char *state_dir, bool with_prefix, struct wb_bits_info *out,
                  struct wb_err *err)
{
    WB_AUTO_FREE char *parent = NULL, *lock = NULL;
    struct wb_bits_info b = {0};
    int fd = -1, rc = set_paths(j, state_dir, err);

    if (rc == 0) {
        parent = wb_strf("%s/cache/artifacts/%s", state_dir, j->r->name);
        lock = wb_strf("%s.lock", j->cache);
        rc = wb_mkdir_all(parent, 0755, err);
    }
    if (rc == 0)
        rc = wb_mkdir_all(j->prefixes, 0755, err);
    if (rc == 0)
        rc = take_lock(j, lock, &fd, err);
    if (rc == 0)
        rc = have_artifacts(j, &b, err);
    if (rc == 0 && with_prefix)
        rc = have_prefix(j, &b, err);
    if (fd >= 0)
        (void)close(fd);
    free(j->cache);
    free(j->prefixes);
    if (rc < 0) {
        wb_bits_info_release(&b);
        return rc;
    }
    *out = b;
    return 0;
}

int wb_bits_fetch(const struct wb_recipe *r, const struct wb_recipe_version *v,
                  const char *state_dir, const struct wb_cancel *cancel, wb_bits_note note,
                  void *arg, struct wb_bits_info *out, struct wb_err *err)
{
    struct job j = {.r = r, .v = v, .cancel = cancel, .note = note, .arg = arg};

    return ensure(&j, state_dir, false, out, err);
}

int wb_bits_ensure(const struct wb_recipe *r, const struct wb_recipe_version *v,
                   const char *state_dir, const struct wb_cancel *cancel, wb_bits_note note,
                   void *arg, struct wb_bits_info *out, struct wb_err *err)
{
    struct job j = {.r = r, .v = v, .cancel = cancel, .note = note, .arg = arg};

    return ensure(&j, state_dir, true, out, err);
}

int wb_bits_verify(const struct wb_recipe *r, const struct wb_recipe_version *v,
                   const char *state_dir, struct wb_bits_info *out, struct wb_err *err)
{
    struct job j = {.r = r, .v = v};
    struct wb_bits_info b = {0};
    int rc = set_paths(&j, state_dir, err);

    if (rc == 0)
        rc = wb_artifacts_check(j.cache, &b, err);
    if (rc == 0)
        rc = wb_artifacts_pin(v, &b, err);
    if (rc == 0 || rc == -WB_CORRUPT)
        *out = b;
    else
        wb_bits_info_release(&b);
    free(j.cache);
    free(j.prefixes);
    return rc;
}
