#include "server/study/parts.h"

#include <stdlib.h>
#include <string.h>

#include "runners/load/job.h"
#include "runners/load/keys.h"
#include "runners/load/values.h"
#include "server/base/clock.h"
#include "server/base/fields.h"

#define PHASES_MAX 32

struct raw_phase {
    char *name, *op, *order, *keys, *arrivals;
    int64_t connections, depth, threads, warm_up, length, timeout;
    const struct wb_node *mix, *rate;
};

static const struct wb_field phase_fields[] = {
    {"name", WB_F_NAME, true, offsetof(struct raw_phase, name), 0, 0, NULL, "a name"},
    {"op", WB_F_TEXT, false, offsetof(struct raw_phase, op), 0, 0, NULL, "insert, get or set"},
    {"mix", WB_F_NODE, false, offsetof(struct raw_phase, mix), 0, 0, NULL,
     "shares such as {get: 80%, set: 20%}"},
    {"order", WB_F_TEXT, false, offsetof(struct raw_phase, order), 0, 0, NULL, "sequential"},
    {"keys", WB_F_TEXT, false, offsetof(struct raw_phase, keys), 0, 0, NULL, "uniform"},
    {"connections", WB_F_INT, false, offsetof(struct raw_phase, connections), 1,
     WB_LOAD_CONNECTIONS_MAX, NULL, "of all load workers together"},
    {"depth", WB_F_INT, false, offsetof(struct raw_phase, depth), 1, WB_LOAD_DEPTH_MAX, NULL,
     "most requests in flight on a connection"},
    {"threads", WB_F_INT, false, offsetof(struct raw_phase, threads), 1, WB_LOAD_THREADS_MAX, NULL,
     "threads of the load"},
    {"rate", WB_F_NODE, false, offsetof(struct raw_phase, rate), 0, 0, NULL,
     "max, 20k/s or 60% of calibrated"},
    {"arrivals", WB_F_TEXT, false, offsetof(struct raw_phase, arrivals), 0, 0, NULL,
     "poisson or constant"},
    {"warm_up", WB_F_DURATION, false, offsetof(struct raw_phase, warm_up), 0, 3600e9, NULL,
     "time before the measured window"},
    {"for", WB_F_DURATION, false, offsetof(struct raw_phase, length), 100e6, 86400e9, NULL,
     "length of the measured window, such as 60s"},
    {"timeout", WB_F_DURATION, false, offsetof(struct raw_phase, timeout), 1e6, 600e9, NULL,
     "age at which an operation counts as failed"},
};

static const char *const ops[] = {"insert", "get", "set", NULL};
static const char *const ops_later[] = {"select", "update", "delete", "read",
                                        "write",  "scan",   "append", NULL};
static const char *const orders[] = {"sequential", NULL};
static const char *const orders_later[] = {"random", NULL};
static const char *const key_choices[] = {"uniform", "sequential", "zipf", NULL};
static const char *const key_choices_later[] = {"hotspot", "latest", "absent", NULL};
static const char *const arrival_laws[] = {"poisson", "constant", NULL};

static void read_mix(struct wb_phase *ph, const struct wb_node *mix, struct wb_problems *p)
{
    static const char *const mixed[] = {"get", "set", NULL};
    double sum = 0, get = 0;
    bool bad = false;

    if (mix->kind != WB_NODE_MAP || mix->n == 0) {
        wb_problem(p, mix, "wrong-type", "mix must be a map such as {get: 80%%, set: 20%%}");
        return;
    }
    for (size_t i = 0; i < mix->n; i++) {
        const struct wb_node *n = mix->items[i];
        struct wb_err err = WB_ERR_INIT;
        double share = 0;

        if (wb_word_now(n, "an operation of mix", n->key, mixed, ops_later, p) < 0)
            bad = true;
        else if (!n->text || wb_parse_percent(n->text, 0, 100, &share, &err) < 0) {
            wb_problem(p, n, "bad-value", "%s must be a share such as 20%%", n->key);
            bad = true;
        }
        sum += share;
        if (strcmp(n->key, "get") == 0)
            get = share;
    }
    if (!bad && (sum < 100 - 1e-6 || sum > 100 + 1e-6)) {
        WB_AUTO_FREE char *got = wb_number_text(sum);

        wb_problem(p, mix, "bad-value", "the shares of mix make %s%%, not 100%%", got);
    }
    ph->get_percent = get;
}

