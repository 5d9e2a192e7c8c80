#include "server/analysis/validity.h"

#include <math.h>
#include <string.h>

#include "server/analysis/effect.h"
#include "server/analysis/input.h"
#include "server/analysis/text.h"
#include "server/base/mem.h"
#include "server/collect/plain.h"
#include "server/study/study.h"

#define METHOD "limits of a study, evidence by evidence"
#define SAMPLES_MAX 100000
#define MBIT 125000.0 /* bytes */

static const char *const env_keys[] = {"steal_percent",
                                       "foreign_cpu_cores",
                                       "client_cpu_percent",
                                       "cpus",
                                       "run_queue_percent",
                                       "throttled_percent",
                                       "load_throttled_percent",
                                       "errors",
                                       "swap_in_pages",
                                       "ntp_offset_ms",
                                       "governor",
                                       "governor_after",
                                       "cpu_canary_before_ns",
                                       "cpu_canary_after_ns",
                                       "net_bytes_per_s",
                                       "link_bytes_per_s",
                                       NULL};

/* An answer on its way: what was judged. */
struct judged {
    wb_json *answer, *evidence, *warnings;
    enum wb_validity verdict;
    struct wb_validity_limits limits;
};

/* ---- the forms ---- */

static int check_env(const wb_json *env, struct wb_err *err)
{
    if (wb_json_type(env) != WB_JSON_OBJECT)
        return wb_fail(err, WB_INVALID, "/env: must be an object");
    for (size_t i = 0; env_keys[i] != NULL; i++) {
        const wb_json *v = wb_json_get(env, env_keys[i]);
        bool word = strncmp(env_keys[i], "governor", 8) == 0;
        double n = wb_json_number(v, NAN);
        bool offset = strcmp(env_keys[i], "ntp_offset_ms") == 0;
        if (wb_json_type(v) == WB_JSON_NULL)
            continue;
        if (word && wb_json_type(v) != WB_JSON_STRING)
            return wb_fail(err, WB_INVALID, "/env/%s: must be a word", env_keys[i]);
        if (!word && (isnan(n) || (n < 0 && !offset) || fabs(n) > 1e15))
            return wb_fail(err, WB_INVALID, "/env/%s: must be a number%s", env_keys[i],
                           offset ? "" : " from 0 on");
    }
    return 0;
}

static int judge_env(const wb_json *in, struct judged *j, struct wb_err *err)
{
    const wb_json *env = wb_json_get(in, "env");

    if (check_env(env, err) < 0)
        return -WB_INVALID;
    wb_in_known(env, "/env", env_keys, j->warnings);
    j->verdict = wb_plain_judge(env, false, &j->limits, j->evidence);
    return 0;
}

static void judge_given(const wb_json *env, struct judged *j)
{
    j->verdict = wb_plain_judge(env, true, &j->limits, j->evidence);
    wb_analysis_warn(j->warnings, "partial",
                     "only what is in the input was judged: steal, foreign CPU and the load's own "
                     "CPU together make a verdict on a run");
}

/* The two texts of a form. */
static int two_texts(const wb_json *in, const char *key, const char **before, const char **after,
                     struct wb_err *err)
{
    const wb_json *o = wb_json_get(in, key);

    *before = wb_json_str_or(o, "before", NULL);
    *after = wb_json_str_or(o, "after", NULL);
    if (wb_json_type(o) != WB_JSON_OBJECT || *before == NULL || *after == NULL)
        return wb_fail(err, WB_INVALID, "/%s: must have before and after, both texts", key);
    return 0;
}

static int put_pointer(const char *key, struct wb_err *err, const struct wb_err *why)
{
    /* The text begins with "before" or "after". */
    return wb_fail(err, WB_INVALID, "/%s/%.700s", key, why->root);
}

static int judge_proc_stat(const wb_json *in, struct judged *j, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *env = wb_json_object();
    struct wb_err why = WB_ERR_INIT;
    struct wb_plain_cpu cpu;
    const char *before, *after;

    if (two_texts(in, "proc_stat", &before, &after, err) < 0)
        return -WB_INVALID;
    if (wb_plain_cpu(before, after, &cpu, &why) < 0)
        return put_pointer("proc_stat", err, &why);
    wb_json_set_real(j->answer, "steal_percent", cpu.steal);
    wb_json_set_real(j->answer, "iowait_percent", cpu.iowait);
    wb_json_set_real(j->answer, "busy_percent", cpu.busy);
    wb_json_set_real(env, "steal_percent", cpu.steal);
    judge_given(env, j);
    return 0;
}

