#include "server/engine/campaign.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "server/base/cancel.h"
#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/job.h"

#define DOC_MAX (8u << 20)
#define EVENTS_MAX (64u << 20)
#define RESERVE_BYTES (1 << 20)
/* A killed engine's lock outlives it for a moment: in children of it that are about to become
 * other programs, and in those who only look at it. */
#define DEAD_LOCK_NS (5 * WB_SEC)
#define DEAD_LOOK_NS (10 * WB_MS)

/* The lock's text: who holds it, so that no other process is ever taken for it. */
#define HOLDER_FORMAT "process %d started at tick %llu of boot %s"
#define HOLDER_SCAN "process %d started at tick %llu of boot %36s"

struct wb_campaign_dir {
    char *id, *path;
    int lock;
    wb_json *state;
    wb_json *pending; /* events since the last take */
    wb_event_fn fn;
    void *arg;
};

static char *inside(const struct wb_campaign_dir *c, const char *name)
{
    return wb_strf("%s/%s", c->path, name);
}

static int write_doc(const struct wb_campaign_dir *c, const char *name, const wb_json *j,
                     struct wb_err *err)
{
    WB_AUTO_FREE char *path = inside(c, name);
    struct wb_buf b = WB_BUF_INIT(DOC_MAX);
    int rc;

    wb_json_pretty(j, &b);
    rc = wb_buf_check(&b, name, err);
    if (rc == 0)
        rc = wb_file_write(path, wb_buf_str(&b), b.len, 0644, err);
    wb_buf_release(&b);
    return rc;
}

static struct wb_campaign_dir *new_dir(const char *state_dir, const char *id)
{
    struct wb_campaign_dir *c = wb_calloc(1, sizeof(*c));

    c->id = wb_strdup(id);
    c->path = wb_strf("%s/campaigns/%s", state_dir, id);
    c->lock = -1;
    c->pending = wb_json_array();
    return c;
}

static int take_lock(struct wb_campaign_dir *c, struct wb_err *err)
{
    WB_AUTO_FREE char *path = inside(c, "lock");
    WB_AUTO_FREE char *who = NULL;
    char boot[37] = "";
    int rc = wb_boot_id(boot, err);

    who =
        wb_strf(HOLDER_FORMAT, (int)getpid(), (unsigned long long)wb_process_ticks(getpid()), boot);
    return rc < 0 ? rc : wb_lock_file(path, who, &c->lock, err);
}

int wb_campaign_look(const char *state_dir, const char *id, struct wb_campaign_holder *out,
                     struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("%s/campaigns/%s/lock", state_dir, id);
    WB_AUTO_CLOSE int fd = -1;
    struct wb_campaign_holder h = {0};
    char text[256] = "";
    unsigned long long ticks = 0;
    int pid = 0;

    if (!wb_safe_name(id))
        return wb_fail(err, WB_NOT_FOUND, "there is no campaign '%s' in %s", id, state_dir);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return wb_fail(err, WB_NOT_FOUND, "there is no campaign '%s' in %s", id, state_dir);
    if (fd < 0)
        return wb_fail_sys(err, errno, "cannot open %s", path);
    /* A shared lock, given back at once: it says only whether the other one is there. */
    h.held = flock(fd, LOCK_SH | LOCK_NB) < 0;
    if (h.held && pread(fd, text, sizeof(text) - 1, 0) > 0 &&
        sscanf(text, HOLDER_SCAN, &pid, &ticks, h.boot) == 3) {
        h.pid = (pid_t)pid;
        h.ticks = ticks;
    }
    *out = h;
    return 0;
}

/* Real blocks, so that they are there when they are given up; not every file system can tell. */
int wb_campaign_keep_reserve(const struct wb_campaign_dir *c, struct wb_err *err)
{
    WB_AUTO_FREE char *path = inside(c, "reserve");
    WB_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    int rc = fd < 0 ? errno : posix_fallocate(fd, 0, RESERVE_BYTES);

    return rc && rc != EOPNOTSUPP ? wb_fail_sys(err, rc, "cannot reserve space in %s", path) : 0;
}

void wb_campaign_spend_reserve(struct wb_campaign_dir *c)
{
    WB_AUTO_FREE char *path = inside(c, "reserve");

    (void)unlink(path); /* not there: spent already */
}

/* A file of lines whose last one has no end: its writer was killed or the disk was full. What is
 * added must not become part of it. */
