/* Campaigns on a server: sending a study, following it, ending it. */
#include "server/cli/remote_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/analysis/compare.h"
#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/cli/progress.h"
#include "server/cli/remote_look.h"
#include "server/engine/outcome.h"
#include "server/study/plan.h"

#define OUT_MAX (16u << 20)
#define PATIENCE_NS (300 * WB_SEC)

/* ---- following ---- */

struct follow {
    const struct wb_cli *cli;
    struct wb_remote *remote;
    struct wb_progress *progress; /* NULL: quiet, or with `lines` */
    bool lines;                   /* events as lines of JSON */
    char *id;
    size_t at;       /* bytes of the campaign's events that were told */
    char *state;     /* owned */
    char *waits;     /* the reason that was told last; owned */
    int64_t counted; /* runs that statistics may take, as its engine said at the end */
};

static bool is_over(const char *state)
{
    return strcmp(state, "queued") != 0 && strcmp(state, "running") != 0;
}

static void tell(struct follow *f, const wb_json *event)
{
    struct wb_buf out = WB_BUF_INIT(4u << 20);

    if (!strcmp(wb_json_str_or(event, "type", ""), "campaign.end"))
        f->counted = wb_json_int_or(event, "runs_counted", 0);
    if (f->progress)
        wb_progress_event(f->progress, event);
    if (f->lines) {
        wb_json_line(event, &out);
        wb_buf_addc(&out, '\n');
        wb_cli_print(&out);
    }
    wb_buf_release(&out);
}

/* What the campaign's own file of events has beyond what was told: each event once, whatever the
 * stream lost. */
static int read_on(struct follow *f, struct wb_err *err)
{
    for (;;) {
        WB_AUTO_FREE char *path = wb_strf("/api/v1/campaigns/%s/events?from=%zu", f->id, f->at);
        const struct wb_remote_call c = {.method = "GET", .path = path};
        struct wb_buf body = WB_BUF_INIT(0);
        int rc = wb_remote_send(f->remote, &c, &body, err);
        size_t n = body.len;

        for (const char *line = wb_buf_str(&body), *end = NULL; rc == 0 && *line; line = end + 1) {
            WB_AUTO_JSON wb_json *event = NULL;

            end = strchr(line, '\n');
            if (!end)
                break; /* the server gives whole lines */
            if (wb_json_parse(line, (size_t)(end - line), &event, NULL) == 0)
                tell(f, event);
        }
        f->at += n;
        wb_buf_release(&body);
        if (rc < 0 || n == 0)
            return rc;
    }
}

/* What a campaign that is queued waits for, whenever that is another thing. */
static int tell_waiting(struct follow *f, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *queue = NULL;
    const wb_json *items;
    int rc = wb_remote_get(f->remote, &queue, err, "/api/v1/queue");

    items = wb_json_get(queue, "items");
    for (size_t i = 0; rc == 0 && i < wb_json_len(items); i++) {
        const wb_json *c = wb_json_at(items, i);
        const char *why = wb_json_str_or(c, "waiting_for", "");

        if (strcmp(wb_json_str_or(c, "id", ""), f->id) != 0 || (f->waits && !strcmp(f->waits, why)))
            continue;
        free(f->waits);
        f->waits = wb_strdup(why);
        (void)fprintf(stderr, "campaign %s waits for %s; it is expected to start at %s\n", f->id,
                      why, wb_json_str_or(c, "expected_start", "a time that cannot be told"));
    }
    return rc;
}

static int look(void *arg, struct wb_err *err)
{
    struct follow *f = arg;
    WB_AUTO_JSON wb_json *c = NULL;
    int rc = wb_remote_get(f->remote, &c, err, "/api/v1/campaigns/%s", f->id);

    if (rc == 0) {
        free(f->state);
        f->state = wb_strdup(wb_json_str_or(c, "state", "unknown"));
        rc = read_on(f, err);
    }
    if (rc == 0 && f->progress && !strcmp(f->state, "queued"))
        rc = tell_waiting(f, err);
    return rc == 0 && is_over(f->state) ? 1 : rc;
}

static int on_event(void *arg, const char *type, const wb_json *data, struct wb_err *err)
{
    struct follow *f = arg;

    if (!strcmp(type, "run.sample")) {
        if (data)
            tell(f, data);
        return 0;
    }
    if (!strcmp(type, "campaign.state") || !strcmp(type, "reset"))
        return look(f, err);
    return read_on(f, err);
}

/* Until it is over. */
static int follow(struct follow *f, struct wb_err *err)
{
    WB_AUTO_FREE char *topics = wb_strf("topic=campaign:%s", f->id);
    const struct wb_remote_follow spec = {
        .topics = topics, .event = on_event, .again = look, .arg = f, .patience_ns = PATIENCE_NS};
    int rc = wb_remote_catch(f->remote, err);

    return rc < 0 ? rc : wb_remote_events(f->remote, &spec, err);
}

