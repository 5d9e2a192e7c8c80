#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runners/load/load_state.h"
#include "runners/load/report.h"
#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/mem.h"

struct rig {
    char dir[32];
    char *path;
    struct wb_load_job job;
};

static void rig_up(struct rig *r)
{
    struct wb_err err = WB_ERR_INIT;

    *r = (struct rig){.dir = "/tmp/wb_state_XXXXXX"};
    assert_non_null(mkdtemp(r->dir));
    r->path = wb_strf("%s/state.json", r->dir);
    wb_load_job_init(&r->job);
    r->job.target = wb_strdup("null://");
    r->job.threads = 2;
    r->job.keys = 500;
    r->job.load_only = true;
    r->job.load_state = wb_strdup(r->path);
    assert_int_equal(wb_load_job_check(&r->job, &err), 0);
}

static void rig_down(struct rig *r)
{
    (void)unlink(r->path);
    assert_int_equal(rmdir(r->dir), 0); /* nothing else was left there */
    free(r->path);
    wb_load_job_release(&r->job);
}

static void on_begin(void *ctx, const struct wb_load_outcome *o, int64_t start_unix_ms)
{
    (void)ctx;
    (void)o;
    (void)start_unix_ms;
}

static void on_interval(void *ctx, const struct wb_load_interval *i)
{
    (void)ctx;
    (void)i;
}

static void run(struct rig *r, struct wb_load_outcome *o)
{
    struct wb_load_watch watch = {.begin = on_begin, .interval = on_interval};
    struct wb_cancel *c = wb_cancel_new();
    struct wb_err err = WB_ERR_INIT;

    assert_int_equal(wb_load_run(&r->job, c, &watch, o, &err), 0);
    assert_int_equal(o->end, WB_LOAD_DONE);
    wb_cancel_free(c);
}

static void test_both_ways(void **state)
{
    static const uint64_t in[] = {100, 500};
    uint64_t out[2] = {7, 8};
    struct rig r;

    (void)state;
    rig_up(&r);
    assert_int_equal(wb_load_state_read(&r.job, out, NULL), 0); /* no file */
    assert_int_equal(out[0], 7);
    assert_int_equal(wb_load_state_write(&r.job, in, NULL), 0);
    assert_int_equal(wb_load_state_read(&r.job, out, NULL), 0);
    assert_int_equal(out[0], 100);
    assert_int_equal(out[1], 500);
    rig_down(&r);
}

/* A load goes on where it was, writes only the rest, and says so. */
static void test_goes_on(void **state)
{
    static const struct {
        uint64_t written[2], resumed;
    } rows[] = {
        {{0, 250}, 0}, {{100, 300}, 150}, {{250, 499}, 499}, {{250, 500}, 500},
        {{0, 0}, 0},   {{500, 500}, 500}, /* beyond the own rows of the first */
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_load_outcome o;
        const char *verdict = NULL;
        uint64_t out[2] = {0};
        struct rig r;
        wb_json *doc;
        rig_up(&r);
        assert_int_equal(wb_load_state_write(&r.job, rows[i].written, NULL), 0);
        run(&r, &o);
        assert_int_equal(o.data.resumed, rows[i].resumed);
        assert_int_equal(o.data.rows, 500);
        assert_int_equal(wb_phase_total(&o.total, WB_PHASE_LOAD).ok, 500 - rows[i].resumed);
        assert_int_equal(o.data.checked, 500); /* the sample is of all rows */
        doc = wb_load_report(&o, &verdict);
        assert_string_equal(verdict, "valid");
        assert_int_equal(wb_json_int_or(wb_json_get(doc, "data"), "resumed", -1), rows[i].resumed);
        wb_json_free(doc);
        assert_int_equal(wb_load_state_read(&r.job, out, NULL), 0);
        assert_int_equal(out[0], 250);
        assert_int_equal(out[1], 500);
        wb_load_outcome_release(&o);
        rig_down(&r);
    }
}

/* A file of other data, of another cut, or damaged is never gone on from. */
static void test_refused(void **state)
{
    static const char *const damaged[] = {"", "{", "[]", "{}", "null"};
    static const uint64_t in[] = {100, 300};
    uint64_t out[3] = {7, 8, 9};
    struct wb_err err = WB_ERR_INIT;
    struct rig r;

    (void)state;
    rig_up(&r);
    assert_int_equal(wb_load_state_write(&r.job, in, NULL), 0);
    r.job.keys = 501;
    assert_int_equal(wb_load_state_read(&r.job, out, &err), -WB_INVALID);
    assert_non_null(strstr(err.root, "keys is 500 there and 501 here"));
    r.job.keys = 500;
    r.job.threads = 3;
    assert_int_equal(wb_load_state_read(&r.job, out, NULL), -WB_INVALID);
    r.job.threads = 2;
    r.job.seed = 2;
    assert_int_equal(wb_load_state_read(&r.job, out, NULL), -WB_INVALID);
    r.job.seed = 1;
    r.job.part = 1;
    assert_int_equal(wb_load_state_read(&r.job, out, NULL), -WB_INVALID);
    r.job.part = 0;
    r.job.keys = 200; /* the file says that more was written than there is */
    assert_int_equal(wb_load_state_read(&r.job, out, NULL), -WB_INVALID);
    r.job.keys = 500;
    for (size_t i = 0; i < WB_LEN(damaged); i++) {
        assert_int_equal(wb_file_write(r.path, damaged[i], strlen(damaged[i]), 0644, NULL), 0);
        assert_true(wb_load_state_read(&r.job, out, NULL) < 0);
    }
    assert_int_equal(out[0], 7);
    assert_int_equal(out[1], 8);
    rig_down(&r);
}

/* A place that cannot be written to makes the run a failed one, with its rows. */
static void test_not_writable(void **state)
{
    struct wb_load_outcome o;
    const char *verdict = NULL;
    struct rig r;
    wb_json *doc;

    (void)state;
    rig_up(&r);
    free(r.job.load_state);
    r.job.load_state = wb_strf("%s/nosuch/state.json", r.dir);
    run(&r, &o);
    assert_int_equal(o.data.rows, 500);
    doc = wb_load_report(&o, &verdict);
    assert_string_equal(verdict, "failed");
    assert_string_equal(wb_json_str_or(wb_json_at(wb_json_get(doc, "reasons"), 0), "code", ""),
                        "load-state");
    wb_json_free(doc);
    wb_load_outcome_release(&o);
    rig_down(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_ways),
        cmocka_unit_test(test_goes_on),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_not_writable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
