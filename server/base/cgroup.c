#include "server/base/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/cgroup_internal.h"
#include "server/base/clock.h"
#include "server/base/file.h"

#define PERIOD_US 10000 /* CFS period: short, so that a quota spreads over a 1 s sample evenly */
#define DEPTH_MAX 16

static const char *const v1_folders[WB_CG_N] = {
    [WB_CG_MEMORY] = "memory", [WB_CG_CPU] = "cpu",   [WB_CG_CPUACCT] = "cpuacct",
    [WB_CG_CPUSET] = "cpuset", [WB_CG_PIDS] = "pids",
};

char *wb_cgroup_path(const struct wb_cgroup_fs *fs, enum wb_controller c, const char *name,
                     const char *file)
{
    return wb_strf("%s%s%s%s%s%s%s", fs->root, fs->version == 1 ? "/" : "",
                   fs->version == 1 ? v1_folders[c] : "", *name ? "/" : "", name, file ? "/" : "",
                   file ? file : "");
}

int wb_cgroup_check_name(const char *name, struct wb_err *err)
{
    const char *part = name;

    for (;;) {
        size_t n = strcspn(part, "/");

        if (n == 0 || (n == 1 && part[0] == '.') || (n == 2 && !strncmp(part, "..", 2)))
            return wb_fail(err, WB_INVALID, "'%s' is not a relative control group name", name);
        if (!part[n])
            return 0;
        part += n + 1;
    }
}

int wb_cgroup_fs_open(const char *root, struct wb_cgroup_fs **out, struct wb_err *err)
{
    struct wb_cgroup_fs *fs = wb_calloc(1, sizeof(*fs));
    struct wb_buf b = WB_BUF_INIT(4096);
    WB_AUTO_FREE char *list = wb_strf("%s/cgroup.controllers", root);
    int missing = 0;

    fs->root = wb_strdup(root);
    if (wb_file_read_small(list, &b, NULL) == 0 && strstr(wb_buf_str(&b), "cpuset") &&
        strstr(wb_buf_str(&b), "memory")) {
        fs->version = 2;
    } else {
        fs->version = 1;
        for (int c = 0; c < WB_CG_N; c++) {
            WB_AUTO_FREE char *dir = wb_cgroup_path(fs, c, "", NULL);

            fs->has[c] = wb_path_exists(dir);
            missing += !fs->has[c] && c != WB_CG_PIDS;
        }
    }
    wb_buf_release(&b);
    if (missing) {
        wb_cgroup_fs_free(fs);
        return wb_fail(err, WB_UNSUPPORTED,
                       "%s has neither the version 1 controllers memory, cpu, cpuacct and cpuset "
                       "nor a version 2 tree with cpuset and memory: mount one of them",
                       root);
    }
    *out = fs;
    return 0;
}

void wb_cgroup_fs_free(struct wb_cgroup_fs *fs)
{
    if (!fs)
        return;
    free(fs->root);
    free(fs);
}

int wb_cgroup_version(const struct wb_cgroup_fs *fs)
{
    return fs->version;
}

static bool used(const struct wb_cgroup_fs *fs, int c)
{
    return fs->version == 2 ? c == 0 : fs->has[c];
}

static int put(const struct wb_cgroup_fs *fs, enum wb_controller c, const char *name,
               const char *file, const char *text, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_cgroup_path(fs, c, name, file);

    if (wb_file_put(path, text, strlen(text), err) < 0)
        return wb_wrap(err, "setting '%s'", text);
    return 0;
}

static int putf(const struct wb_cgroup_fs *fs, enum wb_controller c, const char *name,
                const char *file, const char *fmt, int64_t v, struct wb_err *err)
{
    /* fmt is one of two literals below */
    WB_AUTO_FREE char *text = wb_strf("%lld%s", (long long)v, fmt);

    return put(fs, c, name, file, text, err);
}

/* A version 1 cpuset takes no member before it has CPUs and memory nodes: copies the parent's. */
static int inherit_cpuset(const struct wb_cgroup_fs *fs, const char *parent, const char *name,
                          const char *file, struct wb_err *err)
{
    WB_AUTO_FREE char *mine = wb_cgroup_path(fs, WB_CG_CPUSET, name, file);
    WB_AUTO_FREE char *above = wb_cgroup_path(fs, WB_CG_CPUSET, parent, file);
    struct wb_buf b = WB_BUF_INIT(4096);
    int rc = wb_file_read_small(mine, &b, err);

    if (rc == 0 && (b.len == 0 || b.data[0] == '\n')) {
        wb_buf_clear(&b);
        rc = wb_file_read_small(above, &b, err);
        if (rc == 0)
            rc = wb_file_put(mine, wb_buf_str(&b), b.len, err);
    }
    wb_buf_release(&b);
    return rc;
}

