#include "server/http/daemon.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/units.h"
#include "server/http/watch.h"
#include "server/study/plan.h"

#define CONNECTIONS_KEPT 1000 /* beyond that the one that waits the longest makes room */
#define CONNECTIONS_MAX 1200
#define STREAMS_MAX 500
#define TOKEN_STREAMS_MAX 250         /* of them those of one token */
#define TIMEOUT_S 60                  /* without a byte in either direction */
#define REQUEST_WAIT_NS (30 * WB_SEC) /* for a whole request */
#define MEMORY_MAX (32u << 10)        /* of one connection: request line and headers */
#define HEADERS_MAX 100
#define HEADER_BYTES_MAX (16u << 10)
#define BODY_DROPPED_MAX (8u << 20)    /* of a body that is too large and is not told so at once */
#define ANSWERS_BYTES_MAX (256u << 20) /* of all answers that clients are still taking */
#define FILES_BYTES_MAX (16ULL << 30)  /* on the disk, of all exports that clients are taking */
#define STREAM_BLOCK (16u << 10)

struct wb_daemon {
    struct wb_daemon_spec spec;
    struct MHD_Daemon *mhd;
    struct wb_watch *watch;
    size_t answer_bytes; /* that clients are still taking; HTTP thread */
    uint64_t file_bytes; /* of files that were made for one answer each; the same */
    uint16_t port;
};

/* One request on its way. */
struct exchange {
    struct wb_daemon *daemon;
    struct MHD_Connection *connection;
    char *target; /* as it was sent */
    struct wb_request request;
    struct wb_answer answer;
    struct wb_work work;
    enum { FRESH, READING, ASKED, ANSWERED } state;
    size_t received;     /* bytes of the body */
    size_t answer_bytes; /* counted in the daemon's */
    uint64_t file_bytes; /* the same */
    struct wb_listener *listener;
};

/* ---- what comes in ---- */

/* Called first for each request, with the target before the library takes it apart. */
static void *on_target(void *cls, const char *target, struct MHD_Connection *connection)
{
    struct exchange *x = wb_calloc(1, sizeof(*x));

    x->daemon = cls;
    x->connection = connection;
    x->target = wb_strndup(target, strnlen(target, WB_HTTP_TARGET_MAX + 1));
    return x;
}

struct header_scan {
    struct wb_request *request;
    int hosts, lengths, codings, n;
    size_t bytes;
    bool chunked, damaged;
};

