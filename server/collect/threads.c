#include "server/collect/threads.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/file.h"
#include "server/base/mem.h"
#include "server/base/units.h"

#define THREADS_MAX 1024
/* What the looks may miss, such as its last moments and short-lived threads: a share of all of the
 * program's CPU time, or so little of the time it ran that no limit is near. */
#define UNSEEN_SHARE 0.20
#define UNSEEN_OF_TIME 0.02

struct reading {
    int64_t at_ns, cpu_ns, wait_ns, switches;
};

struct thread {
    pid_t pid, tid;
    struct reading first, last;
    size_t looks;
};

struct wb_threads {
    char *proc;
    struct thread *v;
    size_t n, cap;
};

struct wb_threads *wb_threads_new(const char *proc)
{
    struct wb_threads *t = wb_calloc(1, sizeof(*t));

    t->proc = wb_strdup(proc);
    return t;
}

void wb_threads_free(struct wb_threads *t)
{
    if (!t)
        return;
    free(t->proc);
    free(t->v);
    free(t);
}

/* schedstat: time on CPU, time waiting for one, both ns; status: switches that were not wanted. */
static bool read_thread(const char *dir, struct reading *r)
{
    static const char key[] = "nonvoluntary_ctxt_switches:";
    WB_AUTO_FREE char *schedstat = wb_strf("%s/schedstat", dir);
    WB_AUTO_FREE char *status = wb_strf("%s/status", dir);
    struct wb_buf b = WB_BUF_INIT(16384);
    const char *at;
    char *rest;
    bool ok;

    ok = wb_file_read_small(schedstat, &b, NULL) == 0;
    if (ok) {
        r->cpu_ns = strtoll(wb_buf_str(&b), &rest, 10);
        r->wait_ns = strtoll(rest, NULL, 10);
    }
    wb_buf_clear(&b);
    ok = ok && wb_file_read_small(status, &b, NULL) == 0;
    at = ok ? strstr(wb_buf_str(&b), key) : NULL;
    if (at)
        r->switches = strtoll(at + strlen(key), NULL, 10);
    wb_buf_release(&b);
    return at != NULL;
}

static void look_at(struct wb_threads *t, pid_t pid, pid_t tid, const char *dir, int64_t now_ns)
{
    struct reading r = {.at_ns = now_ns};
    struct thread *th = NULL;

    for (size_t i = 0; i < t->n && !th; i++)
        if (t->v[i].pid == pid && t->v[i].tid == tid)
            th = &t->v[i];
    if ((!th && t->n == THREADS_MAX) || !read_thread(dir, &r))
        return;
    if (!th) {
        wb_grow(&t->v, &t->cap, t->n + 1, sizeof(*t->v));
        th = &t->v[t->n++];
        *th = (struct thread){.pid = pid, .tid = tid, .first = r};
    }
    th->last = r;
    th->looks++;
}

void wb_threads_look(struct wb_threads *t, const pid_t *pids, size_t n, int64_t now_ns)
{
    for (size_t i = 0; i < n; i++) {
        WB_AUTO_FREE char *dir = wb_strf("%s/%d/task", t->proc, (int)pids[i]);
        struct wb_strv names = {0};

        if (wb_list_dir(dir, &names, NULL) == 0)
            for (size_t k = 0; k < names.n; k++) {
                WB_AUTO_FREE char *path = wb_strf("%s/%s", dir, names.v[k]);
                int64_t tid;

                if (wb_parse_int(names.v[k], 1, INT32_MAX, &tid, NULL) == 0)
                    look_at(t, pids[i], (pid_t)tid, path, now_ns);
            }
        wb_strv_release(&names);
    }
}

wb_json *wb_threads_report(const struct wb_threads *t, int64_t cpu_ns, const char **why)
{
    wb_json *all = wb_json_array();
    double seen_ns = 0, ran_ns = 0, unseen_ns;

    for (size_t i = 0; i < t->n; i++) {
        const struct thread *th = &t->v[i];
        double ns = (double)(th->last.at_ns - th->first.at_ns);
        wb_json *o;

        seen_ns += (double)th->last.cpu_ns;
        ran_ns = ns > ran_ns ? ns : ran_ns;
        if (th->looks < 2 || ns <= 0)
            continue;
        o = wb_json_object();
        wb_json_set_real(o, "cpu_percent", 100 * (double)(th->last.cpu_ns - th->first.cpu_ns) / ns);
        wb_json_set_real(o, "run_queue_percent",
                         100 * (double)(th->last.wait_ns - th->first.wait_ns) / ns);
        wb_json_set_real(o, "involuntary_switches_per_s",
                         (double)(th->last.switches - th->first.switches) / ns * 1e9);
        wb_json_push(all, o);
    }
    unseen_ns = (double)cpu_ns - seen_ns;
    if (wb_json_len(all) && cpu_ns >= 0 &&
        (unseen_ns <= UNSEEN_SHARE * (double)cpu_ns || unseen_ns <= UNSEEN_OF_TIME * ran_ns))
        return all;
    *why = wb_json_len(all) == 0 ? "its threads were not seen for long enough"
           : cpu_ns < 0          ? "the CPU time of its control group is not known"
                                 : "its threads were seen for too little of its CPU time";
    wb_json_free(all);
    return NULL;
}
