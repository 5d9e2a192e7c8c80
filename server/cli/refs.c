#include "server/cli/refs.h"

#include <stdlib.h>
#include <string.h>

#include "server/analysis/effect.h"
#include "server/analysis/guard.h"

void wb_cli_ref_release(struct wb_cli_ref *r)
{
    free(r->campaign);
    free(r->arm);
    wb_json_free(r->plan);
    wb_json_free(r->runs);
    wb_json_free(r->environment);
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

int wb_cli_ref_read(struct wb_store *s, const char *typed, struct wb_cli_ref *out,
                    struct wb_err *err)
{
    const char *slash = strchr(typed, '/');
    WB_AUTO_FREE char *id = wb_strndup(typed, slash ? (size_t)(slash - typed) : strlen(typed));
    struct wb_cli_id found = {0};
    const char *first;
    int rc = wb_cli_find(s, id, &found, err);

    if (rc < 0)
        return rc;
    *out = (struct wb_cli_ref){.typed = typed, .campaign = WB_STEAL(found.campaign)};
    if (out->campaign == NULL)
        rc = wb_fail(err, WB_INVALID,
                     "%s is a run, and one run has no spread to compare with: name "
                     "CAMPAIGN or CAMPAIGN/ARM",
                     found.run);
    wb_cli_id_release(&found);
    if (rc == 0) {
        const struct wb_list_filter f = {.campaign = out->campaign};
        rc = wb_store_list(s, &f, &out->runs, err);
    }
    first = wb_json_str_or(wb_json_at(out->runs, 0), "id", "");
    if (rc == 0)
        rc = wb_store_read(s, first, "plan", &out->plan, err);
    if (rc == 0)
        rc = wb_store_read(s, first, "environment", &out->environment, err);
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
    struct wb_buf fields = WB_BUF_INIT(16384);
    int rc = 0;

    name_fields(differences, a, b, &fields);
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
    return rc;
}
