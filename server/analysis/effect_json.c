/* The keys of a comparison, by the contract of `weighbridge stats compare`. */
#include "server/analysis/effect.h"

#include <math.h>
#include <stdarg.h>

#include "server/base/mem.h"

static void set_interval(wb_json *obj, const char *key, const struct wb_interval *interval)
{
    wb_json *v;

    if (!interval->have) {
        wb_json_set_reason(obj, key, "a 95 % interval needs at least 6 values");
        return;
    }
    v = wb_json_object();
    wb_json_set_real(v, "lo", interval->lo);
    wb_json_set_real(v, "hi", interval->hi);
    wb_json_set_real(v, "coverage", interval->coverage);
    wb_json_set(obj, key, v);
}

static void set_medians(const struct wb_effect *e, wb_json *obj)
{
    static const char *const median_keys[] = {"median_base", "median_new"};
    static const char *const interval_keys[] = {"median_ci95_base", "median_ci95_new"};

    for (int side = 0; side < 2; side++) {
        if (e->n[side] == 0)
            wb_json_set_reason(obj, median_keys[side], "no values");
        else
            wb_json_set_real(obj, median_keys[side], e->median[side]);
    }
    if (!e->have_change)
        wb_json_set_reason(obj, "delta_percent", "a side has no values");
    else if (!e->have_delta)
        wb_json_set_reason(obj, "delta_percent", "the median of base is 0");
    else
        wb_json_set_real(obj, "delta_percent", e->delta_percent);
    for (int side = 0; side < 2; side++)
        set_interval(obj, interval_keys[side], &e->median_interval[side]);
}

static wb_json *estimate_json(const struct wb_effect *e)
{
    wb_json *v = wb_json_object();

    wb_json_set_real(v, "estimate", e->estimate);
    wb_json_set_real(v, "level_percent", (1 - e->alpha) * 100);
    if (e->interval.have) {
        wb_json_set_real(v, "lo", e->interval.lo);
        wb_json_set_real(v, "hi", e->interval.hi);
    } else {
        WB_AUTO_FREE char *reason = e->paired
                                        ? wb_strf("a %.4g %% interval needs at least %zu rounds",
                                                  (1 - e->alpha) * 100, wb_effect_needed(e))
                                        : wb_strdup("too few values for a 95 % interval");
        wb_json_set_reason(v, "lo", reason);
        wb_json_set_reason(v, "hi", reason);
    }
    return v;
}

static void set_change(const struct wb_effect *e, wb_json *obj)
{
    if (!e->have_change) {
        wb_json_set_reason(obj, "p", "a side has no values");
        wb_json_set_reason(obj, "ratio", "a side has no values");
        wb_json_set_reason(obj, "a12", "a side has no values");
        wb_json_set_reason(obj, "cliffs_delta", "a side has no values");
        return;
    }
    if (e->test.defined)
        wb_json_set_real(obj, "p", e->test.p);
    else
        wb_json_set_reason(obj, "p",
                           e->paired ? "no round changed anything" : "all samples are equal");
    if (e->scale == WB_RATIO) {
        wb_json_set(obj, "ratio", estimate_json(e));
    } else {
        wb_json_set_reason(obj, "ratio", "values at or below 0: see difference");
        wb_json_set(obj, "difference", estimate_json(e));
    }
    wb_json_set_real(obj, "a12", e->a12);
    wb_json_set_real(obj, "cliffs_delta", 2 * e->a12 - 1);
}

void wb_effect_json(const struct wb_effect *e, wb_json *obj)
{
    struct wb_buf sentence = WB_BUF_INIT(1000);
    wb_json *n = wb_json_array();

    wb_json_push(n, wb_json_int((int64_t)e->n[0]));
    wb_json_push(n, wb_json_int((int64_t)e->n[1]));
    wb_json_set(obj, "n", n);
    wb_json_set_bool(obj, "paired", e->paired);
    wb_json_set_str(obj, "method", e->test.method);
    set_medians(e, obj);
    set_change(e, obj);
    if (!isnan(e->q))
        wb_json_set_real(obj, "q", e->q);
    wb_json_set_real(obj, "threshold_percent", e->threshold_percent);
    if (e->verdict == WB_V_DIFFERENT)
        wb_json_set_reason(obj, "verdict",
                           "different, but 'better' does not say which direction "
                           "is better");
    else
        wb_json_set_str(obj, "verdict", wb_verdict_word(e->verdict));
    wb_effect_sentence(e, &sentence);
    wb_json_set_str(obj, "sentence", wb_buf_str(&sentence));
    wb_buf_release(&sentence);
    if (e->rounds_needed > 0)
        wb_json_set_int(obj, "rounds_needed", (int64_t)e->rounds_needed);
    else
        wb_json_set_reason(obj, "rounds_needed", e->rounds_reason);
}

void wb_analysis_warn(wb_json *warnings, const char *code, const char *fmt, ...)
{
    wb_json *w = wb_json_object();
    WB_AUTO_FREE char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    text = wb_vstrf(fmt, ap);
    va_end(ap);
    wb_json_set_str(w, "code", code);
    wb_json_set_str(w, "text", text);
    wb_json_push(warnings, w);
}