/* ---- what came of it ---- */

/* The same code that `run` gives here for the same runs. */
static int exit_of(const wb_json *campaign, int64_t counted)
{
    const wb_json *outcomes = wb_json_path(campaign, "progress.outcomes");
    const char *state = wb_json_str_or(campaign, "state", "");
    int worst = 0;

    for (void *it = wb_json_first(outcomes); it; it = wb_json_next(outcomes, it)) {
        enum wb_outcome o;
        int code = wb_outcome_find(wb_json_iter_key(it), &o) ? wb_outcome_exit(o) : WB_EXIT_INFRA;

        worst = code > worst ? code : worst;
    }
    if (!strcmp(state, "incomplete"))
        return WB_EXIT_LEFT;
    if (!strcmp(state, "cancelled"))
        return WB_EXIT_INTERRUPTED;
    if (strcmp(state, "finished") != 0)
        return worst ? worst : WB_EXIT_INFRA;
    return counted == 0 && !worst ? WB_EXIT_NOT_VALID : worst;
}

static void print_report(const struct wb_cli *cli, const wb_json *report, const char *id)
{
    struct wb_buf out = WB_BUF_INIT(OUT_MAX);

    wb_campaign_report_print(report, cli->width, &out);
    wb_buf_addf(&out,
                "\nnext:\n"
                "  weighbridge show %s\n"
                "  weighbridge compare %s\n",
                id, id);
    wb_cli_print(&out);
}

/* The report, as the foreground ends with it, and the exit code. */
static int conclude(const struct follow *f, bool with_report, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *campaign = NULL;
    wb_json *report = NULL;
    struct wb_err why = WB_ERR_INIT;
    int code, rc = wb_remote_get(f->remote, &campaign, err, "/api/v1/campaigns/%s", f->id);

    if (rc < 0)
        return wb_remote_fail(f->cli, f->remote, err);
    /* Without any record there is none; that is no failure of its own. */
    rc = wb_remote_get(f->remote, &report, &why, "/api/v1/campaigns/%s/report", f->id);
    if (rc < 0 && why.code != WB_NOT_FOUND)
        return wb_remote_fail(f->cli, f->remote, &why);
    code = exit_of(campaign, f->counted);
    if (!f->cli->json && wb_json_str_or(campaign, "detail", NULL))
        (void)fprintf(stderr, "campaign %s: %s: %s\n", f->id, wb_json_str_or(campaign, "state", ""),
                      wb_json_str_or(campaign, "detail", ""));
    if (f->cli->json && with_report) {
        wb_json_set(campaign, "report", report ? wb_json_ref(report) : wb_json_null());
        wb_cli_answer(f->cli, wb_json_ref(campaign), NULL);
    } else if (with_report && report) {
        print_report(f->cli, report, f->id);
    } else if (!f->cli->json) {
        (void)printf("campaign %s: %s\n", f->id, wb_json_str_or(campaign, "state", ""));
    }
    wb_json_free(report);
    return code;
}

/* Ctrl-C: the work goes on. */
static int detached(const struct wb_cli *cli, const struct follow *f)
{
    WB_AUTO_FREE char *server =
        cli->server_named ? wb_strf(" --server %s", cli->server) : wb_strdup("");

    (void)fprintf(stderr,
                  "campaign %s goes on; 'weighbridge watch %s%s' follows it again, 'weighbridge "
                  "cancel %s%s' ends it\n",
                  f->id, f->id, server, f->id, server);
    return WB_EXIT_INTERRUPTED;
}

static int follow_to_end(struct follow *f, bool quiet, bool with_report)
{
    struct wb_err err = WB_ERR_INIT;
    int rc;

    f->progress = quiet || f->lines ? NULL : wb_progress_new(STDERR_FILENO, f->cli->no_color);
    rc = follow(f, &err);
    wb_progress_free(f->progress);
    if (rc == -WB_CANCELLED)
        rc = detached(f->cli, f);
    else if (rc < 0)
        rc = wb_remote_fail(f->cli, f->remote, &err);
    else
        rc = conclude(f, with_report, &err);
    free(f->id);
    free(f->state);
    free(f->waits);
    return rc;
}

/* ---- sending ---- */

