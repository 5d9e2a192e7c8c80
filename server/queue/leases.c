#include "server/queue/leases.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/queue/board.h"
#include "server/queue/rows.h"

#define NAMED_MAX 4 /* hosts that a sentence names */
#define FORECAST_MAX 200

/* ---- a turn is taken ---- */

static int lease(struct wb_db *db, const struct wb_board *b, const struct wb_turn *t, int machine,
                 int64_t now_ms, struct wb_err *err)
{
    const struct wb_board_machine *m = &b->machines[machine];
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    /* Two campaigns on one machine are a broken constraint and undo the whole turn. */
    int rc = wb_db_prepare(db,
                           "INSERT INTO leases(machine, host, pool, campaign, since_ms)"
                           " SELECT ?1, ?2, pool, id, ?4 FROM campaigns WHERE id=?3",
                           &s, err);

    if (rc < 0)
        return rc;
    wb_stmt_set_text(s, 1, m->machine);
    wb_stmt_set_text(s, 2, m->host ? m->host->name : m->machine);
    wb_stmt_set_text(s, 3, t->id);
    wb_stmt_set_int(s, 4, now_ms);
    return wb_stmt_run(s, err);
}

static int pass_over(struct wb_db *db, const char *user, const char *by, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    int rc = wb_db_prepare(db,
                           "INSERT INTO passes(user, by_user, n) VALUES(?1,?2,1)"
                           " ON CONFLICT(user, by_user) DO UPDATE SET n=n+1",
                           &s, err);

    if (rc < 0)
        return rc;
    wb_stmt_set_text(s, 1, user);
    wb_stmt_set_text(s, 2, by);
    return wb_stmt_run(s, err);
}

/* Once for each user who waits for one of these machines. */
static int pass_others(struct wb_db *db, const struct wb_board *b, const struct wb_turn *t,
                       const int *got, struct wb_err *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < b->nturns; i++) {
        const struct wb_turn *w = &b->turns[i];
        bool told = false;

        if (!wb_turn_passes(w, t->user, got, t->want))
            continue;
        for (size_t k = 0; k < i && !told; k++)
            told = !strcmp(b->turns[k].user, w->user) &&
                   wb_turn_passes(&b->turns[k], t->user, got, t->want);
        if (!told)
            rc = pass_over(db, w->user, t->user, err);
    }
    return rc;
}

/* The user has had a turn; who waits for nothing any more was not passed over. */
static int forget_passes(struct wb_db *db, const char *user, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    int rc = wb_db_prepare(db,
                           "DELETE FROM passes WHERE user=?1 OR user NOT IN"
                           " (SELECT user FROM campaigns WHERE state='queued')",
                           &s, err);

    if (rc < 0)
        return rc;
    wb_stmt_set_text(s, 1, user);
    return wb_stmt_run(s, err);
}

static int begin_turn(struct wb_db *db, const struct wb_board *b, const struct wb_turn *t,
                      const int *got, int64_t now_ms, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    int rc = wb_db_prepare(db,
                           "UPDATE campaigns SET state='running', started_ms=?2 WHERE id=?1"
                           " AND state='queued'",
                           &s, err);

    if (rc < 0)
        return rc;
    wb_stmt_set_text(s, 1, t->id);
    wb_stmt_set_int(s, 2, now_ms);
    rc = wb_stmt_run(s, err);
    for (size_t i = 0; rc == 0 && i < t->want; i++)
        rc = lease(db, b, t, got[i], now_ms, err);
    if (rc == 0)
        rc = forget_passes(db, t->user, err);
    return rc == 0 ? pass_others(db, b, t, got, err) : rc;
}

/* Inside a transaction. */
static int take(struct wb_db *db, const struct wb_host_pools *pools, int64_t now_ms, char **id,
                struct wb_err *err)
{
    struct wb_board b = {0};
    struct wb_turn_answer *a;
    int rc = wb_board_read(db, pools, now_ms, &b, err);

    if (rc < 0)
        return rc;
    a = wb_turns_look(b.turns, b.nturns, b.state, b.nmachines);
    for (size_t i = 0; rc == 0 && i < b.nturns && !*id; i++) {
        const struct wb_turn *t = &b.turns[a[i].turn];

        if (a[i].state != WB_TURN_STARTS)
            continue;
        rc = begin_turn(db, &b, t, a[i].got, now_ms, err);
        *id = rc == 0 ? wb_strdup(t->id) : NULL;
    }
    wb_turns_free(a, b.nturns);
    wb_board_release(&b);
    return rc;
}

