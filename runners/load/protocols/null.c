/*
 * The honest fake: no socket, every operation succeeds at once. It shows what the generator itself
 * costs and how fast it can go, and is the smallest example of a protocol.
 */
#include "runners/load/protocol.h"
#include "runners/load/worker.h"

static int setup(const struct wb_load_data *data, void **context, struct wb_err *err)
{
    (void)data;
    (void)err;
    *context = NULL;
    return 0;
}

static void end(void *context)
{
    (void)context;
}

static size_t request_max(const void *context)
{
    (void)context;
    return 1;
}

static void reset(void *context, void *conn_state)
{
    (void)context;
    (void)conn_state;
}

static char *build(const void *context, struct wb_conn *c, const struct wb_slot *s, uint64_t key,
                   char *out)
{
    (void)context;
    (void)c;
    *out = (char)(s->op + (key & 0x40));
    return out + 1;
}

static int feed(void *context, struct wb_worker *w, struct wb_conn *c, const char *data, size_t n)
{
    (void)context;
    (void)data;
    for (const struct wb_slot *s; n > 0 && (s = wb_worker_expects(c)); n--)
        wb_worker_reply_ok(w, c, s);
    return n == 0 ? 0 : -1;
}

const struct wb_protocol wb_protocol_null = {
    .name = "null",
    .summary = "no database: every operation succeeds at once",
    .no_socket = true,
    .ops = wb_ops_null,
    .write_op = 1,
    .read_op = 0,
    .conn_size = 1,
    .setup = setup,
    .end = end,
    .request_max = request_max,
    .reset = reset,
    .build = build,
    .feed = feed,
};
