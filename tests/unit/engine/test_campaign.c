/* A campaign's folder: lock, events, ledger with torn lines, states of newer programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/base/file.h"
#include "server/base/job.h"
#include "server/engine/campaign.h"
#include "server/engine/leftovers.h"

static int setup(void **state)
{
    char *dir = wb_strdup("/tmp/wb-test-campaign-XXXXXX");

    *state = dir;
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    int rc = wb_remove_tree(*state, NULL);

    free(*state);
    return rc;
}

static struct wb_campaign_dir *make(const char *state_dir, const char *id)
{
    WB_AUTO_JSON wb_json *doc = wb_json_object();
    struct wb_campaign_dir *c = NULL;

    assert_int_equal(wb_campaign_create(state_dir, id, doc, doc, doc, &c, NULL), 0);
    return c;
}

static void test_lock_and_state(void **state)
{
    struct wb_campaign_dir *c = make(*state, "cmp_a"), *d = NULL;
    struct wb_err err = WB_ERR_INIT;

    assert_int_equal(wb_campaign_open(*state, "cmp_a", &d, &err), -WB_CONFLICT);
    wb_json_set_str(wb_campaign_state(c), "state", "running");
    assert_int_equal(wb_campaign_save_state(c, &err), 0);
    wb_campaign_close(c);
    assert_int_equal(wb_campaign_open(*state, "cmp_a", &d, &err), 0);
    assert_string_equal(wb_json_str_or(wb_campaign_state(d), "state", ""), "running");
    wb_json_set_int(wb_campaign_state(d), "state_version", WB_STATE_VERSION + 1);
    assert_int_equal(wb_campaign_save_state(d, &err), 0);
    wb_campaign_close(d);
    assert_int_equal(wb_campaign_open(*state, "cmp_a", &d, &err), -WB_UNSUPPORTED);
    assert_int_equal(wb_campaign_open(*state, "cmp_none", &d, &err), -WB_NOT_FOUND);
    assert_int_equal(wb_campaign_open(*state, "../cmp_a", &d, &err), -WB_NOT_FOUND);
}

/* A child that a killed engine had just made still holds the lock: it counts as the dead one's. */
static void test_lock_of_a_dead_engine(void **state)
{
    struct wb_campaign_dir *d = NULL;
    struct wb_err err = WB_ERR_INIT;
    int leave[2], ready[2], status = 0;
    struct wb_campaign_holder h;
    pid_t engine;
    char c;

    assert_int_equal(pipe(leave), 0);
    assert_int_equal(pipe(ready), 0);
    engine = fork();
    if (engine == 0) {
        (void)make(*state, "cmp_dead");
        if (fork() == 0) {
            struct pollfd p = {.fd = leave[0], .events = POLLIN};

            (void)!write(ready[1], "1", 1);
            /* Longer than one look of the opener, much shorter than it waits. */
            _exit(poll(&p, 1, 200));
        }
        _exit(0);
    }
    assert_true(engine > 0);
    assert_int_equal(waitpid(engine, &status, 0), engine);
    assert_int_equal(read(ready[0], &c, 1), 1);
    assert_int_equal(wb_campaign_look(*state, "cmp_dead", &h, &err), 0);
    assert_true(h.held);
    assert_int_equal(h.pid, engine);
    assert_int_equal(wb_campaign_open(*state, "cmp_dead", &d, &err), 0);
    wb_campaign_close(d);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(close(leave[i]), 0);
        assert_int_equal(close(ready[i]), 0);
    }
}

static void heard(void *arg, const wb_json *event)
{
    wb_strv_add(arg, wb_json_str_or(event, "type", ""));
}

static void test_events(void **state)
{
    struct wb_campaign_dir *c = make(*state, "cmp_events");
    WB_AUTO_FREE char *path = wb_strf("%s/events.ndjson", wb_campaign_path(c));
    WB_AUTO_FREE char *text = NULL;
    WB_AUTO_JSON wb_json *taken = NULL;
    struct wb_strv types = {0};
    size_t n;

    wb_campaign_listen(c, heard, &types);
    wb_campaign_event(c, "one", NULL);
    wb_campaign_tell(c, "live", NULL);
    wb_campaign_event(c, "two", wb_json_object());
    assert_int_equal(types.n, 3);
    assert_string_equal(types.v[1], "live");
    taken = wb_campaign_take_events(c);
    assert_int_equal(wb_json_len(taken), 2); /* what is only told is not kept */
    wb_json_free(taken);
    taken = wb_campaign_take_events(c);
    assert_int_equal(wb_json_len(taken), 0);
    assert_int_equal(wb_file_read(path, 10000, &text, &n, NULL), 0);
    assert_non_null(strstr(text, "\"type\":\"two\""));
    assert_null(strstr(text, "live"));
    wb_strv_release(&types);
    wb_campaign_close(c);
}

