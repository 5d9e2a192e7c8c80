/* `during` of a phase: operations on the cluster while its load goes on. */
#include "server/study/parts.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/fields.h"

#define DURING_MAX 16
#define LAST (-1)

struct raw_op {
    int64_t at;
    char *name, *instance;
};
static const struct wb_field fields[] = {
    {"at", WB_F_DURATION, true, offsetof(struct raw_op, at), 0, 86400e9, NULL,
     "after the begin of the measured window, such as 30s"},
    {"do", WB_F_NAME, true, offsetof(struct raw_op, name), 0, 0, NULL,
     "an operation of the recipe, such as repair"},
    {"instance", WB_F_TEXT, false, offsetof(struct raw_op, instance), 0, 0, NULL,
     "on which one: first, last (default) or a number from 0"},
};

static const struct wb_recipe_operation *find(const struct wb_recipe *recipe,
                                              const struct wb_node *n, const char *name,
                                              struct wb_problems *p)
{
    const struct wb_recipe_operation *op = wb_recipe_find_operation(recipe, name);
    const char **names;

    if (op)
        return op;
    names = wb_calloc(recipe->noperations + 1, sizeof *names);
    for (size_t i = 0; i < recipe->noperations; i++)
        names[i] = recipe->operations[i].name;
    WB_AUTO_FREE char *guess = wb_did_you_mean(name, names);
    WB_AUTO_FREE char *list = wb_word_list(names);

    free(names);
    if (recipe->noperations)
        wb_problem(p, n, "unknown-value", "recipe %s has no operation '%.100s'%s; it has %s",
                   recipe->name, name, guess, list);
    else
        wb_problem(p, n, "unknown-value",
                   "recipe %s has no operations: nothing can be done during a phase", recipe->name);
    return NULL;
}

static int read_instance(const struct wb_node *n, const char *text, struct wb_problems *p)
{
    struct wb_err err = WB_ERR_INIT;
    int64_t v = LAST;

    if (!text || strcmp(text, "last") == 0)
        return LAST;
    if (strcmp(text, "first") == 0)
        return 0;
    if (wb_parse_int(text, 0, WB_FORM_COUNT_MAX - 1, &v, &err) < 0)
        wb_problem(p, wb_node_get(n, "instance"), "bad-value",
                   "instance is first, last or a number from 0: %s", err.root);
    return (int)v;
}

static void read_op(struct wb_phase *ph, const struct wb_recipe *recipe, const struct wb_node *n,
                    struct wb_problems *p)
{
    struct wb_phase_op *o = &ph->during[ph->nduring];
    struct raw_op raw = {0};
    int bad = wb_fields_read(n, "an operation of during", fields, WB_LEN(fields), &raw, p);

    *o = (struct wb_phase_op){.at_ns = raw.at, .instance = LAST};
    if (!bad) {
        o->instance = read_instance(n, raw.instance, p);
        o->op = recipe ? find(recipe, wb_node_get(n, "do"), raw.name, p) : NULL;
        if (o->at_ns >= ph->for_ns)
            wb_problem(p, wb_node_get(n, "at"), "out-of-range",
                       "at is not before the end of the measured window, which is %g s long",
                       (double)ph->for_ns / 1e9);
        if (ph->nduring > 0 && o->at_ns < o[-1].at_ns)
            wb_problem(p, wb_node_get(n, "at"), "out-of-range",
                       "operations stand in the order of their times");
        ph->nduring += o->op != NULL;
    }
    free(raw.name);
    free(raw.instance);
}

/* Why a phase can have no operations; NULL: it can. */
static const char *why_none(const struct wb_phase *ph)
{
    if (ph->steps_of)
        return "steps of a list of rates are shuffled: write a phase of its own for operations";
    if (ph->pace == WB_PACE_SEARCH)
        return "a search tries many rates: write a phase of its own for operations";
    if (ph->operations > 0)
        return "a phase with operations is as long as for says, not as its ops take";
    if (ph->tool)
        return "only wb-load tells second by second what operations do to the load: take tool away";
    if (ph->transactions)
        return "operations with transactions are not told second by second yet: write a phase of "
               "its own, with op or mix, for them";
    return NULL;
}

static void read_list(struct wb_phase *ph, const struct wb_recipe *recipe,
                      const struct wb_node *list, struct wb_problems *p)
{
    const char *why = why_none(ph);

    if (list->kind != WB_NODE_LIST || list->n == 0 || list->n > DURING_MAX) {
        wb_problem(p, list, "wrong-type",
                   "during must be a list of 1 to %d maps such as {at: 30s, do: repair}",
                   DURING_MAX);
        return;
    }
    if (why) {
        wb_problem(p, list, "contradiction", "%s", why);
        return;
    }
    ph->during = wb_calloc(list->n, sizeof *ph->during);
    for (size_t i = 0; i < list->n; i++)
        read_op(ph, recipe, list->items[i], p);
}

static struct wb_phase *phase_of(struct wb_setup *s, const struct wb_node *n)
{
    const struct wb_node *name = wb_node_get(n, "name");

