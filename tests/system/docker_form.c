/*
 * The docker form against a real Docker Engine: what it says is compared with what the kernel and
 * the engine's own client-independent answers say.
 *
 *     WB_DOCKER_SOCKET=/path/engine.sock docker_form CACHE_DIR
 *
 * tests/system/docker.sh runs it. Prints "ok NAME" or "FAIL NAME why", then "N passed, M failed".
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "provisioners/forms/docker_api.h"
#include "provisioners/forms/docker_container.h"
#include "provisioners/forms/docker_image.h"
#include "provisioners/forms/form.h"
#include "server/base/clock.h"
#include "server/base/digest.h"
#include "server/base/file.h"

#define RUN "run_test0docker"
#define OWNER "ctl_system_test"
#define MIB (1LL << 20)

struct fixture {
    const struct wb_form_ops *form;
    struct wb_form_env env;
    char *root; /* temporary folder */
    char *dir;  /* instance folder */
    char *name;
    char *image;
    struct wb_bits bits;
    struct wb_cgroup_fs *cgroups;
    const char *test; /* that runs now */
    bool bad;
    int passed, failed;
    struct wb_err err;
};

static void fail(struct fixture *f, const char *fmt, ...) WB_PRINTF(2, 3);
static void fail(struct fixture *f, const char *fmt, ...)
{
    va_list ap;

    if (f->bad)
        return; /* the first reason counts */
    f->bad = true;
    va_start(ap, fmt);
    WB_AUTO_FREE char *why = wb_vstrf(fmt, ap);
    va_end(ap);
    printf("FAIL %s %s\n", f->test, why);
}

