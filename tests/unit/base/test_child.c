#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/base/cancel.h"
#include "server/base/child.h"
#include "server/base/clock.h"

static int sh(const char *script, struct wb_child_spec spec, struct wb_child_result *res,
              struct wb_err *err)
{
    char *text = wb_strdup(script);
    char *const argv[] = {(char[]){"/bin/sh"}, (char[]){"-c"}, text, NULL};
    int rc;

    spec.argv = argv;
    if (!spec.limit_ns)
        spec.limit_ns = 20 * WB_SEC;
    rc = wb_child_check(&spec, res, err);
    free(text);
    return rc;
}

static void test_output_and_input(void **state)
{
    struct wb_child_result res;
    struct wb_err err = WB_ERR_INIT;
    const char input[] = "one\ntwo\n";

    assert_int_equal(sh("cat; echo warn >&2",
                        (struct wb_child_spec){.input = input, .input_len = strlen(input)}, &res,
                        &err),
                     0);
    assert_string_equal(wb_buf_str(&res.out), input);
    assert_string_equal(wb_buf_str(&res.err), "warn\n");
    wb_child_release(&res);
}

/* More input than a pipe holds to a child that reads none of it, and one that answers at once. */
static void test_big_input(void **state)
{
    struct wb_child_result res;
    struct wb_err err = WB_ERR_INIT;
    char *big = wb_calloc(1, 1 << 20);

    assert_int_equal(
        sh("exit 0", (struct wb_child_spec){.input = big, .input_len = 1 << 20}, &res, &err), 0);
    wb_child_release(&res);
    assert_int_equal(
        sh("wc -c", (struct wb_child_spec){.input = big, .input_len = 1 << 20}, &res, &err), 0);
    assert_string_equal(wb_buf_str(&res.out), "1048576\n");
    wb_child_release(&res);
    free(big);
}

static void test_status(void **state)
{
    struct wb_child_result res;
    struct wb_err err = WB_ERR_INIT;

    assert_int_equal(
        sh("echo first >&2; echo 'the reason' >&2; exit 3", (struct wb_child_spec){0}, &res, &err),
        -WB_IO);
    assert_string_equal(err.root, "/bin/sh ended with status 3: the reason");
    assert_int_equal(res.exit_code, 3);
    wb_child_release(&res);
    assert_int_equal(sh("kill -9 $$", (struct wb_child_spec){0}, &res, &err), -WB_IO);
    assert_string_equal(err.root, "/bin/sh was ended by signal 9");
    assert_int_equal(res.signal, 9);
    wb_child_release(&res);
}

static void test_not_there(void **state)
{
    struct wb_child_result res;
    struct wb_err err = WB_ERR_INIT;
    char *const argv[] = {(char[]){"no-such-program-here"}, NULL};
    struct wb_child_spec spec = {.argv = argv, .limit_ns = WB_SEC};

    assert_int_equal(wb_child_run(&spec, &res, &err), -WB_NOT_FOUND);
    assert_string_equal(err.root, "cannot run no-such-program-here: No such file or directory");
    wb_child_release(&res);
}

/* The time limit ends the whole group, also a grandchild that holds the outputs open. */
static void test_time_limit(void **state)
{
    struct wb_child_result res;
    struct wb_err err = WB_ERR_INIT;
    int64_t began = wb_now_ns(NULL);
    pid_t grandchild;

    assert_int_equal(sh("sleep 300 & echo $!; wait",
                        (struct wb_child_spec){.limit_ns = 200 * WB_MS}, &res, &err),
                     -WB_TIMEOUT);
    assert_true(res.timed_out);
    assert_true(wb_now_ns(NULL) - began < 10 * WB_SEC);
    grandchild = (pid_t)strtol(wb_buf_str(&res.out), NULL, 10);
    assert_true(grandchild > 0);
    for (int i = 0; i < 1000 && kill(grandchild, 0) == 0; i++)
        assert_int_equal(wb_wait(NULL, -1, 10 * WB_MS, NULL), 0);
    assert_int_equal(kill(grandchild, 0), -1);
    wb_child_release(&res);
}

/* It closes its outputs and lives on: the limit still holds. */
static void test_closed_outputs(void **state)
{
    struct wb_child_result res;
    struct wb_err err = WB_ERR_INIT;

    assert_int_equal(sh("exec >&- 2>&-; exec sleep 300",
                        (struct wb_child_spec){.limit_ns = 200 * WB_MS}, &res, &err),
                     -WB_TIMEOUT);
    wb_child_release(&res);
}

static void test_flood(void **state)
{
    struct wb_child_result res;
    struct wb_err err = WB_ERR_INIT;

    assert_int_equal(
        sh("head -c 100000 /dev/zero", (struct wb_child_spec){.out_max = 1000}, &res, &err),
        -WB_LIMIT);
    assert_string_equal(err.root, "/bin/sh wrote more than 1000 bytes to its standard output");
    wb_child_release(&res);
    /* stderr only keeps its tail */
    assert_int_equal(sh("head -c 500000 /dev/zero >&2; printf end >&2",
                        (struct wb_child_spec){.err_max = 1000}, &res, &err),
                     0);
    assert_int_equal(res.err.len, 1000);
    assert_memory_equal(res.err.data + 997, "end", 3);
    wb_child_release(&res);
}

static void test_cancel(void **state)
{
    struct wb_cancel *c = wb_cancel_new();
    struct wb_child_result res;
    struct wb_err err = WB_ERR_INIT;

    wb_cancel_set(c, SIGINT);
    assert_int_equal(sh("sleep 300", (struct wb_child_spec){.cancel = c}, &res, &err),
                     -WB_CANCELLED);
    assert_int_equal(wb_cancel_signal(c), SIGINT);
    wb_child_release(&res);
    wb_cancel_free(c);
}

static void test_environment(void **state)
{
    struct wb_child_result res;
    struct wb_err err = WB_ERR_INIT;
    char *const env[] = {(char[]){"WB_X=1"}, NULL};

    assert_int_equal(setenv("WB_LEAK", "1", 1), 0);
    assert_int_equal(sh("echo $WB_X$WB_LEAK", (struct wb_child_spec){.env = env}, &res, &err), 0);
    assert_string_equal(wb_buf_str(&res.out), "1\n");
    wb_child_release(&res);
}

/* A starter that is killed takes its child along, and what that started: the pipe that only they
 * hold is closed. */
static void test_starter_killed(void **state)
{
    int p[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe(p), 0);
    pid = fork();
    if (pid == 0) {
        WB_AUTO_FREE char *script = wb_strf(
            "exec 9>/proc/%d/fd/%d; sleep 300 & sleep 301 & echo x >&9; wait", (int)getpid(), p[1]);
        struct wb_child_result res;
        struct wb_err err = WB_ERR_INIT;

        _exit(sh(script, (struct wb_child_spec){0}, &res, &err) < 0);
    }
    (void)close(p[1]);
    assert_int_equal(read(p[0], &byte, 1), 1);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(read(p[0], &byte, 1), 1); /* the newline */
    assert_int_equal(read(p[0], &byte, 1), 0);
    (void)close(p[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_output_and_input),
        cmocka_unit_test(test_big_input),
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_not_there),
        cmocka_unit_test(test_time_limit),
        cmocka_unit_test(test_closed_outputs),
        cmocka_unit_test(test_flood),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_starter_killed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
