/*
 * Messages of the CQL native protocol: writing the ones that are not on the hot path, reading what
 * servers answer. Written messages are bare envelopes of stream `stream` in a buffer.
 */
#ifndef WB_LOAD_CQL_MESSAGE_H
#define WB_LOAD_CQL_MESSAGE_H

#include "runners/load/protocols/cql_frame.h"
#include "runners/load/stats.h"

#define WB_CQL_COLUMNS_MAX 128 /* of a statement or result, as far as they are read */
#define WB_CQL_ID_MAX 64       /* bytes of the id of a prepared statement */

enum wb_cql_type {
    WB_CQL_ASCII = 0x01,
    WB_CQL_BLOB = 0x03,
    WB_CQL_VARCHAR = 0x0d,
    /* types with types inside */
    WB_CQL_CUSTOM = 0x00,
    WB_CQL_LIST = 0x20,
    WB_CQL_MAP = 0x21,
    WB_CQL_SET = 0x22,
    WB_CQL_UDT = 0x30,
    WB_CQL_TUPLE = 0x31
};

/* "one" -> 0x0001; false when there is no such level. */
bool wb_cql_consistency(const char *name, size_t n, uint16_t *out);
const char *wb_cql_consistency_name(uint16_t level);
/* All names, comma-separated, for messages. */
const char *wb_cql_consistency_names(void);

struct wb_cql_hello {
    unsigned version;
    bool lz4;
    bool throw_on_overload;      /* errors instead of no longer reading the socket */
    const char *user, *password; /* NULL: none */
};

void wb_cql_put_options(struct wb_buf *b, unsigned version, unsigned stream);
void wb_cql_put_startup(struct wb_buf *b, const struct wb_cql_hello *h, unsigned stream);
/* SASL PLAIN. */
void wb_cql_put_auth(struct wb_buf *b, const struct wb_cql_hello *h, unsigned stream);
void wb_cql_put_prepare(struct wb_buf *b, unsigned version, unsigned stream, const char *text);
/* Without values. */
void wb_cql_put_query(struct wb_buf *b, unsigned version, unsigned stream, const char *text,
                      uint16_t consistency);

/* What a server answered in the dialogue before operations: takes an answer, appends what to send
 * next. Returns 1 when the dialogue is over, 0 when it goes on, -WB_PROTOCOL or -WB_UNAVAILABLE
 * with the server's words when it refused. */
int wb_cql_hello_take(const struct wb_cql_hello *h, const struct wb_cql_envelope *e,
                      struct wb_buf *next, struct wb_err *err);

struct wb_cql_error {
    uint32_t code;
    struct wb_cql_view text; /* the server's words */
    struct wb_cql_view id;   /* UNPREPARED: of the statement */
    enum wb_reply class;
};

#define WB_CQL_CODE_PROTOCOL 0x000a
#define WB_CQL_CODE_UNPREPARED 0x2500
#define WB_CQL_CODE_EXISTS 0x2400

/* False when the body is too short. */
bool wb_cql_take_error(const struct wb_cql_envelope *e, struct wb_cql_error *out);
/* The server's words and the code as an error with `code`. Returns -code. */
int wb_cql_fail(struct wb_err *err, enum wb_code code, const struct wb_cql_envelope *e);

struct wb_cql_column {
    struct wb_cql_view name;
    uint16_t type;
    struct wb_cql_view inner; /* the types within its type */
};

struct wb_cql_prepared {
    struct wb_cql_view id, result_id; /* result_id: version 5 */
    unsigned nkey;                    /* columns of the partition key */
    uint16_t key[WB_CQL_COLUMNS_MAX]; /* which of the values they are */
    unsigned nbind, nresult;
    struct wb_cql_column bind[WB_CQL_COLUMNS_MAX], result[WB_CQL_COLUMNS_MAX];
};

/* A RESULT of kind PREPARED; false when it is none or damaged. */
bool wb_cql_take_prepared(const struct wb_cql_envelope *e, struct wb_cql_prepared *out);

struct wb_cql_rows {
    unsigned ncolumns; /* also when the names were left out */
    bool named;
    struct wb_cql_column column[WB_CQL_COLUMNS_MAX];
    bool more; /* pages */
    uint32_t nrows;
    struct wb_cql_cursor cells; /* wb_cql_take_bytes gives one after the other */
};

/* The types within a type whose own number was taken. */
struct wb_cql_view wb_cql_take_type(struct wb_cql_cursor *c, unsigned type);
/* A RESULT of kind ROWS. On the hot path: of the columns only the first ncolumns are set, and those
 * only where they are named. */
bool wb_cql_take_rows(const struct wb_cql_envelope *e, struct wb_cql_rows *out);

/* Whether SUPPORTED lists `value` under `key`. */
bool wb_cql_supports(const struct wb_cql_envelope *e, const char *key, const char *value);

bool wb_cql_view_is(struct wb_cql_view v, const char *text);

#endif
