#include "server/analysis/refs.h"

#include <stdlib.h>
#include <string.h>

#include "server/analysis/effect.h"
#include "server/analysis/guard.h"
#include "server/analysis/remarks.h"
#include "server/analysis/subject.h"
#include "server/record/annotate.h"
#include "server/record/query.h"

void wb_ref_release(struct wb_ref *r)
{
    free(r->campaign);
    free(r->arm);
    wb_json_free(r->plan);
    wb_json_free(r->runs);
    wb_json_free(r->environment);
    wb_json_free(r->annotations);
    *r = (struct wb_ref){0};
}

char *wb_ref_head(const char *typed)
{
    return wb_strndup(typed, strcspn(typed, "/"));
}

/* The label that is `text` or the only one that begins with it. */
static int find_arm(struct wb_ref *r, const char *text, struct wb_err *err)
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
static int read_records(struct wb_store *s, struct wb_ref *out, struct wb_err *err)
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

/* ---- ids ---- */

void wb_ref_id_release(struct wb_ref_id *id)
{
    free(id->run);
    free(id->campaign);
    *id = (struct wb_ref_id){0};
}

/* typed: the id as it was given, for the message. */
static int find_campaign(struct wb_store *s, const char *prefix, const char *typed, char **out,
                         struct wb_err *err)
{
    int rc = wb_store_resolve_campaign(s, prefix, out, err);

    return rc == -WB_NOT_FOUND
               ? wb_fail(err, WB_NOT_FOUND,
                         "there is no run and no campaign '%s' in %s; 'weighbridge list' and "
                         "'weighbridge list campaigns' show what there is",
                         typed, wb_store_path(s))
               : rc;
}

static int find_id(struct wb_store *s, const char *text, struct wb_ref_id *out, struct wb_err *err)
{
    bool typed = strchr(text, '_') != NULL;
    WB_AUTO_FREE char *as_run = typed ? wb_strdup(text) : wb_strf("run_%s", text);
    WB_AUTO_FREE char *as_campaign = typed ? wb_strdup(text) : wb_strf("cmp_%s", text);
    struct wb_ref_id id = {0};
    int rc = wb_store_resolve(s, text, &id.run, err);

    if (rc == -WB_NOT_FOUND && !typed)
        rc = wb_store_resolve(s, as_run, &id.run, err);
    if (rc == -WB_NOT_FOUND && !typed)
        rc = find_campaign(s, text, text, &id.campaign, err);
    if (rc == -WB_NOT_FOUND)
        rc = find_campaign(s, as_campaign, text, &id.campaign, err);
    if (rc == 0)
        *out = id;
    return rc;
}

/* ---- series ---- */

bool wb_ref_is_series(const char *typed)
{
    return strncmp(typed, WB_REF_SERIES, strlen(WB_REF_SERIES)) == 0;
}

/* The campaign and arm that series:KEY@WHICH means; skip: campaigns that `last` is not. */
static int find_in_series(struct wb_store *s, const char *typed, const struct wb_strv *skip,
                          char **campaign, char **arm, struct wb_err *err)
{
    const char *key_at = typed + strlen(WB_REF_SERIES), *at = strchr(key_at, '@');
    WB_AUTO_FREE char *prefix = wb_strndup(key_at, at ? (size_t)(at - key_at) : strlen(key_at));
    WB_AUTO_FREE char *key = NULL;
    WB_AUTO_JSON wb_json *runs = NULL;
    const wb_json *run = NULL;
    int rc;

    if (at == NULL || at[1] == '\0' || *prefix == '\0')
        return wb_fail(err, WB_INVALID,
                       "'%.200s': a build of a series is named as series:KEY@last or "
                       "series:KEY@COMMIT",
                       typed);
    rc = wb_store_resolve_series(s, prefix, &key, err);
    if (rc == 0)
        rc = wb_store_list(s, &(struct wb_list_filter){.series = key}, &runs, err);
    if (rc == 0)
        rc = wb_subject_find(runs, key, at + 1, skip, &run, err);
    if (rc < 0)
        return rc;
    *campaign = wb_strdup(wb_json_str_or(run, "campaign", ""));
    if (arm != NULL)
        *arm = wb_strdup(wb_json_str_or(run, "arm", ""));
    return 0;
}

int wb_ref_id_find(struct wb_store *s, const char *text, struct wb_ref_id *out, struct wb_err *err)
{
    return wb_ref_is_series(text) ? find_in_series(s, text, NULL, &out->campaign, NULL, err)
                                  : find_id(s, text, out, err);
}

/* What one reference means, without reading its records. */
static int find_one(struct wb_store *s, const char *typed, const struct wb_strv *skip,
                    struct wb_ref *out, struct wb_err *err)
{
    WB_AUTO_FREE char *id = wb_ref_head(typed);
    struct wb_ref_id found = {0};
    int rc;

