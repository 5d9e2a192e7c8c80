#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/base/mem.h"
#include "server/http/message.h"
#include "server/http/timeline.h"

static bool has(const struct wb_trace *p, double t, double v)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->t[i] == t && p->v[i] == v)
            return true;
    return false;
}

static void spikes_are_kept(void **state)
{
    struct wb_trace in = {0}, out = {0};

    (void)state;
    for (int i = 0; i < 100000; i++)
        wb_trace_add(&in, i, i == 31415 ? 1e6 : i == 27182 ? -1e6 : 5 + (i % 10));
    wb_trace_reduce(&in, 0, 99999, 100, &out);
    assert_true(out.n <= 400);
    assert_true(out.n >= 300);
    assert_true(has(&out, 31415, 1e6));
    assert_true(has(&out, 27182, -1e6));
    assert_true(has(&out, 0, 5));
    assert_true(has(&out, 99999, 14));
    for (size_t i = 1; i < out.n; i++)
        assert_true(out.t[i] > out.t[i - 1]);
    wb_trace_release(&in);
    wb_trace_release(&out);
}

static void few_points_stay_as_they_are(void **state)
{
    struct wb_trace in = {0}, out = {0};

    (void)state;
    for (int i = 0; i < 4; i++)
        wb_trace_add(&in, 7, i); /* all at one time */
    wb_trace_reduce(&in, 7, 7, 1, &out);
    assert_int_equal(out.n, 4);
    wb_trace_release(&out);
    wb_trace_reduce(&in, 8, 9, 10, &out);
    assert_int_equal(out.n, 0);
    wb_trace_reduce(&in, 9, 8, 10, &out); /* the wrong way round */
    assert_int_equal(out.n, 0);
    wb_trace_release(&in);
    wb_trace_reduce(&in, 0, 1, 10, &out);
    assert_int_equal(out.n, 0);
    wb_trace_release(&out);
}

static void holes_stay_holes(void **state)
{
    struct wb_trace in = {0}, out = {0};
    size_t holes = 0;

    (void)state;
    for (int i = 0; i < 1000; i++)
        wb_trace_add(&in, i, i >= 400 && i < 600 ? NAN : i);
    wb_trace_reduce(&in, 0, 999, 10, &out);
    for (size_t i = 0; i < out.n; i++)
        holes += isnan(out.v[i]);
    assert_true(holes >= 2);
    assert_true(has(&out, 399, 399)); /* the highest before, the lowest behind */
    assert_true(has(&out, 600, 600));
    wb_trace_release(&in);
    wb_trace_release(&out);
}

static void only_the_window_is_shown(void **state)
{
    struct wb_trace in = {0}, out = {0};

    (void)state;
    for (int i = 0; i < 1000; i++)
        wb_trace_add(&in, i, i);
    wb_trace_reduce(&in, 100, 109, 50, &out);
    assert_int_equal(out.n, 10);
    assert_true(out.t[0] == 100 && out.t[9] == 109);
    wb_trace_release(&in);
    wb_trace_release(&out);
}

static const struct wb_signal *find(const struct wb_signals *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (!strcmp(s->v[i].name, name))
            return &s->v[i];
    return NULL;
}

static void load_lines_become_signals(void **state)
{
    static const char text[] =
        "{\"t\":0.5,\"seconds\":0.5,\"ok\":100,\"failed\":1,\"in_flight\":8,\"response\":null,"
        "\"service\":{\"p50_ms\":1,\"p99_ms\":2,\"max_ms\":3}}\n"
        "garbage\n\n{\"no\":\"time\"}\n[1]\n"
        "{\"t\":1.5,\"seconds\":1,\"ok\":400,\"failed\":0,\"in_flight\":8,\"response\":null,"
        "\"service\":{\"p50_ms\":1,\"p99_ms\":9,\"max_ms\":30}}\n"
        "{\"t\":1.0,\"seconds\":1,\"ok\":1}\n{\"t\":2,\"seconds\":0,\"ok\":1}\n{\"t\":2.5,\"seco";
    struct wb_signals s = {0};
    const struct wb_signal *x;

    (void)state;
    wb_signals_of_load(&s, "max", "load-max.ndjson", text, sizeof(text) - 1);
    x = find(&s, "max.throughput");
    assert_non_null(x);
    assert_string_equal(x->unit, "1/s");
    assert_string_equal(x->source, "load-max.ndjson");
    assert_int_equal(x->points.n, 2);
    assert_true(x->points.v[0] == 200 && x->points.v[1] == 400);
    x = find(&s, "max.service.p99_ms");
    assert_non_null(x);
    assert_true(x->points.v[1] == 9 && x->points.t[1] == 1.5);
    assert_null(find(&s, "max.response.p99_ms")); /* the closed loop has none */
    assert_null(find(&s, "max.offered"));
    wb_signals_release(&s);
    wb_signals_of_load(&s, "x", "f", "", 0);
    assert_int_equal(s.n, 0);
    wb_signals_release(&s);
}