/* Version 2: lets the children of a group use the controllers. */
static int delegate(const struct wb_cgroup_fs *fs, const char *name, struct wb_err *err)
{
    static const char *const wanted[] = {"+cpu", "+cpuset", "+memory", "+pids"};

    for (size_t i = 0; i < WB_LEN(wanted); i++)
        if (put(fs, 0, name, "cgroup.subtree_control", wanted[i], err) < 0)
            return wb_wrap(err, "handing controllers down from group '%s'", name);
    return 0;
}

static int make_one(const struct wb_cgroup_fs *fs, const char *parent, const char *name,
                    bool must_be_new, struct wb_err *err)
{
    bool fresh = false;

    if (fs->version == 2 && delegate(fs, parent, err) < 0)
        return wb_wrap(err, "group '%s'", name);
    for (int c = 0; c < WB_CG_N; c++) {
        WB_AUTO_FREE char *dir = used(fs, c) ? wb_cgroup_path(fs, c, name, NULL) : NULL;

        if (!dir)
            continue;
        if (mkdir(dir, 0755) == 0)
            fresh = true;
        else if (errno != EEXIST)
            return wb_fail_sys(err, errno, "cannot make control group %s", dir);
        else if (must_be_new && !fresh && c == 0)
            return wb_fail(err, WB_CONFLICT, "control group '%s' exists already", name);
    }
    if (fs->version == 2)
        return 0;
    if (inherit_cpuset(fs, parent, name, "cpuset.cpus", err) < 0 ||
        inherit_cpuset(fs, parent, name, "cpuset.mems", err) < 0)
        return wb_wrap(err, "group '%s'", name);
    return 0;
}

static int limit_v1(const struct wb_cgroup_fs *fs, const char *name, const struct wb_limits *l,
                    struct wb_err *err)
{
    int rc = 0;

    if (l->cpus)
        rc = put(fs, WB_CG_CPUSET, name, "cpuset.cpus", l->cpus, err);
    if (rc == 0 && l->mems)
        rc = put(fs, WB_CG_CPUSET, name, "cpuset.mems", l->mems, err);
    if (rc == 0 && l->memory_bytes > 0) {
        WB_AUTO_FREE char *swap =
            wb_cgroup_path(fs, WB_CG_MEMORY, name, "memory.memsw.limit_in_bytes");

        rc = putf(fs, WB_CG_MEMORY, name, "memory.limit_in_bytes", "", l->memory_bytes, err);
        if (rc == 0 && wb_path_exists(swap))
            rc = putf(fs, WB_CG_MEMORY, name, "memory.memsw.limit_in_bytes", "", l->memory_bytes,
                      err);
    }
    if (rc == 0 && l->cpu_quota > 0) {
        rc = putf(fs, WB_CG_CPU, name, "cpu.cfs_period_us", "", PERIOD_US, err);
        if (rc == 0)
            rc = putf(fs, WB_CG_CPU, name, "cpu.cfs_quota_us", "",
                      (int64_t)(l->cpu_quota * PERIOD_US + 0.5), err);
    }
    if (rc == 0 && l->pids > 0 && fs->has[WB_CG_PIDS])
        rc = putf(fs, WB_CG_PIDS, name, "pids.max", "", l->pids, err);
    return rc;
}

static int limit_v2(const struct wb_cgroup_fs *fs, const char *name, const struct wb_limits *l,
                    struct wb_err *err)
{
    int rc = 0;

    if (l->cpus)
        rc = put(fs, 0, name, "cpuset.cpus", l->cpus, err);
    if (rc == 0 && l->mems)
        rc = put(fs, 0, name, "cpuset.mems", l->mems, err);
    if (rc == 0 && l->memory_bytes > 0) {
        WB_AUTO_FREE char *swap = wb_cgroup_path(fs, 0, name, "memory.swap.max");

        rc = putf(fs, 0, name, "memory.max", "", l->memory_bytes, err);
        if (rc == 0 && wb_path_exists(swap)) /* memory and swap together are memory_bytes */
            rc = put(fs, 0, name, "memory.swap.max", "0", err);
    }
    if (rc == 0 && l->cpu_quota > 0)
        rc = putf(fs, 0, name, "cpu.max", " 10000", (int64_t)(l->cpu_quota * PERIOD_US + 0.5), err);
    if (rc == 0 && l->pids > 0)
        rc = putf(fs, 0, name, "pids.max", "", l->pids, err);
    return rc;
}

