/*
 * analysis PART...: what the analysis costs and how often it errs. Prints one line a figure, with
 * the bar it is held against. Parts: changes (cost of 1,000 series of 365 nights, and of one more
 * night), alarms (changes of level seen where there are none), steps (nights until a step is
 * found), order (A/A comparisons on a drifting host), decided (campaigns that end when they are
 * decided), compare (cost of 5,000 metrics), histogram (decoding). All by default.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/analysis/changes.h"
#include "server/analysis/compare.h"
#include "server/analysis/effect.h"
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
 * other, and in rounds whose order is shuffled. Shuffling makes both signs of a round's change
 * equally likely whatever the drift is, so that the test's level is exact by construction: of the
 * 2^10 signs, 50 have p <= 0.05, which is 4.88 %. The bar holds the share seen, and the interval
 * of 3 standard errors must have the level in it: outside of that it would err more than it says.
 */
static void bench_order(void)
{
    enum { TRIALS = 200000, RUNS = 10 };
    const double level = 100 * 50.0 / 1024;
    struct wb_rng r;
    size_t block = 0, shuffled = 0;
    double seen;

    wb_rng_seed(&r, 51);
    for (size_t t = 0; t < TRIALS; t++)
        for (int rounds = 0; rounds < 2; rounds++) {
            double a[2 * RUNS], b[2 * RUNS];
            struct wb_effect_input in = {.base = a, .other = b, .paired = rounds == 1};
            struct wb_effect e;
            for (size_t i = 0; i < (size_t)2 * RUNS; i++) {
                double drift = 2.0 * (double)i / (2 * RUNS - 1);
                double value = 1000 * (1 + 0.02 * (normal(&r) + drift));
                bool first =
                    rounds ? i % 2 == 0 ? wb_rng_unit(&r) < 0.5 : in.nbase <= i / 2 : i < RUNS;
                if (first)
                    a[in.nbase++] = value;
                else
                    b[in.nother++] = value;
            }
            wb_effect_of(&in, &e);
            *(rounds ? &shuffled : &block) += e.test.p <= 0.05;
        }
    report("A/A on a drifting host, one block after the other", 100.0 * (double)block / TRIALS, "%",
           40, true);
    seen = 100.0 * (double)shuffled / TRIALS;
    report("A/A on a drifting host, shuffled rounds", seen, "%", 5, false);
    report("its distance from the exact level of 4.88 %, standard errors",
           fabs(seen - level) / sqrt(level * (100 - level) / TRIALS), "", 3, false);
}

/* ---- campaigns that end when they are decided ---- */

#define ARMS 4
static const int look_rounds[] = {10, 14, 21, 30};

static wb_json *decided_plan(void)
{
    wb_json *plan = wb_json_object(), *arms = wb_json_array(), *contrasts = wb_json_array();
    wb_json *looks = wb_json_array();

    for (int a = 0; a < ARMS; a++) {
        WB_AUTO_FREE char *label = wb_strf("%d", a);
        wb_json *arm = wb_json_object(), *c = wb_json_object();
        wb_json_set_str(arm, "label", label);
        wb_json_push(arms, arm);
        wb_json_set_str(c, "arm", label);
        wb_json_set_str(c, "against", "0");
        wb_json_set_str(c, "metric", "x");
        wb_json_set_str(c, "better", "higher");
        if (a > 0)
            wb_json_push(contrasts, c);
        else
            wb_json_free(c);
    }
    for (size_t i = 0; i < WB_LEN(look_rounds); i++) {
        wb_json *look = wb_json_object();
        wb_json_set_int(look, "rounds", look_rounds[i]);
        wb_json_set_real(look, "alpha", 0.05 / (double)WB_LEN(look_rounds));
        wb_json_push(looks, look);
    }
    wb_json_set(plan, "arms", arms);
    wb_json_set(plan, "contrasts", contrasts);
    wb_json_set(plan, "looks", looks);
    wb_json_set_int(plan, "rounds", look_rounds[WB_LEN(look_rounds) - 1]);
    return plan;
}

static void decided_round(wb_json *runs, struct wb_rng *r, int round, const double *level)
{
    double host = 1 + 0.02 * normal(r); /* the round's, in all arms */

    for (int a = 0; a < ARMS; a++) {
        WB_AUTO_FREE char *label = wb_strf("%d", a);
        wb_json *run = wb_json_object(), *metrics = wb_json_object(), *m = wb_json_object();
        wb_json_set_real(m, "value", 1000 * host * level[a] * (1 + 0.02 * normal(r)));
        wb_json_set(metrics, "x", m);
        wb_json_set(run, "metrics", metrics);
        wb_json_set_str(run, "campaign", "c");
        wb_json_set_str(run, "arm", label);
        wb_json_set_str(run, "outcome", "ok");
        wb_json_set_str(run, "validity", "valid");
        wb_json_set_int(run, "round", round);
        wb_json_push(runs, run);
    }
}

/* What campaigns of one kind came to. */
struct decided {
    size_t campaigns, rounds, finished, alarms, equal, found, contrasts;
};

