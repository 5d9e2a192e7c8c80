#include "server/study/parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runners/load/job.h"
#include "server/base/clock.h"
#include "server/base/fields.h"

struct raw_phase {
    char *name, *op, *order, *keys, *arrivals;
    int64_t connections, depth, threads, warm_up, length, operations, timeout;
    const struct wb_node *mix, *rate, *tool, *during, *transactions;
};

static const struct wb_field phase_fields[] = {
    {"name", WB_F_NAME, true, offsetof(struct raw_phase, name), 0, 0, NULL, "a name"},
    {"op", WB_F_TEXT, false, offsetof(struct raw_phase, op), 0, 0, NULL, "insert, get or set"},
    {"mix", WB_F_NODE, false, offsetof(struct raw_phase, mix), 0, 0, NULL,
     "shares such as {get: 80%, set: 20%}"},
    {"transactions", WB_F_NODE, false, offsetof(struct raw_phase, transactions), 0, 0, NULL,
     "composite ones such as {login: [get, 10..100*get@derived]}; mix is then of their names"},
    {"order", WB_F_TEXT, false, offsetof(struct raw_phase, order), 0, 0, NULL, "sequential"},
    {"keys", WB_F_TEXT, false, offsetof(struct raw_phase, keys), 0, 0, NULL, "uniform"},
    {"connections", WB_F_INT, false, offsetof(struct raw_phase, connections), 1,
     WB_LOAD_CONNECTIONS_MAX, NULL, "of all load workers together"},
    {"depth", WB_F_INT, false, offsetof(struct raw_phase, depth), 1, WB_LOAD_DEPTH_MAX, NULL,
     "most requests in flight on a connection; at a rate, what is due and must wait for one waits "
     "in the client, and the wait is part of its response time"},
    {"threads", WB_F_INT, false, offsetof(struct raw_phase, threads), 1, WB_LOAD_THREADS_MAX, NULL,
     "threads of the load"},
    {"rate", WB_F_NODE, false, offsetof(struct raw_phase, rate), 0, 0, NULL,
     "max, 20k/s, 60% of calibrated, a list of these, or search"},
    {"arrivals", WB_F_TEXT, false, offsetof(struct raw_phase, arrivals), 0, 0, NULL,
     "poisson or constant"},
    {"warm_up", WB_F_DURATION, false, offsetof(struct raw_phase, warm_up), 0, 3600e9, NULL,
     "time before the measured window"},
    {"for", WB_F_DURATION, false, offsetof(struct raw_phase, length), 100e6, 86400e9, NULL,
     "length of the measured window, such as 60s"},
    {"ops", WB_F_INT, false, offsetof(struct raw_phase, operations), 1, 9e15, NULL,
     "instead of for: measured operations in all"},
    {"tool", WB_F_NODE, false, offsetof(struct raw_phase, tool), 0, 0, NULL,
     "the load program: wb-load, or one that is declared under tools or here"},
    {"during", WB_F_NODE, false, offsetof(struct raw_phase, during), 0, 0, NULL,
     "operations of the recipe in the measured window: [{at: 30s, do: repair, instance: last}]"},
    {"timeout", WB_F_DURATION, false, offsetof(struct raw_phase, timeout), 1e6, 600e9, NULL,
     "age at which an operation counts as failed"},
};

static const char *const ops[] = {"insert", "get", "set", NULL};
static const char *const ops_later[] = {"select", "update", "delete", "read",
                                        "write",  "scan",   "append", NULL};
static const char *const orders[] = {"sequential", NULL};
static const char *const orders_later[] = {"random", NULL};
static const char *const arrival_laws[] = {"poisson", "constant", NULL};

/* One rate: max, 20k/s, 60% of calibrated or search. */
static void read_rate(struct wb_phase *ph, const struct wb_node *n, struct wb_problems *p)
{
    static const char suffix[] = " of calibrated";
    struct wb_err err = WB_ERR_INIT;
    size_t len;
    int rc;

    if (n->kind != WB_NODE_TEXT && n->kind != WB_NODE_NUMBER) {
        wb_problem(p, n, "wrong-type",
                   "rate must be max, a rate such as 20k/s, or such as "
                   "'60%% of calibrated', or search");
        return;
    }
    if (strcmp(n->text, "max") == 0)
        return;
    len = strlen(n->text);
    if (wb_study_search_rate(ph, n->text, &err))
        rc = -err.code;
    else if (len >= sizeof suffix && strcmp(n->text + len - (sizeof suffix - 1), suffix) == 0) {
        WB_AUTO_FREE char *share = wb_strndup(n->text, len - (sizeof suffix - 1));

        ph->pace = WB_PACE_CALIBRATED;
        rc = wb_parse_percent(share, 1, 200, &ph->calibrated_percent, &err);
    } else {
        ph->pace = WB_PACE_RATE;
        rc = wb_parse_rate(n->text, &ph->rate_per_s, &err);
    }
    if (rc < 0)
        wb_problem(p, n, "bad-value",
                   "rate is max, a rate such as 20k/s, or such as '60%% of calibrated', or search "
                   "(from a rate): %s",
                   err.root);
}

