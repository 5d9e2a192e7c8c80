#include "provisioners/forms/docker_container.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "provisioners/forms/docker_image.h"
#include "provisioners/forms/docker_limits.h"
#include "provisioners/forms/docker_network.h"
#include "provisioners/forms/docker_stream.h"
#include "server/base/clock.h"

#define QUOTA_PERIOD_US 10000 /* as base/cgroup.c: both forms get the same period */
#define START_NS (120 * WB_SEC)
#define REMOVE_NS (60 * WB_SEC)
#define REMOVE_POLL_NS (20 * WB_MS)
#define GRACE_MAX_S 3600

static void container_path(struct wb_buf *path, const char *name, const char *rest)
{
    *path = (struct wb_buf)WB_BUF_INIT(8192);
    wb_buf_adds(path, "/containers/");
    wb_rest_escape(path, name);
    wb_buf_adds(path, rest);
}

/* A call on one container; answers are not looked at. */
static int act(struct wb_engine *e, const char *method, const char *name, const char *rest,
               int64_t limit_ns, struct wb_err *err)
{
    struct wb_buf path;

    container_path(&path, name, rest);
    struct wb_engine_call call = {
        .method = method, .path = wb_buf_str(&path), .limit_ns = limit_ns};
    int rc = wb_engine_do(e, &call, NULL, err);
    wb_buf_release(&path);
    return rc;
}

static char *label(const wb_json *inspect, const char *key)
{
    return wb_strdup(
        wb_json_str_or(wb_json_get(wb_json_get(inspect, "Config"), "Labels"), key, NULL));
}

/* On the host's network a container has no address of its own. */
static char *address_of(const wb_json *inspect)
{
    const wb_json *nets = wb_json_path(inspect, "NetworkSettings.Networks");

    for (void *it = wb_json_first(nets); it; it = wb_json_next(nets, it)) {
        const char *a = wb_json_str_or(wb_json_iter_value(it), "IPAddress", "");

        if (*a)
            return wb_strdup(a);
    }
    return wb_strdup("");
}

int wb_container_inspect(struct wb_engine *e, const char *name, struct wb_container *out,
                         struct wb_err *err)
{
    WB_AUTO_JSON wb_json *j = NULL;
    struct wb_buf path;

    container_path(&path, name, "/json");
    int rc = wb_engine_get(e, wb_buf_str(&path), &j, err);
    wb_buf_release(&path);
    const char *id = wb_json_str_or(j, "Id", NULL);
    if (rc == 0 && !id)
        rc = wb_fail(err, WB_PROTOCOL, "the container engine describes a container without Id");
    if (rc < 0)
        return wb_wrap(err, "container %s", name);
    const wb_json *state = wb_json_get(j, "State");
    const char *status = wb_json_str_or(state, "Status", "");
    *out = (struct wb_container){
        .id = wb_strdup(id),
        .owner = label(j, "wb.owner"),
        .campaign = label(j, "wb.campaign"),
        .run = label(j, "wb.run"),
        .image = wb_strdup(wb_json_str_or(j, "Image", "")),
        .running = wb_json_bool_or(state, "Running", false),
        .started = strcmp(status, "created") != 0,
        .tty = wb_json_bool_or(wb_json_get(j, "Config"), "Tty", false),
        .oom_killed = wb_json_bool_or(state, "OOMKilled", false),
        .exit_code = (int)wb_json_int_or(state, "ExitCode", -1),
        .pid = (pid_t)wb_json_int_or(state, "Pid", 0),
        .network = wb_strdup(wb_json_str_or(wb_json_get(j, "HostConfig"), "NetworkMode", "")),
        .address = address_of(j),
        .error = wb_strdup(wb_json_str_or(state, "Error", "")),
    };
    return 0;
}

void wb_container_release(struct wb_container *c)
{
    free(c->id);
    free(c->owner);
    free(c->campaign);
    free(c->run);
    free(c->image);
    free(c->network);
    free(c->address);
    free(c->error);
    *c = (struct wb_container){0};
}

bool wb_container_ours(const struct wb_container *c, const char *owner)
{
    return c->owner && owner && strcmp(c->owner, owner) == 0;
}

static void add_mount(wb_json *mounts, const char *dir, const char *name, const char *target,
                      bool read_only)
{
    WB_AUTO_FREE char *source = wb_strf("%s/%s", dir, name);
    wb_json *m = wb_json_object();

    /* Unlike "Binds", a mount whose source is missing is an error and not a new folder. */
    wb_json_set_str(m, "Type", "bind");
    wb_json_set_str(m, "Source", source);
    wb_json_set_str(m, "Target", target);
    wb_json_set_bool(m, "ReadOnly", read_only);
    wb_json_push(mounts, m);
}

