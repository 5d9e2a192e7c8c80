/* What the load saw before, during and after an operation, from the series of intervals. */
#include <stdlib.h>
#include <string.h>

#include "server/analysis/hdr_log.h"
#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/hist.h"
#include "server/engine/ring.h"

#define FILE_MAX_BYTES (64u << 20)
/* Ends of intervals are told to the ms at best. */
#define SLACK_S 0.0015

static void add_line(struct wb_ring_series *s, const char *text, size_t n)
{
    wb_json *line = NULL;

    if (wb_json_parse(text, n, &line, NULL) < 0)
        return; /* the last one may be cut off */
    if (strcmp(wb_json_str_or(line, "phase", ""), "measure") == 0)
        wb_json_push(s->lines, line);
    else
        wb_json_free(line);
}

/* The log's own start, without which nothing can be put in time. */
static double start_of(const char *text, size_t n)
{
    struct wb_hdr_log log;
    struct wb_hdr_entry e;
    struct wb_err err = WB_ERR_INIT;

    wb_hdr_log_init(&log, text, n);
    while (!log.has_start && wb_hdr_log_next(&log, &e, &err) > 0)
        ;
    return log.has_start ? log.start : 0;
}

void wb_ring_series_read(struct wb_ring_series *s, const char *base, bool open_loop)
{
    WB_AUTO_FREE char *lines = wb_strf("%s.ndjson", base);
    WB_AUTO_FREE char *hdr = wb_strf("%s.hdr", base);
    WB_AUTO_FREE char *text = NULL;
    size_t n = 0;

    *s = (struct wb_ring_series){.lines = wb_json_array(),
                                 .kind = open_loop ? "response" : "service"};
    if (wb_file_read(lines, FILE_MAX_BYTES, &text, &n, NULL) == 0)
        for (const char *p = text, *end; (end = memchr(p, '\n', (size_t)(text + n - p)));
             p = end + 1)
            add_line(s, p, (size_t)(end - p));
    if (wb_file_read(hdr, FILE_MAX_BYTES, &s->hdr, &s->hdr_n, NULL) == 0)
        s->start_unix_s = start_of(s->hdr, s->hdr_n);
}

void wb_ring_series_release(struct wb_ring_series *s)
{
    wb_json_free(s->lines);
    free(s->hdr);
    *s = (struct wb_ring_series){0};
}

/* Whether an interval belongs to a window; all in seconds from the start of the load. */
static bool belongs(double from, double to, double window_from, double window_to, bool touching)
{
    return touching ? from < window_to && to > window_from
                    : from >= window_from - SLACK_S && to <= window_to + SLACK_S;
}

/* "get.service" is of kind service. */
static bool has_kind(const struct wb_hdr_entry *e, const char *kind)
{
    size_t n = strlen(kind);

    return e->tag && e->tag_n > n && e->tag[e->tag_n - n - 1] == '.' &&
           memcmp(e->tag + e->tag_n - n, kind, n) == 0;
}

static void merge(const struct wb_ring_series *s, double from, double to, bool touching,
                  struct wb_hist *sum)
{
    struct wb_hdr_log log;
    struct wb_hdr_entry e;
    struct wb_err err = WB_ERR_INIT;
    int rc;

    wb_hdr_log_init(&log, s->hdr, s->hdr_n);
    while ((rc = wb_hdr_log_next(&log, &e, &err)) != 0) {
        struct wb_hist one;

        if (rc < 0 || !has_kind(&e, s->kind) ||
            !belongs(e.from_s, e.from_s + e.length_s, from, to, touching) ||
            wb_hist_decode(e.text, e.n, &one, &err) < 0)
            continue;
        wb_hist_add(sum, &one);
        wb_hist_release(&one);
    }
}

static void set_times(wb_json *o, const struct wb_hist *h)
{
    static const struct {
        const char *key;
        double p;
    } rows[] = {{"p50_ms", 50}, {"p99_ms", 99}, {"p99_9_ms", 99.9}, {"max_ms", 100}};

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        if (h->total > 0)
            wb_json_set_real(o, rows[i].key, (double)wb_hist_percentile(h, rows[i].p) / WB_MS);
        else
            wb_json_set_reason(o, rows[i].key, "no operation succeeded in these intervals");
    }
}

static wb_json *nothing(const char *why)
{
    static const char *const keys[] = {"throughput", "p50_ms", "p99_ms", "p99_9_ms", "max_ms"};
    wb_json *o = wb_json_object();

    wb_json_set_int(o, "intervals", 0);
    for (size_t i = 0; i < WB_LEN(keys); i++)
        wb_json_set_reason(o, keys[i], why);
    return o;
}

wb_json *wb_ring_window(const struct wb_ring_series *s, double from_s, double to_s, bool touching)
{
    double from = from_s - s->start_unix_s, to = to_s - s->start_unix_s, seconds = 0;
    int64_t n = 0, ok = 0, failed = 0;
    struct wb_hist sum;
    wb_json *o;

    if (s->start_unix_s <= 0)
        return nothing("the load generator left no histograms of its intervals");
    for (size_t i = 0; i < wb_json_len(s->lines); i++) {
        const wb_json *line = wb_json_at(s->lines, i);
        double end = wb_json_real_or(line, "t", 0), length = wb_json_real_or(line, "seconds", 0);

        if (length <= 0 || !belongs(end - length, end, from, to, touching))
            continue;
        n++;
        seconds += length;
        ok += wb_json_int_or(line, "ok", 0);
        failed += wb_json_int_or(line, "failed", 0);
    }
    if (n == 0)
        return nothing("no whole interval of the load lies there");
    o = wb_json_object();
    wb_json_set_int(o, "intervals", n);
    wb_json_set_real(o, "seconds", seconds);
    wb_json_set_int(o, "ok", ok);
    wb_json_set_int(o, "failed", failed);
    wb_json_set_real(o, "throughput", (double)ok / seconds);
    wb_hist_init_ns(&sum);
    merge(s, from, to, touching, &sum);
    set_times(o, &sum);
    wb_hist_release(&sum);
    return o;
}
