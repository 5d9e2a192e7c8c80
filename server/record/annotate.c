#include "server/record/annotate.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/record/index.h"
#include "server/record/query.h"
#include "server/record/work.h"
#include "server/study/plan.h"

#define WHO_MAX 200
#define ID_MAX 128

const char *const wb_annotation_types[] = {"excluded", "accepted",  "environment", "note",
                                           "pinned",   "withdrawn", NULL};

/* ---- what was given ---- */

/* Bytes that could be taken for commands by a terminal, or for the end of a line. */
static bool is_plain(const char *s, bool lines)
{
    for (const unsigned char *p = (const unsigned char *)s; *p; p++)
        if ((*p < 0x20 && !(lines && (*p == '\n' || *p == '\t'))) || *p == 0x7f ||
            (*p == 0xc2 && (p[1] & 0xe0) == 0x80))
            return false;
    return true;
}

static int check_type(const char *type, struct wb_err *err)
{
    for (size_t i = 0; wb_annotation_types[i]; i++)
        if (type && !strcmp(type, wb_annotation_types[i]))
            return 0;
    return wb_fail(err, WB_INVALID,
                   "'%s' is no type of annotation; allowed: excluded, accepted, environment, note, "
                   "pinned, withdrawn",
                   type ? type : "");
}

static int check_text(const struct wb_annotation *a, struct wb_err *err)
{
    bool may_lack =
        !strcmp(a->type, "accepted") || !strcmp(a->type, "pinned") || !strcmp(a->type, "withdrawn");

    if ((!a->text || !*a->text) && !may_lack)
        return wb_fail(err, WB_INVALID, "an annotation '%s' needs a text that says why", a->type);
    if (a->text && strlen(a->text) > WB_ANNOTATION_TEXT_MAX)
        return wb_fail(err, WB_LIMIT, "the text has %zu bytes, at most %d are kept",
                       strlen(a->text), WB_ANNOTATION_TEXT_MAX);
    if (a->text && !is_plain(a->text, true))
        return wb_fail(err, WB_INVALID, "the text has control characters in it");
    if (a->who && (!*a->who || strlen(a->who) > WHO_MAX || !is_plain(a->who, false)))
        return wb_fail(err, WB_INVALID,
                       "who: a name of 1 to %d bytes on one line, no control characters", WHO_MAX);
    return 0;
}

/* ---- what it is about ---- */

static bool begins(const char *id, const char *prefix)
{
    return !strncmp(id, prefix, strlen(prefix));
}

struct notes_question {
    const char *id; /* NULL: all */
    wb_json *list;  /* oldest first */
};

static int read_notes(struct wb_db *db, void *arg, struct wb_err *err)
{
    static const char sql[] = "SELECT document FROM annotations WHERE ?1 IS NULL OR id = ?1"
                              " ORDER BY made, id";
    struct notes_question *a = arg;
    WB_AUTO_STMT struct wb_stmt *st = NULL;
    int rc = wb_db_prepare(db, sql, &st, err);

    wb_json_free(a->list);
    a->list = wb_json_array();
    if (rc == 0)
        wb_stmt_set_text(st, 1, a->id);
    while (rc == 0 && (rc = wb_index_next(st, err)) == 1) {
        const char *text = wb_stmt_text(st, 0);
        wb_json *doc = NULL;

        rc = wb_json_parse(text ? text : "", text ? strlen(text) : 0, &doc, err);
        if (rc == 0)
            wb_json_push(a->list, doc);
    }
    return rc;
}

static int find_annotation(struct wb_store *s, const char *id, wb_json **out, struct wb_err *err)
{
    struct notes_question a = {.id = id};
    int rc = wb_index_ask(s, read_notes, &a, err);

    if (rc == 0 && wb_json_len(a.list) == 0)
        rc = wb_fail(err, WB_NOT_FOUND, "there is no annotation '%s' in %s", id, s->path);
    if (rc == 0)
        *out = wb_json_ref(wb_json_at(a.list, 0));
    wb_json_free(a.list);
    return rc;
}

