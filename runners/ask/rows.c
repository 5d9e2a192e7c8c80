#include "runners/ask/rows.h"

#include <arpa/inet.h>
#include <string.h>

#include "server/base/mem.h"

/* The codes of errors that say "not now": overloaded, bootstrapping, unavailable, time-outs. */
static bool is_passing(uint32_t code)
{
    return code >= 0x1000 && code <= 0x1300;
}

/* ---- values as text ---- */

static void add_escaped(struct wb_cql_view v, struct wb_buf *out)
{
    for (size_t i = 0; i < v.n; i++) {
        switch (v.p[i]) {
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
            wb_buf_addc(out, v.p[i] ? v.p[i] : ' ');
        }
    }
}

static void add_hex(struct wb_cql_view v, struct wb_buf *out)
{
    wb_buf_adds(out, "0x");
    for (size_t i = 0; i < v.n; i++)
        wb_buf_addf(out, "%02x", (unsigned char)v.p[i]);
}

static void add_uuid(struct wb_cql_view v, struct wb_buf *out)
{
    for (size_t i = 0; i < 16; i++)
        wb_buf_addf(out, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                    (unsigned char)v.p[i]);
}

/* True when the value was one of a fixed width. */
static bool add_fixed(unsigned id, struct wb_cql_view v, struct wb_buf *out)
{
    static const struct {
        unsigned id;
        size_t bytes;
    } widths[] = {{0x02, 8}, {0x04, 1},  {0x05, 8},  {0x07, 8}, {0x08, 4}, {0x09, 4},
                  {0x0B, 8}, {0x0C, 16}, {0x0F, 16}, {0x12, 8}, {0x13, 2}, {0x14, 1}};
    uint64_t raw = 0;
    double real;
    float single;
    uint32_t half;
    size_t i = 0;

    while (i < WB_LEN(widths) && widths[i].id != id)
        i++;
    if (i == WB_LEN(widths) || v.n != widths[i].bytes)
        return false;
    for (size_t k = 0; k < v.n && k < 8; k++)
        raw = raw << 8 | (unsigned char)v.p[k];
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
    else if (v.n == 8)
        wb_buf_addf(out, "%lld", (long long)raw);
    else
        wb_buf_addf(out, "%d", v.n == 4 ? (int32_t)half : v.n == 2 ? (int16_t)half : (int8_t)half);
    return true;
}

static bool add_inet(struct wb_cql_view v, struct wb_buf *out)
{
    char text[INET6_ADDRSTRLEN];

    if ((v.n != 4 && v.n != 16) ||
        !inet_ntop(v.n == 4 ? AF_INET : AF_INET6, v.p, text, sizeof(text)))
        return false;
    wb_buf_adds(out, text);
    return true;
}

static void add_value(unsigned type, struct wb_cql_view inner, struct wb_cql_view v,
                      struct wb_buf *out, bool *bad);

/* What a collection holds; inner has the types of its parts, one or two (a map). */
static void add_parts(bool map, struct wb_cql_view inner, struct wb_cql_view v, struct wb_buf *out,
                      bool *bad)
{
    struct wb_cql_cursor types = wb_cql_cursor(inner.p, inner.n), c = wb_cql_cursor(v.p, v.n);
    struct wb_cql_view in[2] = {{0}};
    unsigned type[2] = {0};
    uint32_t n = wb_cql_take32(&c);

    for (int side = 0; side <= map; side++) {
        type[side] = wb_cql_take16(&types);
        in[side] = wb_cql_take_type(&types, type[side]);
    }
    wb_buf_addc(out, map ? '{' : '[');
    for (uint32_t i = 0; i < n && !c.bad && !out->failed; i++) {
        wb_buf_adds(out, i ? "," : "");
        for (int side = 0; side <= map; side++) {
            wb_buf_adds(out, side ? "=" : "");
            add_value(type[side], in[side], wb_cql_take_bytes(&c), out, bad);
        }
    }
    wb_buf_addc(out, map ? '}' : ']');
    *bad = *bad || c.bad || types.bad;
}

static void add_value(unsigned type, struct wb_cql_view inner, struct wb_cql_view v,
                      struct wb_buf *out, bool *bad)
{
    if (!v.p)
        wb_buf_adds(out, "\\N");
    else if (type == WB_CQL_LIST || type == WB_CQL_SET || type == WB_CQL_MAP)
        add_parts(type == WB_CQL_MAP, inner, v, out, bad);
    else if (type == WB_CQL_ASCII || type == WB_CQL_VARCHAR)
        add_escaped(v, out);
    else if (!add_fixed(type, v, out) && !(type == 0x10 && add_inet(v, out)))
        add_hex(v, out);
}

/* ---- answers ---- */

static int broken(struct wb_err *err)
{
    return wb_fail(err, WB_PROTOCOL, "an answer is cut off or not what the protocol allows");
}

static int add_rows(const struct wb_cql_envelope *e, int number, struct wb_buf *out,
                    struct wb_err *err)
{
    struct wb_cql_rows rows;
    bool bad = false;

    if (!wb_cql_take_rows(e, &rows) || !rows.named || (rows.ncolumns == 0 && rows.nrows > 0))
        return broken(err);
    for (uint32_t i = 0; i < rows.nrows && !bad && !out->failed; i++) {
        wb_buf_addf(out, "%d", number);
        for (unsigned k = 0; k < rows.ncolumns && !bad; k++) {
            struct wb_cql_view v = wb_cql_take_bytes(&rows.cells);

            wb_buf_addc(out, '\t');
            add_value(rows.column[k].type, rows.column[k].inner, v, out, &bad);
            bad = bad || rows.cells.bad;
        }
        wb_buf_addc(out, '\n');
    }
    return bad ? broken(err) : wb_buf_check(out, "the answer", err);
}

int wb_ask_rows(const struct wb_cql_envelope *e, int number, struct wb_buf *out, struct wb_err *err)
{
    struct wb_cql_error x;

    if (e->opcode == WB_CQL_ERROR && wb_cql_take_error(e, &x))
        return wb_cql_fail(err, is_passing(x.code) ? WB_UNAVAILABLE : WB_IO, e);
    if (e->opcode == WB_CQL_ERROR || (e->opcode == WB_CQL_RESULT && e->n < 4))
        return broken(err);
    if (e->opcode != WB_CQL_RESULT)
        return wb_fail(err, WB_PROTOCOL, "the answer to a query has opcode 0x%02x", e->opcode);
    return wb_cql_get32(e->body) == WB_CQL_ROWS ? add_rows(e, number, out, err) : 0;
}
