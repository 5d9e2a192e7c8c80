/* Studies that come over REST, campaigns and the queue. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/inquiry.h"
#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/engine/engine.h"
#include "server/http/analyses.h"
#include "server/http/campaign_list.h"
#include "server/http/campaigns.h"
#include "server/queue/documents.h"
#include "server/queue/queue.h"
#include "server/record/query.h"

#define DOC_MAX (8u << 20)

/* What one request asks for, checked and planned. */
struct asked {
    wb_json *body;
    struct wb_study *study;
    struct wb_plan *plan;
    int64_t version; /* of a stored study; 0: none */
};

static void release(struct asked *s)
{
    wb_plan_free(s->plan);
    wb_study_free(s->study);
    wb_json_free(s->body);
}

/* ---- what may be sent ---- */

#define CAMPAIGN_ROWS                                                                             \
    {"priority", WB_S_INT, .min = -100, .max = 100, .help = "Higher goes first; 0 unless given"}, \
        {"labels", WB_S_TEXT, WB_S_LIST, .min = 1, .max = 60, .most = 20},                        \
    {                                                                                             \
        "reason", WB_S_TEXT, .max = 500, .help = "Why it is run, for people"                      \
    }

static const struct wb_form study_form = {.name = "Study", .make = wb_study_schema};
static const char *const study_ways[] = {"study", "study_text", "study_name", NULL};
static const struct wb_shape submission_rows[] = {
    {"study", WB_S_OBJECT, .of = &study_form, .help = "The study as an object; versions are texts"},
    {"study_text", WB_S_TEXT, .help = "The study as YAML"},
    {"study_name", WB_S_TEXT, .min = 1, .max = 63, .help = "One that is stored here"},
    {"study_version", WB_S_INT, .min = 1, .max = 1e9, .help = "Of it; the newest unless given"},
    {"profile", WB_S_TEXT, .min = 1, .max = 100, .help = "One of the study's profiles"},
    {"overrides", WB_S_OBJECT, .help = "Dotted paths of the study and their values"},
    {"rounds", WB_S_INT, .min = 1, .max = 1000},
    CAMPAIGN_ROWS,
    {0},
};
const struct wb_form wb_form_submission = {
    .name = "Submission",
    .rows = submission_rows,
    .one = study_ways,
    .example = "{\"study_text\": \"study: redis-forms\\nrecipe: {name: redis, version: "
               "\\\"7.0.15\\\"}\\n...\", \"profile\": \"small\", \"labels\": [\"nightly\"]}"};
static const struct wb_shape again_rows[] = {CAMPAIGN_ROWS, {0}};
static const struct wb_form again = {
    .name = "Again", .rows = again_rows, .example = "{\"reason\": \"kernel 6.12 check\"}"};

/* ---- reading what was sent ---- */

/* {"factor.form": ["a", "b"]} -> "factor.form=\"a\",\"b\"": JSON values are YAML flow values. */
static void add_override(struct wb_strv *out, const char *path, const wb_json *value)
{
    struct wb_buf b = WB_BUF_INIT(WB_HTTP_BODY_MAX);
    bool list = wb_json_type(value) == WB_JSON_ARRAY;

    wb_buf_addf(&b, "%s=", path);
    for (size_t i = 0; i < (list ? wb_json_len(value) : 1); i++) {
        if (i)
            wb_buf_addc(&b, ',');
        wb_json_line(list ? wb_json_at(value, i) : value, &b);
    }
    wb_strv_add(out, wb_buf_str(&b));
    wb_buf_release(&b);
}

