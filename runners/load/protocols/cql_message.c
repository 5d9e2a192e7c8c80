#include "runners/load/protocols/cql_message.h"

#include "server/base/mem.h"

#define TYPE_DEPTH 16 /* of types within types */

/* --- consistency --- */

static const struct {
    const char *name;
    uint16_t level;
} levels[] = {{"any", 0}, {"one", 1},          {"two", 2},         {"three", 3},     {"quorum", 4},
              {"all", 5}, {"local_quorum", 6}, {"each_quorum", 7}, {"local_one", 10}};

bool wb_cql_consistency(const char *name, size_t n, uint16_t *out)
{
    for (size_t i = 0; i < WB_LEN(levels); i++) {
        if (strlen(levels[i].name) == n && memcmp(levels[i].name, name, n) == 0) {
            *out = levels[i].level;
            return true;
        }
    }
    return false;
}

const char *wb_cql_consistency_name(uint16_t level)
{
    for (size_t i = 0; i < WB_LEN(levels); i++)
        if (levels[i].level == level)
            return levels[i].name;
    return "unknown";
}

const char *wb_cql_consistency_names(void)
{
    return "any, one, two, three, quorum, all, local_quorum, each_quorum, local_one";
}

/* --- writing --- */

/* Returns where the envelope begins. */
static size_t begin(struct wb_buf *b, unsigned version, unsigned stream, unsigned opcode)
{
    char head[WB_CQL_HEADER];
    size_t at = b->len;

    wb_cql_put_header(head, version, stream, opcode, 0);
    wb_buf_add(b, head, sizeof(head));
    return at;
}

static void end(struct wb_buf *b, size_t at)
{
    if (!b->failed)
        wb_cql_put32(b->data + at + 5, (uint32_t)(b->len - at - WB_CQL_HEADER));
}

static void add16(struct wb_buf *b, unsigned v)
{
    char n[2];

    wb_cql_put16(n, v);
    wb_buf_add(b, n, sizeof(n));
}

static void add32(struct wb_buf *b, uint32_t v)
{
    char n[4];

    wb_cql_put32(n, v);
    wb_buf_add(b, n, sizeof(n));
}

static void add_string(struct wb_buf *b, const char *s)
{
    add16(b, (unsigned)strlen(s));
    wb_buf_adds(b, s);
}

static void add_long_string(struct wb_buf *b, const char *s)
{
    add32(b, (uint32_t)strlen(s));
    wb_buf_adds(b, s);
}

void wb_cql_put_options(struct wb_buf *b, unsigned version, unsigned stream)
{
    end(b, begin(b, version, stream, WB_CQL_OPTIONS));
}

void wb_cql_put_startup(struct wb_buf *b, const struct wb_cql_hello *h, unsigned stream)
{
    size_t at = begin(b, h->version, stream, WB_CQL_STARTUP);

    add16(b, 3u + h->lz4 + h->throw_on_overload);
    add_string(b, "CQL_VERSION");
    add_string(b, "3.0.0");
    add_string(b, "DRIVER_NAME");
    add_string(b, "wb-load");
    add_string(b, "DRIVER_VERSION");
    add_string(b, WB_VERSION);
    if (h->lz4) {
        add_string(b, "COMPRESSION");
        add_string(b, "lz4");
    }
    if (h->throw_on_overload) {
        add_string(b, "THROW_ON_OVERLOAD");
        add_string(b, "1");
    }
    end(b, at);
}

void wb_cql_put_auth(struct wb_buf *b, const struct wb_cql_hello *h, unsigned stream)
{
    size_t at = begin(b, h->version, stream, WB_CQL_AUTH_RESPONSE);

    add32(b, (uint32_t)(strlen(h->user) + strlen(h->password) + 2));
    wb_buf_addc(b, 0);
    wb_buf_adds(b, h->user);
    wb_buf_addc(b, 0);
    wb_buf_adds(b, h->password);
    end(b, at);
}

void wb_cql_put_prepare(struct wb_buf *b, unsigned version, unsigned stream, const char *text)
{
    size_t at = begin(b, version, stream, WB_CQL_PREPARE);

    add_long_string(b, text);
    if (version >= 5)
        add32(b, 0); /* flags: no keyspace of its own */
    end(b, at);
}

void wb_cql_put_query(struct wb_buf *b, unsigned version, unsigned stream, const char *text,
                      uint16_t consistency)
{
    size_t at = begin(b, version, stream, WB_CQL_QUERY);

    add_long_string(b, text);
    add16(b, consistency);
    if (version >= 5)
        add32(b, 0);
    else
        wb_buf_addc(b, 0);
    end(b, at);
}

/* --- errors --- */

