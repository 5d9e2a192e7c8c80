/* wb-load as a load program: a job document in, a result document and interval lines out. */
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "runners/tools/tool.h"
#include "server/base/clock.h"
#include "server/base/file.h"

/* A worker that is still there this long after its own end is hung. */
#define SLACK_NS (30 * WB_SEC)
#define LOAD_ONLY_LIMIT_NS (1800 * WB_SEC)
#define BY_COUNT_LIMIT_NS (1800 * WB_SEC)
/* Rates that a search tries, and what each takes beside its window: connecting, draining. */
#define SEARCH_POINTS_MOST 45
#define SEARCH_POINT_NS (7 * WB_SEC)
#define RESULT_MAX (16u << 20)
#define DOCUMENT_MAX 65536
/* The measured window may differ from the asked one by this share. */
#define WINDOW_TOLERANCE 0.10

enum exit_code { EXIT_VALID = 0, EXIT_NO_CONNECTION = 3, EXIT_NOT_VALID = 4 };

static void set_file(const struct wb_tool_task *t, wb_json *j, const char *key, const char *end)
{
    WB_AUTO_FREE char *path = wb_strf("%s%s", t->base, end);

    wb_json_set_str(j, key, path);
}

static void set_target(const struct wb_tool_task *t, wb_json *j)
{
    struct wb_buf b = WB_BUF_INIT(65536);

    wb_buf_addf(&b, "%s://", t->protocol);
    for (size_t i = 0; i < t->npeers; i++)
        wb_buf_addf(&b, "%s%s:%d", i ? "," : "", t->peers[i].host, t->peers[i].port);
    wb_json_set_str(j, "target", wb_buf_str(&b));
    wb_buf_release(&b);
    if (t->split)
        wb_json_set_str(j, "split", t->split); /* each key is on one instance */
    if (t->consistency)
        wb_json_set_str(j, "consistency", t->consistency);
    if (t->routing)
        wb_json_set_str(j, "routing", t->routing);
}

static void set_mix(const struct wb_tool_task *t, wb_json *j)
{
    wb_json *mix = wb_json_object();

    if (t->get_percent > 0)
        wb_json_set_real(mix, "get", t->get_percent);
    if (t->get_percent < 100)
        wb_json_set_real(mix, "set", 100 - t->get_percent);
    wb_json_set(j, "mix", mix);
}

static void set_measured(const struct wb_tool_task *t, wb_json *j)
{
    set_file(t, j, "hdr", ".hdr");
    wb_json_set_str(j, "key_choice", t->keys);
    if (t->transactions) {
        wb_json_set_str(j, "transactions", t->transactions);
        if (t->txn_mix)
            wb_json_set_str(j, "mix", t->txn_mix);
    } else {
        set_mix(t, j);
    }
    wb_json_set_str(j, "model", wb_tool_task_open(t) ? "open" : "closed");
    if (t->search)
        wb_json_set_str(j, "search", t->search);
    if (t->rate_per_s > 0)
        wb_json_set_real(j, "rate_per_s", t->rate_per_s);
    if (wb_tool_task_open(t)) {
        wb_json_set_str(j, "arrivals", t->arrivals);
        wb_json_set_str(j, "catch_up", "immediate");
    }
    wb_json_set_real(j, "warm_up_s", (double)t->warm_up_ns / 1e9);
    if (t->operations > 0)
        wb_json_set_int(j, "ops", t->operations);
    else
        wb_json_set_real(j, "for_s", (double)t->for_ns / 1e9);
}

static wb_json *document(const struct wb_tool_task *t)
{
    wb_json *j = wb_json_object();

    set_target(t, j);
    wb_json_set_int(j, "threads", t->threads);
    wb_json_set_str(j, "cpus", t->cpus);
    wb_json_set_int(j, "connections", t->connections);
    if (t->depth > 0)
        wb_json_set_int(j, "depth", t->depth);
    wb_json_set_int(j, "seed", t->seed);
    wb_json_set_int(j, "keys", t->rows);
    wb_json_set_int(j, "key_bytes", t->key_bytes);
    if (t->value_size)
        wb_json_set_str(j, "value_size", t->value_size);
    else
        wb_json_set_int(j, "value_bytes", t->value_bytes);
    if (t->value_content)
        wb_json_set_str(j, "value_content", t->value_content);
    wb_json_set_real(j, "timeout_ms", (double)t->timeout_ns / 1e6);
    set_file(t, j, "output", ".result.json");
    set_file(t, j, "ndjson", ".ndjson");
    wb_json_set_real(j, "interval_s", 1);
    if (t->load_only)
        wb_json_set_bool(j, "load_only", true);
    else
        set_measured(t, j);
    return j;
}

static int64_t limit_of(const struct wb_tool_task *t)
{
    int64_t window = t->warm_up_ns + t->for_ns + t->timeout_ns;

    if (t->load_only)
        return LOAD_ONLY_LIMIT_NS;
    if (t->operations > 0)
        return BY_COUNT_LIMIT_NS;
    return t->search ? SEARCH_POINTS_MOST * (window + SEARCH_POINT_NS) + SLACK_NS
                     : window + SLACK_NS;
}

