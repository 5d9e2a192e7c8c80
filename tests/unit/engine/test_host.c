/* What controllers agree on about a host: lock, marks of runs, quarantine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/mem.h"
#include "server/engine/host.h"

static int setup(void **state)
{
    char *dir = wb_strdup("/tmp/wb-test-host-XXXXXX");

    *state = dir;
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    int rc = wb_remove_tree(*state, NULL);

    free(*state);
    return rc;
}

static void heard(void *arg, const char *text)
{
    wb_strv_add(arg, text);
}

static void test_lock(void **state)
{
    struct wb_strv notes = {0};
    struct wb_host_wait wait = {.ns = 50 * WB_MS, .note = heard, .arg = &notes};
    struct wb_err err = WB_ERR_INIT;
    int64_t began;
    int a, b = -1;

    assert_int_equal(wb_host_look(*state, &err), 0);
    assert_int_equal(wb_host_lock(*state, "campaign cmp_one", NULL, &a, &err), 0);
    assert_int_equal(wb_host_look(*state, &err), -WB_CONFLICT);
    assert_non_null(strstr(err.root, "campaign cmp_one"));
    assert_int_equal(wb_host_lock(*state, "two", NULL, &b, &err), -WB_CONFLICT);
    assert_int_equal(b, -1);
    assert_non_null(strstr(err.root, "campaign cmp_one"));
    began = wb_now_ns(NULL);
    assert_int_equal(wb_host_lock(*state, "two", &wait, &b, &err), -WB_CONFLICT);
    assert_true(wb_now_ns(NULL) - began >= 50 * WB_MS);
    assert_int_equal(notes.n, 1); /* told once */
    assert_non_null(strstr(notes.v[0], "campaign cmp_one"));
    (void)close(a);
    assert_int_equal(wb_host_lock(*state, "two", &wait, &b, &err), 0);
    (void)close(b);
    wb_strv_release(&notes);
}

/* Whoever waits gets it as soon as its holder dies, and can be cancelled. */
static void test_wait(void **state)
{
    struct wb_cancel *cancel = wb_cancel_new();
    struct wb_host_wait wait = {.ns = 20 * WB_SEC, .cancel = cancel};
    struct wb_err err = WB_ERR_INIT;
    int fd, ready[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    if (pid == 0) {
        if (wb_host_lock(*state, "the dying one", NULL, &fd, NULL) < 0 ||
            write(ready[1], "x", 1) != 1)
            _exit(1);
        (void)pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(wb_host_lock(*state, "heir", &wait, &fd, &err), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    wb_cancel_set(cancel, 0);
    assert_int_equal(wb_host_lock(*state, "late", &wait, &pid, &err), -WB_CANCELLED);
    (void)close(fd);
    (void)close(ready[0]);
    (void)close(ready[1]);
    wb_cancel_free(cancel);
}

static wb_json *parse(const char *text)
{
    wb_json *j = NULL;

    assert_int_equal(wb_json_parse(text, strlen(text), &j, NULL), 0);
    return j;
}

static void test_marks(void **state)
{
    WB_AUTO_JSON wb_json *mark = parse("{\"run\":\"run_a\",\"owner\":\"me\"}");
    WB_AUTO_JSON wb_json *bad = parse("{\"run\":\"../run\",\"owner\":\"me\"}");
    WB_AUTO_JSON wb_json *back = NULL;
    WB_AUTO_JSON wb_json *all = NULL;
    struct wb_err err = WB_ERR_INIT;

    assert_null(wb_run_marked(*state, "run_a"));
    assert_int_equal(wb_run_mark(*state, mark, &err), 0);
    assert_int_equal(wb_run_mark(*state, bad, &err), -WB_INVALID);
    back = wb_run_marked(*state, "run_a");
    assert_string_equal(wb_json_str_or(back, "owner", ""), "me");
    assert_null(wb_run_marked(*state, "../run"));
    assert_int_equal(wb_run_marks(*state, &all, &err), 0);
    assert_int_equal(wb_json_len(all), 1);
    assert_string_equal(wb_json_str_or(wb_json_at(all, 0), "file", ""), "run_a");
    assert_int_equal(wb_run_unmark(*state, "run_a", &err), 0);
    assert_int_equal(wb_run_unmark(*state, "run_a", &err), 0); /* again */
    assert_null(wb_run_marked(*state, "run_a"));
}

static void test_quarantine(void **state)
{
    WB_AUTO_JSON wb_json *q = parse("{\"owner\":\"me\",\"store\":\"/s.git\",\"run\":\"run_a\","
                                    "\"campaign\":\"cmp_a\",\"left\":[\"port 1\",\"mount /x\"]}");
    WB_AUTO_FREE char *torn = wb_strf("%s/quarantine/other.json", (char *)*state);
    WB_AUTO_FREE char *there = wb_strf("weighbridge clean --store %s", (char *)*state);
    struct wb_err err = WB_ERR_INIT;

    assert_int_equal(wb_quarantine_check(*state, &err), 0);
    assert_int_equal(wb_quarantine_set(*state, q, &err), 0);
    assert_int_equal(wb_quarantine_check(*state, &err), -WB_CONFLICT);
    assert_non_null(strstr(err.root, "run_a"));
    assert_non_null(strstr(err.root, "port 1; mount /x"));
    /* Its store is no more: the owner is named instead. */
    assert_non_null(strstr(err.root, "weighbridge clean --owner me"));
    wb_json_set_str(q, "store", *state);
    assert_int_equal(wb_quarantine_set(*state, q, &err), 0);
    assert_int_equal(wb_quarantine_check(*state, &err), -WB_CONFLICT);
    assert_non_null(strstr(err.root, there));
    assert_int_equal(wb_quarantine_lift(*state, "someone", &err), 0);
    assert_int_equal(wb_quarantine_check(*state, &err), -WB_CONFLICT);
    assert_int_equal(wb_quarantine_lift(*state, "me", &err), 0);
    assert_int_equal(wb_quarantine_check(*state, &err), 0);
    /* A note that cannot be read still holds the host back. */
    assert_int_equal(wb_file_put(torn, "{\"own", 5, NULL), 0);
    assert_int_equal(wb_quarantine_check(*state, &err), -WB_CONFLICT);
    assert_non_null(strstr(err.root, "quarantine/other.json"));
    assert_non_null(strstr(err.root, "weighbridge clean --owner other"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lock, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(test_marks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_quarantine, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
