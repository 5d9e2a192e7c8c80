#include "server/cli/refs.h"

#include <stdlib.h>
#include <string.h>

#include "server/analysis/effect.h"
#include "server/analysis/guard.h"
#include "server/analysis/remarks.h"
#include "server/record/annotate.h"

void wb_cli_ref_release(struct wb_cli_ref *r)
{
    free(r->campaign);
    free(r->arm);
    wb_json_free(r->plan);
    wb_json_free(r->runs);
    wb_json_free(r->environment);
    wb_json_free(r->annotations);
    *r = (struct wb_cli_ref){0};
}

/* The label that is `text` or the only one that begins with it. */
static int find_arm(struct wb_cli_ref *r, const char *text, struct wb_err *err)
{
    const wb_json *arms = wb_json_get(r->plan, "arms");
    struct wb_buf names = WB_BUF_INIT(4096);
    const char *found = NULL;
    size_t hits = 0;
    int rc = 0;

    for (size_t i = 0; i < wb_json_len(arms); i++) {
        const char *label = wb_json_str_or(wb_json_at(arms, i), "label", "");
        wb_buf_addf(&names, "%s'%s'", i > 0 ? ", " : "", label);
        if (strncmp(label, text, strlen(text)) != 0)
            continue;
        found = label;
        hits++;
        if (strcmp(label, text) == 0) {
            hits = 1;
            break;
        }
    }
    if (hits == 1)
        r->arm = wb_strdup(found);
    else
        rc = wb_fail(err, hits ? WB_CONFLICT : WB_NOT_FOUND, "%s arm '%s' in %s; its arms are %s",
                     hits ? "more than one" : "there is no", text, r->campaign, wb_buf_str(&names));
    wb_buf_release(&names);
    return rc;
}

/* The records of out->campaign. */
static int read_records(struct wb_store *s, struct wb_cli_ref *out, struct wb_err *err)
{
    const struct wb_list_filter f = {.campaign = out->campaign};
    int rc = wb_store_list(s, &f, &out->runs, err);
    const char *first = wb_json_str_or(wb_json_at(out->runs, 0), "id", "");

    if (rc == 0)
        rc = wb_store_annotations(s, NULL, true, &out->annotations, err);
    if (rc == 0)
        rc = wb_store_read(s, first, "plan", &out->plan, err);
    if (rc == 0)
        rc = wb_store_read(s, first, "environment", &out->environment, err);
    if (rc == 0)
        wb_remarks_exclude(out->annotations, out->runs);
    return rc;
}

/* ---- series ---- */

#define SERIES "series:"

static bool is_series(const char *typed)
{
    return strncmp(typed, SERIES, strlen(SERIES)) == 0;
}

static bool is_named(const char *campaign, const struct wb_cli_ref *others, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (others[i].campaign != NULL && strcmp(others[i].campaign, campaign) == 0)
            return true;
    return false;
}

static bool begins(const char *text, const char *with)
{
    return *with != '\0' && strncmp(text, with, strlen(with)) == 0;
}

/* Whether a run is of what stands behind the '@'. */
static bool is_wanted(const wb_json *run, const char *which)
{
    if (strcmp(which, "last") == 0)
        return strcmp(wb_json_str_or(run, "outcome", ""), "ok") == 0 ||
               strcmp(wb_json_str_or(run, "outcome", ""), "target-missed") == 0;
    return begins(wb_json_str_or(wb_json_get(run, "subject"), "commit", ""), which) ||
           begins(wb_json_str_or(run, "campaign", ""), which) ||
           strcmp(wb_json_str_or(wb_json_get(run, "recipe"), "version", ""), which) == 0;
}

/* The newest run that fits; others: references whose campaigns are not meant by `last`. */
static int find_in_series(const wb_json *runs, const char *key, const char *which,
                          const struct wb_cli_ref *others, size_t n, struct wb_cli_ref *out,
                          struct wb_err *err)
{
    const wb_json *hit = NULL;
    bool any = false;

    for (size_t i = 0; i < wb_json_len(runs) && hit == NULL; i++) {
        const wb_json *run = wb_json_at(runs, i);
        const char *of = wb_json_str_or(run, "series_key", "");
        if (!begins(of, key))
            continue;
        any = true;
        if (is_wanted(run, which) && (strcmp(which, "last") != 0 ||
                                      !is_named(wb_json_str_or(run, "campaign", ""), others, n)))
            hit = run;
    }
    if (hit == NULL && !any)
        return wb_fail(err, WB_NOT_FOUND,
                       "there is no series '%s'; 'weighbridge list series' shows what there is",
                       key);
    if (hit == NULL)
        return wb_fail(err, WB_NOT_FOUND,
                       "series %s has no%s campaign%s%s: behind '@' goes last, a commit, a version "
                       "or a campaign",
                       key, strcmp(which, "last") == 0 ? " other" : "",
                       strcmp(which, "last") == 0 ? "" : " of ",
                       strcmp(which, "last") == 0 ? "" : which);
    out->campaign = wb_strdup(wb_json_str_or(hit, "campaign", ""));
    out->arm = wb_strdup(wb_json_str_or(hit, "arm", ""));
    return 0;
}

