/* From empty folders to instances that are ready, of the right version, as configured, in place. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/job.h"
#include "server/engine/complete.h"
#include "server/engine/data.h"
#include "server/engine/leftovers.h"
#include "server/engine/probe.h"
#include "server/engine/run.h"
#include "server/engine/steps.h"
#include "server/engine/undo.h"

/* Planned ports lie apart from the defaults, so that a database that is already there is not met.
 */
#define PORT_OFFSET 10000
#define PORT_TRIES 200
#define LOOPBACK "127.0.0.1"
#define ANY_ADDRESS "0.0.0.0"
#define READY_FIRST_PAUSE_NS (5 * WB_MS)
#define READY_PAUSE_NS (100 * WB_MS)
/* Between good answers of a cluster: longer than its nodes take to tell each other something. */
#define READY_GOOD_PAUSE_NS WB_SEC
#define DEATH_PAUSE_NS (20 * WB_MS)
#define DEATH_LIMIT_NS (15 * WB_SEC)
#define LAST_WORDS_MAX 4096

/* A name as variables have it; caller frees. */
static char *variable(const char *text)
{
    char *name = wb_strdup(text);

    for (char *c = name; *c; c++)
        *c = isalnum((unsigned char)*c) ? (char)toupper((unsigned char)*c) : '_';
    return name;
}

static void setting_env(const struct wb_setting *s, struct wb_strv *env)
{
    WB_AUTO_FREE char *name = variable(s->name);

    wb_strv_addf(env, "WB_SETTING_%s=%s", name, s->value);
}

static void port_env(const struct wb_recipe_port *p, int port, struct wb_strv *env)
{
    WB_AUTO_FREE char *name = variable(p->name);

    wb_strv_addf(env, "WB_PORT_%s=%d", name, port);
}

/* The program that asks a database by CQL lies beside the load generator. */
static void ask_env(const char *load_program, struct wb_strv *env)
{
    const char *slash = strrchr(load_program, '/');

    wb_strv_addf(env, "WB_ASK=%.*swb-ask", slash ? (int)(slash + 1 - load_program) : 0,
                 load_program);
}

/* The members as clients reach them, in their order: "127.0.0.1:16379 127.0.0.1:16380". Empty
 * until all have their place. */
static void add_peers(const struct wb_run *r, struct wb_strv *env)
{
    struct wb_buf b = WB_BUF_INIT(8192);

    for (int i = 0; i < r->ninstances; i++) {
        const struct wb_instance *in = &r->instances[i];

        if (!in->port) {
            wb_buf_clear(&b);
            break;
        }
        if (in->member)
            wb_buf_addf(&b, "%s%s:%d", b.len ? " " : "", in->host[0] ? in->host : LOOPBACK,
                        in->port);
    }
    wb_strv_addf(env, "WB_PEERS=%s", wb_buf_str(&b));
    wb_buf_release(&b);
}

static void add_place(const struct wb_run *r, const struct wb_instance *in, struct wb_strv *env)
{
    int before = 0;

    for (int i = 0; i < in->index; i++)
        before += r->instances[i].member;
    wb_strv_addf(env, "WB_INSTANCE=%d", in->member ? before : in->index);
    wb_strv_addf(env, "WB_INSTANCES=%d", wb_run_members(r));
    if (!in->member)
        wb_strv_add(env, "WB_JOINS=1");
}

