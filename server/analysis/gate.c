#include "server/analysis/gate.h"

#include <math.h>
#include <string.h>

#include "server/analysis/text.h"
#include "server/base/mem.h"
#include "server/base/table.h"

static const char *const result_words[] = {[WB_GATE_PASS] = "pass",
                                           [WB_GATE_WORSE] = "worse",
                                           [WB_GATE_INCONCLUSIVE] = "inconclusive",
                                           [WB_GATE_NOT_MEASURED] = "not-measured"};

static const wb_json *arm_of(const wb_json *report, const char *label)
{
    const wb_json *arms = wb_json_get(report, "arms");

    for (size_t i = 0; i < wb_json_len(arms); i++)
        if (strcmp(wb_json_str_or(wb_json_at(arms, i), "label", ""), label) == 0)
            return wb_json_at(arms, i);
    return NULL;
}

/* Why nothing of an arm counts: the first run that was left out says it. NULL when runs count. */
static const char *why_nothing(const wb_json *report, const char *label)
{
    const wb_json *arm = arm_of(report, label);
    const wb_json *left = wb_json_path(arm, "runs.left_out");

    if (wb_json_int_or(arm, "n", 0) > 0)
        return NULL;
    return wb_json_str_or(wb_json_at(left, 0), "why", "no run of it was found");
}

/* Trouble of the machinery and not of what was measured. */
static bool is_infrastructure(const char *why)
{
    static const char *const words[] = {"outcome infra-error", "outcome harness-error",
                                        "outcome capacity", "its record is damaged"};

    for (size_t i = 0; i < WB_LEN(words); i++)
        if (strncmp(why, words[i], strlen(words[i])) == 0)
            return true;
    return false;
}

/* With the reason beside it where it is null. */
static void copy(wb_json *to, const wb_json *from, const char *key, const char *as)
{
    const wb_json *v = wb_json_get(from, key);
    WB_AUTO_FREE char *reason = wb_strf("%s_reason", key);

    if (wb_json_type(v) == WB_JSON_NULL)
        wb_json_set_reason(to, as, wb_json_str_or(from, reason, "not given"));
    else
        wb_json_set(to, as, wb_json_ref(v));
}

static bool is_empty(const wb_json *contrast)
{
    const wb_json *n = wb_json_get(contrast, "n");

    return wb_json_integer(wb_json_at(n, 0)) == 0 || wb_json_integer(wb_json_at(n, 1)) == 0;
}

/* Status and text of a case from its contrast. */
static void judge_case(const wb_json *report, const wb_json *c, wb_json *one)
{
    const char *verdict = wb_json_str_or(c, "verdict", "inconclusive");
    const wb_json *limit = wb_json_at(wb_json_get(c, "limited"), 0);
    const char *why = why_nothing(report, wb_json_str_or(c, "arm", ""));
    const char *status = "passed";

    if (why == NULL)
        why = why_nothing(report, wb_json_str_or(c, "against", ""));
    wb_json_set_str(one, "text", wb_json_str_or(c, "sentence", ""));
    if (strcmp(verdict, "worse") == 0) {
        status = "failed";
    } else if (why != NULL) {
        status = is_infrastructure(why) ? "error" : "skipped";
        wb_json_set_str(one, "text", why);
        wb_json_set_bool(one, "not_measured", true);
    } else if (limit != NULL) {
        status = "skipped";
        wb_json_set_str(one, "text", wb_json_str_or(limit, "text", "limited by something else"));
        wb_json_set_bool(one, "not_measured", true);
    } else if (strcmp(verdict, "inconclusive") == 0 || strcmp(verdict, "insufficient") == 0) {
        status = "skipped";
        /* Runs count on both sides, but none of them stand in one round. */
        if (is_empty(c))
            wb_json_set_bool(one, "not_measured", true);
    }
    wb_json_set_str(one, "status", status);
    wb_json_set_str(one, "verdict", verdict);
}

static wb_json *case_of(const wb_json *report, const wb_json *c, bool decides)
{
    static const char *const keys[][2] = {{"arm", "arm"},
                                          {"metric", "metric"},
                                          {"against", "against"},
                                          {"median_new", "value"},
                                          {"median_base", "base"},
                                          {"unit", "unit"},
                                          {"p", "p"},
                                          {"q", "q"},
                                          {"n", "n"},
                                          {"threshold_percent", "threshold_percent"},
                                          {"rounds_needed", "rounds_needed"}};
    const wb_json *ratio = wb_json_get(c, "ratio");
    wb_json *one = wb_json_object();

    for (size_t i = 0; i < WB_LEN(keys); i++)
        copy(one, c, keys[i][0], keys[i][1]);
    copy(one, ratio, "estimate", "ratio");
    copy(one, ratio, "lo", "lo");
    copy(one, ratio, "hi", "hi");
    wb_json_set_bool(one, "decides", decides);
    judge_case(report, c, one);
    return one;
}

/* How the cases that decide came out. */
struct tally {
    size_t judged, failed, open, not_measured;
    const wb_json *worst; /* the first failed one, else the first that is not measured or open */
};

