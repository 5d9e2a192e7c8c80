/*
 * analysis PART...: what the analysis costs and how often it errs. Prints one line a figure, with
 * the bar it is held against. Parts: changes (cost of 1,000 series of 365 nights, and of one more
 * night), alarms (changes of level seen where there are none), steps (nights until a step is
 * found), order (A/A comparisons on a drifting host), histogram (decoding). All by default.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/analysis/changes.h"
#include "server/analysis/compare.h"
#include "server/analysis/histogram.h"
#include "server/base/hist_read.h"
#include "server/base/mem.h"
#include "server/base/rng.h"

#define SERIES 1000
#define NIGHTS 365

static double cpu_s(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void report(const char *name, double value, const char *unit, double bar, bool at_least)
{
    bool met = at_least ? value >= bar : value <= bar;

    (void)printf("%-58s %9.2f %-6s bar %s %g: %s\n", name, value, unit, at_least ? ">=" : "<=", bar,
                 met ? "met" : "MISSED");
    (void)fflush(stdout);
}

/* ---- series ---- */

static double normal(struct wb_rng *r)
{
    return sqrt(-2 * log(1 - wb_rng_unit(r))) * cos(2 * M_PI * wb_rng_unit(r));
}

enum noise { NORMAL, HEAVY, LINKED, MODES };

/* A value of 1000 with noise of about 2 %. last keeps what linked noise hangs on. */
static double noisy(struct wb_rng *r, enum noise kind, double *last)
{
    double a = normal(r), b, c, d;

    switch (kind) {
    case HEAVY: /* Student's t with 3 degrees of freedom */
        b = normal(r);
        c = normal(r);
        d = normal(r);
        return 1000 * (1 + 0.01 * a / sqrt((b * b + c * c + d * d) / 3));
    case LINKED:
        *last = 0.4 * *last + sqrt(1 - 0.16) * a;
        return 1000 * (1 + 0.02 * *last);
    case MODES:
        return 1000 * (1 + 0.005 * a + (wb_rng_unit(r) < 0.5 ? 0.08 : 0));
    case NORMAL:
        break;
    }
    return 1000 * (1 + 0.02 * a);
}

static wb_json *document(const double *v, size_t n, const wb_json *previous)
{
    wb_json *doc = wb_json_object(), *values = wb_json_array();

    for (size_t i = 0; i < n; i++)
        wb_json_push(values, wb_json_real(v[i]));
    wb_json_set(doc, "values", values);
    wb_json_set_str(doc, "better", "higher");
    if (previous != NULL)
        wb_json_set(doc, "previous", wb_json_ref(previous));
    return doc;
}

static wb_json *ask(const double *v, size_t n, const wb_json *previous)
{
    WB_AUTO_JSON wb_json *doc = document(v, n, previous);
    wb_json *answer = NULL;
    struct wb_err err = WB_ERR_INIT;

    if (wb_stats_changes(doc, &answer, &err) < 0) {
        (void)fprintf(stderr, "analysis: %s\n", err.root);
        exit(1);
    }
    return answer;
}

static size_t changes_in(const wb_json *answer)
{
    return wb_json_len(wb_json_get(answer, "change_points"));
}

/* ---- cost ---- */

static void bench_changes(void)
{
    double *v = wb_calloc((size_t)SERIES * NIGHTS, sizeof(double)), start;
    wb_json **answers = wb_calloc(SERIES, sizeof(wb_json *));
    struct wb_rng r;
    size_t found = 0, same = 0;

    wb_rng_seed(&r, 365);
    for (size_t s = 0; s < SERIES; s++) {
        size_t at = 30 + (size_t)wb_rng_below(&r, NIGHTS - 60);
        double last = 0;
        for (size_t i = 0; i < NIGHTS; i++) {
            double step = s % 10 == 0 && i >= at ? 0.93 : 1;
            v[s * NIGHTS + i] = noisy(&r, NORMAL, &last) * step;
        }
    }
    start = cpu_s();
    for (size_t s = 0; s < SERIES; s++)
        answers[s] = ask(v + s * NIGHTS, NIGHTS - 1, NULL);
    report("changes of 1,000 series x 365 nights", cpu_s() - start, "s", 60, false);
    start = cpu_s();
    for (size_t s = 0; s < SERIES; s++) {
        wb_json *next = ask(v + s * NIGHTS, NIGHTS, answers[s]);
        found += s % 10 == 0 && changes_in(next) > 0;
        same += s % 10 == 0 && wb_json_len(wb_json_get(next, "gone")) == 0;
        wb_json_free(next);
        wb_json_free(answers[s]);
    }
    report("one more night of each", cpu_s() - start, "s", 10, false);
    report("of 100 planted changes of 7 % found", (double)found, "", 99, true);
    report("of them kept by the next night", (double)same, "", 99, true);
    free(answers);
    free(v);
}

