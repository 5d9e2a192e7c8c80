#include "server/cli/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/units.h"
#include "server/cli/config.h"

#define TOKEN_MAX 512u
#define ANSWER_MAX (64u << 20)
#define LIMIT_NS (120 * WB_SEC)
#define PATIENCE_NS (10 * WB_SEC) /* with a server that was there a moment ago */
#define FIRST_NS (1 * WB_SEC)     /* with one that was never */
#define LIMITED_NS (60 * WB_SEC)  /* with one that says "later" */
#define PAUSE_NS (100 * WB_MS)
#define PAUSE_MAX_NS (2 * WB_SEC)
#define STREAM_NS (60 * WB_SEC) /* one request of the event stream; the next goes on after it */

struct wb_remote {
    struct wb_rest *rest, *stream; /* stream: of events, while others are asked for; or NULL */
    struct wb_cancel *cancel;
    char *url;
    char *token; /* the Authorization header, or NULL */
    bool answered;
    int status; /* of the last failure, 0: there was no answer */
    wb_json *problem;
};

/* ---- the token ---- */

static int check_token(const char *token, const char *from, struct wb_err *err)
{
    size_t n = strlen(token);

    if (n == 0)
        return wb_fail(err, WB_INVALID, "%s holds no token", from);
    for (size_t i = 0; i < n; i++)
        if (token[i] <= ' ' || token[i] > '~')
            return wb_fail(err, WB_INVALID,
                           "%s holds no token: a token is one line, wb_ and letters", from);
    return 0;
}

static int read_token_file(const char *path, char **out, struct wb_err *err)
{
    WB_AUTO_FREE char *text = NULL;
    struct stat st;
    size_t n = 0;
    int rc;

    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return wb_fail(err, WB_INVALID, "the token file %s is no file", path);
    if (stat(path, &st) == 0 && (st.st_mode & 077))
        return wb_fail(err, WB_INVALID,
                       "others may read the token file %s (mode %03o): chmod 600 it, and take the "
                       "token back if they have",
                       path, (unsigned)st.st_mode & 0777);
    rc = wb_file_read(path, TOKEN_MAX, &text, &n, err);
    if (rc < 0)
        return wb_wrap(err, "the token file");
    while (n && strchr(" \t\r\n", text[n - 1]))
        text[--n] = '\0';
    rc = strlen(text) == n ? check_token(text, path, err)
                           : wb_fail(err, WB_INVALID, "the token file %s is no text", path);
    if (rc == 0)
        *out = wb_strf("Authorization: Bearer %s", text);
    explicit_bzero(text, n);
    return rc;
}

static const char *environment(const char *name)
{
    const char *v = getenv(name);

    return v && *v ? v : NULL;
}

static int find_token(const struct wb_cli *cli, char **out, struct wb_err *err)
{
    const char *text = environment("WB_TOKEN");
    int rc;

    if ((text || cli->token_file) && !cli->token_named &&
        wb_config_found(cli->config, WB_SET_SERVER))
        return wb_fail(err, WB_INVALID,
                       "no token goes to %s, which %s names: say --server %s once you trust it, or "
                       "name it in your own settings",
                       cli->server, wb_config_from(cli->config, WB_SET_SERVER), cli->server);
    if (text && !cli->token_named) {
        rc = check_token(text, "WB_TOKEN", err);
        if (rc == 0)
            *out = wb_strf("Authorization: Bearer %s", text);
        return rc;
    }
    return cli->token_file ? read_token_file(cli->token_file, out, err) : 0;
}

/* ---- the connection ---- */

static bool is_loopback(const char *host)
{
    size_t n = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/");

    return (n == 9 && !strncasecmp(host, "localhost", 9)) ||
           (n == 5 && !strncmp(host, "[::1]", 5)) ||
           (!strncmp(host, "127.", 4) && strspn(host, "0123456789.") == n);
}

