/*
 * What is on this host because of us, seen by looking and not by reading the ledger: owned
 * things of every form, processes with our mark, listening TCP ports, mounts below our folders.
 */
#ifndef WB_ENGINE_LEFTOVERS_H
#define WB_ENGINE_LEFTOVERS_H

#include "provisioners/forms/form.h"

/* Fills in whose a found thing is from the marks of runs on this host, where it does not say
 * itself. What stays without an owner is nobody's: an empty group. */
void wb_owned_complete(struct wb_owned *o);

/* A process that carries a mark. */
struct wb_marked {
    pid_t pid;
    uint64_t ticks;
    char *campaign, *run; /* owned; "" when the mark does not say */
};
/* Processes whose environment carries the owner's mark; free with wb_marked_free. */
int wb_marked_processes(const char *owner, struct wb_marked **out, size_t *n,
                        struct wb_err *err) WB_MUST_CHECK;
void wb_marked_free(struct wb_marked *v, size_t n);
/* Mount points below a folder, the deepest first. */
int wb_mounts_below(const char *below, struct wb_strv *out, struct wb_err *err) WB_MUST_CHECK;

/* A sorted array of texts such as "container wb-run_x-db0", "port 16379", "process 12 run_x",
 * "mount /...". Owned. Forms that cannot be asked (no container engine) are left out unless
 * `must` names them. Looks only at our own marks (env->owner), ports at all. below NULL: no mounts.
 */
int wb_host_snapshot(const struct wb_form_env *env, const struct wb_form_ops *must,
                     const char *below, wb_json **out, struct wb_err *err) WB_MUST_CHECK;
/* Entries of `after` that `before` does not have (array, owned). Ports that others opened
 * meanwhile are left out: only `ports` (NULL-ended "port N" texts) count. */
wb_json *wb_snapshot_new(const wb_json *before, const wb_json *after, char *const *ports);

/* Whether a TCP port has a listener on this host (both families, /proc/net/tcp and tcp6). */
int wb_port_listening(int port, bool *yes, struct wb_err *err) WB_MUST_CHECK;

#endif
