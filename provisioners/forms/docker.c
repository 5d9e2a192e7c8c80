/*
 * The docker form: instances as containers of a Docker Engine on this host, with the same limits,
 * user, folders and bits as the native form, on the host's network or on one of the run's own.
 *
 * Operations that clean up or look (status, stop, logs, destroy, list_owned, reap) do not heed the
 * cancel token: after a cancel they are what is left to be done.
 */
#include "provisioners/forms/docker_container.h"
#include "provisioners/forms/docker_image.h"
#include "provisioners/forms/docker_network.h"
#include "provisioners/forms/form.h"
#include "provisioners/forms/rootfs.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"

#define SIGNAL_BASE 128 /* exit code of a program ended by signal n is 128 + n */
#define SIGNAL_MOST 64
#define GROUP_LIMIT_NS (10 * WB_SEC)

static int docker_check(const struct wb_form_env *env, struct wb_err *err)
{
    WB_AUTO_ENGINE struct wb_engine *e = NULL;
    int rc = wb_engine_open(env->docker_socket, &e, err);

    if (rc == 0 && (env->networks & ~(1u << WB_NETWORK_HOST)))
        rc = wb_docker_network_check(e, err);
    return rc < 0 ? rc : wb_rootfs_check(env->cache_dir, err);
}

/* Facts about the engine for the record, under names of ours. */
static int engine_facts(struct wb_engine *e, wb_json *facts, struct wb_err *err)
{
    static const char *const from_info[][2] = {{"storage_driver", "Driver"},
                                               {"cgroup_driver", "CgroupDriver"},
                                               {"cgroup_version", "CgroupVersion"},
                                               {"default_runtime", "DefaultRuntime"},
                                               {"live_restore", "LiveRestoreEnabled"},
                                               {"security", "SecurityOptions"},
                                               {"warnings", "Warnings"}};
    WB_AUTO_JSON wb_json *info = NULL;
    WB_AUTO_JSON wb_json *version = NULL;
    bool rootless = false;
    int rc = wb_engine_get(e, "/info", &info, err);

    if (rc == 0)
        rc = wb_engine_get(e, "/version", &version, err);
    if (rc < 0)
        return wb_wrap(err, "facts about the container engine");
    wb_json_set_str(facts, "version", wb_json_str_or(version, "Version", NULL));
    wb_json_set_str(facts, "api", e->api);
    wb_json_set_str(facts, "api_most", e->api_most);
    for (size_t i = 0; i < WB_LEN(from_info); i++)
        wb_json_set(facts, from_info[i][0], wb_json_copy(wb_json_get(info, from_info[i][1])));
    const wb_json *security = wb_json_get(info, "SecurityOptions");
    for (size_t i = 0; i < wb_json_len(security); i++) {
        const char *option = wb_json_string(wb_json_at(security, i));
        rootless = rootless || (option && strstr(option, "name=rootless"));
    }
    wb_json_set_bool(facts, "rootless", rootless);
    wb_json *parts = wb_json_object();
    const wb_json *list = wb_json_get(version, "Components");
    for (size_t i = 0; i < wb_json_len(list); i++) {
        const wb_json *c = wb_json_at(list, i);
        wb_json_set_str(parts, wb_json_str_or(c, "Name", "unnamed"),
                        wb_json_str_or(c, "Version", NULL));
    }
    wb_json_set(facts, "components", parts);
    return 0;
}

static int docker_prepare(const struct wb_form_env *env, const struct wb_bits *bits, char **image,
                          wb_json *facts, struct wb_err *err)
{
    WB_AUTO_ENGINE struct wb_engine *e = NULL;
    wb_json *engine = wb_json_object(), *about = wb_json_object();
    int rc = wb_engine_open(env->docker_socket, &e, err);

    if (rc == 0)
        rc = engine_facts(e, engine, err);
    if (rc == 0)
        rc = wb_docker_image_make(e, env, bits, image, about, err);
    wb_json_set(facts, "engine", engine);
    wb_json_set(facts, "image", about);
    return rc;
}

static void docker_paths(const struct wb_bits *bits, const char *instance_dir, struct wb_paths *out)
{
    *out = (struct wb_paths){.prefix = wb_strdup(WB_DOCKER_PREFIX),
                             .config = wb_strdup(WB_DOCKER_CONFIG),
                             .data = wb_strdup(WB_DOCKER_DATA),
                             .log = wb_strdup(WB_DOCKER_LOG)};
}