/* "PATH=VALUES" with values in YAML flow -> {"PATH": [values]}. */
static int add_override(wb_json *into, const char *text, struct wb_err *err)
{
    const char *eq = strchr(text, '=');
    WB_AUTO_FREE char *path = eq ? wb_strndup(text, (size_t)(eq - text)) : NULL;
    WB_AUTO_FREE char *flow = eq ? wb_strf("[%s]", eq + 1) : NULL;
    struct wb_node *node = NULL;
    int rc;

    if (!eq || eq == text)
        return wb_fail(err, WB_INVALID, "-f %.100s: PATH=VALUES is wanted", text);
    rc = wb_yaml_parse(flow, strlen(flow), &node, err);
    if (rc < 0)
        return wb_wrap(err, "-f %.100s", text);
    wb_json_set(into, path, wb_node_to_json(node));
    wb_node_free(node);
    return 0;
}

static int make_body(const struct wb_remote_submit *s, const char *text, wb_json **out,
                     struct wb_err *err)
{
    wb_json *body = wb_json_object(), *overrides = wb_json_object();
    int rc = 0;

    if (text)
        wb_json_set_str(body, "study_text", text);
    if (s->args->profile)
        wb_json_set_str(body, "profile", s->args->profile);
    if (s->args->rounds)
        wb_json_set_int(body, "rounds", s->args->rounds);
    for (size_t i = 0; rc == 0 && i < s->args->overrides.n; i++)
        rc = add_override(overrides, s->args->overrides.v[i], err);
    wb_json_set(body, "overrides", overrides);
    if (!wb_json_len(overrides))
        wb_json_del(body, "overrides");
    if (s->priority)
        wb_json_set_int(body, "priority", s->priority);
    if (s->reason)
        wb_json_set_str(body, "reason", s->reason);
    if (s->labels && s->labels->n) {
        wb_json *labels = wb_json_array();

        for (size_t i = 0; i < s->labels->n; i++)
            wb_json_push(labels, wb_json_str(s->labels->v[i]));
        wb_json_set(body, "labels", labels);
    }
    if (rc < 0)
        wb_json_free(body);
    else
        *out = body;
    return rc;
}

/* A study of this machine, as text. Problems of reading it go to err. */
static int read_text(const char *path, char **text, struct wb_err *err)
{
    size_t n = 0;
    int rc = wb_file_read(path, WB_NODE_TEXT_MAX, text, &n, err);

    if (rc == 0 && strlen(*text) != n)
        rc = wb_fail(err, WB_INVALID, "%s is no text: it has a NUL in it", path);
    return rc;
}

static int refused(const struct wb_cli *cli, const struct wb_remote *r, const char *file,
                   const char *text, const struct wb_err *err)
{
    struct wb_problems p = {.file = file};
    int rc;

    if (!wb_json_len(wb_json_get(wb_remote_problem(r), "errors")))
        return wb_remote_fail(cli, r, err);
    wb_remote_study_problems(wb_remote_problem(r), text, &p);
    rc = wb_study_problems(cli, &p);
    wb_problems_release(&p);
    return rc;
}

static void print_accepted(const struct wb_cli *cli, wb_json *c)
{
    const char *id = wb_json_str_or(c, "id", "?"), *detail = wb_json_str_or(c, "waiting_for", NULL);
    WB_AUTO_FREE char *server =
        cli->server_named ? wb_strf(" --server %s", cli->server) : wb_strdup("");

    if (cli->json) {
        wb_cli_answer(cli, c, NULL);
        return;
    }
    (void)printf("%s\n", id);
    (void)fprintf(stderr, "campaign %s: %s%s%s; 'weighbridge watch %s%s' follows it\n", id,
                  wb_json_str_or(c, "state", "?"), detail ? ", " : "", detail ? detail : "", id,
                  server);
    wb_json_free(c);
}

int wb_remote_submit(const struct wb_cli *cli, const struct wb_remote_submit *s)
{
    WB_AUTO_FREE char *text = NULL;
    WB_AUTO_FREE char *own_key = s->key ? wb_strdup(s->key) : wb_new_id("key_");
    WB_AUTO_JSON wb_json *body = NULL;
    struct wb_remote *r = NULL;
    struct wb_err err = WB_ERR_INIT;
    wb_json *c = NULL;
    int rc = s->file ? read_text(s->file, &text, &err) : 0;

    if (rc == 0)
        rc = make_body(s, text, &body, &err);
    if (rc == 0)
        rc = wb_remote_open(cli, &r, &err);
    if (rc == 0) {
        const struct wb_remote_call call = {
            .method = "POST", .path = s->path, .body = body, .key = own_key};

        rc = wb_remote_ask(r, &call, &c, &err);
    }
    if (rc < 0) {
        rc = s->file ? refused(cli, r, s->file, text, &err) : wb_remote_fail(cli, r, &err);
    } else if (s->wait) {
        struct follow f = {.cli = cli, .remote = r, .id = wb_strdup(wb_json_str_or(c, "id", "?"))};

        wb_json_free(c);
        rc = follow_to_end(&f, s->quiet, true);
    } else {
        print_accepted(cli, c);
        rc = WB_EXIT_OK;
    }
    wb_remote_free(r);
    return rc;
}

