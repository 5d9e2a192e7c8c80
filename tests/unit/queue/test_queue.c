#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/base/file.h"
#include "server/base/mem.h"
#include "server/queue/leases.h"
#include "server/queue/tokens.h"

struct place {
    char dir[32];
    char *path;
    struct wb_db *db;
    struct wb_host_pools pools;
};

static int setup(void **state)
{
    struct place *p = wb_calloc(1, sizeof(*p));

    memcpy(p->dir, "/tmp/wb-queue-XXXXXX", sizeof("/tmp/wb-queue-XXXXXX"));
    assert_non_null(mkdtemp(p->dir));
    p->path = wb_strf("%s/service.db", p->dir);
    assert_int_equal(wb_queue_open(p->path, &p->db, NULL), 0);
    wb_host_pools_read(NULL, p->dir, &p->pools, NULL); /* this machine alone */
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;

    wb_host_pools_release(&p->pools);
    wb_db_close(p->db);
    assert_int_equal(wb_remove_tree(p->dir, NULL), 0);
    free(p->path);
    free(p);
    return 0;
}

static void add(struct wb_db *db, const char *id, const char *token, int64_t priority, int64_t at)
{
    const struct wb_submission s = {.id = id,
                                    .study = "forms",
                                    .token = token,
                                    .priority = priority,
                                    .runs = 4,
                                    .arms = 2,
                                    .rounds = 2,
                                    .forecast_s = 1.5};
    char *earlier = NULL;

    assert_int_equal(wb_queue_add(db, &s, at, &earlier, NULL), 0);
    assert_null(earlier);
}

static void expect_next(struct place *p, const char *want, int64_t at)
{
    struct wb_db *db = p->db;
    char *id = NULL;

    assert_int_equal(wb_queue_take(db, &p->pools, at, &id, NULL), 0);
    if (want)
        assert_string_equal(id, want);
    else
        assert_null(id);
    if (id) {
        assert_int_equal(wb_queue_end(db, id, "finished", NULL, at, NULL), 0);
        assert_int_equal(wb_lease_end(db, "local", id, NULL), 0);
    }
    free(id);
}

static void turns_are_fair(void **state)
{
    struct wb_db *db = ((struct place *)*state)->db;

    add(db, "cmp_1", "alice", 0, 1);
    add(db, "cmp_2", "alice", 0, 2);
    add(db, "cmp_3", "alice", 0, 3);
    add(db, "cmp_4", "bob", 0, 4);
    add(db, "cmp_5", "carol", 0, 5);
    add(db, "cmp_6", "alice", 5, 6);
    expect_next(*state, "cmp_6", 10); /* by priority */
    expect_next(*state, "cmp_4", 11); /* bob has had no turn, and asked before carol */
    expect_next(*state, "cmp_5", 12);
    expect_next(*state, "cmp_1", 13);
    add(db, "cmp_7", "bob", 0, 14);
    expect_next(*state, "cmp_7", 15); /* alice was served after bob */
    expect_next(*state, "cmp_2", 16);
    expect_next(*state, "cmp_3", 17);
    expect_next(*state, NULL, 18);
}

static void only_so_many_run(void **state)
{
    struct wb_db *db = ((struct place *)*state)->db;
    WB_AUTO_JSON wb_json *c = NULL;
    char *id = NULL;
    int64_t n = 0;

    add(db, "cmp_1", "alice", 0, 1000);
    add(db, "cmp_2", "alice", 0, 2000);
    assert_int_equal(wb_queue_take(db, &((struct place *)*state)->pools, 3000, &id, NULL), 0);
    assert_string_equal(id, "cmp_1");
    free(WB_STEAL(id));
    assert_int_equal(wb_queue_take(db, &((struct place *)*state)->pools, 3000, &id, NULL), 0);
    assert_null(id);
    assert_int_equal(wb_queue_started(db, "cmp_1", &n, NULL), 0);
    assert_int_equal(n, 1);
    assert_int_equal(wb_queue_started(db, "cmp_1", &n, NULL), 0);
    assert_int_equal(n, 2);
    assert_int_equal(wb_queue_started(db, "cmp_9", &n, NULL), -WB_NOT_FOUND);
    assert_int_equal(wb_queue_get(db, "cmp_1", &c, NULL), 0);
    assert_string_equal(wb_json_str_or(c, "state", ""), "running");
    assert_string_equal(wb_json_str_or(c, "submitted_at", ""), "1970-01-01T00:00:01.000Z");
    assert_string_equal(wb_json_str_or(c, "started_at", ""), "1970-01-01T00:00:03.000Z");
    assert_int_equal(wb_json_type(wb_json_get(c, "ended_at")), WB_JSON_NULL);
    assert_int_equal(wb_json_int_or(c, "starts", 0), 2);
    assert_int_equal(wb_queue_count(db, "running", &n, NULL), 0);
    assert_int_equal(n, 1);
}