static int check_url(const char *url, struct wb_err *err)
{
    bool plain = !strncmp(url, "http://", 7), tls = !strncmp(url, "https://", 8);
    const char *host = url + (plain ? 7 : 8);

    if ((!plain && !tls) || !*host || *host == '/')
        return wb_fail(err, WB_INVALID,
                       "the server '%.100s' is no address: http://HOST:PORT or https://HOST:PORT",
                       url);
    for (const char *c = url; *c; c++)
        if (*c <= ' ' || *c > '~' || strchr("@?#\\", *c))
            return wb_fail(err, WB_INVALID,
                           "the server '%.100s' is no address: no user, query or blank belongs in "
                           "it (the token comes from a file or WB_TOKEN)",
                           url);
    return 0;
}

static int open_rest(const struct wb_remote *r, struct wb_rest **out, struct wb_err *err)
{
    const struct wb_rest_options o = {.base = r->url,
                                      .ca_file = environment("WB_CA"),
                                      .direct = is_loopback(strstr(r->url, "://") + 3)};

    return wb_rest_open(&o, out, err);
}

int wb_remote_open(const struct wb_cli *cli, struct wb_remote **out, struct wb_err *err)
{
    const char *host = strstr(cli->server, "://");
    bool near = host && is_loopback(host + 3);
    struct wb_remote *r;
    size_t n = strlen(cli->server);
    int rc = check_url(cli->server, err);

    if (rc < 0)
        return rc;
    r = wb_calloc(1, sizeof(*r));
    while (n && cli->server[n - 1] == '/')
        n--;
    r->url = wb_strndup(cli->server, n);
    r->cancel = wb_cancel_new();
    rc = find_token(cli, &r->token, err);
    if (rc == 0)
        rc = open_rest(r, &r->rest, err);
    if (rc < 0) {
        wb_remote_free(r);
        return rc;
    }
    if (r->token && !near && !strncmp(r->url, "http://", 7))
        (void)fprintf(stderr,
                      "weighbridge: warning: the token goes to %s unencrypted; a server with "
                      "--tls-certificate takes https\n",
                      r->url);
    *out = r;
    return 0;
}

void wb_remote_free(struct wb_remote *r)
{
    if (!r)
        return;
    wb_rest_free(r->rest);
    wb_rest_free(r->stream);
    wb_cancel_free(r->cancel);
    free(r->url);
    if (r->token)
        explicit_bzero(r->token, strlen(r->token));
    free(r->token);
    wb_json_free(r->problem);
    free(r);
}

const char *wb_remote_url(const struct wb_remote *r)
{
    return r->url;
}

int wb_remote_catch(struct wb_remote *r, struct wb_err *err)
{
    return wb_cancel_on_signals(r->cancel, err);
}

const struct wb_cancel *wb_remote_cancel(const struct wb_remote *r)
{
    return r->cancel;
}

const wb_json *wb_remote_problem(const struct wb_remote *r)
{
    return r ? r->problem : NULL;
}

/* ---- failures ---- */

static enum wb_code code_of(int status)
{
    switch (status) {
    case 404:
    case 410:
        return WB_NOT_FOUND;
    case 409:
    case 412:
    case 428:
        return WB_CONFLICT;
    case 429:
    case 502:
    case 503:
    case 504:
        return WB_UNAVAILABLE;
    default:
        return status >= 400 && status < 500 ? WB_INVALID : WB_PROTOCOL;
    }
}

/* The server's words as an error of ours. */
static int take_problem(struct wb_remote *r, const struct wb_remote_call *c,
                        const struct wb_rest_answer *a, struct wb_err *err)
{
    struct wb_buf text = WB_BUF_INIT(WB_ERR_TEXT_MAX - 100);
    const wb_json *errors;
    int rc;

    r->status = a->status;
    if (!strncmp(a->content_type, "application/problem+json", 24))
        WB_IGNORE(wb_json_parse(wb_buf_str(&a->body), a->body.len, &r->problem, NULL));
    if (!r->problem)
        return wb_fail(err, code_of(a->status), "%s answers %s %s with status %d%s", r->url,
                       c->method, c->path, a->status,
                       a->status / 100 == 3 ? ": it sends on to another address, which is not "
                                              "followed; name that one"
                                            : " and says no more");
    wb_buf_adds(&text, wb_json_str_or(r->problem, "detail",
                                      wb_json_str_or(r->problem, "title", "it says no more")));
    errors = wb_json_get(r->problem, "errors");
    for (size_t i = 0; i < wb_json_len(errors); i++) {
        const wb_json *e = wb_json_at(errors, i);

        wb_buf_addf(&text, "; %s: %s", wb_json_str_or(e, "pointer", ""),
                    wb_json_str_or(e, "message", ""));
    }
    rc = wb_fail(err, code_of(a->status), "%s [request %s]", wb_buf_str(&text),
                 wb_json_str_or(r->problem, "request_id", "?"));
    wb_buf_release(&text);
    return rc;
}