/* The start of the run or campaign, as text; NULL where the id is of something else. */
static int look_up(struct wb_store *s, const struct wb_annotation *a, char **started,
                   struct wb_err *err)
{
    WB_AUTO_JSON wb_json *doc = NULL;
    WB_AUTO_FREE char *next = NULL;
    const struct wb_query q = {.campaign = a->id, .limit = 1};
    int rc = 0;

    if (!strcmp(a->type, "withdrawn")) {
        rc = find_annotation(s, a->id, &doc, err);
        if (rc == 0 && !strcmp(wb_json_str_or(doc, "type", ""), "withdrawn"))
            rc = wb_fail(err, WB_INVALID,
                         "%s withdraws another one and cannot be withdrawn; make "
                         "that annotation anew",
                         a->id);
        return rc;
    }
    if (begins(a->id, "run_")) {
        rc = wb_store_read(s, a->id, "summary", &doc, err);
        if (rc == 0)
            *started = wb_strdup(wb_json_str_or(doc, "started_at", NULL));
    } else if (begins(a->id, "cmp_")) {
        rc = wb_store_campaigns(s, &q, &doc, &next, err);
        if (rc == 0 && wb_json_len(doc) == 0)
            rc = wb_fail(err, WB_NOT_FOUND, "there is no campaign '%s' in %s", a->id, s->path);
        if (rc == 0)
            *started = wb_strdup(wb_json_str_or(wb_json_at(doc, 0), "started_at", NULL));
    } else if (!strcmp(a->type, "excluded") || !strcmp(a->type, "pinned")) {
        rc = wb_fail(err, WB_INVALID,
                     "'%s' cannot be %s: name a run (run_...) or a campaign "
                     "(cmp_...)",
                     a->id, a->type);
    }
    return rc;
}

static int check_id(const char *id, struct wb_err *err)
{
    if (!id || !*id || strlen(id) > ID_MAX || !is_plain(id, false))
        return wb_fail(err, WB_INVALID,
                       "what the annotation is about: an id of 1 to %d bytes on one line", ID_MAX);
    return 0;
}

/* ---- making one ---- */

static char *login_name(void)
{
    char host[256] = "", buf[4096];
    struct passwd pw, *found = NULL;

    if (gethostname(host, sizeof(host) - 1) < 0)
        host[0] = '\0';
    if (getpwuid_r(geteuid(), &pw, buf, sizeof(buf), &found) == 0 && found)
        return wb_strf("%s@%s", found->pw_name, host);
    return wb_strf("uid %u@%s", (unsigned)geteuid(), host);
}

static void set_time(wb_json *o, const char *key, int64_t ms)
{
    struct wb_buf at = WB_BUF_INIT(64);

    wb_format_time(ms, &at);
    wb_json_set_str(o, key, wb_buf_str(&at));
    wb_buf_release(&at);
}

/* When it was: as asked for, else the start of what it is about, else now. */
static int set_at(wb_json *doc, const struct wb_annotation *a, const char *started, int64_t now,
                  struct wb_err *err)
{
    const char *text = a->at ? a->at : started;
    int64_t ms = now;
    int rc = text ? wb_parse_time(text, &ms, err) : 0;

    if (rc < 0)
        return wb_wrap(err, "at");
    set_time(doc, "at", ms);
    return 0;
}

static int commit(struct wb_store *s, const wb_json *doc, const char *id, int64_t now,
                  struct wb_err *err)
{
    WB_AUTO_FREE char *name = wb_strf("%s.json", id);
    WB_AUTO_FREE char *folder = NULL;
    WB_AUTO_FREE char *message = NULL;
    struct wb_buf text = WB_BUF_INIT(WB_DOC_MAX);
    char day[11], hex[41];
    int rc;

