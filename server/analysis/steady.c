#include "server/analysis/steady.h"

#include <math.h>
#include <string.h>

#include "server/analysis/effect.h"
#include "server/analysis/input.h"
#include "server/analysis/intervals.h"
#include "server/analysis/robust.h"
#include "server/base/mem.h"

#define METHOD "levels by penalised least squares, last-quarter test, MSER-5"
#define POINTS 60       /* intervals that are enough for a class */
#define POINTS_LEAST 20 /* and fewer ones when they are long */
#define SECONDS_LEAST 120.0
#define PICTURE 400 /* intervals given back for the picture */

static const struct {
    unsigned trait;
    const char *word;
} traits[] = {{WB_T_NONE, "none"},         {WB_T_SLOWDOWN, "slowdown"}, {WB_T_WARMUP, "warmup"},
              {WB_T_PERIODIC, "periodic"}, {WB_T_STALL, "stall"},       {WB_T_FLAT, "flat"}};

/* What the question is about. */
struct steady {
    struct wb_intervals all;    /* as given */
    struct wb_intervals part;   /* what counts; borrowed from all */
    struct wb_intervals judged; /* part without a cut-off last interval; borrowed */
    bool warm_up_given;
    double begin, warm_up; /* seconds */
};

static void set_or_reason(wb_json *o, const char *key, double v, const char *reason)
{
    if (isfinite(v))
        wb_json_set_real(o, key, v);
    else
        wb_json_set_reason(o, key, reason);
}

static int read_question(const wb_json *in, struct steady *q, wb_json *warnings, struct wb_err *err)
{
    double measured = HUGE_VAL;

    *q = (struct steady){.warm_up_given = wb_json_is_number(wb_json_get(in, "warm_up_s"))};
    if (wb_intervals_read(in, &q->all, warnings, err) < 0)
        return -WB_INVALID;
    if (wb_in_real(in, "", "warm_up_s", 0, 1e12, &q->warm_up, err) < 0 ||
        wb_in_real(in, "", "measured_s", 0, 1e12, &measured, err) < 0)
        return -WB_INVALID;
    q->begin = q->all.n > 0 ? q->all.from[0] : 0;
    q->part = wb_intervals_window(&q->all, q->begin + q->warm_up, q->begin + q->warm_up + measured);
    q->judged = q->part;
    /* The load ended within the last interval: it counts by its length, but its rate is no level.
     */
    if (q->part.n > 2 &&
        q->part.seconds[q->part.n - 1] < wb_median_of(q->part.seconds, q->part.n) / 2)
        q->judged.n--;
    return 0;
}

static bool enough(const struct wb_intervals *v)
{
    return v->n >= POINTS ||
           (v->n >= POINTS_LEAST && wb_intervals_end(v) - v->from[0] >= SECONDS_LEAST);
}

/* ---- parts of the answer ---- */

static void add_traits(const struct wb_shape *s, wb_json *answer)
{
    wb_json *list = wb_json_array();

    for (size_t i = 0; i < WB_LEN(traits); i++)
        if (s->traits & traits[i].trait) {
            if (wb_json_len(list) == 0)
                wb_json_set_str(answer, "class", traits[i].word);
            wb_json_push(list, wb_json_str(traits[i].word));
        }
    wb_json_set(answer, "traits", list);
}

static void add_mean(const struct steady *q, const struct wb_shape *s, wb_json *answer)
{
    double cut = q->warm_up + s->cut;
    struct wb_intervals rest;

    if (isnan(s->cut)) {
        wb_json_set_reason(answer, "cut", s->why);
        wb_json_set_reason(answer, "mean_after_cut", s->why);
        return;
    }
    rest = wb_intervals_window(&q->part, q->begin + cut, HUGE_VAL);
    wb_json_set_real(answer, "cut", cut);
    set_or_reason(answer, "mean_after_cut", wb_intervals_mean(&rest), "nothing is left");
}

static void add_levels(const struct steady *q, const char *key, const struct wb_level *levels,
                       size_t n, wb_json *answer)
{
    wb_json *list = wb_json_array();

    for (size_t i = 0; i < n; i++) {
        wb_json *o = wb_json_object();
        wb_json_set_real(o, "from", levels[i].from - q->begin);
        wb_json_set_real(o, "to", levels[i].to - q->begin);
        wb_json_set_real(o, "mean", levels[i].mean);
        wb_json_push(list, o);
    }
    wb_json_set(answer, key, list);
}

static void add_mser(const struct steady *q, const struct wb_shape *s, wb_json *answer)
{
    wb_json *o = wb_json_object();

    set_or_reason(o, "cut", q->warm_up + s->mser_cut, "fewer than 20 intervals");
    wb_json_set_bool(o, "hits_half", s->mser_half);
    wb_json_set(answer, "mser5", o);
}

static void add_quarter(const struct wb_shape *s, wb_json *answer)
{
    wb_json *o = wb_json_object();

    wb_json_set_real(o, "mean", s->quarter_mean);
    set_or_reason(o, "cv", s->quarter_cv, "the mean is 0");
    set_or_reason(o, "slope", s->quarter_slope, "there is one interval");
    set_or_reason(o, "slope_percent", s->quarter_slope_percent, "the median is 0");
    wb_json_set(answer, "last_quarter", o);
}

