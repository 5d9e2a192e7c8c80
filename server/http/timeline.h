/*
 * What was measured over the time of a run, from its raw data, reduced to the width of a picture:
 * at most five points a pixel (first, lowest, highest, last, and a hole where a value is missing),
 * so that no spike is lost.
 */
#ifndef WB_HTTP_TIMELINE_H
#define WB_HTTP_TIMELINE_H

#include <stddef.h>

#include "server/base/json.h"

#define WB_TIMELINE_WIDTH_MAX 4000

struct wb_trace {
    double *t, *v; /* t ascending, seconds; v NaN: no value */
    size_t n, t_cap, v_cap;
};
void wb_trace_add(struct wb_trace *p, double t, double v);
/* Points of [from, to] in `width` columns of equal time, appended to out. */
void wb_trace_reduce(const struct wb_trace *in, double from, double to, size_t width,
                     struct wb_trace *out);
void wb_trace_release(struct wb_trace *p);

struct wb_signal {
    char *name;       /* "<phase>.throughput", "<phase>.database_cores" */
    const char *unit; /* static */
    char *source;     /* the raw file */
    struct wb_trace points;
};
struct wb_signals {
    struct wb_signal *v;
    size_t n, cap;
};
void wb_signals_release(struct wb_signals *s);
/* The interval lines of wb-load ("load-<phase>.ndjson"): rates and latencies. Lines that are none
 * of its are passed over. */
void wb_signals_of_load(struct wb_signals *s, const char *phase, const char *source,
                        const char *text, size_t n);
/* The samples of a phase ("samples-<phase>.json"): {t_ms: [], <column>: []}. */
void wb_signals_of_samples(struct wb_signals *s, const char *phase, const char *source,
                           const wb_json *doc);
/* The phase in the name of such a file, owned; NULL when it is none. */
char *wb_timeline_phase(const char *file, const char *begin, const char *end);

#endif