/* RFC 9110, 5.1: anything else may mean one thing to us and another to a proxy before us. */
static bool is_token(const char *s)
{
    static const char others[] = "!#$%&'*+-.^_`|~";

    for (const char *c = s; *c; c++)
        if (!((*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
              strchr(others, *c)))
            return false;
    return *s != '\0';
}

static bool has_control(const char *s)
{
    for (; *s; s++)
        if (((unsigned char)*s < 0x20 && *s != '\t') || *s == 0x7f)
            return true;
    return false;
}

static enum MHD_Result on_header(void *cls, enum MHD_ValueKind kind, const char *key,
                                 size_t key_len, const char *value, size_t len)
{
    struct header_scan *scan = cls;

    if (!key || strlen(key) != key_len || (value && strlen(value) != len)) /* a NUL inside */
        scan->damaged = true;
    else if (!is_token(key) || (value && has_control(value)))
        scan->damaged = true;
    scan->n++;
    scan->bytes += key_len + len;
    if (!key || !value)
        return MHD_YES;
    scan->hosts += !strcasecmp(key, "Host");
    scan->lengths += !strcasecmp(key, "Content-Length");
    if (!strcasecmp(key, "Transfer-Encoding")) {
        scan->codings++;
        scan->chunked = !strcasecmp(value, "chunked");
    }
    for (int h = 0; h < WB_HEADERS; h++) {
        char **slot = &scan->request->headers[h];

        if (strcasecmp(key, wb_header_name((enum wb_header)h)) != 0)
            continue;
        if (!*slot)
            *slot = wb_strdup(value);
        else if (h != WB_H_COOKIE && h != WB_H_ACCEPT && h != WB_H_IF_NONE_MATCH)
            scan->damaged = true; /* twice, where only one can count */
    }
    return MHD_YES;
}

/* Host without its port, in lower case, is one of our names. */
static bool is_our_host(const struct wb_service *s, const char *host)
{
    const char *end = host[0] == '[' ? strchr(host, ']') : NULL;
    size_t n = end ? (size_t)(end - host) + 1 : strcspn(host, ":");
    const char *port = host + n + (host[n] == ':');

    /* Nothing but a port may follow. */
    if ((host[n] && host[n] != ':') || port[strspn(port, "0123456789")])
        return false;
    for (size_t i = 0; i < s->hosts.n; i++)
        if (strlen(s->hosts.v[i]) == n && !strncasecmp(s->hosts.v[i], host, n))
            return true;
    return false;
}

/* The library ends texts at a NUL. Whether the head has bytes that are in nothing that was read of
 * it: more than its line, its headers and a space before each value. */
static bool has_hidden_bytes(struct exchange *x, const char *version,
                             const struct header_scan *scan)
{
    const union MHD_ConnectionInfo *i =
        MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    const size_t line = strlen(x->request.method) + strlen(x->target) + strlen(version) + 4;
    const size_t most = line + scan->bytes + 4 * (size_t)scan->n + 2;

    return i && strlen(x->target) <= WB_HTTP_TARGET_MAX && i->header_size > most;
}

/* What the library lets through and must not pass. Answers itself, then false. */
static bool check_headers(struct exchange *x, const char *version)
{
    struct wb_request *q = &x->request;
    struct header_scan scan = {.request = q};
    const char *why = NULL;
    struct wb_err err = WB_ERR_INIT;
    int status = 400;

    (void)MHD_get_connection_values_n(x->connection, MHD_HEADER_KIND, on_header, &scan);
    if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0) {
        why = "this server speaks HTTP/1.1 and HTTP/1.0";
        status = 505;
    } else if (has_hidden_bytes(x, version, &scan)) {
        why = "the head has a NUL, or more white space than it needs";
    } else if (scan.damaged)
        why = "a header has a name or a character that none may have, or stands twice";
    else if (scan.hosts != 1)
        why = "exactly one Host is needed";
    else if (scan.lengths && scan.codings)
        why = "Content-Length and Transfer-Encoding exclude each other";
    else if (scan.lengths > 1 || scan.codings > 1)
        why = "the length of the body stands twice";
    else if (scan.codings && !scan.chunked)
        why = "only the transfer encoding chunked is taken";
    if (!why && !is_our_host(x->daemon->spec.service, q->headers[WB_H_HOST])) {
        why = "this server is not known by that name: see --host of `weighbridge serve`";
        status = 421;
    }
    if (scan.n > HEADERS_MAX || scan.bytes > HEADER_BYTES_MAX) {
        why = "at most 100 headers with 16 KiB are taken";
        status = 431;
    }
    if (why) {
        wb_answer_problem(q, &x->answer, status, "bad-request", why, NULL);
        return false;
    }
    if (wb_request_target(q, x->target, &err) < 0) {
        wb_answer_problem(q, &x->answer, err.code == WB_LIMIT ? 414 : 400, "bad-request", err.root,
                          NULL);
        return false;
    }
    return true;
}

static void too_large(struct exchange *x)
{
    wb_answer_problem(&x->request, &x->answer, 413, "payload-too-large", "a body has at most 1 MiB",
                      NULL);
}

static bool body_fits(struct exchange *x)
{
    const char *length =
        MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, "Content-Length");
    int64_t n = 0;

    if (!length || wb_parse_int(length, 0, WB_HTTP_BODY_MAX, &n, NULL) == 0)
        return true;
    too_large(x);
    return false;
}

static struct wb_watched *watched(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *i =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return i ? i->socket_context : NULL;
}

