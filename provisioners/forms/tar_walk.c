/* The reading half of tar.h. Archives come from tools and are looked at, never unpacked. */
#include "provisioners/forms/tar.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/mem.h"
#include "server/base/units.h"

#define EXTENSION_MAX (1 << 20) /* bytes of one pax or long-name member */

struct walk {
    const char *file;
    int fd;
    int64_t at, size;
    struct wb_tar_member m;
    char *next_path;   /* from a pax or GNU header in front of the member; owned */
    int64_t next_size; /* -1: none */
};

static int damaged(const struct walk *w, struct wb_err *err, const char *why)
{
    return wb_fail(err, WB_CORRUPT, "%s is damaged at byte %lld: %s", w->file, (long long)w->at,
                   why);
}

static int read_at(const struct walk *w, int64_t offset, void *to, size_t n, struct wb_err *err)
{
    char *p = to;

    for (size_t done = 0; done < n;) {
        ssize_t got = pread(w->fd, p + done, n - done, (off_t)(offset + (int64_t)done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return wb_fail_sys(err, errno, "cannot read %s", w->file);
        if (got == 0)
            return damaged(w, err, "the archive ends in the middle of a member");
        done += (size_t)got;
    }
    return 0;
}

/* Octal digits, or base 256 when the first byte has its top bit set (sizes over 8 GiB). -1: no
 * number. */
static int64_t number(const char *field, int width)
{
    int64_t v = 0;
    int i = 0;

    if ((unsigned char)field[0] == 0x80) {
        for (i = 1; i < width; i++) {
            if (v > INT64_MAX >> 8)
                return -1;
            v = v << 8 | (unsigned char)field[i];
        }
        return v;
    }
    while (i < width && field[i] == ' ')
        i++;
    for (; i < width && field[i] >= '0' && field[i] <= '7'; i++) {
        if (v > INT64_MAX >> 3)
            return -1;
        v = v << 3 | (field[i] - '0');
    }
    return i == width || field[i] == '\0' || field[i] == ' ' ? v : -1;
}

static bool checksum_fits(const char *block)
{
    int64_t sum = 0;

    for (int i = 0; i < WB_TAR_BLOCK; i++)
        sum += i >= 148 && i < 156 ? ' ' : (unsigned char)block[i];
    return number(block + 148, 8) == sum;
}

static bool all_zero(const char *block)
{
    for (int i = 0; i < WB_TAR_BLOCK; i++)
        if (block[i])
            return false;
    return true;
}

/* Records "LENGTH KEY=VALUE\n"; only path and size matter here. */
static int read_pax(struct walk *w, char *text, size_t n, struct wb_err *err)
{
    while (n) {
        char *space = memchr(text, ' ', n);
        int64_t len = 0;
        if (!space)
            return damaged(w, err, "a pax record without length");
        *space = '\0';
        if (wb_parse_int(text, 5, (int64_t)n, &len, NULL) < 0 || text[len - 1] != '\n' ||
            space >= text + len)
            return damaged(w, err, "a pax record with a wrong length");
        text[len - 1] = '\0';
        char *key = space + 1, *value = strchr(key, '=');
        if (!value)
            return damaged(w, err, "a pax record without value");
        *value++ = '\0';
        if (strcmp(key, "path") == 0) {
            free(w->next_path);
            w->next_path = wb_strdup(value);
        } else if (strcmp(key, "size") == 0 &&
                   wb_parse_int(value, 0, INT64_MAX / 2, &w->next_size, NULL) < 0) {
            return damaged(w, err, "a pax record with an impossible size");
        }
        text += len;
        n -= (size_t)len;
    }
    return 0;
}

/* Takes in a header that says more about the next member. */
static int extension(struct walk *w, struct wb_err *err)
{
    if (w->m.size > EXTENSION_MAX)
        return damaged(w, err, "an extension header of more than 1 MiB");
    WB_AUTO_FREE char *text = wb_calloc((size_t)w->m.size + 1, 1);
    int rc = read_at(w, w->m.offset, text, (size_t)w->m.size, err);

    if (rc < 0 || w->m.type == 'K' || w->m.type == 'g')
        return rc;
    if (w->m.type == 'x')
        return read_pax(w, text, (size_t)w->m.size, err);
    free(w->next_path);
    w->next_path = WB_STEAL(text);
    return 0;
}

static int set_path(struct walk *w, const char *block, struct wb_err *err)
{
    WB_AUTO_FREE char *path = WB_STEAL(w->next_path);

    if (!path) {
        bool ustar = memcmp(block + 257, "ustar\0", 6) == 0 && block[345];
        path = ustar ? wb_strf("%.155s/%.100s", block + 345, block) : wb_strf("%.100s", block);
    }
    char *p = path;
    while (p[0] == '.' && p[1] == '/')
        p += 2;
    size_t n = strlen(p);
    while (n && p[n - 1] == '/')
        n--;
    if (n >= sizeof w->m.path)
        return damaged(w, err, "a path that is too long");
    memcpy(w->m.path, p, n);
    w->m.path[n] = '\0';
    return 0;
}

/* Reads the header at w->at. 0: a member is in w->m; 1: the end mark. */
static int next(struct walk *w, struct wb_err *err)
{
    char block[WB_TAR_BLOCK];

    for (;;) {
        int rc = read_at(w, w->at, block, sizeof block, err);
        if (rc < 0)
            return rc;
        if (all_zero(block))
            return 1;
        if (!checksum_fits(block))
            return damaged(w, err, "no tar header there");
        w->m.type = block[156] ? block[156] : '0';
        w->m.offset = w->at + WB_TAR_BLOCK;
        w->m.size = number(block + 124, 12);
        if (w->m.type == 'S')
            return damaged(w, err, "sparse members are not supported");
        bool more = w->m.type != '\0' && strchr("xgLK", w->m.type) != NULL;
        if (!more && w->next_size >= 0)
            w->m.size = w->next_size;
        if (w->m.size < 0 || w->m.size > w->size - w->m.offset)
            return damaged(w, err, "a member is larger than the archive");
        if (!more) {
            w->next_size = -1;
            return set_path(w, block, err);
        }
        rc = extension(w, err);
        if (rc < 0)
            return rc;
        w->at = w->m.offset + ((w->m.size + WB_TAR_BLOCK - 1) & ~(int64_t)(WB_TAR_BLOCK - 1));
    }
}

static int walk(struct walk *w, wb_tar_member_fn member, void *arg, struct wb_err *err)
{
    for (int64_t n = 0;; n++) {
        int rc = next(w, err);
        if (rc != 0)
            return rc < 0 ? rc : 0;
        if (n >= WB_TAR_MEMBERS_MAX)
            return wb_fail(err, WB_LIMIT, "%s has more than %d members", w->file,
                           WB_TAR_MEMBERS_MAX);
        rc = member ? member(arg, &w->m, err) : 0;
        if (rc != 0)
            return rc;
        w->at = w->m.offset + ((w->m.size + WB_TAR_BLOCK - 1) & ~(int64_t)(WB_TAR_BLOCK - 1));
    }
}

int wb_tar_walk(const char *file, wb_tar_member_fn member, void *arg, int64_t *end,
                struct wb_err *err)
{
    WB_AUTO_CLOSE int fd = open(file, O_RDONLY | O_CLOEXEC);
    struct stat st;

    if (fd < 0)
        return wb_fail_sys(err, errno, "cannot open %s", file);
    if (fstat(fd, &st) < 0)
        return wb_fail_sys(err, errno, "cannot look at %s", file);
    WB_AUTO_FREE struct walk *w = wb_calloc(1, sizeof *w);
    *w = (struct walk){.file = file, .fd = fd, .size = st.st_size, .next_size = -1};
    int rc = walk(w, member, arg, err);
    free(w->next_path);
    if (rc < 0)
        return rc;
    if (end && rc == 0)
        *end = w->at;
    return 0;
}
