#include <string.h>

#include "server/base/table.h"
#include "server/study/parts.h"

#define ROUNDS_SHOWN 4

static void print_head(const struct wb_plan *plan, struct wb_buf *out)
{
    const struct wb_study *s = plan->study;
    size_t runs = (size_t)plan->rounds * plan->narms;

    wb_buf_addf(out, "%s: %s %s, %s%d round%s of %zu arm%s, %zu run%s\n\n", s->name,
                s->recipe->name, s->version->version, plan->nlooks > 0 ? "at most " : "",
                plan->rounds, plan->rounds == 1 ? "" : "s", plan->narms,
                plan->narms == 1 ? "" : "s", runs, runs == 1 ? "" : "s");
}

static void print_arms(const struct wb_plan *plan, int width, struct wb_buf *out)
{
    struct wb_table *t = wb_table_new();

    wb_table_column(t, "arm", WB_LEFT);
    wb_table_column(t, "form", WB_LEFT);
    wb_table_column(t, "CPUs", WB_RIGHT);
    wb_table_column(t, "quota", WB_RIGHT);
    wb_table_column(t, "memory", WB_RIGHT);
    wb_table_column(t, "series", WB_LEFT);
    for (size_t i = 0; i < plan->narms; i++) {
        const struct wb_arm *a = &plan->arms[i];
        struct wb_buf memory = WB_BUF_INIT(64);

        wb_table_row(t);
        wb_table_cell(t, "%s", a->label);
        wb_table_cell(t, "%s x%d", a->form.ops->name, a->form.count);
        wb_table_cell(t, "%d", a->cpus_per_instance);
        if (a->parts[0].cpu_quota > 0)
            wb_table_cell(t, "%.3g", a->parts[0].cpu_quota);
        else
            wb_table_cell(t, "none");
        wb_format_bytes(a->parts[0].memory_bytes, &memory);
        wb_table_cell(t, "%s%s", wb_buf_str(&memory),
                      a->setup->limits == WB_LIMITS_SAME ? "" : " (no limit)");
        wb_table_cell(t, "%s", a->series_key);
        wb_buf_release(&memory);
    }
    wb_table_print(t, width, out);
    wb_table_free(t);
    wb_buf_adds(out, "CPUs, quota and memory are those of one instance\n");
}

/* What arms have in common; arms that have it otherwise say so in their label. */
static const struct wb_setup *common(const struct wb_plan *plan)
{
    return wb_study_setup(plan->study);
}

static const char *rows_text(int64_t rows, struct wb_buf *b)
{
    wb_format_count((double)rows, b);
    return wb_buf_str(b);
}

static void print_during(const struct wb_setup *s, struct wb_buf *out)
{
    for (size_t i = 0; i < s->nphases; i++)
        for (size_t k = 0; k < s->phases[i].nduring; k++) {
            const struct wb_phase_op *o = &s->phases[i].during[k];

            wb_buf_addf(out, "during %s, at %g s: %s of ", s->phases[i].name,
                        (double)o->at_ns / 1e9, o->op->name);
            if (o->instance < 0)
                wb_buf_adds(out, "the last instance\n");
            else
                wb_buf_addf(out, "instance %d\n", o->instance);
        }
}

/* Their names. */
static void print_transactions(struct wb_table *t, const struct wb_phase *ph)
{
    struct wb_buf names = WB_BUF_INIT(4096);

    for (const char *k = ph->transactions; *k; k += strspn(k, "; ")) {
        wb_buf_addf(&names, "%s%.*s", names.len ? ", " : "", (int)strcspn(k, "="), k);
        k += strcspn(k, ";");
    }
    wb_table_cell(t, "%s", wb_buf_str(&names));
    wb_buf_release(&names);
}