static char *docker_name_of(const char *run, int index)
{
    return wb_strf("wb-%s-db%d", run, index);
}

/* The parts of a name that docker_name_of made; false for any other. Caller frees *run. */
static bool split_name(const char *name, char **run, int *index)
{
    const char *db = strstr(name, "-db");
    char *end = NULL;

    if (strncmp(name, "wb-", 3) != 0 || !db || db == name + 3)
        return false;
    *index = (int)strtol(db + 3, &end, 10);
    if (end == db + 3 || *end)
        return false;
    *run = wb_strndup(name + 3, (size_t)(db - name - 3));
    return true;
}

/* What an instance has beside its container: its port's proxy group, and with the last one of a run
 * the run's network. `network` is the container's, NULL when it is not known any more. */
static int remove_around(struct wb_engine *e, const struct wb_form_env *env, const char *name,
                         const char *network, struct wb_err *err)
{
    WB_AUTO_FREE char *run = NULL;
    int index = 0, rc = 0;

    if (!split_name(name, &run, &index) || (network && strcmp(network, "host") == 0))
        return 0;
    if (env->cgroups) {
        WB_AUTO_FREE char *group = wb_docker_proxy_group(run, index);

        rc = wb_cgroup_destroy(env->cgroups, group, GROUP_LIMIT_NS, err);
        wb_cgroup_remove_empty(env->cgroups, "weighbridge");
    }
    return rc < 0 ? rc : wb_docker_network_remove(e, env, run, err);
}

static int docker_start(const struct wb_form_env *env, const struct wb_instance_spec *spec,
                        struct wb_err *err)
{
    WB_AUTO_ENGINE struct wb_engine *e = NULL;
    WB_AUTO_FREE char *name = docker_name_of(spec->run, spec->index);

    if (!spec->image)
        return wb_fail(err, WB_INVALID, "container %s: no image was prepared", name);
    if (wb_cancelled(env->cancel))
        return wb_fail(err, WB_CANCELLED, "cancelled before container %s was made", name);
    int rc = wb_engine_open(env->docker_socket, &e, err);
    return rc < 0 ? rc : wb_container_start(e, env, name, spec, err);
}

/* Opens the engine and looks at a container. Not ours counts as absent: WB_NOT_FOUND. */
static int open_ours(const struct wb_form_env *env, const char *name, struct wb_engine **e,
                     struct wb_container *c, struct wb_err *err)
{
    int rc = wb_engine_open(env->docker_socket, e, err);

    if (rc == 0)
        rc = wb_container_inspect(*e, name, c, err);
    if (rc == 0 && !wb_container_ours(c, env->owner)) {
        rc = wb_fail(err, WB_NOT_FOUND, "container %s is not ours (owner %s)", name,
                     c->owner ? c->owner : "none");
        wb_container_release(c);
    }
    return rc;
}

static void set_exit(const struct wb_container *c, struct wb_instance_status *out)
{
    out->state = WB_INSTANCE_EXITED;
    out->exit_code = -1;
    if (!c->started)
        return;
    if (c->exit_code > SIGNAL_BASE && c->exit_code <= SIGNAL_BASE + SIGNAL_MOST)
        out->signal = c->exit_code - SIGNAL_BASE;
    else
        out->exit_code = c->exit_code;
}

static void set_helper(const struct wb_form_env *env, const char *name,
                       struct wb_instance_status *s)
{
    WB_AUTO_FREE char *run = NULL;
    int index = 0;

    if (!env->cgroups || !split_name(name, &run, &index))
        return;
    WB_AUTO_FREE char *group = wb_docker_proxy_group(run, index);

    if (wb_cgroup_exists(env->cgroups, group) && strlen(group) < sizeof s->helper)
        memcpy(s->helper, group, strlen(group) + 1);
}

static int docker_status(const struct wb_form_env *env, const char *name, const char *dir,
                         struct wb_instance_status *out, struct wb_err *err)
{
    WB_AUTO_ENGINE struct wb_engine *e = NULL;
    struct wb_container c = {0};
    struct wb_instance_status s = {.exit_code = -1};
    int rc = open_ours(env, name, &e, &c, err);

