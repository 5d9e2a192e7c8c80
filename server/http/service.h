/*
 * The service: what its handlers share, and what each thread that runs them has of its own.
 */
#ifndef WB_HTTP_SERVICE_H
#define WB_HTTP_SERVICE_H

#include <stdatomic.h>

#include "server/http/hub.h"
#include "server/http/message.h"
#include "server/queue/dispatch.h"
#include "server/record/store.h"

struct wb_service {
    const char *store_path, *state_dir, *recipes_dir, *db_path, *web_dir; /* absolute, borrowed */
    struct wb_strv hosts; /* names that a Host header may have, lower case, without port */
    bool anonymous_read;  /* reading needs no token */
    bool secure;          /* over TLS: cookies are marked so */
    struct wb_hub *hub;
    struct wb_dispatch *dispatch;
    int64_t started_ms;
    unsigned char secret[32];                      /* of this process: signs cursors */
    atomic_int_fast64_t requests, refused, failed; /* answers in all, with 4xx, with 5xx */
};

/* Belongs to one thread of the pool. */
struct wb_context {
    struct wb_service *service;
    struct wb_store *store;
    struct wb_db *db;
};

typedef void (*wb_handler)(struct wb_context *c, struct wb_request *q, struct wb_answer *a);

enum wb_route_flag {
    WB_ROUTE_OPEN = 1,   /* no token is needed */
    WB_ROUTE_STREAM = 2, /* the event stream: its handler only checks */
    WB_ROUTE_WRITE = 4   /* goes into the audit log */
};
struct wb_route {
    const char *method, *path; /* "/api/v1/runs/{run}"; parts in braces become args in order */
    enum wb_scope scope;
    unsigned flags;
    wb_handler handle;
    const char *id, *summary; /* of the API document */
    const char *const *query; /* names of query values, NULL-ended; NULL: none */
    const char *body;         /* name of the request's schema, or NULL */
    int status;               /* of success */
};
/* server/http/routes.c: all of them, ended by a row without method. */
extern const struct wb_route wb_routes[];

/* The route of a request; fills its args. NULL after answering 404 or 405 (with Allow). HEAD is
 * GET. */
const struct wb_route *wb_route_find(struct wb_request *q, struct wb_answer *a);
/* Who asks, and may they? Answers 401 or 403 itself, then false. */
bool wb_route_allow(struct wb_context *c, const struct wb_route *r, struct wb_request *q,
                    struct wb_answer *a);
/* Everything between a complete request and its answer. */
void wb_service_answer(struct wb_context *c, struct wb_request *q, struct wb_answer *a);

/* The body as one JSON object; answers 415 or 422 itself, then NULL. An empty body is an empty
 * object. Owned. */
wb_json *wb_request_object(struct wb_request *q, struct wb_answer *a);
/* Keys of a body: refuses one that is not in the NULL-ended list (422 with its pointer). */
bool wb_request_keys(const struct wb_request *q, struct wb_answer *a, const wb_json *body,
                     const char *const *keys);

/* Cursors: the last id of a page, bound to the list's filter and signed. Caller frees. */
char *wb_cursor_make(const struct wb_service *s, const char *filter, const char *last);
/* *last is owned; WB_INVALID when it is none of this list. */
int wb_cursor_read(const struct wb_service *s, const char *filter, const char *cursor, char **last,
                   struct wb_err *err) WB_MUST_CHECK;

/* Handlers, by file. */
void wb_h_healthz(struct wb_context *c, struct wb_request *q, struct wb_answer *a); /* meta.c */
void wb_h_readyz(struct wb_context *c, struct wb_request *q, struct wb_answer *a);
void wb_h_version(struct wb_context *c, struct wb_request *q, struct wb_answer *a);
void wb_h_metrics(struct wb_context *c, struct wb_request *q, struct wb_answer *a);
void wb_h_page(struct wb_context *c, struct wb_request *q, struct wb_answer *a); /* static.c */
void wb_h_app(struct wb_context *c, struct wb_request *q, struct wb_answer *a);
void wb_h_css(struct wb_context *c, struct wb_request *q, struct wb_answer *a);
void wb_h_openapi(struct wb_context *c, struct wb_request *q, struct wb_answer *a); /* openapi.c */
void wb_h_validate(struct wb_context *c, struct wb_request *q,
                   struct wb_answer *a); /* campaigns.c */
void wb_h_campaigns(struct wb_context *c, struct wb_request *q, struct wb_answer *a);
void wb_h_campaign_post(struct wb_context *c, struct wb_request *q, struct wb_answer *a);
void wb_h_campaign(struct wb_context *c, struct wb_request *q, struct wb_answer *a);
void wb_h_campaign_cancel(struct wb_context *c, struct wb_request *q, struct wb_answer *a);
void wb_h_campaign_rerun(struct wb_context *c, struct wb_request *q, struct wb_answer *a);
void wb_h_campaign_report(struct wb_context *c, struct wb_request *q, struct wb_answer *a);
void wb_h_queue(struct wb_context *c, struct wb_request *q, struct wb_answer *a);
void wb_h_runs(struct wb_context *c, struct wb_request *q, struct wb_answer *a); /* runs.c */
void wb_h_run(struct wb_context *c, struct wb_request *q, struct wb_answer *a);
void wb_h_run_document(struct wb_context *c, struct wb_request *q, struct wb_answer *a);
void wb_h_run_artifacts(struct wb_context *c, struct wb_request *q, struct wb_answer *a);
void wb_h_run_artifact(struct wb_context *c, struct wb_request *q, struct wb_answer *a);
void wb_h_recipes(struct wb_context *c, struct wb_request *q, struct wb_answer *a); /* recipes.c */
void wb_h_recipe(struct wb_context *c, struct wb_request *q, struct wb_answer *a);
void wb_h_whoami(struct wb_context *c, struct wb_request *q, struct wb_answer *a); /* access.c */
void wb_h_session_post(struct wb_context *c, struct wb_request *q, struct wb_answer *a);
void wb_h_session_delete(struct wb_context *c, struct wb_request *q, struct wb_answer *a);
void wb_h_tokens(struct wb_context *c, struct wb_request *q, struct wb_answer *a);
void wb_h_token_post(struct wb_context *c, struct wb_request *q, struct wb_answer *a);
void wb_h_token_delete(struct wb_context *c, struct wb_request *q, struct wb_answer *a);
void wb_h_audit(struct wb_context *c, struct wb_request *q, struct wb_answer *a);
void wb_h_events(struct wb_context *c, struct wb_request *q, struct wb_answer *a); /* routes.c */

#endif
