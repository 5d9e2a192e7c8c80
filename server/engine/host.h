/*
 * One controller on a host at a time: a kernel lock, freed when its holder dies.
 */
#ifndef WB_ENGINE_HOST_H
#define WB_ENGINE_HOST_H

#include "server/base/err.h"

/* Takes the lock of this machine for `who`; *fd holds it until closed. WB_CONFLICT names the
 * holder. */
int wb_host_lock(const char *who, int *fd, struct wb_err *err) WB_MUST_CHECK;

/* Moves this process to the CPUs of a list, away from those that are measured. */
int wb_host_pin(const char *cpus, struct wb_err *err) WB_MUST_CHECK;

#endif