/* Whether one could start now: looked at without the lock for writing, which is not taken from
 * others while everything only waits. */
static int look(struct wb_db *db, const struct wb_host_pools *pools, int64_t now_ms, bool *starts,
                struct wb_err *err)
{
    struct wb_board b = {0};
    struct wb_turn_answer *a;
    int rc = wb_board_read(db, pools, now_ms, &b, err);

    if (rc < 0)
        return rc;
    a = wb_turns_look(b.turns, b.nturns, b.state, b.nmachines);
    for (size_t i = 0; i < b.nturns; i++)
        *starts |= a[i].state == WB_TURN_STARTS;
    wb_turns_free(a, b.nturns);
    wb_board_release(&b);
    return 0;
}

int wb_queue_take(struct wb_db *db, const struct wb_host_pools *pools, int64_t now_ms, char **id,
                  struct wb_err *err)
{
    int64_t waiting = 0;
    bool starts = false;
    char *got = NULL;
    int rc = wb_queue_count(db, "queued", &waiting, err);

    *id = NULL;
    if (rc == 0 && waiting)
        rc = look(db, pools, now_ms, &starts, err);
    if (rc < 0 || !starts)
        return rc;
    rc = wb_db_begin(db, err);
    if (rc == 0)
        rc = take(db, pools, now_ms, &got, err);
    if (rc == 0)
        rc = wb_db_commit(db, err);
    if (rc < 0) {
        wb_db_rollback(db);
        free(got);
        return rc;
    }
    *id = got;
    return 0;
}

/* ---- leases ---- */

int wb_leases_list(struct wb_db *db, const char *of, wb_json **out, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    wb_json *list = wb_json_array();
    bool row = false;
    int rc = wb_db_prepare(db,
                           "SELECT machine, host, pool, campaign, since_ms, trouble,"
                           " coalesce(looked_ms, 0) FROM leases l"
                           " WHERE (?1 IS NOT NULL AND campaign=?1) OR (?1 IS NULL AND NOT EXISTS"
                           " (SELECT 1 FROM campaigns c WHERE c.id=l.campaign AND"
                           " c.state='running')) ORDER BY machine",
                           &s, err);

    if (rc == 0)
        wb_stmt_set_text(s, 1, of);
    while (rc == 0 && (rc = wb_stmt_step(s, &row, err)) == 0 && row) {
        wb_json *o = wb_json_object();

        wb_json_set_str(o, "machine", wb_stmt_text(s, 0));
        wb_json_set_str(o, "host", wb_stmt_text(s, 1));
        wb_json_set_str(o, "pool", wb_stmt_text(s, 2));
        wb_json_set_str(o, "campaign", wb_stmt_text(s, 3));
        wb_row_set_time(o, "since", s, 4);
        wb_json_set_str(o, "trouble", wb_stmt_text(s, 5));
        wb_json_set_int(o, "looked_ms", wb_stmt_int(s, 6));
        wb_json_push(list, o);
    }
    if (rc < 0)
        wb_json_free(list);
    else
        *out = list;
    return rc;
}

int wb_lease_end(struct wb_db *db, const char *machine, const char *campaign, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    int rc = wb_db_prepare(db,
                           "DELETE FROM leases WHERE machine=?1 AND campaign=?2 AND NOT EXISTS"
                           " (SELECT 1 FROM campaigns c WHERE c.id=?2 AND c.state='running')",
                           &s, err);

    if (rc < 0)
        return rc;
    wb_stmt_set_text(s, 1, machine);
    wb_stmt_set_text(s, 2, campaign);
    return wb_stmt_run(s, err);
}

int wb_lease_trouble(struct wb_db *db, const char *machine, const char *campaign, const char *why,
                     int64_t now_ms, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    int rc = wb_db_prepare(db,
                           "UPDATE leases SET trouble=?3, looked_ms=?4 WHERE machine=?1"
                           " AND campaign=?2",
                           &s, err);

    if (rc < 0)
        return rc;
    wb_stmt_set_text(s, 1, machine);
    wb_stmt_set_text(s, 2, campaign);
    wb_stmt_set_text(s, 3, why);
    wb_stmt_set_int(s, 4, now_ms);
    return wb_stmt_run(s, err);
}

