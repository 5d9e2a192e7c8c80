/* Composite transactions of a phase, and what is mixed in it. */
#include <stdlib.h>
#include <string.h>

#include "runners/load/protocol.h"
#include "runners/load/transactions.h"
#include "server/base/fields.h"
#include "server/study/parts.h"

static const char *const mixed[] = {"get", "set", NULL};
static const char *const mixed_later[] = {"select", "update", "delete", "read",
                                          "write",  "scan",   "append", NULL};

/* Shares that make 100 %; each name is one of `names`. The shares as "get=80,set=20" in out. */
static void read_shares(const struct wb_node *mix, const char *const *names,
                        const char *const *later, const char *what, struct wb_buf *out,
                        struct wb_problems *p)
{
    double sum = 0;
    bool bad = false;

    for (size_t i = 0; i < mix->n; i++) {
        const struct wb_node *n = mix->items[i];
        struct wb_err err = WB_ERR_INIT;
        double share = 0;

        if (wb_word_now(n, what, n->key, names, later, p) < 0)
            bad = true;
        else if (!n->text || wb_parse_percent(n->text, 0, 100, &share, &err) < 0) {
            wb_problem(p, n, "bad-value", "%s must be a share such as 20%%", n->key);
            bad = true;
        }
        sum += share;
        wb_buf_addf(out, "%s%s=%.17g", i ? "," : "", n->key, share);
    }
    if (!bad && (sum < 100 - 1e-6 || sum > 100 + 1e-6)) {
        WB_AUTO_FREE char *got = wb_number_text(sum);

        wb_problem(p, mix, "bad-value", "the shares of mix make %s%%, not 100%%", got);
    }
}

static bool is_mix(const struct wb_node *mix, struct wb_problems *p)
{
    if (mix->kind == WB_NODE_MAP && mix->n > 0)
        return true;
    wb_problem(p, mix, "wrong-type", "mix must be a map such as {get: 80%%, set: 20%%}");
    return false;
}

void wb_study_mix(struct wb_phase *ph, const struct wb_node *mix, struct wb_problems *p)
{
    struct wb_buf text = WB_BUF_INIT(4096);
    const struct wb_node *get = mix->kind == WB_NODE_MAP ? wb_node_get(mix, "get") : NULL;

    if (is_mix(mix, p))
        read_shares(mix, mixed, mixed_later, "an operation of mix", &text, p);
    if (get && get->text && wb_parse_percent(get->text, 0, 100, &ph->get_percent, NULL) < 0)
        ph->get_percent = 0; /* told already */
    wb_buf_release(&text);
}

static bool reads(const char *op)
{
    return strcmp(op, "get") == 0 || strcmp(op, "select") == 0 || strcmp(op, "mg") == 0;
}

/* Every step is an operation of the recipe's protocol. */
static void check_steps(struct wb_phase *ph, const struct wb_txn_kind *kind, int n,
                        const char *protocol, const struct wb_node *at, struct wb_problems *p)
{
    const char *const *ops = protocol ? wb_protocol_ops(protocol) : NULL;
    const char *names[WB_LOAD_OPS_MAX + 3] = {"get", "set"};
    size_t known = 2;

    for (; ops && *ops && known < WB_LEN(names) - 1; ops++)
        if (strcmp(*ops, "get") != 0 && strcmp(*ops, "set") != 0)
            names[known++] = *ops;
    for (int k = 0; k < n; k++) {
        for (int i = 0; i < kind[k].nsteps; i++) {
            const char *op = kind[k].step[i].op;

            ph->reads |= reads(op);
            ph->writes |= !reads(op);
            if (protocol)
                (void)wb_word_now(at, "a step of transactions", op, names, NULL, p);
        }
    }
}

static void mix_of(struct wb_phase *ph, const struct wb_txn_kind *kind, int n,
                   const struct wb_node *mix, struct wb_problems *p)
{
    const char *names[WB_TXN_KINDS_MAX + 1] = {0};
    struct wb_buf text = WB_BUF_INIT(4096);

    for (int k = 0; k < n; k++)
        names[k] = kind[k].name;
    if (is_mix(mix, p))
        read_shares(mix, names, NULL, "a transaction of mix", &text, p);
    ph->txn_mix = wb_buf_take(&text);
}

void wb_study_txns(struct wb_phase *ph, const struct wb_node *txns, const struct wb_node *mix,
                   const char *protocol, struct wb_problems *p)
{
    struct wb_buf text = WB_BUF_INIT(65536);
    struct wb_txn_kind kind[WB_TXN_KINDS_MAX];
    struct wb_err err = WB_ERR_INIT;
    char words[2 * WB_ERR_TEXT_MAX];
    int n = 0, rc = wb_txn_join(txns, &text, &err);

    if (rc == 0)
        rc = wb_txn_parse(wb_buf_str(&text), kind, &n, &err);
    if (rc < 0) {
        wb_problem(p, txns, "bad-value", "%s", wb_err_text(&err, words, sizeof(words)));
    } else {
        check_steps(ph, kind, n, protocol, txns, p);
        if (mix)
            mix_of(ph, kind, n, mix, p);
    }
    ph->transactions = wb_buf_take(&text);
}

wb_json *wb_txns_schema(void)
{
    return wb_schema_any_key(wb_schema_list(wb_schema_pattern("^[^,;]+$"), 1, WB_TXN_STEPS_MAX));
}
