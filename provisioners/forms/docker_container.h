/*
 * Containers of the docker form. All of ours have labels wb.owner, wb.campaign and wb.run; none
 * without our wb.owner is ever stopped or removed, whatever its name.
 */
#ifndef WB_FORMS_DOCKER_CONTAINER_H
#define WB_FORMS_DOCKER_CONTAINER_H

#include "provisioners/forms/docker_api.h"
#include "provisioners/forms/form.h"

struct wb_container {
    char *id, *owner, *campaign, *run, *image; /* owned; owner, campaign, run NULL without label */
    bool running, tty, oom_killed;
    bool started; /* false: created only */
    int exit_code;
    pid_t pid;
    char *network; /* its network mode: "host", or a network's name */
    char *address; /* on its first network; "" without */
    char *error;   /* the engine's reason why it did not start, "" without */
};

/* What the engine says of a container by name or id. Absent: WB_NOT_FOUND. */
int wb_container_inspect(struct wb_engine *e, const char *name, struct wb_container *out,
                         struct wb_err *err) WB_MUST_CHECK;
void wb_container_release(struct wb_container *c);
/* It has our owner label. */
bool wb_container_ours(const struct wb_container *c, const char *owner);

/* Creates and starts one. A container of ours that holds the name (same run, or not running) is
 * removed first; any other is WB_CONFLICT and stays. Nothing is left after a failure. */
int wb_container_start(struct wb_engine *e, const struct wb_form_env *env, const char *name,
                       const struct wb_instance_spec *spec, struct wb_err *err) WB_MUST_CHECK;
/* SIGTERM, then SIGKILL after grace_ns (whole seconds, rounded up). Stopped or absent: 0. */
int wb_container_stop(struct wb_engine *e, const char *id, int64_t grace_ns,
                      struct wb_err *err) WB_MUST_CHECK;
/* Kills, removes with its anonymous volumes, and waits until the engine knows it no more. */
int wb_container_remove(struct wb_engine *e, const char *id, struct wb_err *err) WB_MUST_CHECK;
/* The last max bytes of both output streams in the order they were written; a stream that was cut
 * off ends with a line that says so. */
int wb_container_logs(struct wb_engine *e, const struct wb_container *c, size_t max,
                      struct wb_buf *out, struct wb_err *err) WB_MUST_CHECK;
/* The body of the create call; exported for tests. Owned by the caller. */
wb_json *wb_container_body(const struct wb_form_env *env, const struct wb_instance_spec *spec);

#endif
