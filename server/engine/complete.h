/*
 * Whether a cluster is complete by its nodes' own word: every node there and well, several answers
 * in a row. One good answer is not enough: a node that flaps is well in between.
 */
#ifndef WB_ENGINE_COMPLETE_H
#define WB_ENGINE_COMPLETE_H

#include "server/base/buf.h"
#include "server/base/json.h"

/* Good answers in a row that make a cluster complete. */
#define WB_COMPLETE_ANSWERS 3

struct wb_complete {
    int nodes;    /* how many there must be */
    int good;     /* good answers since the last bad one */
    wb_json *bad; /* the nodes of the last answer that was not good, or NULL */
};

void wb_complete_init(struct wb_complete *c, int nodes);
void wb_complete_release(struct wb_complete *c);

/* Takes an answer: {address: state}, where "UN" (up, normal) is well and everything else is not;
 * NULL or another type is an answer without any node. True once the cluster is complete. */
bool wb_complete_add(struct wb_complete *c, const wb_json *nodes);

/* Why the last bad answer was bad: "10.0.0.13 is DN, 10.0.0.12 is UJ; 3 of 4 nodes are there".
 * Nothing is added when there was none. */
void wb_complete_why(const struct wb_complete *c, struct wb_buf *out);

#endif
