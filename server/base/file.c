#include "server/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "server/base/mem.h"
#include "server/base/units.h"

#define LIST_MAX 100000

/* Appends until the end of the file or until out has failed (over its bound). 0 or -errno. */
static int read_all(int fd, struct wb_buf *out)
{
    char chunk[16384];

    while (!out->failed) {
        ssize_t n = read(fd, chunk, sizeof(chunk));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            return 0;
        wb_buf_add(out, chunk, (size_t)n);
    }
    return 0;
}

static int read_to_end(int fd, const char *name, struct wb_buf *out, struct wb_err *err)
{
    int rc = read_all(fd, out);

    if (rc < 0)
        return wb_fail_sys(err, -rc, "cannot read %s", name);
    return wb_buf_check(out, name, err);
}

static int read_fd_of(const char *path, struct wb_buf *out, struct wb_err *err)
{
    WB_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    if (fd < 0)
        return wb_fail_sys(err, errno, "cannot open %s", path);
    return read_to_end(fd, path, out, err);
}

int wb_file_read(const char *path, size_t max, char **out, size_t *n, struct wb_err *err)
{
    WB_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    if (fd < 0)
        return wb_fail_sys(err, errno, "cannot open %s", path);
    return wb_file_read_fd(fd, path, max, out, n, err);
}

int wb_file_read_fd(int fd, const char *name, size_t max, char **out, size_t *n, struct wb_err *err)
{
    struct wb_buf b = WB_BUF_INIT(max);
    int rc = read_to_end(fd, name, &b, err);

    if (rc < 0) {
        wb_buf_release(&b);
        return rc;
    }
    if (n)
        *n = b.len;
    *out = wb_buf_take(&b);
    return 0;
}

int wb_file_read_small(const char *path, struct wb_buf *out, struct wb_err *err)
{
    return read_fd_of(path, out, err);
}

int wb_file_read_int(const char *path, int64_t *out, struct wb_err *err)
{
    struct wb_buf b = WB_BUF_INIT(256);
    int rc = read_fd_of(path, &b, err);

    if (rc == 0) {
        char *s = b.data;

        while (b.len && (s[b.len - 1] == '\n' || s[b.len - 1] == ' '))
            s[--b.len] = '\0';
        if (b.len && !strcmp(s, "max"))
            *out = INT64_MAX;
        else
            rc = wb_parse_int(b.len ? s : "", INT64_MIN, INT64_MAX, out, err);
        if (rc < 0)
            rc = wb_wrap(err, "%s", path);
    }
    wb_buf_release(&b);
    return rc;
}