static int judge_cpu_stat(const wb_json *in, struct judged *j, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *env = wb_json_object();
    struct wb_err why = WB_ERR_INIT;
    struct wb_plain_throttling t;
    const char *before, *after;

    if (two_texts(in, "cpu_stat", &before, &after, err) < 0)
        return -WB_INVALID;
    if (wb_plain_throttling(before, after, &t, &why) < 0)
        return put_pointer("cpu_stat", err, &why);
    wb_json_set_bool(j->answer, "limited", t.limited);
    if (isnan(t.percent))
        wb_json_set_reason(j->answer, "throttled_percent",
                           t.limited ? "no period passed" : "no CPU quota: there are no periods");
    else
        wb_json_set_real(j->answer, "throttled_percent", t.percent);
    if (t.limited)
        wb_json_set_real(j->answer, "throttled_s", t.seconds);
    else
        wb_json_set_reason(j->answer, "throttled_s", "no CPU quota");
    if (!isnan(t.percent) && !wb_json_bool_or(in, "cpu_quota", false))
        wb_json_set_real(env, "throttled_percent", t.percent);
    if (t.percent > 0)
        wb_analysis_warn(j->warnings, "quota-bound",
                         "the quota held the group back in %.1f %% of its periods", t.percent);
    judge_given(env, j);
    return 0;
}

/* Mean of a column; NaN when it is not there. */
static int column_mean(const wb_json *in, const char *key, double *out, struct wb_err *err)
{
    struct wb_numbers v = {0};
    double sum = 0;

    *out = NAN;
    if (wb_json_get(in, key) == NULL)
        return 0;
    if (wb_in_values(in, "", key, SAMPLES_MAX, &v, err) < 0) {
        wb_numbers_release(&v);
        return -WB_INVALID;
    }
    (void)wb_numbers_drop(&v);
    for (size_t i = 0; i < v.n; i++)
        sum += v.v[i];
    if (v.n > 0)
        *out = sum / (double)v.n;
    wb_numbers_release(&v);
    return 0;
}

/* What held the client back, by the limits of its CPU. */
static const char *limit_of(const struct judged *j, double all_cores, double thread)
{
    if (j->verdict != WB_CLIENT_LIMITED)
        return NULL;
    if (all_cores > j->limits.client_cpu_limited)
        return "client-bound";
    return thread > j->limits.client_cpu_limited ? "one-thread-bound" : "network-bound";
}

static int judge_samples(const wb_json *in, struct judged *j, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *env = wb_json_object();
    double thread, all_cores, net, link;
    const char *by;

    if (column_mean(in, "load_busiest_thread_pct", &thread, err) < 0 ||
        column_mean(in, "load_cpu_pct_of_all_cores", &all_cores, err) < 0 ||
        column_mean(in, "net_tx_mbit", &net, err) < 0 ||
        column_mean(in, "net_link_mbit", &link, err) < 0)
        return -WB_INVALID;
    if (!isnan(thread) || !isnan(all_cores))
        wb_json_set_real(env, "client_cpu_percent", isnan(thread) ? all_cores : thread);
    if (!isnan(net) && !isnan(link)) {
        wb_json_set_real(env, "net_bytes_per_s", net * MBIT);
        wb_json_set_real(env, "link_bytes_per_s", link * MBIT);
    }
    judge_given(env, j);
    by = limit_of(j, all_cores, thread);
    if (by != NULL)
        wb_json_set_str(j->answer, "limited_by", by);
    else
        wb_json_set_reason(j->answer, "limited_by", "the load was not limited by its own side");
    return 0;
}

static int judge(const wb_json *in, struct judged *j, struct wb_err *err)
{
    if (wb_json_get(in, "env") != NULL)
        return judge_env(in, j, err);
    if (wb_json_get(in, "proc_stat") != NULL)
        return judge_proc_stat(in, j, err);
    if (wb_json_get(in, "cpu_stat") != NULL)
        return judge_cpu_stat(in, j, err);
    if (wb_json_get(in, "load_busiest_thread_pct") != NULL ||
        wb_json_get(in, "load_cpu_pct_of_all_cores") != NULL)
        return judge_samples(in, j, err);
    return wb_fail(err, WB_INVALID,
                   "the input must have env, proc_stat, cpu_stat, or a column "
                   "load_busiest_thread_pct");
}

/* ---- the answer ---- */

