#include "server/cli/progress.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/mem.h"
#include "server/base/table.h"
#include "server/base/units.h"

#define LINE_MAX_BYTES 4096

struct wb_progress {
    int fd, width;
    bool fancy, open; /* open: the rewritten line has no end yet */
    int64_t runs, rounds, arms, index, round;
    int64_t begun; /* runs that this process began */
    bool calibrating;
    char *arm, *phase;
    double forecast_s, planned_s;
    int64_t began_ns, run_began_ns;
};

/* Nobody looks, or somebody has stopped looking (a halted terminal, a pager): not a reason to hold
 * a campaign up. What cannot be written at once is not. */
static void put(struct wb_progress *p, const char *text, size_t n)
{
    while (n) {
        struct pollfd room = {.fd = p->fd, .events = POLLOUT};
        ssize_t w;

        if (poll(&room, 1, 0) != 1 || !(room.revents & POLLOUT))
            return;
        w = write(p->fd, text, n);
        if (w <= 0)
            return;
        text += w;
        n -= (size_t)w;
    }
}

/* A line that stays. */
static void say(struct wb_progress *p, const struct wb_buf *b)
{
    if (p->open)
        put(p, "\r\033[K", 4);
    p->open = false;
    put(p, wb_buf_str(b), b->len);
    put(p, "\n", 1);
}

/* The line that is rewritten, cut to the terminal. */
static void rewrite(struct wb_progress *p, const struct wb_buf *b)
{
    size_t n = b->len < (size_t)p->width - 1 ? b->len : (size_t)p->width - 1;

    put(p, "\r\033[K", 4);
    put(p, wb_buf_str(b), n);
    p->open = true;
}

/* Time left: what the finished runs took, or the forecast before there are any. */
static void add_left(const struct wb_progress *p, struct wb_buf *b)
{
    double done = (double)(p->begun - 1), all = (double)(p->runs - p->index + p->begun);
    double spent = (double)(wb_now_ns(NULL) - p->began_ns) / 1e9;
    double each = done > 0 ? (double)(p->run_began_ns - p->began_ns) / 1e9 / done
                           : p->forecast_s / (double)(p->runs > 0 ? p->runs : 1);
    double left = each * all - spent;

    if (p->calibrating || p->began_ns == 0)
        left = p->forecast_s;
    if (left < 0)
        left = 0;
    wb_buf_adds(b, "  left ");
    wb_format_ns((int64_t)left * WB_SEC, b);
}

static void add_where(const struct wb_progress *p, struct wb_buf *b)
{
    if (p->calibrating)
        wb_buf_addf(b, "calibration  %s", p->arm ? p->arm : "");
    else
        wb_buf_addf(b, "run %lld/%lld  round %lld/%lld  %s", (long long)p->index,
                    (long long)p->runs, (long long)p->round, (long long)p->rounds,
                    p->arm ? p->arm : "");
}

static void on_sample(struct wb_progress *p, const wb_json *e)
{
    struct wb_buf b = WB_BUF_INIT(LINE_MAX_BYTES);
    double rate = wb_json_real_or(e, "rate_per_s", -1), p99 = wb_json_real_or(e, "p99_ms", -1);
    double elapsed = wb_json_real_or(e, "elapsed_s", 0);
    double planned = wb_json_real_or(e, "planned_s", 0);
    const char *part = wb_json_str_or(e, "part", "");

    if (!p->fancy)
        return;
    add_where(p, &b);
    wb_buf_addf(&b, "  %s", p->phase ? p->phase : "");
    if (!strcmp(part, "warm-up"))
        wb_buf_adds(&b, " (warm-up)");
    if (planned > 0)
        wb_buf_addf(&b, " %.0f/%.0f s", elapsed, planned);
    if (rate >= 0) {
        wb_buf_adds(&b, "  ");
        wb_format_rate(rate, &b);
    }
    if (p99 >= 0) {
        wb_buf_adds(&b, "  p99 ");
        wb_format_ns((int64_t)(p99 * 1e6), &b);
    }
    add_left(p, &b);
    rewrite(p, &b);
    wb_buf_release(&b);
}

static void on_phase(struct wb_progress *p, const wb_json *e)
{
    struct wb_buf b = WB_BUF_INIT(LINE_MAX_BYTES);

    free(p->phase);
    p->phase = wb_strdup(wb_json_str_or(e, "phase", ""));
    p->planned_s = wb_json_real_or(e, "planned_s", 0);
    add_where(p, &b);
    wb_buf_addf(&b, "  %s", p->phase);
    if (p->planned_s > 1)
        wb_buf_addf(&b, " (%.0f s)", p->planned_s);
    if (p->fancy) {
        add_left(p, &b);
        rewrite(p, &b);
    } else {
        say(p, &b);
    }
    wb_buf_release(&b);
}

