#include "server/cli/remote_look.h"

#include <stdlib.h>
#include <string.h>

#include "server/cli/records.h"

#define RUN_ID 30 /* characters of a whole id */

/* ---- lists ---- */

static void add(struct wb_buf *path, const char *key, const char *value)
{
    if (value)
        wb_rest_add_query(path, key, value);
}

/* A time as the server takes it; relative ones become absolute here. */
static int add_time(struct wb_buf *path, const char *key, const char *text, struct wb_err *err)
{
    WB_AUTO_FREE char *time = NULL;
    int rc = text ? wb_cli_time(key, text, &time, err) : 0;

    if (rc == 0)
        add(path, key, time);
    return rc;
}

static int add_filters(struct wb_remote *r, struct wb_buf *path, const struct wb_cli_filters *f,
                       struct wb_err *err)
{
    WB_AUTO_FREE char *campaign = NULL;
    int rc = f->campaign ? wb_remote_find_campaign(r, f->campaign, &campaign, err) : 0;

    add(path, "campaign", campaign);
    add(path, "study", f->study);
    add(path, "arm", f->arm);
    add(path, "outcome", f->outcome);
    add(path, "validity", f->validity);
    add(path, "series", f->series);
    add(path, "recipe", f->recipe);
    add(path, "version", f->version);
    if (rc == 0)
        rc = add_time(path, "since", f->since, err);
    if (rc == 0)
        rc = add_time(path, "until", f->until, err);
    return rc;
}

int wb_remote_list(struct wb_remote *r, const struct wb_remote_list *l, wb_json **items,
                   char **next, struct wb_err *err)
{
    struct wb_buf path = WB_BUF_INIT(64u << 10);
    WB_AUTO_JSON wb_json *doc = NULL;
    int rc;

    wb_buf_addf(&path, "/api/v1/%s", l->what);
    rc = l->filters ? add_filters(r, &path, l->filters, err) : 0;
    add(&path, "sort", l->sort);
    add(&path, "cursor", l->cursor);
    if (l->limit) {
        WB_AUTO_FREE char *n = wb_strf("%lld", (long long)l->limit);

        add(&path, "limit", n);
    }
    if (rc == 0)
        rc = wb_buf_check(&path, "the filters", err);
    if (rc == 0)
        rc = wb_remote_get(r, &doc, err, "%s", wb_buf_str(&path));
    wb_buf_release(&path);
    if (rc < 0)
        return rc;
    if (wb_json_type(wb_json_get(doc, "items")) != WB_JSON_ARRAY)
        return wb_fail(err, WB_PROTOCOL, "%s gave no list of %s", wb_remote_url(r), l->what);
    *items = wb_json_ref(wb_json_get(doc, "items"));
    *next = wb_strdup(wb_json_str_or(doc, "next", NULL));
    return 0;
}

int wb_remote_runs_of(struct wb_remote *r, const char *campaign, wb_json **out, struct wb_err *err)
{
    const struct wb_cli_filters f = {.campaign = campaign};
    struct wb_remote_list l = {.what = "runs", .filters = &f, .limit = 500};
    WB_AUTO_FREE char *cursor = NULL;
    wb_json *all = wb_json_array();
    int rc;

    do {
        WB_AUTO_JSON wb_json *items = NULL;
        char *next = NULL;

        l.cursor = cursor;
        rc = wb_remote_list(r, &l, &items, &next, err);
        for (size_t i = 0; rc == 0 && i < wb_json_len(items); i++)
            wb_json_push(all, wb_json_ref(wb_json_at(items, i)));
        free(cursor);
        cursor = next;
    } while (rc == 0 && cursor);
    if (rc < 0)
        wb_json_free(all);
    else
        *out = all;
    return rc;
}

/* ---- ids ---- */