void wb_run_step_env(const struct wb_run *r, const struct wb_instance *in, struct wb_strv *env)
{
    const struct wb_study *s = r->e->study;

    wb_strv_add(env, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    wb_strv_add(env, "LANG=C.UTF-8");
    wb_strv_addf(env, "WB_MARK=wb.owner=%s;wb.campaign=%s;wb.run=%s", r->e->form_env.owner,
                 r->e->form_env.campaign, r->id);
    wb_strv_addf(env, "WB_RECIPE_DIR=%s", s->recipe->dir);
    wb_strv_addf(env, "WB_VERSION=%s", s->version->version);
    wb_strv_addf(env, "WB_PREFIX=%s", r->e->bits.prefix);
    wb_strv_addf(env, "WB_HOST=%s", in->host[0] ? in->host : LOOPBACK);
    wb_strv_addf(env, "WB_PORT=%d", in->port);
    /* Where the program itself listens: behind a network of its own, on all of its addresses. */
    wb_strv_addf(env, "WB_IN_HOST=%s",
                 r->arm->setup->network != WB_NETWORK_HOST ? ANY_ADDRESS
                 : in->host[0]                             ? in->host
                                                           : LOOPBACK);
    wb_strv_addf(env, "WB_NETWORK=%s", wb_network_names[r->arm->setup->network]);
    for (size_t i = 0; i < s->recipe->nports; i++)
        port_env(&s->recipe->ports[i], in->ports[i], env);
    ask_env(r->e->spec->load_program, env);
    add_place(r, in, env);
    wb_strv_addf(env, "WB_TOPOLOGY=%s", r->arm->setup->topology);
    add_peers(r, env);
    wb_strv_addf(env, "WB_MEMORY_BYTES=%lld", (long long)r->arm->parts[in->index].memory_bytes);
    wb_strv_addf(env, "WB_CPUS=%s", r->arm->parts[in->index].cpus);
    wb_strv_addf(env, "WB_CONFIG_DIR=%s/config", in->dir);
    wb_strv_addf(env, "WB_DATA_DIR=%s/data", in->dir);
    wb_strv_addf(env, "WB_LOG_DIR=%s/log", in->dir);
    wb_strv_addf(env, "WB_IN_PREFIX=%s", in->paths.prefix);
    wb_strv_addf(env, "WB_IN_CONFIG_DIR=%s", in->paths.config);
    wb_strv_addf(env, "WB_IN_DATA_DIR=%s", in->paths.data);
    wb_strv_addf(env, "WB_IN_LOG_DIR=%s", in->paths.log);
    for (size_t i = 0; i < r->arm->nsettings; i++)
        setting_env(&r->arm->settings[i], env);
}

int wb_run_step(struct wb_run *r, const struct wb_instance *in, enum wb_step which, int *exit_code,
                wb_json **out, struct wb_err *err)
{
    struct wb_strv env = {0};
    int rc = 0;

    *exit_code = 0;
    if (!r->e->study->recipe->has_step[which])
        return 0;
    wb_run_step_env(r, in, &env);
    rc = wb_step_run(r->e->study->recipe, which, env.v, r->e->spec->cancel, exit_code, out, err);
    wb_strv_release(&env);
    return rc;
}

/* The first port from `from` on that nothing listens on, at any address of the host. */
static int free_port(struct wb_run *r, const struct wb_instance *in, const char *what, int from,
                     int *out)
{
    struct wb_err err = WB_ERR_INIT;

    for (int port = from; port < from + PORT_TRIES && port < 65536; port++) {
        bool taken = false;

        if (wb_port_listening(port, &taken, &err) < 0)
            return wb_run_fail(r, WB_OUTCOME_INFRA_ERROR, &err);
        if (!taken) {
            *out = port;
            return 0;
        }
    }
    return wb_run_failf(r, WB_OUTCOME_INFRA_ERROR,
                        "no free %sport for instance %d between %d and %d: something listens on "
                        "all",
                        what, in->index, from, from + PORT_TRIES - 1);
}

static int away_from(int port)
{
    return port + PORT_OFFSET < 65000 ? port + PORT_OFFSET : port;
}

/* What instance `in` of the run has for itself: its address, its client port and the others. */
static int choose_ports(struct wb_run *r, struct wb_instance *in)
{
    const struct wb_recipe *recipe = r->e->study->recipe;
    const struct wb_instance *last = in->index > 0 ? in - 1 : NULL;
    bool own = recipe->own_addresses && r->arm->setup->network == WB_NETWORK_HOST;

    if (own) {
        WB_AUTO_FREE char *host = wb_strf("127.0.0.%d", in->index + 1);

        memcpy(in->host, host, strlen(host) + 1);
    }
    if (own && last)
        in->port = last->port;
    else if (free_port(r, in, "", last ? last->port + 1 : away_from(recipe->port), &in->port) < 0)
        return -WB_IO;
    for (size_t i = 0; i < recipe->nports; i++) {
        WB_AUTO_FREE char *what = wb_strf("%s ", recipe->ports[i].name);

        if (own && last && !recipe->ports[i].loopback)
            in->ports[i] = last->ports[i];
        else if (free_port(r, in, what,
                           last ? last->ports[i] + 1 : away_from(recipe->ports[i].dflt),
                           &in->ports[i]) < 0)
            return -WB_IO;
    }
    return 0;
}

static int make_folders(struct wb_run *r, struct wb_instance *in)
{
    static const char *const parts[] = {"config", "data", "log"};
    struct wb_err err = WB_ERR_INIT;

    in->dir = wb_strf("%s/db%d", r->dir, in->index);
    in->name = r->form->ops->name_of(r->id, in->index);
    r->form->ops->paths(&r->e->bits, in->dir, &in->paths);
    for (size_t i = 0; i < WB_LEN(parts); i++) {
        WB_AUTO_FREE char *path = wb_strf("%s/%s", in->dir, parts[i]);

        if (wb_mkdir_all(path, 0755, &err) < 0)
            return wb_run_fail(r, WB_OUTCOME_INFRA_ERROR, &err);
    }
    return 0;
}

/* What `clean` needs to undo the instance if this engine does not live to do it. */
static int save_undo(struct wb_run *r, const struct wb_instance *in)
{
    struct wb_strv env = {0};
    struct wb_err err = WB_ERR_INIT;
    int rc;

    wb_run_step_env(r, in, &env);
    rc = wb_undo_save(r->dir, in->index, r->e->study->recipe, env.v, &err);
    wb_strv_release(&env);
    return rc < 0 ? wb_run_fail(r, WB_OUTCOME_INFRA_ERROR, &err) : 0;
}

static int configure(struct wb_run *r, struct wb_instance *in)
{
    struct wb_err err = WB_ERR_INIT;
    WB_AUTO_JSON wb_json *out = NULL;
    int code;

    if (wb_run_step(r, in, WB_STEP_CONFIGURE, &code, &out, &err) < 0)
        return wb_run_fail(r, WB_OUTCOME_INFRA_ERROR, &err);
    return 0;
}

/* Puts the instance's paths into a word of the recipe's start: {prefix} {config} {data} {log}
 * {port}. */
static char *fill_in(const struct wb_instance *in, const char *word)
{
    struct wb_buf b = WB_BUF_INIT(65536);
    WB_AUTO_FREE char *port = wb_strf("%d", in->port);
    const struct {
        const char *name, *value;
    } names[] = {{"{prefix}", in->paths.prefix},
                 {"{config}", in->paths.config},
                 {"{data}", in->paths.data},
                 {"{log}", in->paths.log},
                 {"{port}", port}};

    while (*word) {
        size_t i;

        for (i = 0; i < WB_LEN(names); i++)
            if (!strncmp(word, names[i].name, strlen(names[i].name)))
                break;
        if (i < WB_LEN(names)) {
            wb_buf_adds(&b, names[i].value);
            word += strlen(names[i].name);
        } else {
            wb_buf_addc(&b, *word++);
        }
    }
    return wb_buf_take(&b);
}

static void fill_all(const struct wb_instance *in, const struct wb_strv *words, struct wb_strv *out)
{
    for (size_t i = 0; i < words->n; i++) {
        WB_AUTO_FREE char *word = fill_in(in, words->v[i]);

        wb_strv_add(out, word);
    }
}

int wb_run_start_instance(struct wb_run *r, struct wb_instance *in)
{
    const struct wb_study *s = r->e->study;
    const struct wb_part *part = &r->arm->parts[in->index];
    struct wb_ledger_entry entry = {.kind = wb_strdup(r->form->ops->name),
                                    .name = wb_strdup(in->name),
                                    .dir = wb_strdup(in->dir),
                                    .run = wb_strdup(r->id)};
    struct wb_strv argv = {0}, env = {0};
    struct wb_err err = WB_ERR_INIT;
    int64_t began = wb_now_ns(NULL);
    struct wb_instance_spec spec = {
        .run = r->id,
        .index = in->index,
        .dir = in->dir,
        .bits = &r->e->bits,
        .limits = {.cpus = part->cpus,
                   .mems = part->mems,
                   .memory_bytes = r->arm->setup->limits == WB_LIMITS_SAME ? part->memory_bytes : 0,
                   .cpu_quota = part->cpu_quota},
        .port = in->port,
        .network = r->arm->setup->network,
        .image = r->form->image,
    };
    int rc;

    fill_all(in, &s->recipe->start, &argv);
    fill_all(in, &s->recipe->start_env, &env);
    spec.argv = argv.v;
    spec.env = env.v;
    rc = wb_ledger_make(r->e->dir, &entry, &err);
    in->in_ledger = rc == 0;
    if (rc == 0)
        rc = r->form->ops->start(&r->e->form_env, &spec, &err);
    in->started = rc == 0;
    in->started_ns = wb_now_ns(NULL);
    in->start_s = (double)(in->started_ns - began) / 1e9;
    wb_strv_release(&argv);
    wb_strv_release(&env);
    free(entry.kind);
    free(entry.name);
    free(entry.dir);
    free(entry.run);
    return rc < 0 ? wb_run_fail(r, WB_OUTCOME_INFRA_ERROR, &err) : 0;
}

/* Before it was ready it ended, and its port has a listener all the same: somebody else's. */
static bool port_was_taken(const struct wb_run *r, const struct wb_instance *in)
{
    bool taken = false;

    for (int i = 0; i < r->ninstances; i++) /* with addresses of their own they share it */
        if (&r->instances[i] != in && r->instances[i].port == in->port)
            return false;
    return in->start_ticks == 0 && wb_port_listening(in->port, &taken, NULL) == 0 && taken;
}

/* Whether a program that has ended said that there was no room for what it had to write. It need
 * not have filled the disk to the last byte: databases allocate many MiB at once. */
static bool had_no_room(const char *log)
{
    static const char *const words[] = {"No space left on device", "Insufficient disk space"};

    for (size_t i = 0; i < WB_LEN(words); i++)
        if (strstr(log, words[i]))
            return true;
    return false;
}

/* The last line that begins one: those behind a blank, as of a trace, belong to one before. Cuts
 * the text. */
static const char *last_line(struct wb_buf *log)
{
    for (;;) {
        const char *last;

        while (log->len && log->data[log->len - 1] == '\n')
            log->data[--log->len] = '\0';
        last = strrchr(wb_buf_str(log), '\n');
        if (!last)
            return wb_buf_str(log);
        if (last[1] != ' ' && last[1] != '\t')
            return last + 1;
        log->len = (size_t)(last + 1 - log->data);
        log->data[log->len] = '\0';
    }
}

/* The database ended by itself: says how, and with what last words. */
static int died(struct wb_run *r, struct wb_instance *in)
{
    struct wb_buf log = WB_BUF_INIT(4 * LAST_WORDS_MAX);
    const struct wb_instance_status *st = &in->status;
    struct wb_err err = WB_ERR_INIT;
    const char *last;
    bool full;
    int rc;

    if (r->form->ops->logs(&r->e->form_env, in->name, in->dir, LAST_WORDS_MAX, &log, NULL) < 0)
        wb_buf_clear(&log);
    full = had_no_room(wb_buf_str(&log));
    last = last_line(&log);
    if (port_was_taken(r, in)) {
        in->port_foreign = true;
        rc = wb_run_failf(r, WB_OUTCOME_INFRA_ERROR,
                          "instance %d ended because port %d was taken by another program%s%s",
                          in->index, in->port, *last ? ": " : "", last);
    } else if (st->state == WB_INSTANCE_GONE)
        rc = wb_run_failf(r, WB_OUTCOME_INFRA_ERROR,
                          "instance %d is gone without a word: its container or its supervisor was "
                          "removed by something else",
                          in->index);
    else if (st->oom_killed)
        rc = wb_run_failf(r, WB_OUTCOME_SUT_ERROR,
                          "instance %d was killed for memory (limit %lld bytes)", in->index,
                          (long long)r->arm->parts[in->index].memory_bytes);
    else {
        (void)wb_fail(&err, WB_IO, "instance %d %s %d%s%s", in->index,
                      st->signal ? "was ended by signal" : "ended with status",
                      st->signal ? st->signal : st->exit_code, *last ? ": " : "", last);
        err.sys = full ? ENOSPC : 0;
        rc = wb_run_fail(r, WB_OUTCOME_SUT_ERROR, &err);
    }
    wb_buf_release(&log);
    return rc;
}

static int look(struct wb_run *r, struct wb_instance *in)
{
    struct wb_err err = WB_ERR_INIT;

    if (r->form->ops->status(&r->e->form_env, in->name, in->dir, &in->status, &err) < 0)
        return wb_run_fail(r, WB_OUTCOME_INFRA_ERROR, &err);
    if (in->status.state != WB_INSTANCE_RUNNING)
        return died(r, in);
    return 0;
}

/* An instance with an address of its own is reached there. */
static int find_address(struct wb_run *r, struct wb_instance *in)
{
    if (r->arm->setup->network != WB_NETWORK_ROUTED)
        return 0;
    if (look(r, in) < 0)
        return -WB_IO;
    if (!in->status.address[0])
        return wb_run_failf(r, WB_OUTCOME_INFRA_ERROR,
                            "instance %d has no address on the network of its run", in->index);
    memcpy(in->host, in->status.address, sizeof(in->host));
    return 0;
}

/* The limit has passed: says what was missing. */
static int not_ready(struct wb_run *r, const struct wb_instance *in, int64_t limit,
                     const struct wb_complete *complete)
{
    struct wb_buf why = WB_BUF_INIT(1024);
    int rc;

    wb_complete_why(complete, &why);
    rc = wb_run_failf(r, WB_OUTCOME_SUT_ERROR, "instance %d did not get ready within %.0f s%s%s",
                      in->index, (double)limit / 1e9, why.len ? ": " : "", wb_buf_str(&why));
    wb_buf_release(&why);
    return rc;
}

/* An answer that names nodes counts with those before it; another one by itself. */
static bool is_ready(struct wb_complete *complete, int code, const wb_json *out)
{
    const wb_json *nodes = wb_json_get(out, "nodes");
    bool done;

    if (!nodes)
        return code == 0;
    done = wb_complete_add(complete, nodes);
    if (code != 0)
        complete->good = 0; /* all may be well, and yet something is missing */
    return done && code == 0;
}

static int wait_ready(struct wb_run *r, struct wb_instance *in, struct wb_complete *complete)
{
    int64_t limit = r->e->study->recipe->step_limit_ns[WB_STEP_READY];
    int64_t end = wb_now_ns(NULL) + limit, pause = READY_FIRST_PAUSE_NS;
    struct wb_err err = WB_ERR_INIT;

    if (find_address(r, in) < 0)
        return -WB_IO;
    for (;;) {
        WB_AUTO_JSON wb_json *out = NULL;
        int code, rc = wb_run_step(r, in, WB_STEP_READY, &code, &out, &err);

        if (rc == 0 && is_ready(complete, code, out)) {
            in->ready_s = (double)(wb_now_ns(NULL) - in->started_ns) / 1e9;
            return look(r, in);
        }
        if (rc == -WB_CANCELLED)
            return wb_run_fail(r, WB_OUTCOME_CANCELLED, &err);
        if (look(r, in) < 0) /* a death explains a failed check */
            return -WB_IO;
        if (rc < 0 && rc != -WB_TIMEOUT) {
            (void)wb_wrap(&err, "instance %d", in->index);
            return wb_run_fail(r, code > 0 ? WB_OUTCOME_SUT_ERROR : WB_OUTCOME_INFRA_ERROR, &err);
        }
        if (wb_now_ns(NULL) >= end)
            return not_ready(r, in, limit, complete);
        if (wb_wait(r->e->spec->cancel, -1, complete->good > 0 ? READY_GOOD_PAUSE_NS : pause,
                    &err) < 0)
            return wb_run_fail(r, WB_OUTCOME_CANCELLED, &err);
        pause = pause * 2 < READY_PAUSE_NS ? pause * 2 : READY_PAUSE_NS;
    }
}

int wb_run_members(const struct wb_run *r)
{
    int n = 0;

    for (int i = 0; i < r->ninstances; i++)
        n += r->instances[i].member;
    return n;
}

int wb_run_ready(struct wb_run *r, struct wb_instance *in)
{
    struct wb_complete complete;
    int rc;

    wb_complete_init(&complete, wb_run_members(r));
    rc = wait_ready(r, in, &complete);
    wb_complete_release(&complete);
    return rc;
}

/* What was found is not as planned, or could not be asked: said unless a death explains it. */
static int blame(struct wb_run *r, enum wb_outcome o, const struct wb_err *err)
{
    if (err->code != WB_CANCELLED && wb_run_alive(r) < 0)
        return -WB_IO;
    return wb_run_fail(r, o, err);
}

static int ask(struct wb_run *r, struct wb_instance *in, wb_json *all)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *said = NULL;
    int code, rc = wb_run_step(r, in, WB_STEP_PROBE, &code, &said, &err);

    wb_json_free(in->probe);
    in->probe = said;
    if (rc < 0 && rc != -WB_TIMEOUT)
        return blame(r, WB_OUTCOME_INFRA_ERROR, &err);
    wb_json_push(all, rc == 0 && code == 0 && said ? wb_json_ref(said) : wb_json_null());
    return 0;
}

