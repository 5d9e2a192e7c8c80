#include "server/study/parts.h"

#include <stdlib.h>
#include <string.h>

/* client_cpu_ms: of the load program, per operation. */
const char *const wb_metric_kinds[] = {"throughput",    "p50_ms",    "p99_ms", "p99_9_ms",
                                       "client_cpu_ms", "sustained", NULL};

/* A search finds a rate; the others have none that they sustain. */
static bool has_kind(const struct wb_phase *ph, const char *kind)
{
    return strcmp(kind, "sustained") != 0 || ph->pace == WB_PACE_SEARCH;
}

/* Names of phases have no dot, but be sure: the last one ends the phase. */
const struct wb_phase *wb_metric_phase(const struct wb_study *s, const char *metric)
{
    const struct wb_setup *setup = wb_study_setup(s);
    const char *dot = strrchr(metric, '.');

    for (size_t i = 0; dot && i < setup->nphases; i++) {
        const struct wb_phase *ph = &setup->phases[i];
        size_t n = (size_t)(dot - metric);

        if (ph->load_only || strncmp(ph->name, metric, n) != 0 || ph->name[n] != '\0')
            continue;
        for (size_t k = 0; wb_metric_kinds[k]; k++) {
            if (strcmp(dot + 1, wb_metric_kinds[k]) == 0 && has_kind(ph, wb_metric_kinds[k]))
                return ph;
        }
    }
    return NULL;
}

bool wb_metric_higher_is_better(const char *metric)
{
    const char *dot = strrchr(metric, '.');

    return dot && (strcmp(dot + 1, "throughput") == 0 || strcmp(dot + 1, "sustained") == 0);
}

void wb_metrics_list(const struct wb_study *s, struct wb_strv *out)
{
    const struct wb_setup *setup = wb_study_setup(s);

    for (size_t i = 0; i < setup->nphases; i++) {
        for (size_t k = 0; !setup->phases[i].load_only && wb_metric_kinds[k]; k++)
            if (has_kind(&setup->phases[i], wb_metric_kinds[k]))
                wb_strv_addf(out, "%s.%s", setup->phases[i].name, wb_metric_kinds[k]);
    }
}

char *wb_metric_default(const struct wb_study *s)
{
    const struct wb_setup *setup = wb_study_setup(s);

    for (size_t i = 0; i < setup->nphases; i++) {
        const struct wb_phase *ph = &setup->phases[i];

        if (!ph->load_only)
            return wb_strf("%s.%s", ph->name,
                           ph->pace == WB_PACE_MAX      ? "throughput"
                           : ph->pace == WB_PACE_SEARCH ? "sustained"
                                                        : "p99_ms");
    }
    abort(); /* the study has a measured phase */
}

static bool is_native(const struct wb_arm *a)
{
    return a->form.ops == &wb_form_native;
}

/* Native instances have the host's network only. Where containers are never on it, the network is
 * part of what the container is, not a second difference. */
static bool network_is_form(const struct wb_study *s)
{
    for (size_t i = 0; i < s->nfactors; i++) {
        for (size_t k = 0; k < s->factors[i].values.n; k++) {
            if (strcmp(s->factors[i].name, "network") == 0 &&
                strcmp(s->factors[i].values.v[k], "host") == 0)
                return false;
        }
    }
    return true;
}

static bool counts(const struct wb_study *s, size_t factor, const struct wb_arm *a,
                   const struct wb_arm *b)
{
    const char *name = s->factors[factor].name;

    if (strcmp(a->values[factor].value, b->values[factor].value) == 0)
        return false;
    return strcmp(name, "network") != 0 || is_native(a) == is_native(b) || !network_is_form(s);
}

void wb_arms_differ(const struct wb_study *s, const struct wb_arm *a, const struct wb_arm *b,
                    struct wb_strv *out)
{
    size_t i = 0;

    while (i < s->nfactors) {
        struct wb_buf b_names = WB_BUF_INIT(8192);
        size_t from = i, walk = s->factors[i].walk;

        for (; i < s->nfactors && s->factors[i].walk == walk; i++) {
            if (counts(s, i, a, b))
                wb_buf_addf(&b_names, "%s%s", b_names.len ? "+" : "", s->factors[i].name);
        }
        if (b_names.len && strcmp(wb_buf_str(&b_names), "form") == 0 && i == from + 1) {
            if (a->form.ops != b->form.ops)
                wb_strv_add(out, "form");
            if (a->form.count != b->form.count)
                wb_strv_add(out, "instances");
        } else if (b_names.len) {
            wb_strv_add(out, wb_buf_str(&b_names));
        }
        wb_buf_release(&b_names);
    }
    if (a->nvalues > s->nfactors &&
        strcmp(a->values[s->nfactors].value, b->values[s->nfactors].value) != 0)
        wb_strv_add(out, "copy");
}

/* What a contrast is about, for headings: the cost of a form and the effect of more instances are
 * never under one. */
static char *about_text(const struct wb_study *s, const struct wb_arm *a, const struct wb_arm *b)
{
    struct wb_strv in = {0};
    const char *form = is_native(a) ? b->form.ops->name : a->form.ops->name;
    char *text;

    wb_arms_differ(s, a, b, &in);
    if (in.n == 1 && strcmp(in.v[0], "form") == 0)
        text = wb_strf("%s cost", strcmp(form, "docker") == 0 ? "container" : form);
    else if (in.n == 1 && strcmp(in.v[0], "instances") == 0)
        text = wb_strdup("more instances");
    else if (in.n == 1 && strcmp(in.v[0], "copy") == 0)
        text = wb_strdup("identical arms");
    else
        text = wb_strdup(in.n ? in.v[0] : "");
    wb_strv_release(&in);
    return text;
}

