#include "server/record/import.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/record/gitrun.h"
#include "server/record/locks.h"
#include "server/record/work.h"

#define IMPORT "refs/import/" /* where fetched references stand until they are looked at */
#define FETCH_LIMIT_NS (1800 * WB_SEC)
#define FROM_MAX 1000

enum step { STEP_NEW, STEP_FORWARD, STEP_SAME, STEP_OLDER, STEP_REFUSED };

static const char *const step_words[] = {[STEP_NEW] = "new",
                                         [STEP_FORWARD] = "forward",
                                         [STEP_SAME] = "same",
                                         [STEP_OLDER] = "older",
                                         [STEP_REFUSED] = "refused"};

/* Removes what stands below refs/import/, ours or a dead import's. */
static void clear(struct wb_store *s)
{
    struct wb_git_ref *refs = NULL;
    size_t n = 0;

    if (wb_git_refs(s->git, IMPORT, &refs, &n, NULL, NULL) < 0)
        return;
    for (size_t i = 0; i < n; i++)
        WB_IGNORE(wb_git_ref_remove(s->git, refs[i].name, NULL)); /* the next import tries again */
    wb_git_refs_free(refs, n);
}

static int fetch(struct wb_store *s, const char *from, const struct wb_cancel *cancel,
                 struct wb_err *err)
{
    static const char *const args[] = {"fetch",
                                       "-q",
                                       "--no-tags",
                                       "--no-write-fetch-head",
                                       "--no-auto-maintenance",
                                       "--no-recurse-submodules",
                                       "--"};
    struct wb_git_run run = {.limit_ns = FETCH_LIMIT_NS, .network = true, .cancel = cancel};
    struct wb_child_result res = {0};
    int rc;

    for (size_t i = 0; i < WB_LEN(args); i++)
        wb_strv_add(&run.args, args[i]);
    wb_strv_add(&run.args, from);
    wb_strv_add(&run.args, "+" WB_RECORDS "*:" IMPORT "records/*");
    wb_strv_add(&run.args, "+" WB_RAW "*:" IMPORT "raw/*");
    rc = wb_git_run(s, &run, &res, err);
    if (rc == 0 && res.exit_code != 0) {
        WB_AUTO_FREE char *said = wb_last_line(wb_buf_str(&res.err));

        rc = wb_fail(err, WB_UNAVAILABLE, "cannot fetch from %s: %s", from, said);
    }
    wb_child_release(&res);
    return rc;
}

/* Whether `old` is reached from `from` by parents. */
static int reaches(struct wb_store *s, const struct wb_oid *from, const struct wb_oid *old,
                   bool *out, struct wb_err *err)
{
    struct wb_oid next = *from;

    *out = wb_oid_equal(&next, old);
    for (bool more = true; more && !*out;) {
        struct wb_git_commit c = {0};
        int rc = wb_git_commit(s->git, &next, &c, err);

        if (rc < 0)
            return rc;
        more = c.has_parent;
        next = c.parent;
        *out = more && wb_oid_equal(&next, old);
        wb_git_commit_release(&c);
    }
    return 0;
}

static int decide(struct wb_store *s, const char *name, const struct wb_oid *now, enum step *step,
                  struct wb_oid *old, struct wb_err *err)
{
    bool forward = false, backward = false;
    int rc = wb_git_ref(s->git, name, old, err);

    if (rc == -WB_NOT_FOUND) {
        *step = STEP_NEW;
        return 0;
    }
    if (rc == 0 && wb_oid_equal(old, now)) {
        *step = STEP_SAME;
        return 0;
    }
    if (rc == 0)
        rc = reaches(s, now, old, &forward, err);
    if (rc == 0 && !forward)
        rc = reaches(s, old, now, &backward, err);
    *step = forward ? STEP_FORWARD : backward ? STEP_OLDER : STEP_REFUSED;
    return rc;
}

/* One fetched reference under its own name. */
static int take_over(struct wb_store *s, const struct wb_git_ref *ref, const char *name,
                     wb_json *refs, size_t *refused, struct wb_err *err)
{
    struct wb_oid old;
    enum step step = STEP_REFUSED;
    wb_json *o;
    int rc = decide(s, name, &ref->id, &step, &old, err);

    if (rc == 0 && (step == STEP_NEW || step == STEP_FORWARD))
        rc = wb_git_ref_set(s->git, name, &ref->id, step == STEP_FORWARD ? &old : NULL, err);
    if (rc < 0)
        return wb_wrap(err, "%s", name);
    o = wb_json_object();
    wb_json_set_str(o, "ref", name);
    wb_json_set_str(o, "status", step_words[step]);
    wb_json_set_str(o, "reason",
                    step == STEP_REFUSED ? "here and there it has different histories" : NULL);
    wb_json_push(refs, o);
    *refused += step == STEP_REFUSED;
    return 0;
}