static void cancel_is_legal_until_the_end(void **state)
{
    struct wb_db *db = ((struct place *)*state)->db;
    struct wb_err err = WB_ERR_INIT;
    char *now = NULL, *id = NULL;

    add(db, "cmp_1", "alice", 0, 1);
    add(db, "cmp_2", "alice", 0, 2);
    assert_int_equal(wb_queue_take(db, &((struct place *)*state)->pools, 3, &id, NULL), 0);
    free(id);
    assert_int_equal(wb_queue_cancel(db, "cmp_1", 4, &now, NULL), 0);
    assert_string_equal(now, "running");
    free(WB_STEAL(now));
    assert_int_equal(wb_queue_cancel(db, "cmp_1", 4, &now, NULL), 0); /* twice is fine */
    free(WB_STEAL(now));
    assert_int_equal(wb_queue_cancel(db, "cmp_2", 4, &now, NULL), 0);
    assert_string_equal(now, "cancelled");
    free(WB_STEAL(now));
    assert_int_equal(wb_queue_cancel(db, "cmp_2", 5, &now, &err), -WB_CONFLICT);
    assert_string_equal(err.root, "campaign cmp_2 is over: cancelled");
    assert_int_equal(wb_queue_cancel(db, "cmp_3", 5, &now, &err), -WB_NOT_FOUND);
    /* The end of one that is not running changes nothing. */
    assert_int_equal(wb_queue_end(db, "cmp_2", "finished", NULL, 9, NULL), 0);
    assert_int_equal(wb_queue_cancel(db, "cmp_2", 5, &now, &err), -WB_CONFLICT);
    assert_string_equal(err.root, "campaign cmp_2 is over: cancelled");
}

static void a_key_makes_one_campaign(void **state)
{
    struct wb_db *db = ((struct place *)*state)->db;
    struct wb_submission s = {
        .id = "cmp_1", .study = "forms", .token = "alice", .key = "k", .digest = "d1"};
    struct wb_err err = WB_ERR_INIT;
    char *earlier = NULL;
    int64_t n = 0;

    assert_int_equal(wb_queue_add(db, &s, 1000, &earlier, NULL), 0);
    assert_null(earlier);
    s.id = "cmp_2";
    assert_int_equal(wb_queue_add(db, &s, 2000, &earlier, NULL), 0);
    assert_string_equal(earlier, "cmp_1");
    free(WB_STEAL(earlier));
    s.digest = "d2";
    assert_int_equal(wb_queue_add(db, &s, 3000, &earlier, &err), -WB_CONFLICT);
    assert_non_null(strstr(err.root, "cmp_1"));
    s.token = "bob"; /* another's key is another key */
    assert_int_equal(wb_queue_add(db, &s, 3000, &earlier, NULL), 0);
    assert_null(earlier);
    s.token = "alice"; /* a day later it is free again */
    s.id = "cmp_3";
    assert_int_equal(wb_queue_add(db, &s, 1000 + WB_KEY_AGE_MS, &earlier, NULL), 0);
    assert_null(earlier);
    assert_int_equal(wb_queue_count(db, "queued", &n, NULL), 0);
    assert_int_equal(n, 3);
}

static void lists_page_by_id(void **state)
{
    struct wb_db *db = ((struct place *)*state)->db;
    WB_AUTO_JSON wb_json *a = NULL;
    WB_AUTO_JSON wb_json *b = NULL;

    add(db, "cmp_1", "alice", 0, 1);
    add(db, "cmp_2", "alice", 0, 2);
    add(db, "cmp_3", "alice", 0, 3);
    assert_int_equal(wb_queue_list(db, NULL, NULL, 2, &a, NULL), 0);
    assert_int_equal(wb_json_len(a), 2);
    assert_string_equal(wb_json_str_or(wb_json_at(a, 0), "id", ""), "cmp_3");
    add(db, "cmp_4", "alice", 0, 4); /* what comes meanwhile does not move a page */
    assert_int_equal(wb_queue_list(db, "queued", "cmp_2", 2, &b, NULL), 0);
    assert_int_equal(wb_json_len(b), 1);
    assert_string_equal(wb_json_str_or(wb_json_at(b, 0), "id", ""), "cmp_1");
}

