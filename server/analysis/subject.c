#include "server/analysis/subject.h"

#include <string.h>

#include "server/analysis/effect.h"
#include "server/base/clock.h"

#define SHOWN 5 /* commits in a message */
#define DIGEST_SHOWN 12

static const wb_json *subject_of(const wb_json *summary)
{
    return wb_json_get(summary, "subject");
}

int64_t wb_subject_ms(const wb_json *summary)
{
    const char *started = wb_json_str_or(summary, "started_at", "");
    int64_t ms = INT64_MIN;

    if (wb_parse_time(wb_json_str_or(subject_of(summary), "built", started), &ms, NULL) < 0 &&
        wb_parse_time(started, &ms, NULL) < 0)
        return INT64_MIN;
    return ms;
}

const char *wb_subject_commit(const wb_json *summary)
{
    return wb_json_str_or(subject_of(summary), "commit", NULL);
}

const char *wb_subject_version(const wb_json *summary)
{
    return wb_json_str_or(subject_of(summary), "version",
                          wb_json_str_or(wb_json_get(summary, "recipe"), "version", NULL));
}

const char *wb_subject_digest(const wb_json *summary)
{
    return wb_json_str_or(subject_of(summary), "digest", NULL);
}

/* ---- which run ---- */

static bool is(const char *text, const char *which)
{
    return text != NULL && strcmp(text, which) == 0;
}

static bool begins(const char *text, const char *which)
{
    return text != NULL && strncmp(text, which, strlen(which)) == 0;
}

static const char *campaign_of(const wb_json *run)
{
    return wb_json_str_or(run, "campaign", "");
}

static bool is_measured(const wb_json *run)
{
    const char *outcome = wb_json_str_or(run, "outcome", "");

    return is(outcome, "ok") || is(outcome, "target-missed");
}

/* Ways in which a run can be meant, the surest first. */
enum way { COMMIT, CAMPAIGN, VERSION, COMMIT_BEGINS, CAMPAIGN_BEGINS, WAYS };

static bool is_meant(const wb_json *run, enum way way, const char *which)
{
    switch (way) {
    case COMMIT:
        return is(wb_subject_commit(run), which);
    case CAMPAIGN:
        return is(campaign_of(run), which);
    case VERSION:
        return is(wb_subject_version(run), which) ||
               is(wb_json_str_or(wb_json_get(run, "recipe"), "version", NULL), which);
    case COMMIT_BEGINS:
        return begins(wb_subject_commit(run), which);
    default:
        return begins(campaign_of(run), which);
    }
}

/* What was measured comes before what was not; then the newer build, then the newer run. */
static bool is_better(const wb_json *a, const wb_json *b)
{
    int64_t x, y;

    if (b == NULL || is_measured(a) != is_measured(b))
        return b == NULL || is_measured(a);
    x = wb_subject_ms(a);
    y = wb_subject_ms(b);
    if (x != y)
        return x > y;
    return strcmp(wb_json_str_or(a, "started_at", ""), wb_json_str_or(b, "started_at", "")) > 0;
}

static void add_once(struct wb_strv *list, const char *text)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->v[i], text) == 0)
            return;
    wb_strv_add(list, text);
}

static bool has(const struct wb_strv *list, const char *text)
{
    for (size_t i = 0; list != NULL && i < list->n; i++)
        if (strcmp(list->v[i], text) == 0)
            return true;
    return false;
}

static void name_some(const struct wb_strv *list, struct wb_buf *out)
{
    for (size_t i = 0; i < list->n && i < SHOWN; i++)
        wb_buf_addf(out, "%s%.60s", i > 0 ? ", " : "", list->v[i]);
    if (list->n > SHOWN)
        wb_buf_addf(out, " and %zu more", list->n - SHOWN);
}

static int fail_ambiguous(const char *which, const struct wb_strv *names, struct wb_err *err)
{
    struct wb_buf text = WB_BUF_INIT(1024);
    int rc;

    name_some(names, &text);
    rc = wb_fail(err, WB_CONFLICT, "'%.100s' is the beginning of more than one: %s", which,
                 wb_buf_str(&text));
    wb_buf_release(&text);
    return rc;
}

/* The run meant in one way; NULL in *run when there is none. */
static int find_by(const wb_json *runs, enum way way, const char *which, const wb_json **run,
                   struct wb_err *err)
{
    struct wb_strv names = {0};
    int rc = 0;