/* What a step of this rate is called: "10k", "2500", "60pct". No dot, it ends the name of a phase
 * in the names of metrics; a rate with a fraction has its digits joined by '_'. */
static char *step_name(const char *whole, const struct wb_phase *ph)
{
    double v = ph->rate_per_s;
    WB_AUTO_FREE char *text = NULL;
    char *dot;

    if (ph->pace == WB_PACE_CALIBRATED)
        text = wb_number_text(ph->calibrated_percent);
    else if (v >= 1000 && fmod(v, 1000) == 0)
        text = wb_number_text(v / 1000);
    else
        text = wb_number_text(v);
    for (char *c = text; *c; c++) {
        if (*c == '+')
            *c = 'p';
    }
    dot = strchr(text, '.');
    if (dot)
        *dot = '_';
    return wb_strf("%s@%s%s", whole, text,
                   ph->pace == WB_PACE_CALIBRATED    ? "pct"
                   : v >= 1000 && fmod(v, 1000) == 0 ? "k"
                                                     : "");
}

/* Adds a copy of the phase without its rate and name. */
static struct wb_phase *add_step(struct wb_setup *s, const struct wb_phase *whole)
{
    struct wb_phase *ph;

    wb_grow(&s->phases, &s->phases_cap, s->nphases + 1, sizeof *s->phases);
    ph = &s->phases[s->nphases];
    *ph = *whole;
    ph->pace = WB_PACE_MAX;
    ph->steps_of = wb_strdup(whole->name);
    ph->name = NULL;
    ph->keys = wb_strdup(whole->keys);
    ph->arrivals = wb_strdup(whole->arrivals);
    ph->transactions = wb_strdup(whole->transactions);
    ph->txn_mix = wb_strdup(whole->txn_mix);
    return ph;
}

/* The step that looks for the highest rate, from the lowest of the list on. */
static void add_search(struct wb_setup *s, const struct wb_phase *whole, size_t first)
{
    struct wb_phase *ph = add_step(s, whole);

    ph->pace = WB_PACE_SEARCH;
    ph->name = whole->name ? wb_strf("%s@slo", whole->name) : NULL;
    for (size_t i = first; i < s->nphases; i++) {
        double rate = s->phases[i].rate_per_s;

        if (rate > 0 && (ph->rate_per_s == 0 || rate < ph->rate_per_s))
            ph->rate_per_s = rate;
    }
    s->nphases++;
}

/* A list of rates: the phase becomes one step for each, in their order. */
static void read_steps(struct wb_setup *s, const struct wb_node *list, struct wb_problems *p)
{
    struct wb_phase whole = s->phases[--s->nphases];
    size_t first = s->nphases;

    if (list->n == 0)
        wb_problem(p, list, "wrong-type", "a list of rates has at least one");
    for (size_t i = 0; i < list->n; i++) {
        size_t before = p->n + p->dropped;
        struct wb_phase *ph = add_step(s, &whole);

        read_rate(ph, list->items[i], p);
        if (ph->pace == WB_PACE_SEARCH || (ph->pace == WB_PACE_MAX && list->items[i]->text &&
                                           strcmp(list->items[i]->text, "max") == 0))
            wb_problem(p, list->items[i], "contradiction",
                       "%s is no step of a list of rates: write a phase of its own for it",
                       list->items[i]->text);
        ph->name = whole.name ? step_name(whole.name, ph) : NULL;
        for (size_t k = 0; ph->name && p->n + p->dropped == before && k < s->nphases; k++) {
            if (s->phases[k].name && strcmp(s->phases[k].name, ph->name) == 0)
                wb_problem(p, list->items[i], "duplicate", "the rate %s is in the list twice",
                           list->items[i]->text);
        }
        s->nphases++;
    }
    if (s->slo.search)
        add_search(s, &whole, first);
    free(whole.name);
    free(whole.keys);
    free(whole.arrivals);
    free(whole.transactions);
    free(whole.txn_mix);
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
    static const char *const measured_only[] = {"mix",      "transactions", "keys", "rate",
                                                "arrivals", "warm_up",      "for",  "ops",
                                                "tool",     "during",       NULL};

    ph->load_only = true;
    if (!raw->order)
        wb_problem_key(p, n, "order", "missing",
                       "op insert is the data load and needs order: sequential");
    else
        (void)wb_word_now(wb_node_get(n, "order"), "order", raw->order, orders, orders_later, p);
    refuse_keys(n, measured_only, "in the data load (op: insert)", p);
}

