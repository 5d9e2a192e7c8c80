#include "server/base/rest.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/base/clock.h"
#include "server/base/mem.h"

#define CONNECT_NS (10 * WB_SEC)

struct wb_rest {
    CURL *easy;
    CURLM *multi;
    char *base;
    char *socket; /* NULL: TCP */
    char *ca_file;
    bool direct;
    int64_t connect_ns;
};

/* One request in flight; lives on the stack of wb_rest_do. */
struct transfer {
    struct wb_rest *rest;
    const struct wb_rest_request *request;
    struct wb_rest_answer *answer;
    struct wb_err *err; /* of a callback that failed; then `failed` is its code */
    int failed;
    size_t max;
};

int wb_rest_open(const struct wb_rest_options *options, struct wb_rest **out, struct wb_err *err)
{
    /* Counted and thread-safe since 7.84; undone in wb_rest_free. */
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return wb_fail(err, WB_UNSUPPORTED, "the HTTP client library cannot be initialised");
    struct wb_rest *r = wb_calloc(1, sizeof *r);
    r->base = wb_strdup(options->base ? options->base : "http://localhost");
    r->socket = wb_strdup(options->unix_socket);
    r->ca_file = wb_strdup(options->ca_file);
    r->direct = options->direct;
    r->connect_ns = options->connect_ns > 0 ? options->connect_ns : CONNECT_NS;
    r->easy = curl_easy_init();
    r->multi = curl_multi_init();
    if (!r->easy || !r->multi) {
        wb_rest_free(r);
        return wb_fail(err, WB_UNSUPPORTED, "the HTTP client library gives no handle");
    }
    *out = r;
    return 0;
}

void wb_rest_free(struct wb_rest *r)
{
    if (!r)
        return;
    curl_easy_cleanup(r->easy);
    curl_multi_cleanup(r->multi);
    curl_global_cleanup();
    free(r->base);
    free(r->socket);
    free(r->ca_file);
    free(r);
}

static const char *where(const struct wb_rest *r)
{
    return r->socket ? r->socket : r->base;
}

static size_t on_read(char *to, size_t size, size_t n, void *arg)
{
    struct transfer *t = arg;
    int64_t got = t->request->read(t->request->read_arg, to, size * n, t->err);

    if (got < 0) {
        t->failed = (int)got;
        return CURL_READFUNC_ABORT;
    }
    return (size_t)got;
}

static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
    struct transfer *t = arg;
    size_t len = size * n;
    long status = 0;

    curl_easy_getinfo(t->rest->easy, CURLINFO_RESPONSE_CODE, &status);
    if (t->request->data && status >= 200 && status < 300) {
        int rc = t->request->data(t->request->data_arg, data, len, t->err);
        if (rc < 0) {
            t->failed = rc;
            return 0;
        }
        return len;
    }
    wb_buf_add(&t->answer->body, data, len);
    if (t->answer->body.failed) {
        t->failed =
            wb_fail(t->err, WB_LIMIT, "%s: %s %s answers with more than %zu bytes", where(t->rest),
                    t->request->method ? t->request->method : "GET", t->request->path, t->max);
        return 0;
    }
    return len;
}

/* The text of a request line must be one line without blanks, whoever made it. */
static int check_request(const struct wb_rest_request *q, struct wb_err *err)
{
    if (q->limit_ns <= 0)
        return wb_fail(err, WB_INVALID, "an HTTP request needs a time limit");
    if (!q->path || q->path[0] != '/')
        return wb_fail(err, WB_INVALID, "an HTTP path must start with '/'");
    for (const char *c = q->path; *c; c++)
        if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f)
            return wb_fail(err, WB_INVALID, "an HTTP path must be percent-encoded: %s", q->path);
    for (size_t i = 0; q->header && q->header[i]; i++)
        if (strpbrk(q->header[i], "\r\n"))
            return wb_fail(err, WB_INVALID, "an HTTP header must be one line");
    return 0;
}

static struct curl_slist *append(struct curl_slist *list, const char *line)
{
    struct curl_slist *longer = curl_slist_append(list, line);
    return longer ? longer : list; /* libcurl out of memory: sent without it and refused there */
}

static struct curl_slist *headers_of(const struct wb_rest_request *q)
{
    struct curl_slist *list = NULL;
    bool has_body = q->body || q->read;

