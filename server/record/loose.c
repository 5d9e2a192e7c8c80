#include "server/record/loose.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "server/base/deflate.h"
#include "server/base/file.h"
#include "server/base/units.h"

#define HEAD_MAX 32   /* "commit 2147483647" and its end */
#define HEAD_FILE 256 /* bytes of a file in which the head is for sure */
#define OBJECT_MAX (2u << 30)

char *wb_loose_path(const char *objects, const struct wb_oid *id)
{
    char hex[WB_OID_HEX];

    wb_oid_hex(id, hex);
    return wb_strf("%s/%.2s/%s", objects, hex, hex + 2);
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

int wb_loose_head(const char *objects, const struct wb_oid *id, struct wb_loose *out,
                  struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_loose_path(objects, id);
    WB_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct wb_buf head = WB_BUF_INIT(HEAD_MAX);
    char file[HEAD_FILE];
    size_t end;
    ssize_t n;
    int rc;

    if (fd < 0)
        return wb_fail_sys(err, errno, "%s", path);
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

int wb_loose_read(const char *objects, const struct wb_oid *id, struct wb_loose *out,
                  struct wb_buf *data, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_loose_path(objects, id);
    WB_AUTO_FREE char *file = NULL;
    struct wb_loose head;
    size_t n = 0, end = 0;
    int rc = wb_loose_head(objects, id, &head, err);

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
