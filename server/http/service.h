/*
 * The service: what its handlers share, and what each thread that runs them has of its own.
 */
#ifndef WB_HTTP_SERVICE_H
#define WB_HTTP_SERVICE_H

#include <stdatomic.h>

#include "server/http/hub.h"
#include "server/http/limit.h"
#include "server/http/message.h"
#include "server/http/shape.h"
#include "server/queue/dispatch.h"
#include "server/record/store.h"

struct wb_service {
    const char *store_path, *state_dir, *recipes_dir, *db_path, *web_dir; /* absolute, borrowed */
    const struct wb_host_pools *pools; /* where campaigns run, borrowed */
    struct wb_strv hosts; /* names that a Host header may have, lower case, without port */
    bool anonymous_read;  /* reading needs no token */
    bool secure;          /* over TLS: cookies are marked so */
    struct wb_hub *hub;
    struct wb_dispatch *dispatch;
    struct wb_limiter *limiter;
    int64_t started_ms;
    unsigned char secret[32];                      /* of this process: signs cursors */
    atomic_int_fast64_t exports, findings;         /* that are being made */
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
    WB_ROUTE_OPEN = 1,      /* no token is needed */
    WB_ROUTE_STREAM = 2,    /* the event stream: its handler only checks */
    WB_ROUTE_WRITE = 4,     /* goes into the audit log */
    WB_ROUTE_LIST = 8,      /* the answer is {items, next}, items being of the form `answer` */
    WB_ROUTE_KEY = 16,      /* honours Idempotency-Key */
    WB_ROUTE_MATCH = 32,    /* needs If-Match (wb_request_match) */
    WB_ROUTE_RANGE = 64,    /* answers a Range with 206 or 416 */
    WB_ROUTE_NO_BODY = 128, /* the body may be left out */
    WB_ROUTE_ANY_TYPE = 256 /* the answer's type depends on what is asked for */
};
#define WB_ROUTE_ALSO_MAX 6
struct wb_route {
    const char *method, *path; /* "/api/v1/runs/{run}"; parts in braces become args in order */
    enum wb_scope scope;
    unsigned flags;
    wb_handler handle;
    const char *id, *summary;      /* of the API document */
    const struct wb_shape *query;  /* rows of the query values that it knows; NULL: none */
    const struct wb_form *body;    /* what is sent; NULL: nothing is */
    const struct wb_form *answer;  /* what comes back as JSON; NULL: nothing, or another type */
    const char *type;              /* the answer's type when it is not JSON */
    int status;                    /* of success */
    short also[WB_ROUTE_ALSO_MAX]; /* other statuses that cannot be told from the rest of the row */
};
/* One table for each file of handlers, ended by a row without method. A new file adds its table to
 * the list in routes.c and here; nothing else knows of it. */
extern const struct wb_route wb_routes_meta[], wb_routes_static[], wb_routes_openapi[],
    wb_routes_campaigns[], wb_routes_runs[], wb_routes_exports[], wb_routes_registry[],
    wb_routes_recipes[], wb_routes_access[], wb_routes_events[], wb_routes_analyses[],
    wb_routes_histories[], wb_routes_notes[], wb_routes_trail[], wb_routes_queue[],
    wb_routes_documents[];
/* All of them, NULL-ended. */
extern const struct wb_route *const wb_route_tables[];

/* Rows that many lists share. */
#define WB_QUERY_PAGE                                                                           \
    {"limit", WB_S_INT, .min = 1, .max = 500, .help = "Most items of a page; 50 unless given"}, \
    {                                                                                           \
        "cursor", WB_S_TEXT, .min = 1, .max = 400, .help = "`next` of the page before"          \
    }

/* The route of a request; fills its args. NULL after answering 404 or 405 (with Allow). HEAD is
 * GET. */
const struct wb_route *wb_route_find(struct wb_request *q, struct wb_answer *a);
/* Who asks, and may they? Answers 401 or 403 itself, then false. */
bool wb_route_allow(struct wb_context *c, const struct wb_route *r, struct wb_request *q,
                    struct wb_answer *a);
/* Whether a text is a token. Counts failed tries of an address; answers 401, 429 or what else went
 * wrong itself, then negative. */
int wb_token_try(struct wb_context *c, const struct wb_request *q, struct wb_answer *a,
                 const char *text, struct wb_token *out) WB_MUST_CHECK;
/* Everything between a complete request and its answer. */
void wb_service_answer(struct wb_context *c, struct wb_request *q, struct wb_answer *a);

/* The body as one JSON object that the form allows; answers 400, 415 or 422 itself, then NULL. An
 * empty body is an empty object. Owned. */
wb_json *wb_request_object(struct wb_request *q, struct wb_answer *a, const struct wb_form *form);
/* Whether If-Match names the tag that the resource has now (quoted, as in ETag). Answers 428 or 412
 * itself, then false. */
bool wb_request_match(const struct wb_request *q, struct wb_answer *a, const char *tag);
/* Checks the query by rows (NULL: none is allowed); answers 400 itself, then false. */
bool wb_request_query_check(const struct wb_request *q, struct wb_answer *a,
                            const struct wb_shape *rows);

/* recipes.c: a recipe of this server; NULL when there is none of that name, or none that can be
 * read. Free with wb_recipe_free. */
struct wb_recipe;
struct wb_recipe *wb_recipe_offered(const struct wb_service *s, const char *name);

/* Cursors: the last id of a page, bound to the list's filter and signed. Caller frees. */
char *wb_cursor_make(const struct wb_service *s, const char *filter, const char *last);
/* *last is owned; WB_INVALID when it is none of this list. */
int wb_cursor_read(const struct wb_service *s, const char *filter, const char *cursor, char **last,
                   struct wb_err *err) WB_MUST_CHECK;

#endif
