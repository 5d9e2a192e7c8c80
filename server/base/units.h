/*
 * Strict numbers and units, in one place. The whole text must be consumed; bounds are given by
 * the caller; no locale. Internal units: ns (int64), bytes (int64), per second (double).
 */
#ifndef WB_BASE_UNITS_H
#define WB_BASE_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#include "server/base/buf.h"
#include "server/base/err.h"

/* "42", "1_000_000", "10k", "2M" (decimal multiples); in [lo, hi]. The error says what is allowed.
 */
int wb_parse_int(const char *s, int64_t lo, int64_t hi, int64_t *out,
                 struct wb_err *err) WB_MUST_CHECK;
/* Plain decimal or exponent; finite; in [lo, hi]. */
int wb_parse_real(const char *s, double lo, double hi, double *out,
                  struct wb_err *err) WB_MUST_CHECK;
/* "100", "64B", "4KiB", "1MiB", "2GiB", "10kB", "5MB": bytes. */
int wb_parse_bytes(const char *s, int64_t lo, int64_t hi, int64_t *out,
                   struct wb_err *err) WB_MUST_CHECK;
/* "500us", "20ms", "10s", "5m", "1h", also "1.5s": ns. A number without a unit is refused. */
int wb_parse_duration(const char *s, int64_t lo_ns, int64_t hi_ns, int64_t *out,
                      struct wb_err *err) WB_MUST_CHECK;
/* "20k/s", "100/s", "1.5M/s", "0.5/s", "1 per 7s"; the "/s" may be left out: operations per second,
 * > 0. */
int wb_parse_rate(const char *s, double *out, struct wb_err *err) WB_MUST_CHECK;
/* "77%" or "77": 77.0, in [lo, hi]. */
int wb_parse_percent(const char *s, double lo, double hi, double *out,
                     struct wb_err *err) WB_MUST_CHECK;

/* Appends the regular expression of the texts that the parser of a kind takes, bounds apart. */
enum wb_unit_kind {
    WB_UNIT_INT,
    WB_UNIT_REAL,
    WB_UNIT_BYTES,
    WB_UNIT_DURATION,
    WB_UNIT_RATE,
    WB_UNIT_PERCENT
};
void wb_unit_pattern(enum wb_unit_kind kind, struct wb_buf *out);

/* CPU and memory-node lists as the kernel writes them: "0-2,5". At most 1024. *set is a new array
 * of `*n` ascending numbers, owned by the caller. An empty text gives n = 0. */
int wb_parse_cpulist(const char *s, int **set, int *n, struct wb_err *err) WB_MUST_CHECK;
void wb_format_cpulist(const int *set, int n, struct wb_buf *out);

/* For people. */
void wb_format_count(double v, struct wb_buf *out);  /* 21,345 */
void wb_format_rate(double v, struct wb_buf *out);   /* 215.3k/s */
void wb_format_ns(int64_t ns, struct wb_buf *out);   /* 1.24 ms, 312 us, 4.0 s, 2 m 05 s */
void wb_format_bytes(int64_t v, struct wb_buf *out); /* 4.0 KiB */

#endif
