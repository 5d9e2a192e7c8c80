#include "runners/tools/figures.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/base/clock.h"
#include "server/base/mem.h"
#include "server/base/problems.h"
#include "server/base/units.h"

/* Programs print INT64_MAX, or 9.22e18, for "no sample". */
#define NONE_FROM 9.2e18
#define COUNT_MAX 9.0e15

static const char *const plain[] = {
    [WB_FIGURE_ACHIEVED] = "achieved_per_s",
    [WB_FIGURE_OFFERED] = "offered_per_s",
    [WB_FIGURE_OK] = "ok",
    [WB_FIGURE_FAILED] = "failed",
    [WB_FIGURE_MISSES] = "misses",
};
static const char *const families[] = {"service_", "response_"};
static const char *const times[] = {"min", "mean",  "p50",    "p90", "p95",
                                    "p99", "p99_9", "p99_99", "max"};
static const double percents[] = {0, -1, 50, 90, 95, 99, 99.9, 99.99, 100};
static const struct {
    const char *name;
    double ms;
} units[] = {{"_ns", 1e-6}, {"_us", 1e-3}, {"_ms", 1}, {"_s", 1e3}};

/* Takes a unit off the end of a name; 0 when there is none. */
static double unit_of(const char *name, size_t *n)
{
    for (size_t i = 0; i < WB_LEN(units); i++) {
        size_t m = strlen(units[i].name);

        if (*n > m && !strncmp(name + *n - m, units[i].name, m)) {
            *n -= m;
            return units[i].ms;
        }
    }
    return 0;
}

static int refuse(const char *name, struct wb_err *err)
{
    static const char *const examples[] = {"achieved_per_s", "offered_per_s",   "ok",
                                           "failed",         "misses",          "window_s",
                                           "service_p99_ms", "response_p99_ms", NULL};
    WB_AUTO_FREE char *guess = wb_did_you_mean(name, examples);

    return wb_fail(err, WB_INVALID,
                   "'%.60s' is no figure of a result%s; allowed: achieved_per_s, offered_per_s, "
                   "ok, failed, misses, window_UNIT, service_F_UNIT, response_F_UNIT (F: min, "
                   "mean, p50, p90, p95, p99, p99_9, p99_99, max; UNIT: ns, us, ms, s)",
                   name, guess);
}

int wb_figure_parse(const char *name, struct wb_figure_name *out, struct wb_err *err)
{
    size_t n = strlen(name);
    double ms;

    for (size_t i = 0; i < WB_LEN(plain); i++)
        if (!strcmp(name, plain[i])) {
            *out = (struct wb_figure_name){.id = (int)i, .scale = 1};
            return 0;
        }
    ms = unit_of(name, &n);
    if (ms > 0 && n == strlen("window") && !strncmp(name, "window", n)) {
        *out = (struct wb_figure_name){.id = WB_FIGURE_WINDOW, .scale = ms / 1e3};
        return 0;
    }
    for (int family = 0; ms > 0 && family < 2; family++) {
        size_t m = strlen(families[family]);

        for (size_t i = 0; n > m && i < WB_LEN(times); i++)
            if (!strncmp(name, families[family], m) && strlen(times[i]) == n - m &&
                !strncmp(name + m, times[i], n - m)) {
                *out = (struct wb_figure_name){
                    .id = (family ? WB_FIGURE_RESPONSE : WB_FIGURE_SERVICE) + (int)i, .scale = ms};
                return 0;
            }
    }
    return refuse(name, err);
}

bool wb_figure_is_none(const char *text)
{
    static const char *const words[] = {"nan", "inf", "infinity", "null"};
    size_t n;

    while (isspace((unsigned char)*text) || *text == '-' || *text == '+')
        text++;
    for (n = strlen(text); n > 0 && isspace((unsigned char)text[n - 1]);)
        n--;
    for (size_t i = 0; i < WB_LEN(words); i++)
        if (n == strlen(words[i]) && !strncasecmp(text, words[i], n))
            return true;
    /* glibc prints the payload of some: nan(0x8000) */
    return n > 4 && !strncasecmp(text, "nan(", 4) && text[n - 1] == ')';
}

