#include "server/record/query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/units.h"
#include "server/record/index.h"

#define SQL_MAX 8192
#define CURSOR_MAX 256
#define CANDIDATES_MAX 5
#define SUBJECTS_MAX 1000
#define TRIES 2 /* the second with an index made anew */

/* A statement in the making with what is bound to it. Names and operators are constant text. */
struct ask {
    struct wb_buf sql;
    struct {
        const char *text; /* NULL: it is a number */
        double real;
        int64_t integer;
        bool is_real;
    } v[24];
    size_t n;
    bool has_where;
};

static void ask_text(struct ask *a, const char *condition, const char *value)
{
    if (!value)
        return;
    wb_buf_adds(&a->sql, a->has_where ? " AND " : " WHERE ");
    wb_buf_adds(&a->sql, condition);
    a->v[a->n++].text = value;
    a->has_where = true;
}

static void ask_int(struct ask *a, const char *condition, int64_t value)
{
    wb_buf_adds(&a->sql, a->has_where ? " AND " : " WHERE ");
    wb_buf_adds(&a->sql, condition);
    a->v[a->n++].integer = value;
    a->has_where = true;
}

static int ask_run(struct ask *a, struct wb_db *db, struct wb_stmt **out, struct wb_err *err)
{
    int rc = wb_buf_check(&a->sql, "statement", err);

    if (rc == 0)
        rc = wb_db_prepare(db, wb_buf_str(&a->sql), out, err);
    for (size_t i = 0; rc == 0 && i < a->n; i++) {
        int at = (int)i + 1;

        if (a->v[i].text)
            wb_stmt_set_text(*out, at, a->v[i].text);
        else if (a->v[i].is_real)
            wb_stmt_set_real(*out, at, a->v[i].real);
        else
            wb_stmt_set_int(*out, at, a->v[i].integer);
    }
    wb_buf_release(&a->sql);
    return rc;
}

/* ---- filters ---- */

static int time_bound(const char *text, const char *name, int64_t *ms, struct wb_err *err)
{
    WB_AUTO_FREE char *midnight = wb_strf("%.16sT00:00:00Z", text);
    int rc = wb_parse_time(strlen(text) == 10 ? midnight : text, ms, err);

    return rc < 0 ? wb_wrap(err, "%s", name) : 0;
}

/* The conditions on runs. */
static int add_filters(struct ask *a, const struct wb_query *q, struct wb_err *err)
{
    int64_t ms = 0;
    int rc = 0;

    ask_text(a, "campaign = ?", q->campaign);
    ask_text(a, "study = ?", q->study);
    ask_text(a, "arm = ?", q->arm);
    ask_text(a, "outcome = ?", q->outcome);
    ask_text(a, "validity = ?", q->validity);
    ask_text(a, "series = ?", q->series);
    ask_text(a, "recipe = ?", q->recipe);
    ask_text(a, "version = ?", q->version);
    ask_text(a, "host_class = ?", q->host_class);
    if (q->since) {
        rc = time_bound(q->since, "since", &ms, err);
        ask_int(a, "started >= ?", ms);
    }
    if (rc == 0 && q->until) {
        rc = time_bound(q->until, "until", &ms, err);
        ask_int(a, "started < ?", ms);
    }
    return rc;
}

static bool has_filter(const struct wb_query *q)
{
    return q->campaign || q->study || q->arm || q->outcome || q->validity || q->series ||
           q->recipe || q->version || q->host_class || q->since || q->until;
}

static bool same(const char *wanted, const wb_json *o, const char *key)
{
    return !wanted || !strcmp(wanted, wb_json_str_or(o, key, ""));
}

/* Whether a summary is what was asked for; times are the index's own affair. */
static bool is_wanted(const struct wb_query *q, const wb_json *m)
{
    const wb_json *recipe = wb_json_get(m, "recipe"), *host = wb_json_get(m, "host");

    return same(q->campaign, m, "campaign") && same(q->study, m, "study") &&
           same(q->arm, m, "arm") && same(q->outcome, m, "outcome") &&
           same(q->validity, m, "validity") && same(q->series, m, "series_key") &&
           same(q->recipe, recipe, "name") && same(q->version, recipe, "version") &&
           same(q->host_class, host, "class");
}

/* ---- order and pages ---- */

static const char *const order_columns[] = {
    [WB_BY_STARTED] = "started", [WB_BY_THROUGHPUT] = "throughput", [WB_BY_P99] = "p99"};

/* "<order>-<id of the last item>@<its key>", key being what it is sorted by. */
static char *make_cursor(const struct wb_query *q, const char *id, double key, int64_t ms)
{
    const char *order = order_columns[q->order];

    return q->order == WB_BY_STARTED
               ? wb_strf("%c%c%lld.%s", order[0], q->ascending ? 'a' : 'd', (long long)ms, id)
               : wb_strf("%c%c%.17g~%s", order[0], q->ascending ? 'a' : 'd', key, id);
}

