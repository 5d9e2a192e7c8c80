#include "server/record/push.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/record/gitrun.h"
#include "server/record/locks.h"
#include "server/record/work.h"

#define STATE_MAX (4u << 20)
#define PUSH_LIMIT_NS (1800 * WB_SEC)
#define PAUSE_MIN_MS 30000
#define PAUSE_MAX_MS 3600000
#define FAILURES_MAX 20 /* counted; the pause is at its longest by then */
#define REMOTE_MAX 1000
#define REFUSED_TOLD 3

/* A reference that is ours and where it stood when the push began. */
struct offer {
    char *ref;
    char hex[WB_OID_HEX];
    bool kept;
    const char *status; /* constant */
    char *reason;
};

struct push {
    struct wb_store *s;
    const char *remote;
    char *name;     /* of it, without secrets: what is kept and told */
    wb_json *state; /* {name: {pushed: {ref: hex}, failures, next_ms}} */
    wb_json *mine;  /* state[name], borrowed */
    struct offer *v;
    size_t n, cap;
};

static char *state_path(const struct wb_store *s)
{
    return wb_strf("%s/weighbridge.push.json", s->path);
}

static void push_release(struct push *p)
{
    for (size_t i = 0; i < p->n; i++) {
        free(p->v[i].ref);
        free(p->v[i].reason);
    }
    free(p->v);
    free(p->name);
    wb_json_free(p->state);
}

/* "https://user:secret@host/x" -> "https://host/x". */
static char *name_of(const char *remote)
{
    const char *scheme = strstr(remote, "://"), *host = scheme ? scheme + 3 : NULL, *at = NULL;

    for (const char *c = host; c && *c && !strchr("/?#", *c); c++)
        if (*c == '@')
            at = c;
    return at ? wb_strf("%.*s%s", (int)(host - remote), remote, at + 1) : wb_strdup(remote);
}

/* The same under names; files of earlier versions had the remotes as they were typed. */
static wb_json *named(const wb_json *state)
{
    wb_json *out = wb_json_object();

    for (void *it = wb_json_first(state); it; it = wb_json_next(state, it)) {
        WB_AUTO_FREE char *name = name_of(wb_json_iter_key(it));

        if (!strcmp(name, wb_json_iter_key(it)) || !wb_json_get(out, name))
            wb_json_set(out, name, wb_json_ref(wb_json_iter_value(it)));
    }
    return out;
}

/* A state that cannot be read is none: all is offered again, which does no harm. */
static void read_state(struct push *p)
{
    WB_AUTO_FREE char *path = state_path(p->s);
    WB_AUTO_JSON wb_json *file = NULL;

    WB_IGNORE(wb_json_read_file(path, STATE_MAX, &file, NULL));
    p->name = name_of(p->remote);
    p->state = named(wb_json_type(file) == WB_JSON_OBJECT ? file : NULL);
    p->mine = wb_json_get(p->state, p->name);
    if (wb_json_type(p->mine) != WB_JSON_OBJECT) {
        p->mine = wb_json_object();
        wb_json_set(p->state, p->name, p->mine);
    }
    if (wb_json_type(wb_json_get(p->mine, "pushed")) != WB_JSON_OBJECT)
        wb_json_set(p->mine, "pushed", wb_json_object());
}

static int write_state(const struct push *p, struct wb_err *err)
{
    WB_AUTO_FREE char *path = state_path(p->s);
    struct wb_buf b = WB_BUF_INIT(STATE_MAX);
    int rc;

    wb_json_pretty(p->state, &b);
    rc = wb_buf_check(&b, path, err);
    if (rc == 0)
        rc = wb_file_write(path, wb_buf_str(&b), b.len, 0600, err);
    wb_buf_release(&b);
    return rc;
}

