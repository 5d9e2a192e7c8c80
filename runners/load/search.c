#include "runners/load/search.h"

#include <math.h>
#include <string.h>

#include "server/base/mem.h"
#include "server/base/units.h"

#define CLOSE 1.02   /* rates nearer than this are not told apart */
#define GIVE_UP 0.02 /* how far below a rate that was not confirmed; doubled each time */
#define GIVE_UP_MOST 5
#define LIMIT_MOST 3600000000000 /* ns: an hour, the range of the histograms */

int wb_slo_parse(const char *text, struct wb_slo *out, struct wb_err *err)
{
    const char *less = strchr(text, '<');
    WB_AUTO_FREE char *left = less ? wb_strndup(text, (size_t)(less - text)) : NULL;
    struct wb_slo v = {.percentile = 100};
    int rc;

    if (!left || (left[0] != 'p' && strcmp(left, "max") != 0))
        return wb_fail(err, WB_INVALID, "'%s' is not a limit such as p99<5ms, p99.9<20ms or max<1s",
                       text);
    if (left[0] == 'p') {
        rc = wb_parse_real(left + 1, 0.001, 99.999, &v.percentile, err);
        if (rc < 0)
            return wb_wrap(err, "the percentile of '%s'", text);
    }
    rc = wb_parse_duration(less + 1 + (less[1] == '='), 1000, LIMIT_MOST, &v.limit_ns, err);
    if (rc < 0)
        return wb_wrap(err, "the limit of '%s'", text);
    *out = v;
    return 0;
}

static double three_digits(double v)
{
    double unit = pow(10, floor(log10(v)) - 2);

    return round(v / unit) * unit;
}

void wb_search_init(struct wb_search *s, double start_per_s, double least_per_s, double most_per_s)
{
    *s = (struct wb_search){
        .start_per_s = start_per_s, .least_per_s = least_per_s, .most_per_s = most_per_s};
}

/* Between the two rates; 0 when they are as near as makes sense. */
static double middle(const struct wb_search *s)
{
    double v = three_digits(sqrt(s->holds_per_s * s->fails_per_s));

    if (s->fails_per_s <= CLOSE * s->holds_per_s || v <= s->holds_per_s || v >= s->fails_per_s)
        return 0;
    return v;
}

double wb_search_next(const struct wb_search *s)
{
    double v;

    switch (s->stage) {
    case WB_SEARCH_BRACKET:
        if (s->holds_per_s == 0 && s->fails_per_s == 0)
            return s->start_per_s;
        v = s->holds_per_s > 0 ? 2 * s->holds_per_s : s->fails_per_s / 2;
        return v > s->most_per_s ? s->most_per_s : v < s->least_per_s ? s->least_per_s : v;
    case WB_SEARCH_BISECT:
        return middle(s);
    case WB_SEARCH_CONFIRM:
        return s->holds_per_s;
    default:
        return 0;
    }
}

static void confirmed(struct wb_search *s, bool held)
{
    double lower;

    if (held) {
        if (++s->confirmed == WB_SEARCH_TIMES)
            s->stage = WB_SEARCH_FOUND;
        return;
    }
    s->confirmed = 0;
    lower = three_digits(s->holds_per_s * (1 - GIVE_UP * (1 << s->given_up)));
    if (s->given_up++ == GIVE_UP_MOST || lower < s->least_per_s) {
        s->stage = WB_SEARCH_NONE;
        return;
    }
    s->fails_per_s = s->holds_per_s;
    s->holds_per_s = lower;
}

void wb_search_tell(struct wb_search *s, bool held)
{
    double rate = wb_search_next(s);

    if (s->stage == WB_SEARCH_CONFIRM) {
        confirmed(s, held);
        return;
    }
    if (held)
        s->holds_per_s = rate;
    else
        s->fails_per_s = rate;
    if (s->holds_per_s > 0 && s->fails_per_s > 0)
        s->stage = middle(s) > 0 ? WB_SEARCH_BISECT : WB_SEARCH_CONFIRM;
    else if (s->holds_per_s >= s->most_per_s)
        s->stage = WB_SEARCH_CONFIRM;
    else if (s->fails_per_s > 0 && s->fails_per_s <= s->least_per_s)
        s->stage = WB_SEARCH_NONE;
}

const char *wb_search_stage_name(enum wb_search_stage stage)
{
    static const char *const names[] = {"bracket", "bisect", "confirm", "found", "none"};

    return names[stage];
}