/* As the first version made it, with one campaign that runs and one that waits. */
static const char version_1[] =
    "CREATE TABLE campaigns("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, study TEXT NOT NULL,"
    " state TEXT NOT NULL, priority INTEGER NOT NULL, token TEXT NOT NULL, reason TEXT,"
    " labels TEXT NOT NULL, runs INTEGER NOT NULL, arms INTEGER NOT NULL,"
    " rounds INTEGER NOT NULL, forecast_s REAL NOT NULL, submitted_ms INTEGER NOT NULL,"
    " started_ms INTEGER, ended_ms INTEGER, cancel INTEGER NOT NULL DEFAULT 0,"
    " starts INTEGER NOT NULL DEFAULT 0, detail TEXT, key TEXT, digest TEXT, rerun_of TEXT"
    ") STRICT;"
    "CREATE INDEX campaigns_state ON campaigns(state);"
    "CREATE INDEX campaigns_key ON campaigns(token, key) WHERE key IS NOT NULL;"
    "CREATE INDEX campaigns_turn ON campaigns(token, started_ms);"
    "CREATE TABLE tokens("
    " id TEXT PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, hash TEXT NOT NULL,"
    " scopes TEXT NOT NULL, parent TEXT, created_ms INTEGER NOT NULL, expires_ms INTEGER,"
    " used_ms INTEGER) STRICT;"
    "CREATE TABLE audit("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL, token TEXT,"
    " request TEXT NOT NULL, method TEXT NOT NULL, path TEXT NOT NULL, status INTEGER NOT NULL"
    ") STRICT;"
    "INSERT INTO tokens VALUES('ses', 'x', 'session', 'h', '[\"read\"]', 'alice', 1, NULL, NULL);"
    "INSERT INTO campaigns(id, study, state, priority, token, labels, runs, arms, rounds,"
    " forecast_s, submitted_ms, started_ms, key, digest) VALUES"
    " ('cmp_1','forms','running',0,'alice','[\"n\"]',4,2,2,1.5,1000,2000,'k','d'),"
    " ('cmp_2','forms','queued',0,'ses','[]',4,2,2,1.5,3000,NULL,NULL,NULL);"
    "PRAGMA user_version=1;";

static void an_older_database_is_brought_up(void **state)
{
    struct place *p = *state;
    WB_AUTO_FREE char *path = wb_strf("%s/old.db", p->dir);
    WB_AUTO_JSON wb_json *leases = NULL;
    WB_AUTO_JSON wb_json *c = NULL;
    struct wb_db *db = NULL;
    char *id = NULL;
    int64_t n = 0;

    assert_int_equal(wb_db_open(path, WB_DB_CREATE, 1000, &db, NULL), 0);
    assert_int_equal(wb_db_exec(db, version_1, NULL), 0);
    wb_db_close(db);
    for (int again = 0; again < 2; again++) { /* the second time there is nothing to do */
        assert_int_equal(wb_queue_open(path, &db, NULL), 0);
        assert_int_equal(wb_db_version(db, &n, NULL), 0);
        assert_int_equal(n, 3);
        wb_db_close(db);
    }
    assert_int_equal(wb_queue_open(path, &db, NULL), 0);
    assert_int_equal(wb_queue_get(db, "cmp_1", &c, NULL), 0);
    assert_string_equal(wb_json_str_or(c, "pool", ""), "local");
    assert_int_equal(wb_json_int_or(c, "hosts", 0), 1);
    assert_int_equal(wb_leases_list(db, "cmp_1", &leases, NULL), 0);
    assert_int_equal(wb_json_len(leases), 1); /* it holds this machine */
    assert_int_equal(wb_queue_take(db, &p->pools, 4000, &id, NULL), 0);
    assert_null(id);
    assert_int_equal(wb_queue_find_key(db, "alice", "k", "d", 4000, &id, NULL), 0);
    assert_string_equal(id, "cmp_1");
    free(WB_STEAL(id));
    assert_int_equal(wb_queue_end(db, "cmp_1", "finished", NULL, 5000, NULL), 0);
    assert_int_equal(wb_lease_end(db, "local", "cmp_1", NULL), 0);
    assert_int_equal(wb_queue_take(db, &p->pools, 6000, &id, NULL), 0);
    assert_string_equal(id, "cmp_2");
    free(id);
    /* A session's campaign is its maker's. */
    assert_int_equal(wb_db_int(db, "SELECT count(*) FROM campaigns WHERE user='alice'", &n, NULL),
                     0);
    assert_int_equal(n, 2);
    wb_db_close(db);
}