static struct wb_ledger_entry entry(char *name)
{
    static char kind[] = "native", dir[] = "/d", run[] = "run_1";

    return (struct wb_ledger_entry){.kind = kind, .name = name, .dir = dir, .run = run};
}

static void test_ledger(void **state)
{
    struct wb_campaign_dir *c = make(*state, "cmp_ledger");
    WB_AUTO_FREE char *path = wb_strf("%s/ledger.ndjson", wb_campaign_path(c));
    char names[3][2] = {"a", "b", "d"};
    struct wb_ledger_entry *open = NULL, a = entry(names[0]), b = entry(names[1]),
                           d = entry(names[2]);
    size_t n;

    assert_int_equal(wb_ledger_open_entries(c, &open, &n, NULL), 0);
    assert_int_equal(n, 0);
    assert_int_equal(wb_ledger_make(c, &a, NULL), 0);
    assert_int_equal(wb_ledger_make(c, &b, NULL), 0);
    assert_int_equal(wb_ledger_gone(c, "a", NULL), 0);
    assert_int_equal(wb_ledger_make(c, &d, NULL), 0);
    assert_int_equal(wb_ledger_gone(c, "never-made", NULL), 0);
    /* The last line is torn: the machine went down while it was written. */
    assert_int_equal(wb_file_append(path, "{\"op\":\"gone\",\"na", 16, NULL), 0);
    assert_int_equal(wb_ledger_open_entries(c, &open, &n, NULL), 0);
    assert_int_equal(n, 2);
    assert_string_equal(open[0].name, "b");
    assert_string_equal(open[1].name, "d");
    assert_string_equal(open[1].run, "run_1");
    wb_ledger_free(open, n);
    wb_campaign_close(c);
}

/* What is added after a torn line must not become part of it: a thing in no ledger is a leak. */
static void test_torn_ledger_goes_on(void **state)
{
    struct wb_campaign_dir *c = make(*state, "cmp_torn");
    WB_AUTO_FREE char *path = wb_strf("%s/ledger.ndjson", wb_campaign_path(c));
    char names[2][2] = {"a", "b"};
    struct wb_ledger_entry *open = NULL, a = entry(names[0]), b = entry(names[1]);
    size_t n;

    assert_int_equal(wb_ledger_make(c, &a, NULL), 0);
    assert_int_equal(wb_file_append(path, "{\"op\":\"make\",\"na", 16, NULL), 0);
    wb_campaign_close(c);
    assert_int_equal(wb_campaign_open(*state, "cmp_torn", &c, NULL), 0);
    assert_int_equal(wb_ledger_make(c, &b, NULL), 0);
    assert_int_equal(wb_ledger_open_entries(c, &open, &n, NULL), 0);
    assert_int_equal(n, 2);
    assert_string_equal(open[1].name, "b");
    wb_ledger_free(open, n);
    wb_campaign_close(c);
}

/* A full disk tears no line, and what was reserved lets the state be written. */
static void test_full_disk(void **state)
{
    WB_AUTO_FREE char *mnt = wb_strf("%s/mnt", (char *)*state);
    WB_AUTO_FREE char *hog = wb_strf("%s/hog", mnt);
    struct wb_campaign_dir *c;
    struct wb_ledger_entry *open_entries = NULL;
    char zeros[4096] = {0}, names[2][2] = {"a", "b"};
    struct wb_ledger_entry a = entry(names[0]), b = entry(names[1]);
    struct wb_err err = WB_ERR_INIT;
    size_t n;
    int fd, rc, made = 0;

    assert_int_equal(mkdir(mnt, 0755), 0);
    if (mount("none", mnt, "tmpfs", 0, "size=2m") < 0)
        skip();
    c = make(mnt, "cmp_full");
    assert_int_equal(wb_ledger_make(c, &a, NULL), 0);
    fd = open(hog, O_WRONLY | O_CREAT, 0644);
    while (write(fd, zeros, sizeof(zeros)) > 0)
        ;
    (void)close(fd);
    while ((rc = wb_ledger_make(c, &b, &err)) == 0) /* what is left of its last page */
        assert_true(++made < 1000);
    assert_int_equal(err.sys, ENOSPC);
    assert_true(wb_campaign_set_state(c, "failed", false, &err) < 0);
    wb_campaign_spend_reserve(c);
    assert_int_equal(wb_campaign_set_state(c, "failed", false, &err), 0);
    assert_int_equal(wb_ledger_make(c, &b, &err), 0);
    assert_int_equal(wb_ledger_open_entries(c, &open_entries, &n, NULL), 0);
    assert_int_equal(n, made + 2);
    wb_ledger_free(open_entries, n);
    wb_campaign_close(c);
    assert_int_equal(umount(mnt), 0);
}