    if (rc == -WB_NOT_FOUND) {
        *out = (struct wb_instance_status){.state = WB_INSTANCE_GONE, .exit_code = -1};
        return 0;
    }
    if (rc < 0)
        return rc;
    s.oom_killed = c.oom_killed;
    if (c.running) {
        WB_AUTO_FREE char *group = NULL;
        s.state = WB_INSTANCE_RUNNING;
        s.pid = c.pid;
        /* A process that ends meanwhile has no group; the next look says so. */
        if (c.pid > 0 && env->cgroups && wb_cgroup_of_pid(env->cgroups, c.pid, &group, NULL) == 0 &&
            strlen(group) < sizeof s.cgroup)
            memcpy(s.cgroup, group, strlen(group) + 1);
        set_helper(env, name, &s);
        if (strlen(c.address) < sizeof s.address)
            memcpy(s.address, c.address, strlen(c.address) + 1);
    } else {
        set_exit(&c, &s);
    }
    wb_container_release(&c);
    *out = s;
    return 0;
}

static int docker_stop(const struct wb_form_env *env, const char *name, const char *dir,
                       int64_t grace_ns, struct wb_err *err)
{
    WB_AUTO_ENGINE struct wb_engine *e = NULL;
    struct wb_container c = {0};
    int rc = open_ours(env, name, &e, &c, err);

    if (rc == 0 && c.running)
        rc = wb_container_stop(e, c.id, grace_ns, err);
    wb_container_release(&c);
    return rc == -WB_NOT_FOUND ? 0 : rc;
}

static int docker_logs(const struct wb_form_env *env, const char *name, const char *dir, size_t max,
                       struct wb_buf *out, struct wb_err *err)
{
    WB_AUTO_ENGINE struct wb_engine *e = NULL;
    struct wb_container c = {0};
    int rc = open_ours(env, name, &e, &c, err);

    if (rc == 0)
        rc = wb_container_logs(e, &c, max, out, err);
    wb_container_release(&c);
    return rc < 0 ? wb_wrap(err, "logs of %s", name) : 0;
}

static int docker_destroy(const struct wb_form_env *env, const char *name, const char *dir,
                          struct wb_err *err)
{
    WB_AUTO_ENGINE struct wb_engine *e = NULL;
    struct wb_container c = {0};
    WB_AUTO_FREE char *network = NULL;
    int rc = open_ours(env, name, &e, &c, err);

    if (rc == 0) {
        network = WB_STEAL(c.network);
        rc = wb_container_remove(e, c.id, err);
    }
    wb_container_release(&c);
    if (rc < 0 && rc != -WB_NOT_FOUND)
        return rc;
    return remove_around(e, env, name, network, err);
}

/* The kinds of things an engine can hold for us, and how its lists look. */
static const struct {
    const char *kind, *list, *remove; /* remove: path before the id */
    const char *items;                /* key of the array in the answer; NULL: the answer itself */
} kinds[] = {
    {"container", "/containers/json?all=1", "/containers/", NULL},
    {"network", "/networks", "/networks/", NULL},
    {"volume", "/volumes", "/volumes/", "Volumes"},
};

static void add_item(struct wb_owned_list *out, const char *kind, const wb_json *item)
{
    const wb_json *labels = wb_json_get(item, "Labels");
    const char *name = wb_json_string(wb_json_at(wb_json_get(item, "Names"), 0));

    if (!name)
        name = wb_json_str_or(item, "Name", wb_json_str_or(item, "Id", NULL));
    if (name)
        wb_owned_add(out, kind, name + (*name == '/'), wb_json_str_or(labels, "wb.owner", NULL),
                     wb_json_str_or(labels, "wb.campaign", NULL),
                     wb_json_str_or(labels, "wb.run", NULL));
}

static int list_kind(struct wb_engine *e, size_t k, const char *label, struct wb_owned_list *out,
                     struct wb_err *err)
{
    struct wb_buf path = WB_BUF_INIT(8192);
    WB_AUTO_JSON wb_json *answer = NULL;

