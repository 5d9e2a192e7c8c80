/*
 * Laws that keys and sizes are drawn by, as a user writes them. One parser for flags, job
 * documents and studies.
 *
 * Keys (the key space is 0..n-1):
 *   uniform, sequential
 *   zipf[:S]            rank r as r^-S, 0.01 <= S <= 10, 0.99 by default; ranks are scattered over
 *                       the key space
 *   latest[:S]          zipf whose first rank is the last key, the second the one before it, ...
 *   gaussian[:SD]       around the middle; SD in percent of the key space, 16.7% by default
 *   exponential[:MEAN]  from key 0 on; MEAN in percent of the key space, 10% by default
 *   hotspot[:OPS:KEYS]  OPS percent of the operations use the first KEYS percent, 80%:20%
 *   absent[:SHARE]      uniform; SHARE of the operations use keys that were never loaded, 100%
 * and with `:scattered` or `:ordered` at the end the other way for zipf, gaussian, exponential and
 * hotspot. Sizes are `1KiB`, `100..4KiB` (uniform, both ends count), `1KiB~200` (gaussian: mean and
 * deviation, at least 0 and at most 6 deviations above), `100=70,4KiB=30` (weights).
 */
#ifndef WB_LOAD_LAWS_H
#define WB_LOAD_LAWS_H

#include <stdbool.h>
#include <stdint.h>

#include "server/base/err.h"

#define WB_VALUE_BYTES_MAX (64 << 20)
#define WB_SIZE_PARTS_MAX 16

enum wb_load_key_choice {
    WB_LOAD_UNIFORM,
    WB_LOAD_SEQUENTIAL,
    WB_LOAD_ZIPF,
    WB_LOAD_ABSENT,
    WB_LOAD_GAUSSIAN,
    WB_LOAD_EXPONENTIAL,
    WB_LOAD_HOTSPOT,
    WB_LOAD_LATEST
};

struct wb_key_law {
    enum wb_load_key_choice choice;
    double exponent; /* ZIPF, LATEST */
    double width;    /* GAUSSIAN: deviation, EXPONENTIAL: mean; as a share of the key space */
    double share;    /* HOTSPOT, ABSENT: of the operations, 0..1 */
    double hot;      /* HOTSPOT: of the keys, > 0, <= 1 */
    bool scatter;
};

enum wb_size_kind { WB_SIZE_FIXED, WB_SIZE_UNIFORM, WB_SIZE_GAUSSIAN, WB_SIZE_WEIGHTED };

/* Sizes in bytes, 0..WB_VALUE_BYTES_MAX. A job of one size has a FIXED law whatever the size. */
struct wb_size_law {
    enum wb_size_kind kind;
    int64_t least, most;    /* what can come out */
    double mean, deviation; /* GAUSSIAN */
    int n;                  /* WEIGHTED */
    int64_t part[WB_SIZE_PARTS_MAX];
    double weight[WB_SIZE_PARTS_MAX];
};

/* Names of the key laws, NULL-ended. */
const char *const *wb_key_law_names(void);
/* text NULL: uniform. *out is not touched on failure. WB_INVALID says what is allowed. */
int wb_key_law_parse(const char *text, struct wb_key_law *out, struct wb_err *err) WB_MUST_CHECK;
int wb_size_law_parse(const char *text, struct wb_size_law *out, struct wb_err *err) WB_MUST_CHECK;

#endif
