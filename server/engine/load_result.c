/* From the result of a load program to the run's result, and whether it is of what was asked. */
#include <string.h>

#include "runners/tools/units.h"
#include "server/base/clock.h"
#include "server/engine/ring.h"
#include "server/engine/worker.h"

/* Shorter windows cannot be judged for steadiness. */
#define STEADY_MIN_S 60

/* What a program without a usable result is: named by how it ended. */
static int no_result(struct wb_worker *w, const struct wb_err *why)
{
    const struct wb_job_status *s = &w->status;
    const char *name = w->ph->name;
    enum wb_outcome o = WB_OUTCOME_HARNESS_ERROR;
    struct wb_err err = *why;

    if (wb_run_alive(w->r) < 0) /* the database's death explains it */
        return -WB_IO;
    if (s->timed_out)
        return wb_run_failf(w->r, o, "phase %s: the load worker was over its time and was killed",
                            name);
    if (s->silent)
        return wb_run_failf(w->r, o,
                            "phase %s: the load worker said nothing for longer than its limit of "
                            "silence and was killed",
                            name);
    if (s->signal)
        return wb_run_failf(w->r, o, "phase %s: the load worker was ended by signal %d", name,
                            s->signal);
    if (s->state == WB_JOB_LOST)
        return wb_run_failf(w->r, o, "phase %s: the load worker and its supervisor were killed",
                            name);
    if (err.code == WB_UNAVAILABLE)
        o = WB_OUTCOME_SUT_ERROR;
    else if (err.code == WB_CONFLICT)
        o = WB_OUTCOME_INCONSISTENT;
    (void)wb_wrap(&err, "phase %s", name);
    return wb_run_fail(w->r, o, &err);
}

/* Whether sums add up and few operations failed. */
static int judge(struct wb_worker *w, const wb_json *res)
{
    struct wb_run *r = w->r;
    const char *name = w->ph->name, *verdict = wb_json_str_or(res, "verdict", "");
    int64_t scheduled = wb_json_int_or(res, "scheduled", -1), ok = wb_json_int_or(res, "ok", -1);
    int64_t failed = wb_json_int_or(res, "failed", -1);
    int64_t rest = wb_json_int_or(res, "dropped", 0) + wb_json_int_or(res, "censored", 0);
    double share = scheduled > 0 ? 100.0 * (double)failed / (double)scheduled : 0;
    double limit = r->e->study->validity.errors_fail;

    if (scheduled < 0 || ok < 0 || failed < 0 || scheduled != ok + failed + rest)
        return wb_run_failf(r, WB_OUTCOME_INCONSISTENT,
                            "phase %s: %lld operations scheduled, but %lld ok + %lld failed + "
                            "%lld dropped or censored",
                            name, (long long)scheduled, (long long)ok, (long long)failed,
                            (long long)rest);
    /* The last rate that a search without success tries is so low that its window may be empty. */
    if (ok == 0 && (failed > 0 || !w->task.search))
        return wb_run_failf(r, WB_OUTCOME_SUT_ERROR, "phase %s: no operation succeeded", name);
    if (share > limit)
        return wb_run_failf(r, WB_OUTCOME_SUT_ERROR,
                            "phase %s: %.2f %% of the operations failed (limit %.2f %%)", name,
                            share, limit);
    if (!strcmp(verdict, "failed"))
        return wb_run_failf(r, WB_OUTCOME_SUT_ERROR,
                            "phase %s: the load worker's verdict is 'failed'", name);
    if (w->task.search && !wb_json_is_number(wb_json_get(res, "sustained_per_s")))
        return wb_run_failf(r, WB_OUTCOME_TARGET_MISSED, "phase %s: no rate was found with %s: %s",
                            name, w->task.search,
                            wb_json_str_or(res, "sustained_per_s_reason", "it does not say why"));
    if (!w->task.search && w->task.rate_per_s > 0 && !strcmp(verdict, "server-bound"))
        return wb_run_failf(r, WB_OUTCOME_TARGET_MISSED, "phase %s: %.0f/s offered, %.0f/s reached",
                            name, w->task.rate_per_s, wb_json_number(wb_load_rate(res), 0));
    return 0;
}