static void mend_tail(const struct wb_campaign_dir *c, const char *name)
{
    WB_AUTO_FREE char *path = inside(c, name);
    WB_AUTO_CLOSE int fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
    off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    char last = '\n';

    if (size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n' && write(fd, "\n", 1) < 0)
        return; /* no room: nothing else can be added either */
}

int wb_campaign_create(const char *state_dir, const char *id, const wb_json *study,
                       const wb_json *plan, const wb_json *state, struct wb_campaign_dir **out,
                       struct wb_err *err)
{
    struct wb_campaign_dir *c = new_dir(state_dir, id);
    WB_AUTO_FREE char *runs = inside(c, "runs");
    int rc = 0;

    if (!wb_safe_name(id))
        rc = wb_fail(err, WB_INVALID, "'%s' is not a campaign id", id);
    else if (wb_path_exists(c->path))
        rc = wb_fail(err, WB_CONFLICT, "campaign folder %s exists already", c->path);
    if (rc == 0)
        rc = wb_mkdir_all(runs, 0755, err);
    if (rc == 0)
        rc = take_lock(c, err);
    if (rc == 0)
        rc = wb_campaign_keep_reserve(c, err);
    if (rc == 0)
        rc = wb_campaign_write(c, study, plan, err);
    if (rc == 0) {
        c->state = wb_json_copy(state);
        wb_json_set_int(c->state, "state_version", WB_STATE_VERSION);
        rc = wb_campaign_save_state(c, err);
    }
    if (rc < 0) {
        wb_campaign_close(c);
        return rc;
    }
    *out = c;
    return 0;
}

/* Takes the lock of an existing campaign; WB_CONFLICT only while its holder lives. */
static int take_lock_again(struct wb_campaign_dir *c, const char *state_dir, struct wb_err *err)
{
    int64_t end = wb_now_ns(NULL) + DEAD_LOCK_NS;
    int rc;

    while ((rc = take_lock(c, err)) == -WB_CONFLICT && wb_now_ns(NULL) < end) {
        struct wb_campaign_holder h;

        if (wb_campaign_look(state_dir, c->id, &h, NULL) == 0 && h.held &&
            wb_process_is(h.pid, h.ticks, h.boot))
            break;
        WB_IGNORE(wb_wait(NULL, -1, DEAD_LOOK_NS, NULL)); /* only a pause */
    }
    return rc;
}

static int read_state(struct wb_campaign_dir *c, const char *path, struct wb_err *err)
{
    WB_AUTO_FREE char *aside = wb_strf("%s.damaged", path);
    struct wb_err why = WB_ERR_INIT;

    /* Killed before its first state was written: nothing outside was made either. */
    if (!wb_path_exists(path)) {
        c->state = wb_json_object();
        return 0;
    }
    if (wb_json_read_file(path, DOC_MAX, &c->state, &why) == 0)
        return 0;
    if (why.sys) {
        if (err)
            *err = why;
        return -why.code;
    }
    if (rename(path, aside) < 0)
        return wb_fail_sys(err, errno, "cannot put the damaged %s aside", path);
    c->state = wb_json_object();
    return 0;
}

int wb_campaign_open(const char *state_dir, const char *id, struct wb_campaign_dir **out,
                     struct wb_err *err)
{
    struct wb_campaign_dir *c = new_dir(state_dir, id);
    WB_AUTO_FREE char *path = inside(c, "state.json");
    int rc = 0;
    int64_t version;

    if (!wb_safe_name(id) || !wb_path_exists(c->path))
        rc = wb_fail(err, WB_NOT_FOUND, "there is no campaign '%s' in %s", id, state_dir);
    if (rc == 0)
        rc = take_lock_again(c, state_dir, err);
    if (rc == 0) {
        mend_tail(c, "ledger.ndjson");
        mend_tail(c, "events.ndjson");
        rc = read_state(c, path, err);
    }
    if (rc == 0) {
        version = wb_json_int_or(c->state, "state_version", WB_STATE_VERSION);
        if (version > WB_STATE_VERSION)
            rc = wb_fail(err, WB_UNSUPPORTED,
                         "campaign '%s' was written by a newer program (state version %lld, this "
                         "one reads up to %d)",
                         id, (long long)version, WB_STATE_VERSION);
    }
    if (rc < 0) {
        wb_campaign_close(c);
        return rc;
    }
    *out = c;
    return 0;
}

void wb_campaign_close(struct wb_campaign_dir *c)
{
    if (!c)
        return;
    if (c->lock >= 0)
        (void)close(c->lock);
    wb_json_free(c->state);
    wb_json_free(c->pending);
    free(c->id);
    free(c->path);
    free(c);
}

int wb_campaign_list(const char *state_dir, struct wb_strv *out, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("%s/campaigns", state_dir);

    return wb_path_exists(path) ? wb_list_dir(path, out, err) : 0;
}

const char *wb_campaign_id(const struct wb_campaign_dir *c)
{
    return c->id;
}

const char *wb_campaign_path(const struct wb_campaign_dir *c)
{
    return c->path;
}

char *wb_campaign_run_dir(const struct wb_campaign_dir *c, const char *run)
{
    return wb_strf("%s/runs/%s", c->path, run);
}

wb_json *wb_campaign_state(const struct wb_campaign_dir *c)
{
    return c->state;
}

int wb_campaign_save_state(struct wb_campaign_dir *c, struct wb_err *err)
{
    return write_doc(c, "state.json", c->state, err);
}

int wb_campaign_set_state(struct wb_campaign_dir *c, const char *state, bool clean,
                          struct wb_err *err)
{
    wb_json_set_str(c->state, "state", state);
    wb_json_set_bool(c->state, "clean", clean);
    return wb_campaign_save_state(c, err);
}

int wb_campaign_write(const struct wb_campaign_dir *c, const wb_json *study, const wb_json *plan,
                      struct wb_err *err)
{
    int rc = write_doc(c, "study.json", study, err);

    return rc < 0 ? rc : write_doc(c, "plan.json", plan, err);
}

int wb_campaign_read(const struct wb_campaign_dir *c, wb_json **study, wb_json **plan,
                     struct wb_err *err)
{
    WB_AUTO_FREE char *study_path = inside(c, "study.json");
    WB_AUTO_FREE char *plan_path = inside(c, "plan.json");
    wb_json *s = NULL;
    int rc = wb_json_read_file(study_path, DOC_MAX, &s, err);

    if (rc == 0)
        rc = wb_json_read_file(plan_path, DOC_MAX, plan, err);
    if (rc < 0) {
        wb_json_free(s);
        return rc;
    }
    *study = s;
    return 0;
}

void wb_campaign_listen(struct wb_campaign_dir *c, wb_event_fn fn, void *arg)
{
    c->fn = fn;
    c->arg = arg;
}

static wb_json *stamped(const char *type, wb_json *fields)
{
    struct wb_buf t = WB_BUF_INIT(64);
    wb_json *e = wb_json_object();

    wb_format_time(wb_now_unix_ms(NULL), &t);
    wb_json_set_str(e, "t", wb_buf_str(&t));
    wb_json_set_str(e, "type", type);
    for (void *it = fields ? wb_json_first(fields) : NULL; it; it = wb_json_next(fields, it))
        wb_json_set(e, wb_json_iter_key(it), wb_json_ref(wb_json_iter_value(it)));
    wb_json_free(fields);
    wb_buf_release(&t);
    return e;
}

/* Takes the unfinished last line off a file. */
static void cut_tail(const char *path)
{
    WB_AUTO_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC);
    off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    char c;

    while (size > 0 && pread(fd, &c, 1, size - 1) == 1 && c != '\n')
        size--;
    if (fd >= 0 && ftruncate(fd, size) < 0)
        return; /* it stays torn: readers skip it, and the next opener mends it */
}