static int read_series(struct wb_store *s, const char *typed, const struct wb_cli_ref *others,
                       size_t n, struct wb_cli_ref *out, struct wb_err *err)
{
    const char *key_at = typed + strlen(SERIES), *at = strchr(key_at, '@');
    WB_AUTO_FREE char *key = wb_strndup(key_at, at ? (size_t)(at - key_at) : strlen(key_at));
    WB_AUTO_JSON wb_json *runs = NULL;
    int rc;

    *out = (struct wb_cli_ref){.typed = typed};
    if (at == NULL || at[1] == '\0' || *key == '\0')
        return wb_fail(err, WB_INVALID,
                       "'%s': a series is named as series:KEY@last or "
                       "series:KEY@COMMIT",
                       typed);
    rc = wb_store_list(s, NULL, &runs, err);
    if (rc == 0)
        rc = find_in_series(runs, key, at + 1, others, n, out, err);
    return rc == 0 ? read_records(s, out, err) : rc;
}

int wb_cli_refs_read(struct wb_store *s, char *const *typed, size_t n, struct wb_cli_ref *out,
                     struct wb_err *err)
{
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++)
        if (!is_series(typed[i]))
            rc = wb_cli_ref_read(s, typed[i], &out[i], err);
    for (size_t i = 0; i < n && rc == 0; i++)
        if (is_series(typed[i]))
            rc = read_series(s, typed[i], out, n, &out[i], err);
    return rc;
}

/* ---- one reference ---- */

int wb_cli_ref_read(struct wb_store *s, const char *typed, struct wb_cli_ref *out,
                    struct wb_err *err)
{
    const char *slash = strchr(typed, '/');
    WB_AUTO_FREE char *id = wb_strndup(typed, slash ? (size_t)(slash - typed) : strlen(typed));
    struct wb_cli_id found = {0};
    int rc;

    if (is_series(typed))
        return read_series(s, typed, NULL, 0, out, err);
    rc = wb_cli_find(s, id, &found, err);

    if (rc < 0)
        return rc;
    *out = (struct wb_cli_ref){.typed = typed, .campaign = WB_STEAL(found.campaign)};
    if (out->campaign == NULL)
        rc = wb_fail(err, WB_INVALID,
                     "%s is a run, and one run has no spread to compare with: name "
                     "CAMPAIGN or CAMPAIGN/ARM",
                     found.run);
    wb_cli_id_release(&found);
    if (rc == 0)
        rc = read_records(s, out, err);
    if (rc == 0 && slash != NULL)
        rc = find_arm(out, slash + 1, err);
    return rc;
}

/* "host class ('a' in X, 'b' in Y), kernel (...)" of the differences that must not be. */
static void name_fields(const wb_json *differences, const struct wb_cli_ref *a,
                        const struct wb_cli_ref *b, struct wb_buf *out)
{
    for (size_t i = 0; i < wb_json_len(differences); i++) {
        const wb_json *d = wb_json_at(differences, i);
        if (!wb_json_bool_or(d, "must_match", false))
            continue;
        wb_buf_addf(out, "%s%s ('%s' in %s, '%s' in %s)", out->len > 0 ? ", " : "",
                    wb_json_str_or(d, "field", ""), wb_json_str_or(d, "base", ""), a->typed,
                    wb_json_str_or(d, "other", ""), b->typed);
    }
}

int wb_cli_ref_guard(const struct wb_cli_ref *a, const struct wb_cli_ref *b, bool force,
                     const char *const *compared, wb_json *warnings, wb_json *forced,
                     struct wb_err *err)
{
    const struct wb_side x = {a->plan, wb_json_at(a->runs, 0), a->environment};
    const struct wb_side y = {b->plan, wb_json_at(b->runs, 0), b->environment};
    WB_AUTO_JSON wb_json *differences = wb_guard_differences(&x, &y, compared);
    const wb_json *change = wb_remark_between(a->annotations, x.summary, y.summary);
    struct wb_buf fields = WB_BUF_INIT(16384);
    int rc = 0;

    name_fields(differences, a, b, &fields);
    if (change != NULL)
        wb_buf_addf(&fields, "%sits environment changed on %s (%s)", fields.len > 0 ? ", " : "",
                    wb_json_str_or(change, "at", "?"), wb_json_str_or(change, "text", ""));
    if (fields.len > 0 && !force)
        rc = wb_fail(err, WB_CONFLICT,
                     "the figures do not compare: %s; --force does it anyway and labels the answer",
                     wb_buf_str(&fields));
    wb_buf_release(&fields);
    for (size_t i = 0; i < wb_json_len(differences) && rc == 0; i++) {
        const wb_json *d = wb_json_at(differences, i);
        bool must = wb_json_bool_or(d, "must_match", false);
        wb_analysis_warn(warnings, must ? "forced" : "differs",
                         "%s%s differs: '%s' in %s, '%s' in %s", must ? "forced: " : "",
                         wb_json_str_or(d, "field", ""), wb_json_str_or(d, "base", ""), a->typed,
                         wb_json_str_or(d, "other", ""), b->typed);
        if (must)
            wb_json_push(forced, wb_json_str(wb_json_str_or(d, "field", "")));
    }
    if (rc == 0 && change != NULL) {
        wb_analysis_warn(warnings, "forced", "forced: the environment changed on %s (%s)",
                         wb_json_str_or(change, "at", "?"), wb_json_str_or(change, "text", ""));
        wb_json_push(forced, wb_json_str("environment"));
    }
    return rc;
}