/* ---- what goes out ---- */

static void add_common(struct MHD_Response *r, const struct exchange *x)
{
    static const char *const rows[][2] = {
        {"Content-Security-Policy",
         "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
         "connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Cache-Control", "no-cache, private"},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++)
        (void)MHD_add_response_header(r, rows[i][0], rows[i][1]);
    (void)MHD_add_response_header(r, "X-Request-Id", x->request.id);
    if (x->answer.type)
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, x->answer.type);
    for (size_t i = 0; i < x->answer.nheaders; i++)
        (void)MHD_add_response_header(r, x->answer.headers[i].name, x->answer.headers[i].value);
}

static ssize_t read_stream(void *cls, uint64_t pos, char *out, size_t n)
{
    ssize_t got = wb_listener_read(cls, out, n);

    (void)pos;
    return got < 0 ? MHD_CONTENT_READER_END_OF_STREAM : got;
}

static void sleep_connection(void *arg)
{
    MHD_suspend_connection(((struct exchange *)arg)->connection);
}

static void wake_connection(void *arg)
{
    MHD_resume_connection(((struct exchange *)arg)->connection);
}

static struct MHD_Response *stream_response(struct exchange *x)
{
    const struct wb_listener_spec spec = {.topics = x->answer.topics.v,
                                          .ntopics = x->answer.topics.n,
                                          .token = x->request.token.id,
                                          .last_id = x->answer.last_id,
                                          .on_empty = sleep_connection,
                                          .on_more = wake_connection,
                                          .arg = x};

    x->listener = wb_listener_new(x->daemon->spec.service->hub, &spec);
    if (!x->listener)
        return NULL;
    x->answer.type = "text/event-stream";
    return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream,
                                             x->listener, NULL);
}

/* Whether there is no memory, or no stream, left for this answer; it is replaced by a short one. */
static void bound_answer(struct exchange *x)
{
    struct wb_daemon *d = x->daemon;
    const char *why = NULL;

    if (x->answer.stream && wb_hub_listeners(d->spec.service->hub) >= STREAMS_MAX)
        why = "too many event streams are open";
    else if (x->answer.stream &&
             wb_hub_listeners_of(d->spec.service->hub, x->request.token.id) >= TOKEN_STREAMS_MAX)
        why = "too many event streams of this token are open: close some";
    else if (wb_answer_may_be_refused(&x->request, &x->answer) &&
             d->answer_bytes + x->answer.body.len > ANSWERS_BYTES_MAX)
        why = "too many large answers are being sent";
    else if (x->answer.file_is_own && d->file_bytes + x->answer.file_bytes > FILES_BYTES_MAX)
        why = "too many large exports are being sent";
    if (why) {
        wb_answer_release(&x->answer);
        wb_answer_header(&x->answer, "Retry-After", "5");
        wb_answer_problem(&x->request, &x->answer, 503, "temporary-reduced-capacity", why, NULL);
    }
    x->answer_bytes = x->answer.body.len;
    x->file_bytes = x->answer.file_is_own ? x->answer.file_bytes : 0;
    d->answer_bytes += x->answer_bytes;
    d->file_bytes += x->file_bytes;
}

static enum MHD_Result send_answer(struct exchange *x, bool close_after)
{
    struct MHD_Response *r = NULL;
    enum MHD_Result rc;

    x->state = ANSWERED;
    wb_watch_busy(x->daemon->watch, watched(x->connection));
    bound_answer(x);
    if (x->answer.stream && strcmp(x->request.method, "HEAD") != 0)
        r = stream_response(x);
    if (x->answer.has_file) {
        r = MHD_create_response_from_fd_at_offset64(x->answer.file_bytes, x->answer.fd,
                                                    x->answer.file_from);
        x->answer.has_file = !r; /* it is the library's now */
    }
    if (!r) {
        r = MHD_create_response_from_buffer(x->answer.body.len, x->answer.body.data,
                                            MHD_RESPMEM_MUST_FREE);
        if (r)
            x->answer.body = (struct wb_buf)WB_BUF_INIT(0); /* it is the library's now */
    }
    if (!r)
        return MHD_NO;
    add_common(r, x);
    if (close_after)
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
    rc = MHD_queue_response(x->connection, (unsigned)x->answer.status, r);
    MHD_destroy_response(r);
    return rc;
}

