/*
 * Records to a git remote. What waits is what the remote has not confirmed yet; a push offers all,
 * for the remote may have lost what it had. A push that failed is due again after a pause that
 * doubles, from half a minute to an hour. State: <store>/weighbridge.push.json, written whole;
 * without it everything is offered again.
 */
#ifndef WB_RECORD_PUSH_H
#define WB_RECORD_PUSH_H

#include "server/record/store.h"

struct wb_cancel;

/* Pushes the references of this store's controller to a remote: a name of the repository's
 * settings, a path or a URL (file, ssh, https, http, git). *report, owned, also on WB_CONFLICT and
 * WB_UNAVAILABLE:
 *   {remote, refs: [{ref, commit, status, reason}], pending, next_at (RFC 3339 or null)}
 * status: "pushed", "up-to-date", "refused" (the remote said no; reason tells why), "failed" (the
 * remote could not be reached), "kept" (raw data that was pruned here: the remote keeps what it
 * has). pending: how many are still to be pushed. WB_CONFLICT when one was refused,
 * WB_UNAVAILABLE when the remote could not be reached: neither is a success. */
int wb_store_push(struct wb_store *s, const char *remote, int64_t now_ms,
                  const struct wb_cancel *cancel, wb_json **report,
                  struct wb_err *err) WB_MUST_CHECK;
/* Whether something is to be pushed there, and from when on (Unix ms; 0: at once, also when it lies
 * further ahead of now than the longest pause: then the clock was set back). */
int wb_store_push_due(struct wb_store *s, const char *remote, int64_t now_ms, bool *pending,
                      int64_t *not_before_ms, struct wb_err *err) WB_MUST_CHECK;

/* Names of the remotes that were pushed to, appended; none in a store that never was. A URL stands
 * there without user and password, as in reports and errors. */
int wb_store_push_remotes(struct wb_store *s, struct wb_strv *out,
                          struct wb_err *err) WB_MUST_CHECK;

#endif
