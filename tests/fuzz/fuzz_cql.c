/*
 * Answers of a CQL server as random bytes: the first byte chooses the version and framing, the
 * second the size of the pieces, then come the answers. Where segments have checksums they are made
 * right, so that what lies behind them is reached. Every operation must end exactly once.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runners/load/protocols/cql_message.h"
#include "runners/load/worker.h"
#include "server/base/clock.h"
#include "server/base/mem.h"

#define DEPTH 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct rig {
    struct wb_load_job job;
    struct wb_load_plan plan;
    struct wb_stats stats;
    struct wb_worker w;
    struct wb_conn c;
    unsigned version;
    bool lz4;
};

/* A checked segment around what it is given, or nothing around it. */
static void frame(const struct rig *r, bool framed, bool whole, const uint8_t *data, size_t n,
                  struct wb_buf *out)
{
    size_t head = wb_cql_segment_head(r->lz4);
    char *seg;

    if (!framed) {
        wb_buf_add(out, data, n);
        return;
    }
    seg = wb_calloc(n + WB_CQL_SEGMENT_EXTRA, 1);
    if (n > 0)
        memcpy(seg + head, data, n);
    wb_buf_add(out, seg, (size_t)(wb_cql_segment_close(seg, n, whole, false, NULL) - seg));
    free(seg);
}

static int feed(struct rig *r, const struct wb_buf *b, size_t step)
{
    int rc = 0;

    for (size_t at = 0; at < b->len && rc == 0;) {
        size_t k = b->len - at < step ? b->len - at : step;
        char *piece = wb_calloc(k, 1);
        memcpy(piece, b->data + at, k);
        rc = wb_protocol_cql.feed(r->w.context, &r->w, &r->c, piece, k);
        free(piece);
        at += k;
    }
    return rc;
}

static struct rig *rig_new(unsigned version, bool lz4)
{
    struct rig *r = wb_calloc(1, sizeof(*r));

    wb_load_job_init(&r->job);
    r->version = version;
    r->lz4 = lz4;
    r->job.depth = DEPTH;
    r->job.value_bytes = 8;
    r->job.target = wb_strdup("cql://h");
    r->job.mix_text = wb_strdup("select=1,insert=1,update=1,delete=1,batch=1");
    r->job.key_choice_text = wb_strdup("sequential");
    r->job.cql.native_protocol = wb_strdup(version == 4 ? "4" : "5");
    r->job.cql.compression = wb_strdup(lz4 ? "lz4" : "none");
    if (wb_load_job_check(&r->job, NULL) < 0)
        abort();
    wb_keys_init(&r->plan.data.keys, &r->job);
    wb_values_init(&r->plan.data.values, &r->job);
    r->plan.job = r->plan.data.job = &r->job;
    wb_stats_init(&r->stats, 5);
    r->w.plan = &r->plan;
    r->w.protocol = &wb_protocol_cql;
    r->w.timeout_ns = WB_SEC;
    r->w.now = 10;
    r->w.cur = &r->stats;
    r->w.epfd = -1;
    if (wb_protocol_cql.setup(&r->plan.data, &r->w.context, NULL) < 0)
        abort();
    r->w.request_max = wb_protocol_cql.request_max(r->w.context);
    wb_conn_init(&r->c, &r->job, r->w.request_max, wb_protocol_cql.conn_size);
    wb_conn_extend(&r->c, &wb_protocol_cql);
    return r;
}

static void again(struct rig *r)
{
    wb_stats_clear(&r->stats);
    r->c.head = r->c.tail = r->c.stamped = r->c.expired = 0;
    r->c.out_len = r->c.out_sent = 0;
    r->c.dirty = false;
    r->w.dirty = NULL;
    r->w.live = 0;
    r->c.state = WB_CONN_GREETING;
    wb_protocol_cql.reset(r->w.context, r->c.proto);
    wb_protocol_cql.greet(r->w.context, &r->w, &r->c);
}

