/*
 * One line of results of other programs as a record; import.h has the form. Inside of the room.
 */
#ifndef WB_RECORD_OUTSIDE_H
#define WB_RECORD_OUTSIDE_H

#include "server/record/store.h"

/* *out, owned, is a whole record without raw data; *id, owned, is what the line calls itself, set
 * also on failure when the line has one (else NULL). WB_INVALID names the field. */
int wb_outside_record(const char *source, const char *line, size_t n, struct wb_record *out,
                      char **id, struct wb_err *err) WB_MUST_CHECK;

#endif