static enum wb_reply class_of(uint32_t code)
{
    static const struct {
        uint32_t code;
        enum wb_reply class;
    } rows[] = {{0x000a, WB_REPLY_PROTOCOL},      {0x0100, WB_REPLY_UNAUTHORIZED},
                {0x1000, WB_REPLY_UNAVAILABLE},   {0x1001, WB_REPLY_OVERLOADED},
                {0x1002, WB_REPLY_BOOTSTRAPPING}, {0x1100, WB_REPLY_WRITE_TIMEOUT},
                {0x1200, WB_REPLY_READ_TIMEOUT},  {0x1300, WB_REPLY_READ_FAILURE},
                {0x1500, WB_REPLY_WRITE_FAILURE}, {0x1600, WB_REPLY_WRITE_FAILURE},
                {0x1700, WB_REPLY_WRITE_TIMEOUT}, {0x2000, WB_REPLY_INVALID},
                {0x2100, WB_REPLY_UNAUTHORIZED},  {0x2200, WB_REPLY_INVALID},
                {0x2300, WB_REPLY_INVALID},       {0x2400, WB_REPLY_INVALID},
                {0x2500, WB_REPLY_UNPREPARED}};

    for (size_t i = 0; i < WB_LEN(rows); i++)
        if (rows[i].code == code)
            return rows[i].class;
    return WB_REPLY_SERVER; /* 0x0000, truncate, function failure, what later versions add */
}

bool wb_cql_take_error(const struct wb_cql_envelope *e, struct wb_cql_error *out)
{
    struct wb_cql_cursor c = wb_cql_cursor(e->body, e->n);

    *out = (struct wb_cql_error){.code = wb_cql_take32(&c)};
    out->text = wb_cql_take_string(&c);
    if (out->code == WB_CQL_CODE_UNPREPARED)
        out->id = wb_cql_take_string(&c);
    out->class = class_of(out->code);
    return e->opcode == WB_CQL_ERROR && !c.bad;
}

int wb_cql_fail(struct wb_err *err, enum wb_code code, const struct wb_cql_envelope *e)
{
    struct wb_cql_error x;

    if (!wb_cql_take_error(e, &x))
        return wb_fail(err, WB_PROTOCOL,
                       "the server answered with opcode 0x%02x, which does not "
                       "fit",
                       e->opcode);
    return wb_fail(err, code, "the server said: %.*s (error 0x%04x)",
                   (int)(x.text.n < WB_ERR_TEXT_MAX ? x.text.n : WB_ERR_TEXT_MAX), x.text.p,
                   (unsigned)x.code);
}

/* --- reading --- */

bool wb_cql_view_is(struct wb_cql_view v, const char *text)
{
    return v.p && v.n == strlen(text) && memcmp(v.p, text, v.n) == 0;
}

int wb_cql_hello_take(const struct wb_cql_hello *h, const struct wb_cql_envelope *e,
                      struct wb_buf *next, struct wb_err *err)
{
    struct wb_cql_cursor c = wb_cql_cursor(e->body, e->n);
    struct wb_cql_view class;

    switch (e->opcode) {
    case WB_CQL_READY:
    case WB_CQL_AUTH_SUCCESS:
        return 1;
    case WB_CQL_AUTHENTICATE:
        class = wb_cql_take_string(&c);
        if (!h->user || !h->password)
            return wb_fail(err, WB_UNAVAILABLE,
                           "the server wants a user and password (%.*s), give them with --user "
                           "and --password-file",
                           (int)class.n, class.p ? class.p : "");
        wb_cql_put_auth(next, h, 0);
        return 0;
    case WB_CQL_AUTH_CHALLENGE:
        return wb_fail(err, WB_UNSUPPORTED, "the server wants more than a user and password");
    default:
        return wb_cql_fail(err, WB_UNAVAILABLE, e);
    }
}

/* Passes the types within a type; the depth is bounded because servers write it. */
static void skip_type(struct wb_cql_cursor *c, unsigned type, int depth)
{
    unsigned n = 0;

    if (depth > TYPE_DEPTH) {
        c->bad = true;
        return;
    }
    switch (type) {
    case WB_CQL_CUSTOM:
        (void)wb_cql_take_string(c);
        return;
    case WB_CQL_LIST:
    case WB_CQL_SET:
        n = 1;
        break;
    case WB_CQL_MAP:
        n = 2;
        break;
    case WB_CQL_TUPLE:
        n = wb_cql_take16(c);
        break;
    case WB_CQL_UDT:
        (void)wb_cql_take_string(c);
        (void)wb_cql_take_string(c);
        n = wb_cql_take16(c);
        break;
    default:
        return;
    }
    for (; n > 0 && !c->bad; n--) {
        if (type == WB_CQL_UDT)
            (void)wb_cql_take_string(c);
        skip_type(c, wb_cql_take16(c), depth + 1);
    }
}

