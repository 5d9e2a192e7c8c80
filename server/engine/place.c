#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

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

static int affinity_of(pid_t pid, char **list, struct wb_err *err)
{
    struct wb_buf b = WB_BUF_INIT(8192);
    int cpus[CPU_SETSIZE], n = 0;
    cpu_set_t set;

    if (sched_getaffinity(pid, sizeof(set), &set) < 0)
        return wb_fail_sys(err, errno, "cannot read the affinity of process %d", (int)pid);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET((size_t)i, &set))
            cpus[n++] = i;
    wb_format_cpulist(cpus, n, &b);
    *list = wb_buf_take(&b);
    return 0;
}

/* The numbers of one check; the first difference is the error. */
static int compare(const struct wb_place_want *want, const struct wb_limits_seen *seen,
                   const char *affinity, struct wb_err *err)
{
    if (!same_list(seen->cpus, want->cpus))
        return wb_fail(err, WB_CONFLICT, "group '%s' may use CPUs %s, planned %s", want->group,
                       seen->cpus, want->cpus);
    if (!same_list(affinity, want->cpus))
        return wb_fail(err, WB_CONFLICT, "process %d may run on CPUs %s, planned %s",
                       (int)want->pid, affinity, want->cpus);
    if (want->memory_bytes && seen->memory_bytes != want->memory_bytes)
        return wb_fail(err, WB_CONFLICT, "group '%s' may use %lld bytes of memory, planned %lld",
                       want->group, (long long)seen->memory_bytes, (long long)want->memory_bytes);
    /* INT64_MAX: this kernel does not account swap; memory alone is what can be held. */
    if (want->memory_bytes && seen->memory_swap_bytes != INT64_MAX &&
        seen->memory_swap_bytes != want->memory_bytes)
        return wb_fail(
            err, WB_CONFLICT, "group '%s' may use %lld bytes of memory and swap, planned %lld",
            want->group, (long long)seen->memory_swap_bytes, (long long)want->memory_bytes);
    if (seen->cpu_quota < want->cpu_quota - 0.005 || seen->cpu_quota > want->cpu_quota + 0.005)
        return wb_fail(err, WB_CONFLICT, "group '%s' has a CPU quota of %.3f cores, planned %.3f",
                       want->group, seen->cpu_quota, want->cpu_quota);
    return 0;
}

int wb_place_check(const struct wb_cgroup_fs *fs, const struct wb_place_want *want, wb_json *seen,
                   struct wb_err *err)
{
    struct wb_limits_seen l = {0};
    WB_AUTO_FREE char *affinity = NULL;
    int rc = wb_cgroup_limits(fs, want->group, &l, err);

    if (rc == 0)
        rc = affinity_of(want->pid, &affinity, err);
    if (rc == 0) {
        wb_json_set_str(seen, "group", want->group);
        wb_json_set_str(seen, "cpus", l.cpus);
        wb_json_set_str(seen, "mems", l.mems);
        wb_json_set_str(seen, "affinity", affinity);
        if (l.memory_bytes == INT64_MAX)
            wb_json_set_reason(seen, "memory_bytes", "not limited");
        else
            wb_json_set_int(seen, "memory_bytes", l.memory_bytes);
        if (l.memory_swap_bytes == INT64_MAX)
            wb_json_set_reason(seen, "memory_swap_bytes", "not limited or not accounted");
        else
            wb_json_set_int(seen, "memory_swap_bytes", l.memory_swap_bytes);
        wb_json_set_real(seen, "cpu_quota", l.cpu_quota);
        rc = compare(want, &l, affinity, err);
    }
    wb_limits_seen_release(&l);
    return rc;
}
