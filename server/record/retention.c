/*
 * Raw data that has become old goes, pinned runs keep theirs: the month's reference gets a new
 * first commit that holds only these, or is removed.
 */
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/units.h"
#include "server/record/annotate.h"
#include "server/record/gitrun.h"
#include "server/record/locks.h"
#include "server/record/pack.h"
#include "server/record/quarantine.h"
#include "server/record/query.h"

#define LOCK_WAIT_NS (60 * WB_SEC)
#define MONTHS_MAX 1200
#define GIT_LIMIT_NS (3600 * WB_SEC)

struct retention {
    struct wb_store *s;
    struct wb_strv pinned; /* ids of runs */
    struct wb_git_batch *batch;
    char *quarantine;
    bool dry_run;
};

/* "2026-09" n months before the month of a time. */
static int month_before(int64_t ms, int months, char out[8], struct wb_err *err)
{
    char day[11];
    WB_AUTO_FREE char *text = NULL;
    int64_t year = 0, month = 0;

    if (!wb_day_text(ms, day))
        return wb_fail(err, WB_INVALID, "the clock of this host is not set");
    day[4] = day[7] = '\0';
    if (wb_parse_int(day, 0, 9999, &year, err) < 0 || wb_parse_int(day + 5, 1, 12, &month, err) < 0)
        return -err->code;
    month += year * 12 - 1 - months;
    text = wb_strf("%04d-%02d", (int)(month / 12), (int)(month % 12) + 1);
    memcpy(out, text, 7);
    out[7] = '\0';
    return 0;
}

static int setting(struct wb_store *s, int *months, struct wb_err *err)
{
    WB_AUTO_FREE char *text = NULL;
    int64_t n = 0;
    int rc = wb_git_config(s->git, "weighbridge.rawmonths", &text, err);

    if (rc == -WB_NOT_FOUND)
        return wb_fail(err, WB_NOT_FOUND,
                       "%s has no setting weighbridge.rawmonths: all raw data is kept", s->path);
    if (rc == 0)
        rc = wb_parse_int(text, 0, MONTHS_MAX, &n, err);
    *months = (int)n;
    return rc < 0 ? wb_wrap(err, "setting weighbridge.rawmonths of %s", s->path) : 0;
}

/* Runs that are pinned, themselves or by their campaign. */
static int read_pins(struct retention *t, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *notes = NULL;
    int rc = wb_store_annotations(t->s, NULL, true, &notes, err);

    for (size_t i = 0; rc == 0 && i < wb_json_len(notes); i++) {
        const wb_json *a = wb_json_at(notes, i);
        const char *id = wb_json_str_or(a, "id", "");
        const struct wb_list_filter f = {.campaign = id};
        WB_AUTO_JSON wb_json *runs = NULL;

        if (strcmp(wb_json_str_or(a, "type", ""), "pinned") != 0)
            continue;
        if (strncmp(id, "cmp_", 4) != 0) {
            wb_strv_add(&t->pinned, id);
            continue;
        }
        rc = wb_store_list(t->s, &f, &runs, err);
        for (size_t k = 0; rc == 0 && k < wb_json_len(runs); k++)
            wb_strv_add(&t->pinned, wb_json_str_or(wb_json_at(runs, k), "id", ""));
    }
    return rc;
}

static bool is_pinned(const struct retention *t, const char *run)
{
    for (size_t i = 0; i < t->pinned.n; i++)
        if (!strcmp(t->pinned.v[i], run))
            return true;
    return false;
}

/* One day's folder with the pinned runs only; *kept of them. */
static int keep_day(struct retention *t, const struct wb_git_entry *day, struct wb_git_entry *out,
                    size_t *runs, size_t *kept, struct wb_err *err)
{
    struct wb_git_tree tree = {0};
    size_t n = 0;
    int rc = wb_git_tree(t->s->git, &day->id, &tree, err);

    if (rc < 0)
        return rc;
    *runs += tree.n;
    for (size_t i = 0; i < tree.n; i++) {
        struct wb_git_entry e = tree.v[i];

        if (!is_pinned(t, e.name))
            continue;
        tree.v[i] = tree.v[n];
        tree.v[n++] = e;
    }
    *kept += n;
    *out = *day;
    if (n && !t->dry_run)
        rc = wb_git_put_tree(t->batch, NULL, tree.v, n, &out->id, err);
    if (n == 0)
        out->name = NULL;
    wb_git_tree_release(&tree);
    return rc;
}

static int publish(struct retention *t, struct wb_err *err)
{
    size_t n;
    const struct wb_oid *ids = wb_git_batch_ids(t->batch, &n);
    int rc = wb_quarantine_sync(t->quarantine, ids, n, err);

    return rc < 0 ? rc : wb_quarantine_publish(t->quarantine, t->s->path, ids, n, err);
}

static int replace(struct retention *t, const struct wb_git_ref *ref,
                   const struct wb_git_commit *tip, const struct wb_git_entry *days, size_t n,
                   struct wb_err *err)
{
    struct wb_oid tree, commit;
    int rc;

