#include "runners/load/protocols/cql_session.h"

#include "server/base/clock.h"
#include "server/base/mem.h"

#define TIMEOUT (10 * WB_SEC) /* a schema change takes seconds on a busy server */
#define CONNECT_TIMEOUT (5 * WB_SEC)
#define READ_SIZE 65536
#define REQUEST_MAX (1u << 20)

static int keep_answer(void *arg, const struct wb_cql_envelope *e)
{
    struct wb_cql_session *s = arg;

    if (e->stream < 0) /* an event that nobody asked for */
        return 0;
    if (s->answered) {
        s->reader.why = "an answer to nothing that was asked";
        return -1;
    }
    wb_buf_clear(&s->body);
    wb_buf_add(&s->body, e->body, e->n);
    s->answer = *e;
    s->answer.body = wb_buf_str(&s->body);
    s->answered = true;
    return 0;
}

static void set_deadline(struct wb_cql_session *s, int64_t ns)
{
    int64_t at = wb_now_ns(NULL) + ns;

    s->wire.deadline = s->end_ns > 0 && s->end_ns < at ? s->end_ns : at;
}

int wb_cql_ask(struct wb_cql_session *s, struct wb_err *err)
{
    WB_AUTO_FREE char *data = wb_calloc(READ_SIZE, 1);
    int rc = wb_buf_check(&s->request, "a question to the server", err);

    if (rc < 0)
        return rc;
    wb_buf_clear(&s->out);
    wb_cql_wrap(&s->reader, &s->request, &s->out);
    wb_buf_clear(&s->request);
    s->answered = false;
    set_deadline(s, TIMEOUT);
    rc = wb_wire_send(&s->wire, s->out.data, s->out.len, err);
    while (rc == 0 && !s->answered) {
        size_t n = 0;
        rc = wb_wire_recv(&s->wire, data, READ_SIZE, &n, err);
        if (rc == 0 && wb_cql_read(&s->reader, data, n, keep_answer, s) < 0)
            rc =
                wb_fail(err, WB_PROTOCOL, "%s does not speak CQL: %s", s->wire.name, s->reader.why);
    }
    return rc;
}

int wb_cql_query(struct wb_cql_session *s, const char *text, struct wb_err *err)
{
    int rc;

    wb_cql_put_query(&s->request, s->reader.version, 0, text, 1);
    rc = wb_cql_ask(s, err);
    if (rc < 0)
        return rc;
    if (s->answer.opcode != WB_CQL_RESULT) {
        rc = wb_cql_fail(err, WB_INVALID, &s->answer);
        return wb_wrap(err, "%s: %s", s->wire.name, text);
    }
    return 0;
}

/* OPTIONS, for what the server can compress. */
static int check_supported(struct wb_cql_session *s, const struct wb_cql_hello *h,
                           struct wb_err *err)
{
    int rc;

    wb_cql_put_options(&s->request, h->version, 0);
    rc = wb_cql_ask(s, err);
    if (rc < 0 || s->answer.opcode == WB_CQL_ERROR)
        return rc; /* an error: the version, which is looked at by the caller */
    if (s->answer.opcode != WB_CQL_SUPPORTED)
        return wb_fail(err, WB_PROTOCOL, "%s does not speak CQL: it answered OPTIONS with 0x%02x",
                       s->wire.name, s->answer.opcode);
    if (h->lz4 && !wb_cql_supports(&s->answer, "COMPRESSION", "lz4"))
        return wb_fail(err, WB_UNSUPPORTED, "%s cannot compress with lz4", s->wire.name);
    return 0;
}

static int say_hello(struct wb_cql_session *s, const struct wb_cql_hello *h, struct wb_err *err)
{
    int rc;

    wb_cql_put_startup(&s->request, h, 0);
    do {
        rc = wb_cql_ask(s, err);
        if (rc < 0)
            return rc;
        s->reader.framed = h->version >= 5; /* from the answer to STARTUP on */
        rc = wb_cql_hello_take(h, &s->answer, &s->request, err);
    } while (rc == 0);
    return rc < 0 ? rc : 0;
}

static int begin(struct wb_cql_session *s, const struct wb_cql_where *at,
                 const struct wb_cql_hello *h, struct wb_err *err)
{
    int64_t now = wb_now_ns(NULL), end = at->end_ns, limit = now + CONNECT_TIMEOUT;

    wb_cql_session_close(s);
    s->end_ns = end;
    s->request = s->out = (struct wb_buf)WB_BUF_INIT(REQUEST_MAX);
    s->body = (struct wb_buf)WB_BUF_INIT(WB_CQL_BODY_MAX);
    wb_cql_reader_init(&s->reader, h->version, h->lz4);
    return wb_wire_open(&s->wire, at->name, at->addr, at->len, at->tls, at->cancel,
                        end > 0 && end < limit ? end : limit, err);
}

int wb_cql_session_open(struct wb_cql_session *s, const struct wb_cql_where *at,
                        struct wb_cql_hello *h, bool lower, struct wb_err *err)
{
    for (;;) {
        struct wb_cql_error x;
        int rc = begin(s, at, h, err);
        if (rc == 0)
            rc = check_supported(s, h, err);
        if (rc == 0 && wb_cql_take_error(&s->answer, &x) && x.code == WB_CQL_CODE_PROTOCOL) {
            if (lower && h->version > WB_CQL_OLDEST) {
                h->version--;
                continue;
            }
            rc = wb_cql_fail(err, WB_UNSUPPORTED, &s->answer);
            rc = wb_wrap(err, "%s does not speak version %u of the protocol", at->name, h->version);
        }
        if (rc == 0 && (rc = say_hello(s, h, err)) < 0)
            rc = wb_wrap(err, "%s", at->name);
        return rc;
    }
}

void wb_cql_session_close(struct wb_cql_session *s)
{
    wb_wire_close(&s->wire);
    wb_cql_reader_release(&s->reader);
    wb_buf_release(&s->request);
    wb_buf_release(&s->out);
    wb_buf_release(&s->body);
    *s = (struct wb_cql_session)WB_CQL_SESSION_INIT;
}
