#include "server/collect/processes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/mem.h"

#define ANCESTORS_MAX 64
/* The link of the host's own PID namespace: its inode number is fixed (PROC_PID_INIT_INO). */
#define HOST_PID_NAMESPACE "pid:[4026531836]"

struct process {
    struct wb_pid_stat stat;
    enum wb_whose whose;
    /* Of the look before, when it is compared with the next one: */
    bool gone;
    int64_t explained; /* ticks of its known children that are gone */
    bool lost_ours;    /* one of them was ours */
};

struct table {
    struct process *v; /* ascending by pid */
    size_t n, cap;
};

struct wb_processes {
    char *proc;
    pid_t agent;
    bool looked;
    struct table last;
};

struct wb_processes *wb_processes_new(const char *proc, pid_t agent)
{
    struct wb_processes *p = wb_calloc(1, sizeof(*p));

    p->proc = wb_strdup(proc);
    p->agent = agent;
    return p;
}

void wb_processes_free(struct wb_processes *p)
{
    if (!p)
        return;
    free(p->last.v);
    free(p->proc);
    free(p);
}

static int by_pid(const void *a, const void *b)
{
    pid_t x = ((const struct process *)a)->stat.pid, y = ((const struct process *)b)->stat.pid;

    return (x > y) - (x < y);
}

static struct process *find(const struct table *t, pid_t pid)
{
    struct process key = {.stat.pid = pid};

    return t->n ? bsearch(&key, t->v, t->n, sizeof(*t->v), by_pid) : NULL;
}

/* The same process in another table: a pid may have been used again. */
static struct process *find_same(const struct table *t, const struct process *p)
{
    struct process *q = find(t, p->stat.pid);

    return q && q->stat.start == p->stat.start ? q : NULL;
}

static bool has_pid(const pid_t *v, size_t n, pid_t pid)
{
    size_t lo = 0, hi = n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (v[mid] == pid)
            return true;
        if (v[mid] < pid)
            lo = mid + 1;
        else
            hi = mid;
    }
    return false;
}

static void read_one(int dir, const char *name, struct table *t)
{
    WB_AUTO_FREE char *path = wb_strf("%s/stat", name);
    WB_AUTO_CLOSE int fd = -1;
    struct process p = {0};
    char line[2048];
    ssize_t n;

    fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
    if (n <= 0) /* it has just ended: what it used is in what its parent reaped */
        return;
    line[n] = '\0';
    if (!wb_pid_stat_parse(line, &p.stat))
        return;
    wb_grow(&t->v, &t->cap, t->n + 1, sizeof(*t->v));
    t->v[t->n++] = p;
}

static int read_all(const char *proc, struct table *t, struct wb_err *err)
{
    DIR *d = opendir(proc);
    const struct dirent *e;

    if (!d)
        return wb_fail_sys(err, errno, "cannot list %s", proc);
    while ((e = readdir(d)) != NULL)
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
            read_one(dirfd(d), e->d_name, t);
    (void)closedir(d);
    if (t->n)
        qsort(t->v, t->n, sizeof(*t->v), by_pid);
    return 0;
}

static int check_view(const char *proc, const struct table *t, struct wb_err *err)
{
    WB_AUTO_FREE char *link = wb_strf("%s/self/ns/pid", proc);
    char ns[64];
    ssize_t n = readlink(link, ns, sizeof(ns) - 1);

    if (n > 0) {
        ns[n] = '\0';
        if (strcmp(ns, HOST_PID_NAMESPACE) != 0)
            return wb_fail(err, WB_UNSUPPORTED,
                           "%s shows the processes of a PID namespace, not those of the host",
                           proc);
    }
    if (!find(t, 1))
        return wb_fail(err, WB_UNSUPPORTED, "%s does not show process 1 (mounted with hidepid?)",
                       proc);
    return 0;
}

static bool descends(const struct table *t, const struct process *p, pid_t agent)
{
    for (int i = 0; p && i < ANCESTORS_MAX; i++) {
        if (p->stat.pid == agent)
            return true;
        p = p->stat.parent ? find(t, p->stat.parent) : NULL;
    }
    return false;
}

static enum wb_whose whose(const struct wb_processes *ps, const struct table *now,
                           const struct process *p, const struct process *before, const pid_t *ours,
                           size_t n)
{
    if (p->stat.kernel)
        return WB_KERNEL;
    if (has_pid(ours, n, p->stat.pid))
        return WB_OURS;
    if (before && (before->whose == WB_OURS || before->whose == WB_AGENT))
        return before->whose;
    return descends(now, p, ps->agent) ? WB_AGENT : WB_FOREIGN;
}

static int64_t at_least_0(int64_t v)
{
    return v > 0 ? v : 0;
}

/*
 * What parents reaped beyond the last known times of children that are gone was used since the
 * last look: by children that lived and died in between, and by known ones until their end. A gone
 * process whose parent is gone, too, was reaped by somebody we cannot name; its known time is taken
 * off the sum, so that it is not counted a second time.
 */
static int64_t mark_gone(struct table *last, const struct table *now)
{
    int64_t orphaned = 0;

    for (size_t i = 0; i < last->n; i++) {
        struct process *p = &last->v[i];

        p->gone = !find_same(now, p);
        p->explained = 0;
        p->lost_ours = false;
    }
    for (size_t i = 0; i < last->n; i++) {
        struct process *p = &last->v[i], *parent = find(last, p->stat.parent);

        if (!p->gone)
            continue;
        if (!parent || parent->gone) {
            orphaned += p->stat.own + p->stat.reaped;
            continue;
        }
        parent->explained += p->stat.own + p->stat.reaped;
        parent->lost_ours |= p->whose == WB_OURS || p->whose == WB_AGENT;
    }
    return orphaned;
}

static void add_used(const struct table *now, struct table *last, int64_t ticks[WB_WHOSE_COUNT])
{
    int64_t orphaned = mark_gone(last, now), reaped = 0;

    for (size_t i = 0; i < now->n; i++) {
        const struct process *p = &now->v[i], *before = find_same(last, p);
        int64_t children = p->stat.reaped - (before ? before->stat.reaped : 0);

        ticks[p->whose] += at_least_0(p->stat.own - (before ? before->stat.own : 0));
        children = at_least_0(children - (before ? before->explained : 0));
        if (p->whose == WB_AGENT)
            ticks[WB_AGENT] += children;
        else if (p->whose == WB_FOREIGN && !(before && before->lost_ours))
            reaped += children;
    }
    ticks[WB_FOREIGN] += at_least_0(reaped - orphaned);
}

int wb_processes_take(struct wb_processes *ps, const pid_t *ours, size_t n,
                      int64_t ticks[WB_WHOSE_COUNT], struct wb_err *err)
{
    struct table now = {0};
    int rc = read_all(ps->proc, &now, err);

    if (rc == 0)
        rc = check_view(ps->proc, &now, err);
    if (rc < 0) {
        free(now.v);
        return rc;
    }
    for (size_t i = 0; i < now.n; i++)
        now.v[i].whose = whose(ps, &now, &now.v[i], find_same(&ps->last, &now.v[i]), ours, n);
    if (ps->looked)
        add_used(&now, &ps->last, ticks);
    ps->looked = true;
    free(ps->last.v);
    ps->last = now;
    return 0;
}