static struct wb_study *read_study(struct wb_context *c, const wb_json *body, struct wb_problems *p)
{
    const wb_json *study = wb_json_get(body, "study");
    const wb_json *overrides = wb_json_get(body, "overrides");
    const char *text = wb_json_str_or(body, "study_text", NULL);
    struct wb_strv list = {0};
    struct wb_study_options options = {.profile = wb_json_str_or(body, "profile", NULL),
                                       .rounds = wb_json_int_or(body, "rounds", 0),
                                       .recipes_dir = c->service->recipes_dir};
    const struct wb_host_pools *pools = c->service->pools;
    WB_AUTO_FREE struct wb_pool_offer *offers = wb_calloc(pools->n, sizeof(*offers));
    struct wb_study *out = NULL;
    struct wb_node *tree = NULL;
    struct wb_err err = WB_ERR_INIT;

    for (void *it = wb_json_first(overrides); it; it = wb_json_next(overrides, it))
        add_override(&list, wb_json_iter_key(it), wb_json_iter_value(it));
    options.overrides = list.v;
    options.pools = offers;
    for (size_t i = 0; i < pools->n; i++)
        if (strcmp(pools->v[i].name, "local") != 0)
            offers[options.npools++] = (struct wb_pool_offer){
                .name = pools->v[i].name, .alike = (int64_t)wb_host_pool_alike(&pools->v[i])};
    if (text)
        tree = wb_yaml_check(text, strlen(text), p);
    else if (wb_node_from_json(study, &tree, &err) < 0)
        wb_problem(p, NULL, "syntax", "%s", err.root);
    if (tree)
        out = wb_study_check(tree, NULL, &options, p);
    wb_strv_release(&list);
    return out;
}

/* Over REST nobody may name a program of this machine. */
static bool names_programs(const struct wb_study *s, struct wb_problems *p)
{
    if (wb_study_setup(s)->ntools == 0)
        return false;
    wb_problem(
        p, NULL, "not-offered",
        "tools: a study that is sent over REST cannot bring programs of its own; run it with "
        "`weighbridge run` on this host");
    return true;
}

static void plan_study(struct wb_context *c, struct asked *s, struct wb_problems *p)
{
    struct wb_host_facts host = {0};
    struct wb_err err = WB_ERR_INIT;

    s->study = read_study(c, s->body, p);
    if (!s->study || names_programs(s->study, p))
        return;
    if (wb_host_facts_read(&host, &err) < 0)
        wb_problem(p, NULL, "host", "%s", err.root);
    else
        s->plan = wb_plan_make(s->study, &host, 0, p);
    wb_host_facts_release(&host);
}

/* Puts the text of a stored study in its place. False after answering. */
static bool fetch_study(struct wb_context *c, const struct wb_request *q, struct wb_answer *a,
                        struct asked *s)
{
    const char *name = wb_json_str_or(s->body, "study_name", "");
    WB_AUTO_JSON wb_json *doc = NULL;
    struct wb_err err = WB_ERR_INIT;
    int rc = wb_document_get(c->db, "study", name, wb_json_int_or(s->body, "study_version", 0),
                             &doc, &err);

    if (rc == -WB_NOT_FOUND) {
        wb_answer_problem(q, a, 422, "validation", err.root, NULL);
        return false;
    }
    if (rc < 0) {
        wb_answer_error(q, a, &err);
        return false;
    }
    s->version = wb_json_int_or(doc, "version", 0);
    wb_json_set_str(s->body, "study_text", wb_json_str_or(doc, "text", ""));
    return true;
}

/* Reads body and study. False after answering with a problem that is not one of the study. */
static bool read_asked(struct wb_context *c, struct wb_request *q, struct wb_answer *a,
                       struct asked *s, struct wb_problems *p)
{
    s->body = wb_request_object(q, a, &wb_form_submission);
    if (!s->body)
        return false;
    if (wb_json_get(s->body, "study_name") && !fetch_study(c, q, a, s))
        return false;
    plan_study(c, s, p);
    return true;
}

static wb_json *errors_of(const struct wb_problems *p)
{
    WB_AUTO_JSON wb_json *doc = wb_problems_json(p);

    return wb_json_copy(wb_json_get(doc, "errors"));
}

