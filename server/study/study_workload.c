#include "server/study/parts.h"

#include <stdlib.h>
#include <string.h>

#include "runners/load/keys.h"
#include "runners/load/values.h"
#include "server/base/fields.h"

#define PHASES_MAX 32
#define ROWS_MAX 0x1p48

/* Rules over all phases: data is loaded first and once, and something is measured. */
static void check_phases(const struct wb_setup *s, const struct wb_node *list,
                         struct wb_problems *p)
{
    size_t loads = 0, measured = 0;
    bool reads = false;

    for (size_t i = 1; i < list->n; i++) {
        const struct wb_node *op = wb_node_get(list->items[i], "op");

        if (op && op->text && strcmp(op->text, "insert") == 0)
            wb_problem(p, list->items[i], "contradiction",
                       "the data load must be the first phase, and the only one with op: insert");
    }
    for (size_t i = 0; i < s->nphases; i++) {
        const struct wb_phase *ph = &s->phases[i];

        loads += ph->load_only;
        measured += !ph->load_only;
        reads = reads || ph->reads;
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

static void read_phases(struct wb_setup *s, const struct wb_node *list, struct wb_problems *p)
{
    size_t before = p->n + p->dropped;

    if (!list)
        return;
    if (list->kind != WB_NODE_LIST || list->n == 0 || list->n > PHASES_MAX) {
        wb_problem(p, list, "wrong-type", "phases must be a list of 1 to %d phases", PHASES_MAX);
        return;
    }
    for (size_t i = 0; i < list->n; i++)
        wb_study_phase(s, list->items[i], p);
    if (p->n + p->dropped == before)
        check_phases(s, list, p);
}

struct raw_data {
    int64_t rows, key;
    const struct wb_node *value;
    char *size;
};
static const struct wb_field data_fields[] = {
    {"rows", WB_F_INT, false, offsetof(struct raw_data, rows), 1, ROWS_MAX, NULL,
     "such as 1_000_000"},
    {"size", WB_F_TEXT, false, offsetof(struct raw_data, size), 0, 0, NULL,
     "instead of rows: keys and values together, such as 2GiB or 50% of memory"},
    {"key", WB_F_BYTES, false, offsetof(struct raw_data, key), 2, WB_KEY_BYTES_MAX, NULL,
     "size of a key"},
    {"value", WB_F_NODE, true, offsetof(struct raw_data, value), 0, 0, NULL,
     "a map such as {size: 1KiB}"},
};
struct raw_value {
    const struct wb_node *size;
    char *content;
};
static const struct wb_field value_fields[] = {
    {"size", WB_F_NODE, true, offsetof(struct raw_value, size), 0, 0, NULL,
     "bytes of a value, such as 1KiB; 100B..4KiB, 1KiB~200B and 100B=70,4KiB=30 are laws of it"},
    {"content", WB_F_TEXT, false, offsetof(struct raw_value, content), 0, 0, NULL,
     "random, letters, zeros, or the share that compresses away, such as 60%"},
};

static double mean_of(const struct wb_size_law *law)
{
    double sum = 0, weights = 0;

    if (law->kind == WB_SIZE_GAUSSIAN)
        return law->mean;
    if (law->kind == WB_SIZE_UNIFORM)
        return ((double)law->least + (double)law->most) / 2;
    if (law->kind == WB_SIZE_FIXED)
        return (double)law->most;
    for (int i = 0; i < law->n; i++) {
        sum += (double)law->part[i] * law->weight[i];
        weights += law->weight[i];
    }
    return sum / weights;
}

static void check_content(const struct wb_node *n, const char *text, struct wb_problems *p)
{
    static const char *const words[] = {"random", "letters", "zeros", NULL};
    struct wb_err err = WB_ERR_INIT;
    double share;

    if (text[0] < '0' || text[0] > '9')
        (void)wb_word_now(n, "content", text, words, NULL, p);
    else if (wb_parse_percent(text, 0, 100, &share, &err) < 0)
        wb_problem(p, n, "bad-value", "content is a word or a share such as 60%%: %s", err.root);
}

/* A number of bytes, or a law. */
static void read_value_size(struct wb_setup *s, const struct wb_node *n, struct wb_problems *p)
{
    struct wb_size_law law;
    struct wb_err err = WB_ERR_INIT;
    int rc;

    if (n->kind != WB_NODE_TEXT && n->kind != WB_NODE_NUMBER) {
        wb_problem(p, n, "wrong-type", "size must be a size such as 1KiB, or a law of sizes");
        return;
    }
    rc = wb_size_law_parse(n->text, &law, &err);
    if (rc == 0 && law.most < 1)
        rc = wb_fail(&err, WB_INVALID, "a value has at least 1 byte");
    if (rc < 0) {
        wb_problem(p, n, "bad-value", "size: %s", err.root);
        return;
    }
    s->value_bytes = (int64_t)(mean_of(&law) + 0.5);
    if (law.kind != WB_SIZE_FIXED)
        s->value_size = wb_strdup(n->text);
}

static void read_value(struct wb_setup *s, const struct wb_node *n, struct wb_problems *p)
{
    struct raw_value raw = {0};

    (void)wb_fields_read(n, "value", value_fields, WB_LEN(value_fields), &raw, p);
    if (raw.size)
        read_value_size(s, raw.size, p);
    if (raw.content)
        check_content(wb_node_get(n, "content"), raw.content, p);
    s->value_content = raw.content;
}
static const struct wb_field workload_fields[] = {
    {"data", WB_F_NODE, true, 0, 0, 0, NULL, "{rows, key, value: {size}}"},
    {"phases", WB_F_NODE, true, sizeof(void *), 0, 0, NULL, "a list of phases"},
};

/* "2GiB", or "50% of memory": of what native x1 gets, so that all arms have the same data. */
static int parse_size(const struct wb_setup *s, const char *text, int64_t *bytes,
                      struct wb_err *err)
{
    static const char suffix[] = " of memory";
    size_t n = strlen(text), m = sizeof suffix - 1;
    double percent = 0;
    int rc;

    if (n <= m || strcmp(text + n - m, suffix) != 0)
        return wb_parse_bytes(text, 1, INT64_MAX, bytes, err);
    WB_AUTO_FREE char *share = wb_strndup(text, n - m);

    rc = wb_parse_percent(share, 0.001, 10000, &percent, err);
    if (rc == 0)
        *bytes = (int64_t)((double)s->memory_bytes * (percent / 100));
    return rc;
}

/* rows, or the rows that a size has room for. */
static void count_rows(struct wb_setup *s, const struct wb_node *n, const struct raw_data *d,
                       struct wb_problems *p)
{
    struct wb_err err = WB_ERR_INIT;
    int64_t bytes = 0, row = s->key_bytes + s->value_bytes;

    s->rows = d->rows;
    if (d->rows > 0 && d->size)
        wb_problem(p, wb_node_get(n, "size"), "contradiction", "data has rows or size, not both");
    else if (!wb_node_get(n, "rows") && !wb_node_get(n, "size"))
        wb_problem_key(p, n, "rows", "missing", "data needs rows, such as 1_000_000, or size");
    if (!d->size || d->rows > 0)
        return;
    if (parse_size(s, d->size, &bytes, &err) < 0)
        wb_problem(p, wb_node_get(n, "size"), "bad-value",
                   "size is such as 2GiB or 50%% of memory: %s", err.root);
    else if (s->value_bytes > 0 && (bytes < row || bytes / row > (int64_t)ROWS_MAX))
        wb_problem(p, wb_node_get(n, "size"), "out-of-range",
                   "size of %lld B makes %lld rows of %lld B; 1 to %lld are allowed",
                   (long long)bytes, (long long)(bytes / row), (long long)row, (long long)ROWS_MAX);
    else if (s->value_bytes > 0)
        s->rows = bytes / row;
}

/* The text of a key is a letter and the key's number. Keys that are never loaded have the numbers
 * behind those that are. */
static void check_key(const struct wb_setup *s, const struct wb_node *n, struct wb_problems *p)
{
    int64_t need = 2, keys = s->rows;

    for (size_t i = 0; i < s->nphases; i++) {
        if (s->phases[i].keys && strncmp(s->phases[i].keys, "absent", 6) == 0)
            keys = 2 * s->rows;
    }
    for (int64_t last = keys - 1; last >= 10; last /= 10)
        need++;
    if (s->rows > 0 && s->key_bytes < need)
        wb_problem(p, n, "out-of-range",
                   "key of %lld B is too short for %lld %s, which need %lld B",
                   (long long)s->key_bytes, (long long)keys,
                   keys > s->rows ? "keys, half of them absent" : "rows", (long long)need);
}

void wb_study_workload(struct wb_setup *s, const struct wb_node *workload,
                       const struct wb_node *slo, struct wb_problems *p)
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
    s->key_bytes = data.key;
    if (data.value)
        read_value(s, data.value, p);
    if (raw.data && raw.data->kind == WB_NODE_MAP)
        count_rows(s, raw.data, &data, p);
    read_phases(s, raw.phases, p);
    wb_study_slo_check(s, slo, raw.phases, p);
    check_key(s, wb_node_get(raw.data, "key"), p);
    free(data.size);
}

wb_json *wb_workload_schema(void)
{
    wb_json *map = wb_schema_map(workload_fields, WB_LEN(workload_fields));
    wb_json *data = wb_schema_map(data_fields, WB_LEN(data_fields));
    wb_json *value = wb_schema_map(value_fields, WB_LEN(value_fields));

    wb_schema_set(value, "size", wb_schema_scalar());
    wb_schema_set(data, "value", value);
    wb_schema_set(map, "data", data);
    wb_schema_set(map, "phases", wb_schema_list(wb_phase_schema(), 1, PHASES_MAX));
    return map;
}
