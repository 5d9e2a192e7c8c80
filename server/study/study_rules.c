#include "server/study/parts.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/fields.h"

#define CONTRASTS_MAX 64

void wb_validity_defaults(struct wb_validity_limits *v)
{
    *v = (struct wb_validity_limits){
        .steal_noisy = 1,
        .steal_invalid = 5,
        .foreign_noisy = 0.25,
        .foreign_invalid = 1,
        .canary_noisy = 2,
        .canary_invalid = 5,
        .throttled_noisy = 1,
        .client_cpu_noisy = 80,
        .client_cpu_limited = 95,
        .run_queue_noisy = 10,
        .errors_noisy = 0.01,
        .errors_fail = 1,
    };
}

/* One row of DESIGN.md section 14's table: the word for what is worse than noisy, and where both
 * limits are kept. */
struct limit_row {
    const char *key, *worse; /* worse NULL: there is only noisy */
    size_t noisy_at, worse_at;
    double max;
    bool cores; /* else a percentage */
};
#define AT(m) offsetof(struct wb_validity_limits, m)
static const struct limit_row limit_rows[] = {
    {"steal", "invalid", AT(steal_noisy), AT(steal_invalid), 100, false},
    {"foreign_cpu", "invalid", AT(foreign_noisy), AT(foreign_invalid), 1024, true},
    {"canary", "invalid", AT(canary_noisy), AT(canary_invalid), 1000, false},
    {"throttled", NULL, AT(throttled_noisy), 0, 100, false},
    {"client_cpu", "limited", AT(client_cpu_noisy), AT(client_cpu_limited), 100, false},
    {"run_queue", NULL, AT(run_queue_noisy), 0, 100, false},
    {"errors", "fail", AT(errors_noisy), AT(errors_fail), 100, false},
};

wb_json *wb_validity_json(const struct wb_validity_limits *v)
{
    wb_json *o = wb_json_object();

    for (size_t i = 0; i < WB_LEN(limit_rows); i++) {
        const struct limit_row *row = &limit_rows[i];
        wb_json *l = wb_json_object();

        wb_json_set_real(l, "noisy", *(const double *)((const char *)v + row->noisy_at));
        if (row->worse)
            wb_json_set_real(l, row->worse, *(const double *)((const char *)v + row->worse_at));
        wb_json_set(o, row->key, l);
    }
    return o;
}

int wb_validity_limits_read(const wb_json *j, struct wb_validity_limits *out, struct wb_err *err)
{
    struct wb_validity_limits v;

    for (size_t i = 0; i < WB_LEN(limit_rows); i++) {
        const struct limit_row *row = &limit_rows[i];
        const wb_json *l = wb_json_get(j, row->key);
        const wb_json *noisy = wb_json_get(l, "noisy");
        const wb_json *worse = row->worse ? wb_json_get(l, row->worse) : noisy;

        if (!wb_json_is_number(noisy) || !wb_json_is_number(worse))
            return wb_fail(err, WB_UNSUPPORTED, "the limit %s is not known", row->key);
        *(double *)((char *)&v + row->noisy_at) = wb_json_number(noisy, 0);
        if (row->worse)
            *(double *)((char *)&v + row->worse_at) = wb_json_number(worse, 0);
    }
    *out = v;
    return 0;
}

/* The fields of a limit; returns how many there are. */
static size_t limit_fields(const struct limit_row *row, struct wb_field fields[2])
{
    fields[0] = (struct wb_field){.key = "noisy",
                                  .type = row->cores ? WB_F_REAL : WB_F_PERCENT,
                                  .offset = row->noisy_at,
                                  .max = row->max};
    fields[1] = fields[0];
    fields[1].key = row->worse;
    fields[1].offset = row->worse_at;
    return row->worse ? 2 : 1;
}

static void read_limit(struct wb_validity_limits *v, const struct limit_row *row,
                       const struct wb_node *n, struct wb_problems *p)
{
    struct wb_field fields[2];
    size_t nfields = limit_fields(row, fields);
    const double *noisy = (const double *)((const char *)v + row->noisy_at);
    const double *worse = (const double *)((const char *)v + row->worse_at);

    if (wb_fields_read(n, row->key, fields, nfields, v, p) > 0 || !row->worse)
        return;
    if (*noisy > *worse)
        wb_problem(p, n, "contradiction", "%s: noisy (%g) lies above %s (%g)", row->key, *noisy,
                   row->worse, *worse);
}