static void answer_study_problems(const struct wb_request *q, struct wb_answer *a,
                                  const struct wb_problems *p)
{
    WB_AUTO_FREE char *detail =
        wb_strf("%zu problem%s", p->n + p->dropped, p->n + p->dropped == 1 ? "" : "s");

    wb_answer_problem(q, a, 422, "validation", detail, errors_of(p));
}

/* {ok, errors, plan}. */
static void answer_check(const struct wb_request *q, struct wb_answer *a, const struct asked *s,
                         const struct wb_problems *p)
{
    wb_json *o = wb_json_object();

    wb_json_set_bool(o, "ok", s->plan != NULL);
    wb_json_set(o, "errors", errors_of(p));
    wb_json_set(o, "plan", s->plan ? wb_plan_json(s->plan) : wb_json_null());
    /* It is no campaign: its id and seed are drawn when one is started. */
    wb_json_del(wb_json_get(o, "plan"), "campaign");
    wb_answer_json(q, a, 200, o);
}

static void validate(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    struct asked s = {0};
    struct wb_problems p = {0};

    if (read_asked(c, q, a, &s, &p))
        answer_check(q, a, &s, &p);
    wb_problems_release(&p);
    release(&s);
}

/* ---- one campaign as an answer ---- */

static wb_json *folder_doc(const struct wb_service *s, const char *id, const char *name)
{
    WB_AUTO_FREE char *path = NULL;
    wb_json *j = NULL;

    if (!wb_safe_name(id))
        return NULL;
    path = wb_strf("%s/campaigns/%s/%s", s->state_dir, id, name);
    return wb_json_read_file(path, DOC_MAX, &j, NULL) == 0 ? j : NULL;
}

/* A document as a recorded run of the campaign has it, or NULL. */
static wb_json *recorded_doc(struct wb_context *c, const char *id, const char *name)
{
    const struct wb_query ask = {.campaign = id, .limit = 1};
    WB_AUTO_JSON wb_json *items = NULL;
    WB_AUTO_FREE char *next = NULL;
    wb_json *doc = NULL;

    if (wb_store_runs(c->store, &ask, &items, &next, NULL) < 0 || wb_json_len(items) == 0 ||
        wb_store_read(c->store, wb_json_str_or(wb_json_at(items, 0), "id", ""), name, &doc, NULL) <
            0)
        return NULL;
    return doc;
}

/* Runs that are recorded, by outcome. */
static int add_progress(struct wb_context *c, const char *id, wb_json *o, struct wb_err *err)
{
    wb_json *progress = wb_json_null(), *outcomes = NULL;
    int64_t recorded = 0;
    int rc = wb_store_outcomes(c->store, id, &outcomes, &recorded, err);

    if (rc == 0) {
        progress = wb_json_object();
        wb_json_set_int(progress, "recorded", recorded);
        wb_json_set(progress, "outcomes", outcomes);
    }
    wb_json_set(o, "progress", progress);
    return rc;
}

static void add_links(wb_json *o, const char *id)
{
    wb_json *links = wb_json_object();
    WB_AUTO_FREE char *self = wb_strf("/api/v1/campaigns/%s", id);
    WB_AUTO_FREE char *report = wb_strf("%s/report", self);
    WB_AUTO_FREE char *runs = wb_strf("/api/v1/runs?campaign=%s", id);
    WB_AUTO_FREE char *events = wb_strf("/api/v1/events?topic=campaign:%s", id);

    wb_json_set_str(links, "self", self);
    wb_json_set_str(links, "report", report);
    wb_json_set_str(links, "runs", runs);
    wb_json_set_str(links, "events", events);
    wb_json_set(o, "links", links);
}

