#include "runners/load/client.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/mem.h"

/* Path of this process in a hierarchy: `controller` of version 1, or "" for the line of version
 * 2. Owned by the caller; NULL when there is none. */
static char *own_path(const char *text, const char *controller)
{
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        size_t n = strlen(controller);
        if (!path)
            return NULL;
        for (const char *w = names + 1; w <= path; w += strcspn(w, ",:") + 1)
            if (strcspn(w, ",:") == n && strncmp(w, controller, n) == 0)
                return wb_strndup(path + 1, strcspn(path + 1, "\n"));
    }
    return NULL;
}

/* Where cpu.stat of the own control group is. In a container the path that the kernel gives may
 * lie outside of what is mounted; then the mount's root is the own group. */
void wb_client_init(struct wb_client *c)
{
    static const struct {
        const char *controller, *root;
    } places[] = {{"cpu", "/sys/fs/cgroup/cpu"},
                  {"cpu", "/sys/fs/cgroup/cpu,cpuacct"},
                  {"", "/sys/fs/cgroup"},
                  {"", "/sys/fs/cgroup/unified"}};
    struct wb_buf b = WB_BUF_INIT(65536);

    *c = (struct wb_client){0};
    if (wb_file_read_small("/proc/self/cgroup", &b, NULL) == 0) {
        for (size_t i = 0; i < WB_LEN(places) && !c->cpu_stat; i++) {
            WB_AUTO_FREE char *path = own_path(wb_buf_str(&b), places[i].controller);
            WB_AUTO_FREE char *own = wb_strf("%s%s/cpu.stat", places[i].root, path ? path : "");
            WB_AUTO_FREE char *top = wb_strf("%s/cpu.stat", places[i].root);
            if (path && wb_path_exists(own))
                c->cpu_stat = WB_STEAL(own);
            else if (path && wb_path_exists(top))
                c->cpu_stat = WB_STEAL(top);
        }
    }
    wb_buf_release(&b);
}

void wb_client_release(struct wb_client *c)
{
    free(c->cpu_stat);
    *c = (struct wb_client){0};
}

static int64_t cpu_clock(clockid_t id)
{
    struct timespec t;

    return clock_gettime(id, &t) == 0 ? t.tv_sec * WB_SEC + t.tv_nsec : 0;
}

/* The n-th (from 0) number of a line of blank-separated fields; -1 when it is not there. */
static int64_t nth_number(const char *line, int n)
{
    for (;;) {
        char *end;
        long long v;
        line += strspn(line, " \t");
        if (*line < '0' || *line > '9')
            return -1;
        v = strtoll(line, &end, 10);
        if (n-- == 0)
            return v;
        line = end;
    }
}

/* The first number after `name` at the beginning of a line. */
static int64_t named_number(const char *text, const char *name)
{
    size_t n = strlen(name);

    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, n) == 0)
            return nth_number(line + n, 0);
        if (!*line)
            break;
    }
    return -1;
}

static void read_thread(const struct wb_client_thread *t, struct wb_thread_use *u)
{
    WB_AUTO_FREE char *sched = wb_strf("/proc/self/task/%d/schedstat", (int)t->tid);
    WB_AUTO_FREE char *status = wb_strf("/proc/self/task/%d/status", (int)t->tid);
    struct wb_buf b = WB_BUF_INIT(1 << 16);
    clockid_t id;

    u->cpu_ns = pthread_getcpuclockid(t->thread, &id) == 0 ? cpu_clock(id) : 0;
    u->wait_ns = u->involuntary = -1;
    if (wb_file_read_small(sched, &b, NULL) == 0)
        u->wait_ns = nth_number(wb_buf_str(&b), 1);
    wb_buf_release(&b);
    b = (struct wb_buf)WB_BUF_INIT(1 << 16);
    if (wb_file_read_small(status, &b, NULL) == 0)
        u->involuntary = named_number(wb_buf_str(&b), "nonvoluntary_ctxt_switches:");
    wb_buf_release(&b);
}

static void read_host(struct wb_client_sample *s)
{
    struct wb_buf b = WB_BUF_INIT(1 << 20);
    const char *line;

    s->steal = s->jiffies = -1;
    if (wb_file_read_small("/proc/stat", &b, NULL) == 0) {
        line = wb_buf_str(&b);
        if (strncmp(line, "cpu ", 4) == 0 && nth_number(line + 4, 7) >= 0) {
            s->steal = nth_number(line + 4, 7);
            s->jiffies = 0;
            for (int i = 0; i < 8; i++) /* guest time is part of user */
                s->jiffies += nth_number(line + 4, i);
        }
    }
    wb_buf_release(&b);
}

static int64_t at_least_0(int64_t v)
{
    return v > 0 ? v : 0;
}

/* A group without quota, and the root, have no such counters: never throttled. */
static void read_throttling(const struct wb_client *c, struct wb_client_sample *s)
{
    struct wb_buf b = WB_BUF_INIT(65536);
    int64_t ns;

    s->throttled_ns = s->throttled_periods = s->periods = -1;
    if (c->cpu_stat && wb_file_read_small(c->cpu_stat, &b, NULL) == 0) {
        s->periods = at_least_0(named_number(wb_buf_str(&b), "nr_periods "));
        s->throttled_periods = at_least_0(named_number(wb_buf_str(&b), "nr_throttled "));
        ns = named_number(wb_buf_str(&b), "throttled_time ");
        s->throttled_ns =
            ns >= 0 ? ns : at_least_0(named_number(wb_buf_str(&b), "throttled_usec ")) * WB_US;
    }
    wb_buf_release(&b);
}