static void on_done(void *arg)
{
    struct exchange *x = arg;

    MHD_resume_connection(x->connection);
}

/* The whole request is there: the pool answers it while the connection sleeps. */
static enum MHD_Result ask(struct exchange *x)
{
    x->state = ASKED;
    wb_watch_busy(x->daemon->watch, watched(x->connection));
    x->work =
        (struct wb_work){.request = &x->request, .answer = &x->answer, .done = on_done, .arg = x};
    MHD_suspend_connection(x->connection);
    if (wb_pool_add(x->daemon->spec.pool, &x->work))
        return MHD_YES;
    MHD_resume_connection(x->connection);
    wb_answer_header(&x->answer, "Retry-After", "1");
    wb_answer_problem(&x->request, &x->answer, 503, "temporary-reduced-capacity",
                      "too many requests wait already", NULL);
    return MHD_YES;
}

/* The library can answer before the body or behind it, not within: one that turns out to be too
 * large is dropped to its end, or the connection with it. */
static enum MHD_Result read_body(struct exchange *x, const char *data, size_t *n)
{
    if (*n == 0 && !x->request.body.failed)
        return ask(x);
    if (*n == 0) {
        too_large(x);
        return send_answer(x, true);
    }
    x->received += *n;
    wb_buf_add(&x->request.body, data, *n);
    if (x->request.body.failed)
        x->request.body.len = 0; /* what there is of it is of no use */
    *n = 0;
    return x->received > BODY_DROPPED_MAX ? MHD_NO : MHD_YES;
}

static void note_address(struct exchange *x)
{
    const union MHD_ConnectionInfo *i =
        MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *a = i ? i->client_addr : NULL;
    const void *ip = NULL;

    if (a && a->sa_family == AF_INET)
        ip = &((const struct sockaddr_in *)(const void *)a)->sin_addr;
    else if (a && a->sa_family == AF_INET6)
        ip = &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
    if (!ip || !inet_ntop(a->sa_family, ip, x->request.address, sizeof(x->request.address)))
        x->request.address[0] = '\0';
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *n, void **state)
{
    struct exchange *x = *state;
    WB_AUTO_FREE char *id = NULL;

    (void)cls, (void)url;
    if (!x)
        return MHD_NO;
    x->connection = connection;
    switch (x->state) {
    case FRESH:
        id = wb_new_id("");
        memcpy(x->request.id, id, sizeof(x->request.id));
        x->request.method = wb_strndup(method, strnlen(method, 32));
        x->request.body = (struct wb_buf)WB_BUF_INIT(WB_HTTP_BODY_MAX);
        note_address(x);
        if (!check_headers(x, version) || !body_fits(x))
            return send_answer(x, true);
        x->state = READING;
        return MHD_YES;
    case READING:
        return read_body(x, data, n);
    case ASKED:
        return send_answer(x, false);
    case ANSWERED:
    default:
        return MHD_YES;
    }
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode why)
{
    struct exchange *x = *state;

    (void)cls, (void)connection, (void)why;
    if (!x)
        return;
    *state = NULL;
    x->daemon->answer_bytes -= x->answer_bytes;
    x->daemon->file_bytes -= x->file_bytes;
    wb_watch_idle(x->daemon->watch, watched(connection), wb_now_ns(NULL));
    wb_listener_free(x->listener);
    wb_request_release(&x->request);
    wb_answer_release(&x->answer);
    free(x->target);
    free(x);
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct wb_daemon *d = cls;
    const union MHD_ConnectionInfo *i;

    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        wb_watch_remove(d->watch, *context);
        *context = NULL;
        return;
    }
    i = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    *context = i ? wb_watch_add(d->watch, i->connect_fd, wb_now_ns(NULL)) : NULL;
}