int wb_remote_fail(const struct wb_cli *cli, const struct wb_remote *r, const struct wb_err *err)
{
    const char *type = wb_json_str_or(r ? r->problem : NULL, "type", NULL);
    const char *slash = type ? strrchr(type, '/') : NULL;
    char text[2 * WB_ERR_TEXT_MAX];
    enum wb_exit rc;

    if (!r || !r->status) {
        if (err->code != WB_UNAVAILABLE && err->code != WB_TIMEOUT)
            return wb_cli_fail(cli, err);
        rc = WB_EXIT_UNREACHABLE;
    } else if (r->status == 401 || r->status == 403) {
        rc = WB_EXIT_REFUSED;
    } else if (r->status == 429) {
        rc = WB_EXIT_LIMITED;
    } else if (err->code == WB_UNAVAILABLE) {
        rc = WB_EXIT_UNREACHABLE;
    } else if (r->status == 500) {
        rc = WB_EXIT_UNEXPECTED;
    } else {
        return wb_cli_fail(cli, err);
    }
    (void)wb_err_text(err, text, sizeof(text));
    return wb_cli_say(cli, rc, slash ? slash + 1 : wb_code_name(err->code), text);
}

/* ---- requests ---- */

static bool is_harmless(const struct wb_remote_call *c)
{
    return c->key || !strcmp(c->method, "GET") || !strcmp(c->method, "HEAD");
}

static int once(struct wb_remote *r, const struct wb_remote_call *c, const char *text, size_t n,
                struct wb_rest_answer *a, struct wb_err *err)
{
    struct wb_strv headers = {0};
    struct wb_rest_request q = {.method = c->method,
                                .path = c->path,
                                .body = text,
                                .body_len = n,
                                .answer_max = c->answer_max ? c->answer_max : ANSWER_MAX,
                                .limit_ns = LIMIT_NS,
                                .cancel = r->cancel,
                                .want = "Retry-After"};
    int rc;

    if (r->token)
        wb_strv_add(&headers, r->token);
    if (c->key)
        wb_strv_addf(&headers, "Idempotency-Key: %s", c->key);
    if (c->range)
        wb_strv_addf(&headers, "Range: %s", c->range);
    if (c->if_match)
        wb_strv_addf(&headers, "If-Match: %s", c->if_match);
    q.header = (const char *const *)headers.v;
    rc = wb_rest_do(r->rest, &q, a, err);
    for (size_t i = 0; i < headers.n; i++)
        explicit_bzero(headers.v[i], strlen(headers.v[i]));
    wb_strv_release(&headers);
    return rc;
}

/* What is waited before another try; 0: there is none. began: of the first. */
static int64_t pause_of(const struct wb_remote *r, const struct wb_remote_call *c,
                        const struct wb_rest_answer *a, int rc, int64_t began, int tries)
{
    int64_t spent = wb_now_ns(NULL) - began, pause = PAUSE_NS << (tries < 6 ? tries : 6), after = 0;
    int64_t most = rc == 0 && a->status == 429 ? LIMITED_NS : r->answered ? PATIENCE_NS : FIRST_NS;

    if (rc == 0 && a->status != 429 && a->status != 502 && a->status != 503 && a->status != 504)
        return 0;
    if (rc < 0 && rc != -WB_UNAVAILABLE && rc != -WB_PROTOCOL)
        return 0;
    /* What a limit refuses is not done; whatever else happened may have been, 503 among it: a
     * proxy answers so, too. */
    if (!is_harmless(c) && !(rc == 0 && a->status == 429))
        return 0;
    if (rc == 0 && wb_parse_int(a->wanted, 1, 3600, &after, NULL) == 0)
        pause = after * WB_SEC;
    else if (pause > PAUSE_MAX_NS)
        pause = PAUSE_MAX_NS;
    return spent + pause <= most ? pause : 0;
}

