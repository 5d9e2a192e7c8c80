/*
 * Raw files of runs as plain files, for answers that are parts of them: each is taken out of git
 * once, checked against its digest, and kept by that digest until room is needed.
 */
#ifndef WB_HTTP_SPOOL_H
#define WB_HTTP_SPOOL_H

#include "server/record/store.h"

#define WB_SPOOL_FOLDER "service/raw"  /* in the state folder */
#define WB_SPOOL_BYTES_MAX (4LL << 30) /* of all files that are kept */

/* An open file with the content of a raw file of a run; the caller closes *fd. dir is made. sha256
 * is what the summary says. WB_NOT_FOUND when the data was pruned. */
int wb_spool_open(struct wb_store *s, const char *dir, const char *run, const char *name,
                  const char *sha256, int *fd, struct wb_err *err) WB_MUST_CHECK;

#endif