static int bad_cursor(const struct wb_query *q, struct wb_err *err)
{
    return wb_fail(err, WB_INVALID,
                   "'%.80s' is not a cursor of this list; take it from 'next' of the page before, "
                   "with the same order",
                   q->cursor);
}

/* Adds where the page begins. *id is the rest of the cursor, borrowed from it. */
static int add_cursor(struct ask *a, const struct wb_query *q, const char *key_column,
                      const char *id_column, struct wb_err *err)
{
    const char *order = order_columns[q->order], *c = q->cursor, *end;
    WB_AUTO_FREE char *key = NULL;
    bool is_time = q->order == WB_BY_STARTED;

    if (!c)
        return 0;
    if (strlen(c) > CURSOR_MAX || c[0] != order[0] || c[1] != (q->ascending ? 'a' : 'd'))
        return bad_cursor(q, err);
    end = strchr(c, is_time ? '.' : '~');
    if (!end || !end[1])
        return bad_cursor(q, err);
    key = wb_strndup(c + 2, (size_t)(end - c - 2));
    if (is_time ? wb_parse_int(key, INT64_MIN, INT64_MAX, &a->v[a->n].integer, NULL) < 0
                : wb_parse_real(key, -1e300, 1e300, &a->v[a->n].real, NULL) < 0)
        return bad_cursor(q, err);
    a->v[a->n].is_real = !is_time;
    a->v[a->n + 1].text = end + 1;
    a->n += 2;
    wb_buf_addf(&a->sql, "%s(%s, %s) %s (?, ?)", a->has_where ? " AND " : " WHERE ", key_column,
                id_column, q->ascending ? ">" : "<");
    a->has_where = true;
    return 0;
}

/* limit: of rows that are read, one more than are shown; 0: all. */
static void add_order(struct ask *a, const struct wb_query *q, const char *key_column,
                      const char *id_column, size_t limit)
{
    const char *way = q->ascending ? "ASC" : "DESC";

    wb_buf_addf(&a->sql, " ORDER BY %s %s, %s %s", key_column, way, id_column, way);
    if (limit)
        wb_buf_addf(&a->sql, " LIMIT %zu", limit + 1);
}

static int page_size(const struct wb_query *q, size_t *limit, struct wb_err *err)
{
    if (q->limit > WB_PAGE_MAX)
        return wb_fail(err, WB_INVALID, "limit %zu: a page has 1 to %d items", q->limit,
                       WB_PAGE_MAX);
    *limit = q->limit ? q->limit : WB_PAGE_DEFAULT;
    return 0;
}

/* ---- runs ---- */

/* A row as the index has it. */
struct row {
    char *run;
    struct wb_oid summary;
    bool has_summary;
    int64_t started;
    double key; /* throughput or p99 when ordered by it */
};

struct rows {
    struct row *v;
    size_t n, cap;
};

static void rows_release(struct rows *r)
{
    for (size_t i = 0; i < r->n; i++)
        free(r->v[i].run);
    free(r->v);
    *r = (struct rows){0};
}

static bool column_oid(const struct wb_stmt *st, int column, struct wb_oid *out)
{
    size_t n;
    const void *id = wb_stmt_blob(st, column, &n);

    if (!id || n != sizeof(out->id))
        return false;
    memcpy(out->id, id, n);
    return true;
}

/* A page of rows, and a run that could not even be filed: it might be any of those asked for. */
struct runs_question {
    const struct wb_query *q;
    size_t limit;
    struct rows rows;
    char *damaged, *why;
};

static void runs_question_clear(struct runs_question *a)
{
    rows_release(&a->rows);
    free(a->damaged);
    free(a->why);
    a->damaged = a->why = NULL;
}

static int find_damaged(struct wb_db *db, struct runs_question *a, struct wb_err *err)
{
    static const char sql[] = "SELECT run, damaged FROM runs WHERE damaged IS NOT NULL LIMIT 1";
    WB_AUTO_STMT struct wb_stmt *st = NULL;
    int rc;

    if (!has_filter(a->q) || a->q->pass_damaged)
        return 0;
    rc = wb_db_prepare(db, sql, &st, err);
    if (rc == 0)
        rc = wb_index_next(st, err);
    if (rc == 1) {
        a->damaged = wb_strdup(wb_stmt_text(st, 0));
        a->why = wb_strdup(wb_stmt_text(st, 1));
    }
    return rc < 0 ? rc : 0;
}

/* All rows are read before anything else is done: the index is not held while git is read or a
 * reader is slow. */
