/* Annotations: what people say about records, with who said it and when. */
#include <stdlib.h>
#include <string.h>

#include "server/base/file.h"
#include "server/http/service.h"
#include "server/record/annotate.h"
#include "server/record/query.h"

#define TEXT_ROWS                                                                              \
    {"text", WB_S_TEXT, .max = WB_ANNOTATION_TEXT_MAX,                                         \
     .help = "Why; needed but for accepted, pinned and withdrawn"},                            \
    {                                                                                          \
        "at", WB_S_TIME,                                                                       \
            .help = "When it was (environment); the start of the run or campaign unless given" \
    }

/* "withdrawn" is what DELETE does. */
static const char *const types[] = {"excluded", "accepted", "environment", "note", "pinned", NULL};
static const struct wb_shape of_rows[] = {
    {"type", WB_S_WORD, WB_S_NEED, .words = types}, TEXT_ROWS, {0}};
static const struct wb_form of_form = {
    .name = "NewAnnotationOf",
    .rows = of_rows,
    .example = "{\"type\": \"excluded\", \"text\": \"the disk was being replaced\"}"};
static const struct wb_shape new_rows[] = {
    {"type", WB_S_WORD, WB_S_NEED, .words = types},
    {"id", WB_S_TEXT, WB_S_NEED, .min = 1, .max = 200,
     .help = "What it is about: a run, campaign, series key, finding, host or host class"},
    TEXT_ROWS,
    {0},
};
static const struct wb_form new_form = {.name = "NewAnnotation", .rows = new_rows};
static const struct wb_shape note_rows[] = {
    {"schema", WB_S_INT, .flags = WB_S_NEED},
    {"annotation", WB_S_TEXT, WB_S_NEED, .help = "Its own id"},
    {"type", WB_S_TEXT, .flags = WB_S_NEED},
    {"id", WB_S_TEXT, WB_S_NEED, .help = "What it is about"},
    {"text", WB_S_TEXT, .flags = WB_S_NULL},
    {"who", WB_S_TEXT, .flags = WB_S_NEED},
    {"made_at", WB_S_TIME, .flags = WB_S_NEED},
    {"at", WB_S_TIME, .flags = WB_S_NULL},
    {"withdrawn_by", WB_S_TEXT, .help = "The annotation that took it back"},
    {0},
};
static const struct wb_form note_form = {.name = "Annotation", .rows = note_rows, .open = true};

/* Whole id of what a path names: runs and campaigns by a prefix. Answers itself, then NULL. */
static char *about(struct wb_context *c, const struct wb_request *q, struct wb_answer *a, bool run)
{
    struct wb_err err = WB_ERR_INIT;
    char *id = NULL;
    int rc = run ? wb_store_resolve(c->store, q->args[0], &id, &err)
                 : wb_store_resolve_campaign(c->store, q->args[0], &id, &err);

    if (rc == -WB_NOT_FOUND && !run && wb_safe_name(q->args[0]))
        return wb_strdup(q->args[0]); /* it has no record yet, so nobody said anything of it */
    if (rc < 0)
        wb_answer_error(q, a, &err);
    return id;
}

static void answer_list(struct wb_context *c, const struct wb_request *q, struct wb_answer *a,
                        const char *id, bool in_force)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *items = NULL;

    if (wb_store_annotations(c->store, id, in_force, &items, &err) < 0)
        wb_answer_error(q, a, &err);
    else
        wb_answer_list(q, a, items, NULL);
}

static bool in_force(const struct wb_request *q)
{
    const char *v = wb_request_query(q, "in_force");

    return v && !strcmp(v, "true");
}

static void list_all(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    answer_list(c, q, a, wb_request_query(q, "about"), in_force(q));
}

static void list_of(struct wb_context *c, struct wb_request *q, struct wb_answer *a, bool run)
{
    WB_AUTO_FREE char *id = about(c, q, a, run);

    if (id)
        answer_list(c, q, a, id, in_force(q));
}

static void list_of_run(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    list_of(c, q, a, true);
}

static void list_of_campaign(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    list_of(c, q, a, false);
}

/* The one annotation (owned); answers itself, then NULL. */
static wb_json *find(struct wb_context *c, const struct wb_request *q, struct wb_answer *a)
{
    WB_AUTO_JSON wb_json *all = NULL;
    struct wb_err err = WB_ERR_INIT;

    if (wb_store_annotations(c->store, NULL, false, &all, &err) < 0) {
        wb_answer_error(q, a, &err);
        return NULL;
    }
    for (size_t i = 0; i < wb_json_len(all); i++)
        if (!strcmp(wb_json_str_or(wb_json_at(all, i), "annotation", ""), q->args[0]))
            return wb_json_copy(wb_json_at(all, i));
    wb_answer_problem(q, a, 404, "not-found", "there is no such annotation", NULL);
    return NULL;
}

static void get_one(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    wb_json *one = find(c, q, a);

    if (one)
        wb_answer_json(q, a, 200, one);
}

/* Commits it under the name of the token. False after answering. */
static bool annotate(struct wb_context *c, const struct wb_request *q, struct wb_answer *a,
                     const struct wb_annotation *what, char **id)
{
    struct wb_annotation note = *what;
    struct wb_err err = WB_ERR_INIT;

    note.who = q->token.name;
    if (wb_store_annotate(c->store, &note, id, &err) == 0)
        return true;
    wb_answer_error(q, a, &err);
    return false;
}