/* Raw data first, so that no record lacks its own. */
static int take_all(struct wb_store *s, wb_json *refs, size_t *refused, struct wb_err *err)
{
    static const char *const kinds[][2] = {{IMPORT "raw/", WB_RAW},
                                           {IMPORT "records/", WB_RECORDS}};
    int rc = 0;

    for (size_t k = 0; rc == 0 && k < WB_LEN(kinds); k++) {
        struct wb_git_ref *v = NULL;
        size_t n = 0;

        rc = wb_git_refs(s->git, kinds[k][0], &v, &n, NULL, err);
        for (size_t i = 0; rc == 0 && i < n; i++) {
            WB_AUTO_FREE char *name = wb_strf("%s%s", kinds[k][1], v[i].name + strlen(kinds[k][0]));

            rc = take_over(s, &v[i], name, refs, refused, err);
        }
        wb_git_refs_free(v, n);
    }
    return rc;
}

static int check_from(const char *from, struct wb_err *err)
{
    bool good = from && *from && *from != '-' && strlen(from) <= FROM_MAX;

    for (const char *c = from; good && *c; c++)
        good = (unsigned char)*c >= 0x20 && *c != 0x7f;
    return good ? 0
                : wb_fail(err, WB_INVALID, "'%.80s' cannot be a store; name its path or URL",
                          from ? from : "");
}

/* Whether it is a path: no URL, and no host before a colon. */
static bool is_path(const char *from)
{
    size_t n = strcspn(from, ":/");

    return from[n] != ':';
}

/* A path is looked at before git is asked, whose words are about other things than stores. */
static int check_path(const char *from, struct wb_err *err)
{
    WB_AUTO_FREE char *head = wb_strf("%s/HEAD", from);
    WB_AUTO_FREE char *inner = wb_strf("%s/.git", from);
    struct stat st;

    if (!is_path(from))
        return 0;
    if (stat(from, &st) < 0)
        return errno == ENOENT || errno == ENOTDIR
                   ? wb_fail(err, WB_NOT_FOUND, "there is no store at %s", from)
                   : wb_fail_sys(err, errno, "cannot look at %s", from);
    if (!S_ISDIR(st.st_mode))
        return wb_fail(err, WB_INVALID,
                       "%s is a file, not a store; a file of results is imported with --results "
                       "SOURCE",
                       from);
    if (!wb_path_exists(head) && !wb_path_exists(inner))
        return wb_fail(err, WB_INVALID, "%s is not a store: it is no git repository", from);
    return 0;
}

int wb_store_import(struct wb_store *s, const char *from, const struct wb_cancel *cancel,
                    wb_json **report, struct wb_err *err)
{
    WB_AUTO_FREE char *lock_path = wb_strf("%s/weighbridge.import.lock", s->path);
    WB_AUTO_JSON wb_json *out = wb_json_object();
    WB_AUTO_CLOSE int importing = -1;
    WB_AUTO_CLOSE int lock = -1;
    wb_json *refs = wb_json_array();
    size_t refused = 0;
    int rc = check_from(from, err);

    if (rc == 0)
        rc = check_path(from, err);
    wb_json_set_str(out, "from", from);
    wb_json_set(out, "refs", refs);
    if (rc == 0 && !s->controller)
        rc = wb_fail(err, WB_CONFLICT, "%s is a copy without a controller id and can only be read",
                     s->path);
    if (rc == 0)
        rc = wb_lock_wait(lock_path, 0, &importing, err);
    if (rc < 0)
        return rc;
    clear(s);
    rc = fetch(s, from, cancel, err);
    if (rc == 0)
        rc = wb_store_tidy(s, &lock, err);
    if (rc == 0)
        rc = take_all(s, refs, &refused, err);
    clear(s);
    if (rc == 0 && wb_json_len(refs) == 0)
        rc = wb_fail(
            err, WB_NOT_FOUND,
            "there are no records in %s: it is a git repository, but has no references below "
            "refs/heads/records",
            from);
    if (rc < 0)
        return rc;
    *report = WB_STEAL(out);
    return refused ? wb_fail(err, WB_CONFLICT, "%zu reference%s of %s refused", refused,
                             refused == 1 ? " was" : "s were", from)
                   : 0;
}