static void samples_become_signals(void **state)
{
    static const char text[] =
        "{\"t_ms\":[100,200],\"phase\":[\"a\",\"a\"],\"database_cores\":[1.5,null],"
        "\"steal_percent\":[null,null],\"short\":[1],\"odd\":7}";
    WB_AUTO_JSON wb_json *doc = NULL;
    struct wb_signals s = {0};

    (void)state;
    assert_int_equal(wb_json_parse(text, sizeof(text) - 1, &doc, NULL), 0);
    wb_signals_of_samples(&s, "max", "samples-max.json", doc);
    assert_int_equal(s.n, 1);
    assert_string_equal(s.v[0].name, "max.database_cores");
    assert_string_equal(s.v[0].unit, "cores");
    assert_true(s.v[0].points.t[1] == 0.2 && isnan(s.v[0].points.v[1]));
    wb_signals_release(&s);
}

static void files_name_their_phase(void **state)
{
    static const struct {
        const char *file, *phase;
    } rows[] = {
        {"load-max.ndjson", "max"}, {"load-.ndjson", NULL},     {"load.ndjson", NULL},
        {"load-max.json", NULL},    {"load-a-b.ndjson", "a-b"}, {"xload-max.ndjson", NULL},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_FREE char *phase = wb_timeline_phase(rows[i].file, "load-", ".ndjson");

        if (rows[i].phase)
            assert_string_equal(phase, rows[i].phase);
        else
            assert_null(phase);
    }
}

static void ranges_are_read(void **state)
{
    static const struct {
        const char *text;
        int64_t n;
        int rc;
        int64_t from, to;
    } rows[] = {
        {NULL, 10, 0, 0, 0},
        {"bytes=0-0", 10, 1, 0, 0},
        {"bytes=0-", 10, 1, 0, 9},
        {"bytes=3-5", 10, 1, 3, 5},
        {"bytes=3-99", 10, 1, 3, 9},
        {"bytes=-1", 10, 1, 9, 9},
        {"bytes=-99", 10, 1, 0, 9},
        {"bytes=-0", 10, -1, 0, 0},
        {"bytes=10-", 10, -1, 0, 0},
        {"bytes=0-", 0, -1, 0, 0},
        {"bytes=5-3", 10, 0, 0, 0},
        {"bytes=a-b", 10, 0, 0, 0},
        {"bytes=-", 10, 0, 0, 0},
        {"bytes=", 10, 0, 0, 0},
        {"bytes=1-2,4-5", 10, 0, 0, 0},
        {"lines=1-2", 10, 0, 0, 0},
        {"bytes=5000000000-5000000009", 6000000000, 1, 5000000000, 5000000009},
        {"bytes=99999999999999999999-", 10, 0, 0, 0},
        {"bytes=0-9223372036854775807", 10, 1, 0, 9},
        {"bytes=-9223372036854775807", 10, 1, 0, 9},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        int64_t from = 0, to = 0;

        assert_int_equal(wb_range_read(rows[i].text, rows[i].n, &from, &to), rows[i].rc);
        if (rows[i].rc == 1) {
            assert_int_equal(from, rows[i].from);
            assert_int_equal(to, rows[i].to);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spikes_are_kept),           cmocka_unit_test(few_points_stay_as_they_are),
        cmocka_unit_test(holes_stay_holes),          cmocka_unit_test(only_the_window_is_shown),
        cmocka_unit_test(load_lines_become_signals), cmocka_unit_test(samples_become_signals),
        cmocka_unit_test(files_name_their_phase),    cmocka_unit_test(ranges_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