int wb_cgroup_create(const struct wb_cgroup_fs *fs, const char *name,
                     const struct wb_limits *limits, struct wb_err *err)
{
    WB_AUTO_FREE char *part = wb_strdup(name);
    WB_AUTO_FREE char *parent = wb_strdup("");
    int rc = wb_cgroup_check_name(name, err);

    for (char *s = part; rc == 0; s++) {
        char c = *s;

        if (c != '/' && c != '\0')
            continue;
        *s = '\0';
        rc = make_one(fs, parent, part, c == '\0', err);
        free(parent);
        parent = wb_strdup(part);
        *s = c;
        if (!c)
            break;
    }
    if (rc < 0)
        return rc;
    rc = fs->version == 2 ? limit_v2(fs, name, limits, err) : limit_v1(fs, name, limits, err);
    if (rc < 0) {
        WB_IGNORE(
            wb_cgroup_destroy(fs, name, WB_SEC, NULL)); /* the first error is the one to tell */
        return wb_wrap(err, "limits of control group '%s'", name);
    }
    return 0;
}

int wb_cgroup_add(const struct wb_cgroup_fs *fs, const char *name, pid_t pid, struct wb_err *err)
{
    for (int c = 0; c < WB_CG_N; c++)
        if (used(fs, c) && putf(fs, c, name, "cgroup.procs", "", pid, err) < 0)
            return wb_wrap(err, "moving process %d into control group '%s'", (int)pid, name);
    return 0;
}

bool wb_cgroup_exists(const struct wb_cgroup_fs *fs, const char *name)
{
    for (int c = 0; c < WB_CG_N; c++) {
        WB_AUTO_FREE char *dir = used(fs, c) ? wb_cgroup_path(fs, c, name, NULL) : NULL;

        if (dir && wb_path_exists(dir))
            return true;
    }
    return false;
}

int wb_cgroup_children(const struct wb_cgroup_fs *fs, const char *name, struct wb_strv *out,
                       struct wb_err *err)
{
    for (int c = 0; c < WB_CG_N; c++) {
        WB_AUTO_FREE char *dir = used(fs, c) ? wb_cgroup_path(fs, c, name, NULL) : NULL;
        struct wb_strv names = {0};

        if (!dir || !wb_path_exists(dir))
            continue;
        if (wb_list_dir(dir, &names, err) < 0) {
            wb_strv_release(&names);
            if (err && err->code == WB_NOT_FOUND)
                continue; /* it went away meanwhile */
            return wb_wrap(err, "control group '%s'", name);
        }
        for (size_t i = 0; i < names.n; i++) {
            WB_AUTO_FREE char *path = wb_strf("%s/%s", dir, names.v[i]);
            WB_AUTO_FREE char *full = wb_strf("%s%s%s", name, *name ? "/" : "", names.v[i]);
            struct stat st;
            bool known = false;

            for (size_t k = 0; k < out->n && !known; k++)
                known = !strcmp(out->v[k], full);
            if (!known && lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
                wb_strv_add(out, full);
        }
        wb_strv_release(&names);
    }
    return 0;
}

struct pid_list {
    pid_t *v;
    size_t n, cap;
};

static int gather(const struct wb_cgroup_fs *fs, const char *name, int depth, struct pid_list *l,
                  struct wb_err *err)
{
    struct wb_strv below = {0};
    int rc = 0;

