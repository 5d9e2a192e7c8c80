/*
 * The campaign engine: plan -> runs. One process per campaign, one thread; everything it waits
 * for goes through wb_wait with the cancel token.
 */
#ifndef WB_ENGINE_ENGINE_H
#define WB_ENGINE_ENGINE_H

#include "server/engine/campaign.h"
#include "server/engine/outcome.h"
#include "server/record/store.h"
#include "server/study/plan.h"

struct wb_engine_spec {
    const struct wb_plan *plan;
    struct wb_store *store;
    const char *state_dir;     /* absolute: campaigns, caches, prefixes */
    const char *load_program;  /* absolute path of wb-load */
    const char *docker_socket; /* absolute path */
    const struct wb_cancel *cancel;
    wb_event_fn listener; /* may be NULL */
    void *listener_arg;
};

struct wb_engine_result {
    enum wb_outcome worst;         /* the worst outcome of any run */
    size_t planned, done, counted; /* runs: in the plan, recorded, usable by statistics */
    bool incomplete;               /* something could not be removed: the host needs `clean` */
};

/* Runs the whole campaign. Failed runs are results, not errors; an error means that the campaign
 * could not go on (a cancel is WB_CANCELLED after everything was cleaned up and recorded).
 * result is filled also on error. */
int wb_engine_run(const struct wb_engine_spec *spec, struct wb_engine_result *result,
                  struct wb_err *err) WB_MUST_CHECK;

/* What clean did. */
struct wb_clean_report {
    size_t campaigns, runs,
        things;    /* interrupted campaigns closed, runs recorded, things removed */
    wb_json *left; /* array of {kind, id, why} that could not be removed; owned */
};
/* Removes whatever earlier engines of this owner left on this host: by their ledgers and by
 * looking at the kernel and the container engine. Interrupted attempts become records. Campaigns
 * whose engine lives, and things of other owners, are left alone. docker may be absent: then
 * only what is not a container is looked at, unless a ledger names one. */
int wb_engine_clean(struct wb_store *store, const char *state_dir, const char *docker_socket,
                    const struct wb_cancel *cancel, struct wb_clean_report *report,
                    struct wb_err *err) WB_MUST_CHECK;

#endif
