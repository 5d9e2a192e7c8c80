#include <math.h>
#include <string.h>

#include "runners/tools/units.h"
#include "server/collect/evidence.h"
#include "server/study/study.h"

/* Limits of DESIGN.md section 14 that a study does not change. */
#define LAG_FLOOR_MS 1.0
#define LAG_SHARE 0.10 /* of the response p50 */
#define LITTLE_NOISY 0.95
#define LITTLE_LIMITED 0.80
#define LITTLE_TOO_MUCH 1.05
#define LINK_PERCENT 95.0

double wb_busiest_thread(const wb_json *load, const char *key)
{
    const wb_json *threads = wb_json_path(load, "client.threads");
    double max = NAN;

    for (size_t i = 0; i < wb_json_len(threads); i++) {
        double v = wb_json_real_or(wb_json_at(threads, i), key, NAN);

        if (isnan(v))
            return NAN;
        max = isnan(max) || v > max ? v : max;
    }
    return max;
}

double wb_window_mean(const wb_json *samples, const char *column)
{
    return wb_json_real_or(wb_json_get(samples, column), "mean", NAN);
}

static void judge_lag(struct wb_judge *j, const wb_json *load,
                      const struct wb_validity_limits *limits)
{
    double lag = wb_json_number(wb_json_path(load, "client.lag_p99_ms"), NAN);
    double p50 = wb_json_number(wb_json_get(wb_load_times(load, "response"), "p50_ms"), NAN);
    double cpu = wb_busiest_thread(load, "cpu_percent");
    double limit = fmax(LAG_FLOOR_MS, LAG_SHARE * (isnan(p50) ? 0 : p50));
    struct wb_check c = {
        .name = "schedule-lag", .unit = "ms", .value = lag, .noisy = limit, .worse = NAN};
    bool own = !isnan(cpu) && cpu > limits->client_cpu_noisy;

    if (isnan(lag)) {
        c.not_applicable = true;
        c.reason = "the load's result does not say it";
        wb_judge_add(j, &c, "schedule lag p99: unknown");
        return;
    }
    if (lag > limit)
        c.verdict = own ? WB_CLIENT_LIMITED : WB_NOISY;
    wb_judge_add(j, &c,
                 "schedule lag p99 %.3f ms (limit %.3f ms: the larger of 1 ms and a tenth of the "
                 "response p50)%s",
                 lag, limit,
                 lag <= limit ? ""
                 : own        ? "; the load's own CPU explains it"
                              : "; the load's own CPU does not explain it");
}

/* A foreign program may leave time out of its latencies (redis-benchmark gives all replies of a
 * batch the time of the first). That makes them too short, not the client too slow. */
static bool leaves_time_out(const wb_json *load, const struct wb_validity_limits *limits)
{
    return wb_json_type(wb_json_get(load, "tool")) == WB_JSON_OBJECT &&
           wb_busiest_thread(load, "cpu_percent") <= limits->client_cpu_noisy;
}

/* The most by which operations that began before the window and ended in it add to Little's ratio:
 * each of those in flight at its start has at most its whole service time from before. 0 where the
 * longest one is not known. */
static double before_window(const wb_json *load)
{
    double longest = wb_json_number(wb_json_get(wb_load_times(load, "service"), "max_ms"), NAN);
    double window = wb_json_number(wb_json_path(load, "window.seconds"), NAN);

    return longest >= 0 && window > 0 ? longest / 1000 / window : 0;
}

static void judge_little(struct wb_judge *j, const wb_json *window,
                         const struct wb_validity_limits *limits)
{
    const wb_json *load = wb_json_get(window, "load");
    double in_flight = wb_json_real_or(window, "in_flight", NAN);
    double rate = wb_json_number(wb_load_rate(load), NAN);
    double mean = wb_json_number(wb_json_get(wb_load_times(load, "service"), "mean_ms"), NAN);
    struct wb_check c = {.name = "little-ratio",
                         .unit = "ratio",
                         .value = rate * mean / 1000 / in_flight,
                         .reason = "rate, mean service time or operations in flight are not known",
                         .noisy = LITTLE_NOISY,
                         .worse = LITTLE_LIMITED};

    if (isnan(c.value) || in_flight <= 0) {
        c.value = NAN;
        c.not_applicable = true;
        wb_judge_add(j, &c, "Little's law: not checked");
        return;
    }
    if (c.value > LITTLE_TOO_MUCH && c.value <= LITTLE_TOO_MUCH + before_window(load)) {
        c.verdict = WB_NOISY;
        wb_judge_add(j, &c,
                     "rate times mean service time is %.3f of the %.0f operations in flight: the "
                     "window is so short against its longest operation that those which began "
                     "before it explain that",
                     c.value, in_flight);
        return;
    }
    if (c.value > LITTLE_TOO_MUCH) {
        c.verdict = WB_INVALID_RUN;
        c.outcome = "inconsistent";
        wb_judge_add(j, &c,
                     "rate times mean service time is %.3f of the %.0f operations in flight: "
                     "more than there were (limit %.2f)",
                     c.value, in_flight, LITTLE_TOO_MUCH);
        return;
    }
    c.verdict = c.value < LITTLE_LIMITED ? WB_CLIENT_LIMITED
                : c.value < LITTLE_NOISY ? WB_NOISY
                                         : WB_VALID;
    if (c.verdict == WB_CLIENT_LIMITED && leaves_time_out(load, limits)) {
        c.verdict = WB_NOISY;
        wb_judge_add(j, &c,
                     "rate times mean service time is %.3f of the %.0f operations in flight, and "
                     "the load's own CPU does not explain it: the program leaves time out of its "
                     "latencies (noisy below %.2f)",
                     c.value, in_flight, LITTLE_NOISY);
        return;
    }
    wb_judge_add(
        j, &c,
        "rate times mean service time is %.3f of the %.0f operations in flight (noisy below "
        "%.2f, client-limited below %.2f)",
        c.value, in_flight, LITTLE_NOISY, LITTLE_LIMITED);
}