    for (size_t i = 0; i < wb_json_len(runs); i++) {
        const wb_json *r = wb_json_at(runs, i);
        if (!is_meant(r, way, which))
            continue;
        if (way == COMMIT_BEGINS || way == CAMPAIGN_BEGINS)
            add_once(&names, way == COMMIT_BEGINS ? wb_subject_commit(r) : campaign_of(r));
        if (is_better(r, *run))
            *run = r;
    }
    if (names.n > 1)
        rc = fail_ambiguous(which, &names, err);
    wb_strv_release(&names);
    return rc;
}

static int fail_unknown(const wb_json *runs, const char *key, const char *which, struct wb_err *err)
{
    struct wb_buf text = WB_BUF_INIT(1024);
    struct wb_strv commits = {0};
    int rc;

    for (size_t i = 0; i < wb_json_len(runs); i++)
        if (wb_subject_commit(wb_json_at(runs, i)) != NULL)
            add_once(&commits, wb_subject_commit(wb_json_at(runs, i)));
    name_some(&commits, &text);
    if (is(which, "last"))
        rc = wb_fail(err, WB_NOT_FOUND,
                     "series %.64s has no other campaign with a run that could be measured", key);
    else
        rc = wb_fail(err, WB_NOT_FOUND,
                     "series %.64s has no build '%.100s': behind '@' goes last, a commit (%s), a "
                     "version or a campaign",
                     key, which, commits.n > 0 ? wb_buf_str(&text) : "its runs name none");
    wb_strv_release(&commits);
    wb_buf_release(&text);
    return rc;
}

int wb_subject_find(const wb_json *runs, const char *key, const char *which,
                    const struct wb_strv *skip, const wb_json **run, struct wb_err *err)
{
    const wb_json *found = NULL;
    int rc = 0;

    if (is(which, "last")) {
        for (size_t i = 0; i < wb_json_len(runs); i++) {
            const wb_json *r = wb_json_at(runs, i);
            if (is_measured(r) && !has(skip, campaign_of(r)) && is_better(r, found))
                found = r;
        }
    } else {
        for (int way = 0; way < WAYS && rc == 0 && found == NULL; way++)
            rc = find_by(runs, (enum way)way, which, &found, err);
    }
    if (rc < 0)
        return rc;
    if (found == NULL)
        return fail_unknown(runs, key, which, err);
    *run = found;
    return 0;
}

/* ---- bits that changed under one name ---- */

static bool same_text(const wb_json *a, const wb_json *b, const char *key)
{
    return strcmp(wb_json_str_or(a, key, ""), wb_json_str_or(b, key, "")) == 0;
}

/* The newest point before `at` of the same name that has a digest. */
static const wb_json *namesake(const wb_json *points, size_t at)
{
    const wb_json *p = wb_json_at(points, at);

    for (size_t i = at; i-- > 0;) {
        const wb_json *before = wb_json_at(points, i);
        if (wb_json_string(wb_json_get(before, "digest")) != NULL &&
            same_text(before, p, "version") && same_text(before, p, "commit"))
            return before;
    }
    return NULL;
}

void wb_subject_digests(const wb_json *points, wb_json *warnings)
{
    size_t n = 0;

    for (size_t i = 0; i < wb_json_len(points); i++) {
        const wb_json *p = wb_json_at(points, i), *before;
        const char *digest = wb_json_str_or(p, "digest", NULL);
        const char *commit = wb_json_str_or(p, "commit", NULL);
        if (digest == NULL)
            continue;
        before = namesake(points, i);
        if (before == NULL || same_text(before, p, "digest"))
            continue;
        if (++n > SHOWN)
            continue;
        wb_analysis_warn(warnings, "digest-changed",
                         "version %s%s%s had other bits in %s (digest %.*s...) than in %s "
                         "(%.*s...): one name, two builds",
                         wb_json_str_or(p, "version", "?"), commit ? ", commit " : "",
                         commit ? commit : "", wb_json_str_or(p, "campaign", "?"), DIGEST_SHOWN,
                         digest, wb_json_str_or(before, "campaign", "?"), DIGEST_SHOWN,
                         wb_json_str_or(before, "digest", ""));
    }
    if (n > SHOWN)
        wb_analysis_warn(warnings, "digest-changed", "and %zu more changes of that kind",
                         n - SHOWN);
}