void wb_campaign_answer(struct wb_context *c, const struct wb_request *q, struct wb_answer *a,
                        const char *id, int status)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *o = NULL, *plan;
    int rc = wb_queue_get(c->db, id, &o, &err);

    if (rc == -WB_NOT_FOUND && wb_safe_name(id)) {
        err = (struct wb_err)WB_ERR_INIT;
        rc = wb_campaign_recorded(c, id, &o, &err);
    }
    /* What was done is said, whatever the records are like: an error would have it done again. */
    if (rc == 0 && add_progress(c, id, o, &err) < 0 && status != 202)
        rc = -(int)err.code;
    if (rc < 0) {
        wb_json_free(o);
        wb_answer_error(q, a, &err);
        return;
    }
    plan = folder_doc(c->service, id, "plan.json");
    if (!plan)
        plan = recorded_doc(c, id, "plan");
    wb_json_set(o, "plan", plan ? plan : wb_json_null());
    add_links(o, id);
    wb_answer_json(q, a, status, o);
}

static void get_campaign(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    wb_campaign_answer(c, q, a, q->args[0], 200);
}

static void list_campaigns(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    const char *cursor = wb_request_query(q, "cursor");
    struct wb_campaign_ask ask = {.state = wb_request_query(q, "state"),
                                  .study = wb_request_query(q, "study")};
    WB_AUTO_FREE char *filter =
        wb_strf("campaigns&%s&%s", ask.state ? ask.state : "", ask.study ? ask.study : "");
    WB_AUTO_FREE char *from = NULL;
    struct wb_err err = WB_ERR_INIT;
    int64_t limit = 0;
    wb_json *items = NULL;
    char *next = NULL;
    int rc = wb_request_int(q, "limit", 1, 500, 50, &limit, &err);

    if (rc == 0 && cursor)
        rc = wb_cursor_read(c->service, filter, cursor, &from, &err);
    if (rc < 0) {
        wb_answer_problem(q, a, 400, cursor ? "cursor-invalid" : "validation", err.root, NULL);
        return;
    }
    ask.cursor = from;
    ask.limit = (size_t)limit;
    if (wb_campaigns_list(c, &ask, &items, &next, &err) < 0) {
        wb_answer_error(q, a, &err);
        return;
    }
    if (next) {
        char *own = wb_cursor_make(c->service, filter, next);

        free(next);
        next = own;
    }
    wb_answer_list(q, a, items, next);
}

bool wb_study_text_check(struct wb_context *c, struct wb_request *q, struct wb_answer *a,
                         const char *text)
{
    struct asked s = {.body = wb_json_object()};
    struct wb_problems p = {0};
    bool ok;

    wb_json_set_str(s.body, "study_text", text);
    plan_study(c, &s, &p);
    ok = s.plan != NULL;
    if (!ok)
        answer_study_problems(q, a, &p);
    wb_problems_release(&p);
    release(&s);
    return ok;
}

/* ---- starting ---- */

/* The order of keys and white space do not make another request. */
void wb_request_digest(const struct wb_request *q, char hex[WB_SHA256_HEX])
{
    struct wb_sha256 *d = wb_sha256_new();
    struct wb_buf same = WB_BUF_INIT(8u * WB_HTTP_BODY_MAX);
    WB_AUTO_JSON wb_json *body = NULL;

    if (q->body.len && wb_json_parse(q->body.data, q->body.len, &body, NULL) == 0)
        wb_json_canonical(body, &same);
    else
        wb_buf_add(&same, wb_buf_str(&q->body), q->body.len);
    wb_sha256_add(d, q->path, strlen(q->path) + 1);
    wb_sha256_add(d, wb_buf_str(&same), same.len);
    wb_sha256_end(d, hex);
    wb_buf_release(&same);
}

void wb_campaign_accepted(struct wb_context *c, const struct wb_request *q, struct wb_answer *a,
                          const char *id)
{
    WB_AUTO_FREE char *where = wb_strf("/api/v1/campaigns/%s", id);

    wb_answer_header(a, "Location", where);
    wb_answer_header(a, "Retry-After", "2");
    wb_campaign_answer(c, q, a, id, 202);
}