/* What runners/load/laws.h says of keys. */
static void read_keys(const struct wb_phase *ph, const struct wb_node *n,
                      const struct raw_phase *raw, struct wb_problems *p)
{
    const struct wb_node *at = wb_node_get(n, "keys");
    WB_AUTO_FREE char *name = raw->keys ? wb_strndup(raw->keys, strcspn(raw->keys, ":")) : NULL;
    struct wb_key_law law;
    struct wb_err err = WB_ERR_INIT;
    char text[2 * WB_ERR_TEXT_MAX];

    if (!name || wb_word_now(at, "keys", name, wb_key_law_names(), NULL, p) < 0)
        return;
    if (wb_key_law_parse(raw->keys, &law, &err) < 0)
        wb_problem(p, at, "bad-value", "%s", wb_err_text(&err, text, sizeof(text)));
    else if (law.choice == WB_LOAD_ABSENT && ph->writes)
        wb_problem(p, at, "contradiction",
                   "keys: absent is for gets alone: a set would make the key, and then it is "
                   "there");
}

/* What is done: op, mix or transactions. */
static void read_operations(struct wb_phase *ph, const struct wb_node *n,
                            const struct raw_phase *raw, const char *protocol,
                            struct wb_problems *p)
{
    ph->get_percent = raw->op && strcmp(raw->op, "get") == 0 ? 100 : 0;
    if (raw->mix && !raw->transactions)
        wb_study_mix(ph, raw->mix, p);
    if (raw->transactions && raw->op)
        wb_problem(p, raw->transactions, "contradiction",
                   "a phase has op or transactions, not both");
    if (raw->mix && raw->op)
        wb_problem(p, raw->mix, "contradiction", "a phase has op or mix, not both");
    if (!raw->mix && !raw->transactions && !wb_node_get(n, "op"))
        wb_problem_key(p, n, "op", "missing",
                       "phase needs op (insert, get or set), mix or transactions");
    if (raw->transactions) {
        wb_study_txns(ph, raw->transactions, raw->mix, protocol, p);
        return;
    }
    ph->reads = ph->get_percent > 0;
    ph->writes = ph->get_percent < 100;
}

static void read_measured(struct wb_phase *ph, const struct wb_node *n, const struct raw_phase *raw,
                          const char *protocol, struct wb_problems *p)
{
    static const char *const load_only[] = {"order", NULL}, *const open_only[] = {"arrivals", NULL};

    read_operations(ph, n, raw, protocol, p);
    read_keys(ph, n, raw, p);
    if (raw->rate && raw->rate->kind == WB_NODE_LIST)
        ph->pace = WB_PACE_RATE; /* what holds for one rate holds for a list of them */
    else if (raw->rate)
        read_rate(ph, raw->rate, p);
    if (raw->arrivals)
        (void)wb_word_now(wb_node_get(n, "arrivals"), "arrivals", raw->arrivals, arrival_laws, NULL,
                          p);
    if (!wb_node_get(n, "for") && !wb_node_get(n, "ops"))
        wb_problem_key(p, n, "for", "missing",
                       "phase needs for: length of the measured window, such as 60s");
    else if (wb_node_get(n, "for") && wb_node_get(n, "ops"))
        wb_problem(p, wb_node_get(n, "ops"), "contradiction",
                   "a phase is as long as for says, or as its ops take: not both");
    if (ph->pace == WB_PACE_SEARCH && wb_node_get(n, "ops"))
        wb_problem(p, wb_node_get(n, "ops"), "contradiction",
                   "a search holds each rate for a time: give for instead of ops");
    refuse_keys(n, load_only, "in a measured phase", p);
    if (ph->pace == WB_PACE_MAX && (!raw->rate || raw->rate->text))
        refuse_keys(n, open_only, "at rate: max, where every answer brings the next request", p);
}