    for (size_t i = 0; name && name->text && i < s->nphases; i++) {
        const char *own = s->phases[i].steps_of ? s->phases[i].steps_of : s->phases[i].name;

        if (own && strcmp(own, name->text) == 0)
            return s->phases[i].load_only ? NULL : &s->phases[i];
    }
    return NULL;
}

void wb_study_during(struct wb_setup *s, const struct wb_recipe *recipe,
                     const struct wb_node *workload, struct wb_problems *p)
{
    const struct wb_node *phases = workload ? wb_node_get(workload, "phases") : NULL;

    for (size_t i = 0; phases && phases->kind == WB_NODE_LIST && i < phases->n; i++) {
        const struct wb_node *list = wb_node_get(phases->items[i], "during");
        struct wb_phase *ph = list ? phase_of(s, phases->items[i]) : NULL;

        if (ph && !ph->during)
            read_list(ph, recipe, list, p);
    }
}

int wb_phase_op_instance(const struct wb_phase_op *o, int count)
{
    return o->instance == LAST ? count - 1 : o->instance;
}

bool wb_setup_holds_back(const struct wb_setup *s, int instance, int count)
{
    for (size_t i = 0; i < s->nphases; i++)
        for (size_t k = 0; k < s->phases[i].nduring; k++) {
            const struct wb_phase_op *o = &s->phases[i].during[k];

            if (wb_phase_op_instance(o, count) == instance)
                return o->op->kind == WB_OP_JOIN; /* its first one */
        }
    return false;
}

/* What becomes of the instances, operation by operation. */
struct ring {
    bool in[WB_FORM_COUNT_MAX], left[WB_FORM_COUNT_MAX];
    int count, members;
};

static void check_op(struct ring *g, const struct wb_phase *ph, const struct wb_phase_op *o,
                     const struct wb_node *at, struct wb_problems *p)
{
    int i = wb_phase_op_instance(o, g->count);
    const char *name = o->op->name;
    bool join = o->op->kind == WB_OP_JOIN;

    if (i >= g->count) {
        wb_problem(p, at, "out-of-range", "phase %s: %s on instance %d, and there are %d (0 to %d)",
                   ph->name, name, i, g->count, g->count - 1);
        return;
    }
    if (join && g->left[i])
        wb_problem(p, at, "contradiction",
                   "phase %s: %s brings in an instance that was never in; instance %d has left",
                   ph->name, name, i);
    else if (join && g->in[i])
        wb_problem(p, at, "contradiction",
                   "phase %s: instance %d is in already: %s is its first operation", ph->name, i,
                   name);
    else if (!join && !g->in[i])
        wb_problem(p, at, "contradiction",
                   "phase %s: %s on instance %d, which is not in the cluster at that time",
                   ph->name, name, i);
    else if (o->op->kind == WB_OP_LEAVE && g->members == 1)
        wb_problem(p, at, "contradiction", "phase %s: %s would leave no instance", ph->name, name);
    else if (join) {
        g->members++;
        g->in[i] = true;
    } else if (o->op->kind == WB_OP_LEAVE) {
        g->members--;
        g->in[i] = false;
        g->left[i] = true;
    }
}

void wb_during_check(const struct wb_combination *c, const struct wb_node *at,
                     struct wb_problems *p)
{
    struct ring g = {.count = c->form.count};

    for (int i = 0; i < g.count; i++) {
        g.in[i] = !wb_setup_holds_back(&c->setup, i, g.count);
        g.members += g.in[i];
    }
    if (!g.in[0]) {
        wb_problem(p, at, "contradiction",
                   "an operation brings in instance 0 of '%s x%d', and a cluster begins with it",
                   c->form.ops->name, g.count);
        return;
    }
    for (size_t i = 0; i < c->setup.nphases; i++)
        for (size_t k = 0; k < c->setup.phases[i].nduring; k++)
            check_op(&g, &c->setup.phases[i], &c->setup.phases[i].during[k], at, p);
}

void wb_during_release(struct wb_phase *ph)
{
    free(ph->during);
    ph->during = NULL;
    ph->nduring = 0;
}

wb_json *wb_during_json(const struct wb_phase *ph)
{
    wb_json *list = wb_json_array();

    for (size_t i = 0; i < ph->nduring; i++) {
        const struct wb_phase_op *o = &ph->during[i];
        wb_json *row = wb_json_object();

        wb_json_set_int(row, "at_ns", o->at_ns);
        wb_json_set_str(row, "do", o->op->name);
        if (o->instance == LAST)
            wb_json_set_str(row, "instance", "last");
        else
            wb_json_set_int(row, "instance", o->instance);
        wb_json_push(list, row);
    }
    return list;
}

wb_json *wb_during_schema(void)
{
    wb_json *row = wb_schema_map(fields, WB_LEN(fields));

    wb_schema_set(row, "instance", wb_schema_pattern("^(first|last|[0-9]+)$"));
    return wb_schema_list(row, 1, DURING_MAX);
}