/* READY and prepared statements, so that what follows meets a connection that is up. */
static void bring_up(struct rig *r)
{
    static const char head[] = "\0\0\0\4\0\2id", rest[] = "\0\0\0\4\0\0\0\2\0\0\0\0";
    struct wb_buf b = WB_BUF_INIT(4096);

    for (int i = -1; i < 4; i++) {
        struct wb_buf e = WB_BUF_INIT(4096);
        char h[WB_CQL_HEADER];
        bool two = i == 1 || i == 2;
        wb_buf_add(&e, h, sizeof(h));
        if (i >= 0) {
            wb_buf_add(&e, head, 8);
            if (r->version == 5)
                wb_buf_add(&e, "\0\1r", 3);
            wb_buf_add(&e, "\0\0\0\1\0\0\0", 7);
            wb_buf_addc(&e, two ? 2 : 1);
            wb_buf_add(&e, "\0\0\0\0\0\1k\0\1t", 10);
            for (int c = 0; c < (two ? 2 : 1); c++)
                wb_buf_add(&e, "\0\1c\0\3", 5);
            wb_buf_add(&e, rest, 8);
        }
        wb_cql_put_header(e.data, r->version | WB_CQL_REPLY, i < 0 ? 0 : (unsigned)i,
                          i < 0 ? WB_CQL_READY : WB_CQL_RESULT, (uint32_t)e.len - WB_CQL_HEADER);
        wb_buf_clear(&b);
        frame(r, i >= 0 && r->version == 5, true, (const uint8_t *)e.data, e.len, &b);
        if (r->lz4 && i >= 0 && r->version == 5) { /* the head of such a segment is longer */
            char *seg = wb_calloc(e.len + WB_CQL_SEGMENT_EXTRA, 1);
            char *scratch = wb_calloc(e.len, 1);
            memcpy(seg + 8, e.data, e.len);
            wb_buf_clear(&b);
            wb_buf_add(&b, seg,
                       (size_t)(wb_cql_segment_close(seg, e.len, true, true, scratch) - seg));
            free(seg);
            free(scratch);
        }
        if (feed(r, &b, b.len) < 0)
            abort();
        wb_buf_release(&e);
    }
    wb_buf_release(&b);
    if (r->c.state != WB_CONN_UP)
        abort();
    r->c.out_len = 0;
    for (unsigned k = 0; k < DEPTH; k++) {
        struct wb_slot *s = &r->c.slots[r->c.tail & r->c.mask];
        *s = (struct wb_slot){.op = (uint8_t)(k % 5),
                              .index = k,
                              .phase = WB_PHASE_MEASURE,
                              .flags = k & 1 ? WB_SLOT_VERIFY : 0};
        r->c.tail++;
        r->w.live++;
    }
    r->c.stamped = r->c.tail;
}

static void run(struct rig *r, bool up, bool raw, size_t step, const uint8_t *data, size_t size)
{
    struct wb_buf b = WB_BUF_INIT(1 << 24);
    struct wb_phase_sum sum;

    again(r);
    if (up)
        bring_up(r);
    if (!up || raw || r->version == 4 || r->lz4) {
        wb_buf_add(&b, data, size);
    } else { /* a length, then so many bytes of payload */
        while (size > 1) {
            size_t n = (size_t)(data[0] & 0x7f) < size - 1 ? data[0] & 0x7f : size - 1;
            frame(r, true, !(data[0] & 0x80), data + 1, n, &b);
            data += n + 1;
            size -= n + 1;
        }
    }
    (void)feed(r, &b, step ? step : b.len + 1);
    sum = wb_phase_total(&r->stats, WB_PHASE_MEASURE);
    if (up && (sum.ok + sum.failed + r->w.live != DEPTH || wb_conn_in_flight(&r->c) != r->w.live))
        abort();
    wb_buf_release(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct rig *rigs[4]; /* making one costs more than a run */
    unsigned mode;

    if (size < 2)
        return 0;
    mode = data[0] % 16;
    if (!rigs[mode % 4])
        rigs[mode % 4] = rig_new(mode & 1 ? 5 : 4, (mode & 2) != 0);
    run(rigs[mode % 4], (mode & 4) != 0, (mode & 8) != 0, data[1], data + 2, size - 2);
    return 0;
}