/* Version and settings as running instances say: of `only`, or of all that run. */
static int probe(struct wb_run *r, const struct wb_instance *only)
{
    const struct wb_subject *subject = &r->e->study->subject;
    WB_AUTO_JSON wb_json *all = wb_json_array();
    struct wb_err err = WB_ERR_INIT;

    for (int i = 0; i < r->ninstances; i++) {
        struct wb_instance *in = &r->instances[i];

        if (in->started && (!only || only == in) && ask(r, in, all) < 0)
            return -WB_IO;
    }
    if (wb_probe_check(subject->version ? subject->version : r->e->study->version->version, all,
                       &err) < 0)
        return blame(r, WB_OUTCOME_INCONSISTENT, &err);
    for (int i = 0; i < r->ninstances; i++) {
        const struct wb_instance *in = &r->instances[i];

        if (!in->started || (only && only != in) ||
            wb_settings_check(r->arm->settings, r->arm->nsettings, in->probe, &err) == 0)
            continue;
        (void)wb_wrap(&err, "instance %d", i);
        return blame(r, WB_OUTCOME_INCONSISTENT, &err);
    }
    return 0;
}

static int place(struct wb_run *r, const struct wb_instance *in)
{
    struct wb_err err = WB_ERR_INIT;

    return wb_run_place(r, in, NULL, &err) < 0 ? blame(r, WB_OUTCOME_INCONSISTENT, &err) : 0;
}

