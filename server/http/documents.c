/* Stored studies and price books: versions are kept, If-Match says which one is replaced. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/book.h"
#include "server/base/clock.h"
#include "server/base/fields.h"
#include "server/http/campaigns.h"
#include "server/queue/documents.h"

/* What the two kinds differ in. */
struct kind {
    const char *name, *key, *path; /* key: of the text in bodies */
    const struct wb_form *form;
    bool (*check)(struct wb_context *c, struct wb_request *q, struct wb_answer *a,
                  const char *text);
};

static const struct wb_shape study_put_rows[] = {
    {"study_text", WB_S_TEXT, WB_S_NEED, .min = 1, .help = "The study as YAML"}, {0}};
static const struct wb_form study_put = {.name = "StoredStudyText", .rows = study_put_rows};
static const struct wb_shape book_put_rows[] = {
    {"book_text", WB_S_TEXT, WB_S_NEED, .min = 1, .help = "The price book as YAML"}, {0}};
static const struct wb_form book_put = {.name = "PriceBookText", .rows = book_put_rows};

static bool check_book(struct wb_context *c, struct wb_request *q, struct wb_answer *a,
                       const char *text)
{
    struct wb_book book = {0};
    struct wb_err err = WB_ERR_INIT;

    (void)c;
    if (wb_book_parse("book_text", text, strlen(text), &book, &err) < 0) {
        wb_answer_error(q, a, &err);
        return false;
    }
    wb_book_release(&book);
    return true;
}

static const struct kind study_kind = {"study", "study_text", "/api/v1/studies", &study_put,
                                       wb_study_text_check},
                         book_kind = {"book", "book_text", "/api/v1/price-books", &book_put,
                                      check_book};

static char *tag_of(const wb_json *doc)
{
    return wb_strf("\"v%lld\"", (long long)wb_json_int_or(doc, "version", 0));
}

/* {name, version, <key>: text, ...}; takes doc. */
static void answer_doc(const struct wb_request *q, struct wb_answer *a, const struct kind *k,
                       wb_json *doc, int status)
{
    WB_AUTO_FREE char *tag = tag_of(doc);

    wb_json_set_str(doc, k->key, wb_json_str_or(doc, "text", ""));
    wb_json_del(doc, "text");
    if (wb_answer_tag(q, a, tag)) {
        wb_json_free(doc);
        return;
    }
    wb_answer_json(q, a, status, doc);
}

static void list(struct wb_context *c, struct wb_request *q, struct wb_answer *a,
                 const struct kind *k)
{
    const char *cursor = wb_request_query(q, "cursor");
    WB_AUTO_FREE char *filter = wb_strf("documents:%s", k->name);
    WB_AUTO_FREE char *after = NULL;
    struct wb_err err = WB_ERR_INIT;
    int64_t limit = 0;
    wb_json *items = NULL;
    char *next = NULL;
    int rc = wb_request_int(q, "limit", 1, 500, 50, &limit, &err);

    if (rc == 0 && cursor)
        rc = wb_cursor_read(c->service, filter, cursor, &after, &err);
    if (rc < 0) {
        wb_answer_problem(q, a, 400, cursor ? "cursor-invalid" : "validation", err.root, NULL);
        return;
    }
    if (wb_document_list(c->db, k->name, after, limit, &items, &err) < 0) {
        wb_answer_error(q, a, &err);
        return;
    }
    if ((int64_t)wb_json_len(items) == limit)
        next = wb_cursor_make(c->service, filter,
                              wb_json_str_or(wb_json_at(items, (size_t)limit - 1), "name", ""));
    wb_answer_list(q, a, items, next);
}

static void get(struct wb_context *c, struct wb_request *q, struct wb_answer *a,
                const struct kind *k)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *doc = NULL;
    int64_t version = 0;
    int rc = wb_request_int(q, "version", 1, INT32_MAX, 0, &version, &err);

    if (rc == 0)
        rc = wb_document_get(c->db, k->name, q->args[0], version, &doc, &err);
    if (rc < 0)
        wb_answer_error(q, a, &err);
    else
        answer_doc(q, a, k, doc, 200);
}

static void versions(struct wb_context *c, struct wb_request *q, struct wb_answer *a,
                     const struct kind *k)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *items = NULL;
    int rc = wb_document_versions(c->db, k->name, q->args[0], &items, &err);

    if (rc == 0 && wb_json_len(items) == 0) {
        wb_json_free(items);
        rc = wb_fail(&err, WB_NOT_FOUND, "there never was a %s '%.63s'",
                     k == &book_kind ? "price book" : "study", q->args[0]);
    }
    if (rc < 0)
        wb_answer_error(q, a, &err);
    else
        wb_answer_list(q, a, items, NULL);
}

