/* The native form: the program straight on the host, as a job in a control group of its own. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "provisioners/forms/form.h"
#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/job.h"

#define GROUP_ROOT "weighbridge"
#define DESTROY_LIMIT_NS (10 * WB_SEC)

static char *job_dir(const char *instance_dir)
{
    return wb_strf("%s/job", instance_dir);
}

static int native_check(const struct wb_form_env *env, struct wb_err *err)
{
    if (!env->cgroups)
        return wb_fail(err, WB_UNSUPPORTED, "the native form needs control groups and root");
    return 0;
}

static int native_prepare(const struct wb_form_env *env, const struct wb_bits *bits, char **image,
                          wb_json *facts, struct wb_err *err)
{
    *image = NULL;
    wb_json_set_int(facts, "cgroup_version", wb_cgroup_version(env->cgroups));
    wb_json_set_str(facts, "bits", bits->digest);
    return 0;
}

static void native_paths(const struct wb_bits *bits, const char *instance_dir, struct wb_paths *out)
{
    out->prefix = wb_strdup(bits->prefix);
    out->config = wb_strf("%s/config", instance_dir);
    out->data = wb_strf("%s/data", instance_dir);
    out->log = wb_strf("%s/log", instance_dir);
}

static char *native_name(const char *run, int index)
{
    return wb_strf(GROUP_ROOT "/%s-db%d", run, index);
}

/* Of an instance that is started once more: its job before this one is over. */
static int forget_job(const struct wb_form_env *env, const char *dir, struct wb_err *err)
{
    int rc;

    if (!wb_path_exists(dir))
        return 0;
    rc = wb_job_stop(env->cgroups, dir, 0, 0, NULL, err);
    return rc < 0 ? rc : wb_remove_tree(dir, err);
}

static int native_start(const struct wb_form_env *env, const struct wb_instance_spec *spec,
                        struct wb_err *err)
{
    WB_AUTO_FREE char *dir = job_dir(spec->dir);
    WB_AUTO_FREE char *group = native_name(spec->run, spec->index);
    WB_AUTO_FREE char *mark =
        wb_strf("wb.owner=%s;wb.campaign=%s;wb.run=%s", env->owner, env->campaign, spec->run);
    struct wb_strv vars = {0};
    struct wb_job_spec job = {.dir = dir,
                              .group = group,
                              .argv = spec->argv,
                              .cwd = spec->dir,
                              .limits = spec->limits,
                              .mark = mark};
    int rc;

    /* As every form does; the recipe's own come later and win. */
    wb_strv_add(&vars, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    wb_strv_add(&vars, "LANG=C.UTF-8");
    for (char *const *v = spec->env; v && *v; v++)
        wb_strv_add(&vars, *v);
    job.env = vars.v;
    rc = forget_job(env, dir, err);
    if (rc == 0)
        rc = wb_job_start(env->cgroups, &job, err);
    wb_strv_release(&vars);
    return rc;
}

static int native_status(const struct wb_form_env *env, const char *name, const char *dir,
                         struct wb_instance_status *out, struct wb_err *err)
{
    WB_AUTO_FREE char *jd = job_dir(dir);
    struct wb_instance_status s = {.exit_code = -1};
    struct wb_job_status js;
    struct wb_cgroup_stats cs;
    int rc;

    if (!wb_path_exists(jd)) {
        s.state = WB_INSTANCE_GONE;
        *out = s;
        return 0;
    }
    rc = wb_job_poll(jd, &js, err);
    if (rc < 0)
        return rc;
    s.state = js.state == WB_JOB_RUNNING ? WB_INSTANCE_RUNNING
              : js.state == WB_JOB_LOST  ? WB_INSTANCE_GONE
                                         : WB_INSTANCE_EXITED;
    s.exit_code = js.exit_code;
    s.signal = js.signal;
    s.pid = js.pid;
    s.oom_killed = js.oom_kills > 0;
    if (js.state == WB_JOB_RUNNING && wb_cgroup_stats(env->cgroups, name, &cs, NULL) == 0)
        s.oom_killed = cs.oom_kills > 0;
    if (strlen(name) < sizeof(s.cgroup))
        memcpy(s.cgroup, name, strlen(name) + 1);
    *out = s;
    return 0;
}

static int native_stop(const struct wb_form_env *env, const char *name, const char *dir,
                       int64_t grace_ns, struct wb_err *err)
{
    WB_AUTO_FREE char *jd = job_dir(dir);

    return wb_job_stop(env->cgroups, jd, SIGTERM, grace_ns, NULL, err);
}

static int native_logs(const struct wb_form_env *env, const char *name, const char *dir, size_t max,
                       struct wb_buf *out, struct wb_err *err)
{
    WB_AUTO_FREE char *jd = job_dir(dir);
    int rc = wb_job_log_tail(jd, "stdout.log", max, out, err);

