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
    int64_t wait_ns;     /* for a host that is busy; 0: refused at once */
    bool resume;         /* go on with the campaign of the plan, see resume.h */
    bool accept_changes; /* resume although programs are others than before: labelled */
};

struct wb_engine_result {
    enum wb_outcome worst;         /* the worst outcome of any run */
    size_t planned, done, counted; /* runs: in the plan, recorded, usable by statistics; those of
                                      finished rounds before a resume are among them */
    bool incomplete;               /* something could not be removed: the host needs `clean` */
};

/* An interrupted round is repeated whole; this many attempts in all. */
#define WB_ATTEMPTS_MAX 2

/* Runs the whole campaign. Failed runs are results, not errors; an error means that the campaign
 * could not go on (a cancel is WB_CANCELLED after everything was cleaned up and recorded).
 * What dead engines of the same owner left on the host is cleaned up first, and said; a host in
 * quarantine, or with living leftovers of another owner, is refused.
 * result is filled also on error. */
int wb_engine_run(const struct wb_engine_spec *spec, struct wb_engine_result *result,
                  struct wb_err *err) WB_MUST_CHECK;

/* Makes the folder of a campaign that will be run later, with `resume`, by a process of its own:
 * state "queued", nothing touched on the host. */
int wb_engine_enqueue(const struct wb_plan *plan, const struct wb_store *store,
                      const char *state_dir, struct wb_err *err) WB_MUST_CHECK;

struct wb_clean_spec {
    struct wb_store
        *store; /* takes the records of interrupted attempts; NULL with an owner: none */
    const char *state_dir;
    const char *docker_socket;
    const char *owner; /* NULL: the store's controller. Another one: only the host is cleaned, its
                          attempts stay in its own state */
    const struct wb_cancel *cancel;
    int64_t wait_ns; /* for a host that is busy */
    bool caches;     /* also what is kept between campaigns to save time, see prune.h */
};
/* What clean did. */
struct wb_clean_report {
    size_t campaigns, runs, things; /* interrupted campaigns closed, attempts recorded, things
                                       removed */
    wb_json *left;                  /* array of {kind, id, why} that could not be removed; owned */
    wb_json *notes;                 /* array of texts: what was seen and not touched; owned */
    wb_json *pruned;                /* array of {kind, id}: caches that were removed; owned */
};
/* Removes whatever earlier engines of this owner left on this host: by their ledgers and by
 * looking at the kernel and the container engine. Interrupted attempts become records. Campaigns
 * whose engine lives, and things of other owners, are left alone. docker may be absent: then
 * only what is not a container is looked at, unless a ledger or a quarantine names the form.
 * Nothing left: the owner's quarantine of this host ends; something left: it begins. */
int wb_engine_clean(const struct wb_clean_spec *spec, struct wb_clean_report *report,
                    struct wb_err *err) WB_MUST_CHECK;
void wb_clean_report_release(struct wb_clean_report *r);

#endif