/* A step that fails half way leaves what was there. */
static void a_broken_upgrade_changes_nothing(void **state)
{
    struct place *p = *state;
    WB_AUTO_FREE char *path = wb_strf("%s/old.db", p->dir);
    struct wb_db *db = NULL;
    struct wb_err err = WB_ERR_INIT;
    int64_t n = 0;

    assert_int_equal(wb_db_open(path, WB_DB_CREATE, 1000, &db, NULL), 0);
    assert_int_equal(wb_db_exec(db, version_1, NULL), 0);
    assert_int_equal(wb_db_exec(db, "CREATE TABLE passes(x INTEGER)", NULL), 0);
    wb_db_close(db);
    assert_int_not_equal(wb_queue_open(path, &db, &err), 0);
    assert_int_equal(wb_db_open(path, WB_DB_WRITE, 1000, &db, NULL), 0);
    assert_int_equal(wb_db_version(db, &n, NULL), 0);
    assert_int_equal(n, 1);
    assert_int_equal(
        wb_db_int(db, "SELECT count(*) FROM sqlite_master WHERE name='leases'", &n, NULL), 0);
    assert_int_equal(n, 0);
    wb_db_close(db);
}

static void rounds_are_added_once(void **state)
{
    struct wb_db *db = ((struct place *)*state)->db;
    const struct wb_queue_key key = {
        .token = "alice", .key = "k", .digest = "d", .campaign = "cmp_1"};
    WB_AUTO_JSON wb_json *c = NULL;
    struct wb_err err = WB_ERR_INIT;
    char *id = NULL;

    add(db, "cmp_1", "alice", 0, 1);
    assert_int_equal(wb_queue_extend(db, "cmp_1", 3, &key, 2, NULL), 0);
    assert_int_equal(wb_queue_find_key(db, "alice", "k", "d", 3, &id, NULL), 0);
    assert_string_equal(id, "cmp_1");
    free(WB_STEAL(id));
    assert_int_equal(wb_queue_find_key(db, "alice", "k", "e", 3, &id, &err), -WB_CONFLICT);
    assert_int_equal(wb_queue_get(db, "cmp_1", &c, NULL), 0);
    assert_int_equal(wb_json_int_or(c, "rounds", 0), 5);
    assert_int_equal(wb_json_int_or(c, "runs", 0), 10);
    assert_int_equal(wb_json_int_or(c, "rounds_to_add", 0), 3);
    assert_int_equal(wb_queue_extended(db, "cmp_1", 3, NULL), 0);
    wb_json_free(WB_STEAL(c));
    assert_int_equal(wb_queue_get(db, "cmp_1", &c, NULL), 0);
    assert_int_equal(wb_json_int_or(c, "rounds_to_add", -1), 0);
    assert_int_equal(wb_queue_extend(db, "cmp_1", WB_QUEUE_ROUNDS_MAX, NULL, 2, &err),
                     -WB_CONFLICT);
    assert_int_equal(wb_queue_extend(db, "cmp_2", 1, NULL, 2, &err), -WB_NOT_FOUND);
    assert_int_equal(wb_queue_cancel(db, "cmp_1", 9, &id, NULL), 0);
    free(id);
    assert_int_equal(wb_queue_extend(db, "cmp_1", 1, NULL, 2, &err), -WB_CONFLICT);
    assert_int_equal(wb_queue_resume(db, "cmp_1", NULL, 10, &err),
                     -WB_CONFLICT); /* it never began */
}

/* Two requests with one key that looked it up before either was done. */
static void a_key_extends_once(void **state)
{
    struct place *p = *state;
    struct wb_queue_key key = {.token = "alice", .key = "k", .digest = "d", .campaign = "cmp_1"};
    WB_AUTO_JSON wb_json *c = NULL;
    struct wb_err err = WB_ERR_INIT;

    add(p->db, "cmp_1", "alice", 0, 1);
    assert_int_equal(wb_queue_extend(p->db, "cmp_1", 3, &key, 2, NULL), 0);
    assert_int_equal(wb_queue_extend(p->db, "cmp_1", 3, &key, 3, NULL), 0);
    key.digest = "e";
    assert_int_equal(wb_queue_extend(p->db, "cmp_1", 4, &key, 3, &err), -WB_CONFLICT);
    assert_non_null(strstr(err.root, "Idempotency-Key"));
    assert_int_equal(wb_queue_get(p->db, "cmp_1", &c, NULL), 0);
    assert_int_equal(wb_json_int_or(c, "rounds", 0), 5);
    assert_int_equal(wb_json_int_or(c, "rounds_to_add", 0), 3);
    key.digest = "d"; /* a day later it is free again */
    assert_int_equal(wb_queue_extend(p->db, "cmp_1", 1, &key, 3 + WB_KEY_AGE_MS, NULL), 0);
    wb_json_free(WB_STEAL(c));
    assert_int_equal(wb_queue_get(p->db, "cmp_1", &c, NULL), 0);
    assert_int_equal(wb_json_int_or(c, "rounds", 0), 6);
}