static void add(struct wb_context *c, struct wb_request *q, struct wb_answer *a,
                const wb_json *body, const char *id)
{
    const struct wb_annotation what = {.type = wb_json_str_or(body, "type", ""),
                                       .id = id,
                                       .text = wb_json_str_or(body, "text", NULL),
                                       .at = wb_json_str_or(body, "at", NULL)};
    WB_AUTO_FREE char *made = NULL;
    WB_AUTO_FREE char *where = NULL;
    const char *topics[] = {"annotations", NULL, NULL};
    WB_AUTO_FREE char *topic = NULL;
    wb_json *one, *event;

    if (!annotate(c, q, a, &what, &made))
        return;
    where = wb_strf("/api/v1/annotations/%s", made);
    q->args[0] = made;
    one = find(c, q, a);
    if (!one)
        return;
    topic = wb_strf("%s:%s", !strncmp(id, "run_", 4) ? "run" : "campaign", id);
    if (!strncmp(id, "run_", 4) || !strncmp(id, "cmp_", 4))
        topics[1] = topic;
    event = wb_json_copy(one);
    wb_hub_publish(c->service->hub, topics, "annotation.added", event);
    wb_answer_header(a, "Location", where);
    wb_answer_json(q, a, 201, one);
}

static void add_any(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    WB_AUTO_JSON wb_json *body = wb_request_object(q, a, &new_form);

    if (body)
        add(c, q, a, body, wb_json_str_or(body, "id", ""));
}

static void add_of(struct wb_context *c, struct wb_request *q, struct wb_answer *a, bool run)
{
    WB_AUTO_JSON wb_json *body = wb_request_object(q, a, &of_form);
    WB_AUTO_FREE char *id = body ? about(c, q, a, run) : NULL;

    if (id)
        add(c, q, a, body, id);
}

static void add_of_run(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    add_of(c, q, a, true);
}

static void add_of_campaign(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    add_of(c, q, a, false);
}

/* Nothing is removed: a withdrawal is one more record. */
static void withdraw(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    const struct wb_annotation what = {.type = "withdrawn", .id = q->args[0]};
    WB_AUTO_JSON wb_json *one = find(c, q, a);
    WB_AUTO_FREE char *made = NULL;

    if (!one)
        return;
    if (wb_json_get(one, "withdrawn_by"))
        wb_answer_problem(q, a, 409, "state-conflict", "it was withdrawn already", NULL);
    else if (annotate(c, q, a, &what, &made))
        a->status = 204;
}

static const struct wb_shape of_query[] = {
    {"in_force", WB_S_BOOL, .help = "true: without those that were withdrawn"}, {0}};
static const struct wb_shape all_query[] = {
    {"in_force", WB_S_BOOL, .help = "true: without those that were withdrawn"},
    {"about", WB_S_TEXT, .min = 1, .max = 200, .help = "Only of this whole id"},
    {0}};

#define API "/api/v1"
const struct wb_route wb_routes_notes[] = {
    {"GET", API "/annotations", WB_SCOPE_READ, WB_ROUTE_LIST, list_all, "listAnnotations",
     "What people said about records, oldest first", all_query, .answer = &note_form,
     .status = 200},
    {"POST", API "/annotations", WB_SCOPE_ANNOTATE, WB_ROUTE_WRITE, add_any, "addAnnotation",
     "Say something about a record; it is a commit of its own", .body = &new_form,
     .answer = &note_form, .status = 201, .also = {404}},
    {"GET", API "/annotations/{annotation}", WB_SCOPE_READ, 0, get_one, "getAnnotation",
     "One annotation", .answer = &note_form, .status = 200},
    {"DELETE", API "/annotations/{annotation}", WB_SCOPE_ANNOTATE, WB_ROUTE_WRITE, withdraw,
     "withdrawAnnotation", "Take one back; both stay in the records", .status = 204,
     .also = {409, 422}},
    {"GET", API "/runs/{run}/annotations", WB_SCOPE_READ, WB_ROUTE_LIST, list_of_run,
     "listRunAnnotations", "What people said about a run", of_query, .answer = &note_form,
     .status = 200, .also = {409}},
    {"POST", API "/runs/{run}/annotations", WB_SCOPE_ANNOTATE, WB_ROUTE_WRITE, add_of_run,
     "annotateRun", "Say something about a run", .body = &of_form, .answer = &note_form,
     .status = 201, .also = {409}},
    {"GET", API "/campaigns/{campaign}/annotations", WB_SCOPE_READ, WB_ROUTE_LIST, list_of_campaign,
     "listCampaignAnnotations", "What people said about a campaign", of_query, .answer = &note_form,
     .status = 200, .also = {409}},
    {"POST", API "/campaigns/{campaign}/annotations", WB_SCOPE_ANNOTATE, WB_ROUTE_WRITE,
     add_of_campaign, "annotateCampaign", "Say something about a campaign", .body = &of_form,
     .answer = &note_form, .status = 201, .also = {409}},
    {0},
};
