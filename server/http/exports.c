/* Records for other programs, over REST: the whole of a filter in one answer. It is written into a
 * file without a name first, so that neither memory nor a slow reader matters. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/file.h"
#include "server/http/filters.h"
#include "server/record/export.h"

#define EXPORTS_MAX 2 /* at once; the other threads go on answering */
#define EXPORT_BYTES_MAX (8LL << 30)

struct sink {
    int fd;
    int64_t bytes;
};

static int write_file(void *arg, const void *data, size_t n, struct wb_err *err)
{
    struct sink *k = arg;
    const char *p = data;

    k->bytes += (int64_t)n;
    if (k->bytes > EXPORT_BYTES_MAX)
        return wb_fail(err, WB_LIMIT, "the export has more than 8 GiB: ask for less of it");
    while (n > 0) {
        ssize_t done = write(k->fd, p, n);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return wb_fail_sys(err, errno, "the export could not be written");
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

static int open_nameless(const char *dir, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("%s/export-XXXXXX", dir);
    int rc = wb_mkdir_all(dir, 0700, err), fd;

    if (rc < 0)
        return rc;
    fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return wb_fail_sys(err, errno, "cannot make a file in %s", dir);
    (void)unlink(path);
    return fd;
}

static void answer_export(struct wb_context *c, const struct wb_request *q, struct wb_answer *a)
{
    const char *what = wb_request_query(q, "what"), *format = wb_request_query(q, "format");
    WB_AUTO_FREE char *dir = wb_strf("%s/service", c->service->state_dir);
    struct wb_err err = WB_ERR_INIT;
    struct sink k = {.fd = open_nameless(dir, &err)};
    struct wb_export e = {.csv = !format || !strcmp(format, "csv"),
                          .metrics = what && !strcmp(what, "metrics"),
                          .write = write_file,
                          .arg = &k};
    WB_AUTO_FREE char *name = wb_strf("attachment; filename=\"%s.%s\"",
                                      e.metrics ? "metrics" : "runs", e.csv ? "csv" : "ndjson");

    wb_query_filters(q, &e.q);
    if (k.fd < 0 || wb_store_export(c->store, &e, &err) < 0) {
        if (k.fd >= 0)
            (void)close(k.fd);
        wb_answer_error(q, a, &err);
        return;
    }
    wb_answer_header(a, "Content-Disposition", name);
    a->status = 200;
    a->type = e.csv ? "text/csv; charset=utf-8; header=present" : "application/x-ndjson";
    a->has_file = true;
    a->file_is_own = true;
    a->fd = k.fd;
    a->file_bytes = (uint64_t)k.bytes;
}

static void get_export(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    if (atomic_fetch_add(&c->service->exports, 1) >= EXPORTS_MAX) {
        wb_answer_header(a, "Retry-After", "5");
        wb_answer_problem(q, a, 503, "temporary-reduced-capacity",
                          "two exports are being made already", NULL);
    } else {
        answer_export(c, q, a);
    }
    atomic_fetch_sub(&c->service->exports, 1);
}

static const char *const whats[] = {"runs", "metrics", NULL};
static const char *const formats[] = {"csv", "ndjson", NULL};
static const struct wb_shape export_query[] = {
    {"what", WB_S_WORD, .words = whats,
     .help = "runs unless given; metrics: a row for each figure"},
    {"format", WB_S_WORD, .words = formats, .help = "csv unless given"},
    WB_QUERY_FILTERS,
    {0},
};

const struct wb_route wb_routes_exports[] = {
    {"GET", "/api/v1/exports", WB_SCOPE_READ, WB_ROUTE_ANY_TYPE, get_export, "export",
     "All runs of a filter, or their figures, oldest first", export_query, .type = "*/*",
     .status = 200},
    {0},
};
