/*
 * Where machines come from: one const table of operations per source and one explicit list of all
 * of them. A pool is a named set of hosts of one source, as the server's configuration has it:
 *
 *     pools:
 *       lab: {source: fake, class: big, hosts: [lab1, lab2, {name: lab3, class: small}]}
 *       spare: {source: fake, class: big, count: 4}      # spare-1 ... spare-4
 *
 * The pool "local" is always there: this machine. A machine that stands in two pools, under two
 * names or in another spelling is one machine: `machine` says which, and leases go by it.
 */
#ifndef WB_HOSTS_SOURCE_H
#define WB_HOSTS_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "server/base/problems.h"

#define WB_POOLS_MAX 64
#define WB_POOL_HOSTS_MAX 1000

struct wb_host {
    char *name;    /* as people call it */
    char *machine; /* which one it is, lower case */
    char *kind;    /* its class: hosts of one class are alike enough to compare */
};

struct wb_host_pool {
    char *name;
    const struct wb_host_source_ops *source;
    struct wb_host *hosts;
    size_t nhosts, cap;
    const char *dir; /* borrowed: the folder of all sources' own files */
};

struct wb_host_source_ops {
    const char *name;    /* "fake" */
    const char *summary; /* one line for people */
    bool this_machine;   /* its hosts are names for this machine */
    /* Reads the pool's hosts from its part of the configuration. Problems go to p. */
    void (*read)(const struct wb_node *n, struct wb_host_pool *pool, struct wb_problems *p);
    /* Is nothing left on a host of what was done there? 0: clean; WB_CONFLICT says what is there;
     * another error: it cannot be told. Called before a lease ends and before a host whose holder
     * was killed is used again; may block for seconds, may be repeated at any time. */
    int (*look)(const struct wb_host_pool *pool, const struct wb_host *host, struct wb_err *err);
};
extern const struct wb_host_source_ops wb_host_local, wb_host_fake;
extern const struct wb_host_source_ops *const wb_host_sources[]; /* NULL-ended */

struct wb_host_pools {
    struct wb_host_pool *v;
    size_t n, cap;
    char *dir;
};

/* "local" and, with a file, those of the configuration. Every problem at once in p; out is to be
 * released also then. dir: absolute folder for files of sources. */
void wb_host_pools_read(const char *path, const char *dir, struct wb_host_pools *out,
                        struct wb_problems *p);
void wb_host_pools_release(struct wb_host_pools *p);
const struct wb_host_pool *wb_host_pool_find(const struct wb_host_pools *p,
                                             const char *name); /* NULL: none */
/* The most hosts of one class that a pool has. */
size_t wb_host_pool_alike(const struct wb_host_pool *pool);

/* For sources: adds a host; a machine that the pool has already is added once. machine NULL: the
 * name tells it. */
void wb_host_pool_add(struct wb_host_pool *pool, const char *name, const char *machine,
                      const char *kind);

#endif