static bool is_good(const char *verdict)
{
    return strcmp(verdict, "valid") == 0 || strcmp(verdict, "not-applicable") == 0;
}

/* "steal: CPU time taken by ...", the worst first. */
static void add_reasons(const struct judged *j)
{
    static const char *const order[] = {"invalid", "unverified", "client-limited", "noisy"};
    wb_json *reasons = wb_json_array();
    const char *by = wb_json_str_or(j->answer, "limited_by", NULL);

    for (size_t k = 0; k < WB_LEN(order); k++)
        for (size_t i = 0; i < wb_json_len(j->evidence); i++) {
            const wb_json *e = wb_json_at(j->evidence, i);
            WB_AUTO_FREE char *text = NULL;
            if (strcmp(wb_json_str_or(e, "verdict", ""), order[k]) != 0)
                continue;
            text = wb_strf("%s: %s%s%s%s", wb_json_str_or(e, "name", "?"),
                           wb_json_str_or(e, "text", ""), k == 2 && by != NULL ? " (" : "",
                           k == 2 && by != NULL ? by : "", k == 2 && by != NULL ? ")" : "");
            wb_json_push(reasons, wb_json_str(text));
        }
    wb_json_set(j->answer, "reasons", reasons);
}

/* Of records, evidence has all its keys; here a limit or phase that there is none of is absent, as
 * null would need a reason. */
static void drop_empty(const wb_json *evidence)
{
    static const char *const keys[] = {"phase", "unit", "noisy", "worse"};

    for (size_t i = 0; i < wb_json_len(evidence); i++)
        for (size_t k = 0; k < WB_LEN(keys); k++)
            if (wb_json_type(wb_json_get(wb_json_at(evidence, i), keys[k])) == WB_JSON_NULL)
                wb_json_del(wb_json_at(evidence, i), keys[k]);
}

int wb_stats_validity(const wb_json *in, wb_json **out, struct wb_err *err)
{
    struct judged j = {.verdict = WB_VALID};
    WB_AUTO_FREE char *sentence = NULL;
    const char *word;
    size_t n;
    int rc = wb_in_object(in, "env, proc_stat or cpu_stat", err);

    if (rc < 0)
        return rc;
    j.answer = wb_json_object();
    j.evidence = wb_json_array();
    j.warnings = wb_json_array();
    wb_validity_defaults(&j.limits);
    rc = judge(in, &j, err);
    if (rc < 0) {
        wb_json_free(j.answer);
        wb_json_free(j.evidence);
        wb_json_free(j.warnings);
        return rc;
    }
    n = wb_json_len(j.evidence);
    word = wb_validity_name(j.verdict);
    wb_json_set_int(j.answer, "n", (int64_t)n);
    wb_json_set_str(j.answer, "method", METHOD);
    wb_json_set_str(j.answer, "verdict", word);
    add_reasons(&j);
    sentence = wb_strf("%s, by %zu piece%s of evidence.", word, n, n == 1 ? "" : "s");
    drop_empty(j.evidence);
    wb_json_set(j.answer, "evidence", j.evidence);
    wb_json_set(j.answer, "limits", wb_validity_json(&j.limits));
    wb_answer_end(j.answer, sentence, j.warnings);
    *out = j.answer;
    return 0;
}

void wb_stats_validity_print(const wb_json *answer, int width, struct wb_buf *out)
{
    static const char *const keys[] = {"steal_percent", "iowait_percent", "busy_percent",
                                       "throttled_percent", "throttled_s"};
    const wb_json *evidence = wb_json_get(answer, "evidence");

    if (width <= 0)
        width = WB_TEXT_WIDTH;
    for (size_t i = 0; i < WB_LEN(keys); i++)
        if (wb_json_is_number(wb_json_get(answer, keys[i])))
            wb_buf_addf(out, "%-18s %.6g\n", keys[i],
                        wb_json_number(wb_json_get(answer, keys[i]), 0));
    for (size_t i = 0; i < wb_json_len(evidence); i++) {
        const wb_json *e = wb_json_at(evidence, i);
        const char *verdict = wb_json_str_or(e, "verdict", "");
        WB_AUTO_FREE char *first = wb_strf("%-15s ", is_good(verdict) ? "ok" : verdict);
        wb_text_wrapped(out, first, 16, wb_json_str_or(e, "text", ""), width);
    }
    wb_text_sentence(out, answer, width);
    wb_text_notes(out, wb_json_get(answer, "warnings"), width);
}