static void forget_folder(const struct wb_service *s, const char *id)
{
    WB_AUTO_FREE char *dir = wb_strf("%s/campaigns/%s", s->state_dir, id);

    WB_IGNORE(wb_remove_tree(dir, NULL)); /* what stays is removed at the next start */
}

/* The folder first: whatever is in the queue can be run. */
static void enqueue(struct wb_context *c, struct wb_request *q, struct wb_answer *a,
                    const struct asked *s, const char *rerun_of)
{
    const struct wb_plan *plan = s->plan;
    const char *key = q->headers[WB_H_IDEMPOTENCY_KEY];
    char digest[WB_SHA256_HEX];
    const struct wb_submission sub = {.id = plan->campaign,
                                      .study = s->study->name,
                                      .token = q->token.id,
                                      .reason = wb_json_str_or(s->body, "reason", NULL),
                                      .labels = wb_json_get(s->body, "labels"),
                                      .priority = wb_json_int_or(s->body, "priority", 0),
                                      .runs = (int64_t)plan->narms * plan->rounds,
                                      .arms = (int64_t)plan->narms,
                                      .rounds = plan->rounds,
                                      .forecast_s = plan->forecast_s,
                                      .key = key,
                                      .digest = digest,
                                      .rerun_of = rerun_of,
                                      .pool = s->study->pool,
                                      .hosts = wb_study_hosts(s->study),
                                      .study_version = s->version};
    struct wb_err err = WB_ERR_INIT;
    char *earlier = NULL;
    int rc;

    wb_request_digest(q, digest);
    rc = wb_engine_enqueue(plan, c->store, c->service->state_dir, &err);
    if (rc == 0)
        rc = wb_queue_add(c->db, &sub, wb_now_unix_ms(NULL), &earlier, &err);
    if (rc < 0 || earlier)
        forget_folder(c->service, plan->campaign);
    if (rc < 0) {
        wb_answer_error(q, a, &err);
    } else {
        if (!earlier)
            wb_campaign_announce(c, plan->campaign);
        wb_dispatch_wake(c->service->dispatch);
        wb_campaign_accepted(c, q, a, earlier ? earlier : plan->campaign);
    }
    free(earlier);
}

/* A request that was made before with the same key is answered as then. */
bool wb_request_answered(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    const char *key = q->headers[WB_H_IDEMPOTENCY_KEY];
    WB_AUTO_FREE char *id = NULL;
    char digest[WB_SHA256_HEX];
    struct wb_err err = WB_ERR_INIT;
    int rc;

    if (!key)
        return false;
    if (!*key || strlen(key) > 200) {
        wb_answer_problem(q, a, 400, "validation", "an Idempotency-Key has 1 to 200 bytes", NULL);
        return true;
    }
    wb_request_digest(q, digest);
    rc = wb_queue_find_key(c->db, q->token.id, key, digest, wb_now_unix_ms(NULL), &id, &err);
    if (rc == -WB_CONFLICT && err.sys != EAGAIN)
        wb_answer_problem(q, a, 422, "idempotency-mismatch", err.root, NULL);
    else if (rc < 0)
        wb_answer_error(q, a, &err);
    else if (id)
        wb_campaign_accepted(c, q, a, id);
    return rc < 0 || id;
}

static void start_campaign(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    const char *dry = wb_request_query(q, "dry_run");
    struct asked s = {0};
    struct wb_problems p = {0};

    if (wb_request_answered(c, q, a))
        return;
    if (read_asked(c, q, a, &s, &p)) {
        if (dry && !strcmp(dry, "true"))
            answer_check(q, a, &s, &p);
        else if (!s.plan)
            answer_study_problems(q, a, &p);
        else
            enqueue(c, q, a, &s, NULL);
    }
    wb_problems_release(&p);
    release(&s);
}