static int read_rows(struct wb_db *db, void *arg, struct wb_err *err)
{
    struct runs_question *question = arg;
    const struct wb_query *q = question->q;
    struct rows *out = &question->rows;
    struct ask a = {.sql = WB_BUF_INIT(SQL_MAX)};
    WB_AUTO_STMT struct wb_stmt *st = NULL;
    int rc;

    runs_question_clear(question);
    wb_buf_addf(&a.sql, "SELECT run, summary, started, %s FROM runs", order_columns[q->order]);
    rc = add_filters(&a, q, err);
    if (rc == 0)
        rc = add_cursor(&a, q, order_columns[q->order], "run", err);
    if (rc < 0) {
        wb_buf_release(&a.sql);
        return rc;
    }
    add_order(&a, q, order_columns[q->order], "run", question->limit);
    rc = ask_run(&a, db, &st, err);
    while (rc == 0 && (rc = wb_index_next(st, err)) == 1) {
        struct row r = {.run = wb_strdup(wb_stmt_text(st, 0)),
                        .started = wb_stmt_int(st, 2),
                        .key = wb_stmt_real(st, 3)};

        r.has_summary = column_oid(st, 1, &r.summary);
        wb_grow(&out->v, &out->cap, out->n + 1, sizeof(*out->v));
        out->v[out->n++] = r;
        rc = 0;
    }
    return rc < 0 ? rc : find_damaged(db, question, err);
}

static wb_json *damaged_item(const char *run, const char *why)
{
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "id", run);
    wb_json_set_str(o, "damaged", why);
    return o;
}

/* One summary from git; *wrong when the index has led to something else. */
static int read_item(struct wb_store *s, const struct wb_query *q, const struct row *r,
                     wb_json **out, bool *wrong, struct wb_err *err)
{
    struct wb_err why = WB_ERR_INIT;
    wb_json *summary = NULL;
    int rc = r->has_summary ? wb_blob_doc(s, &r->summary, "summary.json", &summary, &why)
                            : wb_fail(&why, WB_CORRUPT, "its summary.json could not be found");

    if (rc == 0 &&
        (strcmp(wb_json_str_or(summary, "id", ""), r->run) != 0 || !is_wanted(q, summary)))
        *wrong = true;
    if (rc < 0 && ((has_filter(q) && !q->pass_damaged) || rc == -WB_IO)) {
        if (err)
            *err = why;
        return wb_wrap(err, "%s ('weighbridge verify %s' tells more)", r->run, r->run);
    }
    *out = rc < 0 ? damaged_item(r->run, why.root) : summary;
    return 0;
}

static int fail_damaged(const struct runs_question *a, struct wb_err *err)
{
    (void)wb_fail(err, WB_CORRUPT, "%s", a->why ? a->why : "it cannot be read");
    (void)wb_wrap(err, "%s ('weighbridge verify %s' tells more)", a->damaged, a->damaged);
    return -WB_CORRUPT;
}

static int runs_once(struct wb_store *s, const struct wb_query *q, size_t limit, wb_json *items,
                     char **next, bool *wrong, struct wb_err *err)
{
    struct runs_question a = {.q = q, .limit = limit};
    const struct rows *rows = &a.rows;
    int rc = wb_index_ask(s, read_rows, &a, err);
    size_t n = limit && rows->n > limit ? limit : rows->n;

    if (rc == 0 && a.damaged)
        rc = fail_damaged(&a, err);
    for (size_t i = 0; rc == 0 && !*wrong && i < n; i++) {
        wb_json *item = NULL;

        rc = read_item(s, q, &rows->v[i], &item, wrong, err);
        if (rc == 0)
            wb_json_push(items, item);
    }
    if (rc == 0 && next)
        *next = n < rows->n
                    ? make_cursor(q, rows->v[n - 1].run, rows->v[n - 1].key, rows->v[n - 1].started)
                    : NULL;
    runs_question_clear(&a);
    return rc;
}

int wb_index_runs(struct wb_store *s, const struct wb_query *q, size_t limit, wb_json **items,
                  char **next, struct wb_err *err)
{
    int rc = 0;

    for (int i = 0; i < TRIES; i++) {
        WB_AUTO_JSON wb_json *list = wb_json_array();
        WB_AUTO_FREE char *cursor = NULL;
        bool wrong = false;

        rc = runs_once(s, q, limit, list, &cursor, &wrong, err);
        if (rc == 0 && !wrong) {
            *items = WB_STEAL(list);
            if (next)
                *next = WB_STEAL(cursor);
            return 0;
        }
        if (rc < 0)
            return rc;
        rc = wb_index_distrust(s, err);
        if (rc < 0)
            return rc;
    }
    return wb_fail(err, WB_CORRUPT,
                   "the index of %s does not agree with its records, not even made anew; "
                   "'weighbridge verify --all' tells more",
                   s->path);
}