    *out = (struct wb_ref){.typed = typed};
    if (wb_ref_is_series(typed))
        return find_in_series(s, typed, skip, &out->campaign, &out->arm, err);
    rc = find_id(s, id, &found, err);
    if (rc < 0)
        return rc;
    out->campaign = WB_STEAL(found.campaign);
    if (out->campaign == NULL)
        rc = wb_fail(err, WB_INVALID,
                     "%s is a run, and one run has no spread to compare with: name "
                     "CAMPAIGN or CAMPAIGN/ARM",
                     found.run);
    wb_ref_id_release(&found);
    return rc;
}

int wb_refs_find(struct wb_store *s, char *const *typed, size_t n, struct wb_ref *out,
                 struct wb_err *err)
{
    struct wb_strv named = {0};
    int rc = 0;

    /* `last` last: it is none of the others. */
    for (int pass = 0; pass < 2 && rc == 0; pass++)
        for (size_t i = 0; i < n && rc == 0; i++) {
            size_t length = strlen(typed[i]);
            bool last = wb_ref_is_series(typed[i]) && length > 5 &&
                        strcmp(typed[i] + length - 5, "@last") == 0;
            if (last != (pass == 1))
                continue;
            rc = find_one(s, typed[i], last ? &named : NULL, &out[i], err);
            if (rc == 0)
                wb_strv_add(&named, out[i].campaign);
        }
    wb_strv_release(&named);
    return rc;
}

int wb_refs_load(struct wb_store *s, struct wb_ref *refs, size_t n, struct wb_err *err)
{
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        const char *slash = strchr(refs[i].typed, '/');
        rc = read_records(s, &refs[i], err);
        if (rc == 0 && slash != NULL && !wb_ref_is_series(refs[i].typed))
            rc = find_arm(&refs[i], slash + 1, err);
    }
    return rc;
}

int wb_ref_read(struct wb_store *s, const char *typed, struct wb_ref *out, struct wb_err *err)
{
    int rc = find_one(s, typed, NULL, out, err);

    return rc == 0 ? wb_refs_load(s, out, 1, err) : rc;
}

wb_json *wb_refs_key(struct wb_store *s, const struct wb_ref *refs, size_t n)
{
    wb_json *list = wb_json_array();

    for (size_t i = 0; i < n; i++) {
        char stamp[WB_SHA256_HEX];
        wb_json *o;
        if (wb_store_stamp(s, WB_STAMP_CAMPAIGN, refs[i].campaign, stamp, NULL) < 0) {
            wb_json_free(list);
            return NULL;
        }
        o = wb_json_object();
        wb_json_set_str(o, "typed", refs[i].typed);
        wb_json_set_str(o, "campaign", refs[i].campaign);
        wb_json_set_str(o, "arm", refs[i].arm);
        wb_json_set_str(o, "stamp", stamp);
        wb_json_push(list, o);
    }
    return list;
}

/* "host class ('a' in X, 'b' in Y), kernel (...)" of the differences that must not be. */
static void name_fields(const wb_json *differences, const struct wb_ref *a, const struct wb_ref *b,
                        struct wb_buf *out)
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

/* One name of a build that stands for two builds. */
static void warn_digest(const struct wb_ref *a, const struct wb_ref *b, wb_json *warnings)
{
    const struct wb_ref *sides[] = {a, b};
    WB_AUTO_JSON wb_json *points = wb_json_array();

    for (size_t i = 0; i < WB_LEN(sides); i++) {
        const wb_json *run = wb_json_at(sides[i]->runs, 0);
        wb_json *p = wb_json_object();
        wb_json_set_str(p, "campaign", sides[i]->campaign);
        wb_json_set_str(p, "version", wb_subject_version(run));
        wb_json_set_str(p, "commit", wb_subject_commit(run));
        wb_json_set_str(p, "digest", wb_subject_digest(run));
        wb_json_push(points, p);
    }
    wb_subject_digests(points, warnings);
}

int wb_ref_guard(const struct wb_ref *a, const struct wb_ref *b, bool force,
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
        rc = wb_fail(
            err, WB_CONFLICT,
            "the figures do not compare: %s; --force (over REST force) does it anyway and labels "
            "the answer",
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
    if (rc == 0)
        warn_digest(a, b, warnings);
    if (rc == 0 && change != NULL) {
        wb_analysis_warn(warnings, "forced", "forced: the environment changed on %s (%s)",
                         wb_json_str_or(change, "at", "?"), wb_json_str_or(change, "text", ""));
        wb_json_push(forced, wb_json_str("environment"));
    }
    return rc;
}