static void cancel_campaign(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    WB_AUTO_FREE char *state = NULL;
    struct wb_err err = WB_ERR_INIT;

    if (wb_queue_cancel(c->db, q->args[0], wb_now_unix_ms(NULL), &state, &err) < 0) {
        wb_answer_error(q, a, &err);
        return;
    }
    wb_campaign_announce(c, q->args[0]);
    wb_dispatch_wake(c->service->dispatch);
    wb_campaign_answer(c, q, a, q->args[0], 202);
}

/* The study of an earlier campaign, as its folder or one of its records has it. WB_NOT_FOUND when
 * there is no such campaign; *study is NULL when it is gone. */
static int earlier_study(struct wb_context *c, const char *id, wb_json **study, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *had = NULL;
    struct wb_err why = WB_ERR_INIT;
    int rc = wb_queue_get(c->db, id, &had, &why);

    if (rc == 0) {
        *study = folder_doc(c->service, id, "study.json");
        if (!*study)
            *study = recorded_doc(c, id, "study");
        return 0;
    }
    if (rc == -WB_NOT_FOUND && wb_campaign_recorded(c, id, &had, err) == 0) {
        *study = recorded_doc(c, id, "study");
        return 0;
    }
    if (err)
        *err = why;
    return rc;
}

static void rerun_campaign(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    struct asked s = {0};
    struct wb_problems p = {0};
    struct wb_err err = WB_ERR_INIT;
    wb_json *study = NULL;

    if (wb_request_answered(c, q, a))
        return;
    s.body = wb_request_object(q, a, &again);
    if (!s.body)
        return;
    if (earlier_study(c, q->args[0], &study, &err) < 0) {
        wb_answer_error(q, a, &err);
    } else if (!study) {
        wb_answer_problem(q, a, 409, "state-conflict",
                          "the folder of this campaign is gone: send its study again", NULL);
    } else {
        wb_json_set(s.body, "study", study);
        plan_study(c, &s, &p);
        if (s.plan)
            enqueue(c, q, a, &s, q->args[0]);
        else
            answer_study_problems(q, a, &p);
    }
    wb_problems_release(&p);
    release(&s);
}

/* ---- what came of it, and what waits ---- */

/* The comparison of the campaign's own arms; kept with the other answers. */
static void get_report(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    const struct wb_compare_question question = {.threshold_percent = NAN};
    WB_AUTO_FREE char *ref = wb_strdup(q->args[0]);
    struct wb_inquiry in = wb_http_inquiry(c);
    struct wb_err err = WB_ERR_INIT;
    wb_json *report = NULL;
    int rc = wb_inquiry_compare(&in, &ref, 1, &question, &report, &err);

    wb_http_inquiry_answer(q, a, &in, rc, report, &err);
}

/* ---- what comes back ---- */

static const struct wb_shape problem_rows[] = {
    {"file", WB_S_TEXT, .flags = WB_S_NULL},
    {"line", WB_S_INT, .flags = WB_S_NULL},
    {"pointer", WB_S_TEXT, WB_S_NEED | WB_S_NULL, .help = "Counts from the study"},
    {"code", WB_S_TEXT, .flags = WB_S_NEED},
    {"message", WB_S_TEXT, .flags = WB_S_NEED},
    {0},
};
static const struct wb_form problem = {.name = "StudyProblem", .rows = problem_rows};
static const struct wb_form plan_form = {.name = "Plan", .open = true};
static const struct wb_shape check_rows[] = {
    {"ok", WB_S_BOOL, .flags = WB_S_NEED},
    {"errors", WB_S_OBJECT, WB_S_NEED | WB_S_LIST, .of = &problem},
    {"plan", WB_S_OBJECT, WB_S_NEED | WB_S_NULL, .of = &plan_form},
    {0},
};
static const struct wb_form check_form = {.name = "Check", .rows = check_rows};

const char *const wb_campaign_states[] = {"queued",      "running",         "finished",
                                          "failed",      "cancelled",       "incomplete",
                                          "interrupted", WB_STATE_RECORDED, NULL};