/* One write(2) per line, so that a line is there whole or torn only at the very end. */
static int append_line(const char *path, const wb_json *j, bool sync, struct wb_err *err)
{
    struct wb_buf b = WB_BUF_INIT(1u << 20);
    int rc;

    wb_json_line(j, &b);
    wb_buf_addc(&b, '\n');
    rc = wb_buf_check(&b, path, err);
    if (rc == 0 && sync) {
        rc = wb_file_append(path, wb_buf_str(&b), b.len, err);
    } else if (rc == 0) {
        WB_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

        if (fd < 0 || write(fd, b.data, b.len) != (ssize_t)b.len)
            rc = wb_fail_sys(err, errno, "cannot append to %s", path);
    }
    /* A line of which only a part found room. */
    if (rc < 0)
        cut_tail(path);
    wb_buf_release(&b);
    return rc;
}

void wb_campaign_event(struct wb_campaign_dir *c, const char *type, wb_json *fields)
{
    WB_AUTO_FREE char *path = inside(c, "events.ndjson");
    wb_json *e = stamped(type, fields);

    WB_IGNORE(append_line(path, e, false, NULL)); /* a full disk shows in the ledger, which must */
    wb_json_push(c->pending, wb_json_ref(e));
    if (c->fn)
        c->fn(c->arg, e);
    wb_json_free(e);
}

