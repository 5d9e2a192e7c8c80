#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/base/file.h"
#include "server/base/rng.h"
#include "server/queue/leases.h"
#include "server/queue/turns.h"

struct place {
    char dir[32];
    struct wb_db *db;
    struct wb_host_pools pools;
    int64_t now;
};

static void read_pools(struct place *p, const char *text)
{
    WB_AUTO_FREE char *path = wb_strf("%s/pools.yaml", p->dir);
    struct wb_problems problems = {0};

    assert_int_equal(wb_file_put(path, text, strlen(text), NULL), 0);
    wb_host_pools_release(&p->pools);
    wb_host_pools_read(path, p->dir, &p->pools, &problems);
    assert_int_equal(problems.n, 0);
    wb_problems_release(&problems);
}

static int setup(void **state)
{
    struct place *p = wb_calloc(1, sizeof(*p));
    WB_AUTO_FREE char *path = NULL;

    memcpy(p->dir, "/tmp/wb-lease-XXXXXX", sizeof("/tmp/wb-lease-XXXXXX"));
    assert_non_null(mkdtemp(p->dir));
    path = wb_strf("%s/service.db", p->dir);
    assert_int_equal(wb_queue_open(path, &p->db, NULL), 0);
    assert_int_equal(wb_db_exec(p->db, "PRAGMA synchronous=OFF", NULL), 0); /* only here */
    p->now = 1000;
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;

    wb_host_pools_release(&p->pools);
    wb_db_close(p->db);
    assert_int_equal(wb_remove_tree(p->dir, NULL), 0);
    free(p);
    return 0;
}

static void submit(struct place *p, const char *id, const char *user, const char *pool,
                   int64_t hosts, int64_t priority)
{
    const struct wb_submission s = {.id = id,
                                    .study = "forms",
                                    .token = user,
                                    .priority = priority,
                                    .runs = 4,
                                    .arms = 2,
                                    .rounds = 2,
                                    .forecast_s = 10,
                                    .pool = pool,
                                    .hosts = hosts};
    char *earlier = NULL;

    assert_int_equal(wb_queue_add(p->db, &s, p->now++, &earlier, NULL), 0);
}

/* The next that starts, or NULL. Owned. */
static char *take(struct place *p)
{
    char *id = NULL;
    struct wb_err err = WB_ERR_INIT;

    if (wb_queue_take(p->db, &p->pools, p->now++, &id, &err) < 0)
        fail_msg("%s", err.root);
    return id;
}

static void expect(struct place *p, const char *want)
{
    WB_AUTO_FREE char *id = take(p);

    if (want) {
        assert_non_null(id);
        assert_string_equal(id, want);
    } else {
        assert_null(id);
    }
}

static void finish(struct place *p, const char *id)
{
    WB_AUTO_JSON wb_json *leases = NULL;

    assert_int_equal(wb_queue_end(p->db, id, "finished", NULL, p->now++, NULL), 0);
    assert_int_equal(wb_leases_list(p->db, id, &leases, NULL), 0);
    for (size_t i = 0; i < wb_json_len(leases); i++)
        assert_int_equal(
            wb_lease_end(p->db, wb_json_str_or(wb_json_at(leases, i), "machine", ""), id, NULL), 0);
}

/* Of one that waits; owned. */
static char *reason_of(struct place *p, const char *id)
{
    WB_AUTO_JSON wb_json *running = NULL;
    WB_AUTO_JSON wb_json *waiting = NULL;

    assert_int_equal(wb_queue_view(p->db, &p->pools, p->now, &running, &waiting, NULL), 0);
    for (size_t i = 0; i < wb_json_len(waiting); i++)
        if (!strcmp(wb_json_str_or(wb_json_at(waiting, i), "id", ""), id))
            return wb_strdup(wb_json_str_or(wb_json_at(waiting, i), "waiting_for", ""));
    return wb_strdup("it does not wait");
}

/* Runs r1 on h1, r2 on h1 and h2, r3 on h3, r4 on h2 and h1; h1 has another spelling as well. */
static void two_runs_want_one_host(void **state)
{
    struct place *p = *state;
    WB_AUTO_FREE char *why = NULL;
    WB_AUTO_FREE char *behind = NULL;

    read_pools(p, "pools:\n"
                  "  one: {source: fake, hosts: [h1]}\n"
                  "  both: {source: fake, hosts: [H1, h2]}\n"
                  "  three: {source: fake, hosts: [h3]}\n"
                  "  turned: {source: fake, hosts: [h2, {name: host1.example, machine: h1}]}\n");
    submit(p, "r1", "alice", "one", 1, 0);
    submit(p, "r2", "bob", "both", 2, 0);
    submit(p, "r3", "carol", "three", 1, 0);
    submit(p, "r4", "dave", "turned", 2, 0);
    expect(p, "r1");
    expect(p, "r3");
    expect(p, NULL);
    why = reason_of(p, "r2");
    assert_string_equal(why, "h1 (held by r1); it gets 2 hosts of the pool both at once or none");
    behind = reason_of(p, "r4");
    assert_string_equal(behind, "its turn: r2 comes before it and waits for the same hosts");
    finish(p, "r1");
    expect(p, "r2");
    expect(p, NULL);
    finish(p, "r2");
    expect(p, "r4");
}