static int begin(const struct wb_tool_task *t, struct wb_tool_start *out, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("%s.json", t->base);
    WB_AUTO_JSON wb_json *doc = document(t);
    struct wb_buf text = WB_BUF_INIT(DOCUMENT_MAX);
    int rc;

    wb_json_pretty(doc, &text);
    rc = wb_buf_check(&text, "the job document", err);
    if (rc == 0)
        rc = wb_file_put(path, wb_buf_str(&text), text.len, err);
    wb_buf_release(&text);
    if (rc < 0)
        return rc;
    wb_strv_add(&out->argv, t->program);
    wb_strv_add(&out->argv, "--job");
    wb_strv_add(&out->argv, path);
    out->limit_ns = limit_of(t);
    return 0;
}

/* One interval line in words of the engine. */
static void tell(const wb_json *line, void (*told)(void *arg, const struct wb_tool_told *what),
                 void *arg)
{
    const char *part = wb_json_str_or(line, "phase", "");
    const wb_json *latency = wb_json_get(line, "response");
    double seconds = wb_json_real_or(line, "seconds", 0);
    struct wb_tool_told what = {.rate_per_s = NAN, .errors_per_s = NAN};

    if (strlen(part) < sizeof(what.part))
        memcpy(what.part, part, strlen(part) + 1);
    if (wb_json_type(latency) != WB_JSON_OBJECT)
        latency = wb_json_get(line, "service");
    if (seconds > 0) {
        what.rate_per_s = wb_json_real_or(line, "ok", 0) / seconds;
        what.errors_per_s = wb_json_real_or(line, "failed", 0) / seconds;
    }
    what.p99_ms = wb_json_real_or(latency, "p99_ms", NAN);
    told(arg, &what);
}

static void follow(const struct wb_tool_task *t, int64_t *at,
                   void (*told)(void *arg, const struct wb_tool_told *what), void *arg)
{
    WB_AUTO_FREE char *path = wb_strf("%s.ndjson", t->base);
    WB_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    char chunk[65536];
    ssize_t n = fd < 0 ? 0 : pread(fd, chunk, sizeof(chunk) - 1, *at);
    char *line = chunk, *end;

    if (n <= 0)
        return;
    chunk[n] = '\0';
    for (; (end = memchr(line, '\n', (size_t)(chunk + n - line))); line = end + 1) {
        WB_AUTO_JSON wb_json *j = NULL;

        if (wb_json_parse(line, (size_t)(end - line), &j, NULL) == 0)
            tell(j, told, arg);
    }
    *at += line - chunk;
}

static void last_words(const struct wb_tool_task *t, struct wb_buf *said)
{
    if (wb_job_log_tail(t->job_dir, "stderr.log", 500, said, NULL) < 0)
        wb_buf_clear(said);
    while (said->len && said->data[said->len - 1] == '\n')
        said->data[--said->len] = '\0';
}

static int no_result(const struct wb_tool_task *t, int exit_code, const char *why,
                     struct wb_err *err)
{
    struct wb_buf said = WB_BUF_INIT(2048);
    int rc;

    last_words(t, &said);
    if (exit_code == EXIT_NO_CONNECTION)
        rc = wb_fail(err, WB_UNAVAILABLE, "the database took no connection: %s", wb_buf_str(&said));
    else
        rc =
            wb_fail(err, WB_PROTOCOL, "the load worker ended with status %d and no result (%s)%s%s",
                    exit_code, why, said.len ? ": " : "", wb_buf_str(&said));
    wb_buf_release(&said);
    return rc;
}

/* The window that was asked for; a data load has none. */
static int check_window(const struct wb_tool_task *t, const wb_json *r, struct wb_err *err)
{
    double asked = (double)t->for_ns / 1e9;
    double got = wb_json_number(wb_json_path(r, "window.seconds"), -1);
    int64_t did = wb_json_int_or(r, "scheduled", -1);

    if (t->load_only)
        return 0;
    if (t->operations > 0)
        return did == t->operations
                   ? 0
                   : wb_fail(err, WB_CONFLICT, "it did %lld operations, asked were %lld",
                             (long long)did, (long long)t->operations);
    if (fabs(got - asked) > asked * WINDOW_TOLERANCE)
        return wb_fail(err, WB_PROTOCOL, "measured for %.2f s instead of %.2f s", got, asked);
    return 0;
}

static int result(const struct wb_tool_task *t, const struct wb_job_status *s, const char *version,
                  wb_json **out, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("%s.result.json", t->base);
    WB_AUTO_JSON wb_json *r = NULL;
    struct wb_err own = WB_ERR_INIT;
    int rc;

    if (wb_json_read_file(path, RESULT_MAX, &r, &own) < 0)
        return no_result(t, s->exit_code, own.root, err);
    if (s->exit_code != EXIT_VALID && s->exit_code != EXIT_NOT_VALID && !t->load_only)
        return no_result(t, s->exit_code, "its status is none of a result", err);
    rc = check_window(t, r, err);
    if (rc == 0)
        *out = WB_STEAL(r);
    return rc;
}

static const struct wb_tool_file files[] = {{".ndjson", ".ndjson"}, {".hdr", ".hdr"}, {0}};

const struct wb_tool_ops wb_tool_wb_load = {
    .name = "wb-load",
    .summary = "the native load generator",
    .own_threads = true,
    .files = files,
    .begin = begin,
    .follow = follow,
    .result = result,
};