static void add_limits(wb_json *host, const struct wb_limits *l)
{
    if (l->cpus)
        wb_json_set_str(host, "CpusetCpus", l->cpus);
    if (l->mems)
        wb_json_set_str(host, "CpusetMems", l->mems);
    if (l->memory_bytes > 0) {
        wb_json_set_int(host, "Memory", l->memory_bytes);
        wb_json_set_int(host, "MemorySwap", l->memory_bytes); /* memory and swap together */
    }
    if (l->cpu_quota > 0) {
        wb_json_set_int(host, "CpuPeriod", QUOTA_PERIOD_US);
        wb_json_set_int(host, "CpuQuota", (int64_t)(l->cpu_quota * QUOTA_PERIOD_US + 0.5));
    }
    if (l->pids > 0)
        wb_json_set_int(host, "PidsLimit", l->pids);
}

/* The run's own bridge, and the client port on the host's loopback where it is asked for. */
static void add_network(wb_json *host, const struct wb_instance_spec *spec)
{
    WB_AUTO_FREE char *network = wb_docker_network_name(spec->run);
    WB_AUTO_FREE char *inside = wb_strf("%d/tcp", spec->port);
    WB_AUTO_FREE char *outside = wb_strf("%d", spec->port);
    wb_json *ports, *list, *binding;

    wb_json_set_str(host, "NetworkMode", spec->network == WB_NETWORK_HOST ? "host" : network);
    if (spec->network != WB_NETWORK_PUBLISHED)
        return;
    ports = wb_json_object();
    list = wb_json_array();
    binding = wb_json_object();
    wb_json_set_str(binding, "HostIp", "127.0.0.1");
    wb_json_set_str(binding, "HostPort", outside);
    wb_json_push(list, binding);
    wb_json_set(ports, inside, list);
    wb_json_set(host, "PortBindings", ports);
}

static wb_json *host_config(const struct wb_form_env *env, const struct wb_instance_spec *spec)
{
    const char *socket =
        env->docker_socket && *env->docker_socket ? env->docker_socket : WB_ENGINE_SOCKET;
    wb_json *host = wb_json_object(), *mounts = wb_json_array(), *restart = wb_json_object(),
            *log = wb_json_object(), *sizes = wb_json_object();
    wb_json *ulimits = wb_docker_ulimits(socket);

    add_limits(host, &spec->limits);
    if (ulimits)
        wb_json_set(host, "Ulimits", ulimits);
    add_network(host, spec);
    wb_json_set_str(host, "UsernsMode", "host"); /* else a remapped root cannot write its data */
    wb_json_set_str(restart, "Name", "no");
    wb_json_set(host, "RestartPolicy", restart);
    /* Capped: a chatty program must not fill the disk, nor write to it much in a run. */
    wb_json_set_str(sizes, "max-size", "10m");
    wb_json_set_str(sizes, "max-file", "2");
    wb_json_set_str(log, "Type", "json-file");
    wb_json_set(log, "Config", sizes);
    wb_json_set(host, "LogConfig", log);
    add_mount(mounts, spec->dir, "config", WB_DOCKER_CONFIG, true);
    add_mount(mounts, spec->dir, "data", WB_DOCKER_DATA, false);
    add_mount(mounts, spec->dir, "log", WB_DOCKER_LOG, false);
    wb_json_set(host, "Mounts", mounts);
    return host;
}

