/*
 * Checking one run's folder against itself.
 */
#ifndef WB_RECORD_CHECK_H
#define WB_RECORD_CHECK_H

#include "server/record/internal.h"

/* Adds what is wrong with the run whose folder is `tree` of the reference `ref` (an error that is
 * not damage, such as EIO, is returned). date is "2026-11-30", day as in
 * wb_raw_read. */
int wb_check_folder(struct wb_store *s, struct wb_raw_day *day, const char *ref, const char *date,
                    const struct wb_git_entry *run, wb_json *damage,
                    struct wb_err *err) WB_MUST_CHECK;

/* The same for an annotation: its file is readable, canonical, of its schema and of its name. */
int wb_check_annotation(struct wb_store *s, const char *id, const char *path,
                        const struct wb_git_entry *file, wb_json *damage,
                        struct wb_err *err) WB_MUST_CHECK;

#endif