/* ---- rows ---- */

struct list {
    const struct wb_study *s;
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
        .about = about_text(l->s, &l->arms[arm], &l->arms[against]),
        .arm = arm,
        .against = against,
        .metric = wb_strdup(metric),
        .higher_is_better = wb_metric_higher_is_better(metric),
        .primary = primary};
}

/* What the client costs is of interest where clients are compared. */
static bool varies_tool(const struct wb_study *s)
{
    for (size_t i = 0; i < s->nfactors; i++)
        if (strcmp(s->factors[i].name, "tool") == 0)
            return true;
    return false;
}

/* The throughput of a phase with a rate is that rate, and times of different rates do not compare:
 * no row unless it is asked for. */
static bool worth_a_row(const struct wb_study *s, const struct wb_phase *ph, const char *metric)
{
    if (strcmp(strrchr(metric, '.'), ".client_cpu_ms") == 0)
        return varies_tool(s);
    if (ph->pace == WB_PACE_SEARCH)
        return strcmp(strrchr(metric, '.'), ".sustained") == 0;
    return ph->pace == WB_PACE_MAX || !wb_metric_higher_is_better(metric);
}

/* The arm that differs from `arm` only in the factors of one walk, where it has their first levels;
 * -1 when there is none. */
static int twin(const struct list *l, int arm, size_t walk)
{
    for (size_t i = 0; i < l->narms; i++) {
        bool same = true;

        for (size_t k = 0; same && k < l->arms[i].nvalues; k++) {
            const struct wb_factor *f = k < l->s->nfactors ? &l->s->factors[k] : NULL;
            const char *value = l->arms[i].values[k].value;

            if (f && f->walk == walk)
                same = strcmp(value, f->values.v[0]) == 0;
            else if (f)
                same = !counts(l->s, k, &l->arms[i], &l->arms[arm]);
            else
                same = strcmp(value, l->arms[arm].values[k].value) == 0;
        }
        if (same)
            return (int)i;
    }
    return -1;
}

/* The same with another form; levels of the form's walk beside it must be the arm's own. */
static int form_twin(const struct list *l, int arm, const struct wb_form_ops *ops, int count)
{
    for (size_t i = 0; i < l->narms; i++) {
        const struct wb_arm *a = &l->arms[i];
        bool same = a->form.ops == ops && a->form.count == count;

        for (size_t k = 0; same && k < a->nvalues; k++) {
            if (k < l->s->nfactors)
                same = strcmp(l->s->factors[k].name, "form") == 0 ||
                       !counts(l->s, k, a, &l->arms[arm]);
            else
                same = strcmp(a->values[k].value, l->arms[arm].values[k].value) == 0;
        }
        if (same)
            return (int)i;
    }
    return -1;
}

/* Of identical arms the first one stands for all. */
static bool stands_for_all(const struct list *l, size_t arm)
{
    const struct wb_arm *a = &l->arms[arm];

    return l->s->copies <= 1 || strcmp(a->values[a->nvalues - 1].value, "a") == 0;
}

/* docker xN against native xN; then native xN against native x1, and docker xN against docker x1
 * where there is no native xN. */
static void form_rows(struct list *l, const char *metric)
{
    for (size_t i = 0; i < l->narms; i++) {
        int against = form_twin(l, (int)i, &wb_form_native, l->arms[i].form.count);

        if (stands_for_all(l, i) && !is_native(&l->arms[i]) && against >= 0)
            add_row(l, NULL, (int)i, against, metric, true);
    }
    for (size_t i = 0; i < l->narms; i++) {
        const struct wb_form_ref *form = &l->arms[i].form;
        int against = form_twin(l, (int)i, form->ops, 1);

        if (stands_for_all(l, i) && form->count > 1 && against >= 0 &&
            (is_native(&l->arms[i]) || form_twin(l, (int)i, &wb_form_native, form->count) < 0))
            add_row(l, NULL, (int)i, against, metric, true);
    }
}

static void default_rows(const struct wb_study *s, struct list *l, const char *metric)
{
    for (size_t f = 0; f < s->nfactors; f++) {
        size_t walk = s->factors[f].walk;
        bool zipped = f + 1 < s->nfactors && s->factors[f + 1].walk == walk;

        if (f > 0 && s->factors[f - 1].walk == walk)
            continue; /* seen with its first factor */
        if (strcmp(s->factors[f].name, "form") == 0 && !zipped) {
            form_rows(l, metric);
            continue;
        }
        for (size_t i = 0; i < l->narms; i++) {
            int against = twin(l, (int)i, walk);

            if (stands_for_all(l, i) && against >= 0 && against != (int)i)
                add_row(l, NULL, (int)i, against, metric, true);
        }
    }
    for (size_t i = 0; s->copies > 1 && i < l->narms; i++) {
        size_t first = i - i % (size_t)s->copies;

        if (first != i)
            add_row(l, NULL, (int)i, (int)first, metric, true);
    }
}

void wb_contrasts_make(const struct wb_study *s, const struct wb_arm *arms, size_t narms,
                       struct wb_contrast **out, size_t *n)
{
    WB_AUTO_FREE char *metric = wb_metric_default(s);
    struct list l = {.s = s, .arms = arms, .narms = narms};
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
            if (worth_a_row(s, wb_metric_phase(s, metrics.v[k]), metrics.v[k])) {
                WB_AUTO_FREE char *name = wb_strdup(l.v[i].name);

                add_row(&l, name, l.v[i].arm, l.v[i].against, metrics.v[k], false);
            }
        }
    }
    wb_strv_release(&metrics);
    *out = l.v;
    *n = l.n;
}