static void read_limits(struct wb_study *s, const struct wb_node *limits, struct wb_problems *p)
{
    const char *keys[WB_LEN(limit_rows) + 1] = {NULL};

    for (size_t i = 0; i < WB_LEN(limit_rows); i++)
        keys[i] = limit_rows[i].key;
    if (limits->kind != WB_NODE_MAP) {
        wb_problem(p, limits, "wrong-type",
                   "limits must be a map such as {steal: {noisy: 1%%, invalid: 5%%}}");
        return;
    }
    for (size_t i = 0; i < limits->n; i++) {
        int row = wb_word_now(limits->items[i], "a limit", limits->items[i]->key, keys, NULL, p);

        if (row >= 0)
            read_limit(&s->validity, &limit_rows[row], limits->items[i], p);
    }
}

static const char *const accept_words[] = {"valid", "noisy", NULL};

static void read_accept(struct wb_study *s, const struct wb_node *accept, struct wb_problems *p)
{
    bool seen[2] = {false, false};

    if (accept->kind != WB_NODE_LIST) {
        wb_problem(p, accept, "wrong-type", "accept must be a list: [valid] or [valid, noisy]");
        return;
    }
    for (size_t i = 0; i < accept->n; i++) {
        const struct wb_node *n = accept->items[i];
        int w = wb_word_now(n, "accept", n->text ? n->text : "", accept_words, NULL, p);

        if (w < 0)
            return;
        seen[w] = true;
    }
    if (!seen[0])
        wb_problem(p, accept, "missing", "accept must have valid in it: [valid] or [valid, noisy]");
    s->accept_noisy = seen[1];
}

static const struct wb_field validity_fields[] = {
    {"accept", WB_F_NODE, false, 0, 0, 0, NULL, "which validity counts"},
    {"limits", WB_F_NODE, false, sizeof(void *), 0, 0, NULL, "limits of evidence"},
};

void wb_study_validity(struct wb_study *s, const struct wb_node *validity, struct wb_problems *p)
{
    struct {
        const struct wb_node *accept, *limits;
    } raw = {0};

    if (!validity)
        return;
    (void)wb_fields_read(validity, "validity", validity_fields, WB_LEN(validity_fields), &raw, p);
    if (raw.accept)
        read_accept(s, raw.accept, p);
    if (raw.limits)
        read_limits(s, raw.limits, p);
}

static const struct wb_field contrast_fields[] = {
    {"name", WB_F_TEXT, false, offsetof(struct wb_contrast_ask, name), 0, 0, NULL, "for people"},
    {"arm", WB_F_TEXT, true, offsetof(struct wb_contrast_ask, arm), 0, 0, NULL,
     "label of the arm that is judged"},
    {"against", WB_F_TEXT, true, offsetof(struct wb_contrast_ask, against), 0, 0, NULL,
     "label of the arm it is compared with"},
    {"metric", WB_F_TEXT, false, offsetof(struct wb_contrast_ask, metric), 0, 0, NULL,
     "such as max.throughput"},
};

void wb_study_contrasts(struct wb_study *s, const struct wb_node *contrasts, struct wb_problems *p)
{
    if (!contrasts)
        return;
    if (contrasts->kind != WB_NODE_LIST || contrasts->n == 0 || contrasts->n > CONTRASTS_MAX) {
        wb_problem(p, contrasts, "wrong-type",
                   "contrasts must be a list of 1 to %d maps; leave it out for the usual ones",
                   CONTRASTS_MAX);
        return;
    }
    s->contrasts = wb_calloc(contrasts->n, sizeof *s->contrasts);
    for (size_t i = 0; i < contrasts->n; i++)
        (void)wb_fields_read(contrasts->items[i], "contrast", contrast_fields,
                             WB_LEN(contrast_fields), &s->contrasts[s->ncontrasts++], p);
}

