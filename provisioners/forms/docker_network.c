#include "provisioners/forms/docker_network.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/buf.h"
#include "server/base/file.h"

#define PROXY "docker-proxy"

char *wb_docker_network_name(const char *run)
{
    return wb_strf("wb-%s", run);
}

char *wb_docker_proxy_group(const char *run, int index)
{
    return wb_strf("weighbridge/%s-port%d", run, index);
}

int wb_docker_network_check(struct wb_engine *e, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *info = NULL;
    struct wb_buf have = WB_BUF_INIT(512);
    int rc = wb_engine_get(e, "/info", &info, err);
    const wb_json *list = wb_json_path(info, "Plugins.Network");

    if (rc < 0)
        return wb_wrap(err, "networks of the container engine");
    for (size_t i = 0; i < wb_json_len(list); i++) {
        const char *name = wb_json_string(wb_json_at(list, i));

        if (name && strcmp(name, "bridge") == 0) {
            wb_buf_release(&have);
            return 0;
        }
        wb_buf_addf(&have, "%s%s", have.len ? ", " : "", name ? name : "?");
    }
    rc = wb_fail(err, WB_UNSUPPORTED,
                 "networks published and routed need the bridge driver of the container engine, "
                 "which has only: %s; use network: host",
                 have.len ? wb_buf_str(&have) : "none");
    wb_buf_release(&have);
    return rc;
}

static void network_path(struct wb_buf *path, const char *run)
{
    WB_AUTO_FREE char *name = wb_docker_network_name(run);

    *path = (struct wb_buf)WB_BUF_INIT(8192);
    wb_buf_adds(path, "/networks/");
    wb_rest_escape(path, name);
}

/* Whose the network of that name is. WB_NOT_FOUND when there is none, WB_CONFLICT with the words
 * when it is not of this run. */
static int look(struct wb_engine *e, const struct wb_form_env *env, const char *run,
                struct wb_err *err)
{
    WB_AUTO_JSON wb_json *j = NULL;
    struct wb_buf path;
    const char *owner, *of;
    int rc;

    network_path(&path, run);
    rc = wb_engine_get(e, wb_buf_str(&path), &j, err);
    wb_buf_release(&path);
    if (rc < 0)
        return rc;
    owner = wb_json_str_or(wb_json_get(j, "Labels"), "wb.owner", NULL);
    of = wb_json_str_or(wb_json_get(j, "Labels"), "wb.run", NULL);
    if (owner && env->owner && strcmp(owner, env->owner) == 0 && of && strcmp(of, run) == 0)
        return 0;
    return wb_fail(err, WB_CONFLICT,
                   "the network wb-%s is not of this run (owner %s, run %s): remove or rename it",
                   run, owner ? owner : "none", of ? of : "none");
}

static wb_json *network_body(const struct wb_form_env *env, const char *run)
{
    WB_AUTO_FREE char *name = wb_docker_network_name(run);
    wb_json *body = wb_json_object(), *labels = wb_json_object(), *options = wb_json_object();

    wb_json_set_str(labels, "wb.owner", env->owner);
    wb_json_set_str(labels, "wb.campaign", env->campaign);
    wb_json_set_str(labels, "wb.run", run);
    wb_json_set_str(labels, "wb.kind", "network");
    /* Containers answer the host and nobody else: no rule for the world outside is needed. */
    wb_json_set_str(options, "com.docker.network.bridge.enable_ip_masquerade", "false");
    wb_json_set_str(body, "Name", name);
    wb_json_set_str(body, "Driver", "bridge");
    wb_json_set_bool(body, "CheckDuplicate", true);
    wb_json_set(body, "Options", options);
    wb_json_set(body, "Labels", labels);
    return body;
}

int wb_docker_network_make(struct wb_engine *e, const struct wb_form_env *env, const char *run,
                           struct wb_err *err)
{
    WB_AUTO_JSON wb_json *body = NULL;
    struct wb_err why = WB_ERR_INIT;
    int rc = look(e, env, run, &why);

    if (rc == 0)
        return 0;
    if (rc != -WB_NOT_FOUND)
        return wb_fail(err, why.code, "%s", why.root);
    body = network_body(env, run);
    struct wb_engine_call call = {.method = "POST", .path = "/networks/create", .body = body};
    rc = wb_engine_do(e, &call, NULL, err);
    return rc < 0 ? wb_wrap(err, "network wb-%s", run) : 0;
}

int wb_docker_network_remove(struct wb_engine *e, const struct wb_form_env *env, const char *run,
                             struct wb_err *err)
{
    struct wb_err why = WB_ERR_INIT;
    struct wb_buf path;
    int rc = look(e, env, run, &why);

    if (rc == -WB_NOT_FOUND || rc == -WB_CONFLICT) /* none, or a stranger's: not ours to remove */
        return 0;
    if (rc < 0)
        return wb_fail(err, why.code, "%s", why.root);
    network_path(&path, run);
    struct wb_engine_call call = {.method = "DELETE", .path = wb_buf_str(&path)};
    rc = wb_engine_do(e, &call, NULL, &why);
    wb_buf_release(&path);
    if (rc == -WB_NOT_FOUND || (rc < 0 && strstr(why.root, "active endpoints")))
        return 0;
    return rc < 0 ? wb_fail(err, why.code, "network wb-%s: %s", run, why.root) : 0;
}

/* ---- the port proxy ---- */

/* Whether a process is the proxy of this host port: its arguments name both. */
static bool is_proxy(const char *pid, const char *port)
{
    WB_AUTO_FREE char *path = wb_strf("/proc/%s/cmdline", pid);
    struct wb_buf b = WB_BUF_INIT(64 << 10);
    bool named = false, of_port = false;

    if (wb_file_read_small(path, &b, NULL) == 0) {
        for (size_t at = 0; at < b.len; at += strlen(b.data + at) + 1) {
            const char *word = b.data + at, *slash = strrchr(word, '/');

            if (at == 0)
                named = strcmp(slash ? slash + 1 : word, PROXY) == 0;
            else if (strcmp(word, "-host-port") == 0 && at + strlen(word) + 1 < b.len)
                of_port = strcmp(word + strlen(word) + 1, port) == 0;
        }
    }
    wb_buf_release(&b);
    return named && of_port;
}

int wb_docker_proxy_place(const struct wb_form_env *env, const struct wb_instance_spec *spec,
                          struct wb_err *err)
{
    const struct wb_limits limits = {.cpus = spec->limits.cpus, .mems = spec->limits.mems};
    WB_AUTO_FREE char *group = wb_docker_proxy_group(spec->run, spec->index);
    WB_AUTO_FREE char *port = wb_strf("%d", spec->port);
    struct wb_strv pids = {0};
    int rc = env->cgroups ? wb_list_dir("/proc", &pids, err) : 0;

    for (size_t i = 0; rc == 0 && i < pids.n; i++) {
        if (!isdigit((unsigned char)pids.v[i][0]) || !is_proxy(pids.v[i], port))
            continue;
        if (!wb_cgroup_exists(env->cgroups, group))
            rc = wb_cgroup_create(env->cgroups, group, &limits, err);
        if (rc == 0)
            rc = wb_cgroup_add(env->cgroups, group, (pid_t)strtol(pids.v[i], NULL, 10), err);
    }
    wb_strv_release(&pids);
    return rc < 0 ? wb_wrap(err, "the proxy of port %s", port) : 0;
}