static void count_case(struct tally *t, const wb_json *one)
{
    const char *status = wb_json_str_or(one, "status", "");
    bool failed = strcmp(status, "failed") == 0;
    bool lost = wb_json_bool_or(one, "not_measured", false);
    bool open = strcmp(status, "skipped") == 0 && !lost;

    t->judged++;
    if ((failed && t->failed == 0) || (lost && t->failed + t->not_measured == 0) ||
        (open && t->failed + t->not_measured + t->open == 0))
        t->worst = one;
    t->failed += failed;
    t->not_measured += lost;
    t->open += open;
}

static enum wb_gate_result result_of(const struct tally *t, const struct wb_gate_rules *rules)
{
    if (t->failed > 0)
        return WB_GATE_WORSE;
    if (t->not_measured > 0 || t->judged == 0)
        return WB_GATE_NOT_MEASURED;
    return t->open > 0 && rules->fail_on_inconclusive ? WB_GATE_INCONCLUSIVE : WB_GATE_PASS;
}

static char *sentence_of(const struct tally *t, enum wb_gate_result result)
{
    static const char *const heads[] = {
        [WB_GATE_PASS] = "No regression",
        [WB_GATE_WORSE] = "Worse",
        [WB_GATE_INCONCLUSIVE] = "Not decided",
        [WB_GATE_NOT_MEASURED] = "Could not be measured",
    };
    const wb_json *w = t->worst;

    if (t->judged == 0)
        return wb_strf("Could not be measured: there is no contrast to judge.");
    if (result == WB_GATE_PASS && t->open == t->judged)
        return wb_strf("No regression was found, but nothing is decided: %s of %s against %s, %s.",
                       wb_json_str_or(w, "metric", "?"), wb_json_str_or(w, "arm", "?"),
                       wb_json_str_or(w, "against", "?"), wb_json_str_or(w, "text", ""));
    if (result == WB_GATE_PASS)
        return wb_strf("No regression in %zu contrast%s%s.", t->judged, t->judged == 1 ? "" : "s",
                       t->open > 0 ? ", though not all are decided" : "");
    return wb_strf("%s: %s of %s against %s, %s.", heads[result], wb_json_str_or(w, "metric", "?"),
                   wb_json_str_or(w, "arm", "?"), wb_json_str_or(w, "against", "?"),
                   wb_json_str_or(w, "text", ""));
}

enum wb_gate_result wb_gate(const wb_json *report, const struct wb_gate_rules *rules, wb_json **out)
{
    const wb_json *contrasts = wb_json_get(report, "contrasts");
    wb_json *gate = wb_json_object(), *cases = wb_json_array();
    struct tally tally = {.judged = 0};
    WB_AUTO_FREE char *sentence = NULL;
    enum wb_gate_result result;

    for (size_t i = 0; i < wb_json_len(contrasts); i++) {
        const wb_json *c = wb_json_at(contrasts, i);
        bool decides = rules->all_metrics || wb_json_bool_or(c, "primary", true);
        wb_json *one = case_of(report, c, decides);
        wb_json_push(cases, one);
        if (decides)
            count_case(&tally, one);
    }
    result = result_of(&tally, rules);
    sentence = sentence_of(&tally, result);
    wb_json_set_str(gate, "result", result_words[result]);
    wb_json_set_str(gate, "sentence", sentence);
    copy(gate, report, "n", "n");
    copy(gate, report, "method", "method");
    copy(gate, report, "campaign", "campaign");
    copy(gate, report, "study", "study");
    copy(gate, report, "threshold_percent", "threshold_percent");
    copy(gate, report, "analysis_version", "analysis_version");
    wb_json_set_int(gate, "judged", (int64_t)tally.judged);
    wb_json_set(gate, "cases", cases);
    copy(gate, report, "warnings", "warnings");
    if (wb_json_get(report, "forced") != NULL)
        copy(gate, report, "forced", "forced");
    *out = gate;
    return result;
}

/* ---- for people ---- */

void wb_gate_print(const wb_json *gate, int width, struct wb_buf *out)
{
    const wb_json *cases = wb_json_get(gate, "cases");
    struct wb_table *t = wb_table_new();

    wb_table_column(t, "status", WB_LEFT);
    wb_table_column(t, "arm", WB_LEFT);
    wb_table_column(t, "against", WB_LEFT);
    wb_table_column(t, "metric", WB_LEFT);
    wb_table_column(t, "ratio", WB_RIGHT);
    wb_table_column(t, "verdict", WB_LEFT);
    for (size_t i = 0; i < wb_json_len(cases); i++) {
        const wb_json *c = wb_json_at(cases, i);
        wb_table_row(t);
        wb_table_cell(t, "%s%s", wb_json_str_or(c, "status", ""),
                      wb_json_bool_or(c, "decides", false) ? "" : " (beside)");
        wb_table_cell(t, "%s", wb_json_str_or(c, "arm", ""));
        wb_table_cell(t, "%s", wb_json_str_or(c, "against", ""));
        wb_table_cell(t, "%s", wb_json_str_or(c, "metric", ""));
        if (wb_json_is_number(wb_json_get(c, "ratio")))
            wb_table_cell(t, "%.3f", wb_json_real_or(c, "ratio", NAN));
        else
            wb_table_cell(t, "-");
        wb_table_cell(t, "%s", wb_json_str_or(c, "verdict", ""));
    }
    wb_text_sentence(out, gate, width);
    wb_buf_addc(out, '\n');
    wb_table_print(t, width, out);
    wb_table_free(t);
    wb_text_notes(out, wb_json_get(gate, "warnings"), width);
}