int wb_run_prove(struct wb_run *r, struct wb_instance *in)
{
    int rc = probe(r, in);

    return rc == 0 ? place(r, in) : rc;
}

int wb_run_know(struct wb_run *r, struct wb_instance *in)
{
    int rc = look(r, in);

    in->start_ticks = wb_process_ticks(in->status.pid);
    return rc;
}

/* The process of an instance is gone or another one: waits until whoever looks after it tells how
 * it ended, which takes a supervisor a moment. */
static int how_it_ended(struct wb_run *r, struct wb_instance *in)
{
    int64_t end = wb_now_ns(NULL) + DEATH_LIMIT_NS;
    pid_t was = in->status.pid;

    for (;;) {
        if (look(r, in) < 0)
            return -WB_IO;
        if (in->status.pid != was || wb_now_ns(NULL) >= end)
            return wb_run_failf(r, WB_OUTCOME_SUT_ERROR, "instance %d was restarted by something",
                                in->index);
        WB_IGNORE(wb_wait(NULL, -1, DEATH_PAUSE_NS, NULL)); /* only a pause */
    }
}

int wb_run_alive(struct wb_run *r)
{
    for (int i = 0; i < r->ninstances; i++) {
        struct wb_instance *in = &r->instances[i];

        /* The kernel is asked first: it costs nothing, a container engine does. */
        if (in->started && !in->away && wb_process_ticks(in->status.pid) != in->start_ticks &&
            how_it_ended(r, in) < 0)
            return -WB_IO;
    }
    return 0;
}

