/*
 * A Redis cluster as its nodes describe it: which node has which hash slot. Read once before the
 * load, again when a node says that a slot has moved or when a node is lost, and mended slot by
 * slot meanwhile.
 *
 * Threads: the table of slots is read by all and written one slot at a time; refresh is of the
 * control thread alone.
 */
#ifndef WB_LOAD_RESP_CLUSTER_H
#define WB_LOAD_RESP_CLUSTER_H

#include "runners/load/target.h"
#include "runners/load/wire.h"
#include "server/base/buf.h"

struct wb_resp_cluster;

/* What a connection begins with (borrowed, may be empty), TLS or NULL. */
struct wb_resp_cluster *wb_resp_cluster_new(const struct wb_buf *hello, const struct wb_tls *tls);
void wb_resp_cluster_free(struct wb_resp_cluster *k); /* NULL is fine */

/* Asks the addresses of the target, one after the other, until one answers; the target's addresses
 * become those of the nodes that have slots. */
int wb_resp_cluster_find(struct wb_resp_cluster *k, struct wb_target *target,
                         const struct wb_cancel *cancel, struct wb_err *err) WB_MUST_CHECK;
/* Which address of the target has a slot. */
uint32_t wb_resp_cluster_node(const struct wb_resp_cluster *k, uint32_t slot);

/* A node has said "MOVED SLOT HOST:PORT" or "ASK SLOT HOST:PORT": `text` behind the first word.
 * `from` is the target's address that said so. Returns the address that is meant, UINT32_MAX when
 * the text is none or the node is not known (then the table is due to be read again). A move is
 * remembered. */
uint32_t wb_resp_cluster_moved(struct wb_resp_cluster *k, const char *text, size_t n, uint32_t from,
                               bool ask);
/* Nobody answers at a node's address: another one may have taken its place, so that the table is
 * due to be read again. */
void wb_resp_cluster_lost(struct wb_resp_cluster *k);
/* Reads the table again when that is due and was not done in the last second. A node that is new
 * takes the place of one that has no slots any more. Blocks for half a second at most. */
void wb_resp_cluster_refresh(struct wb_resp_cluster *k, const struct wb_cancel *cancel);

/* Reads the answer to CLUSTER SLOTS, for its tests. `self` stands for a node that gives no host.
 * Returns the bytes of a whole answer, 0 when it is not complete, -1 when it is none; slots[i]
 * becomes an index into nodes, -1 for a slot that nobody has. */
int64_t wb_resp_cluster_read(const char *data, size_t n, const char *self, struct wb_strv *nodes,
                             int16_t *slots);

#endif
