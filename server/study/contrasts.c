#include "server/study/parts.h"

#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {"throughput", "p50_ms", "p99_ms", "p99_9_ms", NULL};

const struct wb_phase *wb_metric_phase(const struct wb_study *s, const char *metric)
{
    const char *dot = strchr(metric, '.');

    for (size_t i = 0; dot && i < s->nphases; i++) {
        const struct wb_phase *ph = &s->phases[i];
        size_t n = (size_t)(dot - metric);

        if (ph->load_only || strncmp(ph->name, metric, n) != 0 || ph->name[n] != '\0')
            continue;
        for (size_t k = 0; kinds[k]; k++) {
            if (strcmp(dot + 1, kinds[k]) == 0)
                return ph;
        }
    }
    return NULL;
}

bool wb_metric_higher_is_better(const char *metric)
{
    const char *dot = strchr(metric, '.');

    return dot && strcmp(dot + 1, "throughput") == 0;
}

void wb_metrics_list(const struct wb_study *s, struct wb_strv *out)
{
    for (size_t i = 0; i < s->nphases; i++) {
        for (size_t k = 0; !s->phases[i].load_only && kinds[k]; k++)
            wb_strv_addf(out, "%s.%s", s->phases[i].name, kinds[k]);
    }
}

char *wb_metric_default(const struct wb_study *s)
{
    for (size_t i = 0; i < s->nphases; i++) {
        const struct wb_phase *ph = &s->phases[i];

        if (!ph->load_only)
            return wb_strf("%s.%s", ph->name, ph->pace == WB_PACE_MAX ? "throughput" : "p99_ms");
    }
    abort(); /* the study has a measured phase */
}

void wb_arms_differ(const struct wb_arm *a, const struct wb_arm *b, struct wb_strv *out)
{
    if (a->form.ops != b->form.ops)
        wb_strv_add(out, "form");
    if (a->form.count != b->form.count)
        wb_strv_add(out, "instances");
    for (size_t i = 0; i < a->nvalues; i++) {
        if (strcmp(a->values[i].factor, "form") != 0 &&
            strcmp(a->values[i].value, b->values[i].value) != 0)
            wb_strv_add(out, a->values[i].factor);
    }
}

/* ---- rows ---- */

struct list {
    const struct wb_arm *arms;
    size_t narms;
    struct wb_contrast *v;
    size_t n, cap;
};

static bool has_row(const struct list *l, int arm, int against, const char *metric)
{
    for (size_t i = 0; i < l->n; i++) {
        if (l->v[i].arm == arm && l->v[i].against == against && strcmp(l->v[i].metric, metric) == 0)
            return true;
    }
    return false;
}

static void add_row(struct list *l, const char *name, int arm, int against, const char *metric,
                    bool primary)
{
    if (has_row(l, arm, against, metric))
        return;
    wb_grow(&l->v, &l->cap, l->n + 1, sizeof *l->v);
    l->v[l->n++] = (struct wb_contrast){
        .name = name ? wb_strdup(name)
                     : wb_strf("%s against %s", l->arms[arm].label, l->arms[against].label),
        .arm = arm,
        .against = against,
        .metric = wb_strdup(metric),
        .higher_is_better = wb_metric_higher_is_better(metric),
        .primary = primary};
}

/* The throughput of a phase with a rate is that rate: no row unless it is asked for. */
static bool worth_a_row(const struct wb_phase *ph, const char *metric)
{
    return ph->pace == WB_PACE_MAX || !wb_metric_higher_is_better(metric);
}

static bool is_level(const struct wb_arm *a, const char *factor, const char *value)
{
    for (size_t i = 0; i < a->nvalues; i++) {
        if (strcmp(a->values[i].factor, factor) == 0)
            return strcmp(a->values[i].value, value) == 0;
    }
    return false;
}

/* Index of the arm that is `arm` but for one factor; -1 when there is none. */
static int twin(const struct list *l, int arm, const char *factor, const char *value)
{
    for (size_t i = 0; i < l->narms; i++) {
        bool same = is_level(&l->arms[i], factor, value);

        for (size_t k = 0; same && k < l->arms[i].nvalues; k++) {
            const struct wb_arm_value *v = &l->arms[i].values[k];

            same = strcmp(v->factor, factor) == 0 || is_level(&l->arms[arm], v->factor, v->value);
        }
        if (same)
            return (int)i;
    }
    return -1;
}

/* docker xN against native xN; native xN against native x1. */
static void form_rows(struct list *l, int arm, const char *metric)
{
    const struct wb_form_ref *form = &l->arms[arm].form;
    bool native = form->ops == &wb_form_native;
    WB_AUTO_FREE char *base = wb_strf("native x%d", native ? 1 : form->count);
    int against;

    if (native && form->count == 1)
        return;
    against = twin(l, arm, "form", base);
    if (against >= 0)
        add_row(l, NULL, arm, against, metric, true);
}

static void default_rows(const struct wb_study *s, struct list *l, const char *metric)
{
    for (size_t f = 0; f < s->nfactors; f++) {
        const struct wb_factor *factor = &s->factors[f];
        bool form = strcmp(factor->name, "form") == 0;

        for (size_t i = 0; i < l->narms; i++) {
            int against;

            /* Of identical arms the first one stands for all. */
            if (s->copies > 1 && !is_level(&l->arms[i], "copy", "a"))
                continue;
            if (form) {
                form_rows(l, (int)i, metric);
                continue;
            }
            against = twin(l, (int)i, factor->name, factor->values.v[0]);
            if (against >= 0 && against != (int)i)
                add_row(l, NULL, (int)i, against, metric, true);
        }
    }
    for (size_t i = 0; s->copies > 1 && i < l->narms; i++) {
        int against = twin(l, (int)i, "copy", "a");

        if (against != (int)i)
            add_row(l, NULL, (int)i, against, metric, true);
    }
}

void wb_contrasts_make(const struct wb_study *s, const struct wb_arm *arms, size_t narms,
                       struct wb_contrast **out, size_t *n)
{
    WB_AUTO_FREE char *metric = wb_metric_default(s);
    struct list l = {.arms = arms, .narms = narms};
    struct wb_strv metrics = {0};
    size_t primaries;

    for (size_t i = 0; i < s->ncontrasts; i++) {
        const struct wb_contrast_ask *ask = &s->contrasts[i];

        add_row(&l, ask->name, wb_arm_find(arms, narms, ask->arm),
                wb_arm_find(arms, narms, ask->against), ask->metric ? ask->metric : metric, true);
    }
    if (s->ncontrasts == 0)
        default_rows(s, &l, metric);
    primaries = l.n;
    wb_metrics_list(s, &metrics);
    for (size_t i = 0; i < primaries; i++) {
        for (size_t k = 0; k < metrics.n; k++) {
            if (worth_a_row(wb_metric_phase(s, metrics.v[k]), metrics.v[k])) {
                WB_AUTO_FREE char *name = wb_strdup(l.v[i].name);

                add_row(&l, name, l.v[i].arm, l.v[i].against, metrics.v[k], false);
            }
        }
    }
    wb_strv_release(&metrics);
    *out = l.v;
    *n = l.n;
}