struct wb_cql_view wb_cql_take_type(struct wb_cql_cursor *c, unsigned type)
{
    const char *from = c->p;

    skip_type(c, type, 0);
    return (struct wb_cql_view){.p = from, .n = c->bad ? 0 : (size_t)(c->p - from)};
}

/* Columns of a statement or result; keyspace and table once or with each of them. */
static void take_columns(struct wb_cql_cursor *c, unsigned flags, unsigned n,
                         struct wb_cql_column *out)
{
    if (flags & WB_CQL_GLOBAL_TABLE) {
        (void)wb_cql_take_string(c);
        (void)wb_cql_take_string(c);
    }
    for (unsigned i = 0; i < n && !c->bad; i++) {
        if (!(flags & WB_CQL_GLOBAL_TABLE)) {
            (void)wb_cql_take_string(c);
            (void)wb_cql_take_string(c);
        }
        out[i].name = wb_cql_take_string(c);
        out[i].type = (uint16_t)wb_cql_take16(c);
        out[i].inner = wb_cql_take_type(c, out[i].type);
    }
}

/* Flags and number of columns; more than are read are refused. */
static unsigned take_count(struct wb_cql_cursor *c, uint32_t *flags)
{
    uint32_t n;

    *flags = wb_cql_take32(c);
    n = wb_cql_take32(c);
    if (n > WB_CQL_COLUMNS_MAX)
        c->bad = true;
    return c->bad ? 0 : n;
}

/* The rest of a result's metadata after its count. */
static void take_result_columns(struct wb_cql_cursor *c, uint32_t flags, unsigned n,
                                struct wb_cql_column *out)
{
    if (flags & WB_CQL_MORE_PAGES)
        (void)wb_cql_take_bytes(c);
    if (flags & WB_CQL_METADATA_CHANGED)
        (void)wb_cql_take_string(c);
    if (!(flags & WB_CQL_NO_METADATA))
        take_columns(c, flags, n, out);
}

bool wb_cql_take_prepared(const struct wb_cql_envelope *e, struct wb_cql_prepared *out)
{
    struct wb_cql_cursor c = wb_cql_cursor(e->body, e->n);
    uint32_t flags;

    *out = (struct wb_cql_prepared){0};
    if (e->opcode != WB_CQL_RESULT || wb_cql_take32(&c) != WB_CQL_PREPARED)
        return false;
    out->id = wb_cql_take_string(&c);
    if (e->version >= 5)
        out->result_id = wb_cql_take_string(&c);
    out->nbind = take_count(&c, &flags);
    out->nkey = wb_cql_take32(&c);
    if (out->nkey > WB_CQL_COLUMNS_MAX)
        c.bad = true;
    for (unsigned i = 0; i < out->nkey && !c.bad; i++)
        out->key[i] = (uint16_t)wb_cql_take16(&c);
    take_columns(&c, flags, out->nbind, out->bind);
    out->nresult = take_count(&c, &flags);
    take_result_columns(&c, flags, out->nresult, out->result);
    return !c.bad && out->id.n > 0 && out->id.n <= WB_CQL_ID_MAX &&
           out->result_id.n <= WB_CQL_ID_MAX;
}

bool wb_cql_take_rows(const struct wb_cql_envelope *e, struct wb_cql_rows *out)
{
    struct wb_cql_cursor c = wb_cql_cursor(e->body, e->n);
    uint32_t flags;

    if (e->opcode != WB_CQL_RESULT || wb_cql_take32(&c) != WB_CQL_ROWS)
        return false;
    out->ncolumns = take_count(&c, &flags);
    out->more = (flags & WB_CQL_MORE_PAGES) != 0;
    out->named = !(flags & WB_CQL_NO_METADATA);
    take_result_columns(&c, flags, out->ncolumns, out->column);
    out->nrows = wb_cql_take32(&c);
    out->cells = c;
    return !c.bad;
}

bool wb_cql_supports(const struct wb_cql_envelope *e, const char *key, const char *value)
{
    struct wb_cql_cursor c = wb_cql_cursor(e->body, e->n);
    bool found = false;

    for (unsigned n = wb_cql_take16(&c); n > 0 && !c.bad; n--) {
        bool here = wb_cql_view_is(wb_cql_take_string(&c), key);
        for (unsigned k = wb_cql_take16(&c); k > 0 && !c.bad; k--)
            found |= wb_cql_view_is(wb_cql_take_string(&c), value) && here;
    }
    return found && !c.bad;
}
