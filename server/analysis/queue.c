/*
 * `stats queue`: do throughput, latency and concurrency fit together? Little's law for a closed
 * loop, keeping up for an open one, and the M/M/c queue as a reference.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/effect.h"
#include "server/analysis/input.h"
#include "server/analysis/stats.h"
#include "server/analysis/text.h"
#include "server/base/mem.h"

#define RATE_MAX 1e12
#define SECONDS_MAX 1e9
#define SERVERS_MAX 1e6
/* Implied over given clients. */
#define RATIO_IMPOSSIBLE 1.05
#define RATIO_NOTE 0.95
#define RATIO_OVERHEAD 0.8
#define KEPT_UP 0.99 /* achieved over target */
#define HALVINGS 200

static void finish(wb_json *answer, char *sentence, wb_json *warnings, wb_json **out)
{
    wb_answer_end(answer, sentence, warnings);
    free(sentence);
    *out = answer;
}

/* ---- closed loop ---- */

struct closed {
    double clients, rate, mean, think, p50, p99; /* s; NaN: not given */
};

/* Verdict from the mean: N = X (R + Z). */
static const char *by_mean(const struct closed *c, wb_json *answer, char **sentence)
{
    double implied = c->rate * (c->mean + c->think), ratio = implied / c->clients;
    const char *verdict = ratio > RATIO_IMPOSSIBLE  ? "impossible"
                          : ratio >= RATIO_NOTE     ? "consistent"
                          : ratio >= RATIO_OVERHEAD ? "note"
                                                    : "client-overhead";

    wb_json_set_real(answer, "implied_in_flight", implied);
    wb_json_set_real(answer, "in_service", c->rate * c->mean);
    wb_json_set_real(answer, "ratio", ratio);
    if (ratio > RATIO_IMPOSSIBLE)
        *sentence = wb_strf("impossible: throughput times latency needs %.4g clients, there were "
                            "%.4g: units, windows or a latency from a sample are wrong",
                            implied, c->clients);
    else if (ratio >= RATIO_NOTE)
        *sentence = wb_strf("consistent: throughput times latency accounts for %.1f %% of the "
                            "clients",
                            ratio * 100);
    else
        *sentence = wb_strf("%.1f of %.4g clients were waiting for the database on average: the "
                            "others were busy with themselves, limited or idle",
                            implied, c->clients);
    return verdict;
}

/* Without a mean: were all clients busy, the mean would be N/X - Z. A mean above p99 needs the last
 * 1 % to carry most of the time; one below half of p50 cannot be, as half of the operations took
 * p50 or longer. */
static const char *by_percentiles(const struct closed *c, double busy, wb_json *answer,
                                  char **sentence)
{
    static const char no_mean[] = "needs mean_latency_s";

    wb_json_set_reason(answer, "implied_in_flight", no_mean);
    wb_json_set_reason(answer, "ratio", no_mean);
    if (busy < 0 || busy > c->p99) {
        *sentence = wb_strf("impossible: with all clients busy the mean would be %.4g ms, above "
                            "the p99 of %.4g ms: at most about %.4g of %.4g clients were in flight",
                            busy * 1e3, c->p99 * 1e3, c->rate * (c->p99 + c->think), c->clients);
        if (busy < 0) {
            free(*sentence);
            *sentence = wb_strf("impossible: thinking alone keeps %.4g clients busy at this "
                                "throughput, there were %.4g",
                                c->rate * c->think, c->clients);
        }
        return "impossible";
    }
    if (busy < c->p50 / 2) {
        *sentence = wb_strf("impossible: with all clients busy the mean would be %.4g ms, below "
                            "half of the p50 of %.4g ms",
                            busy * 1e3, c->p50 * 1e3);
        return "impossible";
    }
    if (isnan(c->p99)) {
        *sentence = wb_strf("with all clients busy the mean would be %.4g ms: without a mean or a "
                            "p99 that cannot be checked",
                            busy * 1e3);
        return NULL;
    }
    *sentence = wb_strf("consistent: with all clients busy the mean would be %.4g ms, within the "
                        "p99 of %.4g ms",
                        busy * 1e3, c->p99 * 1e3);
    return "consistent";
}

