/*
 * Field tables: one row per key of a map. The same rows check a document, fill a struct, and
 * (for schemas and help) describe it.
 */
#ifndef WB_BASE_FIELDS_H
#define WB_BASE_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

#include "server/base/problems.h"
#include "server/base/units.h"

enum wb_field_type {
    WB_F_TEXT,     /* char *  ; any scalar text; a JSON number is refused (versions!) */
    WB_F_NAME,     /* char *  ; [a-z0-9][a-z0-9._-]{0,62} */
    WB_F_WORD,     /* int     ; index into words */
    WB_F_INT,      /* int64_t ; 1_000_000 and 10k accepted; [min, max] */
    WB_F_REAL,     /* double  ; [min, max] */
    WB_F_BOOL,     /* bool    ; true or false */
    WB_F_BYTES,    /* int64_t ; 64B, 4KiB, 1MiB, 2GiB, 10kB, plain number = bytes */
    WB_F_DURATION, /* int64_t ; ns; 500ms, 10s, 5m, 1h */
    WB_F_PERCENT,  /* double  ; "77%" is 77.0 */
    WB_F_NODE,     /* const struct wb_node * ; borrowed, checked by the caller */
    WB_F_REFUSED /* nothing; a key of the language that cannot be used yet: `help` says what can */
};

struct wb_field {
    const char *key;
    enum wb_field_type type;
    bool required;
    size_t offset;            /* of the member in the struct that is filled */
    double min, max;          /* INT, REAL, BYTES, DURATION (ns), PERCENT; both 0: no bound */
    const char *const *words; /* WORD: NULL-ended */
    const char *help;         /* one line for people */
};

/* Checks that `map` is a map, refuses unknown keys (did you mean), reads each known key into out.
 * Absent optional keys leave the member as it is (so defaults are set before). `what` names the
 * map in messages ("workload"). Adds all problems; returns the number added. Strings written to
 * out are owned by it (an earlier value is freed). */
int wb_fields_read(const struct wb_node *map, const char *what, const struct wb_field *table,
                   size_t nrows, void *out, struct wb_problems *p);

/*
 * JSON Schemas (2020-12) of what a table takes (fields_schema.c). They accept both spellings: the
 * text of YAML, where every scalar is a string, and the numbers and booleans of JSON. What a schema
 * cannot express (bounds of a number with a unit, rules over several keys) is left to the reader.
 * All results are owned by the caller; arguments of type wb_json are taken.
 */
wb_json *wb_schema_map(const struct wb_field *table, size_t nrows); /* NODE rows take anything */
/* Replaces what a map's schema says of a key; its description stays. A key that the table does not
 * have is a bug. */
void wb_schema_set(wb_json *map, const char *key, wb_json *schema);
wb_json *wb_schema_list(wb_json *item, int64_t min, int64_t max);
wb_json *wb_schema_words(const char *const *words); /* NULL-ended */
wb_json *wb_schema_pattern(const char *pattern);    /* of a string */
wb_json *wb_schema_any_key(wb_json *value);         /* a map of any keys */
wb_json *wb_schema_either(wb_json *a, wb_json *b);
wb_json *wb_schema_scalar(void); /* text, number or boolean */
/* A text that a parser of units takes; numbers, too, except for durations and rates. */
wb_json *wb_schema_unit(enum wb_unit_kind kind, double min, double max);

/* True for [a-z0-9][a-z0-9._-]{0,62}. */
bool wb_is_name(const char *s);

/* Frees the TEXT and NAME members of a struct filled by a table. */
void wb_fields_release(const struct wb_field *table, size_t nrows, void *obj);

#endif