    for (int c = 0; c < WB_CG_N && rc == 0; c++) {
        WB_AUTO_FREE char *path = used(fs, c) ? wb_cgroup_path(fs, c, name, "cgroup.procs") : NULL;
        struct wb_buf b = WB_BUF_INIT(4u << 20);
        char *at, *end;

        if (path && wb_path_exists(path) && wb_file_read_small(path, &b, NULL) == 0) {
            at = b.data;
            while (at && *at) {
                long pid = strtol(at, &end, 10);

                if (end == at)
                    break;
                wb_grow(&l->v, &l->cap, l->n + 1, sizeof(*l->v));
                l->v[l->n++] = (pid_t)pid;
                at = end + strspn(end, "\n");
            }
        }
        wb_buf_release(&b);
    }
    if (depth > 0)
        rc = wb_cgroup_children(fs, name, &below, err);
    for (size_t i = 0; i < below.n && rc == 0; i++)
        rc = gather(fs, below.v[i], depth - 1, l, err);
    wb_strv_release(&below);
    return rc;
}

static int by_pid(const void *a, const void *b)
{
    pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

    return (x > y) - (x < y);
}

int wb_cgroup_pids(const struct wb_cgroup_fs *fs, const char *name, pid_t **pids, size_t *n,
                   struct wb_err *err)
{
    struct pid_list l = {0};
    int rc = wb_cgroup_check_name(name, err);
    size_t kept = 0;

    if (rc == 0)
        rc = gather(fs, name, DEPTH_MAX, &l, err);
    if (rc < 0) {
        free(l.v);
        return rc;
    }
    if (l.n)
        qsort(l.v, l.n, sizeof(*l.v), by_pid);
    for (size_t i = 0; i < l.n; i++)
        if (i == 0 || l.v[i] != l.v[kept - 1])
            l.v[kept++] = l.v[i];
    *pids = l.v;
    *n = kept;
    return 0;
}

/* Removes the folders of a group, deepest first. 0 or -errno of the first that stays. */
static int remove_dirs(const struct wb_cgroup_fs *fs, const char *name, int depth)
{
    struct wb_strv below = {0};
    int rc = 0;

    if (depth > 0 && wb_cgroup_children(fs, name, &below, NULL) < 0)
        rc = -EIO;
    for (size_t i = 0; i < below.n; i++) {
        int one = remove_dirs(fs, below.v[i], depth - 1);

        rc = rc ? rc : one;
    }
    wb_strv_release(&below);
    for (int c = 0; c < WB_CG_N; c++) {
        WB_AUTO_FREE char *dir = used(fs, c) ? wb_cgroup_path(fs, c, name, NULL) : NULL;

        if (dir && rmdir(dir) < 0 && errno != ENOENT)
            rc = rc ? rc : -errno;
    }
    return rc;
}

int wb_cgroup_kill(const struct wb_cgroup_fs *fs, const char *name, int64_t limit_ns,
                   struct wb_err *err)
{
    int64_t end = wb_now_ns(NULL) + limit_ns, pause = WB_MS;

    for (;;) {
        pid_t *pids = NULL;
        size_t n = 0;
        int rc = wb_cgroup_pids(fs, name, &pids, &n, err);

        for (size_t i = 0; rc == 0 && i < n; i++)
            (void)kill(pids[i], SIGKILL);
        free(pids);
        if (rc < 0 || n == 0)
            return rc;
        if (wb_now_ns(NULL) >= end)
            return wb_fail(err, WB_TIMEOUT, "%zu processes of control group '%s' cannot be killed",
                           n, name);
        rc = wb_wait(NULL, -1, pause, err);
        if (rc < 0)
            return rc;
        pause = pause < 50 * WB_MS ? pause * 2 : pause;
    }
}

void wb_cgroup_remove_empty(const struct wb_cgroup_fs *fs, const char *name)
{
    for (int c = 0; c < WB_CG_N; c++) {
        WB_AUTO_FREE char *dir = used(fs, c) ? wb_cgroup_path(fs, c, name, NULL) : NULL;

        if (dir)
            (void)rmdir(dir); /* not empty or not there: both fine */
    }
}

int wb_cgroup_destroy(const struct wb_cgroup_fs *fs, const char *name, int64_t limit_ns,
                      struct wb_err *err)
{
    int64_t end = wb_now_ns(NULL) + limit_ns, pause = WB_MS;
    int rc = wb_cgroup_check_name(name, err);

    while (rc == 0) {
        int left;

        rc = wb_cgroup_kill(fs, name, end - wb_now_ns(NULL), err);
        if (rc < 0)
            break;
        /* A group stays busy for a moment after its last process was reaped. */
        left = remove_dirs(fs, name, DEPTH_MAX);
        if (left == 0)
            return 0;
        if (wb_now_ns(NULL) >= end)
            return wb_fail_sys(err, -left, "control group '%s' cannot be removed", name);
        rc = wb_wait(NULL, -1, pause, err);
        pause = pause < 50 * WB_MS ? pause * 2 : pause;
    }
    return rc;
}