    list = append(list, "Expect:"); /* no round trip before the body */
    if (has_body) {
        WB_AUTO_FREE char *type =
            wb_strf("Content-Type: %s", q->content_type ? q->content_type : "application/json");
        list = append(list, type);
    }
    if (q->read)
        list = append(list, "Transfer-Encoding: chunked");
    for (size_t i = 0; q->header && q->header[i]; i++)
        list = append(list, q->header[i]);
    return list;
}

static void set_body(CURL *e, const struct wb_rest_request *q, struct transfer *t)
{
    const char *method = q->method ? q->method : "GET";

    if (q->read) {
        curl_easy_setopt(e, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(e, CURLOPT_READFUNCTION, on_read);
        curl_easy_setopt(e, CURLOPT_READDATA, t);
        curl_easy_setopt(e, CURLOPT_UPLOAD_BUFFERSIZE, 512L << 10);
    } else if (q->body || strcmp(method, "POST") == 0) {
        curl_easy_setopt(e, CURLOPT_POSTFIELDS, q->body ? q->body : "");
        curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body_len);
    }
    if (strcmp(method, "HEAD") == 0)
        curl_easy_setopt(e, CURLOPT_NOBODY, 1L);
    else
        curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, method);
}

static void set_options(struct transfer *t, const char *url, struct curl_slist *headers)
{
    struct wb_rest *r = t->rest;
    CURL *e = r->easy;

    curl_easy_reset(e); /* keeps the connection */
    curl_easy_setopt(e, CURLOPT_URL, url);
    curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(e, CURLOPT_USERAGENT, "weighbridge/" WB_VERSION);
    curl_easy_setopt(e, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)(r->connect_ns / WB_MS));
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, t);
    if (r->socket)
        curl_easy_setopt(e, CURLOPT_UNIX_SOCKET_PATH, r->socket);
    if (r->socket || r->direct)
        curl_easy_setopt(e, CURLOPT_PROXY, "");
    if (r->ca_file)
        curl_easy_setopt(e, CURLOPT_CAINFO, r->ca_file);
    set_body(e, t->request, t);
}

/* Turns libcurl's result into the error convention. os: errno of the connection attempt. */
static int explain(struct transfer *t, CURLcode rc, struct wb_err *err)
{
    const char *peer = where(t->rest), *path = t->request->path;
    long os = 0, status = 0;

    if (t->failed < 0)
        return t->failed;
    curl_easy_getinfo(t->rest->easy, CURLINFO_OS_ERRNO, &os);
    curl_easy_getinfo(t->rest->easy, CURLINFO_RESPONSE_CODE, &status);
    switch (rc) {
    case CURLE_OK:
        return 0;
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
        if (os) {
            int code = wb_fail_sys(err, (int)os, "%s does not answer", peer);
            if (os == EACCES || os == EPERM)
                return code;
            if (err)
                err->code = WB_UNAVAILABLE;
        } else {
            wb_fail(err, WB_UNAVAILABLE, "%s does not answer (%s)", peer, curl_easy_strerror(rc));
        }
        return -WB_UNAVAILABLE;
    case CURLE_OPERATION_TIMEDOUT:
        return wb_fail(err, WB_UNAVAILABLE, "%s does not accept a connection in time", peer);
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
        if (status == 0)
            return wb_fail(err, WB_UNAVAILABLE, "%s closed the connection without an answer to %s",
                           peer, path);
        return wb_fail(err, WB_PROTOCOL, "%s broke off its answer to %s", peer, path);
    case CURLE_PARTIAL_FILE:
        return wb_fail(err, WB_PROTOCOL, "%s broke off its answer to %s", peer, path);
    case CURLE_PEER_FAILED_VERIFICATION:
        return wb_fail(err, WB_UNAVAILABLE, "the certificate of %s is not trusted (%s)", peer,
                       curl_easy_strerror(rc));
    case CURLE_SSL_CACERT_BADFILE:
        return wb_fail(err, WB_INVALID, "%s holds no certificates that can be read",
                       t->rest->ca_file);
    case CURLE_OUT_OF_MEMORY:
        return wb_fail(err, WB_LIMIT, "no memory for the request %s to %s", path, peer);
    default:
        return wb_fail(err, WB_PROTOCOL, "%s gave no usable HTTP answer to %s (%s)", peer, path,
                       curl_easy_strerror(rc));
    }
}