static int check_remote(const char *remote, struct wb_err *err)
{
    bool good = remote && *remote && *remote != '-' && strlen(remote) <= REMOTE_MAX;

    for (const char *c = remote; good && *c; c++)
        good = (unsigned char)*c > 0x20 && *c != 0x7f;
    if (!good)
        return wb_fail(err, WB_INVALID,
                       "'%.80s' cannot be a remote; allowed: the name of one, a path or a URL",
                       remote ? remote : "");
    return 0;
}

/* ---- what is offered ---- */

static int add_offers(struct push *p, const char *folder, struct wb_err *err)
{
    struct wb_git_ref *refs = NULL;
    size_t n = 0;
    int rc = wb_git_refs(p->s->git, folder, &refs, &n, NULL, err);

    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct wb_git_commit c = {0};
        struct offer o = {.status = "up-to-date"};

        rc = wb_git_commit(p->s->git, &refs[i].id, &c, err);
        if (rc < 0)
            break;
        o.ref = wb_strdup(refs[i].name);
        o.kept = !strncmp(c.message, WB_PRUNED_MESSAGE, strlen(WB_PRUNED_MESSAGE));
        wb_oid_hex(&refs[i].id, o.hex);
        wb_git_commit_release(&c);
        wb_grow(&p->v, &p->cap, p->n + 1, sizeof(*p->v));
        p->v[p->n++] = o;
    }
    wb_git_refs_free(refs, n);
    return rc;
}

/* As they stand between two commits: a push must never offer raw data whose run is then not
 * recorded, because that is taken back. */
static int read_offers(struct push *p, struct wb_err *err)
{
    WB_AUTO_FREE char *raw = wb_strf(WB_RAW "%s/", p->s->controller);
    WB_AUTO_FREE char *record = wb_strf(WB_RECORDS "%s", p->s->controller);
    WB_AUTO_CLOSE int lock = -1;
    size_t kept = 0;
    int rc = wb_store_tidy(p->s, &lock, err);

    if (rc == 0)
        rc = add_offers(p, raw, err);
    kept = p->n;
    if (rc == 0)
        rc = add_offers(p, WB_RECORDS, err);
    for (size_t i = kept; i < p->n; i++) { /* of the records only this controller's */
        if (!strcmp(p->v[i].ref, record)) {
            struct offer o = p->v[i];

            p->v[i] = p->v[kept];
            p->v[kept++] = o;
        }
    }
    while (p->n > kept)
        free(p->v[--p->n].ref);
    return rc;
}

static bool is_pushed(const struct push *p, const struct offer *o)
{
    const char *had = wb_json_str_or(wb_json_get(p->mine, "pushed"), o->ref, "");

    return o->kept || !strcmp(had, o->hex);
}

/* ---- the push and its answer ---- */

static struct offer *find_offer(struct push *p, const char *ref, size_t n)
{
    for (size_t i = 0; i < p->n; i++)
        if (strlen(p->v[i].ref) == n && !strncmp(p->v[i].ref, ref, n))
            return &p->v[i];
    return NULL;
}

bool wb_push_answer(const char *line, size_t n, struct wb_push_answer *out)
{
    WB_AUTO_FREE char *text = wb_strndup(line, n);
    char *to, *summary;

    n = strlen(text); /* a NUL ends it, too */
    if (n < 4 || text[1] != '\t' || !strchr(" +-*!=", text[0]))
        return false;
    summary = strchr(text + 2, '\t');
    if (!summary)
        return false;
    *summary++ = '\0';
    to = strrchr(text + 2, ':');
    if (!to || !to[1])
        return false;
    *out = (struct wb_push_answer){.refused = text[0] == '!',
                                   .same = text[0] == '=',
                                   .ref = wb_strdup(to + 1),
                                   .reason = text[0] == '!' ? wb_last_line(summary) : NULL};
    return true;
}