static void check_name(const struct wb_setup *s, const struct wb_node *n, const char *name,
                       struct wb_problems *p)
{
    if (!name)
        return;
    if (strchr(name, '.'))
        wb_problem(p, wb_node_get(n, "name"), "bad-name",
                   "the name of a phase has no dot: it starts the names of its metrics");
    for (size_t i = 0; i < s->nphases; i++) {
        const char *other = s->phases[i].steps_of ? s->phases[i].steps_of : s->phases[i].name;

        if (!other || strcmp(other, name) != 0)
            continue;
        wb_problem(p, wb_node_get(n, "name"), "duplicate", "there are two phases named '%s'", name);
        return;
    }
}

void wb_study_phase(struct wb_setup *s, const struct wb_node *n, struct wb_problems *p)
{
    struct raw_phase raw = {
        .connections = 1, .threads = 1, .warm_up = WB_SEC, .timeout = 5 * WB_SEC};
    struct wb_phase *ph;

    (void)wb_fields_read(n, "phase", phase_fields, WB_LEN(phase_fields), &raw, p);
    check_name(s, n, raw.name, p);
    wb_grow(&s->phases, &s->phases_cap, s->nphases + 1, sizeof *s->phases);
    ph = &s->phases[s->nphases++];
    *ph = (struct wb_phase){.name = raw.name,
                            .connections = raw.connections,
                            .depth = raw.depth,
                            .threads = raw.threads,
                            .operations = raw.operations,
                            .timeout_ns = raw.timeout};
    if (n->kind == WB_NODE_MAP &&
        (!raw.op || wb_word_now(wb_node_get(n, "op"), "op", raw.op, ops, ops_later, p) >= 0)) {
        if (raw.op && strcmp(raw.op, "insert") == 0)
            read_load(ph, n, &raw, p);
        else
            read_measured(ph, n, &raw, s->protocol, p);
    }
    if (ph->depth == 0 && ph->pace == WB_PACE_MAX)
        ph->depth = 1;
    if (raw.threads > raw.connections)
        wb_problem(p, wb_node_get(n, "threads"), "out-of-range",
                   "%lld threads cannot share %lld connection%s", (long long)raw.threads,
                   (long long)raw.connections, raw.connections == 1 ? "" : "s");
    if (!ph->load_only) {
        ph->keys = raw.keys ? WB_STEAL(raw.keys) : wb_strdup("uniform");
        ph->warm_up_ns = wb_node_get(n, "warm_up") || !raw.tool ? raw.warm_up : 0;
        ph->for_ns = raw.length;
        wb_study_phase_tool(s, n, raw.tool, ph, p);
    }
    if (ph->pace != WB_PACE_MAX)
        ph->arrivals = raw.arrivals ? WB_STEAL(raw.arrivals) : wb_strdup("poisson");
    if (!ph->load_only && raw.rate && raw.rate->kind == WB_NODE_LIST)
        read_steps(s, raw.rate, p);
    free(raw.op);
    free(raw.order);
    free(raw.keys);
    free(raw.arrivals);
}

wb_json *wb_phase_schema(void)
{
    wb_json *map = wb_schema_map(phase_fields, WB_LEN(phase_fields));
    static const char *const words[] = {"max", NULL};
    wb_json *rate = wb_schema_either(wb_schema_unit(WB_UNIT_RATE, 0, 0),
                                     wb_schema_pattern("^[0-9.]+%? of calibrated$"));
    wb_json *search = wb_schema_pattern("^search( from .+)?$");
    struct wb_buf laws = WB_BUF_INIT(1024);

    for (const char *const *k = wb_key_law_names(); *k; k++)
        wb_buf_addf(&laws, "%s%s", laws.len ? "|" : "^(", *k);
    wb_buf_adds(&laws, ")(:.+)?$");
    wb_schema_set(map, "op", wb_schema_words(ops));
    wb_schema_set(map, "order", wb_schema_words(orders));
    wb_schema_set(map, "keys", wb_schema_pattern(wb_buf_str(&laws)));
    wb_schema_set(map, "arrivals", wb_schema_words(arrival_laws));
    wb_schema_set(map, "mix", wb_schema_any_key(wb_schema_unit(WB_UNIT_PERCENT, 0, 100)));
    wb_schema_set(map, "transactions", wb_txns_schema());
    wb_schema_set(
        map, "rate",
        wb_schema_either(
            wb_schema_either(wb_schema_either(wb_schema_words(words), search), wb_json_ref(rate)),
            wb_schema_list(rate, 1, 1000)));
    wb_schema_set(map, "during", wb_during_schema());
    wb_schema_set(map, "tool",
                  wb_schema_either(wb_schema_pattern("^[a-z0-9]"), wb_schema_ref("tool")));
    wb_buf_release(&laws);
    return map;
}
