/*
 * A history of one figure, night by night, as `stats changes` reads it, and the parts of its
 * analysis. Only for changes*.c and history*.c.
 */
#ifndef WB_ANALYSIS_HISTORY_H
#define WB_ANALYSIS_HISTORY_H

#include <stdbool.h>
#include <stddef.h>

#include "server/analysis/effect.h"
#include "server/analysis/input.h"

#define WB_HISTORY_MAX 100000
#define WB_HISTORY_WINDOW 1000 /* newest points that are looked at, unless the input says */
#define WB_MIN_MAGNITUDE_PERCENT 2.0
#define WB_HISTORY_LEAST 8 /* points without which nothing can be said */
#define WB_MOVED 2         /* an event that moved by so many points is the same event */

/* What is said about a night; bits. */
enum {
    WB_MARK_EXCLUDED = 1,    /* the run does not count */
    WB_MARK_ACCEPTED = 2,    /* the change that begins here is meant: a new baseline */
    WB_MARK_ENVIRONMENT = 4, /* other surroundings from here on: nothing is compared across */
};

struct wb_history {
    struct wb_numbers values; /* NaN: no valid run */
    unsigned char *marks;     /* WB_MARK_* of each night */
    const wb_json *ids;       /* NULL, or a list of as many texts or numbers; borrowed */
    const wb_json *previous;  /* NULL or an earlier answer; borrowed */
    const char *series;       /* NULL or the key of the series; borrowed */
    enum wb_better better;
    double min_percent; /* changes below this do not matter */
    size_t window;
};

/* Reads and checks the document. Release also after a failure. */
int wb_history_read(const wb_json *in, struct wb_history *h, wb_json *warnings,
                    struct wb_err *err) WB_MUST_CHECK;
void wb_history_release(struct wb_history *h);
/* The id of a night (borrowed), or its index as text; caller frees. */
char *wb_history_id(const struct wb_history *h, size_t index);
/* The index of the night with an id; n when there is none. */
size_t wb_history_find(const struct wb_history *h, const wb_json *id);

/* The points that are analysed: nights with a value that counts, without wild ones. */
struct wb_points {
    double *v;
    size_t *at; /* their nights */
    size_t n;
    size_t *wild; /* nights of the wild ones */
    size_t nwild;
    size_t all; /* points of the history, also before the window */
};
void wb_points_of(const struct wb_history *h, struct wb_points *p);
void wb_points_release(struct wb_points *p);

/* A change of level between two points. */
struct wb_event {
    size_t point; /* first of the new level */
    double p;
    const char *by;
    bool hard; /* a border that annotations set, no finding: nothing is compared across */
    bool accepted;
    double before, after; /* medians of the levels */
    size_t nbefore, nafter;
    double superiority; /* P(after > before) + P(equal) / 2 */
};

struct wb_levels {
    struct wb_event *events; /* in order; found ones and borders */
    size_t n;
    bool slope; /* the newest points are a slope and no step */
    size_t slope_from;
    double slope_percent; /* over the whole slope, of its median */
    bool unstable;        /* a change was dropped because the levels overlap too much */
    bool autocorrelated;  /* neighbours hang together: found changes are less sure */
    double correlation;   /* largest of the parts */
};
/* Finds the changes of level and keeps those that matter. */
void wb_levels_of(const struct wb_history *h, const struct wb_points *p, struct wb_levels *out);
void wb_levels_release(struct wb_levels *l);
/* The part of the points before and behind event i: [from, event.point) and [event.point, to). */
size_t wb_level_from(const struct wb_levels *l, size_t i);
size_t wb_level_to(const struct wb_levels *l, const struct wb_points *p, size_t i);

/* Parts of the answer beside the list of changes: outliers, last_point, flags, drift_percent,
 * baseline, noise. */
void wb_history_state(const struct wb_history *h, const struct wb_points *p,
                      const struct wb_levels *l, wb_json *answer, wb_json *warnings);

/* Gives each entry of change_points its id and first_seen: those of the same event of the earlier
 * answer, else new ones. Adds `gone`: events of the earlier answer that are no more. */
void wb_history_identify(const struct wb_history *h, wb_json *answer);

/* Whether values differ enough to matter. */
bool wb_history_matters(const struct wb_history *h, double before, double after);

#endif