    return rc < 0 ? rc : wb_job_log_tail(jd, "stderr.log", max, out, err);
}

static int native_destroy(const struct wb_form_env *env, const char *name, const char *dir,
                          struct wb_err *err)
{
    WB_AUTO_FREE char *jd = job_dir(dir);
    int rc = wb_job_stop(env->cgroups, jd, 0, 0, NULL, err);

    if (rc == 0)
        rc = wb_cgroup_destroy(env->cgroups, name, DESTROY_LIMIT_NS, err);
    wb_cgroup_remove_empty(env->cgroups, GROUP_ROOT);
    return rc;
}

/* The value of key in a mark "k=v;k=v"; caller frees; NULL when absent. */
static char *mark_value(const char *mark, const char *key)
{
    size_t n = strlen(key);

    for (const char *p = mark; p && *p;) {
        if (!strncmp(p, key, n) && p[n] == '=')
            return wb_strndup(p + n + 1, strcspn(p + n + 1, ";"));
        p = strchr(p, ';');
        if (p)
            p++;
    }
    return NULL;
}

/* WB_MARK in the environment of a process; caller frees; NULL when it has none. */
static char *mark_of(pid_t pid)
{
    WB_AUTO_FREE char *path = wb_strf("/proc/%d/environ", (int)pid);
    struct wb_buf b = WB_BUF_INIT(1u << 20);
    char *mark = NULL;

    if (wb_file_read_small(path, &b, NULL) == 0)
        for (size_t i = 0; i < b.len && !mark; i += strlen(b.data + i) + 1)
            if (!strncmp(b.data + i, "WB_MARK=", 8))
                mark = wb_strdup(b.data + i + 8);
    wb_buf_release(&b);
    return mark;
}

/* Groups are ours by name; whose they are says the mark of any process in them. An empty group
 * has no owner and does no harm: it is listed without one. */
static int native_list_owned(const struct wb_form_env *env, struct wb_owned_list *out,
                             struct wb_err *err)
{
    struct wb_strv groups = {0};
    int rc = wb_cgroup_children(env->cgroups, GROUP_ROOT, &groups, err);

    for (size_t i = 0; rc == 0 && i < groups.n; i++) {
        WB_AUTO_FREE char *mark = NULL;
        WB_AUTO_FREE char *owner = NULL;
        WB_AUTO_FREE char *campaign = NULL;
        WB_AUTO_FREE char *run = NULL;
        pid_t *pids = NULL;
        size_t n = 0;

        rc = wb_cgroup_pids(env->cgroups, groups.v[i], &pids, &n, err);
        for (size_t k = 0; rc == 0 && k < n && !mark; k++)
            mark = mark_of(pids[k]);
        free(pids);
        owner = mark_value(mark, "wb.owner");
        campaign = mark_value(mark, "wb.campaign");
        run = mark_value(mark, "wb.run");
        if (rc == 0)
            wb_owned_add(out, "group", groups.v[i], owner, campaign, run);
    }
    wb_strv_release(&groups);
    return rc;
}

static int native_reap(const struct wb_form_env *env, const struct wb_owned *what,
                       struct wb_err *err)
{
    int rc = wb_cgroup_destroy(env->cgroups, what->id, DESTROY_LIMIT_NS, err);

    wb_cgroup_remove_empty(env->cgroups, GROUP_ROOT);
    return rc;
}

const struct wb_form_ops wb_form_native = {
    .name = "native",
    .summary = "the program straight on the host, in a control group",
    .check = native_check,
    .prepare = native_prepare,
    .paths = native_paths,
    .name_of = native_name,
    .start = native_start,
    .status = native_status,
    .stop = native_stop,
    .logs = native_logs,
    .destroy = native_destroy,
    .list_owned = native_list_owned,
    .reap = native_reap,
};
