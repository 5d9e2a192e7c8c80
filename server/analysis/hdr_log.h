/*
 * Lines of an HDR histogram log, formats 1.0 to 1.3: comments and legend are passed over, StartTime
 * and BaseTime are kept, every other line is `[Tag=x,]start,length,max,base64`.
 *
 * Times count from the first StartTime (without one, from the first entry). An entry's start is
 * relative to BaseTime where there is one; else to the last StartTime when it lies more than a year
 * before it; else it is absolute.
 */
#ifndef WB_ANALYSIS_HDR_LOG_H
#define WB_ANALYSIS_HDR_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include "server/base/err.h"

struct wb_hdr_log {
    const char *p, *end;
    size_t line; /* of the line last read */
    bool has_start, has_base, has_first;
    double start, base; /* last StartTime and BaseTime, seconds since 1970 */
    double first;       /* what times count from */
    bool seen_log;      /* a comment, a legend or an entry was there */
};

struct wb_hdr_entry {
    const char *tag; /* tag_n bytes, borrowed from the text; NULL: none */
    size_t tag_n;
    double from_s, length_s;
    const char *text; /* the encoded histogram, n bytes, borrowed */
    size_t n;
};

/* text is borrowed for the life of log. */
void wb_hdr_log_init(struct wb_hdr_log *log, const char *text, size_t n);
/* The next entry: 1; 0 at the end; WB_CORRUPT for a line that is none (log->line tells which);
 * reading can go on behind it. */
int wb_hdr_log_next(struct wb_hdr_log *log, struct wb_hdr_entry *e,
                    struct wb_err *err) WB_MUST_CHECK;

#endif
