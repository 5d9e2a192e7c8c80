/*
 * Composite transactions: a login is one lookup, then 10 to 100 lookups whose keys follow from the
 * first. A transaction has steps that run one after the other; a step is one operation or several,
 * in sequence or all at once. The schedule is of the transactions: an arrival is the start of one.
 *
 * Everything random about a transaction is a pure function of its index in the stream: which kind
 * it is (the mix), its own key (the key law), how often a step is repeated, the keys that derive
 * from its own. A step fails the transaction; nothing more of it is issued then.
 *
 * Text: `NAME=STEP[,STEP...][; NAME=...]`, a step is `[N[..M](*|&)]OPERATION[@derived]`: `*`
 * repeats in sequence, `&` all at once; without `@derived` the key is the transaction's own.
 */
#ifndef WB_LOAD_TRANSACTIONS_H
#define WB_LOAD_TRANSACTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "server/base/node.h"

struct wb_load_plan;
struct wb_protocol;
struct wb_slot;
struct wb_worker;

#define WB_TXN_KINDS_MAX 8 /* as many as a mix can have */
#define WB_TXN_STEPS_MAX 8
#define WB_TXN_REPEAT_MAX 10000
#define WB_TXN_ACTIVE_MAX 65536 /* of a thread at a time */

struct wb_txn_step {
    char op[16];
    int64_t least, most; /* repetitions, 1..WB_TXN_REPEAT_MAX */
    bool at_once, derived;
};

struct wb_txn_kind {
    char name[16];
    int nsteps;
    struct wb_txn_step step[WB_TXN_STEPS_MAX];
};

/* Fills at most WB_TXN_KINDS_MAX kinds and their number. WB_INVALID says what is wrong. */
int wb_txn_parse(const char *text, struct wb_txn_kind *kind, int *n,
                 struct wb_err *err) WB_MUST_CHECK;

/* Appends the text of a map such as {login: [get, 10..100*get@derived]}. */
int wb_txn_join(const struct wb_node *map, struct wb_buf *out, struct wb_err *err) WB_MUST_CHECK;

/* What all workers share: steps with operations of the protocol. */
struct wb_txn_plan {
    int n;
    struct wb_txn_kind kind[WB_TXN_KINDS_MAX];
    uint8_t op[WB_TXN_KINDS_MAX][WB_TXN_STEPS_MAX];
    uint64_t seed;
};

/* WB_INVALID names the protocol's operations when a step has another. */
int wb_txn_plan_init(struct wb_txn_plan *p, const struct wb_txn_kind *kind, int n, uint64_t seed,
                     const struct wb_protocol *protocol, struct wb_err *err) WB_MUST_CHECK;
/* How often a step of transaction `index` is repeated. */
int64_t wb_txn_repeats(const struct wb_txn_plan *p, int kind, int step, uint64_t index);
/* The key of a repetition of a step of a transaction with this own key, of n keys. */
uint64_t wb_txn_key(const struct wb_txn_plan *p, int kind, int step, int64_t repetition,
                    uint64_t own, uint64_t n);

/* --- a worker's transactions --- */

struct wb_txns;

/* NULL when the plan has no transactions. */
struct wb_txns *wb_txns_new(const struct wb_load_plan *plan, uint64_t most);
void wb_txns_free(struct wb_txns *t);
/* A run stage begins. */
void wb_txns_begin(struct wb_worker *w);
/* Issues what transactions wait for room with, then begins new ones as the stage says. */
void wb_txns_go(struct wb_worker *w);
/* An operation of a transaction ended. Issues nothing: it may be called while replies are read. */
void wb_txns_ended(struct wb_worker *w, const struct wb_slot *s, bool ok, bool timed_out,
                   int64_t at);
/* Whether another one could begin now, and whether one is not over. */
bool wb_txns_room(const struct wb_worker *w);
bool wb_txns_active(const struct wb_worker *w);
/* Counts those that are not over, and those that were due and never began, as censored. */
void wb_txns_censor(struct wb_worker *w);

#endif
