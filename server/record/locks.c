#include "server/record/locks.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/cancel.h"
#include "server/base/clock.h"
#include "server/base/file.h"

#define TURN_NS (20 * WB_MS) /* between two looks at a lock */
#define REF_AGE_MS 2000      /* a reference lock is held for milliseconds */
#define OTHER_AGE_MS 600000  /* packing may take minutes */
#define LINK_MAX_BYTES 4096

int wb_lock_wait(const char *path, int64_t wait_ns, int *fd, struct wb_err *err)
{
    WB_AUTO_FREE char *who = wb_strf("process %d\n", (int)getpid());
    int64_t until = wb_now_ns(NULL) + wait_ns;
    int rc = wb_lock_file(path, who, fd, err);

    while (rc == -WB_CONFLICT && wb_now_ns(NULL) < until) {
        int waited = wb_wait(NULL, -1, TURN_NS, err);

        if (waited < 0)
            return waited;
        rc = wb_lock_file(path, who, fd, err);
    }
    return rc;
}

int wb_store_lock(const char *repository, int64_t wait_ns, int *fd, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("%s/weighbridge.lock", repository);

    return wb_lock_wait(path, wait_ns, fd, err);
}

/* Whether a process (fd folder below /proc) has the file open. */
static bool process_has_open(const char *fds, const char *path)
{
    DIR *d = opendir(fds);
    bool found = false;

    if (!d)
        return false;
    for (struct dirent *e; !found && (e = readdir(d));) {
        WB_AUTO_FREE char *link = wb_strf("%s/%s", fds, e->d_name);
        char target[LINK_MAX_BYTES];
        ssize_t n = readlink(link, target, sizeof(target) - 1);

        if (n < 0)
            continue;
        target[n] = '\0';
        found = !strcmp(target, path);
    }
    (void)closedir(d);
    return found;
}

/* Whether any process that we may look at has the file open. */
static bool somebody_has_open(const char *path)
{
    WB_AUTO_FREE char *real = realpath(path, NULL);
    DIR *proc = real ? opendir("/proc") : NULL;
    bool found = false;

    if (!proc)
        return false;
    for (struct dirent *e; !found && (e = readdir(proc));) {
        WB_AUTO_FREE char *fds = wb_strf("/proc/%s/fd", e->d_name);

        if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
            found = process_has_open(fds, real);
    }
    (void)closedir(proc);
    return found;
}

enum lock_state { LOCK_FREE, LOCK_DEAD, LOCK_LIVING };

/* watched_ms: how long it has been there under our eyes, which is its age where its own time lies
 * in the future: the clock was set back. */
static enum lock_state lock_state(const char *path, int64_t age_ms, int64_t watched_ms)
{
    struct stat st;
    int64_t age;

    if (lstat(path, &st) < 0)
        return LOCK_FREE;
    age = wb_now_unix_ms(NULL) - ((int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / WB_MS);
    if (age < 0)
        age = watched_ms;
    if (age < age_ms || somebody_has_open(path))
        return LOCK_LIVING;
    return LOCK_DEAD;
}

static int remove_lock(const char *path, struct wb_strv *notices, struct wb_err *err)
{
    if (unlink(path) < 0 && errno != ENOENT)
        return wb_fail_sys(err, errno, "cannot remove the dead lock file %s", path);
    wb_strv_addf(notices, "removed %s, left by a writer that is gone", path);
    return 0;
}

int wb_git_unlock_ref(const char *repository, const char *ref, int64_t wait_ns,
                      struct wb_strv *notices, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("%s/%s.lock", repository, ref);
    int64_t from = wb_now_ns(NULL), until = from + wait_ns;

    for (;;) {
        int rc;

        switch (lock_state(path, REF_AGE_MS, (wb_now_ns(NULL) - from) / WB_MS)) {
        case LOCK_FREE:
            return 0;
        case LOCK_DEAD:
            return remove_lock(path, notices, err);
        case LOCK_LIVING:
            break;
        }
        if (wb_now_ns(NULL) >= until)
            return wb_fail(err, WB_CONFLICT,
                           "%s is held by a living git command; try again when it has ended", path);
        rc = wb_wait(NULL, -1, TURN_NS, err);
        if (rc < 0)
            return rc;
    }
}

void wb_git_unlock_others(const char *repository, struct wb_strv *notices)
{
    static const char *const names[] = {"HEAD", "config", "index", "packed-refs"};

    for (size_t i = 0; i < WB_LEN(names); i++) {
        WB_AUTO_FREE char *path = wb_strf("%s/%s.lock", repository, names[i]);

        if (lock_state(path, OTHER_AGE_MS, 0) == LOCK_DEAD)
            WB_IGNORE(remove_lock(path, notices, NULL)); /* it is in git's way, not in ours */
    }
}