int wb_run_look(struct wb_run *r)
{
    for (int i = 0; i < r->ninstances; i++)
        if (r->instances[i].started && look(r, &r->instances[i]) < 0)
            return -WB_IO;
    return 0;
}

void wb_run_tell_instances(struct wb_run *r)
{
    wb_json *f = wb_json_object(), *list = wb_json_array();
    const struct wb_instance *first = &r->instances[0];

    for (int i = 0; i < r->ninstances; i++) {
        const struct wb_instance *in = &r->instances[i];
        wb_json *o = wb_json_object();

        wb_json_set_int(o, "instance", i);
        /* From where the first one was begun. */
        wb_json_set_real(o, "started_at_s",
                         in->started_ns
                             ? first->start_s + (double)(in->started_ns - first->started_ns) / 1e9
                             : 0);
        wb_json_set_real(o, "start_s", in->start_s);
        wb_json_set_real(o, "ready_s", in->ready_s);
        wb_json_set_real(o, "stop_s", in->stop_s);
        wb_json_set_real(o, "remove_s", in->remove_s);
        wb_json_push(list, o);
    }
    wb_json_set_str(f, "run", r->id);
    wb_json_set_str(f, "form", r->form->ops->name);
    wb_json_set(f, "instances", list);
    wb_campaign_event(r->e->dir, "run.instances", f);
}

