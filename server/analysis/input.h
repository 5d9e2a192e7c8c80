/*
 * Reading the documents of `stats` topics, and the frame of their answers. Every complaint begins
 * with the JSON pointer of what is wrong: `at` is the pointer of the object, "" for the document.
 */
#ifndef WB_ANALYSIS_INPUT_H
#define WB_ANALYSIS_INPUT_H

#include "server/base/json.h"

/* Within these sizes no ratio, square or sum leaves the range of a double. */
#define WB_SIZE_LEAST 1e-140
#define WB_SIZE_MOST 1e140

/* v, or NaN when it is not of such a size: no figure that a run can have. */
double wb_usable(double v);

struct wb_numbers {
    double *v; /* NaN for null */
    size_t n;
};
void wb_numbers_release(struct wb_numbers *v);
/* Takes out the NaNs, keeping order; returns how many there were. */
size_t wb_numbers_drop(struct wb_numbers *v);

/* WB_INVALID unless doc is an object; `what` says what the document must hold. */
int wb_in_object(const wb_json *doc, const char *what, struct wb_err *err) WB_MUST_CHECK;
/* A number of a usual size (0 and WB_SIZE_LEAST to WB_SIZE_MOST). */
int wb_in_number(const wb_json *j, const char *pointer, double *out,
                 struct wb_err *err) WB_MUST_CHECK;
/* A list of at most `max` numbers and nulls; a single number is a list of one. out->v is owned,
 * also after a failure. */
int wb_in_values(const wb_json *doc, const char *at, const char *key, size_t max,
                 struct wb_numbers *out, struct wb_err *err) WB_MUST_CHECK;
/* A number in [lo, hi]; absent and null leave *out as it is. */
int wb_in_real(const wb_json *doc, const char *at, const char *key, double lo, double hi,
               double *out, struct wb_err *err) WB_MUST_CHECK;
/* The same; absent and null are refused. */
int wb_in_need_real(const wb_json *doc, const char *at, const char *key, double lo, double hi,
                    double *out, struct wb_err *err) WB_MUST_CHECK;
/* doc[key] as a list of 1 to max objects. */
int wb_in_objects(const wb_json *doc, const char *key, size_t max, const wb_json **out,
                  struct wb_err *err) WB_MUST_CHECK;

/* Warns of each key of doc that is not among the NULL-ended ones: a misspelt key would silently
 * change the question. */
void wb_in_known(const wb_json *doc, const char *at, const char *const *known, wb_json *warnings);

/* CSV columns as a document: {key: [{column: value, ...} for each line]}. Empty cells are absent.
 * Owned. */
wb_json *wb_in_rows(const wb_json *columns, const char *key);
/* The first line of CSV columns as one object. Owned. */
wb_json *wb_in_first_row(const wb_json *columns);

/* {n, method}; an answer without a count has n 0 (never null). Owned. */
wb_json *wb_answer_new(size_t n, const char *method);
/* Adds sentence (when not NULL), analysis_version and warnings (stolen). */
void wb_answer_end(wb_json *answer, const char *sentence, wb_json *warnings);

#endif