static void a_key_resumes_once(void **state)
{
    struct place *p = *state;
    const struct wb_queue_key key = {
        .token = "alice", .key = "k", .digest = "d", .campaign = "cmp_1"};
    char *id = NULL;

    add(p->db, "cmp_1", "alice", 0, 1);
    assert_int_equal(wb_queue_take(p->db, &p->pools, 2, &id, NULL), 0);
    free(id);
    assert_int_equal(wb_queue_end(p->db, "cmp_1", "failed", NULL, 3, NULL), 0);
    assert_int_equal(wb_queue_resume(p->db, "cmp_1", &key, 4, NULL), 0);
    assert_int_equal(wb_queue_resume(p->db, "cmp_1", &key, 5, NULL), 0);
    assert_int_equal(wb_queue_resume(p->db, "cmp_1", NULL, 6, NULL), -WB_CONFLICT);
}

/* Rounds that were accepted after the dispatcher had looked are not lost with the end. */
static void an_end_waits_for_rounds_that_were_accepted(void **state)
{
    static const struct {
        const char *end;
        int64_t more;
        bool cancel, ends;
    } rows[] = {{"finished", 0, false, true},
                {"finished", 2, false, false},
                {"finished", 2, true, true},
                {"failed", 2, false, true},
                {"interrupted", 2, false, true}};
    struct place *p = *state;

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_FREE char *id = wb_strf("cmp_%zu", i);
        WB_AUTO_JSON wb_json *c = NULL;
        char *got = NULL;

        add(p->db, id, "alice", 0, 1);
        assert_int_equal(wb_queue_take(p->db, &p->pools, 2, &got, NULL), 0);
        free(WB_STEAL(got));
        if (rows[i].more)
            assert_int_equal(wb_queue_extend(p->db, id, rows[i].more, NULL, 3, NULL), 0);
        if (rows[i].cancel) {
            assert_int_equal(wb_queue_cancel(p->db, id, 4, &got, NULL), 0);
            free(got);
        }
        assert_int_equal(wb_queue_end(p->db, id, rows[i].end, NULL, 5, NULL), 0);
        assert_int_equal(wb_db_changes(p->db), rows[i].ends);
        assert_int_equal(wb_queue_get(p->db, id, &c, NULL), 0);
        assert_string_equal(wb_json_str_or(c, "state", ""), rows[i].ends ? rows[i].end : "running");
        if (!rows[i].ends) {
            assert_int_equal(wb_queue_extended(p->db, id, rows[i].more, NULL), 0);
            assert_int_equal(wb_queue_end(p->db, id, rows[i].end, NULL, 6, NULL), 0);
            assert_int_equal(wb_db_changes(p->db), 1);
        }
        assert_int_equal(wb_lease_end(p->db, "local", id, NULL), 0);
    }
}

/* Extensions do not use up the attempts of the engine. */
static void an_extension_has_attempts_of_its_own(void **state)
{
    struct place *p = *state;
    int64_t starts = 0;
    char *id = NULL;

    add(p->db, "cmp_1", "alice", 0, 1);
    assert_int_equal(wb_queue_take(p->db, &p->pools, 2, &id, NULL), 0);
    free(id);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(wb_queue_started(p->db, "cmp_1", &starts, NULL), 0);
        assert_int_equal(starts, i ? 2 : 1);
        assert_int_equal(wb_queue_extend(p->db, "cmp_1", 1, NULL, 3, NULL), 0);
        assert_int_equal(wb_queue_extended(p->db, "cmp_1", 1, NULL), 0);
    }
}

static void only_so_many_wait(void **state)
{
    struct place *p = *state;
    const struct wb_submission s = {
        .id = "cmp_more", .study = "forms", .token = "alice", .key = "k", .digest = "d"};
    struct wb_err err = WB_ERR_INIT;
    char *earlier = NULL, *now = NULL, *id = NULL;
    int64_t n = 0;

    add(p->db, "cmp_old", "alice", 0, 1);
    assert_int_equal(wb_queue_take(p->db, &p->pools, 2, &id, NULL), 0);
    free(id);
    assert_int_equal(wb_queue_end(p->db, "cmp_old", "failed", NULL, 3, NULL), 0);
    assert_int_equal(
        wb_db_exec(p->db,
                   "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<1000)"
                   " INSERT INTO campaigns(id, study, state, priority, token, labels, runs, arms,"
                   " rounds, forecast_s, submitted_ms, user) SELECT 'cmp_'||i, 's', 'queued', 0,"
                   " 't', '[]', 1, 1, 1, 1.0, i, 'u'||(i%7) FROM n",
                   NULL),
        0);
    assert_int_equal(WB_QUEUE_WAITING_MAX, 1000);
    assert_int_equal(wb_queue_add(p->db, &s, 4, &earlier, &err), -WB_CONFLICT);
    assert_int_equal(err.sys, EAGAIN);
    assert_non_null(strstr(err.root, "1000 campaigns wait"));
    err = (struct wb_err)WB_ERR_INIT;
    assert_int_equal(wb_queue_resume(p->db, "cmp_old", NULL, 4, &err), -WB_CONFLICT);
    assert_int_equal(err.sys, EAGAIN);
    assert_int_equal(wb_queue_cancel(p->db, "cmp_7", 5, &now, NULL), 0);
    free(now);
    assert_int_equal(wb_queue_add(p->db, &s, 6, &earlier, NULL), 0);
    assert_null(earlier);
    assert_int_equal(wb_queue_add(p->db, &s, 7, &earlier, NULL), 0); /* its key is known */
    assert_string_equal(earlier, "cmp_more");
    free(earlier);
    assert_int_equal(wb_queue_count(p->db, "queued", &n, NULL), 0);
    assert_int_equal(n, 1000);
}

