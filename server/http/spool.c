#include "server/http/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/file.h"

/* Room is made before a file is added, the one that was used the longest ago first. What somebody
 * still reads stays readable: only its name goes. */
static void make_room(const char *dir)
{
    struct wb_strv names = {0};
    int64_t sum = 0;

    if (wb_list_dir(dir, &names, NULL) < 0)
        return;
    do {
        char *oldest = NULL;
        int64_t oldest_ns = INT64_MAX;

        sum = 0;
        for (size_t i = 0; i < names.n; i++) {
            WB_AUTO_FREE char *path = wb_strf("%s/%s", dir, names.v[i]);
            struct stat st;
            int64_t at;

            if (lstat(path, &st) < 0)
                continue;
            sum += st.st_size;
            at = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
            if (at < oldest_ns) {
                oldest_ns = at;
                free(oldest);
                oldest = wb_strdup(path);
            }
        }
        if (sum > WB_SPOOL_BYTES_MAX && oldest && unlink(oldest) < 0)
            sum = 0; /* it cannot be helped */
        free(oldest);
    } while (sum > WB_SPOOL_BYTES_MAX);
    wb_strv_release(&names);
}

static int fill(struct wb_store *s, const char *dir, const char *run, const char *name,
                const char *path, int *fd, struct wb_err *err)
{
    WB_AUTO_FREE char *part = wb_strf("%s/part-XXXXXX", dir);
    WB_AUTO_CLOSE int own = mkostemp(part, O_CLOEXEC);
    int rc;

    if (own < 0)
        return wb_fail_sys(err, errno, "cannot make a file in %s", dir);
    rc = wb_store_copy_raw(s, run, name, own, err);
    if (rc == 0 && rename(part, path) < 0)
        rc = wb_fail_sys(err, errno, "cannot rename %s", part);
    if (rc < 0) {
        (void)unlink(part);
        return rc;
    }
    *fd = own;
    own = -1; /* the caller's now */
    return 0;
}

int wb_spool_open(struct wb_store *s, const char *dir, const char *run, const char *name,
                  const char *sha256, int *fd, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("%s/%s", dir, sha256);
    int rc;

    if (!wb_safe_name(sha256))
        return wb_fail(err, WB_CORRUPT, "the summary of %s has no digest of %s", run, name);
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (*fd >= 0) {
        (void)utimensat(AT_FDCWD, path, NULL, 0); /* used just now */
        return 0;
    }
    rc = wb_mkdir_all(dir, 0700, err);
    if (rc < 0)
        return rc;
    make_room(dir);
    return fill(s, dir, run, name, path, fd, err);
}