/* One campaign as the engine runs it: it ends at the first look after which all is decided. */
static void decided_campaign(const wb_json *plan, struct wb_rng *r, const double *level,
                             struct decided *d)
{
    WB_AUTO_JSON wb_json *runs = wb_json_array();
    WB_AUTO_JSON wb_json *report = NULL;
    bool alarm = false, equal = false;
    int round = 0;

    for (size_t k = 0; k < WB_LEN(look_rounds); k++) {
        while (round < look_rounds[k])
            decided_round(runs, r, ++round, level);
        wb_json_free(report);
        report = NULL;
        if (wb_campaign_report(plan, runs, &report, NULL) < 0)
            exit(1);
        if (wb_json_int_or(wb_json_get(report, "looks"), "decided", 0) == ARMS - 1)
            break;
    }
    d->campaigns++;
    d->rounds += (size_t)round;
    d->finished += wb_json_int_or(wb_json_get(report, "looks"), "decided", 0) == ARMS - 1;
    for (int i = 0; i < ARMS - 1; i++) {
        const char *verdict =
            wb_json_str_or(wb_json_at(wb_json_get(report, "contrasts"), (size_t)i), "verdict", "");
        bool real = strcmp(verdict, "better") == 0 || strcmp(verdict, "worse") == 0;
        alarm |= real || strcmp(verdict, "negligible") == 0;
        equal |= strcmp(verdict, "equivalent") == 0 || strcmp(verdict, "negligible") == 0;
        d->found += strcmp(verdict, "worse") == 0;
        d->contrasts++;
    }
    d->alarms += alarm;
    d->equal += equal;
}

static void bench_decided(void)
{
    enum { TRIALS = 2000 };
    static const struct {
        const char *name;
        double level[ARMS];
    } kinds[] = {{"equal arms", {1, 1, 1, 1}},
                 {"arms 2 % worse, which is the threshold", {1, 0.98, 0.98, 0.98}},
                 {"arms 6 % worse", {1, 0.94, 0.94, 0.94}}};
    WB_AUTO_JSON wb_json *plan = decided_plan();
    struct wb_rng r;

    wb_rng_seed(&r, 1945);
    for (size_t k = 0; k < WB_LEN(kinds); k++) {
        struct decided d = {0};
        WB_AUTO_FREE char *mean = wb_strf("until decided, %s: mean rounds", kinds[k].name);
        for (size_t t = 0; t < TRIALS; t++)
            decided_campaign(plan, &r, kinds[k].level, &d);
        report(mean, (double)d.rounds / (double)d.campaigns, "", 30, false);
        if (k == 0) {
            report("  campaigns in which a difference is seen",
                   100.0 * (double)d.alarms / (double)d.campaigns, "%", 5, false);
        } else if (k == 1) {
            report("  campaigns in which they are called equal",
                   100.0 * (double)d.equal / (double)d.campaigns, "%", 5 * (ARMS - 1), false);
            report("  contrasts called worse beyond it",
                   100.0 * (double)d.found / (double)d.contrasts, "%", 5, false);
        } else {
            report("  contrasts found worse", 100.0 * (double)d.found / (double)d.contrasts, "%",
                   95, true);
        }
    }
}

/* ---- many metrics ---- */

static void bench_compare(void)
{
    enum { METRICS = 5000, ROUNDS = 10, TIMES = 5 };
    WB_AUTO_JSON wb_json *doc = wb_json_object();
    wb_json *rows = wb_json_array();
    double best = HUGE_VAL;
    struct wb_rng r;

    wb_rng_seed(&r, 5000);
    for (int m = 0; m < METRICS; m++) {
        WB_AUTO_FREE char *name = wb_strf("metric %d", m);
        wb_json *row = wb_json_object(), *a = wb_json_array(), *b = wb_json_array();
        for (int i = 0; i < ROUNDS; i++) {
            wb_json_push(a, wb_json_real(1000 * (1 + 0.02 * normal(&r))));
            wb_json_push(b, wb_json_real(1000 * (1 + 0.02 * normal(&r))));
        }
        wb_json_set_str(row, "name", name);
        wb_json_set_str(row, "better", "higher");
        wb_json_set(row, m % 2 ? "rounds_base" : "base", a);
        wb_json_set(row, m % 2 ? "rounds_new" : "new", b);
        wb_json_push(rows, row);
    }
    wb_json_set(doc, "rows", rows);
    for (int i = 0; i < TIMES; i++) {
        double start = cpu_s();
        wb_json *answer = NULL;
        if (wb_stats_compare(doc, &answer, NULL) < 0)
            exit(1);
        best = fmin(best, cpu_s() - start);
        wb_json_free(answer);
    }
    report("compare of 5,000 metrics x 10 rounds", best * 1000, "ms", 300, false);
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
} parts[] = {{"changes", bench_changes},    {"alarms", bench_alarms},   {"steps", bench_steps},
             {"order", bench_order},        {"decided", bench_decided}, {"compare", bench_compare},
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
