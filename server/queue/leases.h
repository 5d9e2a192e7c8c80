/*
 * Leases: which campaign holds which machines. All of its machines at once or none; a machine is
 * held by one campaign; a lease ends only after its host was seen clean. The order of turns is
 * that of turns.h.
 */
#ifndef WB_QUEUE_LEASES_H
#define WB_QUEUE_LEASES_H

#include "provisioners/hosts/source.h"
#include "server/queue/queue.h"

/* queued -> running, with leases, for the one whose turn it is; *id is NULL when none can start
 * (caller frees). One transaction. */
int wb_queue_take(struct wb_db *db, const struct wb_host_pools *pools, int64_t now_ms, char **id,
                  struct wb_err *err) WB_MUST_CHECK;

/* Leases: {machine, host, pool, campaign, since, trouble, looked_ms} (owned array). of: of this
 * campaign; NULL: those whose campaign does not run any more. */
int wb_leases_list(struct wb_db *db, const char *of, wb_json **out,
                   struct wb_err *err) WB_MUST_CHECK;
/* The host was seen clean. Nothing when the campaign runs (again) or holds it no more. */
int wb_lease_end(struct wb_db *db, const char *machine, const char *campaign,
                 struct wb_err *err) WB_MUST_CHECK;
/* It was not, and why. */
int wb_lease_trouble(struct wb_db *db, const char *machine, const char *campaign, const char *why,
                     int64_t now_ms, struct wb_err *err) WB_MUST_CHECK;

/* Takes a machine out of service for new campaigns (reason), or back into it (NULL). */
int wb_machine_set(struct wb_db *db, const char *machine, const char *reason, const char *token,
                   int64_t now_ms, struct wb_err *err) WB_MUST_CHECK;

/* What runs and what waits, in the order in which it will start: campaigns as of wb_queue_get with
 * hosts_held (names), expected_end; those that wait also with position, waiting_for (in words),
 * expected_start; times are null with a reason where they cannot be told. Owned arrays. */
int wb_queue_view(struct wb_db *db, const struct wb_host_pools *pools, int64_t now_ms,
                  wb_json **running, wb_json **waiting, struct wb_err *err) WB_MUST_CHECK;
/* Every machine of the pools and every one that is still leased: {id, names, pools, class, source,
 * state (free, leased, dirty, out), campaign, since, reason}. Owned array. */
int wb_hosts_view(struct wb_db *db, const struct wb_host_pools *pools, wb_json **out,
                  struct wb_err *err) WB_MUST_CHECK;

#endif