static int answer_closed(const wb_json *in, wb_json *warnings, wb_json **out, struct wb_err *err)
{
    struct closed c = {.mean = NAN, .p50 = NAN, .p99 = NAN};
    const char *verdict;
    char *sentence = NULL;
    double busy;
    wb_json *answer;

    if (wb_in_need_real(in, "", "clients", 1e-9, RATE_MAX, &c.clients, err) < 0 ||
        wb_in_need_real(in, "", "throughput_per_s", 0, RATE_MAX, &c.rate, err) < 0 ||
        wb_in_real(in, "", "mean_latency_s", 0, SECONDS_MAX, &c.mean, err) < 0 ||
        wb_in_real(in, "", "think_time_s", 0, SECONDS_MAX, &c.think, err) < 0 ||
        wb_in_real(in, "", "p50_ms", 0, SECONDS_MAX, &c.p50, err) < 0 ||
        wb_in_real(in, "", "p99_ms", 0, SECONDS_MAX, &c.p99, err) < 0)
        return -WB_INVALID;
    c.p50 /= 1e3;
    c.p99 /= 1e3;
    answer = wb_answer_new(1, "little");
    busy = c.clients / c.rate - c.think;
    if (c.rate == 0) {
        wb_json_set_reason(answer, "implied_in_flight", "throughput is 0");
        wb_json_set_reason(answer, "ratio", "throughput is 0");
        wb_json_set_reason(answer, "mean_latency_if_all_busy_s", "throughput is 0");
        verdict = NULL;
        sentence = wb_strdup("nothing was done: there is nothing to check");
    } else {
        verdict = isnan(c.mean) ? by_percentiles(&c, busy, answer, &sentence)
                                : by_mean(&c, answer, &sentence);
        if (busy >= 0)
            wb_json_set_real(answer, "mean_latency_if_all_busy_s", busy);
        else
            wb_json_set_reason(answer, "mean_latency_if_all_busy_s",
                               "the think time alone is longer than clients / throughput");
    }
    if (!isnan(c.p99))
        wb_json_set_real(answer, "most_in_flight", c.rate * (c.p99 + c.think));
    if (c.mean > c.p99)
        wb_analysis_warn(warnings, "mean-above-p99",
                         "the mean is above p99: the last 1 %% of the operations took most of the "
                         "time, or the two are of different operations");
    if (verdict != NULL)
        wb_json_set_str(answer, "verdict", verdict);
    else
        wb_json_set_reason(answer, "verdict",
                           c.rate == 0 ? "throughput is 0" : "needs mean_latency_s or p99_ms");
    finish(answer, sentence, warnings, out);
    return 0;
}

/* ---- open loop ---- */

struct open {
    double target, achieved, service, response, duration; /* ms, ms, s; NaN: not given */
};

/* In a run that falls behind steadily, the operation at the share p of the run waits p (1 - a/t) of
 * its length. A response p99 far below that was measured from the late start, not from the
 * intended one; without a duration, one hardly above the service time was. */
static bool omits_waiting(const struct open *o, double wait)
{
    if (isnan(o->response))
        return !isnan(o->service);
    if (isnan(wait))
        return o->response <= 2 * o->service;
    return o->response / 1e3 < wait / 2;
}

static const char *judge_open(const struct open *o, bool kept_up, double wait, char **sentence)
{
    double percent = o->achieved / o->target * 100;

    if (kept_up) {
        *sentence = wb_strf("valid: %.2f %% of the target rate was reached", percent);
        return "valid";
    }
    if (omits_waiting(o, wait)) {
        *sentence = wb_strf("only %.2f %% of the target rate was reached, and the latency leaves "
                            "out the waiting that this caused: it is a service time",
                            percent);
        return "omission";
    }
    *sentence = wb_strf("saturated: only %.2f %% of the target rate was reached: latency at this "
                        "rate grows for as long as the run lasts and is no number",
                        percent);
    return "saturated";
}

