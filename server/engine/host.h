/*
 * What controllers agree on about a host: who uses it now (a kernel lock, freed when its holder
 * dies), whose the runs on it are (marks), and whether it can be used at all (quarantine).
 *
 * All of it is in one folder on the host, outside of every controller's own: two controllers must
 * meet there. dir is WB_HOST_DIR, or a folder of a test.
 */
#ifndef WB_ENGINE_HOST_H
#define WB_ENGINE_HOST_H

#include "server/base/cancel.h"
#include "server/base/json.h"

#define WB_HOST_DIR "/run/weighbridge"

/* How long to wait for a busy host. */
struct wb_host_wait {
    int64_t ns; /* 0: not at all */
    const struct wb_cancel *cancel;
    void (*note)(void *arg, const char *text); /* told once who is waited for; may be NULL */
    void *arg;
};

/* Takes the lock of this machine for `who`; *fd holds it until closed. WB_CONFLICT names the
 * holder, also after waiting. */
int wb_host_lock(const char *dir, const char *who, const struct wb_host_wait *wait, int *fd,
                 struct wb_err *err) WB_MUST_CHECK;

/* Whether the lock of this machine is free; WB_CONFLICT names the holder. Nothing is written, and
 * who takes it at the same moment gets it. */
int wb_host_look(const char *dir, struct wb_err *err) WB_MUST_CHECK;

/* Moves this process to the CPUs of a list, away from those that are measured. */
int wb_host_pin(const char *cpus, struct wb_err *err) WB_MUST_CHECK;

/* Marks of runs: {owner, store, campaign, run}, written before a run makes anything here, removed
 * when nothing of it is left. A control group whose processes do not tell (a program may overwrite
 * its environment) belongs to the owner of the run in its name. */
int wb_run_mark(const char *dir, const wb_json *mark, struct wb_err *err) WB_MUST_CHECK;
int wb_run_unmark(const char *dir, const char *run, struct wb_err *err) WB_MUST_CHECK;
wb_json *wb_run_marked(const char *dir, const char *run); /* owned; NULL: no such mark */
/* All of them (array, owned). */
int wb_run_marks(const char *dir, wb_json **out, struct wb_err *err) WB_MUST_CHECK;

/* Quarantine, one note per owner: {owner, store, campaign, run, since, left: [text], forms:
 * [name]}. Whoever finds one does not use the host. */
int wb_quarantine_set(const char *dir, const wb_json *note, struct wb_err *err) WB_MUST_CHECK;
int wb_quarantine_lift(const char *dir, const char *owner, struct wb_err *err) WB_MUST_CHECK;
/* The owner's note (owned), NULL when there is none. One that cannot be read is an empty object. */
wb_json *wb_quarantine_of(const char *dir, const char *owner);
/* 0 when the host is free of it, else WB_CONFLICT with what is left and the way out. */
int wb_quarantine_check(const char *dir, struct wb_err *err) WB_MUST_CHECK;

#endif
