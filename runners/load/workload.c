#include "runners/load/workload.h"

#include <string.h>

#include "server/base/mem.h"
#include "server/base/node.h"
#include "server/base/units.h"

#define TEXT_MAX_BYTES 65536

/* Keys of a phase that are flags by another name. */
static const struct {
    const char *key, *flag;
} same[] = {
    {"keys", "--key-choice"},   {"connections", "--connections"},
    {"depth", "--depth"},       {"threads", "--threads"},
    {"arrivals", "--arrivals"}, {"warm_up", "--warm-up"},
    {"for", "--for"},           {"ops", "--ops"},
    {"timeout", "--timeout"},
};

static int bad(const struct wb_node *n, struct wb_err *err, const char *why)
{
    return wb_fail(err, WB_INVALID, "line %d: %s %s", n->line, n->key ? n->key : "workload", why);
}

static int set(struct wb_load_job *job, const struct wb_node *n, const char *flag, const char *text,
               struct wb_err *err)
{
    int rc = wb_load_job_flag(job, flag, text, err);

    return rc < 0 ? wb_wrap(err, "line %d: %s", n->line, n->key) : 0;
}

static bool is_scalar(const struct wb_node *n)
{
    return n->kind == WB_NODE_TEXT || n->kind == WB_NODE_NUMBER;
}

static int apply_value(struct wb_load_job *job, const struct wb_node *value, struct wb_err *err)
{
    const struct wb_node *size = wb_node_get(value, "size"), *content = NULL;
    WB_AUTO_FREE char *text = NULL;

    if (value->kind != WB_NODE_MAP || !size || !is_scalar(size))
        return bad(value, err, "must be a map with size, such as {size: 1KiB}");
    for (size_t i = 0; i < value->n; i++) {
        const struct wb_node *n = value->items[i];
        if (strcmp(n->key, "content") == 0 && is_scalar(n))
            content = n;
        else if (n != size)
            return bad(n, err, "is no key of value (it has: size, content)");
    }
    text = content ? wb_strf("%s:%s", size->text, content->text) : wb_strdup(size->text);
    return set(job, size, "--value", text, err);
}