/* While everything only waits, nobody is kept from writing, and a writer keeps nobody waiting. */
static void looking_at_the_queue_takes_no_lock(void **state)
{
    struct place *p = *state;
    struct wb_db *other = NULL;
    char *id = NULL;

    add(p->db, "cmp_1", "alice", 0, 1);
    add(p->db, "cmp_2", "alice", 0, 2);
    assert_int_equal(wb_queue_take(p->db, &p->pools, 3, &id, NULL), 0);
    free(WB_STEAL(id));
    assert_int_equal(wb_queue_open(p->path, &other, NULL), 0);
    assert_int_equal(wb_db_exec(p->db, "PRAGMA busy_timeout=0", NULL), 0);
    assert_int_equal(wb_db_begin(other, NULL), 0); /* holds the lock for writing */
    assert_int_equal(wb_queue_take(p->db, &p->pools, 4, &id, NULL), 0);
    assert_null(id);
    wb_db_rollback(other);
    wb_db_close(other);
}

/* A long history must not be read again at every look. */
static void what_is_looked_for_has_an_index(void **state)
{
    static const struct {
        const char *sql, *index;
    } rows[] = {
        {"SELECT id FROM campaigns WHERE state='finished' AND id<'x' ORDER BY id DESC LIMIT 9",
         "campaigns_page (state=? AND id<?)"},
        {"SELECT min(submitted_ms) FROM campaigns WHERE state='queued' AND user='u'",
         "campaigns_wait (state=? AND user=?)"},
        {"SELECT max(started_ms) FROM campaigns WHERE user='u'", "campaigns_user (user=?)"},
        {"SELECT count(*) FROM campaigns WHERE state='queued'", "COVERING INDEX"},
    };
    struct place *p = *state;

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_FREE char *sql = wb_strf("EXPLAIN QUERY PLAN %s", rows[i].sql);
        struct wb_stmt *s = NULL;
        bool row = false;

        assert_int_equal(wb_db_prepare(p->db, sql, &s, NULL), 0);
        assert_int_equal(wb_stmt_step(s, &row, NULL), 0);
        assert_true(row);
        if (!strstr(wb_stmt_text(s, 3), rows[i].index))
            fail_msg("%s: %s", rows[i].sql, wb_stmt_text(s, 3));
        assert_int_equal(wb_stmt_step(s, &row, NULL), 0); /* one step, nothing is sorted */
        assert_false(row);
        wb_stmt_free(s);
    }
}

static void what_was_interrupted_goes_on(void **state)
{
    static const struct {
        const char *end;
        int rc;
    } rows[] = {{"interrupted", 0},
                {"failed", 0},
                {"cancelled", 0},
                {"incomplete", 0},
                {"finished", -WB_CONFLICT}};
    struct place *p = *state;
    struct wb_db *db = p->db;

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_FREE char *id = wb_strf("cmp_%zu", i);
        WB_AUTO_FREE char *got = NULL;
        struct wb_err err = WB_ERR_INIT;

        add(db, id, "alice", 0, 1);
        assert_int_equal(wb_queue_take(db, &p->pools, 2, &got, NULL), 0);
        assert_string_equal(got, id);
        assert_int_equal(wb_queue_resume(db, id, NULL, 10, &err), -WB_CONFLICT); /* it runs */
        assert_int_equal(wb_queue_end(db, id, rows[i].end, "why", 3, NULL), 0);
        assert_int_equal(wb_queue_resume(db, id, NULL, 10, &err), rows[i].rc);
        if (rows[i].rc == 0) { /* its own lease, not ended yet, does not hold it up for ever */
            assert_int_equal(wb_lease_end(db, "local", id, NULL), 0);
            free(WB_STEAL(got));
            assert_int_equal(wb_queue_take(db, &p->pools, 4, &got, NULL), 0);
            assert_string_equal(got, id);
            assert_int_equal(wb_queue_end(db, id, "finished", NULL, 5, NULL), 0);
        }
        assert_int_equal(wb_lease_end(db, "local", id, NULL), 0);
    }
}