/* Whether a figure counts operations. */
static bool is_count(int id)
{
    return id == WB_FIGURE_OK || id == WB_FIGURE_FAILED || id == WB_FIGURE_MISSES;
}

int wb_figures_put(struct wb_figures *f, const struct wb_figure_name *name, const char *text,
                   struct wb_err *err)
{
    size_t n = strlen(text);
    WB_AUTO_FREE char *trimmed = NULL;
    double v = 0;

    if (f->f[name->id].state != WB_FIGURE_ABSENT)
        return wb_fail(err, WB_PROTOCOL, "it says the same figure twice: '%.40s'", text);
    while (n && isspace((unsigned char)text[n - 1]))
        n--;
    while (n && isspace((unsigned char)*text)) {
        text++;
        n--;
    }
    trimmed = wb_strndup(text, n);
    if (!wb_figure_is_none(trimmed) && wb_parse_real(trimmed, -1e300, 1e300, &v, NULL) < 0)
        return wb_fail(err, WB_PROTOCOL, "'%.40s' is not a number", trimmed);
    if (wb_figure_is_none(trimmed) || fabs(v) >= NONE_FROM) {
        size_t keep = n < sizeof(f->f[0].said) ? n : sizeof(f->f[0].said) - 1;

        f->f[name->id].state = WB_FIGURE_NO_NUMBER;
        memcpy(f->f[name->id].said, trimmed, keep);
        return 0;
    }
    if (v < 0)
        return wb_fail(err, WB_PROTOCOL, "'%.40s' is below zero", trimmed);
    if (is_count(name->id) && (v > COUNT_MAX || v != floor(v)))
        return wb_fail(err, WB_PROTOCOL, "'%.40s' is no number of operations", trimmed);
    f->f[name->id].state = WB_FIGURE_GIVEN;
    f->f[name->id].value = v * name->scale;
    return 0;
}

void wb_figures_add(struct wb_figures *f, int family, const struct wb_hist *h)
{
    if (!f->hist[family]) {
        f->hist[family] = wb_calloc(1, sizeof(*f->hist[family]));
        wb_hist_init_ns(f->hist[family]);
    }
    wb_hist_add(f->hist[family], h);
}

void wb_figures_release(struct wb_figures *f)
{
    for (size_t i = 0; i < WB_LEN(f->hist); i++) {
        if (f->hist[i])
            wb_hist_release(f->hist[i]);
        free(f->hist[i]);
    }
    *f = (struct wb_figures){0};
}

/* ---- the result ---- */

static bool given(const struct wb_figures *f, int id)
{
    return f->f[id].state == WB_FIGURE_GIVEN;
}

/* A figure as the result has it: its value, or why there is none. */
static void set_figure(wb_json *o, const char *key, const struct wb_figures *f, int id)
{
    WB_AUTO_FREE char *why = NULL;

    if (given(f, id)) {
        if (is_count(id))
            wb_json_set_int(o, key, (int64_t)f->f[id].value);
        else
            wb_json_set_real(o, key, f->f[id].value);
        return;
    }
    why = f->f[id].state == WB_FIGURE_NO_NUMBER ? wb_strf("the program said '%s'", f->f[id].said)
                                                : wb_strdup("the program does not say it");
    wb_json_set_reason(o, key, why);
}

/* The nine times of a family, from its histogram where there is one. NULL when nothing is known.
 */
static wb_json *times_json(const struct wb_figures *f, int family, int64_t count)
{
    int first = family ? WB_FIGURE_RESPONSE : WB_FIGURE_SERVICE;
    const struct wb_hist *h = f->hist[family];
    bool any = h != NULL;
    wb_json *o;

    for (size_t i = 0; i < WB_LEN(times); i++)
        any |= f->f[first + (int)i].state != WB_FIGURE_ABSENT;
    if (!any)
        return NULL;
    o = wb_json_object();
    wb_json_set_int(o, "count", h ? (int64_t)h->total : count);
    for (size_t i = 0; i < WB_LEN(times); i++) {
        WB_AUTO_FREE char *key = wb_strf("%s_ms", times[i]);

        if (h && h->total == 0)
            wb_json_set_reason(o, key, "no samples");
        else if (h)
            wb_json_set_real(
                o, key,
                (percents[i] < 0 ? wb_hist_mean(h) : (double)wb_hist_percentile(h, percents[i])) /
                    1e6);
        else
            set_figure(o, key, f, first + (int)i);
    }
    wb_json_set_reason(o, "censored", "the program does not say it");
    return o;
}