static void add_special(const struct steady *q, const struct wb_shape *s, wb_json *answer,
                        wb_json *warnings)
{
    if (s->traits & WB_T_SLOWDOWN) {
        wb_json *o = wb_json_object();
        wb_json_set_real(o, "at", s->at - q->begin);
        wb_json_set_real(o, "before", s->before);
        wb_json_set_real(o, "after", s->steady_mean);
        set_or_reason(o, "change_percent", 100 * (s->steady_mean / s->before - 1),
                      "the rate before is 0");
        wb_json_set(answer, "slowdown", o);
    }
    set_or_reason(answer, "period_s", s->period, "not periodic");
    if (!isnan(s->cool_down))
        wb_analysis_warn(warnings, "cool-down",
                         "the rate falls at %.6g s, at the very end: is the end of the load in it?",
                         s->cool_down - q->begin);
    if (s->cut > (wb_intervals_end(&q->part) - q->part.from[0]) / 2)
        wb_analysis_warn(warnings, "too-short",
                         "more than half of the run is discarded: let it run longer");
    if (s->mser_half)
        wb_analysis_warn(warnings, "mser-limit",
                         "MSER-5 would discard half of the run, its limit: the run is too short "
                         "for it");
}

/* Few enough rates for a picture, in equal steps. */
static void add_picture(const struct steady *q, wb_json *answer)
{
    struct wb_intervals few = wb_intervals_joined(&q->all, 1 + q->all.n / (PICTURE + 1));
    wb_json *list = wb_json_array(), *o = wb_json_object();

    for (size_t i = 0; i < few.n; i++)
        wb_json_push(list, wb_json_real(few.rate[i]));
    wb_json_set(o, "rates", list);
    set_or_reason(o, "seconds", wb_intervals_end(&q->all) - q->begin, "there is no interval");
    wb_json_set(answer, "picture", o);
    wb_intervals_release(&few);
}

static void answer_insufficient(const struct steady *q, wb_json *answer)
{
    wb_json *list = wb_json_array();
    WB_AUTO_FREE char *nothing = wb_strf("no samples left after the warm-up of %.6g s", q->warm_up);
    const char *few = "too few intervals: 60 are needed, or 20 over 120 s";
    const char *why = q->part.n == 0 && q->warm_up > 0 ? nothing : few;

    wb_json_set_str(answer, "class", "insufficient");
    wb_json_push(list, wb_json_str("insufficient"));
    wb_json_set(answer, "traits", list);
    wb_json_set_str(answer, "class_reason", why);
    if (q->part.n > 0 && q->warm_up_given) {
        wb_json_set_real(answer, "cut", q->warm_up);
        wb_json_set_real(answer, "mean_after_cut", wb_intervals_mean(&q->part));
    } else {
        wb_json_set_reason(answer, "cut", why);
        wb_json_set_reason(answer, "mean_after_cut", why);
    }
    wb_json_set_reason(answer, "mser5", why);
    wb_json_set_reason(answer, "last_quarter", why);
}

static void answer_shape(const struct steady *q, wb_json *answer, wb_json *warnings)
{
    struct wb_shape s;

    wb_shape_of(&q->judged, &s);
    add_traits(&s, answer);
    add_mean(q, &s, answer);
    add_mser(q, &s, answer);
    add_quarter(&s, answer);
    add_levels(q, "segments", s.levels, s.nlevels, answer);
    add_levels(q, "stalls", s.stalls, s.nstalls, answer);
    add_special(q, &s, answer, warnings);
    wb_shape_release(&s);
}

/* ---- the sentence ---- */

static char *sentence_of(const wb_json *answer)
{
    const char *class = wb_json_str_or(answer, "class", "");
    const wb_json *slow = wb_json_get(answer, "slowdown");
    double mean = wb_json_real_or(answer, "mean_after_cut", NAN);
    double cut = wb_json_real_or(answer, "cut", NAN);
    size_t stalls = wb_json_len(wb_json_get(answer, "stalls"));
    const char *word = strcmp(class, "warmup") == 0     ? "Steady after a warm-up"
                       : strcmp(class, "periodic") == 0 ? "Periodic"
                                                        : "Steady";

    if (strcmp(class, "insufficient") == 0)
        return wb_strf("Not judged: %s.", wb_json_str_or(answer, "class_reason", ""));
    if (strcmp(class, "none") == 0)
        return wb_strf("No steady state: %s.", wb_json_str_or(answer, "cut_reason", ""));
    if (strcmp(class, "slowdown") == 0)
        return wb_strf("Slowdown: %.6g per second until %.6g s, %.6g after it (%+.1f %%).",
                       wb_json_real_or(slow, "before", NAN), wb_json_real_or(slow, "at", NAN),
                       wb_json_real_or(slow, "after", NAN),
                       wb_json_real_or(slow, "change_percent", NAN));
    if (stalls > 0)
        return wb_strf("%s, with %zu stall%s: %.6g per second from %.6g s on, stalls included.",
                       word, stalls, stalls == 1 ? "" : "s", mean, cut);
    return wb_strf("%s: %.6g per second from %.6g s on.", word, mean, cut);
}

int wb_stats_steady(const wb_json *in, wb_json **out, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *warnings = wb_json_array();
    WB_AUTO_FREE char *sentence = NULL;
    struct steady q;
    wb_json *answer;

    if (read_question(in, &q, warnings, err) < 0) {
        wb_intervals_release(&q.all);
        return -WB_INVALID;
    }
    answer = wb_answer_new(q.part.n, METHOD);
    set_or_reason(answer, "seconds",
                  q.part.n > 0 ? wb_intervals_end(&q.part) - q.part.from[0] : NAN,
                  "there is no interval");
    if (enough(&q.judged))
        answer_shape(&q, answer, warnings);
    else
        answer_insufficient(&q, answer);
    set_or_reason(answer, "mean", wb_intervals_mean(&q.all), "there is no interval");
    add_picture(&q, answer);
    sentence = sentence_of(answer);
    wb_answer_end(answer, sentence, WB_STEAL(warnings));
    *out = answer;
    wb_intervals_release(&q.all);
    return 0;
}
