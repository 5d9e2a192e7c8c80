#include "provisioners/forms/tar.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/buf.h"
#include "server/base/file.h"
#include "server/base/mem.h"
#include "server/base/units.h"

/* Fields of a ustar header: offset and width. */
enum {
    F_NAME = 0,
    W_NAME = 100,
    F_MODE = 100,
    F_UID = 108,
    F_GID = 116,
    W_NUMBER = 8,
    F_SIZE = 124,
    F_MTIME = 136,
    W_LONG = 12,
    F_CHECKSUM = 148,
    F_TYPE = 156,
    F_LINK = 157,
    F_MAGIC = 257,
    F_PREFIX = 345,
    W_PREFIX = 155
};

#define MTIME 1                  /* seconds since 1970: 0 is taken for "unknown" by some tools */
#define OCTAL_MAX 077777777777LL /* largest size a plain header can say */
#define PAX_MAX (64 << 10)

/* Digits of value, zero-padded to width - 1, then NUL. value fits by the caller's check. */
static void put_octal(char *field, int width, int64_t value)
{
    field[width - 1] = '\0';
    for (int i = width - 2; i >= 0; i--) {
        field[i] = (char)('0' + (value & 7));
        value >>= 3;
    }
}

static unsigned checksum(const char *block)
{
    unsigned sum = 0;

    for (int i = 0; i < WB_TAR_BLOCK; i++)
        sum += i >= F_CHECKSUM && i < F_CHECKSUM + 8 ? (unsigned)' ' : (unsigned char)block[i];
    return sum;
}

static int emit(struct wb_tar *t, const void *data, size_t n, struct wb_err *err)
{
    t->bytes += (int64_t)n;
    return n ? t->sink(t->arg, data, n, err) : 0;
}

static int emit_padding(struct wb_tar *t, int64_t size, struct wb_err *err)
{
    static const char zero[WB_TAR_BLOCK];
    return emit(t, zero, (size_t)(-size & (WB_TAR_BLOCK - 1)), err);
}

/* Splits a path into the header's prefix and name; false when it does not fit. */
static bool split(const char *path, char *block)
{
    size_t n = strlen(path);

    if (n <= W_NAME) {
        memcpy(block + F_NAME, path, n);
        return true;
    }
    for (size_t i = n - W_NAME - 1; i < n && i <= W_PREFIX; i++) {
        if (path[i] != '/' || i == 0 || i + 1 == n)
            continue;
        memcpy(block + F_PREFIX, path, i);
        memcpy(block + F_NAME, path + i + 1, n - i - 1);
        return true;
    }
    return false;
}

static int emit_block(struct wb_tar *t, char *block, char type, unsigned mode, int64_t size,
                      struct wb_err *err)
{
    put_octal(block + F_MODE, W_NUMBER, mode & 07777);
    put_octal(block + F_UID, W_NUMBER, 0);
    put_octal(block + F_GID, W_NUMBER, 0);
    put_octal(block + F_SIZE, W_LONG, size <= OCTAL_MAX ? size : 0);
    put_octal(block + F_MTIME, W_LONG, MTIME);
    block[F_TYPE] = type;
    memcpy(block + F_MAGIC,
           "ustar\0"
           "00",
           8);
    put_octal(block + F_CHECKSUM, 7, checksum(block));
    block[F_CHECKSUM + 7] = ' ';
    return emit(t, block, WB_TAR_BLOCK, err);
}

/* One pax record: "LENGTH KEY=VALUE\n", where LENGTH counts itself. */
static void pax_record(struct wb_buf *b, const char *key, const char *value)
{
    size_t rest = strlen(key) + strlen(value) + 3, digits = 1, power = 10;

    while (rest + digits >= power) {
        digits++;
        power *= 10;
    }
    wb_buf_addf(b, "%zu %s=%s\n", rest + digits, key, value);
}

static int emit_pax(struct wb_tar *t, const struct wb_buf *records, struct wb_err *err)
{
    char block[WB_TAR_BLOCK] = "pax";
    int rc = emit_block(t, block, 'x', 0644, (int64_t)records->len, err);

    if (rc < 0 || (rc = emit(t, records->data, records->len, err)) < 0)
        return rc;
    return emit_padding(t, (int64_t)records->len, err);
}

/* Header of one member, with a pax header in front when the plain one cannot say it. */
static int emit_header(struct wb_tar *t, const char *path, char type, unsigned mode, int64_t size,
                       const char *link, struct wb_err *err)
{
    char block[WB_TAR_BLOCK] = {0};
    struct wb_buf pax = WB_BUF_INIT(PAX_MAX);
    int rc = 0;

    if (path[0] == '/' || path[0] == '\0')
        return wb_fail(err, WB_INVALID, "an archive member needs a relative path, not '%s'", path);
    if (strlen(path) >= WB_TAR_PATH_MAX || strlen(link) >= WB_TAR_PATH_MAX)
        return wb_fail(err, WB_LIMIT, "path of more than %d bytes: %.80s...", WB_TAR_PATH_MAX - 1,
                       path);
    if (++t->members > WB_TAR_MEMBERS_MAX)
        return wb_fail(err, WB_LIMIT, "more than %d files for an archive", WB_TAR_MEMBERS_MAX);
    if (!split(path, block)) {
        memcpy(block + F_NAME, path, W_NAME);
        pax_record(&pax, "path", path);
    }
    if (strlen(link) > W_NAME)
        pax_record(&pax, "linkpath", link);
    memcpy(block + F_LINK, link, strlen(link) > W_NAME ? W_NAME : strlen(link));
    if (size > OCTAL_MAX) {
        WB_AUTO_FREE char *digits = wb_strf("%lld", (long long)size);
        pax_record(&pax, "size", digits);
    }
    if (pax.len)
        rc = emit_pax(t, &pax, err);
    wb_buf_release(&pax);
    return rc < 0 ? rc : emit_block(t, block, type, mode, size, err);
}