static void judge_errors(struct wb_judge *j, const wb_json *load,
                         const struct wb_validity_limits *limits)
{
    double scheduled = wb_json_real_or(load, "scheduled", NAN);
    double failed = wb_json_real_or(load, "failed", NAN);
    struct wb_check c = {.name = "errors",
                         .unit = "%",
                         .value = 100 * failed / scheduled,
                         .reason = "the load's result does not say it",
                         .noisy = limits->errors_noisy,
                         .worse = limits->errors_fail};

    if (!(scheduled > 0) || isnan(failed)) {
        c.value = NAN;
        c.verdict = WB_INVALID_RUN;
        c.outcome = "harness-error";
        wb_judge_add(j, &c, "no operation was scheduled in the measured window");
        return;
    }
    if (c.value > limits->errors_fail)
        c.outcome = "sut-error";
    c.verdict = c.value > limits->errors_noisy ? WB_NOISY : WB_VALID;
    wb_judge_add(j, &c,
                 "%.0f of %.0f operations failed, %.4f %% (noisy above %.4f %%, sut-error above "
                 "%.4f %%)",
                 failed, scheduled, c.value, limits->errors_noisy, limits->errors_fail);
}

/* Between load and database; on one host there is no link. */
static void judge_network(struct wb_judge *j, const wb_json *window)
{
    const wb_json *samples = wb_json_get(window, "samples");
    double link = wb_json_real_or(window, "link_bytes_per_s", NAN);
    double rx = wb_window_mean(samples, "net_rx_bytes_per_s"),
           tx = wb_window_mean(samples, "net_tx_bytes_per_s");
    struct wb_check c = {.name = "network",
                         .unit = "%",
                         .value = 100 * fmax(rx, tx) / link,
                         .noisy = NAN,
                         .worse = LINK_PERCENT};

    if (isnan(link) || link <= 0) {
        c.value = NAN;
        c.reason = "not applicable: no link between load and database is named";
        c.not_applicable = true;
        wb_judge_add(j, &c, "network: load and database share a host");
        return;
    }
    if (isnan(c.value)) {
        c.not_applicable = true;
        wb_judge_add(j, &c, "network: unknown");
        return;
    }
    c.verdict = c.value > LINK_PERCENT ? WB_CLIENT_LIMITED : WB_VALID;
    wb_judge_add(j, &c, "network at %.1f %% of the link's limit (client-limited above %.0f %%)",
                 c.value, LINK_PERCENT);
}

/* wb-load's own word (see its contract for the list). */
static void judge_verdict(struct wb_judge *j, const wb_json *load)
{
    static const struct {
        const char *word;
        enum wb_validity verdict;
    } words[] = {
        {"valid", WB_VALID},
        {"server-bound", WB_VALID},
        {"client-bound", WB_CLIENT_LIMITED},
        {"one-thread-bound", WB_CLIENT_LIMITED},
        {"network-bound", WB_CLIENT_LIMITED},
        {"noisy", WB_NOISY},
    };
    const char *word = wb_json_str_or(load, "verdict", "");
    const char *why = wb_json_str_or(wb_json_at(wb_json_get(load, "reasons"), 0), "text", "");
    struct wb_check c = {.name = "load-verdict",
                         .unit = "word",
                         .value = NAN,
                         .word = *word ? word : NULL,
                         .reason = "the load's result has none",
                         .noisy = NAN,
                         .worse = NAN};

    if (!*word && wb_json_type(wb_json_get(load, "tool")) == WB_JSON_OBJECT) {
        c.not_applicable = true;
        c.reason = wb_json_str_or(load, "verdict_reason", "not applicable");
        wb_judge_add(j, &c, "the load program is a foreign one and does not judge itself");
        return;
    }
    for (size_t i = 0; i < WB_LEN(words); i++)
        if (!strcmp(word, words[i].word)) {
            c.verdict = words[i].verdict;
            wb_judge_add(j, &c, "the load program says: %s%s%s", word, *why ? ": " : "", why);
            return;
        }
    c.verdict = WB_INVALID_RUN;
    if (!strcmp(word, "failed")) {
        /* Errors of operations are the database's; anything else is the load program's own. */
        c.outcome =
            wb_json_len(wb_json_get(load, "errors")) > 0 || wb_json_real_or(load, "failed", 0) > 0
                ? "sut-error"
                : "harness-error";
        wb_judge_add(j, &c, "the load program says: failed%s%s", *why ? ": " : "", why);
    } else {
        c.outcome = "harness-error";
        wb_judge_add(j, &c, "the load program gave no verdict that is known%s%s%s",
                     *word ? ": '" : "", word, *word ? "'" : "");
    }
}

void wb_judge_load(struct wb_judge *j, const wb_json *window,
                   const struct wb_validity_limits *limits)
{
    const wb_json *load = wb_json_get(window, "load");

    if (!strcmp(wb_json_str_or(window, "model", ""), "closed"))
        judge_little(j, window, limits);
    else
        judge_lag(j, load, limits);
    judge_network(j, window);
    judge_errors(j, load, limits);
    judge_verdict(j, load);
}