/* All rows of the data set are there. */
static int judge_data(struct wb_worker *w, const wb_json *res)
{
    const wb_json *data = wb_json_get(res, "data");
    int64_t rows = w->r->arm->setup->rows;

    if (w->status.exit_code == 0 && wb_json_int_or(data, "mismatched", 0) == 0 &&
        wb_json_int_or(data, "rows", -1) == rows)
        return 0;
    return wb_run_failf(w->r, WB_OUTCOME_SUT_ERROR,
                        "phase %s: the data set is not complete (%lld of %lld rows, status %d)",
                        w->ph->name, (long long)wb_json_int_or(data, "rows", 0), (long long)rows,
                        w->status.exit_code);
}

/* What the program does not say of its threads and the kernel does. */
static void add_threads(const struct wb_worker *w, wb_json *res)
{
    wb_json *client = wb_json_get(res, "client"), *threads;
    const char *why = NULL;

    if (!w->threads || !client)
        return;
    threads = wb_threads_report(w->threads, w->status.cpu_ns, &why);
    if (threads) {
        wb_json_del(client, "threads_reason");
        wb_json_set(client, "threads", threads);
    } else {
        wb_json_set_reason(client, "threads", why);
    }
}

/* The limit that the study holds response times to, and whether this window held it. */
static void hold_to_limit(const struct wb_slo_rule *slo, bool search, wb_json *phase,
                          const wb_json *res)
{
    const wb_json *got = wb_json_get(wb_load_times(res, "response"), slo->figure);

    wb_json_set_str(phase, "limit", slo->text);
    if (wb_json_is_number(got) && !search)
        wb_json_set_bool(phase, "holds", wb_json_number(got, 0) <= slo->limit_ms);
    else
        wb_json_set_reason(phase, "holds",
                           search ? "a search tries many rates: see load.curve"
                                  : "no response time is known");
}

/* The phase with all that its validity is judged by. */
static wb_json *phase_json(const struct wb_worker *w, wb_json *res)
{
    const struct wb_phase *ph = w->ph;
    wb_json *phase = wb_json_object();
    double seconds = wb_json_number(wb_json_path(res, "window.seconds"), 0);

    wb_json_set_str(phase, "name", ph->name);
    wb_json_set_str(phase, "model", wb_tool_task_open(&w->task) ? "open" : "closed");
    wb_json_set_bool(phase, "measured", !ph->load_only);
    wb_json_set_bool(phase, "windows_short", seconds < STEADY_MIN_S);
    wb_json_set(phase, "load", res);
    wb_json_set(phase, "samples", wb_sampler_window(w->sampler, "measure"));
    if (!ph->load_only && wb_tool_task_open(&w->task) && w->r->arm->setup->slo.text)
        hold_to_limit(&w->r->arm->setup->slo, w->task.search != NULL, phase, res);
    if (!ph->load_only && !wb_tool_task_open(&w->task))
        wb_json_set_int(phase, "in_flight", ph->connections * ph->depth);
    if (w->ring)
        wb_json_set(phase, "during", wb_ring_report(w->ring));
    if (!ph->load_only && w->r->arm->cpu_quota > 0)
        wb_json_set_bool(phase, "cpu_quota", true);
    return phase;
}

int wb_worker_take_result(struct wb_worker *w)
{
    struct wb_run *r = w->r;
    wb_json *phase, *res = NULL;
    struct wb_err err = WB_ERR_INIT;
    int rc = 0;

    if (w->status.timed_out || w->status.silent || w->status.signal ||
        w->status.state == WB_JOB_LOST)
        rc = wb_fail(&err, WB_PROTOCOL, "it did not end by itself");
    if (rc == 0)
        rc = w->tool->result(&w->task, &w->status, w->version, &res, &err);
    if (rc < 0)
        return no_result(w, &err);
    add_threads(w, res);
    phase = phase_json(w, res);
    wb_json_push(r->phases, phase);
    r->load_result = res;
    if (w->ph->load_only)
        return judge_data(w, res);
    return judge(w, res);
}