wb_json *wb_container_body(const struct wb_form_env *env, const struct wb_instance_spec *spec)
{
    wb_json *body = wb_json_object(), *labels = wb_json_object(), *cmd = wb_json_array(),
            *vars = wb_json_array();
    WB_AUTO_FREE char *index = wb_strf("%d", spec->index);
    WB_AUTO_FREE char *user = wb_strf("%u:%u", (unsigned)geteuid(), (unsigned)getegid());

    for (char *const *a = spec->argv; *a; a++)
        wb_json_push(cmd, wb_json_str(*a));
    /* What a program gets natively (base/job.c), so that it finds the same. */
    wb_json_push(vars, wb_json_str("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:"
                                   "/bin"));
    wb_json_push(vars, wb_json_str("LANG=C.UTF-8"));
    for (char *const *v = spec->env; v && *v; v++)
        wb_json_push(vars, wb_json_str(*v));
    wb_json_set_str(labels, "wb.owner", env->owner);
    wb_json_set_str(labels, "wb.campaign", env->campaign);
    wb_json_set_str(labels, "wb.run", spec->run);
    wb_json_set_str(labels, "wb.index", index);
    wb_json_set_str(labels, "wb.kind", "instance");
    wb_json_set_str(body, "Image", spec->image);
    wb_json_set(body, "Entrypoint", wb_json_array());
    wb_json_set(body, "Cmd", cmd);
    wb_json_set(body, "Env", vars);
    wb_json_set_str(body, "WorkingDir", WB_DOCKER_ROOT);
    /* The user that runs the program natively: the data folder is his. */
    wb_json_set_str(body, "User", user);
    wb_json_set(body, "Labels", labels);
    if (spec->network == WB_NETWORK_PUBLISHED) {
        WB_AUTO_FREE char *port = wb_strf("%d/tcp", spec->port);
        wb_json *exposed = wb_json_object();

        wb_json_set(exposed, port, wb_json_object());
        wb_json_set(body, "ExposedPorts", exposed);
    }
    wb_json_set(body, "HostConfig", host_config(env, spec));
    return body;
}

static int create(struct wb_engine *e, const char *name, const wb_json *body, struct wb_err *err)
{
    struct wb_buf path = WB_BUF_INIT(4096);

    wb_buf_adds(&path, "/containers/create");
    wb_rest_add_query(&path, "name", name);
    struct wb_engine_call call = {
        .method = "POST", .path = wb_buf_str(&path), .body = body, .limit_ns = START_NS};
    int rc = wb_engine_do(e, &call, NULL, err);
    wb_buf_release(&path);
    return rc;
}

/* Makes the name free when its holder is ours: of this very run, or one that does not run any
 * more. 0: free now. */
static int free_name(struct wb_engine *e, const struct wb_form_env *env, const char *name,
                     const char *run, struct wb_err *err)
{
    struct wb_container c = {0};
    int rc = wb_container_inspect(e, name, &c, err);

    if (rc == -WB_NOT_FOUND)
        return 0; /* gone meanwhile */
    if (rc < 0)
        return rc;
    bool same_run = c.run && strcmp(c.run, run) == 0;
    if (wb_container_ours(&c, env->owner) && (same_run || !c.running))
        rc = wb_container_remove(e, c.id, err);
    else
        rc = wb_fail(err, WB_CONFLICT,
                     "the name %s is taken by a container that is not of this run (id %.12s, "
                     "owner %s, run %s): remove or rename it",
                     name, c.id, c.owner ? c.owner : "none", c.run ? c.run : "none");
    wb_container_release(&c);
    return rc;
}

/* After a failed or unanswered create or start: removes the container if it is of this run. The
 * error that is set stays the first one. */
static int undo(struct wb_engine *e, const struct wb_form_env *env, const char *name,
                const char *run, struct wb_err *err)
{
    struct wb_container c = {0};
    struct wb_err second = WB_ERR_INIT;
    int rc = wb_container_inspect(e, name, &c, &second);

    if (rc == 0 && wb_container_ours(&c, env->owner) && c.run && strcmp(c.run, run) == 0)
        rc = wb_container_remove(e, c.id, &second);
    wb_container_release(&c);
    if (rc < 0 && rc != -WB_NOT_FOUND)
        return wb_wrap(err, "container %s could not be removed again (%.200s)", name, second.root);
    return err ? -err->code : -WB_IO;
}

int wb_container_start(struct wb_engine *e, const struct wb_form_env *env, const char *name,
                       const struct wb_instance_spec *spec, struct wb_err *err)
{
    struct wb_err local = WB_ERR_INIT;
    WB_AUTO_JSON wb_json *body = wb_container_body(env, spec);

    err = err ? err : &local;
    int rc = spec->network == WB_NETWORK_HOST ? 0 : wb_docker_network_make(e, env, spec->run, err);
    if (rc < 0)
        return rc;
    rc = create(e, name, body, err);
    if (rc == -WB_CONFLICT) {
        rc = free_name(e, env, name, spec->run, err);
        if (rc < 0)
            return rc;
        rc = create(e, name, body, err);
    }
    if (rc == 0)
        rc = act(e, "POST", name, "/start", START_NS, err);
    if (rc == 0 && spec->network == WB_NETWORK_PUBLISHED)
        rc = wb_docker_proxy_place(env, spec, err);
    if (rc < 0) {
        rc = undo(e, env, name, spec->run, err);
        if (spec->network != WB_NETWORK_HOST)
            WB_IGNORE(wb_docker_network_remove(e, env, spec->run, NULL)); /* destroy tries again */
        wb_wrap(err, "starting container %s", name);
    }
    return rc;
}

