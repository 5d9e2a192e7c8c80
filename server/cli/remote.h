/*
 * The command line as client of a service: one connection, its token, and how its answers become
 * results, errors and exit codes.
 *
 * The token comes from --token-file, else WB_TOKEN, else the file of the settings; it is
 * sent to the named server alone (redirects are not followed) and shown nowhere. A server that only
 * a project's file names gets the one of --token-file or none.
 */
#ifndef WB_CLI_REMOTE_H
#define WB_CLI_REMOTE_H

#include "server/base/cancel.h"
#include "server/base/problems.h"
#include "server/base/rest.h"
#include "server/cli/cli.h"

struct wb_remote;

/* WB_INVALID: the server is no http(s) address, or the token's file is none that may be used. */
int wb_remote_open(const struct wb_cli *cli, struct wb_remote **out,
                   struct wb_err *err) WB_MUST_CHECK;
void wb_remote_free(struct wb_remote *r); /* NULL is fine */
const char *wb_remote_url(const struct wb_remote *r);
/* Ctrl-C then ends what waits. */
int wb_remote_catch(struct wb_remote *r, struct wb_err *err) WB_MUST_CHECK;
const struct wb_cancel *wb_remote_cancel(const struct wb_remote *r);

struct wb_remote_call {
    const char *method, *path; /* "GET", "/api/v1/runs" */
    const wb_json *body;       /* or text below; NULL: none */
    const char *text;
    const char *key;      /* Idempotency-Key: the call may be repeated when its answer is lost */
    const char *range;    /* value of a Range header, or NULL */
    const char *if_match; /* value of that header, or NULL */
    size_t answer_max;    /* bytes; 0: 64 MiB */
};
/* One request, repeated for a while where that is harmless: connection lost, 429, 503. 2xx: body is
 * what came (released by the caller). Everything else is an error whose text has the server's
 * words, with `wb_remote_fail` and `wb_remote_problem` for more. */
int wb_remote_send(struct wb_remote *r, const struct wb_remote_call *c, struct wb_buf *body,
                   struct wb_err *err) WB_MUST_CHECK;
/* The same for an answer that is one JSON document (owned). */
int wb_remote_ask(struct wb_remote *r, const struct wb_remote_call *c, wb_json **out,
                  struct wb_err *err) WB_MUST_CHECK;
/* GET of wb_strf(path...). */
int wb_remote_get(struct wb_remote *r, wb_json **out, struct wb_err *err, const char *path, ...)
    WB_PRINTF(4, 5) WB_MUST_CHECK;

/* The problem document of the last failure (borrowed), NULL when it was another one; r may be NULL.
 */
const wb_json *wb_remote_problem(const struct wb_remote *r);
/* Reports an error of this client and gives its exit code; r may be NULL. */
int wb_remote_fail(const struct wb_cli *cli, const struct wb_remote *r, const struct wb_err *err);
/* Problems of a study that the server found, with the lines of the text that was sent. */
void wb_remote_study_problems(const wb_json *problem, const char *text, struct wb_problems *p);

/* ---- events ---- */

/* One event of the stream; 1 ends it, negative fails it. data is borrowed, NULL: no JSON. */
typedef int (*wb_remote_event_fn)(void *arg, const char *type, const wb_json *data,
                                  struct wb_err *err);
/* Follows topics ("topic=queue&topic=...") until `event` says so or Ctrl-C, over lost connections
 * and restarts of the server: `patience_ns` of them without a break. `again` is called once a
 * stream has begun, before its first event: what it asks for then and what the stream tells leave
 * no gap between them. Both may send requests. */
struct wb_remote_follow {
    const char *topics;
    wb_remote_event_fn event;
    int (*again)(void *arg, struct wb_err *err); /* as event */
    void *arg;
    int64_t patience_ns;
};
int wb_remote_events(struct wb_remote *r, const struct wb_remote_follow *f,
                     struct wb_err *err) WB_MUST_CHECK;

/* The reader of such a stream, for it alone: text/event-stream in parts of any size. */
struct wb_sse {
    struct wb_buf line, data;
    char type[64], id[32];
    bool cr;
};
#define WB_SSE_MAX (1u << 20) /* bytes of one line and of the data of one event */
void wb_sse_init(struct wb_sse *s);
void wb_sse_release(struct wb_sse *s);
/* Feeds bytes; each whole event goes to fn (its value ends the feeding and is returned). WB_LIMIT
 * for an event that has no end. */
int wb_sse_feed(struct wb_sse *s, const char *bytes, size_t n, wb_remote_event_fn fn, void *arg,
                struct wb_err *err) WB_MUST_CHECK;

#endif