/* ---- campaigns that are there ---- */

int wb_remote_watch(const struct wb_cli *cli, const char *typed)
{
    struct follow f = {.cli = cli, .lines = cli->json};
    struct wb_remote *r = NULL;
    struct wb_err err = WB_ERR_INIT;
    int rc = wb_remote_open(cli, &r, &err);

    if (rc == 0)
        rc = wb_remote_find_campaign(r, typed, &f.id, &err);
    f.remote = r;
    if (rc < 0) {
        rc = wb_remote_fail(cli, r, &err);
    } else {
        rc = follow_to_end(&f, false, false);
        rc = rc == WB_EXIT_INTERRUPTED || rc == WB_EXIT_UNREACHABLE || rc == WB_EXIT_REFUSED
                 ? rc
                 : WB_EXIT_OK; /* as `watch` here: it looked, and judges nothing */
    }
    wb_remote_free(r);
    return rc;
}

/* Waits until a campaign is over; false when that took too long. */
static int wait_over(struct follow *f, int64_t wait_s, bool *over, struct wb_err *err)
{
    int64_t end = wb_now_ns(NULL) + wait_s * WB_SEC;
    int rc;

    while ((rc = look(f, err)) == 0 && wb_now_ns(NULL) < end) {
        rc = wb_wait(wb_remote_cancel(f->remote), -1, 500 * WB_MS, err);
        if (rc < 0)
            return rc;
    }
    *over = rc == 1;
    return rc < 0 ? rc : 0;
}

static int say_cancelled(const struct wb_cli *cli, const struct follow *f, bool was_over)
{
    struct wb_buf b = WB_BUF_INIT(4096);
    int rc = !strcmp(f->state, "incomplete") ? WB_EXIT_LEFT
             : was_over                      ? WB_EXIT_CONFLICT
                                             : WB_EXIT_OK;

    if (cli->json) {
        wb_json *j = wb_json_object();

        wb_json_set_str(j, "campaign", f->id);
        wb_json_set_str(j, "state", f->state);
        wb_json_set_bool(j, "was_over", was_over);
        wb_cli_answer(cli, j, NULL);
        return rc;
    }
    wb_buf_addf(&b, "campaign %s%s: %s\n", f->id, was_over ? " was over already" : "", f->state);
    wb_cli_print(&b);
    return rc;
}

int wb_remote_cancel_campaign(const struct wb_cli *cli, const char *typed, int64_t wait_s)
{
    struct follow f = {.cli = cli};
    struct wb_err err = WB_ERR_INIT;
    WB_AUTO_FREE char *path = NULL;
    wb_json *c = NULL;
    bool was_over = false, over = false;
    int rc = wb_remote_open(cli, &f.remote, &err);

    if (rc == 0)
        rc = wb_remote_find_campaign(f.remote, typed, &f.id, &err);
    if (rc == 0) {
        path = wb_strf("/api/v1/campaigns/%s/cancel", f.id);
        const struct wb_remote_call call = {.method = "POST", .path = path};

        rc = wb_remote_ask(f.remote, &call, &c, &err);
        was_over = rc == -WB_CONFLICT;
        rc = was_over ? 0 : rc;
    }
    wb_json_free(c);
    if (rc == 0)
        rc = wb_remote_catch(f.remote, &err);
    if (rc == 0)
        rc = wait_over(&f, wait_s, &over, &err);
    if (rc < 0) {
        rc = wb_remote_fail(cli, f.remote, &err);
    } else if (!over) {
        (void)fprintf(stderr, "campaign %s was told to end and has not within %lld s\n", f.id,
                      (long long)wait_s);
        rc = WB_EXIT_WAITED;
    } else {
        rc = say_cancelled(cli, &f, was_over);
    }
    free(f.id);
    free(f.state);
    wb_remote_free(f.remote);
    return rc;
}

int wb_remote_again(const struct wb_cli *cli, const char *typed, const char *verb,
                    const struct wb_remote_submit *how)
{
    struct wb_remote_submit s = *how;
    WB_AUTO_FREE char *id = NULL;
    WB_AUTO_FREE char *path = NULL;
    struct wb_remote *r = NULL;
    struct wb_err err = WB_ERR_INIT;
    int rc = wb_remote_open(cli, &r, &err);

    if (rc == 0)
        rc = wb_remote_find_campaign(r, typed, &id, &err);
    rc = rc < 0 ? wb_remote_fail(cli, r, &err) : WB_EXIT_OK;
    wb_remote_free(r);
    if (rc != WB_EXIT_OK)
        return rc;
    path = wb_strf("/api/v1/campaigns/%s/%s", id, verb);
    s.path = path;
    return wb_remote_submit(cli, &s);
}
