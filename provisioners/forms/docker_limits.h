/*
 * Resource limits (setrlimit) of containers: those that a native instance inherits from this
 * process, clamped to what the engine may give. Without them a container starts with whatever the
 * engine was started with, and a wish above that makes its start fail.
 */
#ifndef WB_FORMS_DOCKER_LIMITS_H
#define WB_FORMS_DOCKER_LIMITS_H

#include <stdint.h>
#include <sys/resource.h>

#include "server/base/json.h"

/* Ulimits of a create call; owned by the caller. NULL when the engine behind the socket cannot be
 * looked at, for it is in another process namespace: then its defaults hold. */
wb_json *wb_docker_ulimits(const char *socket);

/* The hard limit called `name` in the text of /proc/PID/limits: -1 unlimited, -2 not there. */
int64_t wb_hard_limit(const char *text, const char *name);
/* A limit of ours (RLIM_INFINITY: none) where at most `most` (-1: any) can be had; -1 unlimited. */
int64_t wb_limit_clamped(rlim_t own, int64_t most);

#endif
