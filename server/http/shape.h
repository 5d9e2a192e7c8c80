/*
 * What requests and answers hold, as rows. The same rows check what comes in and describe it in
 * the API document (openapi.c), so the two cannot disagree.
 */
#ifndef WB_HTTP_SHAPE_H
#define WB_HTTP_SHAPE_H

#include <stdbool.h>
#include <stddef.h>

#include "server/base/json.h"

enum wb_shape_type {
    WB_S_TEXT, /* min and max: characters; max 0: as many as the body may have */
    WB_S_INT,  /* min and max; both 0: any */
    WB_S_REAL,
    WB_S_BOOL,
    WB_S_WORD,   /* one of words */
    WB_S_TIME,   /* RFC 3339; in a query also a day: 2026-11-30 */
    WB_S_OBJECT, /* of: what is in it */
    WB_S_ANY     /* any JSON value */
};
enum wb_shape_flag {
    WB_S_NEED = 1,  /* must be there */
    WB_S_NULL = 2,  /* may be null */
    WB_S_HOLES = 8, /* LIST: items may be null */
    WB_S_LIST =
        4 /* an array of such, of at most `most` items; a query value that may be repeated */
};
struct wb_form;
struct wb_shape {
    const char *key; /* NULL: the end of the rows */
    enum wb_shape_type type;
    unsigned flags;
    double min, max;
    size_t least, most;       /* LIST: items; most 0: any number */
    const char *const *words; /* NULL-ended */
    const struct wb_form *of; /* OBJECT; NULL: an object of any keys */
    const char *help;         /* one line for people, or NULL */
};

/* One kind of object. */
struct wb_form {
    const char *name; /* of its schema in the API document: "Campaign" */
    const struct wb_shape *rows;
    bool open;              /* may have keys beside the rows */
    wb_json *(*make)(void); /* its schema where it is made elsewhere, instead of rows; owned */
    const char *example;    /* JSON text, or NULL */
    const char *const *one; /* exactly one of these keys must be there (NULL-ended), or NULL */
};

#define WB_SHAPE_ERRORS_MAX 50

/* Checks a document; adds {pointer, code, message} to errors (array) for each problem, up to
 * WB_SHAPE_ERRORS_MAX. Forms that are made elsewhere are not looked into. True when nothing is
 * wrong. */
bool wb_form_check(const struct wb_form *f, const wb_json *doc, wb_json *errors);
/* The value of one query key. NULL when it is right, else what is wrong with it; caller frees. */
char *wb_shape_query_fault(const struct wb_shape *row, const char *value);

/* Schemas (2020-12). Objects within refer to "#/components/schemas/<name>". Owned. */
wb_json *wb_form_schema(const struct wb_form *f);
wb_json *wb_shape_schema(const struct wb_shape *row, bool query);
wb_json *wb_form_ref(const struct wb_form *f); /* {"$ref": ...} */

/* Adds {pointer, code, message} to errors; no-op once there are WB_SHAPE_ERRORS_MAX. */
void wb_shape_error(wb_json *errors, const char *pointer, const char *code, const char *message);

#endif