int wb_container_stop(struct wb_engine *e, const char *id, int64_t grace_ns, struct wb_err *err)
{
    int64_t s = grace_ns > 0 ? (grace_ns + WB_SEC - 1) / WB_SEC : 0;

    if (s > GRACE_MAX_S)
        s = GRACE_MAX_S;
    WB_AUTO_FREE char *rest = wb_strf("/stop?t=%lld", (long long)s);
    int rc = act(e, "POST", id, rest, s * WB_SEC + REMOVE_NS, err);
    return rc == -WB_NOT_FOUND ? 0 : rc;
}

/* Waits until the engine does not know the container any more. */
static int wait_gone(struct wb_engine *e, const char *id, int64_t deadline, struct wb_err *err)
{
    for (;;) {
        struct wb_container c = {0};
        int rc = wb_container_inspect(e, id, &c, err);
        wb_container_release(&c);
        if (rc == -WB_NOT_FOUND)
            return 0;
        if (rc < 0)
            return rc;
        if (wb_now_ns(NULL) >= deadline)
            return wb_fail(err, WB_TIMEOUT, "container %s is still there %lld s after its removal",
                           id, REMOVE_NS / WB_SEC);
        rc = wb_wait(NULL, -1, REMOVE_POLL_NS, err);
        if (rc < 0)
            return rc;
    }
}

int wb_container_remove(struct wb_engine *e, const char *id, struct wb_err *err)
{
    int64_t deadline = wb_now_ns(NULL) + REMOVE_NS;
    int rc = act(e, "DELETE", id, "?force=1&v=1", REMOVE_NS, err);

    if (rc == -WB_NOT_FOUND)
        return 0;
    if (rc < 0 && rc != -WB_CONFLICT) /* conflict: another removal is in progress */
        return wb_wrap(err, "removing container %s", id);
    return wait_gone(e, id, deadline, err);
}

/* Keeps the tail of what arrives. */
struct tail {
    struct wb_buf *out;
    size_t max;
    struct wb_demux demux;
    struct wb_buf engine; /* text of the engine's own stream */
};

static int on_part(void *arg, enum wb_stream stream, const void *data, size_t n, struct wb_err *err)
{
    struct tail *t = arg;
    const char *p = data;

    if (stream == WB_STREAM_ENGINE) {
        wb_buf_add(&t->engine, p, n);
        return 0;
    }
    if (n > t->max) {
        p += n - t->max;
        n = t->max;
    }
    if (t->out->len + n > 2 * t->max)
        wb_buf_consume(t->out, t->out->len - t->max);
    wb_buf_add(t->out, p, n);
    return 0;
}

static int on_log(void *arg, const void *data, size_t n, struct wb_err *err)
{
    struct tail *t = arg;
    return wb_demux_feed(&t->demux, data, n, err);
}

int wb_container_logs(struct wb_engine *e, const struct wb_container *c, size_t max,
                      struct wb_buf *out, struct wb_err *err)
{
    struct wb_buf text = WB_BUF_INIT(2 * max + 256), path;
    struct tail t = {.out = &text, .max = max, .engine = WB_BUF_INIT(1024)};

    t.demux = (struct wb_demux){.tty = c->tty, .sink = on_part, .arg = &t};
    /* A line has at least one byte, so `max` lines hold the last max bytes. */
    WB_AUTO_FREE char *rest = wb_strf("/logs?stdout=1&stderr=1&tail=%zu", max);
    container_path(&path, c->id, rest);
    struct wb_engine_call call = {.path = wb_buf_str(&path), .data = on_log, .data_arg = &t};
    int rc = max ? wb_engine_do(e, &call, NULL, err) : 0;
    wb_buf_release(&path);
    if (rc == 0 && t.engine.len)
        rc = wb_fail(err, WB_IO, "reading logs, the container engine says: %s",
                     wb_buf_str(&t.engine));
    if (rc == 0) {
        wb_demux_truncated(&t.demux, &text);
        if (text.len > max)
            wb_buf_consume(&text, text.len - max);
        wb_buf_add(out, wb_buf_str(&text), text.len);
    }
    wb_buf_release(&text);
    wb_buf_release(&t.engine);
    return rc;
}