/* The version that is replaced; answers itself, then false. */
static bool expected(struct wb_context *c, struct wb_request *q, struct wb_answer *a,
                     const struct kind *k, int64_t *expect)
{
    WB_AUTO_JSON wb_json *now = NULL;
    WB_AUTO_FREE char *tag = NULL;
    struct wb_err err = WB_ERR_INIT;
    int rc = wb_document_get(c->db, k->name, q->args[0], 0, &now, &err);

    *expect = WB_DOCUMENT_ABSENT;
    if (rc == -WB_NOT_FOUND && !q->headers[WB_H_IF_MATCH])
        return true;
    if (rc == -WB_NOT_FOUND) {
        wb_answer_problem(q, a, 412, "precondition-failed",
                          "there is none of this name any more; leave If-Match out to make one",
                          NULL);
        return false;
    }
    if (rc < 0) {
        wb_answer_error(q, a, &err);
        return false;
    }
    tag = tag_of(now);
    if (wb_tag_listed(q->headers[WB_H_IF_NONE_MATCH], tag, true)) {
        wb_answer_problem(q, a, 412, "precondition-failed",
                          "there is one of this name already, and If-None-Match excludes it", NULL);
        return false;
    }
    *expect = wb_json_int_or(now, "version", 0);
    return wb_request_match(q, a, tag);
}

/* Adds a version; text NULL removes. False after answering. */
static bool store(struct wb_context *c, struct wb_request *q, struct wb_answer *a,
                  const struct kind *k, const char *text, int64_t expect)
{
    const struct wb_document d = {
        .kind = k->name, .name = q->args[0], .text = text, .token = q->token.id};
    struct wb_err err = WB_ERR_INIT;
    int64_t version = 0;
    int rc = wb_document_put(c->db, &d, expect, wb_now_unix_ms(NULL), &version, &err);

    if (rc == -WB_CONFLICT && err.sys != EAGAIN)
        wb_answer_problem(q, a, 412, "precondition-failed", err.root, NULL);
    else if (rc < 0)
        wb_answer_error(q, a, &err);
    return rc == 0;
}

static void put(struct wb_context *c, struct wb_request *q, struct wb_answer *a,
                const struct kind *k)
{
    WB_AUTO_JSON wb_json *body = NULL;
    struct wb_err err = WB_ERR_INIT;
    wb_json *doc = NULL;
    const char *text;
    int64_t expect = 0;

    if (!wb_is_name(q->args[0])) {
        wb_answer_problem(q, a, 422, "validation",
                          "a name has 1 to 63 small letters, digits, dots, _ and -, and begins "
                          "with a letter or digit",
                          NULL);
        return;
    }
    body = wb_request_object(q, a, k->form);
    text = wb_json_str_or(body, k->key, "");
    if (!body || !expected(c, q, a, k, &expect) || !k->check(c, q, a, text) ||
        !store(c, q, a, k, text, expect))
        return;
    if (wb_document_get(c->db, k->name, q->args[0], 0, &doc, &err) < 0) {
        wb_answer_error(q, a, &err);
        return;
    }
    if (expect == WB_DOCUMENT_ABSENT) {
        WB_AUTO_FREE char *where = wb_strf("%s/%s", k->path, q->args[0]);

        wb_answer_header(a, "Location", where);
    }
    answer_doc(q, a, k, doc, expect == WB_DOCUMENT_ABSENT ? 201 : 200);
}

static void del(struct wb_context *c, struct wb_request *q, struct wb_answer *a,
                const struct kind *k)
{
    WB_AUTO_JSON wb_json *now = NULL;
    struct wb_err err = WB_ERR_INIT;
    int64_t expect = 0;

    if (wb_document_get(c->db, k->name, q->args[0], 0, &now, &err) < 0) {
        wb_answer_error(q, a, &err);
        return;
    }
    if (expected(c, q, a, k, &expect) && store(c, q, a, k, NULL, expect))
        a->status = 204;
}

/* ---- the routes ---- */