static int answer_open(const wb_json *in, wb_json *warnings, wb_json **out, struct wb_err *err)
{
    struct open o = {.service = NAN, .response = NAN, .duration = NAN};
    wb_json *answer;
    char *sentence;
    double wait;
    bool kept_up;

    if (wb_in_need_real(in, "", "target_per_s", 1e-9, RATE_MAX, &o.target, err) < 0 ||
        wb_in_need_real(in, "", "achieved_per_s", 0, RATE_MAX, &o.achieved, err) < 0 ||
        wb_in_real(in, "", "service_p99_ms", 0, 1e3 * SECONDS_MAX, &o.service, err) < 0 ||
        wb_in_real(in, "", "response_p99_ms", 0, 1e3 * SECONDS_MAX, &o.response, err) < 0 ||
        wb_in_real(in, "", "duration_s", 1e-9, SECONDS_MAX, &o.duration, err) < 0)
        return -WB_INVALID;
    kept_up = o.achieved >= KEPT_UP * o.target;
    wait = 0.99 * o.duration * fmax(0, 1 - o.achieved / o.target);
    answer = wb_answer_new(1, "open-loop-check");
    wb_json_set_bool(answer, "kept_up", kept_up);
    wb_json_set_real(answer, "achieved_percent", o.achieved / o.target * 100);
    wb_json_set_real(answer, "backlog_per_s", fmax(0, o.target - o.achieved));
    if (!isnan(o.duration)) {
        wb_json_set_real(answer, "backlog_at_end", fmax(0, o.target - o.achieved) * o.duration);
        wb_json_set_real(answer, "implied_wait_p99_s", wait);
    }
    if (o.response < o.service)
        wb_analysis_warn(warnings, "response-below-service",
                         "response time is counted from the intended start and cannot be below "
                         "service time");
    if (kept_up && isnan(o.response) && !isnan(o.service))
        wb_analysis_warn(warnings, "service-only",
                         "only service time is given: stalls do not show in it");
    if (kept_up && o.response > 2 * o.service)
        wb_analysis_warn(
            warnings, "stalls",
            "response p99 is %.3g times service p99: operations waited for their turn; "
            "response time is the number to show",
            o.service > 0 ? o.response / o.service : INFINITY);
    wb_json_set_str(answer, "verdict", judge_open(&o, kept_up, wait, &sentence));
    finish(answer, sentence, warnings, out);
    return 0;
}

/* ---- M/M/c ---- */

/* Probability of waiting (Erlang C) by the recurrence of Erlang B, which cannot overflow. */
static double erlang_c(double servers, double load)
{
    double b = 1;

    for (int k = 1; k <= (int)servers; k++)
        b = load * b / (k + load * b);
    return b / (1 - load / servers * (1 - b));
}

/* P(response > t): service of rate mu, and with probability `waits` a wait of rate drain. */
static double response_above(double t, double mu, double drain, double waits)
{
    double serve = exp(-mu * t), both;

    if (fabs(drain - mu) < 1e-9 * mu)
        both = serve * (1 + mu * t);
    else
        both = (drain * serve - mu * exp(-drain * t)) / (drain - mu);
    return (1 - waits) * serve + waits * both;
}

static double response_percentile(double share, double mu, double drain, double waits)
{
    double lo = 0, hi = 1 / mu;

    while (response_above(hi, mu, drain, waits) > 1 - share)
        hi *= 2;
    for (int i = 0; i < HALVINGS; i++) {
        double mid = lo / 2 + hi / 2;
        if (response_above(mid, mu, drain, waits) > 1 - share)
            lo = mid;
        else
            hi = mid;
    }
    return lo / 2 + hi / 2;
}