/* Index of the arm that a contrast's key names; -1 with a problem. */
static int arm_named(const struct wb_node *n, const char *key, const char *label,
                     const struct wb_arm *arms, size_t narms, struct wb_problems *p)
{
    int found = label ? wb_arm_find(arms, narms, label) : -1;
    const char **labels;

    if (found >= 0 || !label)
        return found;
    labels = wb_calloc(narms + 1, sizeof *labels);
    for (size_t i = 0; i < narms; i++)
        labels[i] = arms[i].label;
    WB_AUTO_FREE char *guess = wb_did_you_mean(label, labels);
    WB_AUTO_FREE char *list = wb_word_list(labels);

    wb_problem(p, wb_node_get(n, key), "unknown-arm", "there is no arm '%.100s'%s; arms: %s", label,
               guess, list);
    free(labels);
    return -1;
}

static void check_metric(const struct wb_study *s, const struct wb_node *n, const char *metric,
                         struct wb_problems *p)
{
    struct wb_strv metrics = {0};

    if (!metric || wb_metric_phase(s, metric))
        return;
    wb_metrics_list(s, &metrics);
    WB_AUTO_FREE char *guess = wb_did_you_mean(metric, (const char *const *)metrics.v);
    WB_AUTO_FREE char *list = wb_word_list((const char *const *)metrics.v);

    wb_problem(p, wb_node_get(n, "metric"), "unknown-metric",
               "there is no metric '%.100s'%s; metrics: %s", metric, guess, list);
    wb_strv_release(&metrics);
}

static void check_arms(const struct wb_study *s, const struct wb_node *n,
                       const struct wb_contrast_ask *ask, const struct wb_arm *arms, size_t narms,
                       struct wb_problems *p)
{
    int arm = arm_named(n, "arm", ask->arm, arms, narms, p);
    int against = arm_named(n, "against", ask->against, arms, narms, p);
    struct wb_strv in = {0};

    if (arm < 0 || against < 0)
        return;
    if (arm == against) {
        wb_problem(p, n, "contradiction", "arm and against are the same: '%s'", arms[arm].label);
        return;
    }
    wb_arms_differ(s, &arms[arm], &arms[against], &in);
    if (in.n > 1) {
        struct wb_buf list = WB_BUF_INIT(4096);

        for (size_t i = 0; i < in.n; i++)
            wb_buf_addf(&list, "%s%s", i ? ", " : "", in.v[i]);
        wb_problem(p, n, "contradiction",
                   "'%s' and '%s' differ in more than one thing (%s), so that a difference has no "
                   "one cause; choose two arms that differ in one",
                   arms[arm].label, arms[against].label, wb_buf_str(&list));
        wb_buf_release(&list);
    }
    wb_strv_release(&in);
}

void wb_study_contrast_names(const struct wb_study *s, const struct wb_node *contrasts,
                             bool arms_known, bool metrics_known, struct wb_problems *p)
{
    struct wb_arm *arms = NULL;
    size_t narms = 0;

    if (arms_known)
        wb_arms_make(s, &arms, &narms);
    for (size_t i = 0; i < s->ncontrasts; i++) {
        if (metrics_known)
            check_metric(s, contrasts->items[i], s->contrasts[i].metric, p);
        if (arms_known)
            check_arms(s, contrasts->items[i], &s->contrasts[i], arms, narms, p);
    }
    wb_arms_free(arms, narms);
}

wb_json *wb_validity_schema(void)
{
    wb_json *map = wb_schema_map(validity_fields, WB_LEN(validity_fields));
    wb_json *limits = wb_json_object(), *rows = wb_json_object();

    for (size_t i = 0; i < WB_LEN(limit_rows); i++) {
        struct wb_field fields[2];
        size_t n = limit_fields(&limit_rows[i], fields);

        wb_json_set(rows, limit_rows[i].key, wb_schema_map(fields, n));
    }
    wb_json_set_str(limits, "type", "object");
    wb_json_set(limits, "properties", rows);
    wb_json_set_bool(limits, "additionalProperties", false);
    wb_schema_set(map, "accept",
                  wb_schema_list(wb_schema_words(accept_words), 1, WB_LEN(accept_words) - 1));
    wb_schema_set(map, "limits", limits);
    return map;
}

wb_json *wb_contrasts_schema(void)
{
    return wb_schema_list(wb_schema_map(contrast_fields, WB_LEN(contrast_fields)), 1,
                          CONTRASTS_MAX);
}