/* ---- errors ---- */

static void bench_alarms(void)
{
    static const struct {
        enum noise kind;
        const char *name;
        double bar; /* percent of the series */
    } kinds[] = {{NORMAL, "normal noise", 2},
                 {HEAVY, "heavy tails", 2},
                 {MODES, "two modes", 3},
                 {LINKED, "linked nights (0.4)", 20}};
    enum { TRIALS = 1000 };
    struct wb_rng r;

    wb_rng_seed(&r, 100);
    for (size_t k = 0; k < WB_LEN(kinds); k++)
        for (size_t n = 30; n <= 100; n += 70) {
            WB_AUTO_FREE char *name = wb_strf("alarms in %zu quiet nights, %s", n, kinds[k].name);
            size_t alarms = 0;
            for (size_t t = 0; t < TRIALS; t++) {
                double v[100], last = 0;
                wb_json *answer;
                for (size_t i = 0; i < n; i++)
                    v[i] = noisy(&r, kinds[k].kind, &last);
                answer = ask(v, n, NULL);
                alarms += changes_in(answer) > 0;
                wb_json_free(answer);
            }
            report(name, 100.0 * (double)alarms / TRIALS, "%", kinds[k].bar, false);
        }
}

static bool has_change_at(const wb_json *answer, int64_t at)
{
    const wb_json *list = wb_json_get(answer, "change_points");

    for (size_t i = 0; i < wb_json_len(list); i++)
        if (llabs(wb_json_int_or(wb_json_at(list, i), "index", -9) - at) <= 2)
            return true;
    return false;
}

static void bench_steps(void)
{
    enum { TRIALS = 1000, QUIET = 60, MORE = 5 };
    struct wb_rng r;
    size_t by[MORE + 1] = {0};

    wb_rng_seed(&r, 60);
    for (size_t t = 0; t < TRIALS; t++) {
        double v[QUIET + MORE], last = 0;
        bool found = false;
        for (size_t i = 0; i < QUIET + MORE; i++)
            v[i] = noisy(&r, NORMAL, &last) * (i < QUIET ? 1 : 0.94);
        for (size_t k = 3; k <= MORE; k++) {
            wb_json *answer = ask(v, QUIET + k, NULL);
            found |= has_change_at(answer, QUIET);
            by[k] += found;
            wb_json_free(answer);
        }
    }
    for (size_t k = 3; k <= MORE; k++) {
        WB_AUTO_FREE char *name = wb_strf("step of 6 %% at 2 %% noise found within %zu nights", k);
        report(name, 100.0 * (double)by[k] / TRIALS, "%", k == MORE ? 95 : 0, true);
    }
}

/* Ten runs of the same thing against ten, while the host drifts by two noise widths: one after the
 * other, and in rounds whose order is shuffled. */
static void bench_order(void)
{
    enum { TRIALS = 20000, RUNS = 10 };
    struct wb_rng r;
    size_t block = 0, shuffled = 0;

    wb_rng_seed(&r, 51);
    for (size_t t = 0; t < TRIALS; t++)
        for (int rounds = 0; rounds < 2; rounds++) {
            WB_AUTO_JSON wb_json *doc = wb_json_object();
            wb_json *a = wb_json_array(), *b = wb_json_array(), *answer = NULL;
            for (size_t i = 0; i < (size_t)2 * RUNS; i++) {
                double drift = 2.0 * (double)i / (2 * RUNS - 1);
                double value = 1000 * (1 + 0.02 * (normal(&r) + drift));
                bool first = rounds ? i % 2 == 0 ? wb_rng_unit(&r) < 0.5 : wb_json_len(a) <= i / 2
                                    : i < RUNS;
                wb_json_push(first ? a : b, wb_json_real(value));
            }
            wb_json_set(doc, rounds ? "rounds_base" : "base", a);
            wb_json_set(doc, rounds ? "rounds_new" : "new", b);
            if (wb_stats_compare(doc, &answer, NULL) == 0)
                *(rounds ? &shuffled : &block) += wb_json_real_or(answer, "p", 1) <= 0.05;
            wb_json_free(answer);
        }
    report("A/A on a drifting host, one block after the other", 100.0 * (double)block / TRIALS, "%",
           40, true);
    report("A/A on a drifting host, shuffled rounds", 100.0 * (double)shuffled / TRIALS, "%", 5,
           false);
}

