#include "server/collect/evidence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const validity_names[] = {
    [WB_VALID] = "valid",
    [WB_NOISY] = "noisy",
    [WB_CLIENT_LIMITED] = "client-limited",
    [WB_INVALID_RUN] = "invalid",
    [WB_UNVERIFIED] = "unverified",
};

const char *wb_validity_name(enum wb_validity v)
{
    return validity_names[v];
}

enum wb_validity wb_validity_worse(enum wb_validity a, enum wb_validity b)
{
    /* What is known to be wrong is worse than what is not known. */
    static const int rank[] = {
        [WB_VALID] = 0,      [WB_NOISY] = 1,       [WB_CLIENT_LIMITED] = 2,
        [WB_UNVERIFIED] = 3, [WB_INVALID_RUN] = 4,
    };

    return rank[a] >= rank[b] ? a : b;
}

static void set_figure(wb_json *entry, const char *key, double v)
{
    if (isnan(v))
        wb_json_set(entry, key, wb_json_null());
    else
        wb_json_set_real(entry, key, v);
}

void wb_judge_add(struct wb_judge *j, const struct wb_check *c, const char *fmt, ...)
{
    wb_json *entry = wb_json_object();
    WB_AUTO_FREE char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    text = wb_vstrf(fmt, ap);
    va_end(ap);
    wb_json_set_str(entry, "name", c->name);
    wb_json_set_str(entry, "phase", j->phase);
    if (c->word)
        wb_json_set_str(entry, "value", c->word);
    else if (isnan(c->value))
        wb_json_set_reason(entry, "value", c->reason ? c->reason : "unreadable");
    else
        wb_json_set_real(entry, "value", c->value);
    wb_json_set_str(entry, "unit", c->unit);
    set_figure(entry, "noisy", c->noisy);
    set_figure(entry, "worse", c->worse);
    wb_json_set_str(entry, "verdict",
                    c->not_applicable ? "not-applicable" : wb_validity_name(c->verdict));
    if (c->outcome)
        wb_json_set_str(entry, "outcome", c->outcome);
    wb_json_set_str(entry, "text", text);
    wb_json_push(j->evidence, entry);
    if (!c->not_applicable)
        j->worst = wb_validity_worse(j->worst, c->verdict);
}

const char *wb_evidence_outcome(const wb_json *evidence)
{
    static const char *const words[] = {"infra-error", "sut-error", "inconsistent",
                                        "harness-error"};

    for (size_t i = 0; i < wb_json_len(evidence); i++) {
        const char *found = wb_json_str_or(wb_json_at(evidence, i), "outcome", "");

        for (size_t w = 0; w < WB_LEN(words); w++)
            if (!strcmp(found, words[w]))
                return words[w];
    }
    return NULL;
}
