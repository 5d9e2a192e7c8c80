/*
 * What is written while a run goes on: a JSON line and HDR log lines per interval, and one line
 * that rewrites itself on a terminal.
 */
#include "runners/load/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runners/load/verdict.h"
#include "server/base/clock.h"
#include "server/base/mem.h"
#include "server/base/table.h"
#include "server/base/units.h"

#define LINE_MAX_BYTES (1u << 20)
#define HDR_MAX_BYTES (64u << 20)

struct wb_load_live {
    const struct wb_load_job *job;
    const struct wb_load_outcome *outcome; /* names of the operations */
    int64_t began_unix_ms;                 /* the first run of several; 0: none yet */
    int64_t offset;                        /* of this run after it, ns */
    int ndjson_fd, hdr_fd;                 /* -1: not asked for */
    bool progress, progress_open;
    int width;
    struct wb_err err; /* first error of a write; code 0: none */
};

static int open_file(const char *path, int *fd, struct wb_err *err)
{
    *fd = -1;
    if (!path)
        return 0;
    if (strcmp(path, "-") == 0)
        *fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    else
        *fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    return *fd < 0 ? wb_fail_sys(err, errno, "opening %s", path) : 0;
}

static void put_text(struct wb_load_live *l, int fd, const struct wb_buf *text, const char *path)
{
    const char *p = wb_buf_str(text);
    size_t n = text->len;

    while (n > 0 && l->err.code == 0) {
        ssize_t k = write(fd, p, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0) {
            (void)wb_fail_sys(&l->err, errno, "writing %s", path);
            return;
        }
        p += k;
        n -= (size_t)k;
    }
}

int wb_load_live_open(const struct wb_load_job *job, struct wb_load_live **out, struct wb_err *err)
{
    struct wb_load_live *l = wb_calloc(1, sizeof(*l));
    int rc;

    l->job = job;
    l->hdr_fd = -1;
    l->progress = !job->quiet && isatty(STDERR_FILENO) && wb_terminal_fancy(STDERR_FILENO);
    l->width = wb_terminal_width(STDERR_FILENO);
    rc = open_file(job->ndjson, &l->ndjson_fd, err);
    if (rc == 0)
        rc = open_file(job->hdr, &l->hdr_fd, err);
    if (rc < 0) {
        wb_load_live_free(l);
        return rc;
    }
    *out = l;
    return 0;
}

static void on_begin(void *ctx, const struct wb_load_outcome *o, int64_t start_unix_ms)
{
    struct wb_load_live *l = ctx;
    struct wb_buf head = WB_BUF_INIT(1024);

    l->outcome = o;
    if (l->began_unix_ms != 0) {
        l->offset = (start_unix_ms - l->began_unix_ms) * WB_MS;
        return;
    }
    l->began_unix_ms = start_unix_ms;
    if (l->hdr_fd < 0)
        return;
    wb_hist_log_head(&head, "wb-load " WB_VERSION, start_unix_ms);
    put_text(l, l->hdr_fd, &head, l->job->hdr);
    wb_buf_release(&head);
}

/* All phases of an interval together; which as in wb_load_merged. */
static void merge_all(const struct wb_stats *s, int which, struct wb_hist *out)
{
    wb_hist_init_ns(out);
    for (int p = 0; p < WB_PHASES; p++) {
        struct wb_hist one;
        wb_load_merged(s, (enum wb_load_phase)p, which, &one);
        wb_hist_add(out, &one);
        wb_hist_release(&one);
    }
}

static wb_json *short_latency(const struct wb_hist *h)
{
    wb_json *o;

    if (h->total == 0)
        return wb_json_null();
    o = wb_json_object();
    wb_json_set_real(o, "p50_ms", (double)wb_hist_percentile(h, 50) / WB_MS);
    wb_json_set_real(o, "p99_ms", (double)wb_hist_percentile(h, 99) / WB_MS);
    wb_json_set_real(o, "max_ms", (double)h->max / WB_MS);
    return o;
}

static struct wb_phase_sum sum_all(const struct wb_stats *s)
{
    struct wb_phase_sum all = {0};

    for (int p = 0; p < WB_PHASES; p++) {
        struct wb_phase_sum one = wb_phase_total(s, (enum wb_load_phase)p);
        all.ok += one.ok;
        all.failed += one.failed;
        all.dropped += one.dropped;
    }
    return all;
}

