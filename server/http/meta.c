/* How the server is: for load balancers, Prometheus and people. */
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/engine/host.h"
#include "server/http/service.h"
#include "server/queue/queue.h"
#include "server/record/push.h"

#define DISK_MIN (1LL << 30)
#define DISPATCH_AGE_MAX_MS 30000

static void healthz(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    wb_json *o = wb_json_object();

    (void)c;
    wb_json_set_str(o, "status", "ok");
    wb_answer_json(q, a, 200, o);
}

static void version(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    wb_json *o = wb_json_object();
    struct wb_buf at = WB_BUF_INIT(64);

    wb_format_time(c->service->started_ms, &at);
    wb_json_set_str(o, "version", WB_VERSION);
    wb_json_set_str(o, "started_at", wb_buf_str(&at));
    wb_json_set_str(o, "controller", wb_store_controller(c->store));
    wb_buf_release(&at);
    wb_answer_json(q, a, 200, o);
}

static void wrong(wb_json *list, const char *what, const char *text)
{
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "what", what);
    wb_json_set_str(o, "text", text);
    wb_json_push(list, o);
}

static void wrong_err(wb_json *list, const char *what, const struct wb_err *err)
{
    char text[2 * WB_ERR_TEXT_MAX];

    wrong(list, what, wb_err_text(err, text, sizeof(text)));
}

/* Everything that keeps it from taking work. */
static wb_json *find_wrong(struct wb_context *c)
{
    wb_json *list = wb_json_array();
    struct wb_err err = WB_ERR_INIT;
    WB_AUTO_FREE char *trouble = wb_dispatch_trouble(c->service->dispatch);
    struct wb_store *store = NULL;
    int64_t n = 0;

    if (wb_store_open(c->service->store_path, false, NULL, &store, &err) < 0)
        wrong_err(list, "store", &err);
    wb_store_close(store);
    if (wb_queue_count(c->db, "queued", &n, &err) < 0)
        wrong_err(list, "database", &err);
    if (*trouble)
        wrong(list, "queue", trouble);
    if (wb_dispatch_age_ms(c->service->dispatch) > DISPATCH_AGE_MAX_MS)
        wrong(list, "queue", "the thread that starts campaigns does not come round");
    if (wb_disk_free(c->service->state_dir, &n, &err) < 0)
        wrong_err(list, "disk", &err);
    else if (n < DISK_MIN)
        wrong(list, "disk", "less than 1 GiB is free where campaigns are kept");
    if (wb_quarantine_check(WB_HOST_DIR, &err) < 0)
        wrong_err(list, "clean-up", &err);
    return list;
}

/* Remotes that lack records; they keep nothing from being measured. */
static wb_json *find_unpushed(struct wb_context *c)
{
    wb_json *list = wb_json_array();
    struct wb_strv remotes = {0};
    const int64_t now = wb_now_unix_ms(NULL);

    WB_IGNORE(wb_store_push_remotes(c->store, &remotes, NULL));
    for (size_t i = 0; i < remotes.n; i++) {
        bool pending = false;
        int64_t from = 0;

        if (wb_store_push_due(c->store, remotes.v[i], now, &pending, &from, NULL) == 0 && pending)
            wb_json_push(list, wb_json_str(remotes.v[i]));
    }
    wb_strv_release(&remotes);
    return list;
}

/* Runs of this store that have left a mark on the host and whose campaign does not run: something
 * of them may be left, until somebody cleans up. */
static wb_json *find_clean_ups(struct wb_context *c)
{
    wb_json *list = wb_json_array();
    WB_AUTO_JSON wb_json *marks = NULL;

    if (wb_run_marks(WB_HOST_DIR, &marks, NULL) < 0)
        return list;
    for (size_t i = 0; i < wb_json_len(marks); i++) {
        const wb_json *m = wb_json_at(marks, i);
        const char *campaign = wb_json_str_or(m, "campaign", "");
        WB_AUTO_JSON wb_json *row = NULL;
        wb_json *o;

        if (strcmp(wb_json_str_or(m, "store", ""), c->service->store_path) != 0 ||
            (wb_queue_get(c->db, campaign, &row, NULL) == 0 &&
             !strcmp(wb_json_str_or(row, "state", ""), "running")))
            continue;
        o = wb_json_object();
        wb_json_set_str(o, "campaign", campaign);
        wb_json_set_str(o, "run", wb_json_str_or(m, "run", ""));
        wb_json_push(list, o);
    }
    return list;
}

static void readyz(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    wb_json *list = find_wrong(c), *o = wb_json_object();
    bool ready = wb_json_len(list) == 0;

    wb_json_set_str(o, "status", ready ? "ready" : "not ready");
    wb_json_set(o, "problems", list);
    wb_json_set(o, "unpushed", find_unpushed(c));
    wb_json_set(o, "clean_ups", find_clean_ups(c));
    wb_answer_json(q, a, ready ? 200 : 503, o);
}

