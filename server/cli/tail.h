/*
 * Follows log files that grow, are renamed, begun anew and removed: each line is told once.
 *
 * A file is known by its inode and read from its start to its end, whatever it is called by then; a
 * new file of an old name is read after the old one. What is removed is read to its end first. A
 * file that was cut off is read again from its start. Links are not followed.
 */
#ifndef WB_CLI_TAIL_H
#define WB_CLI_TAIL_H

#include <stdbool.h>
#include <stddef.h>

#include "server/base/err.h"

/* A line without its end; borrowed. Lines beyond 1 MiB come in parts. */
typedef void wb_tail_fn(void *arg, const char *stream, const char *line, size_t n);

struct wb_tail;
struct wb_tail *wb_tail_new(wb_tail_fn *fn, void *arg);
void wb_tail_free(struct wb_tail *t);

/* One file, under the name of a stream. An absent one is looked for again with the next call. */
void wb_tail_add(struct wb_tail *t, const char *path, const char *stream);
/* All logs below a folder, at most four levels deep and not in folders called "data": files called
 * *.log, and *.log.* that are not compressed, which belong to the same stream. Its name is the path
 * below the folder, up to ".log". Called again it finds new ones; an absent folder has none. */
void wb_tail_scan(struct wb_tail *t, const char *dir);
/* Tells what was added since the last call; true when there was something. */
bool wb_tail_read(struct wb_tail *t);
/* Tells last lines that have no end. */
void wb_tail_end(struct wb_tail *t);
/* Whether every file that was followed is gone. */
bool wb_tail_is_over(const struct wb_tail *t);

#endif