static const struct wb_shape progress_rows[] = {
    {"recorded", WB_S_INT, .flags = WB_S_NEED},
    {"outcomes", WB_S_OBJECT, WB_S_NEED, .help = "How many runs ended with each outcome"},
    {0},
};
static const struct wb_form progress = {.name = "Progress", .rows = progress_rows};
static const struct wb_shape link_rows[] = {
    {"self", WB_S_TEXT, .flags = WB_S_NEED},
    {"report", WB_S_TEXT, .flags = WB_S_NEED},
    {"runs", WB_S_TEXT, .flags = WB_S_NEED},
    {"events", WB_S_TEXT, .flags = WB_S_NEED},
    {0},
};
static const struct wb_form links_form = {.name = "CampaignLinks", .rows = link_rows};

static const struct wb_shape row_rows[] = {WB_CAMPAIGN_ROWS, {0}};
static const struct wb_form row = {.name = "CampaignRow", .rows = row_rows};
static const struct wb_shape campaign_rows[] = {
    WB_CAMPAIGN_ROWS,
    {"progress", WB_S_OBJECT, WB_S_NEED | WB_S_NULL, .of = &progress,
     .help = "null behind a write when the records cannot be read just now"},
    {"plan", WB_S_OBJECT, WB_S_NEED | WB_S_NULL, .of = &plan_form},
    {"links", WB_S_OBJECT, WB_S_NEED, .of = &links_form},
    {0},
};
const struct wb_form wb_form_campaign = {.name = "Campaign", .rows = campaign_rows};
static const struct wb_form report_form = {.name = "Report", .open = true};

static const struct wb_shape list_query[] = {
    {"state", WB_S_WORD, .words = wb_campaign_states},
    {"study", WB_S_TEXT, .min = 1, .max = 100},
    WB_QUERY_PAGE,
    {0},
};
static const struct wb_shape dry_query[] = {
    {"dry_run", WB_S_BOOL, .help = "true: only say what would be done, with 200"},
    {0},
};

#define API "/api/v1"
const struct wb_route wb_routes_campaigns[] = {
    {"POST", API "/validate", WB_SCOPE_READ, 0, validate, "validate",
     "Check a study and show its plan; nothing is created", .body = &wb_form_submission,
     .answer = &check_form, .status = 200},
    {"GET", API "/campaigns", WB_SCOPE_READ, WB_ROUTE_LIST, list_campaigns, "listCampaigns",
     "Campaigns, newest first", list_query, .answer = &row, .status = 200},
    {"POST", API "/campaigns", WB_SCOPE_RUNS, WB_ROUTE_WRITE | WB_ROUTE_KEY, start_campaign,
     "startCampaign", "Check a study and put it into the queue", dry_query, &wb_form_submission,
     &wb_form_campaign, .status = 202},
    {"GET", API "/campaigns/{campaign}", WB_SCOPE_READ, 0, get_campaign, "getCampaign",
     "One campaign: state, plan, progress", .answer = &wb_form_campaign, .status = 200},
    {"POST", API "/campaigns/{campaign}/cancel", WB_SCOPE_RUNS, WB_ROUTE_WRITE, cancel_campaign,
     "cancelCampaign", "End a campaign; legal until it is over", .answer = &wb_form_campaign,
     .status = 202, .also = {409}},
    {"POST", API "/campaigns/{campaign}/rerun", WB_SCOPE_RUNS,
     WB_ROUTE_WRITE | WB_ROUTE_KEY | WB_ROUTE_NO_BODY, rerun_campaign, "rerunCampaign",
     "The same study again, with a new seed", .body = &again, .answer = &wb_form_campaign,
     .status = 202, .also = {409}},
    {"GET", API "/campaigns/{campaign}/report", WB_SCOPE_READ, 0, get_report, "getReport",
     "Arms, contrasts and verdicts, from the records", .answer = &report_form, .status = 200,
     .also = {409, 422}},
    {0},
};
