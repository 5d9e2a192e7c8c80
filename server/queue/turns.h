/*
 * Whose turn it is: a pure function of who waits for which machines, who holds them and who has
 * had turns. No clock, no database; queue.c and the tests feed it.
 *
 * Rules:
 * - A campaign gets all its machines at once or none, all of one class; so two can never each hold
 *   what the other waits for.
 * - Order: users that were passed over WB_PASSES_MAX times by one other user first, the one that
 *   has waited longest before the others; then by priority, then the user whose last turn was
 *   longest ago, then who came first.
 * - Who cannot start claims machines that free ones would be given to: nobody behind takes them.
 *   A user that was passed over too often claims all machines that would do; any other the number
 *   that is needed, free ones first. So a large campaign is not starved by small ones, and what is
 *   not contended for runs at once.
 * - A user is passed over when another one's campaign starts on a machine that would have done.
 *   Two passes are the most: the third start would need a machine that is claimed.
 */
#ifndef WB_QUEUE_TURNS_H
#define WB_QUEUE_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WB_PASSES_MAX 2
#define WB_NEVER INT64_MIN

/* One machine; index into the array of all. */
struct wb_turn_machine {
    bool held;
    int64_t until; /* when it is expected to be free; any unit, one for all */
};

/* One campaign that waits. Borrowed. */
struct wb_turn {
    const char *id, *user;
    int64_t priority, seq;
    int64_t last;        /* start of the user's last turn, WB_NEVER: none yet */
    int64_t since;       /* since when the user has waited for a turn */
    int64_t passed;      /* the most passes of the user by one other */
    const int *machines; /* that would do, most wanted first */
    const int *classes;  /* of each of them: equal numbers are alike */
    size_t nmachines;    /* of its pool */
    size_t want;
    int64_t takes; /* how long it is expected to hold them (for wb_turns_forecast) */
};

enum wb_turn_state {
    WB_TURN_STARTS,  /* got: its machines */
    WB_TURN_HELD,    /* machines that would do are held: by whom the caller knows */
    WB_TURN_CLAIMED, /* what is free is claimed by `behind` */
    WB_TURN_NEVER    /* the pool has too few machines of one class */
};
struct wb_turn_answer {
    size_t turn; /* index of the campaign */
    enum wb_turn_state state;
    size_t behind; /* CLAIMED: index of a campaign before it */
    int *got;      /* STARTS: want machines */
};

/* Where everybody stands now: answers in turn order, n of them (array and their `got` owned; free
 * with wb_turns_free). Only the first that starts is marked WB_TURN_STARTS; after its start the
 * order is another one. */
struct wb_turn_answer *wb_turns_look(const struct wb_turn *v, size_t n,
                                     const struct wb_turn_machine *machines, size_t nmachines);
void wb_turns_free(struct wb_turn_answer *a, size_t n);

/* When each is expected to start if everything takes as long as it is expected to: starts[i] for
 * v[i], WB_NEVER where it cannot. A forecast: priorities and turns are followed, passes are not. */
void wb_turns_forecast(const struct wb_turn *v, size_t n, const struct wb_turn_machine *machines,
                       size_t nmachines, int64_t now, int64_t *starts);

/* Whether a campaign's start on machines passes over one that waits. */
bool wb_turn_passes(const struct wb_turn *waits, const char *user, const int *got, size_t ngot);

#endif