/* Others write all the time; a token is known all the same, and its use is written down later. */
static void writers_do_not_lock_readers_out(void **state)
{
    struct place *p = *state;
    const struct wb_token_ask ask = {.name = "ci", .scopes = WB_SCOPE_READ};
    WB_AUTO_FREE char *text = NULL;
    struct wb_token token = {0};
    struct wb_db *other = NULL;
    int64_t used = 0;

    assert_int_equal(wb_token_make(p->db, &ask, 1000, &text, NULL), 0);
    assert_int_equal(wb_queue_open(p->path, &other, NULL), 0);
    assert_int_equal(wb_db_exec(other, "PRAGMA busy_timeout=0; PRAGMA synchronous=OFF", NULL), 0);
    assert_int_equal(wb_db_begin(p->db, NULL), 0); /* holds the lock for writing */
    assert_int_equal(wb_token_check(other, text, 100000, &token, NULL), 0);
    wb_token_release(&token);
    wb_db_rollback(p->db);
    assert_int_equal(wb_token_check(other, text, 200000, &token, NULL), 0);
    wb_token_release(&token);
    assert_int_equal(wb_db_int(other, "SELECT used_ms FROM tokens", &used, NULL), 0);
    assert_int_equal(used, 200000);
    wb_db_close(other);
}

static void a_newer_database_is_left_alone(void **state)
{
    struct place *p = *state;
    struct wb_db *db = NULL;
    struct wb_err err = WB_ERR_INIT;

    assert_int_equal(wb_db_set_version(p->db, 99, NULL), 0);
    assert_int_equal(wb_queue_open(p->path, &db, &err), -WB_UNSUPPORTED);
}

static char *make_token(struct wb_db *db, unsigned scopes, int64_t expires, const char *parent)
{
    const struct wb_token_ask ask = {
        .name = "ci", .scopes = scopes, .expires_ms = expires, .parent = parent};
    char *text = NULL;

    assert_int_equal(wb_token_make(db, &ask, 1000, &text, NULL), 0);
    return text;
}

static void tokens_are_checked(void **state)
{
    struct wb_db *db = ((struct place *)*state)->db;
    WB_AUTO_FREE char *text = make_token(db, WB_SCOPE_READ | WB_SCOPE_RUNS, 5000, NULL);
    WB_AUTO_FREE char *stored = NULL;
    WB_AUTO_JSON wb_json *list = NULL;
    struct wb_token t = {0};
    size_t n = strlen(text), size = 0;
    bool any = false;

    assert_int_equal(n, 63);
    assert_int_equal(wb_token_check(db, text, 2000, &t, NULL), 0);
    assert_int_equal(t.scopes, WB_SCOPE_READ | WB_SCOPE_RUNS);
    assert_string_equal(t.name, "ci");
    assert_false(t.session);
    wb_token_release(&t);
    assert_int_equal(wb_token_check(db, text, 5000, &t, NULL), -WB_NOT_FOUND); /* it has ended */
    text[n - 1] = text[n - 1] == 'a' ? 'b' : 'a';
    assert_int_equal(wb_token_check(db, text, 2000, &t, NULL), -WB_NOT_FOUND);
    text[n - 1] = '\0';
    assert_int_equal(wb_token_check(db, text, 2000, &t, NULL), -WB_NOT_FOUND);
    assert_int_equal(wb_token_check(db, "", 2000, &t, NULL), -WB_NOT_FOUND);
    assert_int_equal(wb_token_list(db, &list, NULL), 0);
    assert_int_equal(wb_json_len(list), 1);
    assert_null(wb_json_get(wb_json_at(list, 0), "hash"));
    assert_int_equal(wb_token_any(db, &any, NULL), 0);
    assert_true(any);
    /* The secret is nowhere in the files. */
    wb_db_close(((struct place *)*state)->db);
    ((struct place *)*state)->db = NULL;
    assert_int_equal(wb_file_read(((struct place *)*state)->path, 8u << 20, &stored, &size, NULL),
                     0);
    assert_null(memmem(stored, size, text + 20, n - 21));
}