static void on_run_start(struct wb_progress *p, const wb_json *e)
{
    p->calibrating = wb_json_bool_or(e, "calibrating", false);
    free(p->arm);
    p->arm = wb_strdup(wb_json_str_or(e, "arm", ""));
    p->run_began_ns = wb_now_ns(NULL);
    if (p->calibrating)
        return;
    if (p->began_ns == 0)
        p->began_ns = p->run_began_ns;
    p->begun++;
    p->round = wb_json_int_or(e, "round", 0);
    p->index = (p->round - 1) * p->arms + wb_json_int_or(e, "position", 1);
}

static void add_metric(const wb_json *end, const char *which, struct wb_buf *b)
{
    const char *name = wb_json_string(wb_json_get(wb_json_get(end, "headline"), which));
    const wb_json *m = name ? wb_json_get(wb_json_get(end, "metrics"), name) : NULL;
    double v = wb_json_real_or(m, "value", -1);

    if (v < 0)
        return;
    wb_buf_adds(b, "  ");
    if (!strcmp(which, "throughput")) {
        wb_format_rate(v, b);
    } else {
        wb_buf_adds(b, "p99 ");
        wb_format_ns((int64_t)(v * 1e6), b);
    }
}

static void on_run_end(struct wb_progress *p, const wb_json *e)
{
    struct wb_buf b = WB_BUF_INIT(LINE_MAX_BYTES);
    const wb_json *reasons = wb_json_get(e, "reasons");
    const char *outcome = wb_json_str_or(e, "outcome", "");

    add_where(p, &b);
    wb_buf_addf(&b, "  %s, %s", outcome, wb_json_str_or(e, "validity", ""));
    add_metric(e, "throughput", &b);
    add_metric(e, "p99", &b);
    say(p, &b);
    for (size_t i = 0; i < wb_json_len(reasons); i++) {
        wb_buf_clear(&b);
        wb_buf_addf(&b, "    %s", wb_json_string(wb_json_at(reasons, i)));
        say(p, &b);
    }
    wb_buf_release(&b);
}

static void on_campaign(struct wb_progress *p, const wb_json *e)
{
    struct wb_buf b = WB_BUF_INIT(LINE_MAX_BYTES);

    p->runs = wb_json_int_or(e, "runs", 0);
    p->rounds = wb_json_int_or(e, "rounds", 0);
    p->arms = wb_json_int_or(e, "arms", 1);
    p->forecast_s = wb_json_real_or(e, "forecast_s", 0);
    wb_buf_addf(&b, "campaign %s: study %s, %lld arms x %lld rounds = %lld runs, about ",
                wb_json_str_or(e, "campaign", ""), wb_json_str_or(e, "study", ""),
                (long long)wb_json_int_or(e, "arms", 0), (long long)p->rounds, (long long)p->runs);
    wb_format_ns((int64_t)p->forecast_s * WB_SEC, &b);
    say(p, &b);
    wb_buf_release(&b);
}

static void on_calibrated(struct wb_progress *p, const wb_json *e)
{
    struct wb_buf b = WB_BUF_INIT(LINE_MAX_BYTES);

    wb_buf_addf(&b, "calibrated on %s: ", wb_json_str_or(e, "arm", ""));
    wb_format_rate(wb_json_real_or(e, "achieved_per_s", 0), &b);
    say(p, &b);
    wb_buf_release(&b);
    p->calibrating = false;
}

static void on_note(struct wb_progress *p, const wb_json *e)
{
    struct wb_buf b = WB_BUF_INIT(LINE_MAX_BYTES);

    wb_buf_adds(&b, wb_json_str_or(e, "text", ""));
    say(p, &b);
    wb_buf_release(&b);
}

static const struct {
    const char *type;
    void (*fn)(struct wb_progress *p, const wb_json *e);
} handlers[] = {
    {"note", on_note},
    {"campaign.start", on_campaign},
    {"campaign.calibrated", on_calibrated},
    {"run.start", on_run_start},
    {"run.phase", on_phase},
    {"run.sample", on_sample},
    {"run.end", on_run_end},
};

void wb_progress_event(void *arg, const wb_json *event)
{
    struct wb_progress *p = arg;
    const char *type = wb_json_str_or(event, "type", "");

    for (size_t i = 0; i < WB_LEN(handlers); i++)
        if (!strcmp(type, handlers[i].type))
            handlers[i].fn(p, event);
}

struct wb_progress *wb_progress_new(int fd, bool no_color)
{
    struct wb_progress *p = wb_calloc(1, sizeof(*p));

    p->fd = fd;
    p->fancy = wb_terminal_fancy(fd) && !no_color;
    p->width = wb_terminal_width(fd);
    return p;
}

void wb_progress_free(struct wb_progress *p)
{
    if (!p)
        return;
    if (p->open)
        put(p, "\r\033[K", 4);
    free(p->arm);
    free(p->phase);
    free(p);
}