int wb_store_runs(struct wb_store *s, const struct wb_query *q, wb_json **items, char **next,
                  struct wb_err *err)
{
    size_t limit = 0;
    int rc = page_size(q, &limit, err);

    return rc < 0 ? rc : wb_index_runs(s, q, limit, items, next, err);
}

/* ---- campaigns and series ---- */

struct group {
    const char *table, *columns; /* the first column is the id, the second `first` */
    const char *of_runs;         /* the column of runs that names it */
    const char *of_study;        /* the condition for those with a run of a study */
    int (*item)(struct wb_db *db, const struct wb_stmt *st, wb_json *o, struct wb_err *err);
};

static void set_time(wb_json *o, const char *key, int64_t ms)
{
    struct wb_buf at = WB_BUF_INIT(64);

    wb_format_time(ms, &at);
    wb_json_set_str(o, key, wb_buf_str(&at));
    wb_buf_release(&at);
}

static int campaign_item(struct wb_db *db, const struct wb_stmt *st, wb_json *o, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *arms = NULL;
    wb_json *list = wb_json_array();
    int rc;

    wb_json_set_str(o, "study", wb_stmt_text(st, 2));
    wb_json_set_int(o, "runs", wb_stmt_int(st, 4));
    wb_json_set_int(o, "ok", wb_stmt_int(st, 5));
    wb_json_set_int(o, "rounds", wb_stmt_int(st, 3));
    wb_json_set(o, "arms", list);
    set_time(o, "started_at", wb_stmt_int(st, 6));
    set_time(o, "ended_at", wb_stmt_int(st, 7));
    rc = wb_db_prepare(db,
                       "SELECT arm FROM runs WHERE campaign = ? AND arm IS NOT NULL GROUP BY arm"
                       " ORDER BY arm LIMIT 10000",
                       &arms, err);
    if (rc == 0)
        wb_stmt_set_text(arms, 1, wb_stmt_text(st, 0));
    while (rc == 0 && (rc = wb_index_next(arms, err)) == 1) {
        wb_json_push(list, wb_json_str(wb_stmt_text(arms, 0)));
        rc = 0;
    }
    return rc;
}

/* Whether one version and commit stands there with two digests. */
static int find_changed(struct wb_db *db, const char *series, bool *changed, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *st = NULL;
    int rc = wb_db_prepare(db,
                           "SELECT 1 FROM subjects WHERE series = ? AND digest IS NOT NULL"
                           " GROUP BY coalesce(version, ''), coalesce(commit_id, '')"
                           " HAVING count(DISTINCT digest) > 1 LIMIT 1",
                           &st, err);

    if (rc == 0) {
        wb_stmt_set_text(st, 1, series);
        rc = wb_index_next(st, err);
    }
    *changed = rc == 1;
    return rc < 0 ? rc : 0;
}

static int add_subjects(struct wb_db *db, const char *series, wb_json *o, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *st = NULL;
    wb_json *list = wb_json_array();
    bool changed = false;
    int rc = find_changed(db, series, &changed, err);

    wb_json_set(o, "subjects", list);
    wb_json_set_bool(o, "digest_changed", changed);
    if (rc < 0)
        return rc;
    rc = wb_db_prepare(db,
                       "SELECT version, digest, runs, first, last, commit_id, built FROM"
                       " (SELECT *, coalesce(built, first) AS at FROM subjects WHERE series = ?"
                       " ORDER BY at DESC, version DESC, commit_id DESC, digest DESC LIMIT ?)"
                       " ORDER BY at, version, commit_id, digest",
                       &st, err);
    if (rc == 0) {
        wb_stmt_set_text(st, 1, series);
        wb_stmt_set_int(st, 2, SUBJECTS_MAX);
    }
    while (rc == 0 && (rc = wb_index_next(st, err)) == 1) {
        const char *version = wb_stmt_text(st, 0), *digest = wb_stmt_text(st, 1);
        const char *commit = wb_stmt_text(st, 5);
        wb_json *subject = wb_json_object();

        wb_json_set_str(subject, "version", version);
        wb_json_set_str(subject, "commit", commit);
        if (wb_stmt_is_null(st, 6))
            wb_json_set(subject, "built", wb_json_null());
        else
            set_time(subject, "built", wb_stmt_int(st, 6));
        wb_json_set_str(subject, "digest", digest);
        wb_json_set_int(subject, "runs", wb_stmt_int(st, 2));
        set_time(subject, "first_at", wb_stmt_int(st, 3));
        set_time(subject, "last_at", wb_stmt_int(st, 4));
        wb_json_push(list, subject);
        rc = 0;
    }
    return rc;
}