static void test_holder(void **state)
{
    struct wb_campaign_dir *c = make(*state, "cmp_held");
    struct wb_campaign_holder h;
    struct wb_err err = WB_ERR_INIT;

    assert_int_equal(wb_campaign_look(*state, "cmp_held", &h, &err), 0);
    assert_true(h.held);
    assert_int_equal(h.pid, getpid());
    assert_true(wb_process_is(h.pid, h.ticks, h.boot));
    wb_campaign_close(c);
    assert_int_equal(wb_campaign_look(*state, "cmp_held", &h, &err), 0);
    assert_false(h.held);
    assert_int_equal(wb_campaign_look(*state, "cmp_other", &h, &err), -WB_NOT_FOUND);
    assert_int_equal(wb_campaign_look(*state, "../x", &h, &err), -WB_NOT_FOUND);
    /* Looking takes nothing away. */
    assert_int_equal(wb_campaign_open(*state, "cmp_held", &c, &err), 0);
    wb_campaign_close(c);
}

/* A state that is no JSON any more: the folder is used, what was in it is kept. */
static void test_damaged_state(void **state)
{
    struct wb_campaign_dir *c = make(*state, "cmp_damaged");
    WB_AUTO_FREE char *path = wb_strf("%s/state.json", wb_campaign_path(c));
    WB_AUTO_FREE char *aside = wb_strf("%s.damaged", path);

    wb_campaign_close(c);
    assert_int_equal(wb_file_put(path, "{\"state\": \"run", 14, NULL), 0);
    assert_int_equal(wb_campaign_open(*state, "cmp_damaged", &c, NULL), 0);
    assert_string_equal(wb_json_str_or(wb_campaign_state(c), "state", "none"), "none");
    assert_true(wb_path_exists(aside));
    assert_int_equal(wb_campaign_set_state(c, "interrupted", true, NULL), 0);
    wb_campaign_close(c);
    assert_int_equal(wb_campaign_open(*state, "cmp_damaged", &c, NULL), 0);
    assert_string_equal(wb_json_str_or(wb_campaign_state(c), "state", ""), "interrupted");
    wb_campaign_close(c);
}

static wb_json *field(const char *run)
{
    wb_json *f = wb_json_object();

    wb_json_set_str(f, "run", run);
    return f;
}

static void test_events_of_a_run(void **state)
{
    struct wb_campaign_dir *c = make(*state, "cmp_of");
    WB_AUTO_JSON wb_json *of = NULL;

    wb_campaign_event(c, "one", field("run_a"));
    wb_campaign_event(c, "two", field("run_b"));
    wb_campaign_event(c, "three", field("run_a"));
    of = wb_campaign_events_of(c, "run_a");
    assert_int_equal(wb_json_len(of), 2);
    assert_string_equal(wb_json_str_or(wb_json_at(of, 1), "type", ""), "three");
    wb_campaign_close(c);
}

static void test_snapshot_difference(void **state)
{
    WB_AUTO_JSON wb_json *before = NULL;
    WB_AUTO_JSON wb_json *after = NULL;
    WB_AUTO_JSON wb_json *left = NULL;
    char *const ports[] = {(char[]){"port 16379"}, NULL};
    static const char b[] = "[\"container old\",\"port 22\"]";
    static const char a[] =
        "[\"container new\",\"container old\",\"port 16379\",\"port 22\",\"port 9\"]";

    assert_int_equal(wb_json_parse(b, strlen(b), &before, NULL), 0);
    assert_int_equal(wb_json_parse(a, strlen(a), &after, NULL), 0);
    left = wb_snapshot_new(before, after, ports);
    assert_int_equal(wb_json_len(left), 2); /* a port that is not ours does not count */
    assert_string_equal(wb_json_string(wb_json_at(left, 0)), "container new");
    assert_string_equal(wb_json_string(wb_json_at(left, 1)), "port 16379");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lock_and_state),
        cmocka_unit_test(test_lock_of_a_dead_engine),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_ledger),
        cmocka_unit_test(test_torn_ledger_goes_on),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_holder),
        cmocka_unit_test(test_damaged_state),
        cmocka_unit_test(test_events_of_a_run),
        cmocka_unit_test(test_snapshot_difference),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
