#include "server/record/loose.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/deflate.h"
#include "server/base/file.h"
#include "server/base/units.h"

#define LEVEL 1       /* of zlib, as git itself has for loose objects */
#define HEAD_MAX 32   /* "commit 2147483647" and its end */
#define HEAD_FILE 256 /* bytes of a file in which the head is for sure */
#define OBJECT_MAX (2u << 30)

char *wb_loose_path(const char *objects, const struct wb_oid *id, bool flat)
{
    char hex[WB_OID_HEX];

    wb_oid_hex(id, hex);
    return flat ? wb_strf("%s/%s", objects, hex) : wb_strf("%s/%.2s/%s", objects, hex, hex + 2);
}

/* Reads the head at the start of text; *end is behind its NUL. */
static bool parse_head(const char *text, size_t n, struct wb_loose *out, size_t *end)
{
    static const char *const types[] = {"blob", "tree", "commit", "tag"};
    const char *nul = memchr(text, '\0', n < HEAD_MAX ? n : HEAD_MAX);
    const char *space = nul ? memchr(text, ' ', (size_t)(nul - text)) : NULL;
    int64_t size = 0;

    if (!space || (space[1] == '0' && space[2]) || space[1] < '0' || space[1] > '9' ||
        wb_parse_int(space + 1, 0, OBJECT_MAX, &size, NULL) < 0)
        return false;
    for (size_t i = 0; i < WB_LEN(types); i++) {
        size_t len = strlen(types[i]);

        if (len != (size_t)(space - text) || memcmp(types[i], text, len) != 0)
            continue;
        memcpy(out->type, types[i], len + 1);
        out->size = (size_t)size;
        *end = (size_t)(nul - text) + 1;
        return true;
    }
    return false;
}

int wb_loose_head(const char *path, struct wb_loose *out, struct wb_err *err)
{
    WB_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* it may be a pipe */
    struct wb_buf head = WB_BUF_INIT(HEAD_MAX);
    char file[HEAD_FILE];
    struct stat st;
    size_t end;
    ssize_t n;
    int rc;

    if (fd < 0 || fstat(fd, &st) < 0)
        return wb_fail_sys(err, errno, "%s", path);
    if (!S_ISREG(st.st_mode))
        return wb_fail(err, WB_CORRUPT, "%s is damaged: it is not a file", path);
    n = pread(fd, file, sizeof(file), 0);
    if (n < 0)
        return wb_fail_sys(err, errno, "cannot read %s", path);
    /* It is cut on purpose: what matters is that the head came out of it. */
    WB_IGNORE(wb_inflate(file, (size_t)n, &head, NULL));
    rc = parse_head(wb_buf_str(&head), head.len, out, &end)
             ? 0
             : wb_fail(err, WB_CORRUPT, "%s is damaged: it has no head", path);
    wb_buf_release(&head);
    return rc;
}

int wb_loose_read(const char *path, struct wb_loose *out, struct wb_buf *data, struct wb_err *err)
{
    WB_AUTO_FREE char *file = NULL;
    struct wb_loose head = {0};
    size_t n = 0, end = 0;
    int rc = wb_loose_head(path, &head, err);

    if (rc == 0)
        rc = wb_file_read(path, OBJECT_MAX, &file, &n, err);
    if (rc < 0)
        return rc;
    *data = (struct wb_buf)WB_BUF_INIT(head.size + HEAD_MAX);
    rc = wb_inflate(file, n, data, err);
    if (rc < 0)
        rc = wb_fail(err, WB_CORRUPT, "%s is damaged: the zlib stream is broken or cut off", path);
    else if (!parse_head(wb_buf_str(data), data->len, out, &end) || data->len - end != out->size)
        rc = wb_fail(err, WB_CORRUPT, "%s is damaged: its head tells another size", path);
    if (rc < 0) {
        wb_buf_release(data);
        return rc;
    }
    wb_buf_consume(data, end);
    return 0;
}

int wb_loose_write(const char *path, const char *type, const void *data, size_t n,
                   struct wb_err *err)
{
    WB_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    struct wb_buf plain = WB_BUF_INIT(OBJECT_MAX), packed = WB_BUF_INIT(2ul * OBJECT_MAX);
    size_t done = 0;
    ssize_t k = 1;

    if (fd < 0)
        return wb_fail_sys(err, errno, "cannot make %s", path);
    wb_buf_addf(&plain, "%s %zu", type, n);
    wb_buf_addc(&plain, '\0');
    wb_buf_add(&plain, data, n);
    if (!plain.failed)
        wb_deflate(wb_buf_str(&plain), plain.len, LEVEL, &packed);
    wb_buf_release(&plain);
    if (packed.len == 0) {
        wb_buf_release(&packed);
        (void)unlink(path);
        return wb_fail(err, WB_LIMIT, "%zu bytes are too many for one object", n);
    }
    while (k >= 0 && done < packed.len) {
        k = write(fd, packed.data + done, packed.len - done);
        if (k < 0 && errno == EINTR)
            k = 0;
        done += k > 0 ? (size_t)k : 0;
    }
    wb_buf_release(&packed);
    if (k < 0) {
        int sys = errno;

        (void)unlink(path); /* the library tries again by another way */
        return wb_fail_sys(err, sys, "cannot write %s", path);
    }
    return 0;
}
