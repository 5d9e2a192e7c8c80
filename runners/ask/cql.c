#include "runners/ask/cql.h"

#include <arpa/inet.h>
#include <string.h>

#include "server/base/mem.h"

#define REQUEST_VERSION 0x04
#define ANSWER_VERSION 0x84
#define CONSISTENCY_ONE 1
#define FLAG_TRACING 0x02
#define FLAG_PAYLOAD 0x04
#define FLAG_WARNING 0x08
#define META_GLOBAL 0x01
#define META_MORE 0x02
#define META_NONE 0x04
#define RESULT_ROWS 2
#define COLUMNS_MAX 256
#define NODES_MAX 2048
#define DEPTH_MAX 8

/* The codes of errors that say "not now": overloaded, bootstrapping, unavailable, time-outs. */
static bool is_passing(uint32_t code)
{
    return code >= 0x1000 && code <= 0x1300;
}

/* ---- requests ---- */

static void put16(struct wb_buf *b, unsigned v)
{
    unsigned char d[2] = {(unsigned char)(v >> 8), (unsigned char)v};

    wb_buf_add(b, d, sizeof(d));
}

static void put32(struct wb_buf *b, uint32_t v)
{
    unsigned char d[4] = {(unsigned char)(v >> 24), (unsigned char)(v >> 16),
                          (unsigned char)(v >> 8), (unsigned char)v};

    wb_buf_add(b, d, sizeof(d));
}

static void put_text(struct wb_buf *b, const char *s)
{
    put16(b, (unsigned)strlen(s));
    wb_buf_adds(b, s);
}

void wb_cql_request(enum wb_cql_opcode opcode, const char *query, struct wb_buf *out)
{
    const unsigned char head[5] = {REQUEST_VERSION, 0, 0, 0, (unsigned char)opcode};
    struct wb_buf body = WB_BUF_INIT(WB_CQL_QUERY_MAX + 64);

    if (opcode == WB_CQL_STARTUP) {
        put16(&body, 1);
        put_text(&body, "CQL_VERSION");
        put_text(&body, "3.0.0");
    } else if (opcode == WB_CQL_QUERY) {
        put32(&body, (uint32_t)strlen(query));
        wb_buf_adds(&body, query);
        put16(&body, CONSISTENCY_ONE);
        wb_buf_addc(&body, 0); /* no values, no paging: the whole answer at once */
    }
    wb_buf_add(out, head, sizeof(head));
    put32(out, (uint32_t)body.len);
    wb_buf_add(out, wb_buf_str(&body), body.len);
    out->failed = out->failed || body.failed;
    wb_buf_release(&body);
}

/* ---- reading ---- */

struct reader {
    const unsigned char *p;
    size_t left;
    bool bad; /* sticky: something was cut off or out of bounds */
};

static const unsigned char *take(struct reader *r, size_t n)
{
    const unsigned char *p = r->p;

    if (r->bad || n > r->left) {
        r->bad = true;
        return NULL;
    }
    r->p += n;
    r->left -= n;
    return p;
}