/* ---- histogram logs ---- */

/* A log of interval histograms of latencies around 0.2 ms, as wb-load writes them every second,
 * and the same histograms alone. Returns the bytes of all before they are compressed. */
static size_t make_log(struct wb_buf *log, struct wb_strv *alone, size_t lines, int values)
{
    struct wb_hist_reader reader;
    struct wb_rng r;
    size_t payload = 0;

    wb_hist_reader_init(&reader);
    wb_rng_seed(&r, 100);
    wb_hist_log_head(log, "bench", 1700000000000);
    for (size_t i = 0; i < lines; i++) {
        struct wb_buf one = WB_BUF_INIT(1 << 20);
        struct wb_hist h;
        wb_hist_init_ns(&h);
        for (int k = 0; k < values; k++)
            wb_hist_record(&h, (int64_t)(200000 * exp(0.3 * normal(&r))));
        wb_hist_log_line(log, i % 2 ? "read.service" : "write.service", (int64_t)i * 1000000000,
                         1000000000, &h);
        wb_hist_encode(&h, &one);
        if (wb_hist_read(&reader, wb_buf_str(&one), one.len, NULL) < 0)
            exit(1);
        payload += reader.plain.len;
        wb_strv_add(alone, wb_buf_str(&one));
        wb_buf_release(&one);
        wb_hist_release(&h);
    }
    wb_hist_reader_release(&reader);
    return payload;
}

static double decode_s(const struct wb_strv *alone)
{
    struct wb_hist_reader reader;
    double start;

    wb_hist_reader_init(&reader);
    start = cpu_s();
    for (size_t i = 0; i < alone->n; i++)
        if (wb_hist_read(&reader, alone->v[i], strlen(alone->v[i]), NULL) < 0)
            exit(1);
    start = cpu_s() - start;
    wb_hist_reader_release(&reader);
    return start;
}

static double log_s(const wb_json *doc, int64_t lines)
{
    double start = cpu_s();
    wb_json *answer = NULL;

    if (wb_stats_histogram(doc, &answer, NULL) < 0 || wb_json_int_or(answer, "entries", 0) != lines)
        exit(1);
    wb_json_free(answer);
    return cpu_s() - start;
}

static void bench_histogram(void)
{
    enum { LINES = 1000, VALUES = 20000, TIMES = 9 };
    struct wb_buf log = WB_BUF_INIT(64u << 20);
    struct wb_strv alone = {0};
    WB_AUTO_JSON wb_json *doc = wb_json_object();
    size_t payload = make_log(&log, &alone, LINES, VALUES);
    double decode = HUGE_VAL, whole = HUGE_VAL;

    wb_json_set(doc, "log", wb_json_strn(wb_buf_str(&log), log.len));
    for (int i = 0; i < TIMES; i++) {
        decode = fmin(decode, decode_s(&alone));
        whole = fmin(whole, log_s(doc, LINES));
    }
    report("HDR histograms decoded and checked", (double)payload / 1e6 / decode, "MB/s", 100, true);
    report("HDR log read, merged and answered", (double)payload / 1e6 / whole, "MB/s", 50, true);
    wb_strv_release(&alone);
    wb_buf_release(&log);
}

static const struct {
    const char *name;
    void (*run)(void);
} parts[] = {{"changes", bench_changes},
             {"alarms", bench_alarms},
             {"steps", bench_steps},
             {"order", bench_order},
             {"histogram", bench_histogram}};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < WB_LEN(parts); i++) {
        bool wanted = argc < 2;
        for (int a = 1; a < argc; a++)
            wanted |= strcmp(argv[a], parts[i].name) == 0;
        if (wanted)
            parts[i].run();
    }
    return 0;
}
