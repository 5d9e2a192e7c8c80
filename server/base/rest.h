/*
 * HTTP client (libcurl behind it; no other file includes its headers).
 *
 * One wb_rest is one server: its connection is kept and used again. A request has a deadline, a
 * bound on the answer and a cancel token. Redirects are not followed, so that nothing is ever
 * sent to a host that was not named; only http and https are spoken. One thread at a time.
 */
#ifndef WB_BASE_REST_H
#define WB_BASE_REST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/base/buf.h"
#include "server/base/cancel.h"
#include "server/base/err.h"

#define WB_REST_ANSWER_MAX (8u << 20) /* bytes of an answer's body unless the request says less */

struct wb_rest;

struct wb_rest_options {
    const char *base; /* "http://127.0.0.1:8080"; with a socket only its Host header counts */
    const char *unix_socket; /* path; NULL: TCP */
    int64_t connect_ns;      /* limit for connecting; 0: 10 s */
    const char *ca_file;     /* PEM: who may sign the server's certificate; NULL: the system's */
    bool direct;             /* no proxy, whatever the environment names */
};

int wb_rest_open(const struct wb_rest_options *options, struct wb_rest **out,
                 struct wb_err *err) WB_MUST_CHECK;
void wb_rest_free(struct wb_rest *r); /* NULL is fine */

/* Gives up to n bytes of an upload: > 0 bytes written to buf, 0 at the end, < 0 after setting err
 * (the request then fails with it). */
typedef int64_t (*wb_rest_read_fn)(void *arg, void *buf, size_t n, struct wb_err *err);
/* Takes a part of a 2xx answer as it arrives. < 0 after setting err ends the request with it. */
typedef int (*wb_rest_data_fn)(void *arg, const void *data, size_t n, struct wb_err *err);

struct wb_rest_request {
    const char *method;        /* "GET"; NULL: GET */
    const char *path;          /* with query, starts with '/' */
    const char *const *header; /* "Name: value" lines, NULL-ended; may be NULL */
    const char *content_type;  /* of the body; NULL: application/json when there is one */
    const void *body;
    size_t body_len;
    wb_rest_read_fn read; /* streamed body, sent chunked, instead of `body` */
    void *read_arg;
    wb_rest_data_fn data; /* streamed answer instead of answer.body; other statuses go to body */
    void *data_arg;
    size_t answer_max; /* 0: WB_REST_ANSWER_MAX; a longer body is WB_LIMIT. Not for `data` */
    int64_t limit_ns;  /* for all of it; must be > 0 */
    const struct wb_cancel *cancel;
    const char *want; /* name of an answer header whose value is asked for; may be NULL */
};

struct wb_rest_answer {
    int status;
    struct wb_buf body;
    char content_type[64]; /* "" when the server named none */
    char wanted[64];       /* value of the header `want`, "" when absent or longer */
};

/* Does one request. An HTTP error status is not an error here. WB_UNAVAILABLE: nobody answers
 * there, or the connection was lost before the answer began; WB_PROTOCOL: not HTTP, or the answer
 * was cut off; WB_TIMEOUT, WB_CANCELLED, WB_LIMIT as they say. Release the answer always. */
int wb_rest_do(struct wb_rest *r, const struct wb_rest_request *request,
               struct wb_rest_answer *answer, struct wb_err *err) WB_MUST_CHECK;
void wb_rest_answer_release(struct wb_rest_answer *a);

/* Appends "?key=value" or "&key=value", percent-encoded. */
void wb_rest_add_query(struct wb_buf *path, const char *key, const char *value);
/* Appends text percent-encoded so that it is one path segment or query value. */
void wb_rest_escape(struct wb_buf *out, const char *text);

#endif
