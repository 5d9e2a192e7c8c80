/*
 * The open connections and how long each has kept the server waiting for a whole request. A client
 * that sends slowly, or nothing, is cut off after a fixed time whatever it sends, and when there
 * are too many, the one that has kept waiting the longest makes room. The library's own time-out
 * starts anew with every byte, which is why this is needed.
 *
 * Connections are added and removed by the HTTP thread; any thread may tick.
 */
#ifndef WB_HTTP_WATCH_H
#define WB_HTTP_WATCH_H

#include <stddef.h>
#include <stdint.h>

struct wb_watch;
struct wb_watched;

/* most: connections beyond which one makes room; wait_ns: the time for a whole request. */
struct wb_watch *wb_watch_new(size_t most, int64_t wait_ns);
void wb_watch_free(struct wb_watch *w); /* after the last connection */

/* A new connection, which is waited for. fd stays the caller's; it is only ever shut down, and
 * never after wb_watch_remove. */
struct wb_watched *wb_watch_add(struct wb_watch *w, int fd, int64_t now_ns);
void wb_watch_remove(struct wb_watch *w, struct wb_watched *c);
/* Its request is there whole: it is answered and not waited for. */
void wb_watch_busy(struct wb_watch *w, struct wb_watched *c);
/* It is waited for (again). */
void wb_watch_idle(struct wb_watch *w, struct wb_watched *c, int64_t now_ns);
/* Shuts down those that took too long; about once a second. */
void wb_watch_tick(struct wb_watch *w, int64_t now_ns);

size_t wb_watch_count(struct wb_watch *w);
int64_t wb_watch_cut(struct wb_watch *w); /* how many were shut down so far */

#endif
