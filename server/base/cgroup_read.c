#include <stdlib.h>
#include <string.h>

#include "server/base/cgroup.h"
#include "server/base/cgroup_internal.h"
#include "server/base/file.h"
#include "server/base/units.h"

int64_t wb_cgroup_keyed(const char *text, const char *key)
{
    size_t n = strlen(key);

    for (const char *line = text; line && *line;) {
        if (!strncmp(line, key, n) && line[n] == ' ')
            return (int64_t)strtoll(line + n + 1, NULL, 10);
        line = strchr(line, '\n');
        if (line)
            line++;
    }
    return -1;
}

static int read_keyed(const struct wb_cgroup_fs *fs, enum wb_controller c, const char *name,
                      const char *file, struct wb_buf *b, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_cgroup_path(fs, c, name, file);

    wb_buf_clear(b);
    return wb_file_read_small(path, b, err);
}

static int read_int(const struct wb_cgroup_fs *fs, enum wb_controller c, const char *name,
                    const char *file, int64_t *out, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_cgroup_path(fs, c, name, file);

    return wb_file_read_int(path, out, err);
}

static int64_t at_least_0(int64_t v)
{
    return v < 0 ? 0 : v;
}

static int stats_v1(const struct wb_cgroup_fs *fs, const char *name, struct wb_buf *b,
                    struct wb_cgroup_stats *s, struct wb_err *err)
{
    int64_t inactive = 0;

    if (read_int(fs, WB_CG_CPUACCT, name, "cpuacct.usage", &s->cpu_ns, err) < 0 ||
        read_int(fs, WB_CG_MEMORY, name, "memory.usage_in_bytes", &s->memory_bytes, err) < 0)
        return wb_wrap(err, "control group '%s'", name);
    if (read_keyed(fs, WB_CG_MEMORY, name, "memory.stat", b, NULL) == 0)
        inactive = at_least_0(wb_cgroup_keyed(wb_buf_str(b), "total_inactive_file"));
    s->memory_bytes -= inactive < s->memory_bytes ? inactive : s->memory_bytes;
    if (read_int(fs, WB_CG_MEMORY, name, "memory.max_usage_in_bytes", &s->peak_bytes, NULL) < 0)
        s->peak_bytes = -1;
    s->oom_kills = -1;
    if (read_keyed(fs, WB_CG_MEMORY, name, "memory.oom_control", b, NULL) == 0)
        s->oom_kills = wb_cgroup_keyed(wb_buf_str(b), "oom_kill");
    if (read_keyed(fs, WB_CG_CPU, name, "cpu.stat", b, err) < 0)
        return wb_wrap(err, "control group '%s'", name);
    s->periods = at_least_0(wb_cgroup_keyed(wb_buf_str(b), "nr_periods"));
    s->throttled = at_least_0(wb_cgroup_keyed(wb_buf_str(b), "nr_throttled"));
    s->throttled_ns = at_least_0(wb_cgroup_keyed(wb_buf_str(b), "throttled_time"));
    return 0;
}

static int stats_v2(const struct wb_cgroup_fs *fs, const char *name, struct wb_buf *b,
                    struct wb_cgroup_stats *s, struct wb_err *err)
{
    int64_t inactive = 0;

    if (read_keyed(fs, 0, name, "cpu.stat", b, err) < 0 ||
        read_int(fs, 0, name, "memory.current", &s->memory_bytes, err) < 0)
        return wb_wrap(err, "control group '%s'", name);
    if (read_keyed(fs, 0, name, "cpu.stat", b, err) < 0)
        return wb_wrap(err, "control group '%s'", name);
    s->cpu_ns = at_least_0(wb_cgroup_keyed(wb_buf_str(b), "usage_usec")) * 1000;
    s->periods = at_least_0(wb_cgroup_keyed(wb_buf_str(b), "nr_periods"));
    s->throttled = at_least_0(wb_cgroup_keyed(wb_buf_str(b), "nr_throttled"));
    s->throttled_ns = at_least_0(wb_cgroup_keyed(wb_buf_str(b), "throttled_usec")) * 1000;
    if (read_keyed(fs, 0, name, "memory.stat", b, NULL) == 0)
        inactive = at_least_0(wb_cgroup_keyed(wb_buf_str(b), "inactive_file"));
    s->memory_bytes -= inactive < s->memory_bytes ? inactive : s->memory_bytes;
    if (read_int(fs, 0, name, "memory.peak", &s->peak_bytes, NULL) < 0)
        s->peak_bytes = -1;
    s->oom_kills = -1;
    if (read_keyed(fs, 0, name, "memory.events", b, NULL) == 0)
        s->oom_kills = wb_cgroup_keyed(wb_buf_str(b), "oom_kill");
    return 0;
}

