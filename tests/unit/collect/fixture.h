/* A /proc, a /sys and control groups in a temporary folder, written line by line. */
#ifndef WB_TESTS_COLLECT_FIXTURE_H
#define WB_TESTS_COLLECT_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/file.h"
#include "server/base/mem.h"

#define KERNEL_FLAGS 0x200040u
#define USER_FLAGS 0x400000u

struct fixture {
    char dir[64];
};

static inline void put(const struct fixture *f, const char *name, const char *text)
{
    WB_AUTO_FREE char *path = wb_strf("%s/%s", f->dir, name);
    WB_AUTO_FREE char *folder = wb_strndup(path, (size_t)(strrchr(path, '/') - path));

    if (wb_mkdir_all(folder, 0755, NULL) < 0 || wb_file_put(path, text, strlen(text), NULL) < 0)
        abort();
}

static inline void drop(const struct fixture *f, const char *name)
{
    WB_AUTO_FREE char *path = wb_strf("%s/%s", f->dir, name);

    if (wb_remove_tree(path, NULL) < 0)
        abort();
}

struct proc_line {
    int pid, parent;
    unsigned flags;
    long long utime, stime, cutime, cstime;
    unsigned long long start;
};

/* /proc/PID/stat; the name holds what a careless parser stumbles over. */
static inline void put_process(const struct fixture *f, struct proc_line p)
{
    WB_AUTO_FREE char *name = wb_strf("proc/%d/stat", p.pid);
    WB_AUTO_FREE char *line =
        wb_strf("%d (a) b (%d) S %d 1 1 0 -1 %u 0 0 0 0 %lld %lld %lld %lld 20 0 1 0 %llu 0 0 0\n",
                p.pid, p.pid, p.parent, p.flags, p.utime, p.stime, p.cutime, p.cstime, p.start);

    put(f, name, line);
}

static inline void drop_process(const struct fixture *f, int pid)
{
    WB_AUTO_FREE char *name = wb_strf("proc/%d", pid);

    drop(f, name);
}

static inline int fixture_setup(void **state)
{
    static const char dir[] = "/tmp/wb-test-collect-XXXXXX";
    struct fixture *f = wb_calloc(1, sizeof(*f));

    memcpy(f->dir, dir, sizeof(dir));
    *state = f;
    return mkdtemp(f->dir) ? 0 : -1;
}

static inline int fixture_teardown(void **state)
{
    struct fixture *f = *state;
    int rc = wb_remove_tree(f->dir, NULL);

    free(f);
    return rc;
}

#endif