void wb_campaign_tell(struct wb_campaign_dir *c, const char *type, wb_json *fields)
{
    WB_AUTO_JSON wb_json *e = stamped(type, fields);

    if (c->fn)
        c->fn(c->arg, e);
}

wb_json *wb_campaign_take_events(struct wb_campaign_dir *c)
{
    wb_json *all = c->pending;

    c->pending = wb_json_array();
    return all;
}

wb_json *wb_campaign_events_of(const struct wb_campaign_dir *c, const char *run)
{
    WB_AUTO_FREE char *path = inside(c, "events.ndjson");
    WB_AUTO_FREE char *text = NULL;
    wb_json *all = wb_json_array();
    size_t len;

    if (wb_file_read(path, EVENTS_MAX, &text, &len, NULL) < 0)
        return all;
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        wb_json *e = NULL;

        if (wb_json_parse(line, (size_t)(end - line), &e, NULL) == 0 &&
            !strcmp(wb_json_str_or(e, "run", ""), run))
            wb_json_push(all, wb_json_ref(e));
        wb_json_free(e);
    }
    return all;
}

int wb_ledger_make(struct wb_campaign_dir *c, const struct wb_ledger_entry *e, struct wb_err *err)
{
    WB_AUTO_FREE char *path = inside(c, "ledger.ndjson");
    WB_AUTO_JSON wb_json *j = wb_json_object();

    wb_json_set_str(j, "op", "make");
    wb_json_set_str(j, "kind", e->kind);
    wb_json_set_str(j, "name", e->name);
    wb_json_set_str(j, "dir", e->dir);
    wb_json_set_str(j, "run", e->run);
    if (append_line(path, j, true, err) < 0)
        return wb_wrap(err, "ledger of campaign %s", c->id);
    return 0;
}

int wb_ledger_gone(struct wb_campaign_dir *c, const char *name, struct wb_err *err)
{
    WB_AUTO_FREE char *path = inside(c, "ledger.ndjson");
    WB_AUTO_JSON wb_json *j = wb_json_object();

    wb_json_set_str(j, "op", "gone");
    wb_json_set_str(j, "name", name);
    if (append_line(path, j, false, err) < 0)
        return wb_wrap(err, "ledger of campaign %s", c->id);
    return 0;
}

static void entry_clear(struct wb_ledger_entry *e)
{
    free(e->kind);
    free(e->name);
    free(e->dir);
    free(e->run);
}

/* Moves an entry behind the n open ones; n is then one less. */
static size_t cross_out(struct wb_ledger_entry *v, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        struct wb_ledger_entry gone = v[i];

        if (strcmp(gone.name, name) != 0)
            continue;
        v[i] = v[n - 1];
        v[n - 1] = gone;
        return n - 1;
    }
    return n;
}

int wb_ledger_open_entries(struct wb_campaign_dir *c, struct wb_ledger_entry **out, size_t *n,
                           struct wb_err *err)
{
    WB_AUTO_FREE char *path = inside(c, "ledger.ndjson");
    WB_AUTO_FREE char *text = NULL;
    struct wb_ledger_entry *v = NULL;
    size_t open = 0, count = 0, cap = 0, len = 0;

    *out = NULL;
    *n = 0;
    if (!wb_path_exists(path))
        return 0;
    if (wb_file_read(path, 64u << 20, &text, &len, err) < 0)
        return -err->code;
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        WB_AUTO_JSON wb_json *j = NULL;
        const char *name;

        if (wb_json_parse(line, (size_t)(end - line), &j, NULL) < 0)
            continue;
        name = wb_json_str_or(j, "name", "");
        if (!strcmp(wb_json_str_or(j, "op", ""), "make")) {
            wb_grow(&v, &cap, count + 1, sizeof(*v));
            if (open < count)
                v[count] = v[open]; /* the first crossed-out one makes room */
            count++;
            v[open++] = (struct wb_ledger_entry){
                .kind = wb_strdup(wb_json_str_or(j, "kind", "")),
                .name = wb_strdup(name),
                .dir = wb_strdup(wb_json_str_or(j, "dir", "")),
                .run = wb_strdup(wb_json_str_or(j, "run", "")),
            };
            continue;
        }
        open = cross_out(v, open, name);
    }
    for (size_t i = open; i < count; i++)
        entry_clear(&v[i]);
    *out = v;
    *n = open;
    return 0;
}

void wb_ledger_free(struct wb_ledger_entry *e, size_t n)
{
    for (size_t i = 0; i < n; i++)
        entry_clear(&e[i]);
    free(e);
}