void wb_client_read(const struct wb_client *c, const struct wb_client_thread *threads, int n,
                    struct wb_client_sample *out)
{
    *out = (struct wb_client_sample){.n = n};
    out->thread = wb_calloc((size_t)n, sizeof(*out->thread));
    for (int i = 0; i < n; i++)
        read_thread(&threads[i], &out->thread[i]);
    read_host(out);
    read_throttling(c, out);
    wb_links_read("/proc", "/sys", &out->links);
    out->cpu_ns = cpu_clock(CLOCK_PROCESS_CPUTIME_ID);
    out->at = wb_now_ns(NULL);
}

void wb_client_sample_release(struct wb_client_sample *s)
{
    free(s->thread);
    *s = (struct wb_client_sample){0};
}

static double share(int64_t part, int64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

/* Of the time of one thread. A sample is read over some microseconds: where the window is as short
 * as that a part can look longer than the whole. */
static double thread_share(int64_t part, int64_t whole)
{
    double v = share(part, whole);

    return v > 100 ? 100 : v;
}

struct wb_client_use wb_client_between(const struct wb_client_sample *from,
                                       const struct wb_client_sample *to)
{
    int64_t ns = to->at - from->at;
    struct wb_client_use u = {.seconds = (double)ns / 1e9,
                              .cpu_s = (double)(to->cpu_ns - from->cpu_ns) / 1e9,
                              .steal_percent = -1,
                              .throttled_s = -1,
                              .throttled_percent = -1,
                              .run_queue_percent = -1};

    if (from->steal >= 0 && to->steal >= 0)
        u.steal_percent = share(to->steal - from->steal, to->jiffies - from->jiffies);
    if (from->throttled_ns >= 0 && to->throttled_ns >= 0) {
        u.throttled_s = (double)(to->throttled_ns - from->throttled_ns) / 1e9;
        u.throttled_percent =
            share(to->throttled_periods - from->throttled_periods, to->periods - from->periods);
    }
    u.link_percent = wb_links_busiest(&from->links, &to->links, u.seconds, &u.link);
    for (int i = 0; i < to->n && i < from->n; i++) {
        const struct wb_thread_use *a = &from->thread[i], *b = &to->thread[i];
        double cpu = thread_share(b->cpu_ns - a->cpu_ns, ns);
        u.mean_percent += cpu / to->n;
        u.busiest_percent = cpu > u.busiest_percent ? cpu : u.busiest_percent;
        if (a->wait_ns >= 0 && b->wait_ns >= 0) {
            double wait = thread_share(b->wait_ns - a->wait_ns, ns);
            u.run_queue_percent = wait > u.run_queue_percent ? wait : u.run_queue_percent;
        }
    }
    return u;
}

static void set_known(wb_json *o, const char *key, double v, const char *reason)
{
    if (v >= 0)
        wb_json_set_real(o, key, v);
    else
        wb_json_set_reason(o, key, reason);
}

wb_json *wb_client_json(const struct wb_client_sample *from, const struct wb_client_sample *to,
                        uint64_t operations)
{
    struct wb_client_use u = wb_client_between(from, to);
    wb_json *o = wb_json_object(), *threads = wb_json_array();

    for (int i = 0; i < to->n && i < from->n; i++) {
        const struct wb_thread_use *a = &from->thread[i], *b = &to->thread[i];
        wb_json *t = wb_json_object();
        bool wait = a->wait_ns >= 0 && b->wait_ns >= 0;
        bool switches = a->involuntary >= 0 && b->involuntary >= 0;
        wb_json_set_real(t, "cpu_percent", thread_share(b->cpu_ns - a->cpu_ns, to->at - from->at));
        set_known(t, "run_queue_percent",
                  wait ? thread_share(b->wait_ns - a->wait_ns, to->at - from->at) : -1,
                  "the kernel has no schedstat");
        set_known(t, "involuntary_switches_per_s",
                  switches ? (double)(b->involuntary - a->involuntary) / u.seconds : -1,
                  "the kernel does not say");
        wb_json_push(threads, t);
    }
    wb_json_set_real(o, "cpu_s", u.cpu_s);
    if (operations > 0)
        wb_json_set_real(o, "cpu_s_per_million_ops", u.cpu_s * 1e6 / (double)operations);
    else
        wb_json_set_reason(o, "cpu_s_per_million_ops", "no operation succeeded in the window");
    wb_json_set(o, "threads", threads);
    set_known(o, "throttled_s", u.throttled_s, "the own control group cannot be read");
    set_known(o, "throttled_percent", u.throttled_percent, "the own control group cannot be read");
    set_known(o, "steal_percent", u.steal_percent, "/proc/stat has no steal time");
    set_known(o, "link_percent", u.link_percent, "no network link of this host has a speed");
    return o;
}
