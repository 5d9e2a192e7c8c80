/*
 * The Docker Engine API over its Unix socket: version, calls, errors. What is asked is in
 * docker_image.c and docker_container.c.
 *
 * API reference: https://docs.docker.com/reference/api/engine/
 */
#ifndef WB_FORMS_DOCKER_API_H
#define WB_FORMS_DOCKER_API_H

#include <stdint.h>

#include "server/base/cancel.h"
#include "server/base/err.h"
#include "server/base/json.h"
#include "server/base/rest.h"

#define WB_ENGINE_SOCKET "/var/run/docker.sock" /* when none is named */
#define WB_ENGINE_API_OLDEST "1.40"
#define WB_ENGINE_API_NEWEST "1.47"

struct wb_engine {
    struct wb_rest *rest;
    char *socket;
    char api[16];      /* version that is spoken: "1.41" */
    char api_most[16]; /* newest that the engine offers */
    char server[64];   /* its Server header: "Docker/20.10.24 (linux)" */
};

/* Connects and agrees on a version. socket NULL: WB_ENGINE_SOCKET. WB_UNAVAILABLE when nobody
 * answers, with the way out. *out is freed with wb_engine_close. */
int wb_engine_open(const char *socket, struct wb_engine **out, struct wb_err *err) WB_MUST_CHECK;
void wb_engine_close(struct wb_engine *e); /* NULL is fine */
void wb_auto_engine(struct wb_engine **e);
#define WB_AUTO_ENGINE __attribute__((cleanup(wb_auto_engine)))

struct wb_engine_call {
    const char *method; /* NULL: GET */
    const char *path;   /* without version: "/containers/json?all=1", percent-encoded */
    const wb_json *body;
    const char *content_type; /* of a streamed body */
    wb_rest_read_fn read;
    void *read_arg;
    wb_rest_data_fn data; /* streamed answer */
    void *data_arg;
    int64_t limit_ns; /* 0: one minute */
    const struct wb_cancel *cancel;
};

/* Does a call. 2xx and 304 are success; *out (may be NULL) becomes the answer parsed, NULL when it
 * has no body. An error status becomes the engine's own text and a code by wb_engine_classify. */
int wb_engine_do(struct wb_engine *e, const struct wb_engine_call *call, wb_json **out,
                 struct wb_err *err) WB_MUST_CHECK;
/* GET of a path. */
int wb_engine_get(struct wb_engine *e, const char *path, wb_json **out,
                  struct wb_err *err) WB_MUST_CHECK;

/* The code of an error answer. The engine's statuses are not clean (500 for a missing program, a
 * full disk, a lost containerd), so the text counts first. */
enum wb_code wb_engine_classify(int status, const char *message);
/* min(server, ours) as text in out, or WB_UNSUPPORTED. */
int wb_engine_negotiate(const char *server, char out[16], struct wb_err *err) WB_MUST_CHECK;

/* Appends "?filters={"label":[...]}" (or '&') of NULL-ended labels, "key=value" or "key". */
void wb_engine_add_labels(struct wb_buf *path, const char *const *labels);

#endif