static void read_rate(struct wb_phase *ph, const struct wb_node *n, struct wb_problems *p)
{
    static const char suffix[] = " of calibrated";
    struct wb_err err = WB_ERR_INIT;
    size_t len;
    int rc;

    if (n->kind == WB_NODE_LIST) {
        wb_problem(p, n, "unsupported",
                   "a list of rates is not supported yet; write a phase for each rate");
        return;
    }
    if (n->kind != WB_NODE_TEXT && n->kind != WB_NODE_NUMBER) {
        wb_problem(p, n, "wrong-type",
                   "rate must be max, a rate such as 20k/s, or such as "
                   "'60%% of calibrated'");
        return;
    }
    if (strcmp(n->text, "max") == 0)
        return;
    len = strlen(n->text);
    if (len >= sizeof suffix && strcmp(n->text + len - (sizeof suffix - 1), suffix) == 0) {
        WB_AUTO_FREE char *share = wb_strndup(n->text, len - (sizeof suffix - 1));

        ph->pace = WB_PACE_CALIBRATED;
        rc = wb_parse_percent(share, 1, 200, &ph->calibrated_percent, &err);
    } else {
        ph->pace = WB_PACE_RATE;
        rc = wb_parse_rate(n->text, &ph->rate_per_s, &err);
    }
    if (rc < 0)
        wb_problem(p, n, "bad-value",
                   "rate is max, a rate such as 20k/s, or such as '60%% of calibrated': %s",
                   err.root);
}

/* Keys that mean nothing in this kind of phase: never ignored. */
static void refuse_keys(const struct wb_node *n, const char *const *keys, const char *why,
                        struct wb_problems *p)
{
    for (; *keys; keys++) {
        const struct wb_node *k = wb_node_get(n, *keys);

        if (k)
            wb_problem(p, k, "contradiction", "%s has no meaning %s", *keys, why);
    }
}

static void read_load(struct wb_phase *ph, const struct wb_node *n, const struct raw_phase *raw,
                      struct wb_problems *p)
{
    static const char *const measured_only[] = {"mix",     "keys", "rate", "arrivals",
                                                "warm_up", "for",  NULL};

    ph->load_only = true;
    if (!raw->order)
        wb_problem_key(p, n, "order", "missing",
                       "op insert is the data load and needs order: sequential");
    else
        (void)wb_word_now(wb_node_get(n, "order"), "order", raw->order, orders, orders_later, p);
    refuse_keys(n, measured_only, "in the data load (op: insert)", p);
}

static void read_measured(struct wb_phase *ph, const struct wb_node *n, const struct raw_phase *raw,
                          struct wb_problems *p)
{
    static const char *const load_only[] = {"order", NULL}, *const open_only[] = {"arrivals", NULL};
    static const char *const closed_only[] = {"depth", NULL};

    ph->get_percent = raw->op && strcmp(raw->op, "get") == 0 ? 100 : 0;
    if (raw->mix)
        read_mix(ph, raw->mix, p);
    if (raw->mix && raw->op)
        wb_problem(p, raw->mix, "contradiction", "a phase has op or mix, not both");
    if (!raw->mix && !wb_node_get(n, "op"))
        wb_problem_key(p, n, "op", "missing", "phase needs op (insert, get or set) or mix");
    if (raw->keys)
        (void)wb_word_now(wb_node_get(n, "keys"), "keys", raw->keys, key_choices, key_choices_later,
                          p);
    if (raw->rate)
        read_rate(ph, raw->rate, p);
    if (raw->arrivals)
        (void)wb_word_now(wb_node_get(n, "arrivals"), "arrivals", raw->arrivals, arrival_laws, NULL,
                          p);
    if (!wb_node_get(n, "for"))
        wb_problem_key(p, n, "for", "missing",
                       "phase needs for: length of the measured window, such as 60s");
    refuse_keys(n, load_only, "in a measured phase", p);
    if (ph->pace == WB_PACE_MAX && (!raw->rate || raw->rate->kind == WB_NODE_TEXT))
        refuse_keys(n, open_only, "at rate: max, where every answer brings the next request", p);
    if (ph->pace != WB_PACE_MAX)
        refuse_keys(n, closed_only, "with a rate, where every request is sent when it is due", p);
}

static void check_name(const struct wb_study *s, const struct wb_node *n, const char *name,
                       struct wb_problems *p)
{
    if (!name)
        return;
    if (strchr(name, '.'))
        wb_problem(p, wb_node_get(n, "name"), "bad-name",
                   "the name of a phase has no dot: it starts the names of its metrics");
    for (size_t i = 0; i < s->nphases; i++) {
        if (s->phases[i].name && strcmp(s->phases[i].name, name) == 0)
            wb_problem(p, wb_node_get(n, "name"), "duplicate", "there are two phases named '%s'",
                       name);
    }
}

