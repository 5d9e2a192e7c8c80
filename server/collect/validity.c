#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "server/collect/evidence.h"
#include "server/study/study.h"

#define FOREIGN_HOST_PERCENT 12.5 /* of the host's CPUs; the tighter of this and the cores */
/* Swap-in is sustained when this many samples and this share of them saw it. */
#define SWAP_SAMPLES 3
#define SWAP_SHARE 0.20

/* Checks that compare one figure of a window with two limits. */
static const struct rule {
    const char *name, *unit, *what;
    const char *column; /* of the samples; NULL: key is of the load's busiest thread */
    const char *key;
    size_t noisy, worse; /* offsets in wb_validity_limits; NONE: no such limit */
    enum wb_validity verdict;
    bool mandatory;
} rules[] = {
#define LIMIT(m) offsetof(struct wb_validity_limits, m)
#define NONE ((size_t)-1)
    {"steal", "%", "CPU time taken by the hypervisor", "steal_percent", NULL, LIMIT(steal_noisy),
     LIMIT(steal_invalid), WB_INVALID_RUN, true},
    {"foreign-cpu", "cores", "CPU used outside database, load and agent", "foreign_cores", NULL,
     LIMIT(foreign_noisy), LIMIT(foreign_invalid), WB_INVALID_RUN, true},
    {"database-throttled", "%", "throttled CFS periods of the database",
     "database_throttled_percent", NULL, LIMIT(throttled_noisy), NONE, WB_NOISY, true},
    {"load-throttled", "%", "throttled CFS periods of the load", "load_throttled_percent", NULL,
     LIMIT(throttled_noisy), NONE, WB_NOISY, true},
    {"load-cpu", "%", "own CPU of the busiest load thread", NULL, "cpu_percent",
     LIMIT(client_cpu_noisy), LIMIT(client_cpu_limited), WB_CLIENT_LIMITED, true},
    {"load-run-queue", "%", "run-queue wait of a load thread", NULL, "run_queue_percent",
     LIMIT(run_queue_noisy), NONE, WB_NOISY, false},
};

static double limit_at(const struct wb_validity_limits *limits, size_t offset)
{
    const void *at = (const char *)limits + (offset == NONE ? 0 : offset);

    return offset == NONE ? NAN : *(const double *)at;
}

static const char *unit_text(const char *unit)
{
    return !strcmp(unit, "%") ? " %" : !strcmp(unit, "cores") ? " cores" : unit;
}

/* "(noisy above 1.00 %, invalid above 5.00 %)"; caller frees. */
static char *limits_text(const struct wb_check *c, const char *worse_word)
{
    const char *unit = unit_text(c->unit);

    if (isnan(c->worse))
        return wb_strf("(noisy above %.2f%s)", c->noisy, unit);
    if (c->noisy >= c->worse)
        return wb_strf("(%s above %.2f%s)", worse_word, c->worse, unit);
    return wb_strf("(noisy above %.2f%s, %s above %.2f%s)", c->noisy, unit, worse_word, c->worse,
                   unit);
}

static void judge_rule(struct wb_judge *j, const struct rule *r, const wb_json *window,
                       const struct wb_validity_limits *limits)
{
    const wb_json *samples = wb_json_get(window, "samples");
    WB_AUTO_FREE char *reason_key = wb_strf("%s_reason", r->column ? r->column : r->key);
    WB_AUTO_FREE char *allowed = NULL;
    struct wb_check c = {.name = r->name,
                         .unit = r->unit,
                         .noisy = limit_at(limits, r->noisy),
                         .worse = limit_at(limits, r->worse)};

    c.value = r->column ? wb_window_mean(samples, r->column)
                        : wb_busiest_thread(wb_json_get(window, "load"), r->key);
    if (r->column)
        c.reason = wb_json_str_or(samples, reason_key, "no samples");
    else
        c.reason = "the load's result does not say it for every thread";
    if (r->column && !strcmp(r->column, "foreign_cores")) {
        double share = FOREIGN_HOST_PERCENT / 100 * wb_json_real_or(samples, "cpus", NAN);

        /* A study that allows more cores than the default one means the whole limit. */
        if (!isnan(share) && share > 0 && share < c.worse && c.worse <= 1)
            c.worse = share;
    }
    if (isnan(c.value)) {
        c.verdict = r->mandatory ? WB_UNVERIFIED : WB_VALID;
        c.not_applicable = !r->mandatory;
        wb_judge_add(j, &c, "%s: unknown (%s)", r->what, c.reason);
        return;
    }
    if (!strcmp(r->name, "database-throttled") && wb_json_bool_or(window, "cpu_quota", false)) {
        wb_judge_add(j, &c, "%s: %.2f %%; a CPU quota is part of this arm", r->what, c.value);
        return;
    }
    c.verdict = !isnan(c.worse) && c.value > c.worse ? r->verdict
                : c.value > c.noisy                  ? WB_NOISY
                                                     : WB_VALID;
    allowed = limits_text(&c, wb_validity_name(r->verdict));
    wb_judge_add(j, &c, "%s: %.2f%s %s", r->what, c.value, unit_text(r->unit), allowed);
}