static void print_phases(const struct wb_plan *plan, int width, struct wb_buf *out)
{
    const struct wb_setup *s = common(plan);
    struct wb_table *t = wb_table_new();
    struct wb_buf b = WB_BUF_INIT(256);

    wb_table_column(t, "phase", WB_LEFT);
    wb_table_column(t, "operations", WB_LEFT);
    wb_table_column(t, "rate", WB_LEFT);
    wb_table_column(t, "connections", WB_RIGHT);
    wb_table_column(t, "warm-up", WB_RIGHT);
    wb_table_column(t, "for", WB_RIGHT);
    for (size_t i = 0; i < s->nphases; i++) {
        const struct wb_phase *ph = &s->phases[i];

        wb_table_row(t);
        wb_table_cell(t, "%s", ph->name);
        wb_buf_clear(&b);
        if (ph->load_only)
            wb_table_cell(t, "insert %s rows", rows_text(s->rows, &b));
        else if (ph->transactions)
            print_transactions(t, ph);
        else if (ph->get_percent == 0 || ph->get_percent == 100)
            wb_table_cell(t, "%s", ph->get_percent == 0 ? "set" : "get");
        else
            wb_table_cell(t, "get %g%%, set %g%%", ph->get_percent, 100 - ph->get_percent);
        wb_buf_clear(&b);
        if (ph->pace == WB_PACE_RATE)
            wb_format_rate(ph->rate_per_s, &b);
        else if (ph->pace == WB_PACE_CALIBRATED)
            wb_buf_addf(&b, "%g%% of calibrated", ph->calibrated_percent);
        else if (ph->pace == WB_PACE_SEARCH)
            wb_buf_addf(&b, "highest with %s", s->slo.text);
        else
            wb_buf_adds(&b, "max");
        wb_table_cell(t, "%s", wb_buf_str(&b));
        wb_table_cell(t, "%lld", (long long)ph->connections);
        if (ph->load_only)
            continue;
        wb_buf_clear(&b);
        wb_format_ns(ph->warm_up_ns, &b);
        wb_table_cell(t, "%s", wb_buf_str(&b));
        wb_buf_clear(&b);
        if (ph->operations > 0) {
            wb_format_count((double)ph->operations, &b);
            wb_buf_adds(&b, " ops");
        } else {
            wb_format_ns(ph->for_ns, &b);
        }
        wb_table_cell(t, "%s", wb_buf_str(&b));
    }
    wb_table_print(t, width, out);
    wb_table_free(t);
    wb_buf_release(&b);
    print_during(s, out);
}

/* Whether a contrast has a name that says more than its arms do. */
static bool is_named(const struct wb_plan *plan, const struct wb_contrast *c)
{
    WB_AUTO_FREE char *plain =
        wb_strf("%s against %s", plan->arms[c->arm].label, plan->arms[c->against].label);

    return strcmp(plain, c->name) != 0;
}

static void print_contrasts(const struct wb_plan *plan, int width, struct wb_buf *out)
{
    struct wb_table *t;
    size_t others = 0;

    for (size_t i = 0; i < plan->ncontrasts; i++)
        others += !plan->contrasts[i].primary;
    if (plan->ncontrasts == 0) {
        wb_buf_adds(out, "no contrast: one arm, or none that differ in one thing\n");
        return;
    }
    t = wb_table_new();
    wb_table_column(t, "about", WB_LEFT);
    wb_table_column(t, "arm", WB_LEFT);
    wb_table_column(t, "against", WB_LEFT);
    wb_table_column(t, "metric", WB_LEFT);
    wb_table_column(t, "better", WB_LEFT);
    for (size_t i = 0; i < plan->ncontrasts; i++) {
        const struct wb_contrast *c = &plan->contrasts[i];

        if (!c->primary)
            continue;
        wb_table_row(t);
        wb_table_cell(t, "%s", is_named(plan, c) ? c->name : c->about);
        wb_table_cell(t, "%s", plan->arms[c->arm].label);
        wb_table_cell(t, "%s", plan->arms[c->against].label);
        wb_table_cell(t, "%s", c->metric);
        wb_table_cell(t, "%s", c->higher_is_better ? "higher" : "lower");
    }
    wb_table_print(t, width, out);
    wb_table_free(t);
    if (others > 0)
        wb_buf_addf(out, "and %zu row%s for the other metrics\n", others, others == 1 ? "" : "s");
}

/* Adds text behind a blank, or on a new line with the same indent when it does not fit. */
static void add_wrapped(struct wb_buf *out, const char *text, size_t indent, size_t width,
                        size_t *column)
{
    size_t n = strlen(text);

    if (*column > indent && *column + 1 + n > width) {
        wb_buf_addf(out, "\n%*s", (int)indent, "");
        *column = indent;
    } else if (*column > indent) {
        wb_buf_addc(out, ' ');
        ++*column;
    }
    wb_buf_adds(out, text);
    *column += n;
}