static int series_item(struct wb_db *db, const struct wb_stmt *st, wb_json *o, struct wb_err *err)
{
    static const char *const texts[] = {"study", "arm", "recipe", "version", "host_class"};

    for (size_t i = 0; i < WB_LEN(texts); i++)
        wb_json_set_str(o, texts[i], wb_stmt_text(st, (int)i + 2));
    wb_json_set_int(o, "runs", wb_stmt_int(st, 7));
    wb_json_set_int(o, "campaigns", wb_stmt_int(st, 8));
    set_time(o, "first_at", wb_stmt_int(st, 1));
    set_time(o, "last_at", wb_stmt_int(st, 9));
    return add_subjects(db, wb_stmt_text(st, 0), o, err);
}

static const struct group campaigns = {
    .table = "campaigns",
    .columns = "id, first, study, rounds, runs, ok, first, ended",
    .of_runs = "campaign",
    .of_study = "study = ?",
    .item = campaign_item,
};
static const struct group series = {
    .table = "series",
    .columns = "id, first, study, arm, recipe, version, host_class, runs, campaigns, started",
    .of_runs = "series",
    /* a seek for each series of the page instead of a look at all runs of the study */
    .of_study = "EXISTS (SELECT 1 FROM runs WHERE runs.series = series.id AND runs.study = ?)",
    .item = series_item,
};

static bool has_study_alone(const struct wb_query *q)
{
    struct wb_query other = *q;

    other.study = NULL;
    return q->study && !has_filter(&other);
}

/* By their first run: that stays where it is while runs come in, so that pages lose nothing. */
static int ask_group(struct ask *a, const struct group *g, const struct wb_query *q, size_t limit,
                     struct wb_err *err)
{
    int rc = 0;

    wb_buf_addf(&a->sql, "SELECT %s FROM %s", g->columns, g->table);
    if (has_study_alone(q)) {
        ask_text(a, g->of_study, q->study);
    } else if (has_filter(q)) {
        wb_buf_addf(&a->sql, " WHERE id IN (SELECT %s FROM runs", g->of_runs);
        rc = add_filters(a, q, err);
        wb_buf_adds(&a->sql, ")");
    }
    if (rc == 0)
        rc = add_cursor(a, q, "first", "id", err);
    add_order(a, q, "first", "id", limit);
    return rc;
}

struct groups_question {
    const struct group *g;
    const struct wb_query *q;
    size_t limit;
    wb_json *list;
    int64_t last; /* what the last item is sorted by */
    bool more;
};

static int read_groups(struct wb_db *db, void *arg, struct wb_err *err)
{
    struct groups_question *question = arg;
    struct ask a = {.sql = WB_BUF_INIT(SQL_MAX)};
    WB_AUTO_STMT struct wb_stmt *st = NULL;
    int rc = ask_group(&a, question->g, question->q, question->limit, err);

    wb_json_free(question->list);
    question->list = wb_json_array();
    question->more = false;
    if (rc < 0) {
        wb_buf_release(&a.sql);
        return rc;
    }
    rc = ask_run(&a, db, &st, err);
    while (rc == 0 && !question->more && (rc = wb_index_next(st, err)) == 1) {
        wb_json *o;

        rc = 0;
        question->more = wb_json_len(question->list) == question->limit;
        if (question->more)
            break;
        o = wb_json_object();
        wb_json_push(question->list, o);
        wb_json_set_str(o, "id", wb_stmt_text(st, 0));
        question->last = wb_stmt_int(st, 1);
        rc = question->g->item(db, st, o, err);
    }
    return rc;
}

static int groups(struct wb_store *s, const struct group *g, const struct wb_query *q,
                  wb_json **items, char **next, struct wb_err *err)
{
    struct groups_question a = {.g = g, .q = q};
    int rc = page_size(q, &a.limit, err);

    if (rc == 0 && q->order != WB_BY_STARTED)
        rc = wb_fail(err, WB_INVALID, "%s can only be sorted by time", g->table);
    if (rc == 0)
        rc = wb_index_ask(s, read_groups, &a, err);
    if (rc < 0) {
        wb_json_free(a.list);
        return rc;
    }
    *next =
        a.more
            ? make_cursor(q, wb_json_str_or(wb_json_at(a.list, wb_json_len(a.list) - 1), "id", ""),
                          0, a.last)
            : NULL;
    *items = a.list;
    return 0;
}

char *wb_campaign_cursor(const struct wb_query *q, const wb_json *item)
{
    int64_t ms = 0;

    if (wb_parse_time(wb_json_str_or(item, "started_at", ""), &ms, NULL) < 0)
        return NULL;
    return make_cursor(q, wb_json_str_or(item, "id", ""), 0, ms);
}