static void judge_swap(struct wb_judge *j, const wb_json *samples)
{
    double pages = wb_json_real_or(samples, "swap_in_pages", NAN);
    double seen = wb_json_real_or(samples, "swap_in_samples", 0);
    double all = wb_json_real_or(samples, "samples", 0);
    struct wb_check c = {
        .name = "swap-in", .unit = "pages", .value = pages, .noisy = NAN, .worse = NAN};

    if (isnan(pages)) {
        c.not_applicable = true;
        wb_judge_add(j, &c, "pages swapped in: unknown (no samples)");
    } else if (seen >= SWAP_SAMPLES && seen >= SWAP_SHARE * all) {
        c.verdict = WB_INVALID_RUN;
        wb_judge_add(j, &c,
                     "%.0f pages swapped in, in %.0f of %.0f samples: the host was short of memory",
                     pages, seen, all);
    } else {
        wb_judge_add(j, &c, "%.0f pages swapped in", pages);
    }
}

static void judge_window(struct wb_judge *j, const wb_json *window,
                         const struct wb_validity_limits *limits)
{
    j->phase = wb_json_str_or(window, "phase", "?");
    for (size_t i = 0; i < WB_LEN(rules); i++)
        judge_rule(j, &rules[i], window, limits);
    judge_swap(j, wb_json_get(window, "samples"));
    wb_judge_load(j, window, limits);
    j->phase = NULL;
}

static void judge_canary(struct wb_judge *j, const wb_json *canary,
                         const struct wb_validity_limits *limits)
{
    double before = wb_json_real_or(canary, "before_ns", NAN);
    double after = wb_json_real_or(canary, "after_ns", NAN);
    struct wb_check c = {.name = "cpu-canary",
                         .unit = "%",
                         .value = 100 * fabs(after - before) / fmin(before, after),
                         .reason = "not measured",
                         .noisy = limits->canary_noisy,
                         .worse = limits->canary_invalid};

    if (!(before > 0) || !(after > 0)) {
        c.value = NAN;
        c.not_applicable = true;
        wb_judge_add(j, &c, "CPU canary: not measured");
        return;
    }
    c.verdict = c.value > c.worse ? WB_INVALID_RUN : c.value > c.noisy ? WB_NOISY : WB_VALID;
    wb_judge_add(j, &c,
                 "CPU canary %.3f ms before, %.3f ms after: %.2f %% apart (noisy above %.2f %%, "
                 "invalid above %.2f %%)",
                 before / 1e6, after / 1e6, c.value, c.noisy, c.worse);
}

/* "2 of 32 CPUs use governor powersave", joined by ", ", for all that are not performance in a
 * text of wb_governor; caller frees; "" when all are performance. */
static char *weak_governors(const char *governor)
{
    struct wb_buf b = WB_BUF_INIT(65536);
    long all = 0;

    for (const char *p = governor; (p = strstr(p, " x")) != NULL; p += 2)
        all += strtol(p + 2, NULL, 10);
    for (const char *p = governor; *p; p += strspn(p, ", ")) {
        size_t n = strcspn(p, " ");
        const char *rest = p + n;
        char *end;
        long here = 0;

        if (!strncmp(rest, " x", 2)) {
            here = strtol(rest + 2, &end, 10);
            rest = end;
        }
        if (n && (n != strlen("performance") || strncmp(p, "performance", n) != 0)) {
            wb_buf_adds(&b, b.len ? ", " : "");
            if (here)
                wb_buf_addf(&b, "%ld of %ld CPUs use", here, all);
            else
                wb_buf_adds(&b, "all CPUs use");
            wb_buf_addf(&b, " governor %.*s", (int)n, p);
        }
        p = rest;
    }
    return b.len ? wb_buf_take(&b) : wb_strdup("");
}

static void judge_governor(struct wb_judge *j, const char *before, const char *after)
{
    WB_AUTO_FREE char *weak = before ? weak_governors(before) : NULL;
    struct wb_check c = {.name = "governor",
                         .unit = "word",
                         .value = NAN,
                         .word = before,
                         .reason = "not applicable: no cpufreq on this machine",
                         .noisy = NAN,
                         .worse = NAN};

    if (!before && !after) {
        c.not_applicable = true;
        wb_judge_add(j, &c, "CPU governor: not applicable, this machine has no cpufreq");
    } else if (!before || !after || strcmp(before, after) != 0) {
        c.verdict = WB_INVALID_RUN;
        wb_judge_add(j, &c, "the CPU governor changed during the run: %s before, %s after",
                     before ? before : "none", after ? after : "none");
    } else if (*weak) {
        c.verdict = WB_NOISY;
        wb_judge_add(j, &c, "%s", weak);
    } else {
        wb_judge_add(j, &c, "all CPUs use governor performance");
    }
}

enum wb_validity wb_validity_judge(const wb_json *windows, const wb_json *canary,
                                   const char *governor_before, const char *governor_after,
                                   const struct wb_validity_limits *limits, wb_json *evidence)
{
    struct wb_judge j = {.evidence = evidence, .worst = WB_VALID};

    for (size_t i = 0; i < wb_json_len(windows); i++)
        judge_window(&j, wb_json_at(windows, i), limits);
    if (wb_json_len(windows) == 0) {
        struct wb_check c = {.name = "windows",
                             .unit = "windows",
                             .value = 0,
                             .noisy = NAN,
                             .worse = NAN,
                             .verdict = WB_UNVERIFIED};

        wb_judge_add(&j, &c, "there is no measured window to judge");
    }
    judge_canary(&j, canary, limits);
    judge_governor(&j, governor_before, governor_after);
    return j.worst;
}
