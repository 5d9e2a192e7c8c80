/*
 * Records that were made elsewhere: another store, or results of other programs.
 */
#ifndef WB_RECORD_IMPORT_H
#define WB_RECORD_IMPORT_H

#include "server/record/store.h"

struct wb_cancel;

/* Takes over the references of all controllers from another store (a path or URL), with git. A
 * reference that is here already moves only forward: what would lose something is refused. *report,
 * owned, also on WB_CONFLICT: {from, refs: [{ref, status, reason}]}; status: "new", "forward",
 * "same", "older" (here is more), "refused" (histories differ). WB_CONFLICT when one was refused
 * (the others are taken over), WB_NOT_FOUND when there is nothing at the path or no record in it,
 * WB_INVALID when it is something else, WB_UNAVAILABLE when it cannot be reached. What came is not
 * verified yet: see wb_store_verify. */
int wb_store_import(struct wb_store *s, const char *from, const struct wb_cancel *cancel,
                    wb_json **report, struct wb_err *err) WB_MUST_CHECK;

#define WB_RESULTS_MAX (64u << 20) /* bytes of a text of results */

/* Records results of other programs. text: one JSON object a line,
 *   id        what it is called there; a result is recorded once however often it is imported
 *   test      what was measured
 *   measured_at  RFC 3339 with Z or offset, or a Unix time in seconds or milliseconds
 *   metrics   {name: {value, unit, better ("higher" or "lower")}}, at least one
 *   factors   {name: text}: what was varied; build, layout, settings. Part of the series
 *   name, version  of what was measured; host, host_class; campaign (a word: results that belong
 *             together; else those of one day do), round, outcome (else "ok"), ended_at
 * Further keys are kept and have no meaning. Their validity is "unverified": nothing is known of
 * how they came about. source: a word for where they are from, part of the series. *report, owned,
 * also on WB_CANCELLED: {source, recorded, already, refused: [{line, id, reason}]}; lines that are
 * refused do not keep others out. Thousands go into one commit and one sync; what was interrupted
 * goes on where it ended when it is done again. */
int wb_store_import_results(struct wb_store *s, const char *source, const char *text, size_t n,
                            const struct wb_cancel *cancel, wb_json **report,
                            struct wb_err *err) WB_MUST_CHECK;

#endif