int wb_store_campaigns(struct wb_store *s, const struct wb_query *q, wb_json **items, char **next,
                       struct wb_err *err)
{
    return groups(s, &campaigns, q, items, next, err);
}

int wb_store_series(struct wb_store *s, const struct wb_query *q, wb_json **items, char **next,
                    struct wb_err *err)
{
    return groups(s, &series, q, items, next, err);
}

/* ---- all series ---- */

static int read_keys(struct wb_db *db, void *arg, struct wb_err *err)
{
    static const char sql[] = "SELECT series FROM runs WHERE series IS NOT NULL GROUP BY series"
                              " ORDER BY max(started) DESC, max(run) DESC";
    WB_AUTO_STMT struct wb_stmt *st = NULL;
    struct wb_strv *keys = arg;
    int rc = wb_db_prepare(db, sql, &st, err);

    wb_strv_release(keys);
    *keys = (struct wb_strv){0};
    while (rc == 0 && (rc = wb_index_next(st, err)) == 1) {
        wb_strv_add(keys, wb_stmt_text(st, 0));
        rc = 0;
    }
    return rc;
}

int wb_store_series_keys(struct wb_store *s, struct wb_strv *keys, struct wb_err *err)
{
    int rc = wb_index_ask(s, read_keys, keys, err);

    if (rc < 0) {
        wb_strv_release(keys);
        *keys = (struct wb_strv){0};
    }
    return rc;
}

/* ---- outcomes ---- */

struct outcomes_question {
    const char *campaign;
    wb_json *counts;
    int64_t recorded;
};

static int read_outcomes(struct wb_db *db, void *arg, struct wb_err *err)
{
    static const char sql[] = "SELECT iif(damaged IS NULL, coalesce(outcome, 'damaged'),"
                              " 'damaged') AS word, count(*) FROM runs WHERE campaign = ?"
                              " GROUP BY word ORDER BY word";
    struct outcomes_question *a = arg;
    WB_AUTO_STMT struct wb_stmt *st = NULL;
    int rc = wb_db_prepare(db, sql, &st, err);

    wb_json_free(a->counts);
    a->counts = wb_json_object();
    a->recorded = 0;
    if (rc == 0)
        wb_stmt_set_text(st, 1, a->campaign);
    while (rc == 0 && (rc = wb_index_next(st, err)) == 1) {
        wb_json_set_int(a->counts, wb_stmt_text(st, 0), wb_stmt_int(st, 1));
        a->recorded += wb_stmt_int(st, 1);
        rc = 0;
    }
    return rc;
}

int wb_store_outcomes(struct wb_store *s, const char *campaign, wb_json **counts, int64_t *recorded,
                      struct wb_err *err)
{
    struct outcomes_question a = {.campaign = campaign};
    int rc = wb_index_ask(s, read_outcomes, &a, err);

    if (rc < 0) {
        wb_json_free(a.counts);
        return rc;
    }
    *counts = a.counts;
    *recorded = a.recorded;
    return 0;
}

/* ---- hosts ---- */

struct hosts_question {
    const struct wb_query *q;
    wb_json *list;
};

static int read_hosts(struct wb_db *db, void *arg, struct wb_err *err)
{
    struct hosts_question *question = arg;
    struct ask a = {.sql = WB_BUF_INIT(SQL_MAX)};
    WB_AUTO_STMT struct wb_stmt *st = NULL;
    int rc;

    wb_json_free(question->list);
    question->list = wb_json_array();
    wb_buf_adds(&a.sql, "SELECT host, host_class, count(*), sum(outcome = 'ok'), min(started),"
                        " max(started) FROM runs");
    rc = add_filters(&a, question->q, err);
    wb_buf_addf(&a.sql,
                "%s host <> '' GROUP BY host, host_class ORDER BY max(started) DESC, host"
                " LIMIT %d",
                a.has_where ? " AND" : " WHERE", WB_PAGE_MAX);
    if (rc < 0) {
        wb_buf_release(&a.sql);
        return rc;
    }
    rc = ask_run(&a, db, &st, err);
    while (rc == 0 && (rc = wb_index_next(st, err)) == 1) {
        wb_json *o = wb_json_object();

        wb_json_push(question->list, o);
        wb_json_set_str(o, "id", wb_stmt_text(st, 0));
        wb_json_set_str(o, "host_class", wb_stmt_text(st, 1));
        wb_json_set_int(o, "runs", wb_stmt_int(st, 2));
        wb_json_set_int(o, "ok", wb_stmt_int(st, 3));
        set_time(o, "first_at", wb_stmt_int(st, 4));
        set_time(o, "last_at", wb_stmt_int(st, 5));
        rc = 0;
    }
    return rc;
}

