/*
 * How often somebody may ask: a bucket for each token (each address without one), and one for the
 * failed logins of each address. A bucket holds as many requests as a minute allows and fills
 * evenly. Any thread. Memory is bounded: the bucket that was used the longest ago makes room for a
 * new one, and a new one is full.
 */
#ifndef WB_HTTP_LIMIT_H
#define WB_HTTP_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct wb_limiter;

#define WB_LIMIT_REQUESTS 6000 /* a minute, unless told otherwise */
#define WB_LIMIT_FAILURES 20   /* failed logins of an address a minute */

/* requests: a minute; 0: no limits at all. */
struct wb_limiter *wb_limiter_new(int64_t requests);
void wb_limiter_free(struct wb_limiter *l);

struct wb_limit_state {
    int64_t most, left; /* of a minute; most 0: there is no limit */
    int64_t wait_s;     /* until the next is allowed, at least 1; full: until it is full again */
};
/* Takes one request of a token id or an address. False: too many, s->wait_s says when again. */
bool wb_limiter_take(struct wb_limiter *l, const char *who, int64_t now_ns,
                     struct wb_limit_state *s);
/* May this address try to log in with this token id (the part that is no secret)? One that has
 * succeeded from there within the hour may whatever others of the address do. */
bool wb_limiter_may_try(struct wb_limiter *l, const char *address, const char *token_id,
                        int64_t now_ns, struct wb_limit_state *s);
void wb_limiter_failed(struct wb_limiter *l, const char *address, int64_t now_ns);
void wb_limiter_succeeded(struct wb_limiter *l, const char *address, const char *token_id,
                          int64_t now_ns);

#endif