static int wait_some(struct wb_rest *r, const struct wb_cancel *cancel, int64_t left_ns)
{
    int64_t ms = (left_ns + WB_MS - 1) / WB_MS;
    struct curl_waitfd extra = {.fd = wb_cancel_fd(cancel), .events = CURL_WAIT_POLLIN};

    if (ms > 1000)
        ms = 1000;
    return curl_multi_poll(r->multi, &extra, extra.fd >= 0 ? 1 : 0, (int)ms, NULL) == CURLM_OK ? 0
                                                                                               : -1;
}

/* Runs the transfer in t to its end, the deadline or a cancel. */
static int drive(struct transfer *t, struct wb_err *err)
{
    struct wb_rest *r = t->rest;
    const struct wb_rest_request *q = t->request;
    int64_t deadline = wb_now_ns(NULL) + q->limit_ns;

    for (;;) {
        int running = 0, queued = 0;
        if (curl_multi_perform(r->multi, &running) != CURLM_OK)
            return wb_fail(err, WB_PROTOCOL, "the HTTP client library failed on %s", q->path);
        if (!running) {
            const CURLMsg *m = curl_multi_info_read(r->multi, &queued);
            return explain(t, m && m->msg == CURLMSG_DONE ? m->data.result : CURLE_RECV_ERROR, err);
        }
        if (wb_cancelled(q->cancel))
            return wb_fail(err, WB_CANCELLED, "cancelled while waiting for %s", where(r));
        int64_t left = deadline - wb_now_ns(NULL);
        if (left <= 0)
            return wb_fail(err, WB_TIMEOUT, "%s did not finish %s %s within %lld ms", where(r),
                           q->method ? q->method : "GET", q->path,
                           (long long)(q->limit_ns / WB_MS));
        if (wait_some(r, q->cancel, left) < 0)
            return wb_fail(err, WB_PROTOCOL, "the HTTP client library cannot wait for %s", q->path);
    }
}

/* Keeps a header value that fits; a longer one is none that we know. */
static void keep(char to[64], const char *value)
{
    if (value && strlen(value) < 64)
        memcpy(to, value, strlen(value) + 1);
}

int wb_rest_do(struct wb_rest *r, const struct wb_rest_request *request,
               struct wb_rest_answer *answer, struct wb_err *err)
{
    size_t max = request->answer_max ? request->answer_max : WB_REST_ANSWER_MAX;
    struct transfer t = {.rest = r, .request = request, .answer = answer, .err = err, .max = max};

    *answer = (struct wb_rest_answer){.body = WB_BUF_INIT(max)};
    int rc = check_request(request, err);
    if (rc < 0)
        return rc;
    WB_AUTO_FREE char *url = wb_strf("%s%s", r->base, request->path);
    struct curl_slist *headers = headers_of(request);
    set_options(&t, url, headers);
    if (curl_multi_add_handle(r->multi, r->easy) != CURLM_OK) {
        curl_slist_free_all(headers);
        return wb_fail(err, WB_PROTOCOL, "the HTTP client library refuses %s", request->path);
    }
    rc = drive(&t, err);
    long status = 0;
    const char *type = NULL;
    curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(r->easy, CURLINFO_CONTENT_TYPE, &type);
    answer->status = (int)status;
    keep(answer->content_type, type);
    struct curl_header *h = NULL;
    if (request->want &&
        curl_easy_header(r->easy, request->want, 0, CURLH_HEADER, -1, &h) == CURLHE_OK)
        keep(answer->wanted, h->value);
    curl_multi_remove_handle(r->multi, r->easy);
    curl_easy_setopt(r->easy, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
    return rc;
}

void wb_rest_answer_release(struct wb_rest_answer *a)
{
    wb_buf_release(&a->body);
}

void wb_rest_escape(struct wb_buf *out, const char *text)
{
    static const char hex[] = "0123456789ABCDEF";

    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
            strchr("-._~", c)) {
            wb_buf_addc(out, (char)c);
        } else {
            wb_buf_addc(out, '%');
            wb_buf_addc(out, hex[c >> 4]);
            wb_buf_addc(out, hex[c & 15]);
        }
    }
}

void wb_rest_add_query(struct wb_buf *path, const char *key, const char *value)
{
    wb_buf_addc(path, strchr(wb_buf_str(path), '?') ? '&' : '?');
    wb_rest_escape(path, key);
    wb_buf_addc(path, '=');
    wb_rest_escape(path, value);
}