/* A large one is not starved by small ones that could always go first. */
static void large_ones_are_not_starved(void **state)
{
    struct place *p = *state;

    read_pools(p, "pools: {lab: {source: fake, count: 3}}\n");
    submit(p, "a1", "alice", "lab", 1, 0);
    submit(p, "a2", "alice", "lab", 1, 0);
    expect(p, "a1");
    expect(p, "a2");
    submit(p, "b1", "bob", "lab", 3, 0);
    submit(p, "a3", "alice", "lab", 1, 0);
    submit(p, "c1", "carol", "lab", 1, 0);
    expect(p, NULL); /* one is free, and claimed */
    finish(p, "a1");
    expect(p, NULL);
    finish(p, "a2");
    expect(p, "b1");
    finish(p, "b1");
    expect(p, "c1");
    expect(p, "a3");
}

static void priorities_bow_to_who_was_passed_over(void **state)
{
    struct place *p = *state;

    read_pools(p, "pools: {lab: {source: fake, count: 1}}\n");
    submit(p, "b1", "bob", "lab", 1, -100);
    for (int i = 1; i <= 4; i++) {
        WB_AUTO_FREE char *id = wb_strf("a%d", i);

        submit(p, id, "alice", "lab", 1, 100);
    }
    expect(p, "a1");
    finish(p, "a1");
    expect(p, "a2");
    finish(p, "a2");
    expect(p, "b1"); /* twice is enough */
    finish(p, "b1");
    expect(p, "a3");
}

/* All of one class; a lease ends only when its host was seen clean; out of service is out. */
static void classes_and_leases(void **state)
{
    struct place *p = *state;
    WB_AUTO_JSON wb_json *over = NULL;
    WB_AUTO_FREE char *why = NULL;
    WB_AUTO_FREE char *why_out = NULL;
    WB_AUTO_FREE char *never = NULL;

    read_pools(p, "pools: {lab: {source: fake, hosts: [{name: a, class: big}, {name: b, class: "
                  "small}, {name: c, class: big}, {name: d, class: small}]}}\n");
    assert_int_equal(wb_host_pool_alike(wb_host_pool_find(&p->pools, "lab")), 2);
    submit(p, "r1", "alice", "lab", 1, 0);
    submit(p, "r2", "bob", "lab", 2, 0);
    submit(p, "r3", "carol", "lab", 3, 0);
    submit(p, "r4", "dave", "lab", 2, 0);
    submit(p, "r5", "dave", "nowhere", 1, 0);
    expect(p, "r1"); /* a: now two are free of one class alone */
    expect(p, "r2");
    expect(p, NULL);
    never = reason_of(p, "r3");
    assert_non_null(strstr(never, "the pool lab has no 3 of one class"));
    free(WB_STEAL(never));
    never = reason_of(p, "r5");
    assert_non_null(strstr(never, "the pool nowhere has no 1"));
    assert_int_equal(wb_queue_end(p->db, "r1", "finished", NULL, p->now, NULL), 0);
    expect(p, NULL); /* over, but not looked at */
    assert_int_equal(wb_leases_list(p->db, NULL, &over, NULL), 0);
    assert_int_equal(wb_json_len(over), 1);
    assert_string_equal(wb_json_str_or(wb_json_at(over, 0), "machine", ""), "a");
    assert_int_equal(wb_lease_trouble(p->db, "a", "r1", "a mount", p->now, NULL), 0);
    why = reason_of(p, "r4");
    assert_non_null(strstr(why, "a (not clean after r1: a mount)"));
    assert_int_equal(wb_lease_end(p->db, "a", "r2", NULL), 0); /* not its lease: nothing */
    expect(p, NULL);
    assert_int_equal(wb_machine_set(p->db, "c", "new disk", "t", p->now, NULL), 0);
    assert_int_equal(wb_lease_end(p->db, "a", "r1", NULL), 0);
    expect(p, NULL);
    why_out = reason_of(p, "r4");
    assert_non_null(strstr(why_out, "c (out of service: new disk)"));
    assert_int_equal(wb_lease_end(p->db, "b", "r2", NULL), 0); /* it runs: nothing */
    expect(p, NULL);
    assert_int_equal(wb_machine_set(p->db, "c", NULL, "t", p->now, NULL), 0);
    expect(p, "r4");
}

