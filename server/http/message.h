/*
 * Requests and answers as the handlers see them: whole, checked, without anything of the HTTP
 * library.
 */
#ifndef WB_HTTP_MESSAGE_H
#define WB_HTTP_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "server/base/buf.h"
#include "server/base/json.h"
#include "server/base/mem.h"
#include "server/queue/tokens.h"

#define WB_HTTP_TARGET_MAX 4096          /* bytes of path and query */
#define WB_HTTP_BODY_MAX (1u << 20)      /* bytes of a request's body */
#define WB_HTTP_ANSWER_MAX (64u << 20)   /* bytes of an answer that is held in memory */
#define WB_HTTP_SMALL_ANSWER (64u << 10) /* bytes below which an answer is always sent */
#define WB_HTTP_SEGMENTS_MAX 12
#define WB_HTTP_QUERY_MAX 64
#define WB_GZIP_TAG                                                               \
    "-gzip" /* what tells the tag of a compressed form from that of the plain one \
             */

/* The headers that anybody here reads. */
enum wb_header {
    WB_H_ACCEPT,
    WB_H_ACCEPT_ENCODING,
    WB_H_AUTHORIZATION,
    WB_H_CONTENT_TYPE,
    WB_H_COOKIE,
    WB_H_CSRF, /* X-WB-CSRF */
    WB_H_HOST,
    WB_H_IDEMPOTENCY_KEY,
    WB_H_IF_MATCH,
    WB_H_IF_NONE_MATCH,
    WB_H_IF_RANGE,
    WB_H_LAST_EVENT_ID,
    WB_H_ORIGIN,
    WB_H_RANGE,
    WB_HEADERS
};
const char *wb_header_name(enum wb_header h);

struct wb_request {
    char id[27];      /* request id, also in the answer */
    char address[48]; /* of who asks: "127.0.0.1", "::1"; "" when it is not known */
    char *method;
    char *path; /* decoded, "/api/v1/runs" */
    char *segments[WB_HTTP_SEGMENTS_MAX];
    size_t nsegments;
    struct {
        char *key, *value;
    } query[WB_HTTP_QUERY_MAX];
    size_t nquery;
    char *headers[WB_HEADERS]; /* NULL: not sent */
    struct wb_buf body;
    struct wb_token token; /* of who asks; id "" when nobody in particular */
    bool by_cookie;        /* the token came with the cookie */
    const char *args[4];   /* path parameters of the route, borrowed from segments */
};
/* Splits and decodes a request target. WB_INVALID says what is wrong with it: not absolute, a
 * broken escape, NUL or another control character, an escaped slash, an empty or dot segment, not
 * UTF-8, too many parts. */
int wb_request_target(struct wb_request *q, const char *target, struct wb_err *err) WB_MUST_CHECK;
/* The last value of a query key, or NULL. */
const char *wb_request_query(const struct wb_request *q, const char *key);
/* A number of the query in [lo, hi]. */
int wb_request_int(const struct wb_request *q, const char *key, int64_t lo, int64_t hi,
                   int64_t dflt, int64_t *out, struct wb_err *err) WB_MUST_CHECK;
/* The value of a cookie, borrowed into *n; NULL without. */
const char *wb_request_cookie(const struct wb_request *q, const char *name, size_t *n);
/* A Range of n bytes: "bytes=FROM-TO", "bytes=FROM-", "bytes=-LAST". 1: a part; 0: the whole (also
 * without one and for what is not understood, several ranges among it, as RFC 9110 allows); -1:
 * there is no such part. *from and *to, both within, are set for a part alone. */
int wb_range_read(const char *text, int64_t n, int64_t *from, int64_t *to);
void wb_request_release(struct wb_request *q);

struct wb_answer {
    int status;
    const char *type; /* Content-Type, static */
    struct wb_buf body;
    struct {
        const char *name; /* static */
        char *value;
    } headers[16];
    size_t nheaders;
    /* A part of an open file instead of a body; it is closed with the answer. */
    bool has_file;
    bool file_is_own; /* made for this answer: its disk space is free when it was sent */
    int fd;
    uint64_t file_from, file_bytes;
    /* The event stream instead of a body: what is asked for. */
    bool stream;
    struct wb_strv topics;
    int64_t last_id;
};
/* Adds a header; value is copied, line ends in it become spaces. */
void wb_answer_header(struct wb_answer *a, const char *name, const char *value);
/* Whether it is a GET or HEAD. */
bool wb_request_reads(const struct wb_request *q);
/* Adds the entity's tag; true when the client that reads has it already: the answer is 304 then. */
bool wb_answer_tag(const struct wb_request *q, struct wb_answer *a, const char *tag);
/* Whether a list of tags (If-Match, If-None-Match) names one, or is "*". weak: W/"x" counts as "x",
 * else as none. The tag of the compressed form counts as the plain one's. */
bool wb_tag_listed(const char *sent, const char *tag, bool weak);
/* 200 or another status with a JSON document, which is freed. With 200 it gets the tag of its
 * bytes, unless the answer has a tag already; a client that reads and sent that gets 304. */
void wb_answer_json(const struct wb_request *q, struct wb_answer *a, int status, wb_json *j);
/* A list: {items, next}; both taken, next may be NULL. */
void wb_answer_list(const struct wb_request *q, struct wb_answer *a, wb_json *items, char *next);
/* Whether a finished answer may give way to a refusal when memory is short: that of a write never,
 * because it was done, and a small one frees nothing. */
bool wb_answer_may_be_refused(const struct wb_request *q, const struct wb_answer *a);
void wb_answer_release(struct wb_answer *a);

/* RFC 9457. code is a word such as "not-found"; its type is "/problems/<code>". errors (array of
 * {pointer, code, message}; taken) may be NULL. */
void wb_answer_problem(const struct wb_request *q, struct wb_answer *a, int status,
                       const char *code, const char *detail, wb_json *errors);
/* The problem that fits an error of the rest of the program. */
void wb_answer_error(const struct wb_request *q, struct wb_answer *a, const struct wb_err *err);

#endif