/* ---- start and stop ---- */

/* Bytes of the socket address, 0 when the text is none. */
static socklen_t read_address(const char *text, uint16_t port, struct sockaddr_storage *out)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;

    memset(out, 0, sizeof(*out));
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        return sizeof(*v4);
    }
    if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        return sizeof(*v6);
    }
    return 0;
}

/* The library's own bind reports no reason, so the socket is made here. */
static int listen_on(const struct wb_daemon_spec *spec, int *out, struct wb_err *err)
{
    struct sockaddr_storage address;
    socklen_t n = read_address(spec->address, spec->port, &address);
    WB_AUTO_CLOSE int fd = -1;
    int one = 1;

    if (n == 0)
        return wb_fail(err, WB_INVALID, "'%.60s' is no address: 127.0.0.1, ::1, 0.0.0.0, ...",
                       spec->address);
    fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return wb_fail_sys(err, errno, "cannot make a socket");
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (address.ss_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
    if (bind(fd, (struct sockaddr *)&address, n) < 0 || listen(fd, 511) < 0)
        return errno == EADDRINUSE
                   ? wb_fail(err, WB_CONFLICT,
                             "port %u of %s is taken: another server? --port names another",
                             spec->port, spec->address)
                   : wb_fail_sys(err, errno, "cannot listen on %s port %u", spec->address,
                                 spec->port);
    *out = fd;
    fd = -1; /* the caller's now */
    return 0;
}

static uint16_t port_of(int fd)
{
    struct sockaddr_storage a = {0};
    socklen_t n = sizeof(a);

    if (getsockname(fd, (struct sockaddr *)&a, &n) < 0)
        return 0;
    return ntohs(a.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&a)->sin6_port
                                         : ((struct sockaddr_in *)&a)->sin_port);
}

int wb_daemon_start(const struct wb_daemon_spec *spec, struct wb_daemon **out, struct wb_err *err)
{
    struct wb_daemon *d = wb_calloc(1, sizeof(*d));
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, NULL},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, NULL},
        {MHD_OPTION_END, 0, NULL},
    };
    int fd = -1, rc;

    d->spec = *spec;
    rc = listen_on(spec, &fd, err);
    if (rc < 0) {
        free(d);
        return rc;
    }
    if (spec->certificate) {
        flags |= MHD_USE_TLS;
        tls[0].ptr_value = wb_strdup(spec->certificate);
        tls[1].ptr_value = wb_strdup(spec->key);
    } else {
        tls[0].option = MHD_OPTION_END;
    }
    d->port = port_of(fd);
    d->watch = wb_watch_new(CONNECTIONS_KEPT, REQUEST_WAIT_NS);
    d->mhd = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, d, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, d, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TIMEOUT_S,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_MAX, MHD_OPTION_URI_LOG_CALLBACK,
        on_target, d, MHD_OPTION_NOTIFY_COMPLETED, on_completed, d, MHD_OPTION_ARRAY, tls,
        MHD_OPTION_END);
    free(tls[0].ptr_value);
    free(tls[1].ptr_value);
    if (!d->mhd) {
        (void)close(fd);
        wb_watch_free(d->watch);
        free(d);
        return wb_fail(err, WB_IO, "the HTTP server could not be started%s",
                       spec->certificate ? ": is the certificate, with its key, a PEM text?" : "");
    }
    *out = d;
    return 0;
}

uint16_t wb_daemon_port(const struct wb_daemon *d)
{
    return d->port;
}

void wb_daemon_tick(struct wb_daemon *d, int64_t now_ns)
{
    wb_watch_tick(d->watch, now_ns);
}

void wb_daemon_stop(struct wb_daemon *d)
{
    if (!d)
        return;
    MHD_stop_daemon(d->mhd);
    wb_watch_free(d->watch);
    free(d);
}
