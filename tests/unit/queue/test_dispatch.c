/* The thread that starts engines, with scripts for engines, on real control groups (needs root). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/base/cgroup.h"
#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/mem.h"
#include "server/queue/dispatch.h"
#include "server/queue/leases.h"
#include "server/record/store.h"

#define LIMIT (60 * WB_SEC)

struct place {
    char dir[40];
    char *id, *db_path, *store, *program, *job, *folder;
    struct wb_db *db;
    struct wb_host_pools pools;
    struct wb_dispatch *dispatch;
    bool able;
};

static void tell(void *arg, const char *const *topics, const char *type, wb_json *data)
{
    (void)arg, (void)topics, (void)type;
    wb_json_free(data);
}

static void tick(void *arg)
{
    (void)arg;
}

static void put(const char *dir, const char *name, const char *text)
{
    WB_AUTO_FREE char *path = wb_strf("%s/%s", dir, name);

    assert_int_equal(wb_mkdir_all(dir, 0755, NULL), 0);
    assert_int_equal(wb_file_write(path, text, strlen(text), 0755, NULL), 0);
}

static int setup(void **state)
{
    struct place *p = wb_calloc(1, sizeof(*p));
    struct wb_cgroup_fs *fs = NULL;
    struct wb_store *store = NULL;
    const struct wb_submission s = {
        .study = "forms", .token = "alice", .runs = 4, .arms = 2, .rounds = 2, .forecast_s = 1.5};
    struct wb_submission one = s;
    char *earlier = NULL;

    memcpy(p->dir, "/tmp/wb-dispatch-XXXXXX", sizeof("/tmp/wb-dispatch-XXXXXX"));
    assert_non_null(mkdtemp(p->dir));
    p->able = geteuid() == 0 && wb_cgroup_fs_open("/sys/fs/cgroup", &fs, NULL) == 0;
    wb_cgroup_fs_free(fs);
    p->id = wb_strf("cmp_dispatch%d", (int)getpid());
    p->db_path = wb_strf("%s/service.db", p->dir);
    p->store = wb_strf("%s/store.git", p->dir);
    p->program = wb_strf("%s/engine", p->dir);
    p->job = wb_strf("%s/service/engines/%s", p->dir, p->id);
    p->folder = wb_strf("%s/campaigns/%s", p->dir, p->id);
    assert_int_equal(wb_store_open(p->store, true, NULL, &store, NULL), 0);
    wb_store_close(store);
    assert_int_equal(wb_queue_open(p->db_path, &p->db, NULL), 0);
    wb_host_pools_read(NULL, p->dir, &p->pools, NULL);
    one.id = p->id;
    assert_int_equal(wb_queue_add(p->db, &one, 1000, &earlier, NULL), 0);
    put(p->folder, "state.json", "{\"state\":\"queued\"}\n");
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;

    wb_dispatch_stop(p->dispatch);
    wb_host_pools_release(&p->pools);
    wb_db_close(p->db);
    assert_int_equal(wb_remove_tree(p->dir, NULL), 0);
    (void)rmdir("/sys/fs/cgroup/weighbridge-service"); /* unless somebody uses it */
    free(p->id);
    free(p->db_path);
    free(p->store);
    free(p->program);
    free(p->job);
    free(p->folder);
    free(p);
    return 0;
}

static void start(struct place *p)
{
    const struct wb_dispatch_spec spec = {.db_path = p->db_path,
                                          .store_path = p->store,
                                          .state_dir = p->dir,
                                          .recipes_dir = p->dir,
                                          .program = p->program,
                                          .load_program = p->program,
                                          .docker_socket = "/nowhere/docker.sock",
                                          .pools = &p->pools,
                                          .tell = tell,
                                          .tick = tick};

    assert_int_equal(wb_dispatch_start(&spec, &p->dispatch, NULL), 0);
}

/* An engine that finishes its campaign. */
static void make_engine(const struct place *p)
{
    WB_AUTO_FREE char *text = wb_strf(
        "#!/bin/sh\necho '{\"state\":\"finished\",\"clean\":true}' >%s/state.json\n", p->folder);

    put(p->dir, "engine", text);
}

static void take(const struct place *p)
{
    char *id = NULL;

    assert_int_equal(wb_queue_take(p->db, &p->pools, 2000, &id, NULL), 0);
    assert_string_equal(id, p->id);
    free(id);
}

/* Until the campaign is over, or some other thing is so; then it (owned). */
static wb_json *await(struct place *p, bool (*so)(struct place *p, const wb_json *c))
{
    int64_t until = wb_now_ns(NULL) + LIMIT;

    for (;;) {
        wb_json *c = NULL;

        assert_int_equal(wb_queue_get(p->db, p->id, &c, NULL), 0);
        if (so(p, c))
            return c;
        wb_json_free(c);
        assert_true(wb_now_ns(NULL) < until);
        WB_IGNORE(wb_wait(NULL, -1, 20 * WB_MS, NULL));
    }
}

static bool is_over(struct place *p, const wb_json *c)
{
    const char *state = wb_json_str_or(c, "state", "");

    (void)p;
    return strcmp(state, "queued") != 0 && strcmp(state, "running") != 0;
}

static bool job_gone(struct place *p, const wb_json *c)
{
    (void)c;
    return !wb_path_exists(p->job);
}

static bool tried(struct place *p, const wb_json *c)
{
    (void)p;
    return wb_json_int_or(c, "starts", 0) > 0;
}

