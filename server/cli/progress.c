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
    int fd;
    bool fancy, open; /* open: the rewritten line has no end yet */
    int64_t runs, rounds, arms, index, round;
    int64_t begun;    /* runs that this process began */
    bool calibrating; /* or another pass that does not count: */
    bool reference;
    char *arm, *phase;
    double forecast_s;
    int64_t began_ms, run_began_ms; /* Unix time, as the events have it */
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

/* ---- the line that is rewritten ---- */

/* How much the line says: each level says less than the one before. */
enum level {
    FULL,
    SHORT_ROUND, /* "12/48 r2/8" instead of "run 12/48  round 2/8" */
    NO_ROUND,
    NO_SECONDS,
    CUT_ARM,
    NO_P99,
    NO_PHASE,
    NO_RATE,
    NO_ARM
};
#define ARM_MIN 8 /* columns that a cut arm keeps */

/* Columns of text: its code points. */
static int columns(const char *s)
{
    int n = 0;

    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

/* Text of a study in at most `most` columns; nothing in it moves the cursor. */
static void add_cut(struct wb_buf *b, const char *text, int most)
{
    int keep = columns(text) <= most ? most : most - 1;

    for (; *text; text++) {
        if (((unsigned char)*text & 0xc0) != 0x80 && keep-- == 0) {
            wb_buf_adds(b, "\xe2\x80\xa6");
            return;
        }
        wb_buf_addc(b, (unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text);
    }
}

static void add_where(const struct wb_progress_view *v, enum level level, struct wb_buf *b)
{
    if (v->calibrating) {
        const char *what = v->reference ? "parity reference" : "calibration";

        wb_buf_adds(b, level < SHORT_ROUND ? what : v->reference ? "parity" : "calib.");
        return;
    }
    wb_buf_addf(b, "%s%lld/%lld", level == FULL ? "run " : "", (long long)v->run,
                (long long)v->runs);
    if (level < NO_ROUND)
        wb_buf_addf(b, "%s%lld/%lld", level == FULL ? "  round " : " r", (long long)v->round,
                    (long long)v->rounds);
}

static void add_phase(const struct wb_progress_view *v, enum level level, struct wb_buf *b)
{
    if (level >= NO_PHASE || !v->phase || !*v->phase)
        return;
    wb_buf_adds(b, "  ");
    add_cut(b, v->phase, level >= CUT_ARM ? 12 : 64);
    if (v->warm_up)
        wb_buf_adds(b, level >= SHORT_ROUND ? " warm" : " (warm-up)");
    if (v->planned_s > 0 && level < NO_SECONDS)
        wb_buf_addf(b, " %.0f/%.0f s", v->elapsed_s, v->planned_s);
}

static void add_line(const struct wb_progress_view *v, enum level level, int arm, struct wb_buf *b)
{
    add_where(v, level, b);
    if (v->arm && level < NO_ARM) {
        wb_buf_adds(b, "  ");
        add_cut(b, v->arm, arm);
    }
    add_phase(v, level, b);
    if (v->rate_per_s >= 0 && level < NO_RATE) {
        wb_buf_adds(b, "  ");
        wb_format_rate(v->rate_per_s, b);
    }
    if (v->p99_ms >= 0 && level < NO_P99) {
        wb_buf_adds(b, "  p99 ");
        wb_format_ns((int64_t)(v->p99_ms * 1e6), b);
    }
    if (v->left_s >= 0) {
        wb_buf_adds(b, "  left ");
        wb_format_ns((int64_t)v->left_s * WB_SEC, b);
    }
}

void wb_progress_line(const struct wb_progress_view *v, int width, struct wb_buf *out)
{
    struct wb_buf b = WB_BUF_INIT(LINE_MAX_BYTES);

    for (enum level level = FULL; level <= NO_ARM; level++) {
        int arm = v->arm ? columns(v->arm) : 0, over;

        wb_buf_clear(&b);
        add_line(v, level, arm, &b);
        over = columns(wb_buf_str(&b)) - width;
        if (over > 0 && level >= CUT_ARM && level < NO_ARM && arm - over >= ARM_MIN) {
            wb_buf_clear(&b);
            add_line(v, level, arm - over, &b);
            over = 0;
        }
        if (over <= 0)
            break;
    }
    wb_buf_add(out, wb_buf_str(&b), b.len);
    wb_buf_release(&b);
}

static void rewrite(struct wb_progress *p, const struct wb_progress_view *v)
{
    struct wb_buf b = WB_BUF_INIT(LINE_MAX_BYTES);

    wb_buf_adds(&b, "\r\033[K");
    wb_progress_line(v, wb_terminal_width(p->fd) - 1, &b);
    put(p, wb_buf_str(&b), b.len);
    wb_buf_release(&b);
    p->open = true;
}

/* Time left: what the finished runs took, or the forecast before there are any. */
static double left_s(const struct wb_progress *p)
{
    double done = (double)(p->begun - 1), all = (double)(p->runs - p->index + p->begun);
    double spent = (double)(wb_now_unix_ms(NULL) - p->began_ms) / 1e3;
    double each = done > 0 ? (double)(p->run_began_ms - p->began_ms) / 1e3 / done
                           : p->forecast_s / (double)(p->runs > 0 ? p->runs : 1);
    double left = each * all - spent;

    if (p->calibrating || p->began_ms == 0)
        left = p->forecast_s;
    return left > 0 ? left : 0;
}

/* Where the campaign is, without figures. */
static struct wb_progress_view view(const struct wb_progress *p)
{
    return (struct wb_progress_view){.run = p->index,
                                     .runs = p->runs,
                                     .round = p->round,
                                     .rounds = p->rounds,
                                     .calibrating = p->calibrating,
                                     .reference = p->reference,
                                     .arm = p->arm,
                                     .phase = p->phase,
                                     .rate_per_s = -1,
                                     .p99_ms = -1,
                                     .left_s = -1};
}

static void on_sample(struct wb_progress *p, const wb_json *e)
{
    struct wb_progress_view v = view(p);

    if (!p->fancy)
        return;
    v.warm_up = !strcmp(wb_json_str_or(e, "part", ""), "warm-up");
    v.elapsed_s = wb_json_real_or(e, "elapsed_s", 0);
    v.planned_s = wb_json_real_or(e, "planned_s", 0);
    v.rate_per_s = wb_json_real_or(e, "rate_per_s", -1);
    v.p99_ms = wb_json_real_or(e, "p99_ms", -1);
    v.left_s = left_s(p);
    rewrite(p, &v);
}

static void on_phase(struct wb_progress *p, const wb_json *e)
{
    struct wb_progress_view v;
    struct wb_buf b = WB_BUF_INIT(LINE_MAX_BYTES);
    double planned_s = wb_json_real_or(e, "planned_s", 0);

    free(p->phase);
    p->phase = wb_strdup(wb_json_str_or(e, "phase", ""));
    v = view(p);
    if (p->fancy) {
        v.left_s = left_s(p);
        rewrite(p, &v);
        return;
    }
    wb_progress_line(&v, LINE_MAX_BYTES, &b);
    if (planned_s > 1)
        wb_buf_addf(&b, " (%.0f s)", planned_s);
    say(p, &b);
    wb_buf_release(&b);
}

static void on_run_start(struct wb_progress *p, const wb_json *e)
{
    p->calibrating = wb_json_bool_or(e, "calibrating", false);
    p->reference = wb_json_bool_or(e, "reference", false);
    free(p->arm);
    p->arm = wb_strdup(wb_json_str_or(e, "arm", ""));
    if (wb_parse_time(wb_json_str_or(e, "t", ""), &p->run_began_ms, NULL) < 0)
        p->run_began_ms = wb_now_unix_ms(NULL);
    if (p->calibrating)
        return;
    if (p->began_ms == 0)
        p->began_ms = p->run_began_ms;
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
    struct wb_progress_view v = view(p);
    struct wb_buf b = WB_BUF_INIT(LINE_MAX_BYTES);
    const wb_json *reasons = wb_json_get(e, "reasons");
    const char *outcome = wb_json_str_or(e, "outcome", "");

    v.phase = NULL;
    wb_progress_line(&v, LINE_MAX_BYTES, &b);
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
    {"campaign.look", on_note},
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
