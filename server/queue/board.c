#include "server/queue/board.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/queue/rows.h"

#define LIKE_MAX 10 /* campaigns that a forecast looks back on */

/* ---- forecasts ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

int wb_expected_s(struct wb_db *db, const wb_json *campaign, double *out, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    double per_run[LIKE_MAX];
    size_t n = 0;
    bool row = false;
    int rc = wb_db_prepare(db,
                           "SELECT (ended_ms-started_ms)/1000.0/runs FROM campaigns WHERE study=?1"
                           " AND arms=?2 AND state='finished' AND runs>0 AND starts<=1"
                           " AND ended_ms>started_ms ORDER BY seq DESC LIMIT 10",
                           &s, err);

    if (rc < 0)
        return rc;
    wb_stmt_set_text(s, 1, wb_json_str_or(campaign, "study", ""));
    wb_stmt_set_int(s, 2, wb_json_int_or(campaign, "arms", 0));
    while ((rc = wb_stmt_step(s, &row, err)) == 0 && row && n < LIKE_MAX)
        per_run[n++] = wb_stmt_real(s, 0);
    if (rc < 0)
        return rc;
    *out = wb_json_real_or(campaign, "forecast_s", 0);
    if (n) {
        qsort(per_run, n, sizeof(*per_run), by_value);
        *out = (n % 2 ? per_run[n / 2] : (per_run[n / 2 - 1] + per_run[n / 2]) / 2) *
               (double)wb_json_int_or(campaign, "runs", 0);
    }
    return 0;
}

/* ---- machines ---- */

static size_t machine_at(struct wb_board *b, const char *machine)
{
    for (size_t i = 0; i < b->nmachines; i++)
        if (!strcmp(b->machines[i].machine, machine))
            return i;
    wb_grow(&b->machines, &b->cap, b->nmachines + 1, sizeof(*b->machines));
    wb_grow(&b->state, &b->state_cap, b->nmachines + 1, sizeof(*b->state));
    b->machines[b->nmachines] = (struct wb_board_machine){.machine = wb_strdup(machine)};
    b->state[b->nmachines] = (struct wb_turn_machine){0};
    return b->nmachines++;
}

static void add_pools(struct wb_board *b, const struct wb_host_pools *pools)
{
    for (size_t i = 0; i < pools->n; i++)
        for (size_t k = 0; k < pools->v[i].nhosts; k++) {
            const struct wb_host *h = &pools->v[i].hosts[k];
            size_t at = machine_at(b, h->machine); /* may move them all */
            struct wb_board_machine *m = &b->machines[at];

            if (!m->pool) {
                m->pool = &pools->v[i];
                m->host = h;
            }
        }
}

/* When a campaign that runs is expected to be over; never before now. */
static int expected_end(struct wb_db *db, const char *id, int64_t now_ms, int64_t *end,
                        struct wb_err *err)
{
    WB_AUTO_JSON wb_json *c = NULL;
    int64_t started = now_ms;
    double s = 0;
    int rc = wb_queue_get(db, id, &c, err);

    if (rc == 0)
        rc = wb_expected_s(db, c, &s, err);
    if (rc < 0)
        return rc;
    if (wb_parse_time(wb_json_str_or(c, "started_at", ""), &started, NULL) < 0)
        started = now_ms;
    *end = started + (int64_t)(s * 1000);
    *end = *end > now_ms ? *end : now_ms;
    return 0;
}

static int add_leases(struct wb_db *db, struct wb_board *b, int64_t now_ms, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    bool row = false;
    int rc = wb_db_prepare(db,
                           "SELECT l.machine, l.campaign, l.since_ms, l.trouble,"
                           " coalesce(c.state, '') FROM leases l LEFT JOIN campaigns c"
                           " ON c.id=l.campaign",
                           &s, err);

    while (rc == 0 && (rc = wb_stmt_step(s, &row, err)) == 0 && row) {
        size_t i = machine_at(b, wb_stmt_text(s, 0));
        struct wb_board_machine *m = &b->machines[i];
        struct wb_buf since = WB_BUF_INIT(64);

        wb_format_time(wb_stmt_int(s, 2), &since);
        m->campaign = wb_strdup(wb_stmt_text(s, 1));
        m->since = wb_buf_take(&since);
        m->trouble = wb_strdup(wb_stmt_text(s, 3));
        m->over = strcmp(wb_stmt_text(s, 4), "running") != 0;
        b->state[i] = (struct wb_turn_machine){.held = true, .until = now_ms};
        if (!m->over)
            rc = expected_end(db, m->campaign, now_ms, &b->state[i].until, err);
    }
    return rc;
}