static void an_engine_that_cannot_be_started_ends_its_campaign(void **state)
{
    struct place *p = *state;
    WB_AUTO_JSON wb_json *c = NULL;

    if (!p->able)
        skip();
    start(p); /* there is no such program */
    c = await(p, is_over);
    assert_string_equal(wb_json_str_or(c, "state", ""), "failed");
    assert_int_equal(wb_json_int_or(c, "starts", 0), WB_ENGINE_STARTS_MAX);
    assert_non_null(strstr(wb_json_str_or(c, "detail", ""), p->program));
    wb_json_free(await(p, job_gone));
}

static void a_program_that_comes_back_is_started(void **state)
{
    struct place *p = *state;
    WB_AUTO_JSON wb_json *c = NULL;

    if (!p->able)
        skip();
    start(p);
    wb_json_free(await(p, tried));
    make_engine(p);
    c = await(p, is_over);
    assert_string_equal(wb_json_str_or(c, "state", ""), "finished");
}

static void one_that_cannot_be_started_is_cancelled(void **state)
{
    struct place *p = *state;
    WB_AUTO_JSON wb_json *c = NULL;
    char *now = NULL;

    if (!p->able)
        skip();
    start(p);
    wb_json_free(await(p, tried));
    assert_int_equal(wb_queue_cancel(p->db, p->id, 3000, &now, NULL), 0);
    free(now);
    c = await(p, is_over);
    assert_string_equal(wb_json_str_or(c, "state", ""), "cancelled");
}

/* The server was killed after it had made the folder of the engine and before it had started it. */
static void a_start_that_was_cut_off_is_made_again(void **state)
{
    static const struct {
        const char *name, *text;
    } files[] = {{NULL, NULL}, {"lock", ""}, {"spec.json", "{\"argv\":[\"x\"]}"}};

    for (size_t i = 0; i < WB_LEN(files); i++) {
        struct place *p;
        WB_AUTO_JSON wb_json *c = NULL;

        if (i) { /* each in a place of its own */
            teardown(state);
            setup(state);
        }
        p = *state;
        if (!p->able)
            skip();
        make_engine(p);
        take(p);
        assert_int_equal(wb_mkdir_all(p->job, 0755, NULL), 0);
        if (files[i].name)
            put(p->job, files[i].name, files[i].text);
        start(p);
        c = await(p, is_over);
        assert_string_equal(wb_json_str_or(c, "state", ""), "finished");
        assert_int_equal(wb_json_int_or(c, "starts", 0), 1);
    }
}

/* As the job mechanism leaves it. */
static void put_exited(const struct place *p)
{
    put(p->job, "lock", "");
    put(p->job, "spec.json", "{\"argv\":[\"x\"],\"group\":\"\"}");
    put(p->job, "status.json", "{\"state\":\"exited\",\"exit_code\":0,\"group\":\"\"}");
}

static void what_the_last_engine_left_does_not_end_a_resumed_campaign(void **state)
{
    struct place *p = *state;
    WB_AUTO_JSON wb_json *c = NULL;

    if (!p->able)
        skip();
    make_engine(p);
    take(p);
    assert_int_equal(wb_queue_end(p->db, p->id, "cancelled", NULL, 3000, NULL), 0);
    put(p->folder, "state.json", "{\"state\":\"cancelled\",\"clean\":true}\n");
    put_exited(p); /* the server was killed here */
    assert_int_equal(wb_queue_resume(p->db, p->id, NULL, 4000, NULL), 0);
    start(p);
    c = await(p, is_over);
    assert_string_equal(wb_json_str_or(c, "state", ""), "finished");
    assert_int_equal(wb_json_int_or(c, "starts", 0), 1);
}

/* A kill anywhere in an extension must not find the end of the engine before it. */
static void rounds_are_added_after_the_old_engine_is_gone(void **state)
{
    struct place *p = *state;
    WB_AUTO_JSON wb_json *c = NULL;

    if (!p->able)
        skip();
    make_engine(p);
    take(p);
    assert_int_equal(wb_queue_extend(p->db, p->id, 1, NULL, 3000, NULL), 0);
    put(p->folder, "state.json", "{\"state\":\"finished\",\"clean\":true}\n");
    put_exited(p);
    start(p); /* the folder has no study: that cannot be done, and is tried again */
    c = await(p, job_gone);
    assert_string_equal(wb_json_str_or(c, "state", ""), "running");
    assert_int_equal(wb_json_int_or(c, "rounds_to_add", 0), 1);
}

/* Killed after the rounds were given up and before the end was written down. */
static void a_finished_folder_without_an_engine_is_the_end(void **state)
{
    struct place *p = *state;
    WB_AUTO_JSON wb_json *c = NULL;

    if (!p->able)
        skip();
    take(p);
    put(p->folder, "state.json", "{\"state\":\"finished\",\"clean\":true}\n");
    start(p);
    c = await(p, is_over);
    assert_string_equal(wb_json_str_or(c, "state", ""), "finished");
    assert_int_equal(wb_json_int_or(c, "starts", -1), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_engine_that_cannot_be_started_ends_its_campaign),
        TEST(a_program_that_comes_back_is_started),
        TEST(one_that_cannot_be_started_is_cancelled),
        TEST(a_start_that_was_cut_off_is_made_again),
        TEST(what_the_last_engine_left_does_not_end_a_resumed_campaign),
        TEST(rounds_are_added_after_the_old_engine_is_gone),
        TEST(a_finished_folder_without_an_engine_is_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