static void metric(struct wb_buf *b, const char *name, const char *type, const char *help,
                   int64_t value)
{
    wb_buf_addf(b, "# HELP weighbridge_%s %s\n# TYPE weighbridge_%s %s\nweighbridge_%s %lld\n",
                name, help, name, type, name, (long long)value);
}

static void metrics(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    struct wb_service *s = c->service;
    int64_t queued = 0, running = 0;
    struct wb_err err = WB_ERR_INIT;
    int rc = wb_queue_count(c->db, "queued", &queued, &err);

    if (rc == 0)
        rc = wb_queue_count(c->db, "running", &running, &err);
    if (rc < 0) {
        wb_answer_error(q, a, &err);
        return;
    }
    a->status = 200;
    a->type = "text/plain; version=0.0.4; charset=utf-8";
    a->body = (struct wb_buf)WB_BUF_INIT(64u << 10);
    wb_buf_addf(&a->body,
                "# HELP weighbridge_build_info Version of the server\n"
                "# TYPE weighbridge_build_info gauge\n"
                "weighbridge_build_info{version=\"%s\"} 1\n",
                WB_VERSION);
    metric(&a->body, "queue_depth", "gauge", "Campaigns that wait", queued);
    metric(&a->body, "campaigns_running", "gauge", "Campaigns that are measured now", running);
    metric(&a->body, "http_requests_total", "counter", "Requests that were answered",
           atomic_load(&s->requests));
    metric(&a->body, "http_refused_total", "counter", "Answers with a 4xx status",
           atomic_load(&s->refused));
    metric(&a->body, "http_failed_total", "counter", "Answers with a 5xx status",
           atomic_load(&s->failed));
    metric(&a->body, "sse_clients", "gauge", "Event streams", wb_hub_listeners(s->hub));
    metric(&a->body, "sse_dropped_total", "counter", "Events that slow readers lost",
           wb_hub_dropped(s->hub));
    wb_buf_addf(&a->body,
                "# HELP weighbridge_dispatch_age_seconds Time since the queue was looked at\n"
                "# TYPE weighbridge_dispatch_age_seconds gauge\n"
                "weighbridge_dispatch_age_seconds %.3f\n",
                (double)wb_dispatch_age_ms(s->dispatch) / 1000);
    metric(&a->body, "start_time_seconds", "gauge", "Unix time at which the server was started",
           s->started_ms / 1000);
}

static const struct wb_shape health_rows[] = {{"status", WB_S_TEXT, .flags = WB_S_NEED}, {0}};
static const struct wb_form health = {.name = "Health", .rows = health_rows};

static const struct wb_shape trouble_rows[] = {
    {"what", WB_S_TEXT, WB_S_NEED, .help = "store, database, queue, disk or clean-up"},
    {"text", WB_S_TEXT, .flags = WB_S_NEED},
    {0},
};
static const struct wb_form trouble = {.name = "Trouble", .rows = trouble_rows};
static const struct wb_shape clean_up_rows[] = {
    {"campaign", WB_S_TEXT, .flags = WB_S_NEED},
    {"run", WB_S_TEXT, .flags = WB_S_NEED},
    {0},
};
static const struct wb_form clean_up = {.name = "PendingCleanUp", .rows = clean_up_rows};
static const char *const readiness_words[] = {"ready", "not ready", NULL};
static const struct wb_shape readiness_rows[] = {
    {"status", WB_S_WORD, WB_S_NEED, .words = readiness_words},
    {"problems", WB_S_OBJECT, WB_S_NEED | WB_S_LIST, .of = &trouble},
    {"unpushed", WB_S_TEXT, WB_S_NEED | WB_S_LIST, .help = "Remotes that lack records"},
    {"clean_ups", WB_S_OBJECT, WB_S_NEED | WB_S_LIST, .of = &clean_up,
     .help = "Runs of which something may be left: `weighbridge clean`"},
    {0},
};
static const struct wb_form readiness = {.name = "Readiness", .rows = readiness_rows};

static const struct wb_shape version_rows[] = {
    {"version", WB_S_TEXT, .flags = WB_S_NEED},
    {"started_at", WB_S_TIME, .flags = WB_S_NEED},
    {"controller", WB_S_TEXT, WB_S_NEED, .help = "Whose records the store's HEAD names"},
    {0},
};
static const struct wb_form version_form = {.name = "Version", .rows = version_rows};

const struct wb_route wb_routes_meta[] = {
    {"GET", "/healthz", WB_SCOPE_NONE, WB_ROUTE_OPEN, healthz, "healthz", "The server is alive",
     .answer = &health, .status = 200},
    {"GET", "/readyz", WB_SCOPE_NONE, WB_ROUTE_OPEN, readyz, "readyz",
     "The server can take work; 503 names what is wrong", .answer = &readiness, .status = 200,
     .also = {503}},
    {"GET", "/version", WB_SCOPE_NONE, WB_ROUTE_OPEN, version, "version", "Version of the server",
     .answer = &version_form, .status = 200},
    {"GET", "/metrics", WB_SCOPE_READ, 0, metrics, "metrics",
     "Figures of the server for Prometheus", .type = "text/plain", .status = 200},
    {0},
};