int wb_remote_send(struct wb_remote *r, const struct wb_remote_call *c, struct wb_buf *body,
                   struct wb_err *err)
{
    struct wb_buf text = WB_BUF_INIT(ANSWER_MAX);
    int64_t began = wb_now_ns(NULL);
    int rc = 0;

    if (c->body)
        wb_json_line(c->body, &text);
    else if (c->text)
        wb_buf_adds(&text, c->text);
    wb_json_free(WB_STEAL(r->problem));
    r->status = 0;
    for (int tries = 0; rc == 0; tries++) {
        bool has_body = c->body || c->text;
        struct wb_err why = WB_ERR_INIT;
        struct wb_rest_answer a;
        int got = once(r, c, has_body ? wb_buf_str(&text) : NULL, text.len, &a, &why);
        int64_t pause = pause_of(r, c, &a, got, began, tries);

        if (pause) {
            wb_rest_answer_release(&a);
            rc = wb_wait(r->cancel, -1, pause, err);
            continue;
        }
        if (got < 0) {
            *err = why;
            rc = got;
        } else if (a.status < 200 || a.status > 299) {
            r->answered = true;
            rc = take_problem(r, c, &a, err);
        } else {
            r->answered = true;
            *body = a.body;
            a.body = (struct wb_buf)WB_BUF_INIT(0);
        }
        wb_rest_answer_release(&a);
        break;
    }
    wb_buf_release(&text);
    return rc;
}

int wb_remote_ask(struct wb_remote *r, const struct wb_remote_call *c, wb_json **out,
                  struct wb_err *err)
{
    struct wb_buf body = WB_BUF_INIT(0);
    int rc = wb_remote_send(r, c, &body, err);

    if (rc == 0 && wb_json_parse(wb_buf_str(&body), body.len, out, err) < 0) {
        err->code = WB_PROTOCOL;
        rc = wb_wrap(err, "the answer of %s to %s %s", r->url, c->method, c->path);
    }
    wb_buf_release(&body);
    return rc;
}

int wb_remote_get(struct wb_remote *r, wb_json **out, struct wb_err *err, const char *path, ...)
{
    WB_AUTO_FREE char *text = NULL;
    struct wb_remote_call c = {.method = "GET"};
    va_list ap;

    va_start(ap, path);
    text = wb_vstrf(path, ap);
    va_end(ap);
    c.path = text;
    return wb_remote_ask(r, &c, out, err);
}

/* ---- problems of a study ---- */

/* The node of a JSON pointer, or the last one on its way that is there. */
static const struct wb_node *node_at(const struct wb_node *root, const char *pointer)
{
    const struct wb_node *n = root;

    while (n && *pointer == '/') {
        size_t len = strcspn(++pointer, "/");
        WB_AUTO_FREE char *key = wb_strndup(pointer, len);
        const struct wb_node *child = NULL;
        int64_t index = 0;
        char *to = key;

        for (const char *c = key; *c; c++) /* RFC 6901: ~1 is /, ~0 is ~ */
            *to++ = c[0] == '~' && (c[1] == '0' || c[1] == '1') ? "~/"[*++c - '0'] : *c;
        *to = '\0';
        if (n->kind == WB_NODE_MAP)
            child = wb_node_get(n, key);
        else if (n->kind == WB_NODE_LIST && n->n &&
                 wb_parse_int(key, 0, (int64_t)n->n - 1, &index, NULL) == 0)
            child = n->items[index];
        if (!child)
            break;
        n = child;
        pointer += len;
    }
    return n;
}