#define CHECK(f, cond)                                 \
    do {                                               \
        if (!(cond))                                   \
            fail((f), "line %d: %s", __LINE__, #cond); \
    } while (0)
/* A call that must succeed. */
#define MUST(f, call)                                                                           \
    do {                                                                                        \
        (f)->err = (struct wb_err)WB_ERR_INIT;                                                  \
        if ((call) < 0)                                                                         \
            fail((f), "line %d: %s: %s: %s", __LINE__, #call, (f)->err.context, (f)->err.root); \
    } while (0)
/* A call that must fail with a code and a text. */
#define MUST_FAIL(f, call, want, text)                                                \
    do {                                                                              \
        (f)->err = (struct wb_err)WB_ERR_INIT;                                        \
        int rc_ = (call);                                                             \
        if (rc_ != -(want) || !strstr((f)->err.root, (text)))                         \
            fail((f), "line %d: %s gave %s '%s', not %s '...%s...'", __LINE__, #call, \
                 wb_code_name(rc_), (f)->err.root, wb_code_name(want), (text));       \
    } while (0)

static char *const sleeper[] = {(char[]){"/bin/sleep"}, (char[]){"1000"}, NULL};

static struct wb_instance_spec spec_of(struct fixture *f, char *const *argv)
{
    return (struct wb_instance_spec){
        .run = RUN, .dir = f->dir, .bits = &f->bits, .argv = argv, .image = f->image};
}

/* Containers with our owner label, as the engine lists them. */
static size_t owned(struct fixture *f)
{
    struct wb_owned_list l = {0};
    MUST(f, f->form->list_owned(&f->env, &l, &f->err));
    size_t n = l.n;
    wb_owned_release(&l);
    return n;
}

static struct wb_instance_status wait_exit(struct fixture *f)
{
    struct wb_instance_status s = {0};
    int64_t deadline = wb_now_ns(NULL) + 30 * WB_SEC;

    do {
        MUST(f, f->form->status(&f->env, f->name, f->dir, &s, &f->err));
        MUST(f, wb_wait(NULL, -1, 20 * WB_MS, &f->err));
    } while (!f->bad && s.state == WB_INSTANCE_RUNNING && wb_now_ns(NULL) < deadline);
    CHECK(f, s.state == WB_INSTANCE_EXITED);
    return s;
}

static void destroy(struct fixture *f)
{
    struct wb_instance_status s = {0};

    MUST(f, f->form->destroy(&f->env, f->name, f->dir, &f->err));
    MUST(f, f->form->status(&f->env, f->name, f->dir, &s, &f->err));
    CHECK(f, s.state == WB_INSTANCE_GONE);
    CHECK(f, owned(f) == 0);
}

static void test_prepare(struct fixture *f)
{
    WB_AUTO_JSON wb_json *facts = wb_json_object();
    WB_AUTO_JSON wb_json *again = wb_json_object();
    WB_AUTO_FREE char *second = NULL;

    MUST(f, f->form->check(&f->env, &f->err));
    MUST(f, f->form->prepare(&f->env, &f->bits, &f->image, facts, &f->err));
    if (f->bad)
        return;
    CHECK(f, strncmp(f->image, "sha256:", 7) == 0 && strlen(f->image) == 71);
    static const char *const needed[] = {"engine.version",
                                         "engine.api",
                                         "engine.storage_driver",
                                         "engine.cgroup_driver",
                                         "engine.cgroup_version",
                                         "engine.components.runc",
                                         "image.id",
                                         "image.layer",
                                         "image.base.sha256",
                                         "image.base.libc",
                                         "image.base.packages.dash"};
    for (size_t i = 0; i < WB_LEN(needed); i++)
        if (!wb_json_string(wb_json_path(facts, needed[i])))
            fail(f, "facts have no %s", needed[i]);
    MUST(f, f->form->prepare(&f->env, &f->bits, &second, again, &f->err));
    CHECK(f, second && strcmp(second, f->image) == 0);
    CHECK(f, !wb_json_bool_or(wb_json_get(again, "image"), "made", true));
    CHECK(f, owned(f) == 0); /* an image is a cache, not a leftover */
}

static void test_life(struct fixture *f)
{
    static char script[] = "echo out; echo err >&2; cat /wb/config/c /wb/prefix/hello; "
                           "echo \"user $(id -u) dir $PWD var $WB_X\"; echo made >/wb/data/d; "
                           "touch /wb/config/w 2>/dev/null && echo writable; exec sleep 1000";
    char *const argv[] = {(char[]){"/bin/sh"}, (char[]){"-c"}, script, NULL};
    char *const env[] = {(char[]){"WB_X=7"}, NULL};
    struct wb_instance_spec spec = spec_of(f, argv);
    struct wb_instance_status s = {0};
    struct wb_buf log = WB_BUF_INIT(1 << 16);

    spec.env = env;
    MUST(f, f->form->start(&f->env, &spec, &f->err));
    MUST(f, f->form->status(&f->env, f->name, f->dir, &s, &f->err));
    CHECK(f, s.state == WB_INSTANCE_RUNNING && s.pid > 0 && s.cgroup[0]);
    CHECK(f, owned(f) == 1);
    WB_AUTO_FREE char *expected =
        wb_strf("out\nconfig text\nprefix text\nuser %u dir /wb var 7\n", geteuid());
    int64_t deadline = wb_now_ns(NULL) + 20 * WB_SEC;
    do {
        wb_buf_clear(&log);
        MUST(f, f->form->logs(&f->env, f->name, f->dir, 4096, &log, &f->err));
    } while (!f->bad && !strstr(wb_buf_str(&log), "var 7\n") && wb_now_ns(NULL) < deadline);
    /* stdout and stderr are different pipes: their order is not fixed. */
    char *err_at = strstr(log.data ? log.data : expected, "err\n");
    CHECK(f, err_at != NULL);
    if (err_at)
        memmove(err_at, err_at + 4, strlen(err_at + 4) + 1);
    if (log.data && strcmp(log.data, expected) != 0)
        fail(f, "log is '%s'", log.data);
    wb_buf_clear(&log);
    MUST(f, f->form->logs(&f->env, f->name, f->dir, 6, &log, &f->err));
    CHECK(f, log.len == 6);
    WB_AUTO_FREE char *made = wb_strf("%s/data/d", f->dir);
    CHECK(f, wb_path_exists(made));
    MUST(f, f->form->stop(&f->env, f->name, f->dir, WB_SEC, &f->err));
    s = wait_exit(f);
    CHECK(f, (s.signal == SIGTERM || s.signal == SIGKILL) && s.exit_code == -1 && !s.oom_killed);
    MUST(f, f->form->stop(&f->env, f->name, f->dir, WB_SEC, &f->err)); /* again */
    CHECK(f, kill(s.pid ? s.pid : 1 << 30, 0) < 0);
    destroy(f);
    destroy(f);
    MUST(f, f->form->stop(&f->env, f->name, f->dir, WB_SEC, &f->err)); /* when gone */
    MUST_FAIL(f, f->form->logs(&f->env, f->name, f->dir, 10, &log, &f->err), WB_NOT_FOUND, "");
    wb_buf_release(&log);
}

static void test_exit_code(struct fixture *f)
{
    char *const argv[] = {(char[]){"/bin/sh"}, (char[]){"-c"}, (char[]){"exit 37"}, NULL};
    struct wb_instance_spec spec = spec_of(f, argv);

    MUST(f, f->form->start(&f->env, &spec, &f->err));
    struct wb_instance_status s = wait_exit(f);
    CHECK(f, s.exit_code == 37 && s.signal == 0 && !s.oom_killed && s.pid == 0);
    destroy(f);
}

static void test_limits(struct fixture *f)
{
    struct wb_instance_spec spec = spec_of(f, sleeper);
    struct wb_instance_status s = {0};
    struct wb_limits_seen seen = {0};

    spec.limits = (struct wb_limits){
        .cpus = "1", .mems = "0", .memory_bytes = 96 * MIB, .cpu_quota = 0.85, .pids = 64};
    MUST(f, f->form->start(&f->env, &spec, &f->err));
    MUST(f, f->form->status(&f->env, f->name, f->dir, &s, &f->err));
    if (!f->bad)
        MUST(f, wb_cgroup_limits(f->cgroups, s.cgroup, &seen, &f->err));
    if (!f->bad) {
        CHECK(f, seen.cpus && strcmp(seen.cpus, "1") == 0);
        CHECK(f, seen.mems && strcmp(seen.mems, "0") == 0);
        CHECK(f, seen.memory_bytes == 96 * MIB && seen.memory_swap_bytes == 96 * MIB);
        CHECK(f, seen.cpu_quota > 0.8499 && seen.cpu_quota < 0.8501);
    }
    wb_limits_seen_release(&seen);
    destroy(f);
    if (!f->bad)
        CHECK(f, !wb_cgroup_exists(f->cgroups, s.cgroup));
}

static void test_oom(struct fixture *f)
{
    char *const argv[] = {(char[]){"/usr/bin/perl"}, (char[]){"-e"},
                          (char[]){"$x = 'a' x (300 << 20); sleep 1000"}, NULL};
    struct wb_instance_spec spec = spec_of(f, argv);

    spec.limits.memory_bytes = 64 * MIB;
    MUST(f, f->form->start(&f->env, &spec, &f->err));
    struct wb_instance_status s = wait_exit(f);
    CHECK(f, s.oom_killed && s.signal == SIGKILL && s.exit_code == -1);
    destroy(f);
}

static void test_failing_start(struct fixture *f)
{
    char *const argv[] = {(char[]){"/nowhere/program"}, NULL};
    struct wb_instance_spec spec = spec_of(f, argv);

    MUST_FAIL(f, f->form->start(&f->env, &spec, &f->err), WB_NOT_FOUND, "/nowhere/program");
    CHECK(f, owned(f) == 0);
    spec = spec_of(f, sleeper);
    spec.limits.cpus = "900";
    MUST_FAIL(f, f->form->start(&f->env, &spec, &f->err), WB_INVALID, "CPUs");
    CHECK(f, owned(f) == 0);
    spec = spec_of(f, sleeper);
    spec.dir = "/nowhere";
    MUST_FAIL(f, f->form->start(&f->env, &spec, &f->err), WB_NOT_FOUND, "/nowhere/config");
    CHECK(f, owned(f) == 0);
    spec = spec_of(f, sleeper);
    spec.image = "sha256:0000000000000000000000000000000000000000000000000000000000000000";
    MUST_FAIL(f, f->form->start(&f->env, &spec, &f->err), WB_NOT_FOUND, "image");
    CHECK(f, owned(f) == 0);
}

/* Creates (and starts) a container behind the form's back. */
static void plant(struct fixture *f, const char *owner, const char *run, bool start)
{
    struct wb_form_env env = f->env;
    WB_AUTO_ENGINE struct wb_engine *e = NULL;
    struct wb_instance_spec spec = spec_of(f, sleeper);

    env.owner = owner;
    spec.run = run;
    WB_AUTO_JSON wb_json *body = wb_container_body(&env, &spec);
    MUST(f, wb_engine_open(f->env.docker_socket, &e, &f->err));
    if (f->bad)
        return;
    if (!owner)
        wb_json_set(body, "Labels", wb_json_object());
    WB_AUTO_FREE char *create = wb_strf("/containers/create?name=%s", f->name);
    WB_AUTO_FREE char *begin = wb_strf("/containers/%s/start", f->name);
    struct wb_engine_call c = {.method = "POST", .path = create, .body = body};
    MUST(f, wb_engine_do(e, &c, NULL, &f->err));
    c = (struct wb_engine_call){.method = "POST", .path = begin};
    if (start)
        MUST(f, wb_engine_do(e, &c, NULL, &f->err));
}

static bool running(struct fixture *f)
{
    WB_AUTO_ENGINE struct wb_engine *e = NULL;
    struct wb_container c = {0};

    MUST(f, wb_engine_open(f->env.docker_socket, &e, &f->err));
    if (!f->bad)
        MUST(f, wb_container_inspect(e, f->name, &c, &f->err));
    bool yes = c.running;
    wb_container_release(&c);
    return yes;
}

static void remove_planted(struct fixture *f)
{
    WB_AUTO_ENGINE struct wb_engine *e = NULL;

    MUST(f, wb_engine_open(f->env.docker_socket, &e, &f->err));
    if (e)
        MUST(f, wb_container_remove(e, f->name, &f->err));
}

static void test_stale_name(struct fixture *f)
{
    static const struct {
        const char *run;
        bool start;
    } stale[] = {{RUN, false}, {RUN, true}, {"old-run", false}};
    struct wb_instance_spec spec = spec_of(f, sleeper);
    struct wb_instance_status s = {0};

    for (size_t i = 0; i < WB_LEN(stale) && !f->bad; i++) {
        plant(f, OWNER, stale[i].run, stale[i].start);
        MUST(f, f->form->start(&f->env, &spec, &f->err));
        MUST(f, f->form->status(&f->env, f->name, f->dir, &s, &f->err));
        CHECK(f, s.state == WB_INSTANCE_RUNNING);
        destroy(f);
    }
}

static void test_foreign(struct fixture *f)
{
    static const struct {
        const char *owner, *run;
    } foreign[] = {{NULL, RUN}, {"ctl_other", RUN}, {OWNER, "run_living"}};
    struct wb_instance_spec spec = spec_of(f, sleeper);
    struct wb_instance_status s = {0};

    for (size_t i = 0; i < WB_LEN(foreign) && !f->bad; i++) {
        plant(f, foreign[i].owner, foreign[i].run, true);
        MUST_FAIL(f, f->form->start(&f->env, &spec, &f->err), WB_CONFLICT, f->name);
        CHECK(f, running(f));
        if (i < 2) { /* the last one is ours, of a living run: only its own run may end it */
            struct wb_owned what = {.kind = (char[]){"container"}, .id = f->name};
            MUST(f, f->form->stop(&f->env, f->name, f->dir, 0, &f->err));
            MUST(f, f->form->destroy(&f->env, f->name, f->dir, &f->err));
            MUST(f, f->form->status(&f->env, f->name, f->dir, &s, &f->err));
            CHECK(f, s.state == WB_INSTANCE_GONE);
            MUST_FAIL(f, f->form->reap(&f->env, &what, &f->err), WB_CONFLICT, "not ours");
            CHECK(f, running(f));
        }
        remove_planted(f);
    }
}

static void test_reap(struct fixture *f)
{
    struct wb_owned_list l = {0};

    plant(f, OWNER, "run_killed", true);
    MUST(f, f->form->list_owned(&f->env, &l, &f->err));
    CHECK(f, l.n == 1);
    if (l.n == 1) {
        CHECK(f, strcmp(l.v[0].kind, "container") == 0 && strcmp(l.v[0].id, f->name) == 0);
        CHECK(f, l.v[0].run && strcmp(l.v[0].run, "run_killed") == 0);
        CHECK(f, l.v[0].campaign && strcmp(l.v[0].campaign, "cmp_test") == 0);
        CHECK(f, l.v[0].owner && strcmp(l.v[0].owner, OWNER) == 0);
        MUST(f, f->form->reap(&f->env, &l.v[0], &f->err));
        MUST(f, f->form->reap(&f->env, &l.v[0], &f->err)); /* again */
    }
    wb_owned_release(&l);
    CHECK(f, owned(f) == 0);
}

static void test_volume_and_network(struct fixture *f)
{
    WB_AUTO_ENGINE struct wb_engine *e = NULL;
    WB_AUTO_JSON wb_json *body = wb_json_object();
    wb_json *labels = wb_json_object();
    struct wb_owned_list l = {0};

    wb_json_set_str(labels, "wb.owner", OWNER);
    wb_json_set_str(body, "Name", "wb-test-volume");
    wb_json_set(body, "Labels", labels);
    struct wb_engine_call c = {.method = "POST", .path = "/volumes/create", .body = body};
    MUST(f, wb_engine_open(f->env.docker_socket, &e, &f->err));
    if (e)
        MUST(f, wb_engine_do(e, &c, NULL, &f->err));
    MUST(f, f->form->list_owned(&f->env, &l, &f->err));
    CHECK(f, l.n == 1 && strcmp(l.v[0].kind, "volume") == 0);
    for (size_t i = 0; i < l.n; i++)
        MUST(f, f->form->reap(&f->env, &l.v[i], &f->err));
    wb_owned_release(&l);
    CHECK(f, owned(f) == 0);
}

static void test_no_engine(struct fixture *f)
{
    struct wb_form_env env = f->env;
    WB_AUTO_FREE char *nowhere = wb_strf("%s/none.sock", f->root);
    struct wb_instance_spec spec = spec_of(f, sleeper);

    env.docker_socket = nowhere;
    MUST_FAIL(f, f->form->check(&env, &f->err), WB_UNAVAILABLE, nowhere);
    CHECK(f, strstr(f->err.context, "docker arms") != NULL);
    MUST_FAIL(f, f->form->start(&env, &spec, &f->err), WB_UNAVAILABLE, nowhere);
}

static void test_cancel(struct fixture *f)
{
    struct wb_form_env env = f->env;
    struct wb_cancel *cancel = wb_cancel_new();
    struct wb_instance_spec spec = spec_of(f, sleeper);

    env.cancel = cancel;
    MUST(f, f->form->start(&env, &spec, &f->err));
    wb_cancel_set(cancel, SIGINT);
    MUST(f, f->form->stop(&env, f->name, f->dir, WB_SEC, &f->err)); /* cleaning up still works */
    MUST(f, f->form->destroy(&env, f->name, f->dir, &f->err));
    MUST_FAIL(f, f->form->start(&env, &spec, &f->err), WB_CANCELLED, f->name);
    CHECK(f, owned(f) == 0);
    wb_cancel_free(cancel);
}

static void put(struct fixture *f, const char *name, const char *text)
{
    WB_AUTO_FREE char *path = wb_strf("%s/%s", f->root, name);
    WB_AUTO_FREE char *dir = wb_strndup(path, (size_t)(strrchr(path, '/') - path));

    MUST(f, wb_mkdir_all(dir, 0755, &f->err));
    MUST(f, wb_file_put(path, text, strlen(text), &f->err));
}

static void set_up(struct fixture *f, const char *cache_dir)
{
    char template[] = "/tmp/wb-docker-form-XXXXXX";

    f->test = "set-up";
    f->form = &wb_form_docker;
    f->root = wb_strdup(mkdtemp(template));
    CHECK(f, f->root != NULL);
    MUST(f, wb_cgroup_fs_open("/sys/fs/cgroup", &f->cgroups, &f->err));
    if (f->bad)
        return;
    put(f, "prefix/hello", "prefix text\n");
    put(f, "db0/config/c", "config text\n");
    put(f, "db0/data/.keep", "");
    put(f, "db0/log/.keep", "");
    f->dir = wb_strf("%s/db0", f->root);
    f->name = f->form->name_of(RUN, 0);
    f->bits = (struct wb_bits){.recipe = "test",
                               .version = "1.0",
                               .prefix = wb_strf("%s/prefix", f->root),
                               .digest = "system-test-prefix-1",
                               .base_suite = "bookworm"};
    f->env = (struct wb_form_env){.owner = OWNER,
                                  .campaign = "cmp_test",
                                  .cgroups = f->cgroups,
                                  .docker_socket = getenv("WB_DOCKER_SOCKET"),
                                  .cache_dir = cache_dir};
}

static const struct {
    const char *name;
    void (*run)(struct fixture *f);
} tests[] = {
    {"docker-prepare", test_prepare},
    {"docker-life", test_life},
    {"docker-exit-code", test_exit_code},
    {"docker-limits", test_limits},
    {"docker-oom", test_oom},
    {"docker-failing-start", test_failing_start},
    {"docker-stale-name", test_stale_name},
    {"docker-foreign", test_foreign},
    {"docker-reap", test_reap},
    {"docker-volume", test_volume_and_network},
    {"docker-no-engine", test_no_engine},
    {"docker-cancel", test_cancel},
};

int main(int argc, char **argv)
{
    struct fixture f = {0};

    if (argc != 2) {
        fputs("usage: docker_form CACHE_DIR\n", stderr);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    set_up(&f, argv[1]);
    for (size_t i = 0; i < WB_LEN(tests) && !(f.failed && i == 1); i++) {
        if (f.bad && i == 0) /* no set-up, no tests */
            break;
        f.test = tests[i].name;
        f.bad = false;
        tests[i].run(&f);
        if (f.bad) {
            f.failed++;
            f.bad = false;
            WB_IGNORE(f.form->destroy(&f.env, f.name, f.dir, NULL)); /* for the next test */
        } else {
            f.passed++;
            printf("ok %s\n", f.test);
        }
    }
    f.failed += f.bad;
    if (f.root && wb_remove_tree(f.root, NULL) < 0)
        fprintf(stderr, "%s could not be removed\n", f.root);
    free(WB_STEAL(f.root));
    free(f.dir);
    free(f.name);
    free(f.image);
    free((char *)(uintptr_t)f.bits.prefix);
    wb_cgroup_fs_free(f.cgroups);
    printf("%d passed, %d failed\n", f.passed, f.failed);
    return f.failed || !f.passed;
}
