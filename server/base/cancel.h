/*
 * Cancel token and waiting. A process has one token; signals only wake it: the handler writes a
 * byte to a pipe. Waiting anywhere in the engine goes through wb_wait, so a cancel is seen at once.
 */
#ifndef WB_BASE_CANCEL_H
#define WB_BASE_CANCEL_H

#include <stdbool.h>
#include <stdint.h>

#include "server/base/err.h"

struct wb_cancel;

/* A token that is set by hand or, after wb_cancel_on_signals, by SIGINT, SIGTERM or SIGHUP (unless
 * that is ignored already); SIGPIPE is ignored from then on. */
struct wb_cancel *wb_cancel_new(void);
void wb_cancel_free(struct wb_cancel *c);
int wb_cancel_on_signals(struct wb_cancel *c,
                         struct wb_err *err) WB_MUST_CHECK; /* one per process */
void wb_cancel_set(struct wb_cancel *c, int signal);
bool wb_cancelled(const struct wb_cancel *c);    /* NULL: false */
int wb_cancel_signal(const struct wb_cancel *c); /* the signal, 0 if not set or set by hand */
int wb_cancel_fd(const struct wb_cancel *c);     /* readable once set; -1 for NULL */

/* Waits for ns, or until fd (if >= 0) is readable, or until cancelled (WB_CANCELLED). Returns 0
 * after the time, 1 when fd is readable. c may be NULL. */
int wb_wait(const struct wb_cancel *c, int fd, int64_t ns, struct wb_err *err) WB_MUST_CHECK;

#endif
