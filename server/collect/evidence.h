/*
 * Entries of validity evidence. Only for this room.
 */
#ifndef WB_COLLECT_EVIDENCE_H
#define WB_COLLECT_EVIDENCE_H

#include "server/collect/collect.h"

/* Collects entries and keeps the worst verdict. */
struct wb_judge {
    wb_json *evidence;
    const char *phase; /* NULL: the whole run */
    enum wb_validity worst;
};

/* One check. Figures that do not exist are NAN: a value that could not be read, a limit that the
 * check has not. */
struct wb_check {
    const char *name, *unit;
    double value;
    const char *word;   /* the value where it is not a figure */
    const char *reason; /* why the value is NAN */
    double noisy, worse;
    enum wb_validity verdict;
    bool not_applicable; /* then verdict does not count */
    const char *outcome; /* static; NULL: says nothing about the outcome */
};

/* Adds an entry with its text in words. */
void wb_judge_add(struct wb_judge *j, const struct wb_check *c, const char *fmt, ...)
    WB_PRINTF(3, 4);

/* The largest value of a key over the threads in a load's result; NAN when a thread lacks it. */
double wb_busiest_thread(const wb_json *load, const char *key);
/* Mean of a column of a sampler's window; NAN when it is null. */
double wb_window_mean(const wb_json *samples, const char *column);

/* validity_load.c: what the load's own result says of a window: Little's law or schedule lag,
 * network, errors, its verdict. */
void wb_judge_load(struct wb_judge *j, const wb_json *window,
                   const struct wb_validity_limits *limits);

#endif
