#include "server/cli/tail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/buf.h"
#include "server/base/file.h"
#include "server/base/mem.h"

#define FILES_MAX 2000
#define DEPTH_MAX 4
#define LINE_MAX_BYTES (1u << 20)
#define BLOCK 65536

struct file {
    char *stream;
    int fd;
    dev_t dev;
    ino_t ino;
    int64_t at;         /* bytes that were read */
    bool newest;        /* it had the stream's own name when it was found */
    struct timespec as; /* when it was last written to, then */
    struct wb_buf rest; /* of a line that is not whole yet */
};

struct wb_tail {
    wb_tail_fn *fn;
    void *arg;
    struct file *v;
    size_t n, cap;
};

struct wb_tail *wb_tail_new(wb_tail_fn *fn, void *arg)
{
    struct wb_tail *t = wb_calloc(1, sizeof(*t));

    t->fn = fn;
    t->arg = arg;
    return t;
}

static void release(struct file *f)
{
    (void)close(f->fd);
    free(f->stream);
    wb_buf_release(&f->rest);
}

void wb_tail_free(struct wb_tail *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n; i++)
        release(&t->v[i]);
    free(t->v);
    free(t);
}

bool wb_tail_is_over(const struct wb_tail *t)
{
    return t->n == 0;
}

/* ---- finding ---- */

/* Bytes of a log's name up to the end of ".log"; 0: it is no log. */
static size_t log_name(const char *name)
{
    static const char *const packed[] = {".gz", ".zip", ".zst", ".xz", ".bz2", ".lz4"};
    const char *at = strstr(name, ".log"), *end = strrchr(name, '.');

    if (!at || at == name || (at[4] && at[4] != '.'))
        return 0;
    for (size_t i = 0; i < WB_LEN(packed); i++)
        if (!strcmp(end, packed[i]))
            return 0;
    return (size_t)(at - name) + 4;
}

static void open_file(struct wb_tail *t, const char *path, const char *stream, bool newest)
{
    int fd;
    struct stat st;

    if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode) || t->n == FILES_MAX)
        return;
    for (size_t i = 0; i < t->n; i++)
        if (t->v[i].dev == st.st_dev && t->v[i].ino == st.st_ino)
            return;
    fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        if (fd >= 0)
            (void)close(fd);
        return;
    }
    wb_grow(&t->v, &t->cap, t->n + 1, sizeof(*t->v));
    t->v[t->n++] = (struct file){.stream = wb_strdup(stream),
                                 .fd = fd,
                                 .dev = st.st_dev,
                                 .ino = st.st_ino,
                                 .newest = newest,
                                 .as = st.st_mtim,
                                 .rest = WB_BUF_INIT(2 * LINE_MAX_BYTES)};
}

void wb_tail_add(struct wb_tail *t, const char *path, const char *stream)
{
    open_file(t, path, stream, true);
}

static void scan(struct wb_tail *t, const char *dir, const char *below, int depth)
{
    WB_AUTO_FREE char *here = wb_strf("%s%s%s", dir, *below ? "/" : "", below);
    struct wb_strv names = {0};

    if (wb_list_dir(here, &names, NULL) < 0) /* gone, or not for us */
        names.n = 0;
    for (size_t i = 0; i < names.n; i++) {
        WB_AUTO_FREE char *path = wb_strf("%s/%s", here, names.v[i]);
        WB_AUTO_FREE char *rel = wb_strf("%s%s%s", below, *below ? "/" : "", names.v[i]);
        size_t n = log_name(names.v[i]);
        struct stat st;

        if (lstat(path, &st) < 0)
            continue;
        if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX && strcmp(names.v[i], "data") != 0) {
            scan(t, dir, rel, depth + 1);
        } else if (n) {
            bool newest = !names.v[i][n];

            rel[strlen(rel) - strlen(names.v[i]) + n] = '\0';
            open_file(t, path, rel, newest);
        }
    }
    wb_strv_release(&names);
}

/* Of one stream in the order they were written: what was put aside, then what is written now. */
static int by_age(const void *a, const void *b)
{
    const struct file *x = a, *y = b;
    int c = strcmp(x->stream, y->stream);

    if (c || x->newest != y->newest)
        return c ? c : x->newest ? 1 : -1;
    if (x->as.tv_sec != y->as.tv_sec)
        return x->as.tv_sec < y->as.tv_sec ? -1 : 1;
    return (x->as.tv_nsec > y->as.tv_nsec) - (x->as.tv_nsec < y->as.tv_nsec);
}

void wb_tail_scan(struct wb_tail *t, const char *dir)
{
    size_t had = t->n;

    scan(t, dir, "", 1);
    if (t->n > had)
        qsort(t->v + had, t->n - had, sizeof(*t->v), by_age);
}

/* ---- reading ---- */

static void tell_lines(struct wb_tail *t, struct file *f)
{
    const char *end;
    size_t from = 0;

    while (from < f->rest.len &&
           (end = memchr(f->rest.data + from, '\n', f->rest.len - from)) != NULL) {
        size_t n = (size_t)(end - f->rest.data) - from;

        t->fn(t->arg, f->stream, f->rest.data + from, n);
        from += n + 1;
    }
    wb_buf_consume(&f->rest, from);
    if (f->rest.len >= LINE_MAX_BYTES) {
        t->fn(t->arg, f->stream, f->rest.data, f->rest.len);
        wb_buf_clear(&f->rest);
    }
}

static void tell_rest(struct wb_tail *t, struct file *f)
{
    if (f->rest.len)
        t->fn(t->arg, f->stream, f->rest.data, f->rest.len);
    wb_buf_clear(&f->rest);
}

/* True when something was read; *gone once it has no name and no more to read. */
static bool read_file(struct wb_tail *t, struct file *f, bool *gone)
{
    char block[BLOCK];
    struct stat st;
    bool any = false;
    ssize_t n;

    if (fstat(f->fd, &st) == 0 && st.st_size < f->at) { /* cut off */
        tell_rest(t, f);
        f->at = 0;
    }
    /* Asked before the last read: what is written to it after that was not asked of. */
    *gone = st.st_nlink == 0;
    while ((n = pread(f->fd, block, sizeof(block), f->at)) > 0 || (n < 0 && errno == EINTR)) {
        if (n < 0)
            continue;
        any = true;
        f->at += n;
        wb_buf_add(&f->rest, block, (size_t)n);
        tell_lines(t, f);
    }
    return any;
}

bool wb_tail_read(struct wb_tail *t)
{
    bool any = false;
    size_t kept = 0;

    for (size_t i = 0; i < t->n; i++) {
        bool gone = false, had = read_file(t, &t->v[i], &gone);

        any |= had;
        if (gone && !had) { /* its writer may still have been at it */
            tell_rest(t, &t->v[i]);
            release(&t->v[i]);
        } else {
            t->v[kept++] = t->v[i];
        }
    }
    t->n = kept;
    return any;
}

void wb_tail_end(struct wb_tail *t)
{
    for (size_t i = 0; i < t->n; i++)
        tell_rest(t, &t->v[i]);
}
