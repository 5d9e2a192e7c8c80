#include "server/http/campaign_list.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/queue/queue.h"
#include "server/record/query.h"

/* One of the two lists that are merged, as far as it was read for this page. */
struct source {
    wb_json *items; /* one more than a page where there is more */
    size_t at;      /* how many of them are in the page, or were left out of it */
    char *from;     /* where it was read from: an id or a cursor of the store; NULL: the start */
    bool more;      /* records: the store has more behind the items */
    bool done;      /* nothing is left of it: it is not asked any more */
};

static void release(struct source *s)
{
    wb_json_free(s->items);
    free(s->from);
}

/* "<queue>|<records>": each "-" (from the start), "." (nothing is left) or where to go on. */
static void read_part(const char *text, size_t n, struct source *s)
{
    s->done = n == 1 && *text == '.';
    if (!s->done && !(n == 1 && *text == '-'))
        s->from = wb_strndup(text, n);
}

static void read_cursor(const char *cursor, struct source *queue, struct source *records)
{
    const char *bar = cursor ? strchr(cursor, '|') : NULL;

    if (!bar)
        return;
    read_part(cursor, (size_t)(bar - cursor), queue);
    read_part(bar + 1, strlen(bar + 1), records);
}

/* ---- a row of the records as a row of the list ---- */

static wb_json *recorded_row(const wb_json *r)
{
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "id", wb_json_str_or(r, "id", NULL));
    wb_json_set_str(o, "study", wb_json_str_or(r, "study", NULL));
    wb_json_set_str(o, "state", WB_STATE_RECORDED);
    wb_json_set_int(o, "arms", (int64_t)wb_json_len(wb_json_get(r, "arms")));
    wb_json_set_int(o, "rounds", wb_json_int_or(r, "rounds", 0));
    wb_json_set_int(o, "recorded", wb_json_int_or(r, "runs", 0));
    wb_json_set_int(o, "ok", wb_json_int_or(r, "ok", 0));
    wb_json_set(o, "submitted_at", wb_json_null());
    wb_json_set_str(o, "started_at", wb_json_str_or(r, "started_at", NULL));
    wb_json_set_str(o, "ended_at", wb_json_str_or(r, "ended_at", NULL));
    return o;
}

int wb_campaign_recorded(struct wb_context *c, const char *id, wb_json **out, struct wb_err *err)
{
    const struct wb_query q = {.campaign = id, .limit = 1};
    WB_AUTO_JSON wb_json *items = NULL;
    WB_AUTO_FREE char *next = NULL;
    int rc = wb_store_campaigns(c->store, &q, &items, &next, err);

    if (rc < 0)
        return rc;
    if (wb_json_len(items) == 0)
        return wb_fail(err, WB_NOT_FOUND, "there is no campaign '%.60s'", id);
    *out = recorded_row(wb_json_at(items, 0));
    return 0;
}

/* ---- reading ---- */

static int read_queue(struct wb_context *c, const struct wb_campaign_ask *ask, struct source *s,
                      struct wb_err *err)
{
    s->items = NULL;
    if (ask->state && !strcmp(ask->state, WB_STATE_RECORDED))
        s->done = true;
    if (s->done) {
        s->items = wb_json_array();
        return 0;
    }
    return wb_queue_list(c->db, ask->state, s->from, (int64_t)ask->limit + 1, &s->items, err);
}

static int read_records(struct wb_context *c, const struct wb_campaign_ask *ask, struct source *s,
                        struct wb_err *err)
{
    const struct wb_query q = {.study = ask->study, .cursor = s->from, .limit = ask->limit};
    WB_AUTO_FREE char *next = NULL;
    int rc;

    if (ask->state && strcmp(ask->state, WB_STATE_RECORDED) != 0)
        s->done = true;
    if (s->done) {
        s->items = wb_json_array();
        return 0;
    }
    rc = wb_store_campaigns(c->store, &q, &s->items, &next, err);
    s->more = next != NULL;
    return rc;
}

static int64_t time_of(const wb_json *o, const char *key)
{
    int64_t ms = 0;

    return wb_parse_time(wb_json_str_or(o, key, ""), &ms, NULL) == 0 ? ms : 0;
}

static int is_in_queue(struct wb_context *c, const char *id, bool *yes, struct wb_err *err)
{
    struct wb_err why = WB_ERR_INIT;
    WB_AUTO_JSON wb_json *o = NULL;
    int rc = wb_queue_get(c->db, id, &o, &why);

    *yes = rc == 0;
    if (rc < 0 && rc != -WB_NOT_FOUND) {
        if (err)
            *err = why;
        return rc;
    }
    return 0;
}

/* One item more for the page, the newer of the two that are next; nothing when both are empty. */
static int take_one(struct wb_context *c, const struct wb_campaign_ask *ask, struct source *queue,
                    struct source *records, wb_json *page, struct wb_err *err)
{
    wb_json *a = wb_json_at(queue->items, queue->at), *b = wb_json_at(records->items, records->at);
    bool known = false;
    int rc = 0;

    if (a && (!b || time_of(a, "submitted_at") >= time_of(b, "started_at"))) {
        queue->at++;
        if (!ask->study || !strcmp(ask->study, wb_json_str_or(a, "study", "")))
            wb_json_push(page, wb_json_ref(a));
        return 0;
    }
    rc = is_in_queue(c, wb_json_str_or(b, "id", ""), &known, err);
    records->at++;
    if (rc == 0 && !known)
        wb_json_push(page, recorded_row(b));
    return rc;
}

/* Where the queue goes on, in the words of read_part. */
static char *queue_part(const struct wb_campaign_ask *ask, const struct source *s)
{
    const size_t n = wb_json_len(s->items);

    if (s->done || (s->at == n && n <= ask->limit))
        return wb_strdup(".");
    if (s->at)
        return wb_strdup(wb_json_str_or(wb_json_at(s->items, s->at - 1), "id", ""));
    return wb_strdup(s->from ? s->from : "-");
}

/* The same of the records: behind the last item that was looked at, whatever came in since. */
static char *records_part(const struct source *s)
{
    const struct wb_query q = {0};
    char *cursor;

    if (s->done || (s->at == wb_json_len(s->items) && !s->more))
        return wb_strdup(".");
    if (s->at == 0)
        return wb_strdup(s->from ? s->from : "-");
    cursor = wb_campaign_cursor(&q, wb_json_at(s->items, s->at - 1));
    return cursor ? cursor : wb_strdup(".");
}

int wb_campaigns_list(struct wb_context *c, const struct wb_campaign_ask *ask, wb_json **items,
                      char **next, struct wb_err *err)
{
    struct source queue = {0}, records = {0};
    WB_AUTO_JSON wb_json *page = wb_json_array();
    WB_AUTO_FREE char *a = NULL;
    WB_AUTO_FREE char *b = NULL;
    int rc;

    read_cursor(ask->cursor, &queue, &records);
    rc = read_queue(c, ask, &queue, err);
    if (rc == 0)
        rc = read_records(c, ask, &records, err);
    while (rc == 0 && wb_json_len(page) < ask->limit &&
           (queue.at < wb_json_len(queue.items) || records.at < wb_json_len(records.items)))
        rc = take_one(c, ask, &queue, &records, page, err);
    if (rc == 0) {
        a = queue_part(ask, &queue);
        b = records_part(&records);
        *next = strcmp(a, ".") != 0 || strcmp(b, ".") != 0 ? wb_strf("%s|%s", a, b) : NULL;
        *items = WB_STEAL(page);
    }
    release(&queue);
    release(&records);
    return rc;
}
