/*
 * A campaign's folder: the engine's only truth beside git.
 *
 *     lock            held (flock) while an engine lives; names it
 *     state.json      state_version, state, clean, store, owner, calibration, ...
 *     study.json      the resolved study
 *     plan.json       the plan
 *     events.ndjson   everything that happened
 *     ledger.ndjson   outside things, written before they are made
 *     reserve         disk space to be given up when there is none left
 *     runs/RUN/       run.json and working files of a run; removed once it is recorded and clean
 *
 * state: queued (made to be run later), running, then finished, failed, cancelled or incomplete
 * (something could not be removed); interrupted once somebody cleaned up after a dead engine.
 * "clean" is true when nothing of it can be left.
 */
#ifndef WB_ENGINE_CAMPAIGN_H
#define WB_ENGINE_CAMPAIGN_H

#include <sys/types.h>

#include "server/base/json.h"
#include "server/base/mem.h"

#define WB_STATE_VERSION 1

struct wb_campaign_dir;

/* Called for each event: {t, type, ...}. Borrowed; valid during the call. */
typedef void (*wb_event_fn)(void *arg, const wb_json *event);

/* Makes the folder of a new campaign and takes its lock. study and plan are written as they are. */
int wb_campaign_create(const char *state_dir, const char *id, const wb_json *study,
                       const wb_json *plan, const wb_json *state, struct wb_campaign_dir **out,
                       struct wb_err *err) WB_MUST_CHECK;
/* Opens an existing one; WB_CONFLICT while another engine holds it. A state that cannot be read any
 * more (a damaged disk) is put aside and counts as an engine's that was killed. */
int wb_campaign_open(const char *state_dir, const char *id, struct wb_campaign_dir **out,
                     struct wb_err *err) WB_MUST_CHECK;
void wb_campaign_close(struct wb_campaign_dir *c);
/* Who holds a campaign's lock. */
struct wb_campaign_holder {
    bool held;
    pid_t pid; /* 0 when it cannot be told; else with start ticks and boot, see wb_process_is */
    uint64_t ticks;
    char boot[37];
};
int wb_campaign_look(const char *state_dir, const char *id, struct wb_campaign_holder *out,
                     struct wb_err *err) WB_MUST_CHECK;
/* Ids of all campaign folders. */
int wb_campaign_list(const char *state_dir, struct wb_strv *out, struct wb_err *err) WB_MUST_CHECK;

const char *wb_campaign_id(const struct wb_campaign_dir *c);
const char *wb_campaign_path(const struct wb_campaign_dir *c);
char *wb_campaign_run_dir(const struct wb_campaign_dir *c, const char *run); /* caller frees */
wb_json *wb_campaign_state(const struct wb_campaign_dir *c); /* borrowed, may be changed, then: */
int wb_campaign_save_state(struct wb_campaign_dir *c, struct wb_err *err) WB_MUST_CHECK;
/* Sets and saves. */
int wb_campaign_set_state(struct wb_campaign_dir *c, const char *state, bool clean,
                          struct wb_err *err) WB_MUST_CHECK;
/* Disk space is reserved while a campaign runs. Giving it back lets the little be written that must
 * be, also on a full disk. */
int wb_campaign_keep_reserve(const struct wb_campaign_dir *c, struct wb_err *err) WB_MUST_CHECK;
void wb_campaign_spend_reserve(struct wb_campaign_dir *c);
/* The folder's study.json and plan.json. */
int wb_campaign_read(const struct wb_campaign_dir *c, wb_json **study, wb_json **plan,
                     struct wb_err *err) WB_MUST_CHECK;
int wb_campaign_write(const struct wb_campaign_dir *c, const wb_json *study, const wb_json *plan,
                      struct wb_err *err) WB_MUST_CHECK;

/* Who hears of events. */
void wb_campaign_listen(struct wb_campaign_dir *c, wb_event_fn fn, void *arg);
/* Adds an event: stamps it, appends it to events.ndjson (not synced: the ledger is what must last),
 * keeps it for the record of the current run, tells the listener. Takes fields (object or NULL). */
void wb_campaign_event(struct wb_campaign_dir *c, const char *type, wb_json *fields);
/* Tells only the listener (live figures). Takes fields. */
void wb_campaign_tell(struct wb_campaign_dir *c, const char *type, wb_json *fields);
/* The events since the last call (array, owned): those of one run, for its record. */
wb_json *wb_campaign_take_events(struct wb_campaign_dir *c);
/* The events of one run as the file has them (array, owned; empty when it cannot be read). */
wb_json *wb_campaign_events_of(const struct wb_campaign_dir *c, const char *run);

/* Ledger: written and synced before an outside thing is made, crossed out when it is gone. */
struct wb_ledger_entry {
    char *kind; /* form name, or "load" */
    char *name; /* container or control group */
    char *dir;  /* instance or job folder */
    char *run;
};
int wb_ledger_make(struct wb_campaign_dir *c, const struct wb_ledger_entry *e,
                   struct wb_err *err) WB_MUST_CHECK;
int wb_ledger_gone(struct wb_campaign_dir *c, const char *name, struct wb_err *err) WB_MUST_CHECK;
/* Entries that were not crossed out. Free with wb_ledger_free. A torn last line is ignored. */
int wb_ledger_open_entries(struct wb_campaign_dir *c, struct wb_ledger_entry **out, size_t *n,
                           struct wb_err *err) WB_MUST_CHECK;
void wb_ledger_free(struct wb_ledger_entry *e, size_t n);

#endif