static wb_json *operations_json(const struct wb_figures *f, bool open, int64_t ok)
{
    wb_json *all = wb_json_object(), *o = wb_json_object(), *t;

    wb_json_set_int(all, "count", ok);
    t = open ? times_json(f, 1, ok) : NULL;
    if (t)
        wb_json_set(all, "response", t);
    else
        wb_json_set_reason(all, "response", open ? "the program does not say it" : "closed loop");
    t = times_json(f, 0, ok);
    if (t)
        wb_json_set(all, "service", t);
    else
        wb_json_set_reason(all, "service", "the program does not say it");
    wb_json_set_reason(all, "lag", open ? "the program does not say it" : "closed loop");
    wb_json_set(o, "all", all);
    return o;
}

static wb_json *client_json(const struct wb_figures_run *run, int64_t ok)
{
    static const char *const unknown[] = {"threads",       "lag_p99_ms", "throttled_s",
                                          "steal_percent", "sends",      "receives"};
    wb_json *c = wb_json_object();

    if (run->cpu_ns >= 0) {
        double cpu_s = (double)run->cpu_ns / 1e9;

        wb_json_set_real(c, "cpu_s", cpu_s);
        wb_json_set_real(c, "cpu_s_per_million_ops", cpu_s / (double)ok * 1e6);
    } else {
        wb_json_set_reason(c, "cpu_s", "its control group could not be read");
        wb_json_set_reason(c, "cpu_s_per_million_ops", "its control group could not be read");
    }
    wb_json_set_str(c, "cpu_from", "the control group, from the program's start to its end");
    for (size_t i = 0; i < WB_LEN(unknown); i++)
        wb_json_set_reason(c, unknown[i], "the program does not say it");
    return c;
}

/* What the parts must add up to. */
struct sums {
    int64_t ok, failed;
    double seconds, achieved;
    const char *ok_from, *seconds_from;
};

static int add_up(const struct wb_figures *f, const struct wb_figures_run *run, struct sums *s,
                  struct wb_err *err)
{
    bool has_rate = given(f, WB_FIGURE_ACHIEVED);
    double rate = f->f[WB_FIGURE_ACHIEVED].value;

    s->seconds = given(f, WB_FIGURE_WINDOW) ? f->f[WB_FIGURE_WINDOW].value : 0;
    s->seconds_from = "the program";
    s->ok_from = "the program";
    if (given(f, WB_FIGURE_FAILED))
        s->failed = (int64_t)f->f[WB_FIGURE_FAILED].value;
    else if (!run->errors_fatal)
        return wb_fail(err, WB_PROTOCOL, "it does not say how many operations failed");
    if (f->f[WB_FIGURE_OK].state == WB_FIGURE_NO_NUMBER)
        return wb_fail(err, WB_PROTOCOL, "it says that '%s' operations succeeded",
                       f->f[WB_FIGURE_OK].said);
    if (f->f[WB_FIGURE_ACHIEVED].state == WB_FIGURE_NO_NUMBER)
        return wb_fail(err, WB_PROTOCOL, "it says that its rate is '%s'",
                       f->f[WB_FIGURE_ACHIEVED].said);
    if (has_rate && rate <= 0)
        return wb_fail(err, WB_PROTOCOL, "no operation succeeded: its rate is 0");
    if (given(f, WB_FIGURE_OK)) {
        s->ok = (int64_t)f->f[WB_FIGURE_OK].value;
    } else if (run->operations > 0 && has_rate) {
        s->ok = run->operations - s->failed;
        s->ok_from = "what it was asked to do";
    } else if (has_rate) {
        if (!(s->seconds > 0)) {
            s->seconds = run->wall_s;
            s->seconds_from = "the wall clock";
        }
        s->ok = (int64_t)llround(rate * s->seconds);
        s->ok_from = "its rate and the window";
    } else {
        return wb_fail(err, WB_PROTOCOL, "it gives neither a rate nor a number of operations");
    }
    if (s->ok <= 0)
        return wb_fail(err, WB_PROTOCOL, "no operation succeeded");
    if (!(s->seconds > 0) && has_rate && rate > 0) {
        s->seconds = (double)s->ok / rate;
        s->seconds_from = "its rate and the operations";
    } else if (!(s->seconds > 0)) {
        s->seconds = run->wall_s;
        s->seconds_from = "the wall clock";
    }
    if (!(s->seconds > 0))
        return wb_fail(err, WB_PROTOCOL, "it took no time");
    s->achieved = has_rate ? rate : (double)s->ok / s->seconds;
    return 0;
}