static void ndjson_line(struct wb_load_live *l, const struct wb_load_interval *i,
                        const struct wb_hist *response, const struct wb_hist *service)
{
    struct wb_phase_sum sum = sum_all(i->stats);
    struct wb_buf line = WB_BUF_INIT(LINE_MAX_BYTES);
    wb_json *o = wb_json_object();

    wb_json_set_real(o, "t", (double)(l->offset + i->since_start) / 1e9);
    wb_json_set_real(o, "seconds", (double)i->length / 1e9);
    wb_json_set(o, "offered",
                i->offered_per_s > 0 ? wb_json_real(i->offered_per_s) : wb_json_null());
    wb_json_set_int(o, "scheduled", (int64_t)i->scheduled);
    wb_json_set_int(o, "ok", (int64_t)sum.ok);
    wb_json_set_int(o, "failed", (int64_t)sum.failed);
    wb_json_set_int(o, "dropped", (int64_t)sum.dropped);
    wb_json_set_int(o, "in_flight", (int64_t)i->in_flight);
    wb_json_set_int(o, "backlog", (int64_t)i->backlog);
    wb_json_set(o, "response", short_latency(response));
    wb_json_set(o, "service", short_latency(service));
    wb_json_set_str(o, "phase", i->phase);
    wb_json_line(o, &line);
    wb_buf_addc(&line, '\n');
    put_text(l, l->ndjson_fd, &line, l->job->ndjson);
    wb_buf_release(&line);
    wb_json_free(o);
}

static void hdr_tag(struct wb_load_live *l, const struct wb_load_interval *i, const char *op,
                    const char *kind, const struct wb_hist *h)
{
    const struct wb_load_job *job = l->outcome->job;
    /* The points of a sweep or search are not to be merged. */
    WB_AUTO_FREE char *tag = l->job == job ? wb_strf("%s.%s", op, kind)
                                           : wb_strf("@%.9g.%s.%s", job->rate_per_s, op, kind);
    struct wb_buf line = WB_BUF_INIT(HDR_MAX_BYTES);

    if (h->total > 0) {
        wb_hist_log_line(&line, tag, l->offset + i->since_start - i->length, i->length, h);
        put_text(l, l->hdr_fd, &line, l->job->hdr);
    }
    wb_buf_release(&line);
}

/* Only operations of the measured window: a reader merges all lines it finds. */
static void hdr_lines(struct wb_load_live *l, const struct wb_load_interval *i)
{
    for (int k = 0; k < i->stats->nops; k++) {
        const struct wb_op_stats *o = &i->stats->phase[WB_PHASE_MEASURE].op[k];
        hdr_tag(l, i, l->outcome->ops[k], "response", &o->response);
        hdr_tag(l, i, l->outcome->ops[k], "service", &o->service);
        hdr_tag(l, i, l->outcome->ops[k], "lag", &o->lag);
    }
}

static void progress_line(struct wb_load_live *l, const struct wb_load_interval *i,
                          const struct wb_hist *response, const struct wb_hist *service)
{
    struct wb_phase_sum sum = sum_all(i->stats);
    const struct wb_hist *h = response->total > 0 ? response : service;
    struct wb_buf line = WB_BUF_INIT(1024);

    wb_buf_addf(&line, "%-8s %5.0f s  ", i->phase, (double)(l->offset + i->since_start) / 1e9);
    wb_format_rate(i->length > 0 ? (double)sum.ok * 1e9 / (double)i->length : 0, &line);
    wb_buf_adds(&line, "  p50 ");
    wb_format_ns(wb_hist_percentile(h, 50), &line);
    wb_buf_adds(&line, "  p99 ");
    wb_format_ns(wb_hist_percentile(h, 99), &line);
    if (sum.failed > 0)
        wb_buf_addf(&line, "  failed %llu", (unsigned long long)sum.failed);
    if (i->backlog > 0)
        wb_buf_addf(&line, "  backlog %llu", (unsigned long long)i->backlog);
    if (line.len >= (size_t)l->width)
        line.len = (size_t)l->width - 1;
    /* A lost progress line is no reason to end a run. */
    if (write(STDERR_FILENO, "\r", 1) == 1 && write(STDERR_FILENO, line.data, line.len) > 0 &&
        write(STDERR_FILENO, "\033[K", 3) == 3)
        l->progress_open = true;
    wb_buf_release(&line);
}

static void on_interval(void *ctx, const struct wb_load_interval *i)
{
    struct wb_load_live *l = ctx;
    struct wb_hist response, service;

    if (l->hdr_fd >= 0)
        hdr_lines(l, i);
    if (l->ndjson_fd < 0 && !l->progress)
        return;
    merge_all(i->stats, 1, &response);
    merge_all(i->stats, 0, &service);
    if (l->ndjson_fd >= 0)
        ndjson_line(l, i, &response, &service);
    if (l->progress)
        progress_line(l, i, &response, &service);
    wb_hist_release(&response);
    wb_hist_release(&service);
}

void wb_load_live_watch(struct wb_load_live *l, struct wb_load_watch *watch)
{
    *watch = (struct wb_load_watch){.begin = on_begin, .interval = on_interval, .ctx = l};
}

void wb_load_live_free(struct wb_load_live *l)
{
    if (!l)
        return;
    if (l->progress_open && write(STDERR_FILENO, "\r\033[K", 4) == 4)
        l->progress_open = false;
    if (l->ndjson_fd >= 0)
        (void)close(l->ndjson_fd);
    if (l->hdr_fd >= 0)
        (void)close(l->hdr_fd);
    free(l);
}

int wb_load_live_close(struct wb_load_live *l, struct wb_err *err)
{
    int rc = -l->err.code;

    if (rc < 0 && err)
        *err = l->err;
    wb_load_live_free(l);
    return rc;
}