int wb_store_hosts(struct wb_store *s, const struct wb_query *q, wb_json **items,
                   struct wb_err *err)
{
    struct hosts_question a = {.q = q};
    int rc = wb_index_ask(s, read_hosts, &a, err);

    if (rc < 0)
        wb_json_free(a.list);
    else
        *items = a.list;
    return rc;
}

/* ---- ids ---- */

static int too_many(const char *prefix, const char *kind, const struct wb_strv *found,
                    struct wb_err *err)
{
    struct wb_buf names = WB_BUF_INIT(4096);
    int rc;

    for (size_t i = 0; i < found->n && i < CANDIDATES_MAX; i++)
        wb_buf_addf(&names, "%s%s", i ? ", " : "", found->v[i]);
    if (found->n > CANDIDATES_MAX)
        wb_buf_adds(&names, ", ...");
    rc = wb_fail(err, WB_CONFLICT, "'%s' is the beginning of more than one %s: %s", prefix, kind,
                 wb_buf_str(&names));
    wb_buf_release(&names);
    return rc;
}

struct id_question {
    const char *prefix, *sql; /* sql has the two bounds and a limit */
    struct wb_strv found;
    bool exact;
};

/* Ids are of ASCII: all that begin with a prefix stand between it and it with DEL behind. */
static int read_ids(struct wb_db *db, void *arg, struct wb_err *err)
{
    struct id_question *a = arg;
    WB_AUTO_FREE char *end = wb_strf("%s\x7f", a->prefix);
    WB_AUTO_STMT struct wb_stmt *st = NULL;
    int rc = wb_db_prepare(db, a->sql, &st, err);

    wb_strv_release(&a->found);
    a->found = (struct wb_strv){0};
    a->exact = false;
    if (rc < 0)
        return rc;
    wb_stmt_set_text(st, 1, a->prefix);
    wb_stmt_set_text(st, 2, end);
    wb_stmt_set_int(st, 3, CANDIDATES_MAX + 1);
    while (!a->exact && (rc = wb_index_next(st, err)) == 1) {
        wb_strv_add(&a->found, wb_stmt_text(st, 0));
        a->exact = !strcmp(a->found.v[a->found.n - 1], a->prefix);
    }
    return rc < 0 ? rc : 0;
}

static int resolve(struct wb_store *s, const char *prefix, const char *kind, const char *sql,
                   char **out, struct wb_err *err)
{
    struct id_question a = {.prefix = prefix, .sql = sql};
    int rc;

    if (!wb_safe_name(prefix))
        return wb_fail(err, WB_INVALID, "'%s' is not the id of a %s", prefix, kind);
    rc = wb_index_ask(s, read_ids, &a, err);
    if (rc == 0 && (a.exact || a.found.n == 1))
        *out = wb_strdup(a.found.v[a.found.n - 1]);
    else if (rc == 0 && a.found.n > 1)
        rc = too_many(prefix, kind, &a.found, err);
    else if (rc == 0)
        rc = wb_fail(err, WB_NOT_FOUND,
                     "no %s begins with '%s' in %s; 'weighbridge list %ss' shows what there is",
                     kind, prefix, s->path, kind);
    wb_strv_release(&a.found);
    return rc;
}

int wb_store_resolve(struct wb_store *s, const char *prefix, char **run, struct wb_err *err)
{
    return resolve(s, prefix, "run",
                   "SELECT DISTINCT run FROM runs WHERE run >= ? AND run < ? ORDER BY run LIMIT ?",
                   run, err);
}

int wb_store_resolve_series(struct wb_store *s, const char *prefix, char **key, struct wb_err *err)
{
    struct wb_err own = WB_ERR_INIT;
    int rc =
        resolve(s, prefix, "series",
                "SELECT id FROM series WHERE id >= ? AND id < ? ORDER BY id LIMIT ?", key, &own);

    if (rc == -WB_NOT_FOUND)
        return wb_fail(err, WB_NOT_FOUND,
                       "there is no series '%s' in %s; 'weighbridge list series' shows what there "
                       "is",
                       prefix, wb_store_path(s));
    if (rc < 0 && err)
        *err = own;
    return rc;
}

int wb_store_resolve_campaign(struct wb_store *s, const char *prefix, char **campaign,
                              struct wb_err *err)
{
    return resolve(s, prefix, "campaign",
                   "SELECT id FROM campaigns WHERE id >= ? AND id < ? ORDER BY id LIMIT ?",
                   campaign, err);
}

/* ---- stamps ---- */

struct stamp_question {
    enum wb_stamp of;
    const char *id;
    char hex[WB_SHA256_HEX];
    int64_t runs, damaged;
};