int wb_tar_add_dir(struct wb_tar *t, const char *path, unsigned mode, struct wb_err *err)
{
    WB_AUTO_FREE char *slash = wb_strf("%s/", path);
    return emit_header(t, slash, '5', mode, 0, "", err);
}

int wb_tar_add_file(struct wb_tar *t, const char *path, unsigned mode, const void *data, size_t n,
                    struct wb_err *err)
{
    int rc = emit_header(t, path, '0', mode, (int64_t)n, "", err);

    if (rc < 0 || (rc = emit(t, data, n, err)) < 0)
        return rc;
    return emit_padding(t, (int64_t)n, err);
}

static int add_contents(struct wb_tar *t, const char *from, int fd, int64_t size,
                        struct wb_err *err)
{
    WB_AUTO_FREE char *part = wb_calloc(64 << 10, 1);
    int64_t left = size;

    while (left > 0) {
        size_t want = left < (64 << 10) ? (size_t)left : (size_t)(64 << 10);
        ssize_t got = read(fd, part, want);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return wb_fail_sys(err, errno, "cannot read %s", from);
        if (got == 0)
            return wb_fail(err, WB_CONFLICT, "%s became shorter while it was read", from);
        int rc = emit(t, part, (size_t)got, err);
        if (rc < 0)
            return rc;
        left -= got;
    }
    return emit_padding(t, size, err);
}

static int add_regular(struct wb_tar *t, const char *from, const char *path, struct wb_err *err)
{
    /* Opened without following a link and sized by the descriptor: what is sent is what was
     * looked at. */
    WB_AUTO_CLOSE int fd = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;

    if (fd < 0)
        return wb_fail_sys(err, errno, "cannot open %s", from);
    if (fstat(fd, &st) < 0)
        return wb_fail_sys(err, errno, "cannot look at %s", from);
    if (!S_ISREG(st.st_mode))
        return wb_fail(err, WB_CONFLICT, "%s is no longer a plain file", from);
    int rc = emit_header(t, path, '0', st.st_mode, st.st_size, "", err);
    return rc < 0 ? rc : add_contents(t, from, fd, st.st_size, err);
}

static int add_link(struct wb_tar *t, const char *from, const char *path, struct wb_err *err)
{
    char target[WB_TAR_PATH_MAX];
    ssize_t n = readlink(from, target, sizeof target);

    if (n < 0)
        return wb_fail_sys(err, errno, "cannot read the link %s", from);
    if ((size_t)n == sizeof target)
        return wb_fail(err, WB_LIMIT, "the link %s points to a path that is too long", from);
    target[n] = '\0';
    return emit_header(t, path, '2', 0777, 0, target, err);
}

static int add_any(struct wb_tar *t, const char *from, const char *path, int depth,
                   struct wb_err *err);

static int add_folder(struct wb_tar *t, const char *from, const char *path, unsigned mode,
                      int depth, struct wb_err *err)
{
    struct wb_strv names = {0};
    int rc = wb_tar_add_dir(t, path, mode, err);

    if (rc == 0)
        rc = wb_list_dir(from, &names, err);
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        WB_AUTO_FREE char *below = wb_strf("%s/%s", from, names.v[i]);
        WB_AUTO_FREE char *member = wb_strf("%s/%s", path, names.v[i]);
        rc = add_any(t, below, member, depth + 1, err);
    }
    wb_strv_release(&names);
    return rc;
}

static int add_any(struct wb_tar *t, const char *from, const char *path, int depth,
                   struct wb_err *err)
{
    struct stat st;

    if (depth > WB_TAR_DEPTH_MAX)
        return wb_fail(err, WB_LIMIT, "%s is nested deeper than %d folders", from,
                       WB_TAR_DEPTH_MAX);
    if (lstat(from, &st) < 0)
        return wb_fail_sys(err, errno, "cannot look at %s", from);
    switch (st.st_mode & S_IFMT) {
    case S_IFDIR:
        return add_folder(t, from, path, st.st_mode, depth, err);
    case S_IFREG:
        return add_regular(t, from, path, err);
    case S_IFLNK:
        return add_link(t, from, path, err);
    default:
        return wb_fail(err, WB_INVALID,
                       "%s is a device, socket or pipe; only folders, files and links can be "
                       "packed into an image",
                       from);
    }
}

int wb_tar_add_tree(struct wb_tar *t, const char *from, const char *path, struct wb_err *err)
{
    struct stat st;

    if (lstat(from, &st) < 0)
        return wb_fail_sys(err, errno, "cannot look at %s", from);
    if (!S_ISDIR(st.st_mode))
        return wb_fail(err, WB_INVALID, "%s is not a folder", from);
    return add_any(t, from, path, 0, err);
}

int wb_tar_end(struct wb_tar *t, struct wb_err *err)
{
    static const char zero[2 * WB_TAR_BLOCK];
    return emit(t, zero, sizeof zero, err);
}
