/* What running campaigns write, from any byte on: the exact side of the event stream, which tells
 * at once and may lose. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/file.h"
#include "server/http/service.h"
#include "server/http/spool.h"
#include "server/queue/queue.h"
#include "server/queue/runlog.h"
#include "server/record/store.h"

#define PART_MAX (4u << 20) /* bytes of one answer; the next begins after them */

/* Bytes of an open file from `from` on, at most PART_MAX. */
static int read_open(int fd, const char *name, int64_t from, struct wb_buf *out, struct wb_err *err)
{
    while (out->len < PART_MAX) {
        char *to = wb_buf_room(out, 65536);
        ssize_t n = to ? pread(fd, to, 65536, from + (int64_t)out->len) : 0;

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return wb_fail_sys(err, errno, "%s", name);
        if (n == 0)
            break;
        wb_buf_commit(out, (size_t)n);
    }
    return 0;
}

/* The same of a file that may not be there; none is no failure. */
static int read_part(const char *path, int64_t from, struct wb_buf *out, struct wb_err *err)
{
    WB_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0)
        return errno == ENOENT ? 0 : wb_fail_sys(err, errno, "%s", path);
    return read_open(fd, path, from, out, err);
}

/* Up to the last whole line. */
static void whole_lines(struct wb_buf *b)
{
    while (b->len && b->data[b->len - 1] != '\n')
        b->len--;
}

static void events_of(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    WB_AUTO_JSON wb_json *known = NULL;
    WB_AUTO_FREE char *path = NULL;
    struct wb_err err = WB_ERR_INIT;
    int64_t from = 0;
    int rc = wb_request_int(q, "from", 0, INT64_MAX / 2, 0, &from, &err);

    a->body = (struct wb_buf)WB_BUF_INIT(2 * PART_MAX);
    if (rc == 0)
        rc = wb_queue_get(c->db, q->args[0], &known, &err);
    if (rc == 0) {
        path = wb_strf("%s/campaigns/%s/events.ndjson", c->service->state_dir, q->args[0]);
        rc = read_part(path, from, &a->body, &err);
    }
    if (rc < 0) {
        wb_buf_release(&a->body);
        wb_answer_error(q, a, &err);
        return;
    }
    whole_lines(&a->body);
    a->status = 200;
    a->type = "application/x-ndjson";
}

/* The folder of a run that is not recorded yet; caller frees. NULL: no campaign has it now. */
static char *run_dir(struct wb_context *c, const char *run, struct wb_err *err)
{
    struct wb_strv ids = {0};
    char *found = NULL;

    if (wb_safe_name(run) && wb_queue_ids(c->db, "running", &ids, err) == 0)
        for (size_t i = 0; i < ids.n && !found; i++) {
            WB_AUTO_FREE char *dir =
                wb_strf("%s/campaigns/%s/runs/%s", c->service->state_dir, ids.v[i], run);

            found = wb_path_exists(dir) ? WB_STEAL(dir) : NULL;
        }
    wb_strv_release(&ids);
    return found;
}

/* Of a recorded run: taken out of git once, however many parts are asked for. */
static int recorded_log(struct wb_context *c, const char *run, const char *stream, int64_t from,
                        struct wb_buf *out, struct wb_err *err)
{
    WB_AUTO_FREE char *dir = wb_strf("%s/" WB_SPOOL_FOLDER, c->service->state_dir);
    WB_AUTO_JSON wb_json *summary = NULL;
    WB_AUTO_CLOSE int fd = -1;
    const wb_json *facts;
    int rc = wb_store_read(c->store, run, "summary", &summary, err);

    if (rc < 0)
        return rc;
    facts = wb_json_get(wb_json_get(summary, "raw"), stream);
    if (!facts)
        return wb_fail(err, WB_NOT_FOUND,
                       "run %s has no raw file '%.60s': GET .../artifacts lists them", run, stream);
    rc = wb_spool_open(c->store, dir, run, stream, wb_json_str_or(facts, "sha256", ""), &fd, err);
    return rc < 0 ? rc : read_open(fd, stream, from, out, err);
}

static int read_log(struct wb_context *c, const struct wb_request *q, int64_t from, bool *complete,
                    struct wb_buf *out, struct wb_err *err)
{
    const char *stream = wb_request_query(q, "stream");
    WB_AUTO_FREE char *dir = NULL;
    WB_AUTO_FREE char *path = NULL;
    WB_AUTO_FREE char *run = NULL;
    struct wb_err why = WB_ERR_INIT;

    *complete = true;
    if (wb_store_resolve(c->store, q->args[0], &run, &why) == 0)
        return recorded_log(c, run, stream, from, out, err);
    *complete = false;
    dir = run_dir(c, q->args[0], err);
    if (!dir)
        return wb_fail(err, WB_NOT_FOUND, "no run %.60s is recorded or runs now", q->args[0]);
    path = wb_runlog_path(dir, stream);
    if (!path)
        return wb_fail(
            err, WB_NOT_FOUND,
            "a run has no log '%.60s'; db0.out.log, db0.NAME and load-PHASE.log are names", stream);
    return read_part(path, from, out, err);
}

static void log_of(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    struct wb_err err = WB_ERR_INIT;
    bool complete = false;
    int64_t from = 0;
    int rc = wb_request_int(q, "from", 0, INT64_MAX / 2, 0, &from, &err);

    a->body = (struct wb_buf)WB_BUF_INIT(2 * PART_MAX);
    if (rc == 0)
        rc = read_log(c, q, from, &complete, &a->body, &err);
    if (rc < 0) {
        wb_buf_release(&a->body);
        wb_answer_error(q, a, &err);
        return;
    }
    wb_answer_header(a, "X-Log-Complete", complete ? "true" : "false");
    a->status = 200;
    a->type = "application/octet-stream"; /* bytes of others: nobody shows them as a page */
}

static const struct wb_shape log_query[] = {
    {"stream", WB_S_TEXT, WB_S_NEED, .min = 1, .max = 128,
     .help = "db0.out.log, load-max.log, ..."},
    {"from", WB_S_INT, .min = 0, .max = 9e15, .help = "Bytes that were read before"},
    {0},
};
static const struct wb_shape from_query[] = {
    {"from", WB_S_INT, .min = 0, .max = 9e15,
     .help = "Bytes that were read before; the answer has whole lines after them"},
    {0},
};

const struct wb_route wb_routes_trail[] = {
    {"GET", "/api/v1/campaigns/{campaign}/events", WB_SCOPE_READ, 0, events_of, "getCampaignEvents",
     "What happened in a campaign, line by line, from any byte on", from_query,
     .type = "application/x-ndjson", .status = 200},
    {"GET", "/api/v1/runs/{run}/log", WB_SCOPE_READ, 0, log_of, "getRunLog",
     "A log of a run, recorded or running, from any byte on", log_query,
     .type = "application/octet-stream", .status = 200},
    {0},
};
