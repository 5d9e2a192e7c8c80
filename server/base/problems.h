/*
 * All problems of an input at once: each with file, line, pointer, code and message.
 */
#ifndef WB_BASE_PROBLEMS_H
#define WB_BASE_PROBLEMS_H

#include "server/base/node.h"

struct wb_problem {
    char *file; /* may be NULL (from REST) */
    int line;   /* 0 unknown */
    char *pointer;
    const char *code; /* static: "unknown-key", "unknown-value", "missing", "out-of-range", ... */
    char *message;
};

struct wb_problems {
    const char *file; /* borrowed; copied into each problem added */
    struct wb_problem *v;
    size_t n, cap;
    size_t dropped; /* problems beyond the bound of 200, counted only */
};

/* Adds a problem at a node (its line and pointer; node may be NULL). code is static text. */
void wb_problem(struct wb_problems *p, const struct wb_node *at, const char *code, const char *fmt,
                ...) WB_PRINTF(4, 5);
/* The same for a key that is missing below `map`. */
void wb_problem_key(struct wb_problems *p, const struct wb_node *map, const char *key,
                    const char *code, const char *fmt, ...) WB_PRINTF(5, 6);
/* base/yaml.c: wb_yaml_parse whose error becomes a problem ("syntax", "too-large") with its line;
 * NULL then. */
struct wb_node *wb_yaml_check(const char *text, size_t n, struct wb_problems *p);
/* {ok, errors:[{file,line,pointer,code,message}]}; owned by the caller. */
wb_json *wb_problems_json(const struct wb_problems *p);
/* One line each: "file:line: /pointer: message". */
void wb_problems_text(const struct wb_problems *p, struct wb_buf *out);
/* Moves the problems of `from` to p, without those that p has already (same file, line, pointer and
 * message); `from` is empty then. */
void wb_problems_merge(struct wb_problems *p, struct wb_problems *from);
/* Puts problems from index `from` on in reading order: file by file as they first appear, by line
 * in each; problems of one line keep their order. */
void wb_problems_sort(struct wb_problems *p, size_t from);
void wb_problems_release(struct wb_problems *p);

/* " (did you mean 'docker'?)" or "" for the nearest of NULL-ended words; caller frees. */
char *wb_did_you_mean(const char *word, const char *const *words);
/* "a, b or c" of NULL-ended words; caller frees. */
char *wb_word_list(const char *const *words);

#endif
