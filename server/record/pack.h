/*
 * Room on disk: loose objects into packs, old raw data away.
 */
#ifndef WB_RECORD_PACK_H
#define WB_RECORD_PACK_H

#include "server/record/store.h"

struct wb_cancel;

struct wb_pack_report {
    bool done;           /* false: not due, or another process is packing */
    size_t loose, packs; /* objects not in packs (estimated) and packs, afterwards */
};
/* Packs what is loose, with git at the lowest priority; readers and writers go on meanwhile. Not
 * while something is measured on this host. now: also when few objects are loose (else from about
 * 6,000 on). Packs grow by powers of two, so that a record is packed again only a few times in its
 * life. An interruption at any moment loses nothing. */
int wb_store_pack(struct wb_store *s, bool now, const struct wb_cancel *cancel,
                  struct wb_pack_report *out, struct wb_err *err) WB_MUST_CHECK;

/* Takes raw data away that is older than keep_months whole months before now_ms (1: this month and
 * the one before stay), of this store's controller; runs and campaigns with an annotation "pinned"
 * keep theirs. keep_months < 0: the setting weighbridge.rawmonths of the store, without which
 * nothing goes. dry_run: only tells. *report: {before (the month), months [{ref, runs, kept}],
 * freed: bool}; owned. The space is free after what nothing holds has also become an hour old. */
int wb_store_prune(struct wb_store *s, int keep_months, int64_t now_ms, bool dry_run,
                   wb_json **report, struct wb_err *err) WB_MUST_CHECK;

#endif
