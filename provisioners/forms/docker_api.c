#include "provisioners/forms/docker_api.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/base/clock.h"
#include "server/base/mem.h"
#include "server/base/units.h"

#define PING_NS (10 * WB_SEC)
#define CALL_NS (60 * WB_SEC)
#define MESSAGE_MAX 400 /* bytes of the engine's error text that are shown */

/* "1.41" as 1041; -1 when it is no version. */
static int64_t version_number(const char *text)
{
    const char *dot = strchr(text, '.');
    int64_t major = 0, minor = 0;

    if (!dot)
        return -1;
    WB_AUTO_FREE char *head = wb_strndup(text, (size_t)(dot - text));
    if (wb_parse_int(head, 0, 99, &major, NULL) < 0 ||
        wb_parse_int(dot + 1, 0, 999, &minor, NULL) < 0)
        return -1;
    return major * 1000 + minor;
}

int wb_engine_negotiate(const char *server, char out[16], struct wb_err *err)
{
    int64_t theirs = version_number(server), newest = version_number(WB_ENGINE_API_NEWEST);
    const char *chosen = theirs < newest ? server : WB_ENGINE_API_NEWEST;

    if (theirs < 0)
        return wb_fail(err, WB_PROTOCOL, "it names no API version that can be read: '%.40s'",
                       server);
    if (theirs < version_number(WB_ENGINE_API_OLDEST) || strlen(chosen) >= 16)
        return wb_fail(err, WB_UNSUPPORTED,
                       "it speaks API %.40s at most, needed is %s to %s: use a newer Docker Engine "
                       "(19.03 or later)",
                       server, WB_ENGINE_API_OLDEST, WB_ENGINE_API_NEWEST);
    memcpy(out, chosen, strlen(chosen) + 1);
    return 0;
}

/* Nobody there: say what can be done about it. */
static int unreachable(const char *socket, struct wb_err *err)
{
    if (err && (err->sys == EACCES || err->sys == EPERM))
        return wb_fail(err, WB_UNAVAILABLE,
                       "no permission for the Docker Engine's socket %s: run as root, or as a "
                       "member of the group that owns the socket",
                       socket);
    return wb_wrap(
        err, "no Docker Engine (start one, name another socket with DOCKER_HOST=unix:///path, "
             "or take the docker arms out of the study)");
}

static int ping(struct wb_engine *e, struct wb_err *err)
{
    struct wb_rest_request q = {
        .path = "/_ping", .want = "Api-Version", .limit_ns = PING_NS, .answer_max = 4096};
    struct wb_rest_answer a;
    int rc = wb_rest_do(e->rest, &q, &a, err);

    if (rc < 0)
        rc = unreachable(e->socket, err);
    else if (a.status != 200)
        rc = wb_fail(err, WB_UNAVAILABLE, "%s answers a ping with HTTP status %d: %.200s",
                     e->socket, a.status, wb_buf_str(&a.body));
    else if ((rc = wb_engine_negotiate(a.wanted, e->api, err)) < 0)
        rc = wb_wrap(err, "container engine at %s", e->socket);
    else
        memcpy(e->api_most, a.wanted, strnlen(a.wanted, sizeof e->api_most - 1));
    wb_rest_answer_release(&a);
    return rc;
}

int wb_engine_open(const char *socket, struct wb_engine **out, struct wb_err *err)
{
    struct wb_engine *e = wb_calloc(1, sizeof *e);
    struct wb_rest_options options = {.base = "http://engine"};

    e->socket = wb_strdup(socket && *socket ? socket : WB_ENGINE_SOCKET);
    options.unix_socket = e->socket;
    int rc = wb_rest_open(&options, &e->rest, err);
    if (rc == 0)
        rc = ping(e, err);
    if (rc < 0) {
        wb_engine_close(e);
        return rc;
    }
    *out = e;
    return 0;
}

void wb_engine_close(struct wb_engine *e)
{
    if (!e)
        return;
    wb_rest_free(e->rest);
    free(e->socket);
    free(e);
}

void wb_auto_engine(struct wb_engine **e)
{
    wb_engine_close(*e);
}