static int answer_reference(const wb_json *in, wb_json *warnings, wb_json **out, struct wb_err *err)
{
    static const char *const keys[] = {"mean_response_ms", "p50_response_ms", "p99_response_ms",
                                       "mean_wait_ms", "probability_of_waiting"};
    double servers = NAN, service = NAN, arrival = NAN, mu, drain, waits, use;
    wb_json *answer;
    char *sentence;

    if (wb_in_need_real(in, "", "servers", 1, SERVERS_MAX, &servers, err) < 0 ||
        wb_in_need_real(in, "", "service_ms", 1e-9, 1e3 * SECONDS_MAX, &service, err) < 0 ||
        wb_in_need_real(in, "", "arrival_per_s", 0, RATE_MAX, &arrival, err) < 0)
        return -WB_INVALID;
    if (servers != floor(servers))
        return wb_fail(err, WB_INVALID, "/servers: must be a whole number");
    mu = 1 / service; /* per ms */
    use = arrival / 1e3 * service / servers;
    answer = wb_answer_new(1, servers == 1 ? "mm1" : "mmc");
    wb_json_set_real(answer, "utilisation", use);
    wb_json_set_real(answer, "highest_rate_per_s", servers * mu * 1e3);
    if (use >= 1) {
        for (size_t i = 0; i < WB_LEN(keys); i++)
            wb_json_set_reason(answer, keys[i], "the queue grows without end at this rate");
        wb_json_set_str(answer, "verdict", "saturated");
        sentence = wb_strf("saturated: %.4g operations a second arrive, %.4g can be served",
                           arrival, servers * mu * 1e3);
    } else {
        waits = erlang_c(servers, arrival / 1e3 * service);
        drain = servers * mu - arrival / 1e3;
        wb_json_set_real(answer, keys[0], service + waits / drain);
        wb_json_set_real(answer, keys[1], response_percentile(0.5, mu, drain, waits));
        wb_json_set_real(answer, keys[2], response_percentile(0.99, mu, drain, waits));
        wb_json_set_real(answer, keys[3], waits / drain);
        wb_json_set_real(answer, keys[4], waits);
        wb_json_set_str(answer, "verdict", "valid");
        sentence = wb_strf("at %.1f %% utilisation the mean response is %.4g ms, %.2f times the "
                           "service time",
                           use * 100, service + waits / drain, 1 + waits / drain / service);
    }
    wb_analysis_warn(warnings, "model",
                     "Poisson arrivals and exponential service: a reference, no measurement");
    finish(answer, sentence, warnings, out);
    return 0;
}

int wb_stats_queue(const wb_json *in, wb_json **out, struct wb_err *err)
{
    static const char *const known[] = {"clients",
                                        "throughput_per_s",
                                        "mean_latency_s",
                                        "think_time_s",
                                        "p50_ms",
                                        "p99_ms",
                                        "target_per_s",
                                        "achieved_per_s",
                                        "duration_s",
                                        "service_p99_ms",
                                        "response_p99_ms",
                                        "servers",
                                        "service_ms",
                                        "arrival_per_s",
                                        "name",
                                        NULL};
    static const char what[] = "clients and throughput_per_s, with target_per_s and "
                               "achieved_per_s, or with servers, service_ms and arrival_per_s";
    bool closed = wb_json_get(in, "clients") != NULL,
         open = wb_json_get(in, "target_per_s") != NULL;
    bool model = wb_json_get(in, "servers") != NULL;
    wb_json *warnings;
    int rc;

    if (wb_in_object(in, what, err) < 0)
        return -WB_INVALID;
    if (closed + open + model != 1)
        return wb_fail(err, WB_INVALID, "/%s: give one of clients, target_per_s and servers",
                       closed + open + model == 0 ? "clients"
                       : open                     ? "target_per_s"
                                                  : "servers");
    warnings = wb_json_array();
    wb_in_known(in, "", known, warnings);
    rc = closed ? answer_closed(in, warnings, out, err)
         : open ? answer_open(in, warnings, out, err)
                : answer_reference(in, warnings, out, err);
    if (rc < 0)
        wb_json_free(warnings);
    return rc;
}

void wb_stats_queue_print(const wb_json *answer, int width, struct wb_buf *out)
{
    struct wb_table *t = wb_table_new();

    width = width > 0 ? width : WB_TEXT_WIDTH;
    wb_table_column(t, "figure", WB_LEFT);
    wb_table_column(t, "value", WB_RIGHT);
    for (void *it = wb_json_first(answer); it != NULL; it = wb_json_next(answer, it)) {
        const char *key = wb_json_iter_key(it);
        if (strcmp(key, "n") == 0 || strcmp(key, "analysis_version") == 0 ||
            !wb_json_is_number(wb_json_iter_value(it)))
            continue;
        wb_table_row(t);
        wb_table_cell(t, "%s", key);
        wb_text_cell(t, wb_json_iter_value(it));
    }
    wb_table_print(t, width, out);
    wb_table_free(t);
    wb_buf_addc(out, '\n');
    wb_text_sentence(out, answer, width);
    wb_text_notes(out, wb_json_get(answer, "warnings"), width);
}
