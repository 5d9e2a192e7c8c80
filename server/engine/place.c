#include <stdlib.h>
#include <string.h>

#include "server/base/file.h"
#include "server/base/units.h"
#include "server/engine/run.h"

/* Two CPU lists name the same CPUs, however they are written. */
static bool same_list(const char *a, const char *b)
{
    int *x = NULL, *y = NULL, nx = 0, ny = 0;
    bool same = wb_parse_cpulist(a, &x, &nx, NULL) == 0 &&
                wb_parse_cpulist(b, &y, &ny, NULL) == 0 && nx == ny &&
                (nx == 0 || !memcmp(x, y, (size_t)nx * sizeof(*x)));

    free(x);
    free(y);
    return same;
}

/* a is part of b; both lists. */
static bool within(const char *a, const char *b)
{
    WB_AUTO_FREE int *x = NULL;
    WB_AUTO_FREE int *y = NULL;
    int nx = 0, ny = 0, k = 0;

    if (wb_parse_cpulist(a, &x, &nx, NULL) < 0 || wb_parse_cpulist(b, &y, &ny, NULL) < 0)
        return false;
    for (int i = 0; i < nx; i++) {
        while (k < ny && y[k] < x[i])
            k++;
        if (k == ny || y[k] != x[i])
            return false;
    }
    return true;
}

/* The value of "name:" in a status file of the kernel; caller frees; NULL when absent. */
static char *status_value(const char *text, const char *name)
{
    size_t n = strlen(name);

    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!strncmp(line, name, n) && line[n] == ':') {
            line += n + 1 + strspn(line + n + 1, " \t");
            return wb_strndup(line, strcspn(line, "\n"));
        }
    }
    return NULL;
}

/* CPUs and memory nodes of one thread as its status says. */
static int thread_place(pid_t pid, const char *tid, char **cpus, char **mems, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("/proc/%d/task/%s/status", (int)pid, tid);
    struct wb_buf b = WB_BUF_INIT(65536);
    int rc = wb_file_read_small(path, &b, err);

    if (rc == 0) {
        *cpus = status_value(wb_buf_str(&b), "Cpus_allowed_list");
        *mems = status_value(wb_buf_str(&b), "Mems_allowed_list");
        if (!*cpus)
            rc = wb_fail(err, WB_PROTOCOL, "%s has no Cpus_allowed_list", path);
    }
    wb_buf_release(&b);
    return rc;
}

/* Every thread of the process runs inside the planned set. The first one, which is the process to
 * the kernel, has all of it; the database may pin others of its own to a part. */
static int check_threads(const struct wb_place_want *want, wb_json *seen, struct wb_err *err)
{
    WB_AUTO_FREE char *dir = wb_strf("/proc/%d/task", (int)want->pid);
    WB_AUTO_FREE char *first = wb_strf("%d", (int)want->pid);
    struct wb_strv tids = {0};
    int rc = wb_list_dir(dir, &tids, err);

    for (size_t i = 0; rc == 0 && i < tids.n; i++) {
        WB_AUTO_FREE char *cpus = NULL;
        WB_AUTO_FREE char *mems = NULL;
        bool main_thread = !strcmp(tids.v[i], first);

        rc = thread_place(want->pid, tids.v[i], &cpus, &mems, err);
        if (rc == -WB_NOT_FOUND && !main_thread) { /* it has ended meanwhile */
            rc = 0;
            continue;
        }
        if (rc < 0)
            break;
        if (main_thread) {
            wb_json_set_str(seen, "affinity", cpus);
            wb_json_set_str(seen, "allowed_mems", mems);
        }
        if (main_thread ? !same_list(cpus, want->cpus) : !within(cpus, want->cpus))
            rc = wb_fail(err, WB_CONFLICT, "thread %s of process %d may run on CPUs %s, planned %s",
                         tids.v[i], (int)want->pid, cpus, want->cpus);
        else if (want->mems && mems && !same_list(mems, want->mems))
            rc = wb_fail(err, WB_CONFLICT,
                         "thread %s of process %d may use memory nodes %s, planned %s", tids.v[i],
                         (int)want->pid, mems, want->mems);
    }
    wb_json_set_int(seen, "threads", (int64_t)tids.n);
    wb_strv_release(&tids);
    return rc;
}