int wb_remote_find_campaign(struct wb_remote *r, const char *typed, char **id, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *list = NULL;
    const wb_json *items;
    struct wb_strv found = {0};
    int rc;

    if (typed && !strncmp(typed, "cmp_", 4) && strlen(typed) == RUN_ID) {
        *id = wb_strdup(typed);
        return 0;
    }
    rc = wb_remote_get(r, &list, err, "/api/v1/campaigns?limit=500%s",
                       typed ? "" : "&state=running");
    items = wb_json_get(list, "items");
    for (size_t i = 0; rc == 0 && i < wb_json_len(items); i++) {
        const char *one = wb_json_str_or(wb_json_at(items, i), "id", "");

        if (!typed || wb_cli_begins(one, typed, "cmp_"))
            wb_strv_add(&found, one);
    }
    if (rc == 0 && found.n == 0)
        rc = typed ? wb_fail(err, WB_NOT_FOUND, "%s has no campaign '%s' among its newest 500",
                             wb_remote_url(r), typed)
                   : wb_fail(err, WB_NOT_FOUND, "no campaign runs on %s now", wb_remote_url(r));
    else if (rc == 0 && found.n > 1)
        rc = wb_cli_more_than_one(&found, err);
    else if (rc == 0)
        *id = wb_strdup(found.v[0]);
    wb_strv_release(&found);
    return rc;
}

/* GET of a document of a run, whose id is text of a person. */
static int get_run(struct wb_remote *r, const char *run, const char *part, wb_json **out,
                   struct wb_err *err)
{
    struct wb_buf path = WB_BUF_INIT(8192);
    int rc;

    wb_buf_adds(&path, "/api/v1/runs/");
    wb_rest_escape(&path, run);
    wb_buf_adds(&path, part);
    rc = wb_buf_check(&path, "the id", err);
    if (rc == 0)
        rc = wb_remote_get(r, out, err, "%s", wb_buf_str(&path));
    wb_buf_release(&path);
    return rc;
}

int wb_remote_raw(struct wb_remote *r, const char *run, const char *name, struct wb_buf *out,
                  struct wb_err *err)
{
    struct wb_buf path = WB_BUF_INIT(8192), body = WB_BUF_INIT(0);
    struct wb_remote_call c = {.method = "GET", .answer_max = 1u << 30};
    int rc;

    wb_buf_addf(&path, "/api/v1/runs/%s/artifacts/", run);
    wb_rest_escape(&path, name);
    c.path = wb_buf_str(&path);
    rc = wb_remote_send(r, &c, &body, err);
    if (rc == 0)
        wb_buf_add(out, wb_buf_str(&body), body.len);
    wb_buf_release(&path);
    wb_buf_release(&body);
    return rc == 0 ? wb_buf_check(out, name, err) : rc;
}

int wb_remote_find(struct wb_remote *r, const char *typed, char **run, char **campaign,
                   struct wb_err *err)
{
    WB_AUTO_JSON wb_json *doc = NULL;
    int rc;

    if (!strncmp(typed, "cmp_", 4))
        return wb_remote_find_campaign(r, typed, campaign, err);
    if (!*typed || strchr(typed, '/') || !strcmp(typed, ".") || !strcmp(typed, ".."))
        return wb_fail(err, WB_INVALID, "'%.60s' is no id", typed);
    rc = get_run(r, typed, "", &doc, err);
    if (rc == 0)
        *run = wb_strdup(wb_json_str_or(doc, "id", typed));
    else if (rc == -WB_NOT_FOUND && strncmp(typed, "run_", 4) != 0)
        rc = wb_remote_find_campaign(r, typed, campaign, err);
    return rc;
}

int wb_remote_read_run(struct wb_remote *r, const char *run, wb_json **out, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *summary = NULL;
    WB_AUTO_JSON wb_json *result = NULL;
    WB_AUTO_JSON wb_json *environment = NULL;
    WB_AUTO_JSON wb_json *annotations = NULL;
    int rc = get_run(r, run, "", &summary, err);

    if (rc == 0)
        rc = get_run(r, run, "/result", &result, err);
    if (rc == 0)
        rc = get_run(r, run, "/environment", &environment, err);
    if (rc == 0)
        rc = get_run(r, run, "/annotations", &annotations, err);
    if (rc < 0)
        return rc;
    wb_json_set(summary, "annotations", wb_json_ref(wb_json_get(annotations, "items")));
    wb_cli_run_complete(summary, result, environment);
    *out = WB_STEAL(summary);
    return 0;
}