int wb_cgroup_stats(const struct wb_cgroup_fs *fs, const char *name, struct wb_cgroup_stats *out,
                    struct wb_err *err)
{
    struct wb_buf b = WB_BUF_INIT(65536);
    struct wb_cgroup_stats s = {0};
    int rc = wb_cgroup_check_name(name, err);

    if (rc == 0)
        rc = fs->version == 1 ? stats_v1(fs, name, &b, &s, err) : stats_v2(fs, name, &b, &s, err);
    wb_buf_release(&b);
    if (rc == 0)
        *out = s;
    return rc;
}

/* First line of a file, without the newline; NULL when unreadable. */
static char *first_line(const struct wb_cgroup_fs *fs, enum wb_controller c, const char *name,
                        const char *file)
{
    WB_AUTO_FREE char *path = wb_cgroup_path(fs, c, name, file);
    struct wb_buf b = WB_BUF_INIT(4096);
    char *s = NULL;

    if (wb_file_read_small(path, &b, NULL) == 0)
        s = wb_strndup(wb_buf_str(&b), strcspn(wb_buf_str(&b), "\n"));
    wb_buf_release(&b);
    return s;
}

/* Version 1 writes "no limit" as the largest page-aligned number. */
static int64_t v1_limit(int64_t v)
{
    return v >= INT64_MAX - (1 << 20) ? INT64_MAX : v;
}

int wb_cgroup_limits(const struct wb_cgroup_fs *fs, const char *name, struct wb_limits_seen *out,
                     struct wb_err *err)
{
    struct wb_limits_seen l = {.memory_bytes = INT64_MAX, .memory_swap_bytes = INT64_MAX};
    int rc = wb_cgroup_check_name(name, err);
    int64_t quota = -1, period = 0, swap = 0;

    if (rc < 0)
        return rc;
    if (fs->version == 1) {
        l.cpus = first_line(fs, WB_CG_CPUSET, name, "cpuset.effective_cpus");
        l.mems = first_line(fs, WB_CG_CPUSET, name, "cpuset.effective_mems");
        rc = read_int(fs, WB_CG_MEMORY, name, "memory.limit_in_bytes", &l.memory_bytes, err);
        if (read_int(fs, WB_CG_MEMORY, name, "memory.memsw.limit_in_bytes", &swap, NULL) == 0)
            l.memory_swap_bytes = v1_limit(swap);
        l.memory_bytes = v1_limit(l.memory_bytes);
        if (read_int(fs, WB_CG_CPU, name, "cpu.cfs_quota_us", &quota, NULL) == 0 && quota > 0 &&
            read_int(fs, WB_CG_CPU, name, "cpu.cfs_period_us", &period, NULL) == 0 && period > 0)
            l.cpu_quota = (double)quota / (double)period;
    } else {
        WB_AUTO_FREE char *max = first_line(fs, 0, name, "cpu.max");
        char *end = NULL;

        l.cpus = first_line(fs, 0, name, "cpuset.cpus.effective");
        l.mems = first_line(fs, 0, name, "cpuset.mems.effective");
        rc = read_int(fs, 0, name, "memory.max", &l.memory_bytes, err);
        if (rc == 0 && l.memory_bytes != INT64_MAX &&
            read_int(fs, 0, name, "memory.swap.max", &swap, NULL) == 0)
            l.memory_swap_bytes = swap == INT64_MAX ? swap : l.memory_bytes + swap;
        if (max && strncmp(max, "max", 3) != 0) {
            quota = strtoll(max, &end, 10);
            period = strtoll(end, NULL, 10);
            l.cpu_quota = period > 0 ? (double)quota / (double)period : 0;
        }
    }
    if (rc == 0 && !l.cpus)
        rc = wb_fail(err, WB_NOT_FOUND, "control group '%s' has no CPU set to read", name);
    if (rc < 0) {
        wb_limits_seen_release(&l);
        return wb_wrap(err, "limits of control group '%s'", name);
    }
    *out = l;
    return 0;
}

void wb_limits_seen_release(struct wb_limits_seen *l)
{
    free(l->cpus);
    free(l->mems);
    *l = (struct wb_limits_seen){0};
}

int wb_cgroup_of_pid(const struct wb_cgroup_fs *fs, pid_t pid, char **name, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("/proc/%d/cgroup", (int)pid);
    struct wb_buf b = WB_BUF_INIT(65536);
    const char *want = fs->version == 1 ? ":memory:" : "0::";
    const char *at, *from;
    int rc = wb_file_read_small(path, &b, err);

    if (rc < 0) {
        wb_buf_release(&b);
        return wb_wrap(err, "control group of process %d", (int)pid);
    }
    at = strstr(wb_buf_str(&b), want);
    if (!at) {
        rc = wb_fail(err, WB_PROTOCOL, "%s does not name a group of version %d", path, fs->version);
    } else {
        from = at + strlen(want);
        from += strspn(from, "/");
        *name = wb_strndup(from, strcspn(from, "\n"));
    }
    wb_buf_release(&b);
    return rc;
}