static void read_line(struct push *p, const char *line, size_t n)
{
    struct wb_push_answer a = {0};
    struct offer *o = wb_push_answer(line, n, &a) ? find_offer(p, a.ref, strlen(a.ref)) : NULL;

    if (o) {
        o->status = a.refused ? "refused" : a.same ? "up-to-date" : "pushed";
        if (!a.refused)
            wb_json_set_str(wb_json_get(p->mine, "pushed"), o->ref, o->hex);
        free(o->reason);
        o->reason = WB_STEAL(a.reason);
    }
    free(a.ref);
    free(a.reason);
}

/* Names what was refused, and why, as far as there is room. */
static int fail_refused(const struct push *p, size_t refused, struct wb_err *err)
{
    struct wb_buf names = WB_BUF_INIT(8192);
    size_t told = 0;
    int rc;

    for (size_t i = 0; i < p->n && told < REFUSED_TOLD; i++) {
        if (strcmp(p->v[i].status, "refused") != 0)
            continue;
        wb_buf_addf(&names, "%s%.100s", told++ ? ", " : "", p->v[i].ref);
        if (p->v[i].reason)
            wb_buf_addf(&names, " (%.100s)", p->v[i].reason);
    }
    rc = wb_fail(err, WB_CONFLICT, "%.100s refused %zu reference%s: %s%s", p->name, refused,
                 refused == 1 ? "" : "s", wb_buf_str(&names), refused > told ? ", ..." : "");
    wb_buf_release(&names);
    return rc;
}

static int run_push(struct push *p, const struct wb_cancel *cancel, struct wb_err *err)
{
    struct wb_git_run run = {.limit_ns = PUSH_LIMIT_NS, .network = true, .cancel = cancel};
    struct wb_child_result res = {0};
    size_t offered = 0, refused = 0;
    int rc;

    wb_strv_add(&run.args, "push");
    wb_strv_add(&run.args, "--porcelain");
    wb_strv_add(&run.args, "--no-verify");
    wb_strv_add(&run.args, "--");
    wb_strv_add(&run.args, p->remote);
    for (size_t i = 0; i < p->n; i++) {
        if (p->v[i].kept)
            continue; /* all others, also those it had once: it may have lost them */
        wb_strv_addf(&run.args, "%s:%s", p->v[i].hex, p->v[i].ref);
        p->v[i].status = "failed";
        offered++;
    }
    if (offered == 0) {
        wb_strv_release(&run.args);
        return 0;
    }
    rc = wb_git_run(p->s, &run, &res, err);
    for (const char *line = wb_buf_str(&res.out); *line;) {
        size_t n = strcspn(line, "\n");

        read_line(p, line, n);
        line += n + (line[n] == '\n');
    }
    for (size_t i = 0; i < p->n; i++)
        refused += !strcmp(p->v[i].status, "refused");
    if (rc == 0 && refused)
        rc = fail_refused(p, refused, err);
    else if (rc == 0 && res.exit_code != 0) {
        WB_AUTO_FREE char *said = wb_last_line(wb_buf_str(&res.err));

        rc = wb_fail(err, WB_UNAVAILABLE, "cannot push to %s: %s", p->name, said);
    }
    wb_child_release(&res);
    return rc;
}

/* When it may be tried again. */
static void note_result(struct push *p, bool failed, int64_t now_ms)
{
    int64_t failures = failed ? wb_json_int_or(p->mine, "failures", 0) + 1 : 0;
    int64_t pause = PAUSE_MIN_MS;

    if (failures > FAILURES_MAX)
        failures = FAILURES_MAX;
    for (int64_t i = 1; i < failures && pause < PAUSE_MAX_MS; i++)
        pause *= 2;
    wb_json_set_int(p->mine, "failures", failures);
    wb_json_set_int(p->mine, "next_ms",
                    failures ? now_ms + (pause < PAUSE_MAX_MS ? pause : PAUSE_MAX_MS) : 0);
}