#define HANDLERS(kind)                                                                           \
    static void kind##_list(struct wb_context *c, struct wb_request *q, struct wb_answer *a)     \
    {                                                                                            \
        list(c, q, a, &kind##_kind);                                                             \
    }                                                                                            \
    static void kind##_get(struct wb_context *c, struct wb_request *q, struct wb_answer *a)      \
    {                                                                                            \
        get(c, q, a, &kind##_kind);                                                              \
    }                                                                                            \
    static void kind##_versions(struct wb_context *c, struct wb_request *q, struct wb_answer *a) \
    {                                                                                            \
        versions(c, q, a, &kind##_kind);                                                         \
    }                                                                                            \
    static void kind##_put_one(struct wb_context *c, struct wb_request *q, struct wb_answer *a)  \
    {                                                                                            \
        put(c, q, a, &kind##_kind);                                                              \
    }                                                                                            \
    static void kind##_delete(struct wb_context *c, struct wb_request *q, struct wb_answer *a)   \
    {                                                                                            \
        del(c, q, a, &kind##_kind);                                                              \
    }
HANDLERS(study)
HANDLERS(book)

#define ROWS                                                      \
    {"name", WB_S_TEXT, .flags = WB_S_NEED},                      \
        {"version", WB_S_INT, WB_S_NEED, .min = 1, .max = 1e15},  \
        {"token", WB_S_TEXT, WB_S_NEED, .help = "Who stored it"}, \
    {                                                             \
        "made_at", WB_S_TIME, .flags = WB_S_NEED                  \
    }
static const struct wb_shape row_rows[] = {ROWS, {0}};
static const struct wb_form row_form = {.name = "StoredRow", .rows = row_rows};
static const struct wb_shape version_rows[] = {
    ROWS, {"removed", WB_S_BOOL, WB_S_NEED, .help = "It was removed then"}, {0}};
static const struct wb_form version_form = {.name = "StoredVersion", .rows = version_rows};
static const struct wb_shape study_rows[] = {
    ROWS, {"study_text", WB_S_TEXT, .flags = WB_S_NEED}, {0}};
static const struct wb_form study_form = {.name = "StoredStudy", .rows = study_rows};
static const struct wb_shape book_rows[] = {
    ROWS, {"book_text", WB_S_TEXT, .flags = WB_S_NEED}, {0}};
static const struct wb_form book_form = {.name = "StoredBook", .rows = book_rows};

static const struct wb_shape page_query[] = {WB_QUERY_PAGE, {0}};
static const struct wb_shape get_query[] = {
    {"version", WB_S_INT, .min = 1, .max = INT32_MAX, .help = "The newest unless given"}, {0}};

#define S "/api/v1/studies"
#define B "/api/v1/price-books"
#define PUT_FLAGS (WB_ROUTE_WRITE | WB_ROUTE_MATCH)
const struct wb_route wb_routes_documents[] = {
    {"GET", S, WB_SCOPE_READ, WB_ROUTE_LIST, study_list, "listStudies", "Stored studies, by name",
     page_query, .answer = &row_form, .status = 200},
    {"GET", S "/{study}", WB_SCOPE_READ, 0, study_get, "getStudy", "A stored study", get_query,
     .answer = &study_form, .status = 200},
    {"GET", S "/{study}/versions", WB_SCOPE_READ, WB_ROUTE_LIST, study_versions,
     "listStudyVersions", "Every version of a stored study, newest first", .answer = &version_form,
     .status = 200},
    {"PUT", S "/{study}", WB_SCOPE_RUNS, PUT_FLAGS, study_put_one, "putStudy",
     "Store a study, or its next version", .body = &study_put, .answer = &study_form, .status = 200,
     .also = {201}},
    {"DELETE", S "/{study}", WB_SCOPE_RUNS, PUT_FLAGS, study_delete, "deleteStudy",
     "Remove a stored study; its versions stay", .status = 204},
    {"GET", B, WB_SCOPE_READ, WB_ROUTE_LIST, book_list, "listPriceBooks", "Price books, by name",
     page_query, .answer = &row_form, .status = 200},
    {"GET", B "/{book}", WB_SCOPE_READ, 0, book_get, "getPriceBook", "A price book", get_query,
     .answer = &book_form, .status = 200},
    {"GET", B "/{book}/versions", WB_SCOPE_READ, WB_ROUTE_LIST, book_versions,
     "listPriceBookVersions", "Every version of a price book, newest first",
     .answer = &version_form, .status = 200},
    {"PUT", B "/{book}", WB_SCOPE_RUNS, PUT_FLAGS, book_put_one, "putPriceBook",
     "Store a price book, or its next version", .body = &book_put, .answer = &book_form,
     .status = 200, .also = {201}},
    {"DELETE", B "/{book}", WB_SCOPE_RUNS, PUT_FLAGS, book_delete, "deletePriceBook",
     "Remove a price book; its versions stay", .status = 204},
    {0},
};