static uint64_t number(const unsigned char *p, size_t n)
{
    uint64_t v = 0;

    for (size_t i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

static uint32_t take_number(struct reader *r, size_t n)
{
    const unsigned char *p = take(r, n);

    return p ? (uint32_t)number(p, n) : 0;
}

/* [string]: its bytes, borrowed; *n its length. */
static const unsigned char *take_text(struct reader *r, size_t *n)
{
    *n = take_number(r, 2);
    return take(r, *n);
}

static void skip_text(struct reader *r)
{
    size_t n;

    (void)take_text(r, &n);
}

/* [bytes]: false for null. */
static bool take_bytes(struct reader *r, struct reader *out)
{
    int32_t n = (int32_t)take_number(r, 4);
    const unsigned char *p;

    if (r->bad || n < 0)
        return false;
    p = take(r, (size_t)n);
    *out = (struct reader){.p = p, .left = p ? (size_t)n : 0};
    return p != NULL;
}

int wb_cql_header_read(const unsigned char *data, struct wb_cql_header *out, struct wb_err *err)
{
    uint32_t length = (uint32_t)number(data + 5, 4);

    if (data[0] != ANSWER_VERSION)
        return wb_fail(err, WB_PROTOCOL,
                       "the answer starts with byte 0x%02x, not with that of an answer in protocol "
                       "version 4: something else listens there",
                       data[0]);
    if (length > WB_CQL_BODY_MAX)
        return wb_fail(err, WB_PROTOCOL, "an answer of %u bytes is longer than %u", length,
                       WB_CQL_BODY_MAX);
    *out = (struct wb_cql_header){.flags = data[1], .opcode = data[4], .length = length};
    return 0;
}

/* ---- types ---- */

struct types {
    struct type {
        unsigned id;
        int a, b; /* nodes of what a collection holds */
    } node[NODES_MAX];
    int n;
};

static int read_type(struct reader *r, struct types *t, int depth)
{
    int at = t->n;
    unsigned id = take_number(r, 2);

    if (depth > DEPTH_MAX || t->n >= NODES_MAX) {
        r->bad = true;
        return 0;
    }
    t->n++;
    t->node[at] = (struct type){.id = id};
    if (id == 0x00) { /* custom */
        skip_text(r);
    } else if (id == 0x20 || id == 0x22) {
        t->node[at].a = read_type(r, t, depth + 1);
    } else if (id == 0x21) {
        t->node[at].a = read_type(r, t, depth + 1);
        t->node[at].b = read_type(r, t, depth + 1);
    } else if (id == 0x30 || id == 0x31) { /* a user's type, a tuple */
        unsigned fields;

        if (id == 0x30) {
            skip_text(r);
            skip_text(r);
        }
        fields = take_number(r, 2);
        for (unsigned i = 0; i < fields && !r->bad; i++) {
            if (id == 0x30)
                skip_text(r);
            (void)read_type(r, t, depth + 1);
        }
    }
    return at;
}

/* ---- values as text ---- */

static void add_escaped(const struct reader *v, struct wb_buf *out)
{
    for (size_t i = 0; i < v->left; i++) {
        switch (v->p[i]) {
        case '\t':
            wb_buf_adds(out, "\\t");
            break;
        case '\n':
            wb_buf_adds(out, "\\n");
            break;
        case '\r':
            wb_buf_adds(out, "\\r");
            break;
        case '\\':
            wb_buf_adds(out, "\\\\");
            break;
        default:
            wb_buf_addc(out, v->p[i] ? (char)v->p[i] : ' ');
        }
    }
}

static void add_hex(const struct reader *v, struct wb_buf *out)
{
    wb_buf_adds(out, "0x");
    for (size_t i = 0; i < v->left; i++)
        wb_buf_addf(out, "%02x", v->p[i]);
}

static void add_uuid(const struct reader *v, struct wb_buf *out)
{
    for (size_t i = 0; i < 16; i++)
        wb_buf_addf(out, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", v->p[i]);
}

/* True when the value was one of a fixed width. */
static bool add_fixed(unsigned id, const struct reader *v, struct wb_buf *out)
{
    static const struct {
        unsigned id;
        size_t bytes;
    } widths[] = {{0x02, 8}, {0x04, 1},  {0x05, 8},  {0x07, 8}, {0x08, 4}, {0x09, 4},
                  {0x0B, 8}, {0x0C, 16}, {0x0F, 16}, {0x12, 8}, {0x13, 2}, {0x14, 1}};
    uint64_t raw;
    double real;
    float single;
    uint32_t half;
    size_t i = 0;

    while (i < WB_LEN(widths) && widths[i].id != id)
        i++;
    if (i == WB_LEN(widths) || v->left != widths[i].bytes)
        return false;
    raw = number(v->p, v->left <= 8 ? v->left : 8);
    half = (uint32_t)raw;
    memcpy(&real, &raw, sizeof(real));
    memcpy(&single, &half, sizeof(single));
    if (id == 0x04)
        wb_buf_adds(out, raw ? "true" : "false");
    else if (id == 0x07)
        wb_buf_addf(out, "%.17g", real);
    else if (id == 0x08)
        wb_buf_addf(out, "%.9g", (double)single);
    else if (id == 0x0C || id == 0x0F)
        add_uuid(v, out);
    else if (v->left == 8)
        wb_buf_addf(out, "%lld", (long long)raw);
    else
        wb_buf_addf(out, "%d",
                    v->left == 4   ? (int32_t)half
                    : v->left == 2 ? (int16_t)half
                                   : (int8_t)half);
    return true;
}

static bool add_inet(const struct reader *v, struct wb_buf *out)
{
    char text[INET6_ADDRSTRLEN];

    if ((v->left != 4 && v->left != 16) ||
        !inet_ntop(v->left == 4 ? AF_INET : AF_INET6, v->p, text, sizeof(text)))
        return false;
    wb_buf_adds(out, text);
    return true;
}

static void add_value(const struct types *t, int type, struct reader *v, struct wb_buf *out,
                      bool *bad)
{
    const struct type *is = &t->node[type];
    bool map = is->id == 0x21;

    if (is->id == 0x20 || is->id == 0x22 || map) {
        uint32_t n = take_number(v, 4);

        wb_buf_addc(out, map ? '{' : '[');
        for (uint32_t i = 0; i < n && !v->bad && !out->failed; i++) {
            struct reader part;

            wb_buf_adds(out, i ? "," : "");
            for (int side = 0; side <= map; side++) {
                wb_buf_adds(out, side ? "=" : "");
                if (take_bytes(v, &part))
                    add_value(t, side ? is->b : is->a, &part, out, bad);
                else
                    wb_buf_adds(out, "\\N");
            }
        }
        wb_buf_addc(out, map ? '}' : ']');
        *bad = *bad || v->bad;
    } else if (is->id == 0x01 || is->id == 0x0D) {
        add_escaped(v, out);
    } else if (!add_fixed(is->id, v, out) && !(is->id == 0x10 && add_inet(v, out))) {
        add_hex(v, out);
    }
}

/* ---- answers ---- */

static int broken(struct wb_err *err)
{
    return wb_fail(err, WB_PROTOCOL, "an answer is cut off or not what the protocol allows");
}

static int read_error(struct reader *r, struct wb_err *err)
{
    uint32_t code = take_number(r, 4);
    size_t n;
    const unsigned char *text = take_text(r, &n);

    if (r->bad)
        return broken(err);
    return wb_fail(err, is_passing(code) ? WB_UNAVAILABLE : WB_IO,
                   "the server answers error 0x%04x: %.*s", code, (int)n, (const char *)text);
}

/* Columns' types in order; -1 when the bytes are not right. */
static int read_columns(struct reader *r, struct types *t, int columns[COLUMNS_MAX])
{
    uint32_t flags = take_number(r, 4), n = take_number(r, 4);
    struct reader state;

    if (flags & META_MORE)
        (void)take_bytes(r, &state);
    if (n > COLUMNS_MAX || (flags & META_NONE))
        return -1;
    if (flags & META_GLOBAL) {
        skip_text(r);
        skip_text(r);
    }
    for (uint32_t i = 0; i < n && !r->bad; i++) {
        if (!(flags & META_GLOBAL)) {
            skip_text(r);
            skip_text(r);
        }
        skip_text(r);
        columns[i] = read_type(r, t, 0);
    }
    return r->bad ? -1 : (int)n;
}

static int read_rows(struct reader *r, int number_of_query, struct wb_buf *out, struct wb_err *err)
{
    struct types *t = wb_calloc(1, sizeof(*t));
    int columns[COLUMNS_MAX], n = read_columns(r, t, columns);
    uint32_t rows = n < 0 ? 0 : take_number(r, 4);
    bool bad = n < 0 || r->bad || (n == 0 && rows > 0);

    for (uint32_t i = 0; i < rows && !bad && !out->failed; i++) {
        wb_buf_addf(out, "%d", number_of_query);
        for (int c = 0; c < n && !bad; c++) {
            struct reader v;

            wb_buf_addc(out, '\t');
            if (take_bytes(r, &v))
                add_value(t, columns[c], &v, out, &bad);
            else
                wb_buf_adds(out, "\\N");
            bad = bad || r->bad;
        }
        wb_buf_addc(out, '\n');
    }
    wb_auto_free(&t);
    return bad ? broken(err) : wb_buf_check(out, "the answer", err);
}

int wb_cql_answer(const struct wb_cql_header *h, const unsigned char *body, int number_of_query,
                  struct wb_buf *out, struct wb_err *err)
{
    struct reader r = {.p = body, .left = h->length};

    if (h->flags & FLAG_TRACING)
        (void)take(&r, 16);
    if (h->flags & FLAG_WARNING) {
        for (unsigned n = take_number(&r, 2); n > 0 && !r.bad; n--)
            skip_text(&r);
    }
    if (h->flags & FLAG_PAYLOAD) {
        for (unsigned n = take_number(&r, 2); n > 0 && !r.bad; n--) {
            struct reader value;

            skip_text(&r);
            (void)take_bytes(&r, &value);
        }
    }
    if (r.bad)
        return broken(err);
    if (h->opcode == WB_CQL_ERROR)
        return read_error(&r, err);
    if (h->opcode != WB_CQL_RESULT)
        return wb_fail(err, WB_PROTOCOL, "the answer to a query has opcode 0x%02x", h->opcode);
    if (take_number(&r, 4) == RESULT_ROWS && !r.bad)
        return read_rows(&r, number_of_query, out, err);
    return r.bad ? broken(err) : 0;
}