static int apply_data(struct wb_load_job *job, const struct wb_node *data, struct wb_err *err)
{
    if (data->kind != WB_NODE_MAP)
        return bad(data, err, "must be a map such as {rows: 100k, value: {size: 1KiB}}");
    for (size_t i = 0; i < data->n; i++) {
        const struct wb_node *n = data->items[i];
        int64_t bytes = 0;
        int rc;
        if (strcmp(n->key, "value") == 0) {
            rc = apply_value(job, n, err);
        } else if (strcmp(n->key, "rows") == 0 && is_scalar(n)) {
            rc = set(job, n, "--keys", n->text, err);
        } else if (strcmp(n->key, "key") == 0 && is_scalar(n)) {
            WB_AUTO_FREE char *text = NULL;
            rc = wb_parse_bytes(n->text, 1, 1 << 20, &bytes, err);
            if (rc < 0)
                return wb_wrap(err, "line %d: key", n->line);
            text = wb_strf("%lld", (long long)bytes);
            rc = set(job, n, "--key-bytes", text, err);
        } else {
            return bad(n, err, "is no key of data that wb-load knows (rows, key, value)");
        }
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Texts of a list, with something between them. */
static int join(const struct wb_node *list, const char *between, struct wb_buf *out,
                struct wb_err *err)
{
    if (list->kind != WB_NODE_LIST || list->n == 0)
        return bad(list, err, "must be a list");
    for (size_t i = 0; i < list->n; i++) {
        if (!is_scalar(list->items[i]))
            return bad(list, err, "must be a list of texts");
        wb_buf_addf(out, "%s%s", i ? between : "", list->items[i]->text);
    }
    return wb_buf_check(out, list->key, err);
}

/* "search", "search from 50k/s": with the study's slo. */
static int apply_search(struct wb_load_job *job, const struct wb_node *rate,
                        const struct wb_node *slo, struct wb_err *err)
{
    const struct wb_node *limit = NULL;
    WB_AUTO_FREE char *text = NULL;
    int rc;

    for (size_t i = 0; slo && slo->kind == WB_NODE_MAP && i < slo->n; i++)
        if (strcmp(slo->items[i]->key, "search") != 0)
            limit = slo->items[i];
    if (!limit || !is_scalar(limit))
        return bad(rate, err, "search needs slo: {p99: 5ms} in the same file");
    text = wb_strf("%s<%s", limit->key, limit->text);
    rc = set(job, limit, "--search", text, err);
    if (rc == 0 && strncmp(rate->text, "search from ", 12) == 0)
        rc = set(job, rate, "--rate", rate->text + 12, err);
    return rc;
}

static int apply_rate(struct wb_load_job *job, const struct wb_node *rate,
                      const struct wb_node *slo, struct wb_err *err)
{
    struct wb_buf list = WB_BUF_INIT(TEXT_MAX_BYTES);
    int rc;

    if (is_scalar(rate) && strncmp(rate->text, "search", 6) == 0)
        return apply_search(job, rate, slo, err);
    if (is_scalar(rate)) {
        if (strstr(rate->text, "of calibrated"))
            return bad(rate, err, "of calibrated is known to a campaign only: give a rate");
        return strcmp(rate->text, "max") == 0 ? 0 : set(job, rate, "--rate", rate->text, err);
    }
    rc = join(rate, ",", &list, err);
    if (rc == 0)
        rc = set(job, rate, "--sweep", wb_buf_str(&list), err);
    wb_buf_release(&list);
    return rc;
}

/* {get: 80%, set: 20%} */
static int apply_mix(struct wb_load_job *job, const struct wb_node *mix, struct wb_err *err)
{
    struct wb_buf text = WB_BUF_INIT(TEXT_MAX_BYTES);
    int rc = 0;

    if (mix->kind != WB_NODE_MAP || mix->n == 0)
        return bad(mix, err, "must be a map such as {get: 80%, set: 20%}");
    for (size_t i = 0; i < mix->n && rc == 0; i++) {
        if (!is_scalar(mix->items[i]))
            rc = bad(mix->items[i], err, "must be a share such as 20%");
        else
            wb_buf_addf(&text, "%s%s=%s", i ? "," : "", mix->items[i]->key, mix->items[i]->text);
    }
    if (rc == 0)
        rc = wb_buf_check(&text, "mix", err);
    if (rc == 0)
        rc = set(job, mix, "--mix", wb_buf_str(&text), err);
    wb_buf_release(&text);
    return rc;
}

/* {login: [get, 10..100*get@derived]} */
static int apply_transactions(struct wb_load_job *job, const struct wb_node *map,
                              struct wb_err *err)
{
    struct wb_buf text = WB_BUF_INIT(TEXT_MAX_BYTES);
    int rc = wb_txn_join(map, &text, err);

    if (rc < 0)
        rc = wb_wrap(err, "line %d", map->line);
    else
        rc = set(job, map, "--transactions", wb_buf_str(&text), err);
    wb_buf_release(&text);
    return rc;
}

static int apply_key(struct wb_load_job *job, const struct wb_node *n, const struct wb_node *slo,
                     struct wb_err *err)
{
    WB_AUTO_FREE char *mix = NULL;

    if (strcmp(n->key, "name") == 0)
        return 0;
    if (strcmp(n->key, "rate") == 0)
        return apply_rate(job, n, slo, err);
    if (strcmp(n->key, "mix") == 0)
        return apply_mix(job, n, err);
    if (strcmp(n->key, "transactions") == 0)
        return apply_transactions(job, n, err);
    if (!is_scalar(n))
        return bad(n, err, "must be a text");
    if (strcmp(n->key, "op") == 0) {
        mix = wb_strf("%s=100", n->text);
        return set(job, n, "--mix", mix, err);
    }
    for (size_t i = 0; i < WB_LEN(same); i++)
        if (strcmp(same[i].key, n->key) == 0)
            return set(job, n, same[i].flag, n->text, err);
    return bad(n, err, "is no key of a phase that wb-load knows");
}

/* The data load of a study: its keys are --load here. */
static bool is_load(const struct wb_node *phase)
{
    const struct wb_node *op = wb_node_get(phase, "op");

    return op && op->text && strcmp(op->text, "insert") == 0 && wb_node_get(phase, "order");
}

static int find_phase(const struct wb_node *phases, const char *name, const struct wb_node **out,
                      struct wb_err *err)
{
    struct wb_buf names = WB_BUF_INIT(TEXT_MAX_BYTES);
    const struct wb_node *found = NULL;
    int n = 0, rc = 0;

    if (phases->kind != WB_NODE_LIST)
        return bad(phases, err, "must be a list");
    for (size_t i = 0; i < phases->n; i++) {
        const struct wb_node *p = phases->items[i], *id = wb_node_get(p, "name");
        if (p->kind != WB_NODE_MAP || !id || !id->text)
            rc = bad(phases, err, "must be a list of maps with names");
        if (rc < 0 || is_load(p))
            continue;
        wb_buf_addf(&names, "%s%s", n ? ", " : "", id->text);
        if (!name || strcmp(name, id->text) == 0)
            found = p;
        n++;
    }
    if (rc == 0 && name && !found)
        rc = wb_fail(err, WB_INVALID, "the workload has no phase '%s' (it has: %s)", name,
                     wb_buf_str(&names));
    else if (rc == 0 && !name && n != 1)
        rc = wb_fail(err, WB_INVALID,
                     "the workload has %d phases that measure: choose with --phase%s%s", n,
                     n ? " from: " : "", wb_buf_str(&names));
    wb_buf_release(&names);
    if (rc == 0)
        *out = found;
    return rc;
}

int wb_workload_apply(struct wb_load_job *job, const struct wb_node *root, const char *phase,
                      struct wb_err *err)
{
    const struct wb_node *w = wb_node_get(root, "workload"), *data, *phases, *p = NULL;
    int rc = 0;

    w = w ? w : root;
    data = wb_node_get(w, "data");
    phases = wb_node_get(w, "phases");
    if (w->kind != WB_NODE_MAP || !phases)
        return bad(w, err, "needs phases: a list of them");
    for (size_t i = 0; i < w->n; i++)
        if (w->items[i] != data && w->items[i] != phases)
            return bad(w->items[i], err, "is no key of a workload (it has: data, phases)");
    if (data)
        rc = apply_data(job, data, err);
    if (rc == 0)
        rc = find_phase(phases, phase, &p, err);
    for (size_t i = 0; rc == 0 && i < p->n; i++)
        rc = apply_key(job, p->items[i], wb_node_get(root, "slo"), err);
    return rc;
}

int wb_workload_read(struct wb_load_job *job, const char *path, const char *phase,
                     struct wb_err *err)
{
    struct wb_node *root = NULL;
    int rc = wb_yaml_read_file(path, &root, err);

    if (rc == 0)
        rc = wb_workload_apply(job, root, phase, err);
    wb_node_free(root);
    return rc < 0 ? wb_wrap(err, "%s", path) : 0;
}
