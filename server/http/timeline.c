#include "server/http/timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/mem.h"

/* ---- points ---- */

void wb_trace_add(struct wb_trace *p, double t, double v)
{
    wb_grow(&p->t, &p->t_cap, p->n + 1, sizeof(*p->t));
    wb_grow(&p->v, &p->v_cap, p->n + 1, sizeof(*p->v));
    p->t[p->n] = t;
    p->v[p->n++] = v;
}

void wb_trace_release(struct wb_trace *p)
{
    free(p->t);
    free(p->v);
    *p = (struct wb_trace){0};
}

/* What of the points [from, to) of one column stays, in their order. */
static void reduce_column(const struct wb_trace *in, size_t from, size_t to, struct wb_trace *out)
{
    size_t low = from, high = from, hole = to;

    for (size_t i = from; i < to; i++) {
        if (isnan(in->v[i]))
            hole = hole == to ? i : hole;
        if (isnan(in->v[low]) || in->v[i] < in->v[low])
            low = i;
        if (isnan(in->v[high]) || in->v[i] > in->v[high])
            high = i;
    }
    for (size_t i = from; i < to; i++)
        if (to - from <= 4 || i == from || i == to - 1 || i == low || i == high || i == hole)
            wb_trace_add(out, in->t[i], in->v[i]);
}

void wb_trace_reduce(const struct wb_trace *in, double from, double to, size_t width,
                     struct wb_trace *out)
{
    const double span = to > from ? to - from : 1;
    size_t begin = 0;

    while (begin < in->n && in->t[begin] < from)
        begin++;
    while (begin < in->n && in->t[begin] <= to) {
        const double column = floor((in->t[begin] - from) / span * (double)width);
        size_t end = begin + 1;

        while (end < in->n && in->t[end] <= to &&
               (floor((in->t[end] - from) / span * (double)width) <= column ||
                column >= (double)width - 1))
            end++;
        reduce_column(in, begin, end, out);
        begin = end;
    }
}

/* ---- signals ---- */

void wb_signals_release(struct wb_signals *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->v[i].name);
        free(s->v[i].source);
        wb_trace_release(&s->v[i].points);
    }
    free(s->v);
    *s = (struct wb_signals){0};
}

/* A new one; borrowed until the next is added. */
static struct wb_signal *add(struct wb_signals *s, const char *phase, const char *name,
                             const char *unit, const char *source)
{
    wb_grow(&s->v, &s->cap, s->n + 1, sizeof(*s->v));
    s->v[s->n] = (struct wb_signal){
        .name = wb_strf("%s.%s", phase, name), .unit = unit, .source = wb_strdup(source)};
    return &s->v[s->n++];
}

/* Those without any value say nothing: the closed loop has no response time. */
static void drop_empty(struct wb_signals *s, size_t from)
{
    size_t kept = from;

    for (size_t i = from; i < s->n; i++) {
        bool some = false;

        for (size_t k = 0; k < s->v[i].points.n; k++)
            some |= !isnan(s->v[i].points.v[k]);
        if (some) {
            s->v[kept++] = s->v[i];
        } else {
            free(s->v[i].name);
            free(s->v[i].source);
            wb_trace_release(&s->v[i].points);
        }
    }
    s->n = kept;
}

static const struct {
    const char *name, *path, *unit;
    bool per_second; /* a count of the interval */
} load_signals[] = {
    {"throughput", "ok", "1/s", true},
    {"failed", "failed", "1/s", true},
    {"offered", "offered", "1/s", false},
    {"in_flight", "in_flight", "", false},
    {"backlog", "backlog", "", false},
    {"response.p50_ms", "response.p50_ms", "ms", false},
    {"response.p99_ms", "response.p99_ms", "ms", false},
    {"response.max_ms", "response.max_ms", "ms", false},
    {"service.p50_ms", "service.p50_ms", "ms", false},
    {"service.p99_ms", "service.p99_ms", "ms", false},
    {"service.max_ms", "service.max_ms", "ms", false},
};

static void add_line(struct wb_signals *s, size_t first, const wb_json *line)
{
    const double t = wb_json_real_or(line, "t", NAN);
    const double seconds = wb_json_real_or(line, "seconds", NAN);

    for (size_t i = 0; !isnan(t) && seconds > 0 && i < WB_LEN(load_signals); i++) {
        struct wb_trace *p = &s->v[first + i].points;
        double v = wb_json_number(wb_json_path(line, load_signals[i].path), NAN);

        /* A time that goes back would put points where nothing was. */
        if (p->n == 0 || t >= p->t[p->n - 1])
            wb_trace_add(p, t, load_signals[i].per_second ? v / seconds : v);
    }
}

void wb_signals_of_load(struct wb_signals *s, const char *phase, const char *source,
                        const char *text, size_t n)
{
    const size_t first = s->n;
    const char *end = text + n;

    for (size_t i = 0; i < WB_LEN(load_signals); i++)
        (void)add(s, phase, load_signals[i].name, load_signals[i].unit, source);
    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        const size_t length = (size_t)((stop ? stop : end) - text);
        WB_AUTO_JSON wb_json *line = NULL;

        if (length && wb_json_parse(text, length, &line, NULL) == 0)
            add_line(s, first, line);
        text += length + (stop != NULL);
    }
    drop_empty(s, first);
}

static const char *unit_of(const char *column)
{
    static const struct {
        const char *end, *unit;
    } rows[] = {
        {"_percent", "%"},   {"_bytes_per_s", "bytes/s"}, {"_per_s", "1/s"},
        {"_cores", "cores"}, {"_bytes", "bytes"},         {"_ms", "ms"},
    };
    const size_t n = strlen(column);

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        const size_t k = strlen(rows[i].end);

        if (n > k && !strcmp(column + n - k, rows[i].end))
            return rows[i].unit;
    }
    return "";
}

void wb_signals_of_samples(struct wb_signals *s, const char *phase, const char *source,
                           const wb_json *doc)
{
    const wb_json *t = wb_json_get(doc, "t_ms");
    const size_t first = s->n;

    for (void *it = wb_json_first(doc); it; it = wb_json_next(doc, it)) {
        const wb_json *values = wb_json_iter_value(it);
        const char *column = wb_json_iter_key(it);
        struct wb_trace *p;

        if (!strcmp(column, "t_ms") || !strcmp(column, "phase") ||
            wb_json_type(values) != WB_JSON_ARRAY || wb_json_len(values) != wb_json_len(t))
            continue;
        p = &add(s, phase, column, unit_of(column), source)->points;
        for (size_t i = 0; i < wb_json_len(values); i++) {
            const double at = wb_json_number(wb_json_at(t, i), NAN) / 1000;

            if (!isnan(at) && (p->n == 0 || at >= p->t[p->n - 1]))
                wb_trace_add(p, at, wb_json_number(wb_json_at(values, i), NAN));
        }
    }
    drop_empty(s, first);
}

char *wb_timeline_phase(const char *file, const char *begin, const char *end)
{
    const size_t n = strlen(file), a = strlen(begin), b = strlen(end);

    if (n <= a + b || strncmp(file, begin, a) != 0 || strcmp(file + n - b, end) != 0)
        return NULL;
    return wb_strndup(file + a, n - a - b);
}