static void add_cell(struct wb_sha256 *d, const struct wb_stmt *st, int column)
{
    size_t n = 0;
    const void *bytes = wb_stmt_blob(st, column, &n);

    wb_sha256_add(d, &n, sizeof(n));
    wb_sha256_add(d, bytes, n);
}

/* Adds all cells of all rows; *rows counts them. */
static int add_rows(struct wb_db *db, const char *sql, const char *value, struct wb_sha256 *d,
                    int64_t *rows, struct wb_err *err)
{
    WB_AUTO_STMT struct wb_stmt *st = NULL;
    int rc = wb_db_prepare(db, sql, &st, err);

    if (rc == 0 && value)
        wb_stmt_set_text(st, 1, value);
    while (rc == 0 && (rc = wb_index_next(st, err)) == 1) {
        add_cell(d, st, 0);
        add_cell(d, st, 1);
        (*rows)++;
        rc = 0;
    }
    return rc;
}

static int read_stamp(struct wb_db *db, void *arg, struct wb_err *err)
{
    static const char *const sql[] = {
        [WB_STAMP_CAMPAIGN] = "SELECT run, tree FROM runs WHERE campaign = ? ORDER BY run, ref",
        [WB_STAMP_SERIES] = "SELECT run, tree FROM runs WHERE series = ? ORDER BY run, ref",
        [WB_STAMP_STORE] = "SELECT name, tip FROM refs ORDER BY name"};
    struct stamp_question *a = arg;
    struct wb_sha256 *d = wb_sha256_new();
    int64_t annotations = 0;
    int rc = wb_db_int(db, "SELECT count(*) FROM runs WHERE damaged IS NOT NULL", &a->damaged, err);

    a->runs = 0;
    if (rc == 0)
        rc = add_rows(db, sql[a->of], a->id, d, &a->runs, err);
    if (rc == 0 && a->of != WB_STAMP_STORE)
        rc = add_rows(db, "SELECT id, document FROM annotations ORDER BY id, ref", NULL, d,
                      &annotations, err);
    wb_sha256_end(d, a->hex);
    return rc;
}

int wb_store_stamp(struct wb_store *s, enum wb_stamp of, const char *id, char hex[WB_SHA256_HEX],
                   struct wb_err *err)
{
    struct stamp_question a = {.of = of, .id = id};
    int rc = wb_index_ask(s, read_stamp, &a, err);

    if (rc < 0)
        return rc;
    if (a.damaged > 0)
        return wb_fail(err, WB_CORRUPT,
                       "a run of %s cannot be read; 'weighbridge verify --all' tells more",
                       s->path);
    if (a.runs == 0)
        return wb_fail(err, WB_NOT_FOUND, "%.60s has no run in %s", id ? id : "it", s->path);
    memcpy(hex, a.hex, sizeof(a.hex));
    return 0;
}

/* ---- where a run stands ---- */

struct place_question {
    const char *run;
    struct wb_place place;
    bool found;
};

static int read_place(struct wb_db *db, void *arg, struct wb_err *err)
{
    static const char sql[] = "SELECT refs.name, refs.tip, day, tree, added FROM runs JOIN refs"
                              " ON refs.id = runs.ref WHERE run = ? ORDER BY refs.name LIMIT 1";
    struct place_question *a = arg;
    WB_AUTO_STMT struct wb_stmt *st = NULL;
    struct wb_place p = {0};
    const char *day;
    int rc = wb_db_prepare(db, sql, &st, err);

    if (rc < 0)
        return rc;
    wb_stmt_set_text(st, 1, a->run);
    rc = wb_index_next(st, err);
    if (rc != 1)
        return rc;
    day = wb_stmt_text(st, 2);
    if (!day || strlen(day) != 10 || !column_oid(st, 1, &p.tip) || !column_oid(st, 3, &p.tree))
        return wb_fail(err, WB_CORRUPT, "the index has a row that is none");
    p.has_added = column_oid(st, 4, &p.added);
    p.ref = wb_strdup(wb_stmt_text(st, 0));
    p.path = wb_strf("runs/%.4s/%.2s/%.2s/%s", day, day + 5, day + 8, a->run);
    a->place = p;
    a->found = true;
    return 0;
}

int wb_index_place(struct wb_store *s, const char *run, struct wb_place *out, struct wb_err *err)
{
    struct place_question a = {.run = run};
    int rc = wb_index_ask(s, read_place, &a, err);

    if (rc == 0 && !a.found)
        rc = wb_fail(err, WB_NOT_FOUND, "there is no run '%s' in %s", run, s->path);
    if (rc == 0)
        *out = a.place;
    return rc;
}
