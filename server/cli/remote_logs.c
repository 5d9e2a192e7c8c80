/* One log of a run on a server, as it grows. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/cli/records.h"
#include "server/cli/remote_look.h"

#define SHOWN_MAX (64u << 20) /* bytes that one answer gives */
#define PATIENCE_NS (300 * WB_SEC)

struct tail {
    struct wb_remote *remote;
    const char *run, *stream;
    struct wb_buf path; /* of the log without its offset */
    size_t at;          /* bytes that were written out */
    bool plain;         /* to a terminal, which a log could drive */
};

static void put(struct tail *t, const char *data, size_t n)
{
    struct wb_buf out = WB_BUF_INIT(SHOWN_MAX);

    if (t->plain)
        wb_cli_plain(data, n, &out);
    else
        wb_buf_add(&out, data, n);
    wb_cli_print(&out);
    t->at += n;
}

/* Everything beyond what was written. */
static int catch_up(struct tail *t, struct wb_err *err)
{
    for (;;) {
        WB_AUTO_FREE char *path = wb_strf("%s&from=%zu", wb_buf_str(&t->path), t->at);
        const struct wb_remote_call c = {.method = "GET", .path = path};
        struct wb_buf body = WB_BUF_INIT(0);
        int rc = wb_remote_send(t->remote, &c, &body, err);
        size_t n = body.len;

        if (rc == 0)
            put(t, wb_buf_str(&body), n);
        wb_buf_release(&body);
        if (rc < 0 || n == 0)
            return rc;
    }
}

/* A run that is recorded gets no more. 1: it is. */
static int is_recorded(struct tail *t, struct wb_err *err)
{
    struct wb_err why = WB_ERR_INIT;
    wb_json *doc = NULL;
    int rc = wb_remote_get(t->remote, &doc, &why, "/api/v1/runs/%s", t->run);

    wb_json_free(doc);
    if (rc == -WB_NOT_FOUND)
        return 0;
    if (rc < 0)
        *err = why;
    return rc < 0 ? rc : 1;
}

static int look(void *arg, struct wb_err *err)
{
    struct tail *t = arg;
    int recorded = is_recorded(t, err);
    int rc = recorded < 0 ? recorded : catch_up(t, err);

    return rc < 0 ? rc : recorded;
}

static int on_event(void *arg, const char *type, const wb_json *data, struct wb_err *err)
{
    struct tail *t = arg;
    const char *text = wb_json_str_or(data, "text", NULL);
    int64_t from = wb_json_int_or(data, "from", -1), to = wb_json_int_or(data, "to", -1);

    if (!strcmp(type, "run.end") || !strcmp(type, "reset"))
        return look(t, err);
    if (strcmp(type, "run.log") != 0 || strcmp(wb_json_str_or(data, "stream", ""), t->stream) != 0)
        return 0;
    if (from == (int64_t)t->at && text && to - from == (int64_t)strlen(text)) {
        put(t, text, strlen(text));
        return 0;
    }
    return to > (int64_t)t->at ? catch_up(t, err) : 0;
}

int wb_remote_follow_log(const struct wb_cli *cli, struct wb_remote *r, const char *run,
                         const char *stream)
{
    WB_AUTO_FREE char *topics = NULL;
    struct tail t = {.remote = r,
                     .run = run,
                     .stream = stream,
                     .path = WB_BUF_INIT(8192),
                     .plain = isatty(STDOUT_FILENO)};
    struct wb_remote_follow f = {
        .event = on_event, .again = look, .arg = &t, .patience_ns = PATIENCE_NS};
    struct wb_err err = WB_ERR_INIT;
    int rc = wb_remote_catch(r, &err);

    if (!stream)
        rc = wb_fail(&err, WB_INVALID,
                     "--follow follows one stream: --stream db0.out.log, or another of the run");
    else if (strncmp(run, "run_", 4) != 0 || strlen(run) != 30 || strpbrk(run, "/?#%&"))
        rc = wb_fail(&err, WB_INVALID, "--follow wants the whole id of a run, run_...");
    if (rc == 0) {
        topics = wb_strf("topic=run:%s", run);
        f.topics = topics;
        wb_buf_addf(&t.path, "/api/v1/runs/%s/log", run);
        wb_rest_add_query(&t.path, "stream", stream);
        rc = wb_buf_check(&t.path, "the name of the stream", &err);
    }
    if (rc == 0)
        rc = wb_remote_events(r, &f, &err);
    wb_buf_release(&t.path);
    if (rc == -WB_CANCELLED)
        return WB_EXIT_INTERRUPTED;
    return rc < 0 ? wb_remote_fail(cli, r, &err) : WB_EXIT_OK;
}
