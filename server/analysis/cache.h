/*
 * Answers kept so that they need not be computed again: by the content of the question, the
 * analysis version and the program's version. A folder that may be deleted at any time; what is in
 * it is believed only when it is whole. At most WB_CACHE_FILES answers in each of two generations:
 * once the newer one is full, the older one goes and it takes its place.
 */
#ifndef WB_ANALYSIS_CACHE_H
#define WB_ANALYSIS_CACHE_H

#include "server/base/json.h"

#define WB_CACHE_FILES 10000
#define WB_CACHE_ANSWER_MAX (1u << 20) /* bytes; larger ones are not kept */

struct wb_cache;
/* dir is made when it is absent. NULL when that cannot be: everything is computed then. */
struct wb_cache *wb_cache_open(const char *dir);
void wb_cache_close(struct wb_cache *c);

/* Computes an answer from arg. */
typedef int (*wb_compute_fn)(void *arg, wb_json **out, struct wb_err *err);
/* The answer of fn, which follows from `key` alone, from the cache c (NULL: none) or computed and
 * kept. An answer from the cache is the computed one to the byte. Errors are not kept. What cannot
 * be read or written only costs time. Threads have a handle each and may share the folder. */
int wb_cache_compute(struct wb_cache *c, const char *topic, const wb_json *key, wb_compute_fn fn,
                     void *arg, wb_json **out, struct wb_err *err) WB_MUST_CHECK;

/* Like the functions of topics (topics.h): the answer to a document. */
typedef int (*wb_answer_fn)(const wb_json *in, wb_json **out, struct wb_err *err);
/* The same for a function whose name is `topic` of a document. */
int wb_cache_answer(struct wb_cache *c, const char *topic, wb_answer_fn fn, const wb_json *in,
                    wb_json **out, struct wb_err *err) WB_MUST_CHECK;

#endif