    if (!wb_day_text(now, day))
        return wb_fail(err, WB_INVALID, "the clock of this host is not set");
    folder = wb_strf(WB_ANNOTATIONS "/%.4s/%.2s/%.2s", day, day + 5, day + 8);
    message = wb_strf("%s %s %s by %s", id, wb_json_str_or(doc, "type", ""),
                      wb_json_str_or(doc, "id", ""), wb_json_str_or(doc, "who", ""));
    wb_json_canonical(doc, &text);
    wb_buf_addc(&text, '\n');
    rc = wb_buf_check(&text, name, err);
    if (rc == 0)
        rc = wb_store_append(s,
                             &(struct wb_append){.folder = folder,
                                                 .name = name,
                                                 .text = &text,
                                                 .message = message,
                                                 .time_s = now / 1000},
                             hex, err);
    wb_buf_release(&text);
    return rc;
}

int wb_store_annotate(struct wb_store *s, const struct wb_annotation *a, char **id,
                      struct wb_err *err)
{
    WB_AUTO_FREE char *who = a->who ? wb_strdup(a->who) : login_name();
    WB_AUTO_FREE char *own = NULL;
    WB_AUTO_FREE char *started = NULL;
    WB_AUTO_JSON wb_json *doc = wb_json_object();
    int64_t now = wb_now_unix_ms(NULL);
    int rc = check_type(a->type, err);

    if (rc == 0)
        rc = check_id(a->id, err);
    if (rc == 0)
        rc = check_text(a, err);
    if (rc == 0)
        rc = look_up(s, a, &started, err);
    if (rc == 0)
        rc = set_at(doc, a, started, now, err);
    if (rc < 0)
        return rc;
    own = wb_new_id("ann_");
    wb_json_set_int(doc, "schema", WB_SCHEMA);
    wb_json_set_str(doc, "annotation", own);
    wb_json_set_str(doc, "type", a->type);
    wb_json_set_str(doc, "id", a->id);
    wb_json_set_str(doc, "text", a->text ? a->text : "");
    wb_json_set_str(doc, "who", who);
    set_time(doc, "made_at", now);
    rc = commit(s, doc, own, now, err);
    if (rc == 0)
        *id = WB_STEAL(own);
    return rc < 0 ? wb_wrap(err, "annotating %s", a->id) : 0;
}

/* ---- reading them ---- */

/* Marks those that were taken back. Withdrawals stand after what they withdraw. */
static void mark_withdrawn(wb_json *all)
{
    for (size_t i = 0; i < wb_json_len(all); i++) {
        const wb_json *w = wb_json_at(all, i);

        if (strcmp(wb_json_str_or(w, "type", ""), "withdrawn") != 0)
            continue;
        for (size_t k = 0; k < wb_json_len(all); k++) {
            wb_json *a = wb_json_at(all, k);

            if (!strcmp(wb_json_str_or(a, "annotation", ""), wb_json_str_or(w, "id", "-")))
                wb_json_set_str(a, "withdrawn_by", wb_json_str_or(w, "annotation", NULL));
        }
    }
}

static bool is_shown(const wb_json *all, const wb_json *a, const char *about, bool in_force)
{
    bool withdrawal = !strcmp(wb_json_str_or(a, "type", ""), "withdrawn");
    const char *id = wb_json_str_or(a, "id", "");

    if (in_force && (withdrawal || wb_json_get(a, "withdrawn_by")))
        return false;
    if (!about || !strcmp(id, about))
        return true;
    for (size_t i = 0; withdrawal && i < wb_json_len(all); i++) {
        const wb_json *b = wb_json_at(all, i);

        if (!strcmp(wb_json_str_or(b, "annotation", ""), id))
            return !strcmp(wb_json_str_or(b, "id", ""), about);
    }
    return false;
}

int wb_store_annotations(struct wb_store *s, const char *about, bool in_force, wb_json **out,
                         struct wb_err *err)
{
    struct notes_question a = {0};
    wb_json *shown;
    int rc = wb_index_ask(s, read_notes, &a, err);

    if (rc < 0) {
        wb_json_free(a.list);
        return rc;
    }
    mark_withdrawn(a.list);
    shown = wb_json_array();
    for (size_t i = 0; i < wb_json_len(a.list); i++)
        if (is_shown(a.list, wb_json_at(a.list, i), about, in_force))
            wb_json_push(shown, wb_json_ref(wb_json_at(a.list, i)));
    wb_json_free(a.list);
    *out = shown;
    return 0;
}