int wb_run_deploy(struct wb_run *r)
{
    wb_run_phase(r, "deploy", 1);
    for (int i = 0; i < r->ninstances; i++) {
        r->instances[i].index = i;
        r->instances[i].member = !wb_setup_holds_back(r->arm->setup, i, r->ninstances);
        if (make_folders(r, &r->instances[i]) < 0 || choose_ports(r, &r->instances[i]) < 0)
            return -WB_IO;
    }
    for (int i = 0; i < r->ninstances; i++) {
        struct wb_instance *in = &r->instances[i];

        if (save_undo(r, in) < 0 || configure(r, in) < 0 || wb_data_take(r, in) < 0 ||
            (in->member && wb_run_start_instance(r, in) < 0))
            return -WB_IO;
    }
    wb_run_phase(r, "ready", 0);
    for (int i = 0; i < r->ninstances; i++)
        if (r->instances[i].member && wb_run_ready(r, &r->instances[i]) < 0)
            return -WB_IO;
    for (int i = 0; i < r->ninstances; i++)
        if (r->instances[i].member)
            r->instances[i].start_ticks = wb_process_ticks(r->instances[i].status.pid);
    wb_run_phase(r, "probe", 0);
    if (probe(r, NULL) < 0)
        return -WB_IO;
    for (int i = 0; i < r->ninstances; i++)
        if (r->instances[i].member && place(r, &r->instances[i]) < 0)
            return -WB_IO;
    return 0;
}