int wb_machine_set(struct wb_db *db, const char *machine, const char *reason, const char *token,
                   int64_t now_ms, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    int rc = wb_db_prepare(db,
                           reason ? "INSERT OR REPLACE INTO machines(machine, reason, token, at_ms)"
                                    " VALUES(?1,?2,?3,?4)"
                                  : "DELETE FROM machines WHERE machine=?1",
                           &s, err);

    if (rc < 0)
        return rc;
    wb_stmt_set_text(s, 1, machine);
    if (reason) {
        wb_stmt_set_text(s, 2, reason);
        wb_stmt_set_text(s, 3, token);
        wb_stmt_set_int(s, 4, now_ms);
    }
    return wb_stmt_run(s, err);
}

/* ---- in words ---- */

static void add_held(struct wb_buf *out, const struct wb_board_machine *m)
{
    wb_buf_addf(out, "%s", m->host ? m->host->name : m->machine);
    if (m->out)
        wb_buf_addf(out, " (out of service: %s)", m->trouble);
    else if (m->over && m->trouble)
        wb_buf_addf(out, " (not clean after %s: %s)", m->campaign, m->trouble);
    else if (m->over)
        wb_buf_addf(out, " (looked at after %s)", m->campaign);
    else
        wb_buf_addf(out, " (held by %s)", m->campaign);
}

/* Why a campaign waits; caller frees. */
static char *why(const struct wb_board *b, const struct wb_turn *t, const wb_json *c,
                 const struct wb_turn_answer *a)
{
    struct wb_buf out = WB_BUF_INIT(16384);
    const char *pool = wb_json_str_or(c, "pool", "local");
    size_t held = 0;

    switch (a->state) {
    case WB_TURN_STARTS:
        wb_buf_adds(&out, "nothing: it starts within a second");
        break;
    case WB_TURN_CLAIMED:
        wb_buf_addf(&out, "its turn: %s comes before it and waits for the same hosts",
                    b->turns[a->behind].id);
        break;
    case WB_TURN_NEVER:
        wb_buf_addf(&out,
                    "hosts that are not there: the pool %s has no %zu of one class; it starts once "
                    "the server's configuration has them",
                    pool, t->want);
        break;
    case WB_TURN_HELD:
        for (size_t i = 0; i < t->nmachines; i++) {
            if (!b->state[t->machines[i]].held)
                continue;
            if (held++ < NAMED_MAX) {
                wb_buf_adds(&out, held > 1 ? ", " : "");
                add_held(&out, &b->machines[t->machines[i]]);
            }
        }
        if (held > NAMED_MAX)
            wb_buf_addf(&out, " and %zu more", held - NAMED_MAX);
        if (t->want > 1)
            wb_buf_addf(&out, "; it gets %zu hosts of the pool %s at once or none", t->want, pool);
        break;
    }
    return wb_buf_take(&out);
}

static void set_time(wb_json *o, const char *key, int64_t ms)
{
    struct wb_buf at = WB_BUF_INIT(64);

    wb_format_time(ms, &at);
    wb_json_set_str(o, key, wb_buf_str(&at));
    wb_buf_release(&at);
}

static wb_json *view_waiting(const struct wb_board *b, int64_t now_ms)
{
    struct wb_turn_answer *a = wb_turns_look(b->turns, b->nturns, b->state, b->nmachines);
    WB_AUTO_FREE int64_t *starts = wb_calloc(b->nturns, sizeof(*starts));
    bool forecast = b->nturns <= FORECAST_MAX;
    wb_json *list = wb_json_array();

    if (forecast)
        wb_turns_forecast(b->turns, b->nturns, b->state, b->nmachines, now_ms, starts);
    for (size_t i = 0; i < b->nturns; i++) {
        const struct wb_turn *t = &b->turns[a[i].turn];
        wb_json *c = wb_json_copy(wb_json_at(b->waiting, a[i].turn));
        WB_AUTO_FREE char *text = why(b, t, c, &a[i]);
        int64_t start = starts[a[i].turn];

        wb_json_set_int(c, "position", (int64_t)i + 1);
        wb_json_set_str(c, "waiting_for", text);
        wb_json_set(c, "hosts_held", wb_json_array());
        if (forecast && start != WB_NEVER && start < INT64_MAX / 2) {
            set_time(c, "expected_start", start);
            set_time(c, "expected_end", start + t->takes);
        } else {
            const char *reason = forecast ? "its hosts are not there or out of service"
                                          : "too many campaigns wait for a forecast";

            wb_json_set_reason(c, "expected_start", reason);
            wb_json_set_reason(c, "expected_end", reason);
        }
        wb_json_push(list, c);
    }
    wb_turns_free(a, b->nturns);
    return list;
}

