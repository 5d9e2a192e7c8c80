#include "server/engine/outcome.h"

#include <string.h>

#include "server/base/mem.h"

static const struct {
    const char *name;
    int exit_code;
} outcomes[] = {
    [WB_OUTCOME_OK] = {"ok", 0},
    [WB_OUTCOME_TARGET_MISSED] = {"target-missed", 0},
    [WB_OUTCOME_NOT_STEADY] = {"not-steady", 14},
    [WB_OUTCOME_INCONSISTENT] = {"inconsistent", 13},
    [WB_OUTCOME_SUT_ERROR] = {"sut-error", 12},
    [WB_OUTCOME_INFRA_ERROR] = {"infra-error", 13},
    [WB_OUTCOME_CAPACITY] = {"capacity", 13},
    [WB_OUTCOME_CANCELLED] = {"cancelled", 130},
    [WB_OUTCOME_HARNESS_ERROR] = {"harness-error", 13},
};

const char *wb_outcome_name(enum wb_outcome o)
{
    return (unsigned)o < WB_LEN(outcomes) ? outcomes[o].name : "unknown";
}

bool wb_outcome_find(const char *name, enum wb_outcome *out)
{
    for (size_t i = 0; i < WB_LEN(outcomes); i++)
        if (!strcmp(outcomes[i].name, name)) {
            *out = (enum wb_outcome)i;
            return true;
        }
    return false;
}

int wb_outcome_exit(enum wb_outcome o)
{
    return (unsigned)o < WB_LEN(outcomes) ? outcomes[o].exit_code : 1;
}

int wb_outcome_counts(enum wb_outcome o)
{
    return o == WB_OUTCOME_OK || o == WB_OUTCOME_TARGET_MISSED;
}