static wb_json *window_json(const struct wb_figures_run *run, const struct sums *s)
{
    wb_json *w = wb_json_object();
    struct wb_buf t = WB_BUF_INIT(64);

    wb_format_time(run->started_ms, &t);
    wb_json_set_str(w, "start", wb_buf_str(&t));
    wb_buf_release(&t);
    wb_json_set_real(w, "seconds", s->seconds);
    wb_json_set_str(w, "seconds_from", s->seconds_from);
    wb_json_set_real(w, "wall_seconds", run->wall_s);
    return w;
}

int wb_figures_result(const struct wb_figures *f, const struct wb_figures_run *run, wb_json **out,
                      struct wb_err *err)
{
    wb_json *r, *tool, *errors;
    struct sums s = {0};
    int rc = add_up(f, run, &s, err);

    if (rc < 0)
        return rc;
    r = wb_json_object();
    tool = wb_json_object();
    errors = wb_json_object();
    if (s.failed > 0)
        wb_json_set_int(errors, "unclassified", s.failed);
    wb_json_set_str(tool, "name", run->tool);
    if (run->version)
        wb_json_set_str(tool, "version", run->version);
    else
        wb_json_set_reason(tool, "version", "it was not asked");
    wb_json_set_str(tool, "operations_from", s.ok_from);
    wb_json_set(r, "tool", tool);
    wb_json_set_str(r, "version", run->version);
    wb_json_set_reason(r, "seed", "the program's own");
    wb_json_set_str(r, "model", run->open ? "open" : "closed");
    wb_json_set_reason(r, "verdict", "a foreign program is not asked to judge itself");
    wb_json_set(r, "reasons", wb_json_array());
    wb_json_set(r, "window", window_json(run, &s));
    wb_json_set_reason(r, "warm_up", "not told apart by the program");
    if (run->open)
        wb_json_set_real(r, "offered_per_s",
                         given(f, WB_FIGURE_OFFERED) ? f->f[WB_FIGURE_OFFERED].value
                                                     : run->rate_per_s);
    else
        wb_json_set_reason(r, "offered_per_s", "closed loop");
    wb_json_set_real(r, "achieved_per_s", s.achieved);
    set_figure(r, "misses", f, WB_FIGURE_MISSES);
    wb_json_set_int(r, "scheduled", s.ok + s.failed);
    wb_json_set_int(r, "ok", s.ok);
    wb_json_set_int(r, "failed", s.failed);
    wb_json_set_int(r, "dropped", 0);
    wb_json_set_int(r, "censored", 0);
    wb_json_set(r, "errors", errors);
    wb_json_set(r, "operations", operations_json(f, run->open, s.ok));
    wb_json_set_reason(r, "transactions", "the program does not say it");
    wb_json_set_reason(r, "curve", "not a sweep");
    wb_json_set_reason(r, "steady", "the program gives no intervals");
    wb_json_set(r, "client", client_json(run, s.ok));
    wb_json_set_reason(r, "data", "no data load");
    *out = r;
    return 0;
}