    wb_buf_adds(&path, kinds[k].list);
    wb_engine_add_labels(&path, (const char *const[]){label, NULL});
    int rc = wb_engine_get(e, wb_buf_str(&path), &answer, err);
    wb_buf_release(&path);
    if (rc < 0)
        return wb_wrap(err, "listing %ss", kinds[k].kind);
    const wb_json *items = kinds[k].items ? wb_json_get(answer, kinds[k].items) : answer;
    for (size_t i = 0; i < wb_json_len(items); i++)
        add_item(out, kinds[k].kind, wb_json_at(items, i));
    return 0;
}

static int docker_list_owned(const struct wb_form_env *env, struct wb_owned_list *out,
                             struct wb_err *err)
{
    WB_AUTO_ENGINE struct wb_engine *e = NULL;
    WB_AUTO_FREE char *label =
        env->owner ? wb_strf("wb.owner=%s", env->owner) : wb_strdup("wb.owner");
    int rc = wb_engine_open(env->docker_socket, &e, err);

    for (size_t k = 0; rc == 0 && k < WB_LEN(kinds); k++)
        rc = list_kind(e, k, label, out, err);
    return rc;
}

/* Removes a network or volume after a look at its owner. */
static int reap_other(struct wb_engine *e, const char *before, const struct wb_owned *what,
                      const char *owner, struct wb_err *err)
{
    struct wb_buf path = WB_BUF_INIT(8192);
    WB_AUTO_JSON wb_json *item = NULL;

    wb_buf_adds(&path, before);
    wb_rest_escape(&path, what->id);
    int rc = wb_engine_get(e, wb_buf_str(&path), &item, err);
    const char *label = wb_json_str_or(wb_json_get(item, "Labels"), "wb.owner", NULL);
    if (rc == 0 && (!label || strcmp(label, owner) != 0))
        rc = wb_fail(err, WB_CONFLICT, "%s %s is not ours (owner %s)", what->kind, what->id,
                     label ? label : "none");
    if (rc == 0)
        rc = wb_engine_do(
            e, &(struct wb_engine_call){.method = "DELETE", .path = wb_buf_str(&path)}, NULL, err);
    wb_buf_release(&path);
    return rc == -WB_NOT_FOUND ? 0 : rc;
}

static int reap_container(struct wb_engine *e, const struct wb_form_env *env,
                          const struct wb_owned *what, const char *owner, struct wb_err *err)
{
    struct wb_container c = {0};
    WB_AUTO_FREE char *network = NULL;
    int rc = wb_container_inspect(e, what->id, &c, err);

    if (rc == 0 && !wb_container_ours(&c, owner))
        rc = wb_fail(err, WB_CONFLICT, "container %s is not ours (owner %s)", what->id,
                     c.owner ? c.owner : "none");
    if (rc == 0) {
        network = WB_STEAL(c.network);
        rc = wb_container_remove(e, c.id, err);
    }
    wb_container_release(&c);
    if (rc < 0 && rc != -WB_NOT_FOUND)
        return rc;
    struct wb_form_env of_owner = *env; /* a reap may be for any owner */

    of_owner.owner = owner;
    return remove_around(e, &of_owner, what->id, network, err);
}

static int docker_reap(const struct wb_form_env *env, const struct wb_owned *what,
                       struct wb_err *err)
{
    WB_AUTO_ENGINE struct wb_engine *e = NULL;
    const char *owner = env->owner ? env->owner : what->owner;

    for (size_t k = 0; k < WB_LEN(kinds); k++) {
        if (strcmp(kinds[k].kind, what->kind) != 0)
            continue;
        if (!owner)
            return wb_fail(err, WB_INVALID, "%s %s has no owner: not removed", what->kind,
                           what->id);
        int rc = wb_engine_open(env->docker_socket, &e, err);
        if (rc < 0)
            return rc;
        return k == 0 ? reap_container(e, env, what, owner, err)
                      : reap_other(e, kinds[k].remove, what, owner, err);
    }
    return wb_fail(err, WB_INVALID, "'%s' is nothing that the docker form makes", what->kind);
}

const struct wb_form_ops wb_form_docker = {
    .name = "docker",
    .summary = "containers of a Docker Engine on this host",
    .check = docker_check,
    .prepare = docker_prepare,
    .paths = docker_paths,
    .name_of = docker_name_of,
    .start = docker_start,
    .status = docker_status,
    .stop = docker_stop,
    .logs = docker_logs,
    .destroy = docker_destroy,
    .list_owned = docker_list_owned,
    .reap = docker_reap,
};