static void sessions_end_with_their_token(void **state)
{
    struct wb_db *db = ((struct place *)*state)->db;
    WB_AUTO_FREE char *text = make_token(db, WB_SCOPE_ALL, 0, NULL);
    WB_AUTO_FREE char *session = NULL;
    struct wb_token t = {0}, s = {0};
    bool alive = false;

    assert_int_equal(wb_token_check(db, text, 2000, &t, NULL), 0);
    session = make_token(db, t.scopes, 9000, t.id);
    assert_int_equal(wb_token_check(db, session, 2000, &s, NULL), 0);
    assert_true(s.session);
    assert_int_equal(wb_token_alive(db, s.id, 2000, &alive, NULL), 0);
    assert_true(alive);
    assert_int_equal(wb_token_alive(db, s.id, 9000, &alive, NULL), 0); /* it has ended */
    assert_false(alive);
    assert_int_equal(wb_token_alive(db, t.id, 9000, &alive, NULL), 0);
    assert_true(alive);
    assert_int_equal(wb_token_revoke(db, t.id, NULL), 0);
    assert_int_equal(wb_token_alive(db, s.id, 2000, &alive, NULL), 0);
    assert_false(alive);
    assert_int_equal(wb_token_alive(db, t.id, 2000, &alive, NULL), 0);
    assert_false(alive);
    wb_token_release(&s);
    assert_int_equal(wb_token_check(db, session, 2000, &s, NULL), -WB_NOT_FOUND);
    assert_int_equal(wb_token_check(db, text, 2000, &s, NULL), -WB_NOT_FOUND);
    assert_int_equal(wb_token_revoke(db, t.id, NULL), -WB_NOT_FOUND);
    wb_token_release(&t);
}

static void scopes_have_names(void **state)
{
    static const struct {
        const char *json;
        int rc;
        unsigned set;
    } rows[] = {
        {"[\"read\"]", 0, WB_SCOPE_READ},
        {"[\"read\",\"runs:write\",\"read\"]", 0, WB_SCOPE_READ | WB_SCOPE_RUNS},
        {"[\"annotate\",\"hosts:admin\",\"tokens:admin\"]", 0,
         WB_SCOPE_ANNOTATE | WB_SCOPE_HOSTS | WB_SCOPE_TOKENS},
        {"[]", -WB_INVALID, 0},
        {"\"read\"", -WB_INVALID, 0},
        {"[1]", -WB_INVALID, 0},
        {"[\"admin\"]", -WB_INVALID, 0},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_JSON wb_json *doc = NULL;
        WB_AUTO_JSON wb_json *j = NULL;
        WB_AUTO_FREE char *text = wb_strf("{\"s\":%s}", rows[i].json);
        unsigned set = 0;

        assert_int_equal(wb_json_parse(text, strlen(text), &doc, NULL), 0);
        assert_int_equal(wb_scopes_read(wb_json_get(doc, "s"), &set, NULL), rows[i].rc);
        assert_int_equal(set, rows[i].set);
        j = wb_scopes_json(set);
        if (rows[i].rc == 0)
            assert_int_equal(wb_scopes_read(j, &set, NULL), 0);
        assert_int_equal(set, rows[i].set);
    }
}

static void the_audit_log_pages(void **state)
{
    struct wb_db *db = ((struct place *)*state)->db;
    WB_AUTO_JSON wb_json *list = NULL;

    for (int i = 0; i < 5; i++) {
        const struct wb_audit a = {
            .token = "t", .request = "r", .method = "POST", .path = "/x", .status = 200 + i};

        assert_int_equal(wb_audit_add(db, &a, 1000 + i, NULL), 0);
    }
    assert_int_equal(wb_audit_list(db, 4, 2, &list, NULL), 0);
    assert_int_equal(wb_json_len(list), 2);
    assert_int_equal(wb_json_int_or(wb_json_at(list, 0), "status", 0), 202);
    assert_int_equal(wb_json_int_or(wb_json_at(list, 1), "status", 0), 201);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(turns_are_fair),
        TEST(only_so_many_run),
        TEST(cancel_is_legal_until_the_end),
        TEST(a_key_makes_one_campaign),
        TEST(lists_page_by_id),
        TEST(a_newer_database_is_left_alone),
        TEST(writers_do_not_lock_readers_out),
        TEST(an_older_database_is_brought_up),
        TEST(a_broken_upgrade_changes_nothing),
        TEST(rounds_are_added_once),
        TEST(a_key_extends_once),
        TEST(a_key_resumes_once),
        TEST(an_end_waits_for_rounds_that_were_accepted),
        TEST(an_extension_has_attempts_of_its_own),
        TEST(only_so_many_wait),
        TEST(looking_at_the_queue_takes_no_lock),
        TEST(what_is_looked_for_has_an_index),
        TEST(what_was_interrupted_goes_on),
        TEST(tokens_are_checked),
        TEST(sessions_end_with_their_token),
        TEST(scopes_have_names),
        TEST(the_audit_log_pages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