/* Texts of engines since 19.03 and of the runtimes below them. First match counts. */
static const struct {
    const char *text;
    enum wb_code code;
} texts[] = {
    {"is too old", WB_UNSUPPORTED},
    {"is too new", WB_UNSUPPORTED},
    {"no space left on device", WB_IO},
    {"disk quota exceeded", WB_IO},
    {"is already in use by container", WB_CONFLICT},
    {"port is already allocated", WB_CONFLICT},
    {"address already in use", WB_CONFLICT},
    {"is already in progress", WB_CONFLICT},
    {"executable file not found", WB_NOT_FOUND},
    {"no such image", WB_NOT_FOUND},
    {"no such container", WB_NOT_FOUND},
    {"bind source path does not exist", WB_NOT_FOUND},
    {"no such file or directory", WB_NOT_FOUND},
    {"requested cpus are not available", WB_INVALID},
    {"requested memory nodes are not available", WB_INVALID},
    {"error setting rlimit", WB_UNSUPPORTED},
    {"unable to apply caps", WB_UNSUPPORTED},
    {"operation not permitted", WB_UNSUPPORTED},
    {"cannot connect to the docker daemon", WB_UNAVAILABLE},
    {"transport is closing", WB_UNAVAILABLE},
    {"containerd.sock", WB_UNAVAILABLE},
    {"connection refused", WB_UNAVAILABLE},
    {"context deadline exceeded", WB_TIMEOUT},
};

enum wb_code wb_engine_classify(int status, const char *message)
{
    for (size_t i = 0; message && i < WB_LEN(texts); i++)
        if (strcasestr(message, texts[i].text))
            return texts[i].code;
    switch (status) {
    case 400:
        return WB_INVALID;
    case 404:
        return WB_NOT_FOUND;
    case 409:
        return WB_CONFLICT;
    case 501:
        return WB_UNSUPPORTED;
    case 502:
    case 503:
        return WB_UNAVAILABLE;
    case 504:
        return WB_TIMEOUT;
    default:
        return WB_IO;
    }
}

/* The engine's own text: {"message": "..."}; else what came, without line breaks. */
static int engine_error(const struct wb_rest_answer *a, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *j = NULL;
    const char *message = NULL;

    if (a->body.len && wb_json_parse(a->body.data, a->body.len, &j, NULL) == 0)
        message = wb_json_str_or(j, "message", NULL);
    WB_AUTO_FREE char *text = wb_strndup(message ? message : wb_buf_str(&a->body), MESSAGE_MAX);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
    return wb_fail(err, wb_engine_classify(a->status, text),
                   "the container engine says: %s (HTTP status %d)", *text ? text : "nothing",
                   a->status);
}

static int parse_answer(const struct wb_engine *e, const struct wb_rest_answer *a, const char *path,
                        wb_json **out, struct wb_err *err)
{
    *out = NULL;
    if (a->body.len == 0)
        return 0;
    struct wb_err why = WB_ERR_INIT;
    if (wb_json_parse(a->body.data, a->body.len, out, &why) < 0)
        return wb_fail(err, WB_PROTOCOL, "%s answers to %s what is not JSON: %.200s", e->socket,
                       path, why.root);
    return 0;
}

int wb_engine_do(struct wb_engine *e, const struct wb_engine_call *call, wb_json **out,
                 struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("/v%s%s", e->api, call->path);
    struct wb_buf body = WB_BUF_INIT(1 << 20);
    struct wb_rest_answer a;
    struct wb_rest_request q = {.method = call->method,
                                .path = path,
                                .content_type = call->content_type,
                                .read = call->read,
                                .read_arg = call->read_arg,
                                .data = call->data,
                                .data_arg = call->data_arg,
                                .limit_ns = call->limit_ns ? call->limit_ns : CALL_NS,
                                .cancel = call->cancel};

    if (call->body) {
        wb_json_line(call->body, &body);
        q.body = wb_buf_str(&body);
        q.body_len = body.len;
    }
    int rc = wb_buf_check(&body, "request to the container engine", err);
    if (rc < 0) {
        wb_buf_release(&body);
        return rc;
    }
    rc = wb_rest_do(e->rest, &q, &a, err);
    if (rc == 0 && a.status != 304 && (a.status < 200 || a.status >= 300))
        rc = engine_error(&a, err);
    else if (rc == 0 && out)
        rc = parse_answer(e, &a, path, out, err);
    wb_rest_answer_release(&a);
    wb_buf_release(&body);
    return rc;
}

int wb_engine_get(struct wb_engine *e, const char *path, wb_json **out, struct wb_err *err)
{
    return wb_engine_do(e, &(struct wb_engine_call){.path = path}, out, err);
}

void wb_engine_add_labels(struct wb_buf *path, const char *const *labels)
{
    struct wb_buf text = WB_BUF_INIT(64 << 10);
    WB_AUTO_JSON wb_json *filters = wb_json_object();
    wb_json *list = wb_json_array();

    for (; *labels; labels++)
        wb_json_push(list, wb_json_str(*labels));
    wb_json_set(filters, "label", list);
    wb_json_line(filters, &text);
    wb_rest_add_query(path, "filters", wb_buf_str(&text));
    wb_buf_release(&text);
}
