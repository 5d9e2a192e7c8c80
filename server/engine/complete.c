#include "server/engine/complete.h"

#include <string.h>

#define WELL "UN"
#define NAMED_MAX 8

void wb_complete_init(struct wb_complete *c, int nodes)
{
    *c = (struct wb_complete){.nodes = nodes};
}

void wb_complete_release(struct wb_complete *c)
{
    wb_json_free(c->bad);
    c->bad = NULL;
}

static bool is_well(void *node)
{
    const char *state = wb_json_string(wb_json_iter_value(node));

    return state && strcmp(state, WELL) == 0;
}

static bool all_well(const struct wb_complete *c, const wb_json *nodes)
{
    if (wb_json_type(nodes) != WB_JSON_OBJECT || wb_json_len(nodes) != (size_t)c->nodes)
        return false;
    for (void *it = wb_json_first(nodes); it; it = wb_json_next(nodes, it))
        if (!is_well(it))
            return false;
    return true;
}

bool wb_complete_add(struct wb_complete *c, const wb_json *nodes)
{
    if (all_well(c, nodes)) {
        c->good++;
    } else {
        c->good = 0;
        wb_json_free(c->bad);
        c->bad = wb_json_type(nodes) == WB_JSON_OBJECT ? wb_json_ref(nodes) : wb_json_object();
    }
    return c->good >= WB_COMPLETE_ANSWERS;
}

void wb_complete_why(const struct wb_complete *c, struct wb_buf *out)
{
    size_t n = wb_json_len(c->bad), ill = 0;

    if (!c->bad)
        return;
    for (void *it = wb_json_first(c->bad); it; it = wb_json_next(c->bad, it)) {
        const char *state = wb_json_string(wb_json_iter_value(it));

        if (is_well(it) || ++ill > NAMED_MAX)
            continue;
        wb_buf_addf(out, "%s%.64s is %.16s", ill > 1 ? ", " : "", wb_json_iter_key(it),
                    state ? state : "in no state");
    }
    if (ill > NAMED_MAX)
        wb_buf_addf(out, " and %zu more", ill - NAMED_MAX);
    if (n != (size_t)c->nodes)
        wb_buf_addf(out, "%s%zu of %d nodes are there", ill ? "; " : "", n, c->nodes);
}