static void hosts_are_told(void **state)
{
    static const char *const want[][3] = {
        {"local", "free", "local"}, {"a", "leased", "fake"}, {"b", "out", "fake"}};
    struct place *p = *state;
    WB_AUTO_JSON wb_json *hosts = NULL;

    read_pools(p, "pools: {lab: {source: fake, hosts: [A, b]}, all: {source: fake, hosts: [a]}}\n");
    submit(p, "r1", "alice", "lab", 1, 0);
    expect(p, "r1");
    assert_int_equal(wb_machine_set(p->db, "b", "away", "t", p->now, NULL), 0);
    assert_int_equal(wb_hosts_view(p->db, &p->pools, &hosts, NULL), 0);
    assert_int_equal(wb_json_len(hosts), 3);
    for (size_t i = 0; i < 3; i++) {
        const wb_json *h = wb_json_at(hosts, i);

        assert_string_equal(wb_json_str_or(h, "id", ""), want[i][0]);
        assert_string_equal(wb_json_str_or(h, "state", ""), want[i][1]);
        assert_string_equal(wb_json_str_or(h, "source", ""), want[i][2]);
    }
    assert_int_equal(wb_json_len(wb_json_get(wb_json_at(hosts, 1), "pools")), 2);
    assert_int_equal(wb_json_len(wb_json_get(wb_json_at(hosts, 1), "names")), 2);
}

/* From what campaigns like it took: 10 s forecast, 40 s in truth. */
static void forecasts_look_back(void **state)
{
    struct place *p = *state;
    WB_AUTO_JSON wb_json *running = NULL;
    WB_AUTO_JSON wb_json *waiting = NULL;

    read_pools(p, "pools: {lab: {source: fake, count: 1}}\n");
    submit(p, "r1", "alice", "lab", 1, 0);
    p->now = 0;
    expect(p, "r1");
    p->now = 40000;
    finish(p, "r1");
    p->now = 100000;
    submit(p, "r2", "alice", "lab", 1, 0);
    submit(p, "r3", "bob", "lab", 1, 0);
    submit(p, "r4", "alice", "lab", 1, 0);
    p->now = 100000;
    expect(p, "r3");
    p->now = 110000;
    assert_int_equal(wb_queue_view(p->db, &p->pools, p->now, &running, &waiting, NULL), 0);
    assert_string_equal(wb_json_str_or(wb_json_at(running, 0), "expected_end", ""),
                        "1970-01-01T00:02:20.000Z");
    assert_string_equal(wb_json_str_or(wb_json_at(waiting, 0), "id", ""), "r2");
    assert_string_equal(wb_json_str_or(wb_json_at(waiting, 0), "expected_start", ""),
                        "1970-01-01T00:02:20.000Z");
    assert_string_equal(wb_json_str_or(wb_json_at(waiting, 1), "expected_start", ""),
                        "1970-01-01T00:03:00.000Z");
    assert_string_equal(wb_json_str_or(wb_json_at(waiting, 1), "expected_end", ""),
                        "1970-01-01T00:03:40.000Z");
}

/* ---- whatever is sent ---- */

#define USERS 5
#define CAMPAIGNS 70
static const char *const users[] = {"ann", "bob", "cem", "dan", "eve"};
static const char pools_text[] =
    "pools:\n"
    "  p0: {source: fake, hosts: [m0, m1, m2]}\n"
    "  p1: {source: fake, hosts: [{name: m2, class: x}, {name: m3, class: x}, m4]}\n"
    "  p2: {source: fake, hosts: [m0, m4, m5]}\n"
    "  p3: {source: fake, hosts: [m6]}\n";

/* What the test itself knows of a campaign. */
struct mine {
    char id[8];
    int user, pool;
    int64_t hosts;
    enum { QUEUED, RUNS, OVER } state;
};
struct model {
    struct place *p;
    struct wb_rng rng;
    struct mine c[CAMPAIGNS];
    int n, over;
    int passed[USERS][USERS]; /* since the user waits without a turn */
};