static int write_all(int fd, const void *data, size_t n)
{
    const char *p = data;

    while (n) {
        ssize_t done = write(fd, p, n);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -errno;
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

/* fsync of the folder that holds path, so that a rename or a new name lasts. */
static int sync_parent(const char *path, struct wb_err *err)
{
    const char *slash = strrchr(path, '/');
    WB_AUTO_FREE char *dir = !slash          ? wb_strdup(".")
                             : slash == path ? wb_strdup("/")
                                             : wb_strndup(path, (size_t)(slash - path));
    WB_AUTO_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || fsync(fd) < 0)
        return wb_fail_sys(err, errno, "cannot sync folder %s", dir);
    return 0;
}

int wb_file_write(const char *path, const void *data, size_t n, mode_t mode, struct wb_err *err)
{
    WB_AUTO_FREE char *tmp = wb_strf("%s.tmp-XXXXXX", path);
    WB_AUTO_CLOSE int fd = mkostemp(tmp, O_CLOEXEC);
    int rc;

    if (fd < 0)
        return wb_fail_sys(err, errno, "cannot make a file beside %s", path);
    rc = write_all(fd, data, n);
    if (rc == 0 && (fchmod(fd, mode) < 0 || fsync(fd) < 0 || rename(tmp, path) < 0))
        rc = -errno;
    if (rc < 0) {
        (void)unlink(tmp);
        return wb_fail_sys(err, -rc, "cannot write %s", path);
    }
    return sync_parent(path, err);
}

int wb_file_put(const char *path, const void *data, size_t n, struct wb_err *err)
{
    WB_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int rc;

    if (fd < 0)
        return wb_fail_sys(err, errno, "cannot open %s for writing", path);
    rc = write_all(fd, data, n);
    if (rc < 0)
        return wb_fail_sys(err, -rc, "cannot write %s", path);
    return 0;
}

int wb_file_append(const char *path, const void *data, size_t n, struct wb_err *err)
{
    bool fresh = !wb_path_exists(path);
    WB_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    int rc;

    if (fd < 0)
        return wb_fail_sys(err, errno, "cannot open %s for appending", path);
    rc = write_all(fd, data, n);
    if (rc == 0 && fdatasync(fd) < 0)
        rc = -errno;
    if (rc < 0)
        return wb_fail_sys(err, -rc, "cannot append to %s", path);
    return fresh ? sync_parent(path, err) : 0;
}

int wb_mkdir_all(const char *path, mode_t mode, struct wb_err *err)
{
    WB_AUTO_FREE char *p = wb_strdup(path);
    struct stat st;

    for (char *s = p + 1;; s++) {
        char c = *s;

        if (c != '/' && c != '\0')
            continue;
        *s = '\0';
        if (mkdir(p, mode) < 0 && errno != EEXIST)
            return wb_fail_sys(err, errno, "cannot make folder %s", p);
        *s = c;
        if (!c)
            break;
    }
    if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return wb_fail(err, WB_IO, "%s exists and is not a folder", path);
    return 0;
}

/* Removes `name` below the folder fd at; at most `depth` levels; 0 or -errno. */
static int remove_at(int at, const char *name, dev_t dev, int depth)
{
    struct stat st;
    int fd, rc = 0;
    DIR *d;

    if (unlinkat(at, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -errno;
    if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISDIR(st.st_mode))
        return -EPERM;
    if (st.st_dev != dev)
        return -EXDEV;
    if (depth == 0)
        return -ELOOP;
    fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    d = fdopendir(fd);
    if (!d) {
        rc = -errno;
        (void)close(fd);
        return rc;
    }
    for (struct dirent *e; rc == 0 && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            rc = remove_at(dirfd(d), e->d_name, dev, depth - 1);
    (void)closedir(d);
    if (rc == 0 && unlinkat(at, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        rc = -errno;
    return rc;
}

int wb_remove_tree(const char *path, struct wb_err *err)
{
    struct stat st;
    int rc;

    if (lstat(path, &st) < 0)
        return errno == ENOENT ? 0 : wb_fail_sys(err, errno, "cannot look at %s", path);
    rc = remove_at(AT_FDCWD, path, st.st_dev, 64);
    if (rc == -EXDEV)
        return wb_fail(err, WB_CONFLICT, "cannot remove %s: something is mounted below it", path);
    if (rc < 0)
        return wb_fail_sys(err, -rc, "cannot remove %s", path);
    return 0;
}

bool wb_path_exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

int wb_path_absolute(const char *path, char **out, struct wb_err *err)
{
    WB_AUTO_FREE char *cwd = NULL;

    if (path[0] == '/') {
        *out = wb_strdup(path);
        return 0;
    }
    cwd = getcwd(NULL, 0);
    if (!cwd)
        return wb_fail_sys(err, errno, "cannot read the current folder");
    *out = wb_strf("%s/%s", cwd, path);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int wb_list_dir(const char *path, struct wb_strv *out, struct wb_err *err)
{
    DIR *d = opendir(path);

    if (!d)
        return wb_fail_sys(err, errno, "cannot list %s", path);
    for (struct dirent *e; (e = readdir(d));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        if (out->n >= LIST_MAX) {
            (void)closedir(d);
            return wb_fail(err, WB_LIMIT, "%s holds more than %d names", path, LIST_MAX);
        }
        wb_strv_add(out, e->d_name);
    }
    (void)closedir(d);
    if (out->n)
        qsort(out->v, out->n, sizeof(*out->v), by_name);
    return 0;
}

int wb_disk_free(const char *path, int64_t *bytes, struct wb_err *err)
{
    struct statvfs v;

    if (statvfs(path, &v) < 0)
        return wb_fail_sys(err, errno, "cannot read the free space of %s", path);
    *bytes = (int64_t)v.f_bavail * (int64_t)v.f_frsize;
    return 0;
}

bool wb_safe_name(const char *s)
{
    size_t n = 0;

    for (; s && s[n]; n++) {
        bool alnum = (s[n] >= '0' && s[n] <= '9') || (s[n] >= 'a' && s[n] <= 'z') ||
                     (s[n] >= 'A' && s[n] <= 'Z');

        if (n >= 128 || (!alnum && (n == 0 || !strchr("._-@", s[n]))))
            return false;
    }
    return n > 0;
}

/* flock, and who holds it when another does. */
static int take_lock(int f, const char *path, int how, struct wb_err *err)
{
    struct wb_buf holder = WB_BUF_INIT(4096);
    int why, rc;

    if (flock(f, how | LOCK_NB) == 0)
        return 0;
    why = errno;
    if (why != EWOULDBLOCK)
        return wb_fail_sys(err, why, "cannot lock %s", path);
    (void)read_all(f, &holder);
    while (holder.len && holder.data[holder.len - 1] == '\n')
        holder.data[--holder.len] = '\0';
    rc = wb_fail(err, WB_CONFLICT, "%s is held by %s", path,
                 holder.len ? holder.data : "another process");
    wb_buf_release(&holder);
    return rc;
}

int wb_lock_file(const char *path, const char *who, int *fd, struct wb_err *err)
{
    int f = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    int rc;

    *fd = -1;
    if (f < 0)
        return wb_fail_sys(err, errno, "cannot open the lock file %s", path);
    rc = take_lock(f, path, LOCK_EX, err);
    if (rc < 0) {
        (void)close(f);
        return rc;
    }
    if (ftruncate(f, 0) < 0 || write_all(f, who, strlen(who)) < 0) {
        rc = wb_fail_sys(err, errno, "cannot write the lock file %s", path);
        (void)close(f);
        return rc;
    }
    *fd = f;
    return 0;
}

int wb_lock_look(const char *path, struct wb_err *err)
{
    int f = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), rc;

    if (f < 0)
        return wb_fail_sys(err, errno, "cannot open the lock file %s", path);
    rc = take_lock(f, path, LOCK_SH, err);
    (void)close(f);
    return rc;
}