static int add_out(struct wb_db *db, struct wb_board *b, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    bool row = false;
    int rc = wb_db_prepare(db, "SELECT machine, reason FROM machines", &s, err);

    while (rc == 0 && (rc = wb_stmt_step(s, &row, err)) == 0 && row) {
        size_t i = machine_at(b, wb_stmt_text(s, 0));

        b->machines[i].out = true;
        free(b->machines[i].trouble);
        b->machines[i].trouble = wb_strdup(wb_stmt_text(s, 1));
        b->state[i] = (struct wb_turn_machine){.held = true, .until = INT64_MAX};
    }
    return rc;
}

/* ---- turns ---- */

/* One campaign that waits; what it points to is kept in b->owners. */
static void add_turn(struct wb_board *b, const struct wb_host_pools *pools, const wb_json *c,
                     const struct wb_stmt *s, double expected_s)
{
    const struct wb_host_pool *pool = wb_host_pool_find(pools, wb_json_str_or(c, "pool", "local"));
    struct wb_turn *t = &b->turns[b->nturns++];
    wb_json *user = wb_json_str(wb_stmt_text(s, 0));
    int *machines, *classes;

    wb_json_push(b->owners, user);
    *t = (struct wb_turn){.id = wb_json_str_or(c, "id", ""),
                          .user = wb_json_string(user),
                          .priority = wb_json_int_or(c, "priority", 0),
                          .seq = wb_stmt_int(s, 1),
                          .last = wb_stmt_is_null(s, 2) ? WB_NEVER : wb_stmt_int(s, 2),
                          .since = wb_stmt_int(s, 3),
                          .passed = wb_stmt_int(s, 4),
                          .nmachines = pool ? pool->nhosts : 0,
                          .want = (size_t)wb_json_int_or(c, "hosts", 1),
                          .takes = (int64_t)(expected_s * 1000)};
    machines = wb_calloc(t->nmachines, sizeof(*machines));
    classes = wb_calloc(t->nmachines, sizeof(*classes));
    for (size_t i = 0; i < t->nmachines; i++) {
        machines[i] = (int)machine_at(b, pool->hosts[i].machine);
        classes[i] = (int)i;
        for (size_t k = 0; k < i && classes[i] == (int)i; k++)
            if (!strcmp(pool->hosts[k].kind, pool->hosts[i].kind))
                classes[i] = classes[k];
    }
    t->machines = machines;
    t->classes = classes;
    /* A user waits since its last turn, or since it asked. */
    if (t->last != WB_NEVER && t->last > t->since)
        t->since = t->last;
}

static int add_turns(struct wb_db *db, struct wb_board *b, const struct wb_host_pools *pools,
                     struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    bool row = false;
    int rc = wb_db_prepare(
        db,
        "SELECT w.user, w.seq, (SELECT max(c.started_ms) FROM campaigns c INDEXED BY campaigns_user"
        " WHERE c.user=w.user),"
        " (SELECT min(c.submitted_ms) FROM campaigns c INDEXED BY campaigns_wait"
        " WHERE c.state='queued' AND c.user=w.user),"
        " coalesce((SELECT max(p.n) FROM passes p WHERE p.user=w.user), 0), w.id"
        " FROM campaigns w WHERE w.state='queued' ORDER BY w.seq",
        &s, err);

    while (rc == 0 && (rc = wb_stmt_step(s, &row, err)) == 0 && row) {
        wb_json *c = NULL;
        double expected_s = 0;

        rc = wb_queue_get(db, wb_stmt_text(s, 5), &c, err);
        if (rc == 0)
            rc = wb_expected_s(db, c, &expected_s, err);
        if (rc < 0) {
            wb_json_free(c);
            break;
        }
        wb_json_push(b->waiting, c);
        b->turns = wb_realloc(b->turns, b->nturns + 1, sizeof(*b->turns));
        add_turn(b, pools, c, s, expected_s);
    }
    return rc;
}

int wb_board_read(struct wb_db *db, const struct wb_host_pools *pools, int64_t now_ms,
                  struct wb_board *out, struct wb_err *err)
{
    struct wb_board b = {.waiting = wb_json_array(), .owners = wb_json_array()};
    int rc;

    add_pools(&b, pools);
    rc = add_leases(db, &b, now_ms, err);
    if (rc == 0)
        rc = add_out(db, &b, err);
    if (rc == 0)
        rc = add_turns(db, &b, pools, err);
    if (rc < 0)
        wb_board_release(&b);
    else
        *out = b;
    return rc;
}

void wb_board_release(struct wb_board *b)
{
    for (size_t i = 0; i < b->nmachines; i++) {
        free(b->machines[i].machine);
        free(b->machines[i].campaign);
        free(b->machines[i].trouble);
        free(b->machines[i].since);
    }
    for (size_t i = 0; i < b->nturns; i++) {
        int *machines, *classes;

        memcpy(&machines, &b->turns[i].machines, sizeof(machines));
        memcpy(&classes, &b->turns[i].classes, sizeof(classes));
        free(machines);
        free(classes);
    }
    free(b->machines);
    free(b->state);
    free(b->turns);
    wb_json_free(b->waiting);
    wb_json_free(b->owners);
    *b = (struct wb_board){0};
}
