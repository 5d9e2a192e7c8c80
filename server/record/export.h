/*
 * Records for other programs: runs, or a row for each figure of each run, as CSV (RFC 4180, texts
 * that a spreadsheet would take for a formula made inert) or as lines of JSON. Oldest first, page
 * by page: memory does not grow with the store.
 */
#ifndef WB_RECORD_EXPORT_H
#define WB_RECORD_EXPORT_H

#include "server/record/query.h"

struct wb_export {
    struct wb_query q; /* filters; order, limit and cursor are set here */
    bool csv;          /* else lines of JSON */
    bool metrics;      /* a row for each figure; else one for each run */
    bool document;     /* JSON: one document {items, next} instead of lines */
    int (*write)(void *arg, const void *data, size_t n, struct wb_err *err);
    void *arg;
    size_t rows; /* out: how many were written */
};

/* A failure of write ends it and is returned. */
int wb_store_export(struct wb_store *s, struct wb_export *e, struct wb_err *err) WB_MUST_CHECK;

#endif
