#include "server/study/parts.h"

#include <stdlib.h>
#include <string.h>

static void add_value(struct wb_arm *a, const char *factor, const char *value)
{
    a->values[a->nvalues++] = (struct wb_arm_value){wb_strdup(factor), wb_strdup(value)};
}

static void fill_settings(const struct wb_study *s, const size_t *levels, struct wb_arm *a)
{
    const struct wb_recipe *r = s->recipe;

    a->settings = wb_calloc(r->nparams, sizeof *a->settings);
    for (size_t i = 0; i < r->nparams; i++) {
        const char *value = r->params[i].dflt;

        for (size_t k = 0; k < s->nfactors; k++) {
            if (strncmp(s->factors[k].name, "setting.", 8) == 0 &&
                strcmp(s->factors[k].name + 8, r->params[i].name) == 0)
                value = s->factors[k].canonical.v[levels[k]];
        }
        a->settings[a->nsettings++] =
            (struct wb_setting){wb_strdup(r->params[i].name), wb_strdup(value)};
    }
}

/* The varied values in study order, joined by '/'. */
static char *label_of(const struct wb_study *s, const struct wb_arm *a)
{
    struct wb_buf b = WB_BUF_INIT(64 << 10);

    for (size_t i = 0; i < a->nvalues; i++) {
        bool varied = i < s->nfactors ? s->factors[i].values.n > 1 : true;

        if (varied)
            wb_buf_addf(&b, "%s%s", b.len ? "/" : "", a->values[i].value);
    }
    if (b.len == 0)
        wb_buf_addf(&b, "%s x%d", a->form.ops->name, a->form.count);
    if (b.failed)
        abort(); /* factors and their values are bounded: see study_factors.c */
    return wb_buf_take(&b);
}

static void make_arm(const struct wb_study *s, const struct wb_combination *c, int copy,
                     struct wb_arm *a)
{
    a->form = c->form;
    a->cpu_quota = c->cpu_quota;
    a->setup = &c->setup;
    a->values = wb_calloc(s->nfactors + 1, sizeof *a->values);
    for (size_t i = 0; i < s->nfactors; i++) {
        const struct wb_factor *f = &s->factors[i];
        bool fixed = strcmp(f->name, "network") == 0 && c->form.ops == &wb_form_native;

        /* Native instances are on the host's network whatever is varied for containers. */
        add_value(a, f->name,
                  fixed ? wb_network_names[WB_NETWORK_HOST] : f->values.v[c->levels[i]]);
    }
    if (s->copies > 1) {
        const char name[2] = {(char)('a' + copy), '\0'};

        add_value(a, "copy", name);
    }
    fill_settings(s, c->levels, a);
    a->label = label_of(s, a);
}

void wb_arms_make(const struct wb_study *s, struct wb_arm **arms, size_t *n)
{
    size_t copies = (size_t)s->copies;

    *n = s->ncombinations * copies;
    *arms = wb_calloc(*n, sizeof **arms);
    for (size_t i = 0; i < *n; i++)
        make_arm(s, &s->combinations[i / copies], (int)(i % copies), &(*arms)[i]);
}

int wb_arm_find(const struct wb_arm *arms, size_t n, const char *label)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(arms[i].label, label) == 0)
            return (int)i;
    }
    return -1;
}

void wb_arms_free(struct wb_arm *arms, size_t n)
{
    for (size_t i = 0; arms && i < n; i++) {
        for (int k = 0; arms[i].parts && k < arms[i].form.count; k++) {
            free(arms[i].parts[k].cpus);
            free(arms[i].parts[k].mems);
        }
        free(arms[i].parts);
        for (size_t k = 0; k < arms[i].nvalues; k++) {
            free(arms[i].values[k].factor);
            free(arms[i].values[k].value);
        }
        for (size_t k = 0; k < arms[i].nsettings; k++) {
            free(arms[i].settings[k].name);
            free(arms[i].settings[k].value);
        }
        free(arms[i].values);
        free(arms[i].settings);
        free(arms[i].label);
    }
    free(arms);
}