    if (n == 0)
        return wb_git_ref_remove(t->s->git, ref->name, err);
    rc = wb_git_put_tree(t->batch, NULL, days, n, &tree, err);
    if (rc == 0)
        rc = wb_git_put_commit(t->batch, &tree, NULL, WB_PRUNED_MESSAGE "\n", tip->time_s, &commit,
                               err);
    if (rc == 0)
        rc = publish(t, err);
    return rc < 0 ? rc : wb_git_ref_set(t->s->git, ref->name, &commit, &ref->id, err);
}

static int prune_month(struct retention *t, const struct wb_git_ref *ref, wb_json *months,
                       struct wb_err *err)
{
    struct wb_git_commit tip = {0};
    struct wb_git_tree days = {0};
    struct wb_git_entry *left = NULL;
    size_t n = 0, runs = 0, kept = 0;
    int rc = wb_git_commit(t->s->git, &ref->id, &tip, err);

    if (rc == 0)
        rc = wb_git_tree(t->s->git, &tip.tree, &days, err);
    left = wb_calloc(days.n, sizeof(*left));
    for (size_t i = 0; rc == 0 && i < days.n; i++) {
        rc = keep_day(t, &days.v[i], &left[n], &runs, &kept, err);
        n += rc == 0 && left[n].name;
    }
    if (rc == 0 && runs > kept) {
        wb_json *o = wb_json_object();

        wb_json_set_str(o, "ref", ref->name);
        wb_json_set_int(o, "runs", (int64_t)runs);
        wb_json_set_int(o, "kept", (int64_t)kept);
        wb_json_push(months, o);
        if (!t->dry_run)
            rc = replace(t, ref, &tip, left, n, err);
    }
    free(left);
    wb_git_tree_release(&days);
    wb_git_commit_release(&tip);
    return rc < 0 ? wb_wrap(err, "%s", ref->name) : 0;
}

/* With the store's lock. */
static int prune_months(struct retention *t, const char *before, wb_json *months,
                        struct wb_err *err)
{
    WB_AUTO_FREE char *folder = wb_strf(WB_RAW "%s/", t->s->controller);
    struct wb_git_ref *refs = NULL;
    size_t n = 0;
    int rc = wb_git_refs(t->s->git, folder, &refs, &n, NULL, err);

    if (rc == 0 && !t->dry_run) {
        t->quarantine = wb_quarantine_path(t->s->path);
        rc = wb_quarantine_make(t->quarantine, err);
        if (rc == 0)
            rc = wb_git_batch_new(t->s->git, t->quarantine, &t->batch, err);
    }
    for (size_t i = 0; rc == 0 && i < n; i++)
        if (strcmp(refs[i].name + strlen(folder), before) < 0)
            rc = prune_month(t, &refs[i], months, err);
    wb_git_refs_free(refs, n);
    return rc;
}

/* What no reference holds becomes loose, and goes when it is old enough that no writer can just be
 * about to use it again. */
static int free_space(struct wb_store *s, struct wb_err *err)
{
    struct wb_git_run repack = {.limit_ns = GIT_LIMIT_NS, .gentle = true};
    struct wb_git_run prune = {.limit_ns = GIT_LIMIT_NS};
    WB_AUTO_CLOSE int lock = -1;
    int rc;

    wb_strv_add(&repack.args, "repack");
    wb_strv_add(&repack.args, "-A");
    wb_strv_add(&repack.args, "-d");
    wb_strv_add(&repack.args, "-q");
    rc = wb_git_run_check(s, &repack, err);
    if (rc == 0)
        rc = wb_store_lock(s->path, LOCK_WAIT_NS, &lock, err);
    if (rc < 0)
        return rc;
    wb_strv_add(&prune.args, "prune");
    wb_strv_add(&prune.args, "--expire=1.hour.ago");
    return wb_git_run_check(s, &prune, err);
}

int wb_store_prune(struct wb_store *s, int keep_months, int64_t now_ms, bool dry_run,
                   wb_json **report, struct wb_err *err)
{
    struct retention t = {.s = s, .dry_run = dry_run};
    WB_AUTO_JSON wb_json *out = wb_json_object();
    wb_json *months = wb_json_array();
    char before[8] = "";
    int rc = 0;

    wb_json_set(out, "months", months);
    if (!s->controller)
        return wb_fail(err, WB_CONFLICT,
                       "%s is a copy without a controller id and can only be read", s->path);
    if (keep_months < 0)
        rc = setting(s, &keep_months, err);
    else if (keep_months > MONTHS_MAX)
        rc = wb_fail(err, WB_INVALID, "raw data can be kept for 0 to %d months", MONTHS_MAX);
    if (rc == 0)
        rc = month_before(now_ms, keep_months, before, err);
    if (rc == 0)
        rc = read_pins(&t, err);
    if (rc == 0) {
        WB_AUTO_CLOSE int lock = -1;

        rc = wb_store_lock(s->path, LOCK_WAIT_NS, &lock, err);
        if (rc == 0)
            rc = prune_months(&t, before, months, err);
    }
    wb_git_batch_free(t.batch);
    free(t.quarantine);
    wb_strv_release(&t.pinned);
    if (rc == 0 && !dry_run && wb_json_len(months))
        rc = free_space(s, err);
    if (rc < 0)
        return wb_wrap(err, "pruning raw data");
    wb_json_set_str(out, "before", before);
    wb_json_set_bool(out, "freed", !dry_run && wb_json_len(months) > 0);
    *report = WB_STEAL(out);
    return 0;
}