static int view_running(struct wb_db *db, const struct wb_board *b, wb_json **out,
                        struct wb_err *err)
{
    wb_json *list = NULL;
    int rc = wb_queue_list(db, "running", NULL, 1000, &list, err);

    for (size_t i = 0; rc == 0 && i < wb_json_len(list); i++) {
        wb_json *c = wb_json_at(list, i), *hosts = wb_json_array();
        int64_t end = WB_NEVER;

        for (size_t m = 0; m < b->nmachines; m++) {
            const struct wb_board_machine *one = &b->machines[m];

            if (!one->campaign || strcmp(one->campaign, wb_json_str_or(c, "id", "")) != 0)
                continue;
            wb_json_push(hosts, wb_json_str(one->host ? one->host->name : one->machine));
            end = one->out ? end : b->state[m].until;
        }
        wb_json_set(c, "hosts_held", hosts);
        if (end != WB_NEVER)
            set_time(c, "expected_end", end);
        else
            wb_json_set_reason(c, "expected_end", "its hosts are out of service");
    }
    if (rc == 0)
        *out = list;
    return rc;
}

int wb_queue_view(struct wb_db *db, const struct wb_host_pools *pools, int64_t now_ms,
                  wb_json **running, wb_json **waiting, struct wb_err *err)
{
    struct wb_board b = {0};
    int rc = wb_board_read(db, pools, now_ms, &b, err);

    if (rc < 0)
        return rc;
    rc = view_running(db, &b, running, err);
    if (rc == 0)
        *waiting = view_waiting(&b, now_ms);
    wb_board_release(&b);
    return rc;
}

/* ---- hosts ---- */

static void add_names(wb_json *o, const struct wb_host_pools *pools, const char *machine)
{
    wb_json *names = wb_json_array(), *in = wb_json_array();

    for (size_t i = 0; i < pools->n; i++)
        for (size_t k = 0; k < pools->v[i].nhosts; k++) {
            const struct wb_host *h = &pools->v[i].hosts[k];
            bool had = false;

            if (strcmp(h->machine, machine) != 0)
                continue;
            wb_json_push(in, wb_json_str(pools->v[i].name));
            for (size_t n = 0; n < wb_json_len(names); n++)
                had |= !strcmp(wb_json_string(wb_json_at(names, n)), h->name);
            if (!had)
                wb_json_push(names, wb_json_str(h->name));
        }
    wb_json_set(o, "names", names);
    wb_json_set(o, "pools", in);
}

int wb_hosts_view(struct wb_db *db, const struct wb_host_pools *pools, wb_json **out,
                  struct wb_err *err)
{
    struct wb_board b = {0};
    wb_json *list;
    int rc = wb_board_read(db, pools, 0, &b, err);

    if (rc < 0)
        return rc;
    list = wb_json_array();
    for (size_t i = 0; i < b.nmachines; i++) {
        const struct wb_board_machine *m = &b.machines[i];
        wb_json *o = wb_json_object();

        wb_json_set_str(o, "id", m->machine);
        add_names(o, pools, m->machine);
        wb_json_set_str(o, "class", m->host ? m->host->kind : NULL);
        wb_json_set_str(o, "source", m->pool ? m->pool->source->name : NULL);
        wb_json_set_str(o, "state",
                        m->out                  ? "out"
                        : !m->campaign          ? "free"
                        : m->over && m->trouble ? "dirty"
                                                : "leased");
        wb_json_set_str(o, "campaign", m->campaign);
        wb_json_set_str(o, "since", m->since);
        wb_json_set_str(o, "reason", m->trouble);
        wb_json_push(list, o);
    }
    wb_board_release(&b);
    *out = list;
    return 0;
}