static wb_json *make_report(const struct push *p)
{
    wb_json *report = wb_json_object(), *refs = wb_json_array();
    int64_t next = wb_json_int_or(p->mine, "next_ms", 0);
    struct wb_buf at = WB_BUF_INIT(64);
    int64_t pending = 0;

    for (size_t i = 0; i < p->n; i++) {
        const struct offer *o = &p->v[i];
        wb_json *r = wb_json_object();

        wb_json_set_str(r, "ref", o->ref);
        wb_json_set_str(r, "commit", o->hex);
        wb_json_set_str(r, "status", o->kept ? "kept" : o->status);
        wb_json_set_str(r, "reason", o->reason);
        wb_json_push(refs, r);
        pending += !is_pushed(p, o);
    }
    if (next)
        wb_format_time(next, &at);
    wb_json_set_str(report, "remote", p->name);
    wb_json_set(report, "refs", refs);
    wb_json_set_int(report, "pending", pending);
    wb_json_set_str(report, "next_at", next ? wb_buf_str(&at) : NULL);
    wb_buf_release(&at);
    return report;
}

static int open_push(struct push *p, struct wb_err *err)
{
    int rc = check_remote(p->remote, err);

    if (rc == 0 && !p->s->controller)
        rc = wb_fail(err, WB_CONFLICT,
                     "%s is a copy without a controller id and has nothing of its own to push",
                     p->s->path);
    if (rc == 0) {
        read_state(p);
        rc = read_offers(p, err);
    }
    return rc;
}

int wb_store_push(struct wb_store *s, const char *remote, int64_t now_ms,
                  const struct wb_cancel *cancel, wb_json **report, struct wb_err *err)
{
    WB_AUTO_FREE char *lock_path = wb_strf("%s/weighbridge.push.lock", s->path);
    struct push p = {.s = s, .remote = remote};
    struct wb_err why = WB_ERR_INIT;
    WB_AUTO_CLOSE int lock = -1;
    int rc = wb_lock_wait(lock_path, 0, &lock, err), pushed;

    if (rc < 0)
        return rc == -WB_CONFLICT ? wb_wrap(err, "another process is pushing") : rc;
    rc = open_push(&p, err);
    if (rc < 0) {
        push_release(&p);
        return rc;
    }
    pushed = run_push(&p, cancel, &why);
    note_result(&p, pushed < 0, now_ms);
    rc = write_state(&p, err);
    if (rc == 0 && (pushed == 0 || pushed == -WB_CONFLICT || pushed == -WB_UNAVAILABLE))
        *report = make_report(&p);
    push_release(&p);
    if (pushed < 0 && err)
        *err = why;
    return pushed < 0 ? pushed : rc;
}

int wb_store_push_due(struct wb_store *s, const char *remote, int64_t now_ms, bool *pending,
                      int64_t *not_before_ms, struct wb_err *err)
{
    struct push p = {.s = s, .remote = remote};
    int rc = open_push(&p, err);

    if (rc == 0) {
        *pending = false;
        for (size_t i = 0; i < p.n; i++)
            *pending |= !is_pushed(&p, &p.v[i]);
        *not_before_ms = *pending ? wb_json_int_or(p.mine, "next_ms", 0) : 0;
        if (*not_before_ms < 0 || *not_before_ms - now_ms > PAUSE_MAX_MS)
            *not_before_ms = 0;
    }
    push_release(&p);
    return rc;
}

int wb_store_push_remotes(struct wb_store *s, struct wb_strv *out, struct wb_err *err)
{
    WB_AUTO_FREE char *path = state_path(s);
    WB_AUTO_JSON wb_json *file = NULL;
    WB_AUTO_JSON wb_json *state = NULL;
    int rc = wb_path_exists(path) ? wb_json_read_file(path, STATE_MAX, &file, err) : 0;

    state = named(file);
    for (void *it = wb_json_first(state); it; it = wb_json_next(state, it))
        wb_strv_add(out, wb_json_iter_key(it));
    return rc;
}
