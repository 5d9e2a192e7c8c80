/*
 * One comparison as numbers: everything about two sets of values that `compare` answers, and its
 * verdict. JSON is made of it in compare.c and campaign.c.
 */
#ifndef WB_ANALYSIS_EFFECT_H
#define WB_ANALYSIS_EFFECT_H

#include <stdbool.h>
#include <stddef.h>

#include "server/analysis/interval.h"
#include "server/analysis/rank.h"
#include "server/base/buf.h"
#include "server/base/json.h"

#define WB_ALPHA 0.05
#define WB_THRESHOLD_PERCENT 2.0 /* practical threshold unless the study says another */
#define WB_UNPAIRED_MIN 4        /* values a side for a verdict */
#define WB_PAIRED_MIN 6          /* complete rounds for a verdict */

enum wb_better { WB_BETTER_UNKNOWN, WB_BETTER_HIGHER, WB_BETTER_LOWER };

enum wb_verdict {
    WB_V_INSUFFICIENT,
    WB_V_INCONCLUSIVE,
    WB_V_NEGLIGIBLE, /* real, but within the practical threshold */
    WB_V_EQUIVALENT, /* certainly within the practical threshold */
    WB_V_BETTER,
    WB_V_WORSE,
    WB_V_DIFFERENT /* beyond the threshold, but nobody said which direction is better */
};

struct wb_effect_input {
    const double *base, *other; /* unsorted; paired: of the same round at the same place */
    size_t nbase, nother;       /* at most WB_VALUES_MAX; equal when paired; may be 0 */
    bool paired;
    enum wb_better better;
    double threshold_percent; /* >= 0 */
    size_t least;             /* values a side (or rounds) needed for a verdict */
    double alpha;             /* of the interval when paired: it misses so often; 0: WB_ALPHA */
};

struct wb_effect {
    size_t n[2]; /* base, other */
    bool paired;
    enum wb_better better;
    double threshold_percent;
    size_t least;
    double alpha;
    double median[2]; /* meaningful when n > 0 */
    struct wb_interval median_interval[2];
    bool have_delta; /* of the medians; false when base is 0 or a side is empty */
    double delta_percent;
    struct wb_rank_test test; /* meaningful when have_change */
    double a12;               /* P(other > base) + P(equal) / 2 */
    bool have_change;         /* both sides have values: estimate, test and a12 are given */
    enum wb_scale scale;      /* WB_DIFFERENCE when a value is <= 0 */
    double estimate;          /* Hodges-Lehmann */
    struct wb_interval interval;
    double noise;  /* standard deviation of one change: of logarithms for ratios */
    double q;      /* NaN outside of a family */
    bool decisive; /* p (in a family q) <= WB_ALPHA */
    enum wb_verdict verdict;
    size_t rounds_needed; /* 0: see rounds_reason */
    const char *rounds_reason;
};

/* All numbers, and the verdict with p. Deterministic. */
void wb_effect_of(const struct wb_effect_input *in, struct wb_effect *out);
/* The verdict once more for a member of a family, with its q (NaN when it was not testable). */
void wb_effect_judge(struct wb_effect *e, double q);

/* Fewest rounds (or values a side) from which a verdict can follow. */
size_t wb_effect_needed(const struct wb_effect *e);

/* Static word: "better", "insufficient", ...; NULL for WB_V_DIFFERENT. */
const char *wb_verdict_word(enum wb_verdict v);

/* Adds the keys of the contract to an object: n, medians, delta_percent, p, ratio, ... verdict. */
void wb_effect_json(const struct wb_effect *e, wb_json *obj);
/* One sentence for people, without names: "7.8 % lower (interval 6.1 % to 9.6 % lower)". */
void wb_effect_sentence(const struct wb_effect *e, struct wb_buf *out);
/* "-7.8 %" for a ratio, "+0.25" for a difference. */
void wb_effect_change(const struct wb_effect *e, double at, struct wb_buf *out);

/* Adds {code, text} to the warnings of an answer. */
void wb_analysis_warn(wb_json *warnings, const char *code, const char *fmt, ...) WB_PRINTF(3, 4);

#endif
