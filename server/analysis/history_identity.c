/* Which changes of an answer are those of an earlier answer. An event is named after its first bad
 * night, so that nights put in or taken out before it do not rename it. */
#include <stdlib.h>
#include <string.h>

#include "server/analysis/history.h"
#include "server/base/digest.h"
#include "server/base/mem.h"

#define ID_DIGITS 12

/* Where an event of the earlier answer is now: by the id of its night, else by its index. */
static size_t place_now(const struct wb_history *h, const wb_json *event)
{
    const wb_json *first = wb_json_get(event, "first_bad");
    size_t at = h->values.n;

    if (h->ids != NULL && first != NULL)
        at = wb_history_find(h, first);
    if (at == h->values.n) {
        int64_t index = wb_json_int_or(event, "index", -1);
        at = index >= 0 && (size_t)index < h->values.n ? (size_t)index : h->values.n;
    }
    return at;
}

static bool same_kind(const wb_json *a, const wb_json *b)
{
    double before = wb_json_real_or(a, "before", 0), after = wb_json_real_or(a, "after", 0);

    return (after > before) == (wb_json_real_or(b, "after", 0) > wb_json_real_or(b, "before", 0));
}

/* The events of the earlier answer, those that were gone then, too: a change that comes back is
 * the one that was known. Owned. */
static wb_json *earlier_events(const struct wb_history *h)
{
    static const char *const keys[] = {"change_points", "gone"};
    wb_json *all = wb_json_array();

    for (size_t k = 0; k < WB_LEN(keys); k++) {
        const wb_json *list = wb_json_get(h->previous, keys[k]);
        for (size_t i = 0; i < wb_json_len(list); i++) {
            const wb_json *e = wb_json_at(list, i);
            if (wb_json_string(wb_json_get(e, "id")) != NULL)
                wb_json_push(all, wb_json_ref(e));
        }
    }
    return all;
}

/* The nearest unused earlier event within WB_MOVED nights; its index in the list or -1. */
static int earlier_of(const struct wb_history *h, const wb_json *earlier, const bool *used,
                      const wb_json *event)
{
    size_t at = (size_t)wb_json_int_or(event, "index", 0), least = WB_MOVED + 1;
    int best = -1;

    for (size_t i = 0; i < wb_json_len(earlier); i++) {
        size_t was = place_now(h, wb_json_at(earlier, i));
        size_t far = was > at ? was - at : at - was;
        if (!used[i] && was < h->values.n && far < least &&
            same_kind(wb_json_at(earlier, i), event)) {
            least = far;
            best = (int)i;
        }
    }
    return best;
}

static bool id_taken(const wb_json *list, const char *id)
{
    for (size_t i = 0; i < wb_json_len(list); i++)
        if (strcmp(wb_json_str_or(wb_json_at(list, i), "id", ""), id) == 0)
            return true;
    return false;
}

/* A name made of the series and the first bad night; another one when it is taken. */
static void set_new_id(const struct wb_history *h, const wb_json *events, const wb_json *earlier,
                       wb_json *event)
{
    WB_AUTO_FREE char *night = wb_history_id(h, (size_t)wb_json_int_or(event, "index", 0));
    char hex[WB_SHA256_HEX];

    for (int try = 0;; try++) {
        WB_AUTO_FREE char *text = wb_strf("%s\n%s\n%d", h->series ? h->series : "", night, try);
        WB_AUTO_FREE char *id = NULL;
        wb_sha256_of(text, strlen(text), hex);
        id = wb_strf("c-%.*s", ID_DIGITS, hex);
        if (id_taken(events, id) || id_taken(earlier, id))
            continue;
        wb_json_set_str(event, "id", id);
        return;
    }
}

void wb_history_identify(const struct wb_history *h, wb_json *answer)
{
    WB_AUTO_JSON wb_json *earlier = earlier_events(h);
    WB_AUTO_FREE bool *used = wb_calloc(wb_json_len(earlier), sizeof(bool));
    WB_AUTO_FREE char *newest = wb_history_id(h, h->values.n > 0 ? h->values.n - 1 : 0);
    const wb_json *events = wb_json_get(answer, "change_points");
    wb_json *gone = wb_json_array();

    for (size_t i = 0; i < wb_json_len(events); i++) {
        wb_json *event = wb_json_at(events, i);
        int known = earlier_of(h, earlier, used, event);
        if (known >= 0) {
            const wb_json *was = wb_json_at(earlier, (size_t)known);
            used[known] = true;
            wb_json_set_str(event, "id", wb_json_str_or(was, "id", ""));
            wb_json_set_str(event, "first_seen", wb_json_str_or(was, "first_seen", newest));
        }
    }
    for (size_t i = 0; i < wb_json_len(events); i++) {
        wb_json *event = wb_json_at(events, i);
        if (wb_json_string(wb_json_get(event, "id")) != NULL)
            continue;
        set_new_id(h, events, earlier, event);
        wb_json_set_str(event, "first_seen", newest);
    }
    for (size_t i = 0; i < wb_json_len(earlier); i++)
        if (!used[i])
            wb_json_push(gone, wb_json_ref(wb_json_at(earlier, i)));
    wb_json_set(answer, "gone", gone);
}
