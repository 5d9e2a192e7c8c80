#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/base/child.h"
#include "server/base/clock.h"
#include "server/base/db.h"
#include "server/base/file.h"
#include "server/base/mem.h"

struct place {
    char dir[32];
    char *path;
};

static int setup(void **state)
{
    struct place *p = wb_calloc(1, sizeof(*p));

    memcpy(p->dir, "/tmp/wb-db-XXXXXX", sizeof("/tmp/wb-db-XXXXXX"));
    assert_non_null(mkdtemp(p->dir));
    p->path = wb_strf("%s/a.db", p->dir);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;

    assert_int_equal(wb_remove_tree(p->dir, NULL), 0);
    free(p->path);
    free(p);
    return 0;
}

static struct wb_db *make(const struct place *p)
{
    struct wb_db *db = NULL;

    assert_int_equal(wb_db_open(p->path, WB_DB_CREATE, 0, &db, NULL), 0);
    assert_int_equal(wb_db_exec(db,
                                "CREATE TABLE IF NOT EXISTS t(k TEXT PRIMARY KEY, n INTEGER, "
                                "r REAL, b BLOB) STRICT",
                                NULL),
                     0);
    return db;
}

static void values_come_back(void **state)
{
    struct wb_db *db = make(*state);
    WB_AUTO_STMT struct wb_stmt *in = NULL;
    WB_AUTO_STMT struct wb_stmt *out = NULL;
    struct stat st;
    bool row = false;
    size_t n = 0;

    assert_int_equal(stat(((struct place *)*state)->path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(wb_db_prepare(db, "INSERT INTO t VALUES(?1,?2,?3,?4)", &in, NULL), 0);
    wb_stmt_set_text(in, 1, "it's; DROP TABLE t");
    wb_stmt_set_int(in, 2, INT64_MIN);
    wb_stmt_set_real(in, 3, 0.1);
    wb_stmt_set_blob(in, 4, "a\0b", 3);
    assert_int_equal(wb_stmt_step(in, NULL, NULL), 0);
    assert_int_equal(wb_db_changes(db), 1);
    wb_stmt_reset(in);
    wb_stmt_set_text(in, 1, "null");
    wb_stmt_set_blob(in, 4, NULL, 0);
    assert_int_equal(wb_stmt_step(in, NULL, NULL), 0);

    assert_int_equal(wb_db_prepare(db, "SELECT * FROM t ORDER BY k", &out, NULL), 0);
    assert_int_equal(wb_stmt_step(out, &row, NULL), 0);
    assert_true(row);
    assert_string_equal(wb_stmt_text(out, 0), "it's; DROP TABLE t");
    assert_true(wb_stmt_int(out, 1) == INT64_MIN);
    assert_true(wb_stmt_real(out, 2) == 0.1);
    assert_memory_equal(wb_stmt_blob(out, 3, &n), "a\0b", 3);
    assert_int_equal(n, 3);
    assert_int_equal(wb_stmt_step(out, &row, NULL), 0);
    assert_true(row);
    assert_true(wb_stmt_is_null(out, 3));
    assert_null(wb_stmt_blob(out, 3, &n));
    assert_int_equal(n, 0);
    assert_int_equal(wb_stmt_step(out, &row, NULL), 0);
    assert_false(row);
    wb_stmt_free(WB_STEAL(in));
    wb_stmt_free(WB_STEAL(out));
    wb_db_close(db);
}

static void constraints_and_locks_are_conflicts(void **state)
{
    struct wb_db *db = make(*state), *other = NULL;
    struct wb_err err = WB_ERR_INIT;

    assert_int_equal(wb_db_open(((struct place *)*state)->path, WB_DB_WRITE, 0, &other, NULL), 0);
    assert_int_equal(wb_db_begin(db, NULL), 0);
    assert_int_equal(wb_db_exec(db, "INSERT INTO t(k) VALUES('a')", NULL), 0);
    assert_int_equal(wb_db_begin(other, &err), -WB_CONFLICT);
    assert_int_equal(wb_db_commit(db, NULL), 0);
    assert_int_equal(wb_db_exec(other, "INSERT INTO t(k) VALUES('a')", &err), -WB_CONFLICT);
    assert_non_null(strstr(err.root, "UNIQUE"));
    assert_int_equal(wb_db_exec(other, "INSERT INTO nothing VALUES(1)", &err), -WB_INVALID);
    wb_db_close(other);
    wb_db_close(db);
}

static void rollback_undoes(void **state)
{
    struct wb_db *db = make(*state);
    WB_AUTO_STMT struct wb_stmt *s = NULL;

    wb_db_rollback(db); /* nothing is open: nothing happens */
    assert_int_equal(wb_db_begin(db, NULL), 0);
    assert_int_equal(wb_db_exec(db, "INSERT INTO t(k) VALUES('a')", NULL), 0);
    wb_db_rollback(db);
    assert_int_equal(wb_db_prepare(db, "SELECT count(*) FROM t", &s, NULL), 0);
    assert_int_equal(wb_stmt_step(s, NULL, NULL), 0);
    assert_int_equal(wb_stmt_int(s, 0), 0);
    wb_stmt_free(WB_STEAL(s));
    wb_db_close(db);
}

static void versions_and_modes(void **state)
{
    const struct place *p = *state;
    struct wb_db *db = NULL;
    struct wb_err err = WB_ERR_INIT;
    int64_t version = -1;

    assert_int_equal(wb_db_open(p->path, WB_DB_READ, 0, &db, &err), -WB_NOT_FOUND);
    assert_int_equal(wb_db_open(p->path, WB_DB_WRITE, 0, &db, &err), -WB_NOT_FOUND);
    db = make(p);
    assert_int_equal(wb_db_version(db, &version, NULL), 0);
    assert_int_equal(version, 0);
    assert_int_equal(wb_db_set_version(db, 7, NULL), 0);
    wb_db_close(db);
    assert_int_equal(wb_db_open(p->path, WB_DB_READ, 0, &db, NULL), 0);
    assert_int_equal(wb_db_version(db, &version, NULL), 0);
    assert_int_equal(version, 7);
    assert_int_equal(wb_db_exec(db, "INSERT INTO t(k) VALUES('a')", &err), -WB_IO);
    assert_int_equal(wb_db_check(db, NULL), 0);
    wb_db_close(db);
}

static void damage_is_told(void **state)
{
    const struct place *p = *state;
    struct wb_db *db = NULL;
    struct wb_err err = WB_ERR_INIT;
    char text[8192];

    memset(text, 'x', sizeof(text));
    assert_int_equal(wb_file_put(p->path, text, sizeof(text), NULL), 0);
    assert_int_equal(wb_db_open(p->path, WB_DB_WRITE, 0, &db, &err), -WB_CORRUPT);
    assert_non_null(strstr(err.root, p->path));
}

static void a_bad_bind_is_told_by_the_step(void **state)
{
    struct wb_db *db = make(*state);
    WB_AUTO_STMT struct wb_stmt *s = NULL;
    struct wb_err err = WB_ERR_INIT;

    assert_int_equal(wb_db_prepare(db, "INSERT INTO t(k) VALUES(?1)", &s, NULL), 0);
    wb_stmt_set_text(s, 2, "there is no second one");
    assert_int_equal(wb_stmt_step(s, NULL, &err), -WB_LIMIT);
    wb_stmt_reset(s);
    wb_stmt_set_text(s, 1, "a");
    assert_int_equal(wb_stmt_step(s, NULL, NULL), 0);
    wb_stmt_free(WB_STEAL(s));
    wb_db_close(db);
}

/* Another process opens the file, reads, closes. */
static int64_t others_count(const char *path)
{
    WB_AUTO_FREE char *self = wb_strdup("/proc/self/exe");
    WB_AUTO_FREE char *copy = wb_strdup(path);
    char *argv[] = {self, copy, NULL};
    const struct wb_child_spec spec = {.argv = argv, .limit_ns = 30 * WB_SEC};
    struct wb_child_result res;
    int64_t n;

    assert_int_equal(wb_child_check(&spec, &res, NULL), 0);
    n = strtoll(wb_buf_str(&res.out), NULL, 10);
    wb_child_release(&res);
    return n;
}

/* Whoever comes and goes meanwhile, what is written here stays. */
static void other_processes_take_nothing_away(void **state)
{
    struct place *p = *state;
    struct wb_db *a = make(p), *b = make(p); /* as several threads have it */
    WB_AUTO_FREE char *wal = wb_strf("%s-wal", p->path);

    for (int64_t i = 1; i <= 3; i++) {
        WB_AUTO_FREE char *sql = wb_strf("INSERT INTO t(k) VALUES('%lld')", (long long)i);
        struct wb_err err = WB_ERR_INIT;

        if (wb_db_exec(i % 2 ? a : b, sql, &err) < 0)
            fail_msg("%s", err.root);
        assert_int_equal(others_count(p->path), i);
        assert_true(wb_path_exists(wal)); /* in which the connections go on */
    }
    wb_db_close(a);
    wb_db_close(b);
    assert_int_equal(others_count(p->path), 3);
}

static int count_in(const char *path)
{
    struct wb_db *db = NULL;
    int64_t n = -1;

    if (wb_db_open(path, WB_DB_CREATE, 5000, &db, NULL) < 0 ||
        wb_db_int(db, "SELECT count(*) FROM t", &n, NULL) < 0)
        return 1;
    wb_db_close(db);
    (void)printf("%lld\n", (long long)n);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(values_come_back, setup, teardown),
        cmocka_unit_test_setup_teardown(constraints_and_locks_are_conflicts, setup, teardown),
        cmocka_unit_test_setup_teardown(rollback_undoes, setup, teardown),
        cmocka_unit_test_setup_teardown(versions_and_modes, setup, teardown),
        cmocka_unit_test_setup_teardown(damage_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(a_bad_bind_is_told_by_the_step, setup, teardown),
        cmocka_unit_test_setup_teardown(other_processes_take_nothing_away, setup, teardown),
    };

    if (argc > 1)
        return count_in(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