static bool pools_meet(const struct place *p, int a, int machines_of)
{
    WB_AUTO_FREE char *name = wb_strf("p%d", a);
    const struct wb_host_pool *pool = wb_host_pool_find(&p->pools, name);
    WB_AUTO_JSON wb_json *leases = NULL;
    WB_AUTO_FREE char *id = wb_strf("c%03d", machines_of);

    assert_int_equal(wb_leases_list(p->db, id, &leases, NULL), 0);
    for (size_t i = 0; i < wb_json_len(leases); i++)
        for (size_t k = 0; k < pool->nhosts; k++)
            if (!strcmp(pool->hosts[k].machine,
                        wb_json_str_or(wb_json_at(leases, i), "machine", "")))
                return true;
    return false;
}

static bool user_waits(const struct model *m, int user)
{
    for (int i = 0; i < m->n; i++)
        if (m->c[i].user == user && m->c[i].state == QUEUED)
            return true;
    return false;
}

static void model_submit(struct model *m)
{
    struct mine *c = &m->c[m->n];
    WB_AUTO_FREE char *id = wb_strf("c%03d", m->n);
    WB_AUTO_FREE char *pool = NULL;

    memcpy(c->id, id, 5);
    /* One user sends most. */
    c->user = wb_rng_below(&m->rng, 2) ? 0 : (int)wb_rng_below(&m->rng, USERS);
    c->pool = (int)wb_rng_below(&m->rng, 4);
    c->hosts = c->pool == 3   ? 1
               : c->pool == 1 ? 1 + (int64_t)wb_rng_below(&m->rng, 2)
                              : 1 + (int64_t)wb_rng_below(&m->rng, 3);
    pool = wb_strf("p%d", c->pool);
    if (!user_waits(m, c->user))
        memset(m->passed[c->user], 0, sizeof(m->passed[c->user]));
    m->n++;
    submit(m->p, c->id, users[c->user], pool, c->hosts, (int64_t)wb_rng_below(&m->rng, 5) - 2);
}

static void model_started(struct model *m, int i)
{
    WB_AUTO_JSON wb_json *leases = NULL;
    struct mine *c = &m->c[i];

    assert_int_equal(c->state, QUEUED);
    c->state = RUNS;
    assert_int_equal(wb_leases_list(m->p->db, c->id, &leases, NULL), 0);
    assert_int_equal(wb_json_len(leases), c->hosts); /* all of them at once */
    memset(m->passed[c->user], 0, sizeof(m->passed[c->user]));
    for (int u = 0; u < USERS; u++) {
        bool over = false;

        for (int k = 0; k < m->n && u != c->user && !over; k++)
            over =
                m->c[k].user == u && m->c[k].state == QUEUED && pools_meet(m->p, m->c[k].pool, i);
        m->passed[u][c->user] += over;
        /* Nobody is passed over a third time. */
        assert_true(m->passed[u][c->user] <= WB_PASSES_MAX);
    }
}

static void model_take(struct model *m)
{
    for (;;) {
        WB_AUTO_FREE char *id = take(m->p);

        if (!id)
            return;
        model_started(m, (int)strtol(id + 1, NULL, 10));
    }
}

static bool model_finish(struct model *m)
{
    int from = (int)wb_rng_below(&m->rng, CAMPAIGNS);

    for (int k = 0; k < m->n; k++) {
        struct mine *c = &m->c[(from + k) % m->n];

        if (c->state != RUNS)
            continue;
        finish(m->p, c->id);
        c->state = OVER;
        m->over++;
        return true;
    }
    return false;
}

static void whatever_is_sent(void **state)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct model m = {.p = *state};

        read_pools(m.p, pools_text);
        assert_int_equal(wb_db_exec(m.p->db, "DELETE FROM campaigns; DELETE FROM passes", NULL), 0);
        wb_rng_seed(&m.rng, seed);
        while (m.over < CAMPAIGNS) {
            bool sends = m.n < CAMPAIGNS && wb_rng_below(&m.rng, 3) != 0, moved = true;

            if (sends)
                model_submit(&m);
            else
                moved = model_finish(&m);
            model_take(&m);
            if (!moved) /* nothing runs and nothing can: only because nothing waits */
                for (int u = 0; u < USERS; u++)
                    assert_false(user_waits(&m, u));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(two_runs_want_one_host, setup, teardown),
        cmocka_unit_test_setup_teardown(large_ones_are_not_starved, setup, teardown),
        cmocka_unit_test_setup_teardown(priorities_bow_to_who_was_passed_over, setup, teardown),
        cmocka_unit_test_setup_teardown(classes_and_leases, setup, teardown),
        cmocka_unit_test_setup_teardown(hosts_are_told, setup, teardown),
        cmocka_unit_test_setup_teardown(forecasts_look_back, setup, teardown),
        cmocka_unit_test_setup_teardown(whatever_is_sent, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
