/* Inside of the queue: everything that turns depend on, read from the database and the pools. */
#ifndef WB_QUEUE_BOARD_H
#define WB_QUEUE_BOARD_H

#include "provisioners/hosts/source.h"
#include "server/queue/queue.h"
#include "server/queue/turns.h"

struct wb_board_machine {
    const struct wb_host_pool *pool; /* the first that has it; NULL: only leased */
    const struct wb_host *host;
    char *machine, *campaign; /* campaign: that holds it, or NULL */
    char *trouble;            /* why its lease does not end, or why it is out */
    char *since;              /* of the lease, RFC 3339 */
    bool out, over;           /* out of service; the campaign does not run any more */
};

struct wb_board {
    struct wb_board_machine *machines;
    struct wb_turn_machine *state; /* the same indices */
    size_t nmachines, cap, state_cap;
    wb_json *waiting; /* array of campaigns: turns[i] is waiting[i] */
    struct wb_turn *turns;
    size_t nturns;
    wb_json *owners; /* of turns: texts that they borrow */
};

int wb_board_read(struct wb_db *db, const struct wb_host_pools *pools, int64_t now_ms,
                  struct wb_board *out, struct wb_err *err) WB_MUST_CHECK;
void wb_board_release(struct wb_board *b);

/* Seconds that a campaign of so many runs is expected to take: by what others of the same study
 * and number of arms took, else its own forecast. */
int wb_expected_s(struct wb_db *db, const wb_json *campaign, double *out,
                  struct wb_err *err) WB_MUST_CHECK;

#endif