static void read_phase(struct wb_study *s, const struct wb_node *n, struct wb_problems *p)
{
    struct raw_phase raw = {
        .connections = 1, .threads = 1, .warm_up = WB_SEC, .timeout = 5 * WB_SEC};
    struct wb_phase *ph;

    (void)wb_fields_read(n, "phase", phase_fields, WB_LEN(phase_fields), &raw, p);
    check_name(s, n, raw.name, p);
    ph = &s->phases[s->nphases++];
    *ph = (struct wb_phase){.name = raw.name,
                            .connections = raw.connections,
                            .depth = raw.depth,
                            .threads = raw.threads,
                            .timeout_ns = raw.timeout};
    if (n->kind == WB_NODE_MAP &&
        (!raw.op || wb_word_now(wb_node_get(n, "op"), "op", raw.op, ops, ops_later, p) >= 0)) {
        if (raw.op && strcmp(raw.op, "insert") == 0)
            read_load(ph, n, &raw, p);
        else
            read_measured(ph, n, &raw, p);
    }
    if (ph->depth == 0 && ph->pace == WB_PACE_MAX)
        ph->depth = 1;
    if (raw.threads > raw.connections)
        wb_problem(p, wb_node_get(n, "threads"), "out-of-range",
                   "%lld threads cannot share %lld connection%s", (long long)raw.threads,
                   (long long)raw.connections, raw.connections == 1 ? "" : "s");
    if (!ph->load_only) {
        ph->keys = raw.keys ? WB_STEAL(raw.keys) : wb_strdup("uniform");
        ph->warm_up_ns = raw.warm_up;
        ph->for_ns = raw.length;
    }
    if (ph->pace != WB_PACE_MAX)
        ph->arrivals = raw.arrivals ? WB_STEAL(raw.arrivals) : wb_strdup("poisson");
    free(raw.op);
    free(raw.order);
    free(raw.keys);
    free(raw.arrivals);
}

/* Rules over all phases: data is loaded first and once, and something is measured. */
static void check_phases(const struct wb_study *s, const struct wb_node *list,
                         struct wb_problems *p)
{
    size_t loads = 0, measured = 0;
    bool reads = false;

    for (size_t i = 0; i < s->nphases; i++) {
        const struct wb_phase *ph = &s->phases[i];

        if (ph->load_only && i > 0)
            wb_problem(p, list->items[i], "contradiction",
                       "the data load must be the first phase, and the only one with op: insert");
        loads += ph->load_only;
        measured += !ph->load_only;
        reads = reads || ph->get_percent > 0;
    }
    if (measured == 0)
        wb_problem(p, list, "missing",
                   "no phase measures anything: add one such as {name: max, "
                   "op: get, rate: max, for: 30s}");
    if (reads && loads == 0)
        wb_problem(p, list, "missing",
                   "gets need data: add {name: load, op: insert, order: sequential} as the first "
                   "phase");
}

static void read_phases(struct wb_study *s, const struct wb_node *list, struct wb_problems *p)
{
    size_t before = p->n + p->dropped;

    if (!list)
        return;
    if (list->kind != WB_NODE_LIST || list->n == 0 || list->n > PHASES_MAX) {
        wb_problem(p, list, "wrong-type", "phases must be a list of 1 to %d phases", PHASES_MAX);
        return;
    }
    s->phases = wb_calloc(list->n, sizeof *s->phases);
    for (size_t i = 0; i < list->n; i++)
        read_phase(s, list->items[i], p);
    if (p->n + p->dropped == before)
        check_phases(s, list, p);
}

struct raw_data {
    int64_t rows, key;
    const struct wb_node *value;
};
static const struct wb_field data_fields[] = {
    {"rows", WB_F_INT, true, offsetof(struct raw_data, rows), 1, 0x1p48, NULL, "such as 1_000_000"},
    {"key", WB_F_BYTES, false, offsetof(struct raw_data, key), 2, WB_KEY_BYTES_MAX, NULL,
     "size of a key"},
    {"value", WB_F_NODE, true, offsetof(struct raw_data, value), 0, 0, NULL,
     "a map such as {size: 1KiB}"},
};
static const struct wb_field value_fields[] = {
    {"size", WB_F_BYTES, true, 0, 1, WB_VALUE_BYTES_MAX, NULL, "bytes of a value, such as 1KiB"},
};
static const struct wb_field workload_fields[] = {
    {"data", WB_F_NODE, true, 0, 0, 0, NULL, "{rows, key, value: {size}}"},
    {"phases", WB_F_NODE, true, sizeof(void *), 0, 0, NULL, "a list of phases"},
};

/* The text of a key is a letter and the key's number. */
static void check_key(const struct raw_data *d, const struct wb_node *n, struct wb_problems *p)
{
    int64_t need = 2;

    for (int64_t last = d->rows - 1; last >= 10; last /= 10)
        need++;
    if (d->rows > 0 && d->key < need)
        wb_problem(p, n, "out-of-range",
                   "key of %lld B is too short for %lld rows, which need %lld B", (long long)d->key,
                   (long long)d->rows, (long long)need);
}

void wb_study_workload(struct wb_study *s, const struct wb_node *workload, struct wb_problems *p)
{
    struct {
        const struct wb_node *data, *phases;
    } raw = {0};
    struct raw_data data = {.key = 16};

    if (!workload)
        return;
    (void)wb_fields_read(workload, "workload", workload_fields, WB_LEN(workload_fields), &raw, p);
    if (raw.data)
        (void)wb_fields_read(raw.data, "data", data_fields, WB_LEN(data_fields), &data, p);
    check_key(&data, wb_node_get(raw.data, "key"), p);
    s->rows = data.rows;
    s->key_bytes = data.key;
    if (data.value)
        (void)wb_fields_read(data.value, "value", value_fields, WB_LEN(value_fields),
                             &s->value_bytes, p);
    read_phases(s, raw.phases, p);
}
