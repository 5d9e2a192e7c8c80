#include "server/record/quarantine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "server/base/file.h"
#include "server/base/mem.h"
#include "server/record/loose.h"

#define MARK "last"   /* the file whose sync carries the others */
#define MARK_MAX 4096 /* bytes it may grow to */

char *wb_quarantine_path(const char *repository)
{
    return wb_strf("%s/objects/tmp_objdir-weighbridge", repository);
}

int wb_quarantine_make(const char *dir, struct wb_err *err)
{
    struct wb_strv names = {0};
    int rc = 0;

    if (mkdir(dir, 0777) < 0 && errno != EEXIST)
        return wb_fail_sys(err, errno, "cannot make %s", dir);
    rc = wb_list_dir(dir, &names, err);
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        WB_AUTO_FREE char *path = wb_strf("%s/%s", dir, names.v[i]);

        if (strcmp(names.v[i], MARK) != 0)
            rc = wb_remove_tree(path, err);
    }
    wb_strv_release(&names);
    return rc;
}

int wb_sync_path(const char *path, struct wb_err *err)
{
    WB_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return wb_fail_sys(err, errno, "cannot open %s to sync it", path);
    if (fsync(fd) < 0)
        return wb_fail_sys(err, errno, "cannot sync %s", path);
    return 0;
}

/* Whether syncing one file makes all earlier changes of names and sizes last, too. */
static bool has_one_journal(const char *dir)
{
    struct statfs f;

    return statfs(dir, &f) == 0 &&
           (f.f_type == EXT4_SUPER_MAGIC || f.f_type == XFS_SUPER_MAGIC || f.f_type == TMPFS_MAGIC);
}

enum way {
    WAY_START, /* begin to write the data out */
    WAY_AWAIT, /* and wait for it */
    WAY_SYNC   /* fsync */
};

/* Absent objects were in the repository before. */
static int sync_object(const char *dir, const struct wb_oid *id, enum way way, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_loose_path(dir, id, true);
    WB_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    int rc = 0;

    if (fd < 0)
        return errno == ENOENT ? 0 : wb_fail_sys(err, errno, "cannot open %s", path);
    switch (way) {
    case WAY_START: /* only to be quicker: what goes wrong here shows in the next pass */
        (void)sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
        break;
    case WAY_AWAIT:
        rc = sync_file_range(fd, 0, 0,
                             SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                                 SYNC_FILE_RANGE_WAIT_AFTER);
        break;
    case WAY_SYNC:
        rc = fsync(fd);
        break;
    }
    return rc < 0 ? wb_fail_sys(err, errno, "cannot sync %s", path) : 0;
}

/* Makes the mark one byte longer and syncs it: a change that is later in the journal than those of
 * all the files. */
static int sync_mark(const char *dir, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("%s/" MARK, dir);
    WB_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || (st.st_size >= MARK_MAX && ftruncate(fd, 0) < 0) ||
        write(fd, "\n", 1) != 1 || fsync(fd) < 0)
        return wb_fail_sys(err, errno, "cannot sync by way of %s", path);
    return 0;
}

int wb_quarantine_sync(const char *dir, const struct wb_oid *ids, size_t n, struct wb_err *err)
{
    bool one_journal = has_one_journal(dir);
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = sync_object(dir, &ids[i], WAY_START, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = sync_object(dir, &ids[i], one_journal ? WAY_AWAIT : WAY_SYNC, err);
    if (rc < 0 || !one_journal)
        return rc;
    return sync_mark(dir, err);
}

/* Moves one object into the repository. *folder is the one it came into, untouched when the object
 * was in the repository before. */
static int publish_object(const char *dir, const char *objects, const struct wb_oid *id,
                          int *folder, struct wb_err *err)
{
    WB_AUTO_FREE char *from = wb_loose_path(dir, id, true);
    WB_AUTO_FREE char *to = wb_loose_path(objects, id, false);
    WB_AUTO_FREE char *in = wb_strf("%s/%02x", objects, id->id[0]);
    int rc = rename(from, to);

    if (rc < 0 && errno == ENOENT) {
        if (!wb_path_exists(from))
            return 0;
        if (mkdir(in, 0777) < 0 && errno != EEXIST)
            return wb_fail_sys(err, errno, "cannot make %s", in);
        rc = rename(from, to);
    }
    if (rc < 0)
        return wb_fail_sys(err, errno, "cannot move an object to %s", to);
    *folder = id->id[0];
    return 0;
}

/* Syncs what touched names, and the folder they stand in, where new ones may have been made. */
static int sync_folders(const char *objects, const bool touched[256], struct wb_err *err)
{
    int rc = 0;

    for (unsigned i = 0; rc == 0 && i < 256; i++) {
        WB_AUTO_FREE char *folder = wb_strf("%s/%02x", objects, i);

        if (touched[i])
            rc = wb_sync_path(folder, err);
    }
    return rc < 0 ? rc : wb_sync_path(objects, err);
}

int wb_quarantine_publish(const char *dir, const char *repository, const struct wb_oid *ids,
                          size_t n, struct wb_err *err)
{
    WB_AUTO_FREE char *objects = wb_strf("%s/objects", repository);
    bool touched[256] = {false};
    int rc = 0, last = -1;

    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = publish_object(dir, objects, &ids[i], &last, err);
        if (last >= 0)
            touched[last] = true;
    }
    if (rc == 0 && last >= 0 && has_one_journal(dir)) {
        WB_AUTO_FREE char *folder = wb_strf("%s/%02x", objects, (unsigned)last);

        rc = wb_sync_path(folder, err); /* the last change of all carries the others */
    } else if (rc == 0) {
        rc = sync_folders(objects, touched, err);
    }
    return rc;
}