void wb_remote_study_problems(const wb_json *problem, const char *text, struct wb_problems *p)
{
    const wb_json *errors = wb_json_get(problem, "errors");
    struct wb_node *tree = NULL;

    WB_IGNORE(wb_yaml_parse(text, strlen(text), &tree, NULL)); /* then lines are not known */
    for (size_t i = 0; i < wb_json_len(errors); i++) {
        const wb_json *e = wb_json_at(errors, i);
        const char *pointer = wb_json_str_or(e, "pointer", "");
        size_t at = p->n;

        wb_problem(p, tree ? node_at(tree, pointer) : NULL, "server", "%s",
                   wb_json_str_or(e, "message", ""));
        if (p->n == at)
            continue; /* beyond the bound, counted */
        if (!p->v[at].line)
            p->v[at].line = (int)wb_json_int_or(e, "line", 0);
        free(p->v[at].pointer);
        p->v[at].pointer = wb_strdup(pointer);
    }
    wb_node_free(tree);
}

/* ---- events ---- */

struct stream {
    struct wb_sse sse;
    const struct wb_remote_follow *f;
    bool ended, heard;
};

static int on_data(void *arg, const void *data, size_t n, struct wb_err *err)
{
    struct stream *s = arg;
    int rc = 0;

    /* The server has its place for us: what is asked for now and what it tells overlap. */
    if (!s->heard)
        rc = s->f->again(s->f->arg, err);
    s->heard = true;
    if (rc == 0)
        rc = wb_sse_feed(&s->sse, data, n, s->f->event, s->f->arg, err);
    s->ended |= rc > 0;
    return rc > 0 ? wb_fail(err, WB_CANCELLED, "seen enough") : rc;
}

/* One request of the stream. 1: it was said that this is enough. */
static int listen_once(struct wb_remote *r, struct stream *s, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("/api/v1/events?%s", s->f->topics);
    WB_AUTO_FREE char *last = wb_strf("Last-Event-ID: %s", s->sse.id);
    const char *headers[] = {"Accept: text/event-stream", r->token, *s->sse.id ? last : NULL, NULL};
    struct wb_rest_request q = {.method = "GET",
                                .path = path,
                                .header = headers,
                                .data = on_data,
                                .data_arg = s,
                                .limit_ns = STREAM_NS,
                                .cancel = r->cancel};
    const struct wb_remote_call c = {.method = "GET", .path = path};
    struct wb_rest_answer a;
    int rc;

    if (!r->token) {
        headers[1] = headers[2];
        headers[2] = NULL;
    }
    rc = wb_rest_do(r->stream, &q, &a, err);
    if (s->ended)
        rc = 1;
    else if (rc == 0 && a.status != 200)
        rc = take_problem(r, &c, &a, err);
    else if (rc == -WB_TIMEOUT)
        rc = 0; /* this request has been open long enough */
    wb_rest_answer_release(&a);
    return rc;
}

int wb_remote_events(struct wb_remote *r, const struct wb_remote_follow *f, struct wb_err *err)
{
    struct stream s = {.f = f};
    int64_t lost = 0; /* since when nothing came */
    int rc = r->stream ? 0 : open_rest(r, &r->stream, err);

    wb_sse_init(&s.sse);
    while (rc == 0) {
        struct wb_err why = WB_ERR_INIT;

        s.heard = false;
        wb_json_free(WB_STEAL(r->problem));
        r->status = 0;
        rc = listen_once(r, &s, &why);
        wb_buf_clear(&s.sse.line); /* of an event that was cut off: it comes again */
        wb_buf_clear(&s.sse.data);
        if (s.heard || rc == 0)
            lost = 0;
        if (rc == -WB_UNAVAILABLE || rc == -WB_PROTOCOL) {
            lost = lost ? lost : wb_now_ns(NULL);
            if (wb_now_ns(NULL) - lost < f->patience_ns)
                rc = wb_wait(r->cancel, -1, 500 * WB_MS, &why);
        }
        if (rc < 0)
            *err = why;
    }
    wb_sse_release(&s.sse);
    return rc > 0 ? 0 : rc;
}