/* The numbers of one check; the first difference is the error. */
static int compare(const struct wb_place_want *want, const struct wb_limits_seen *seen,
                   struct wb_err *err)
{
    if (!same_list(seen->cpus, want->cpus))
        return wb_fail(err, WB_CONFLICT, "group '%s' may use CPUs %s, planned %s", want->group,
                       seen->cpus, want->cpus);
    if (want->mems && seen->mems && !same_list(seen->mems, want->mems))
        return wb_fail(err, WB_CONFLICT, "group '%s' may use memory nodes %s, planned %s",
                       want->group, seen->mems, want->mems);
    if (want->memory_bytes && seen->memory_bytes != want->memory_bytes)
        return wb_fail(err, WB_CONFLICT, "group '%s' may use %lld bytes of memory, planned %lld",
                       want->group, (long long)seen->memory_bytes, (long long)want->memory_bytes);
    /* INT64_MAX: this kernel does not account swap; memory alone is what can be held. */
    if (want->memory_bytes && seen->memory_swap_bytes != INT64_MAX &&
        seen->memory_swap_bytes != want->memory_bytes)
        return wb_fail(
            err, WB_CONFLICT, "group '%s' may use %lld bytes of memory and swap, planned %lld",
            want->group, (long long)seen->memory_swap_bytes, (long long)want->memory_bytes);
    if (want->memory_free && seen->memory_bytes != INT64_MAX)
        return wb_fail(err, WB_CONFLICT,
                       "group '%s' may use %lld bytes of memory, planned no limit", want->group,
                       (long long)seen->memory_bytes);
    if (seen->cpu_quota < want->cpu_quota - 0.005 || seen->cpu_quota > want->cpu_quota + 0.005)
        return wb_fail(err, WB_CONFLICT, "group '%s' has a CPU quota of %.3f cores, planned %.3f",
                       want->group, seen->cpu_quota, want->cpu_quota);
    return 0;
}

int wb_place_check(const struct wb_cgroup_fs *fs, const struct wb_place_want *want, wb_json *seen,
                   struct wb_err *err)
{
    struct wb_limits_seen l = {0};
    int rc = wb_cgroup_limits(fs, want->group, &l, err);

    if (rc < 0)
        return rc;
    wb_json_set_str(seen, "group", want->group);
    wb_json_set_str(seen, "cpus", l.cpus);
    wb_json_set_str(seen, "mems", l.mems);
    if (l.memory_bytes == INT64_MAX)
        wb_json_set_reason(seen, "memory_bytes", "not limited");
    else
        wb_json_set_int(seen, "memory_bytes", l.memory_bytes);
    if (l.memory_swap_bytes == INT64_MAX)
        wb_json_set_reason(seen, "memory_swap_bytes", "not limited or not accounted");
    else
        wb_json_set_int(seen, "memory_swap_bytes", l.memory_swap_bytes);
    wb_json_set_real(seen, "cpu_quota", l.cpu_quota);
    rc = compare(want, &l, err);
    wb_limits_seen_release(&l);
    return rc == 0 ? check_threads(want, seen, err) : rc;
}

/* Where the process that works for an instance may run. */
static wb_json *helper_json(const struct wb_run *r, const struct wb_instance *in)
{
    wb_json *j = wb_json_object();
    struct wb_limits_seen l = {0};

    wb_json_set_str(j, "group", in->status.helper);
    if (wb_cgroup_limits(r->e->cgroups, in->status.helper, &l, NULL) == 0)
        wb_json_set_str(j, "cpus", l.cpus);
    wb_limits_seen_release(&l);
    return j;
}

int wb_run_place(struct wb_run *r, const struct wb_instance *in, const char *phase,
                 struct wb_err *err)
{
    const struct wb_part *part = &r->arm->parts[in->index];
    bool limited = r->arm->setup->limits == WB_LIMITS_SAME;
    struct wb_place_want want = {.group = in->status.cgroup,
                                 .pid = in->status.pid,
                                 .cpus = part->cpus,
                                 .mems = part->mems,
                                 .memory_bytes = limited ? part->memory_bytes : 0,
                                 .memory_free = !limited,
                                 .cpu_quota = part->cpu_quota};
    wb_json *seen = wb_json_object();
    int rc;

    wb_json_set_str(seen, "role", "database");
    wb_json_set_int(seen, "instance", in->index);
    if (phase)
        wb_json_set_str(seen, "phase", phase);
    if (!in->status.pid || !in->status.cgroup[0])
        rc = wb_fail(err, WB_NOT_FOUND, "its process or control group is not known");
    else
        rc = wb_place_check(r->e->cgroups, &want, seen, err);
    if (in->status.helper[0])
        wb_json_set(seen, "helper", helper_json(r, in));
    wb_json_push(r->placement, seen);
    return rc < 0 ? wb_wrap(err, "instance %d", in->index) : 0;
}
