/*
 * Time: int64 ns on the monotonic clock for durations and deadlines, int64 Unix ms for stamps
 * shown to people. Tests set both through wb_clock_fake.
 */
#ifndef WB_BASE_CLOCK_H
#define WB_BASE_CLOCK_H

#include <stdint.h>

#include "server/base/buf.h"

#define WB_US 1000LL
#define WB_MS 1000000LL
#define WB_SEC 1000000000LL

struct wb_clock; /* a source of time; NULL everywhere means the system's clocks */

int64_t wb_now_ns(const struct wb_clock *c);      /* CLOCK_MONOTONIC */
int64_t wb_now_unix_ms(const struct wb_clock *c); /* CLOCK_REALTIME */

/* A clock that stands still until set; owned by the caller, freed by wb_clock_free. */
struct wb_clock *wb_clock_fake(int64_t mono_ns, int64_t unix_ms);
void wb_clock_advance(struct wb_clock *c, int64_t ns); /* fake clocks only; moves both */
void wb_clock_free(struct wb_clock *c);

/* RFC 3339 UTC with milliseconds: 2026-11-30T15:41:49.123Z. */
void wb_format_time(int64_t unix_ms, struct wb_buf *out);
/* Parses the same (offset or Z required, fraction optional). */
int wb_parse_time(const char *s, int64_t *unix_ms, struct wb_err *err) WB_MUST_CHECK;

#endif
