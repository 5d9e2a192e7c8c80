/*
 * Events for everybody who listens: a ring of the newest ones and the listeners' places in it.
 * Any thread may publish; listeners are read by the HTTP thread. Memory is bounded: a listener is
 * a place in the ring, and one that fell out of it gets `reset` and goes on with what is new.
 */
#ifndef WB_HTTP_HUB_H
#define WB_HTTP_HUB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "server/base/json.h"
#include "server/base/mem.h"

#define WB_HUB_EVENTS 4096        /* in the ring */
#define WB_HUB_EVENT_MAX 65536    /* bytes of one; a longer one is not sent */
#define WB_HUB_BYTES (4u << 20)   /* of all in the ring: older ones go before it is full */
#define WB_HUB_TOPICS_MAX 16      /* that one listener asks for */
#define WB_HUB_HEARTBEAT_MS 15000 /* a comment when nothing else was said for so long */

struct wb_hub;
struct wb_listener;

/* first_id: ids go on from there, so that ids of an earlier server are always older. */
struct wb_hub *wb_hub_new(int64_t first_id);
void wb_hub_free(struct wb_hub *h); /* after all listeners */
/* topics: NULL-ended, those that the event belongs to ("queue", "campaign:cmp_..."). data is one
 * JSON document, freed. */
void wb_hub_publish(struct wb_hub *h, const char *const *topics, const char *type, wb_json *data);
/* Sends a comment to every listener that has been silent for the heartbeat's time; call it about
 * once a second. A listener that is gone is noticed by this alone. */
void wb_hub_tick(struct wb_hub *h, int64_t now_ns);
/* Listeners end after what is in the ring; no new ones begin. */
void wb_hub_close(struct wb_hub *h);
int64_t wb_hub_listeners(struct wb_hub *h);
/* Of one token. */
int64_t wb_hub_listeners_of(struct wb_hub *h, const char *token);
/* The tokens that listeners came with, each once (appended). */
void wb_hub_tokens(struct wb_hub *h, struct wb_strv *out);
/* Ends the streams of a token at once. */
void wb_hub_end(struct wb_hub *h, const char *token);
int64_t wb_hub_dropped(struct wb_hub *h); /* events that listeners lost, in all */

struct wb_listener_spec {
    char *const *topics; /* copied */
    size_t ntopics;      /* 0: everything */
    const char *token;   /* id of the token it came with, copied; "" or NULL: none */
    int64_t last_id;     /* the last that the client has seen; 0: only what is new */
    /* Called with the hub locked: nothing more to read now, and there is again. */
    void (*on_empty)(void *arg), (*on_more)(void *arg);
    void *arg;
};
/* NULL once the hub is closed. */
struct wb_listener *wb_listener_new(struct wb_hub *h, const struct wb_listener_spec *spec);
void wb_listener_free(struct wb_listener *l);
/* Up to n bytes of the stream (text/event-stream). 0: nothing now, on_empty was called. -1: ended.
 */
ssize_t wb_listener_read(struct wb_listener *l, char *out, size_t n);

#endif
