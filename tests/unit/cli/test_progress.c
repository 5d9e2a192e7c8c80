/*
 * The line that is rewritten while a campaign runs: it fits, and no figure in it is cut.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "server/base/mem.h"
#include "server/cli/progress.h"

static const struct wb_progress_view usual = {.run = 12,
                                              .runs = 16,
                                              .round = 6,
                                              .rounds = 8,
                                              .arm = "docker x1",
                                              .phase = "latency",
                                              .elapsed_s = 6,
                                              .planned_s = 6,
                                              .rate_per_s = 171000,
                                              .p99_ms = 3.47,
                                              .left_s = 2 * 60 + 45};
static const struct wb_progress_view longest = {.run = 19999,
                                                .runs = 20000,
                                                .round = 999,
                                                .rounds = 1000,
                                                .arm = "docker x16/512MiB/connections 2000/uniform",
                                                .phase = "a-phase-with-a-name-of-63-characters",
                                                .warm_up = true,
                                                .elapsed_s = 86399,
                                                .planned_s = 86400,
                                                .rate_per_s = 987654321,
                                                .p99_ms = 3599999,
                                                .left_s = 99 * 3600 + 59 * 60 + 59};

static int columns(const char *s)
{
    int n = 0;

    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

static char *line(const struct wb_progress_view *v, int width)
{
    struct wb_buf b = WB_BUF_INIT(4096);

    wb_progress_line(v, width, &b);
    assert_true(b.len > 0);
    return wb_buf_take(&b);
}

static void says(const struct wb_progress_view *v, int width, const char *want)
{
    WB_AUTO_FREE char *got = line(v, width);

    assert_string_equal(got, want);
}

static void test_usual_lines(void **state)
{
    says(&usual, 200,
         "run 12/16  round 6/8  docker x1  latency 6/6 s  171.0k/s  p99 3.47 ms  left 2 m 45 s");
    says(&usual, 79, "12/16 r6/8  docker x1  latency 6/6 s  171.0k/s  p99 3.47 ms  left 2 m 45 s");
    says(&usual, 70, "12/16  docker x1  latency 6/6 s  171.0k/s  p99 3.47 ms  left 2 m 45 s");
    says(&usual, 66, "12/16  docker x1  latency  171.0k/s  p99 3.47 ms  left 2 m 45 s");
    says(&usual, 50, "12/16  docker x1  latency  171.0k/s  left 2 m 45 s");
    says(&usual, 39, "12/16  docker x1  left 2 m 45 s");
}

static void test_unknown_figures_are_left_out(void **state)
{
    struct wb_progress_view v = {
        .run = 1, .runs = 2, .round = 1, .rounds = 1, .rate_per_s = -1, .p99_ms = -1, .left_s = -1};

    says(&v, 79, "run 1/2  round 1/1");
    v.calibrating = true;
    v.arm = "native x1";
    v.left_s = 5;
    says(&v, 79, "calibration  native x1  left 5.0 s");
    v.reference = true;
    says(&v, 79, "parity reference  native x1  left 5.0 s");
    v.reference = false;
}

/* A figure stands whole or not at all; position and time left always stand. */
static void whole(const struct wb_progress_view *v, int width)
{
    WB_AUTO_FREE char *got = line(v, width);
    WB_AUTO_FREE char *full = line(v, 1000);
    const char *left = strstr(full, "  left ");

    if (columns(got) > width)
        fail_msg("%d columns instead of %d: %s", columns(got), width, got);
    assert_non_null(left);
    assert_non_null(strstr(got, left));
    assert_true(strstr(got, "987.7M/s") || !strstr(got, "/s"));
    assert_true(strstr(got, "p99 1 h 00 m  left") || !strstr(got, "p99"));
    assert_int_equal(strncmp(got, width < 200 ? "19999/20000" : "run ", 4), 0);
}

static void test_the_longest_values_fit(void **state)
{
    for (int width = 39; width <= 120; width++)
        whole(&longest, width);
}

static void test_names_drive_no_terminal(void **state)
{
    struct wb_progress_view v = usual;

    v.arm = "a\033[2Jb\n\xc3\xa4";
    says(&v, 200,
         "run 12/16  round 6/8  a?[2Jb?\xc3\xa4  latency 6/6 s  171.0k/s  p99 3.47 ms  left 2 m 45 "
         "s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usual_lines),
        cmocka_unit_test(test_unknown_figures_are_left_out),
        cmocka_unit_test(test_the_longest_values_fit),
        cmocka_unit_test(test_names_drive_no_terminal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