static void print_order(const struct wb_plan *plan, size_t width, struct wb_buf *out)
{
    int shown = plan->rounds <= ROUNDS_SHOWN + 1 ? plan->rounds : ROUNDS_SHOWN;

    wb_buf_addf(out, "order, shuffled in every round with seed %llu\n",
                (unsigned long long)plan->seed);
    for (int r = 0; r < shown; r++) {
        size_t column = 6;

        wb_buf_addf(out, "%4d  ", r + 1);
        for (size_t i = 0; i < plan->narms; i++) {
            int arm = plan->order[(size_t)r * plan->narms + i];
            WB_AUTO_FREE char *text =
                wb_strf("%s%s", plan->arms[arm].label, i + 1 < plan->narms ? "," : "");

            add_wrapped(out, text, 6, width, &column);
        }
        wb_buf_addc(out, '\n');
    }
    if (shown < plan->rounds)
        wb_buf_addf(out, "      and %d more rounds\n", plan->rounds - shown);
}

static void add_sentence(struct wb_buf *out, const char *head, const char *text, size_t width)
{
    size_t column = 11;

    wb_buf_addf(out, "%-11s", head);
    while (*text) {
        size_t n = strcspn(text, " ");
        WB_AUTO_FREE char *word = wb_strndup(text, n);

        add_wrapped(out, word, 11, width, &column);
        text += n + strspn(text + n, " ");
    }
    wb_buf_addc(out, '\n');
}

static void print_rest(const struct wb_plan *plan, size_t width, struct wb_buf *out)
{
    const struct wb_placement *pl = &plan->placement;
    WB_AUTO_JSON wb_json *warnings = wb_plan_warnings(plan);
    struct wb_buf b = WB_BUF_INIT(4096);

    wb_buf_addf(&b,
                "database on CPU %s, load and agent on CPU %s, memory node %s; the database "
                "gets ",
                pl->database_cpus, pl->load_cpus, pl->mems);
    wb_format_bytes(common(plan)->memory_bytes, &b);
    add_sentence(out, "placement", wb_buf_str(&b), width);
    if (common(plan)->reuse_data)
        add_sentence(
            out, "data",
            "loaded once per arm and taken again: rounds repeat the start of the database, "
            "not the loading",
            width);
    if (plan->nlooks > 0) {
        wb_buf_clear(&b);
        wb_buf_adds(&b, "after round ");
        for (int i = 0; i < plan->nlooks; i++)
            wb_buf_addf(&b, "%s%d", i > 0 ? ", " : "", plan->looks[i].rounds);
        wb_buf_addf(&b,
                    ": the campaign ends once every contrast is decided; each look has %.3g %% of "
                    "the error of 5 %%",
                    plan->looks[0].alpha * 100);
        add_sentence(out, "looks", wb_buf_str(&b), width);
    }
    wb_buf_clear(&b);
    if (plan->nlooks > 0)
        wb_buf_adds(&b, "at most ");
    wb_format_ns((int64_t)(plan->forecast_s * 1e9), &b);
    if (plan->calibration_arm >= 0)
        wb_buf_addf(&b, ", with one calibration pass on %s before round 1",
                    plan->arms[plan->calibration_arm].label);
    add_sentence(out, "forecast", wb_buf_str(&b), width);
    for (size_t i = 0; i < wb_json_len(warnings); i++)
        add_sentence(out, "warning", wb_json_str_or(wb_json_at(warnings, i), "text", ""), width);
    wb_buf_release(&b);
}

/* What the study says of the build; what it does not say is not claimed. */
static void print_subject(const struct wb_study *s, struct wb_buf *out)
{
    const struct wb_subject *b = &s->subject;
    const struct {
        const char *name, *text;
        int most;
    } parts[] = {{"commit", b->commit, 100},
                 {"built", b->built, 100},
                 {"version", b->version, 100},
                 {"artifact", b->artifact_sha256, 12}};
    size_t n = 0;

    if (!wb_subject_given(b))
        return;
    wb_buf_adds(out, "Build: ");
    for (size_t i = 0; i < WB_LEN(parts); i++)
        if (parts[i].text)
            wb_buf_addf(out, "%s%s %.*s", n++ ? ", " : "", parts[i].name, parts[i].most,
                        parts[i].text);
    wb_buf_adds(out, "\n\n");
}

void wb_plan_print(const struct wb_plan *plan, int width, struct wb_buf *out)
{
    size_t w = width > 0 ? (size_t)width : 80;

    print_head(plan, out);
    print_subject(plan->study, out);
    print_arms(plan, width, out);
    wb_buf_addc(out, '\n');
    print_phases(plan, width, out);
    wb_buf_addc(out, '\n');
    print_contrasts(plan, width, out);
    wb_buf_addc(out, '\n');
    print_order(plan, w, out);
    wb_buf_addc(out, '\n');
    print_rest(plan, w, out);
}
