#include "server/record/quarantine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/file.h"
#include "server/base/mem.h"
#include "server/record/loose.h"

char *wb_quarantine_path(const char *repository)
{
    return wb_strf("%s/objects/tmp_objdir-weighbridge", repository);
}

int wb_quarantine_make(const char *dir, struct wb_err *err)
{
    int rc = wb_remove_tree(dir, err);

    if (rc < 0)
        return rc;
    if (mkdir(dir, 0777) < 0)
        return wb_fail_sys(err, errno, "cannot make %s", dir);
    return 0;
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

/* Opens an object of the quarantine and starts or awaits its way to the disk. Absent: it was in
 * the repository before. */
static int sync_object(const char *dir, const struct wb_oid *id, bool start, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_loose_path(dir, id);
    WB_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    int rc;

    if (fd < 0)
        return errno == ENOENT ? 0 : wb_fail_sys(err, errno, "cannot open %s", path);
    rc = start ? sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE) : fsync(fd);
    if (rc < 0 && !start)
        return wb_fail_sys(err, errno, "cannot sync %s", path);
    return 0; /* a file system without early write-back does it all in fsync */
}

int wb_quarantine_sync(const char *dir, const struct wb_oid *ids, size_t n, struct wb_err *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = sync_object(dir, &ids[i], true, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = sync_object(dir, &ids[i], false, err);
    return rc;
}

static int publish_object(const char *dir, const char *objects, const struct wb_oid *id,
                          bool touched[256], struct wb_err *err)
{
    WB_AUTO_FREE char *from = wb_loose_path(dir, id);
    WB_AUTO_FREE char *to = wb_loose_path(objects, id);
    WB_AUTO_FREE char *folder = wb_strf("%s/%02x", objects, id->id[0]);

    if (!wb_path_exists(from))
        return 0;
    if (!touched[id->id[0]] && mkdir(folder, 0777) < 0 && errno != EEXIST)
        return wb_fail_sys(err, errno, "cannot make %s", folder);
    if (rename(from, to) < 0)
        return wb_fail_sys(err, errno, "cannot move an object to %s", to);
    touched[id->id[0]] = true;
    return 0;
}

int wb_quarantine_publish(const char *dir, const char *repository, const struct wb_oid *ids,
                          size_t n, struct wb_err *err)
{
    WB_AUTO_FREE char *objects = wb_strf("%s/objects", repository);
    bool touched[256] = {false};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = publish_object(dir, objects, &ids[i], touched, err);
    for (int i = 0; rc == 0 && i < 256; i++) {
        WB_AUTO_FREE char *folder = wb_strf("%s/%02x", objects, (unsigned)i);

        if (touched[i])
            rc = wb_sync_path(folder, err);
    }
    if (rc == 0)
        rc = wb_remove_tree(dir, err);
    return rc < 0 ? rc : wb_sync_path(objects, err);
}
