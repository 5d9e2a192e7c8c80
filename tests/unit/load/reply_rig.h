/*
 * A worker without threads and sockets, one connection with operations in flight, and the check
 * that a protocol makes of given bytes, in pieces of every size, what a row says.
 */
#ifndef WB_TESTS_REPLY_RIG_H
#define WB_TESTS_REPLY_RIG_H

#include <stdlib.h>
#include <string.h>

#include "runners/load/worker.h"
#include "server/base/clock.h"
#include "server/base/mem.h"

#define VALUE 10

struct rig {
    const struct wb_protocol *protocol;
    const char *letters; /* of its operations, in their order; 'v' is a verified read */
    struct wb_load_job job;
    struct wb_load_plan plan;
    struct wb_worker w;
    struct wb_conn c;
    struct wb_stats stats;
};

struct want {
    const char *ops, *text;
    int rc;
    unsigned ok, misses, server, protocol, mismatch, invalid, unauthorized, unavailable, left;
    int version; /* of RESP; 0: 2 */
};

static void rig_up_version(struct rig *r, const struct wb_protocol *protocol, const char *letters,
                           int version)
{
    *r = (struct rig){.protocol = protocol, .letters = letters};
    wb_load_job_init(&r->job);
    r->job.depth = 64;
    r->job.resp_version = version;
    r->job.value_bytes = VALUE;
    r->job.key_law.choice = WB_LOAD_SEQUENTIAL;
    wb_keys_init(&r->plan.data.keys, &r->job);
    wb_values_init(&r->plan.data.values, &r->job);
    r->plan.job = r->plan.data.job = &r->job;
    r->w.plan = &r->plan;
    r->w.protocol = protocol;
    r->w.timeout_ns = WB_SEC;
    r->w.now = 5 * WB_MS;
    wb_stats_init(&r->stats, (int)strlen(letters));
    r->w.cur = &r->stats;
    assert_int_equal(protocol->setup(&r->plan.data, &r->w.context, NULL), 0);
    wb_conn_init(&r->c, &r->job, protocol->request_max(r->w.context), protocol->conn_size);
    protocol->reset(r->w.context, r->c.proto);
}

static void rig_up(struct rig *r, const struct wb_protocol *protocol, const char *letters)
{
    rig_up_version(r, protocol, letters, 2);
}

static void rig_down(struct rig *r)
{
    r->protocol->end(r->w.context);
    wb_conn_release(&r->c);
    wb_stats_release(&r->stats);
    wb_values_release(&r->plan.data.values);
}

static void in_flight(struct rig *r, const char *ops)
{
    for (; *ops; ops++) {
        struct wb_slot *s = &r->c.slots[r->c.tail & r->c.mask];
        const char *at = strchr(r->letters, *ops);
        *s = (struct wb_slot){.written = 1 * WB_MS,
                              .index = r->c.tail,
                              .op = (uint8_t)(at ? at - r->letters : r->protocol->read_op),
                              .phase = WB_PHASE_MEASURE,
                              .flags = *ops == 'v' ? WB_SLOT_VERIFY : 0};
        r->c.tail++;
        r->c.stamped++;
        r->w.live++;
    }
}

/* Feeds text in pieces of n bytes (0: at once), each from a buffer of its own size, so that a
 * read past its end is seen by the sanitizer. */
static int feed(struct rig *r, const char *text, size_t len, size_t n)
{
    int rc = 0;

    for (size_t at = 0; at < len && rc == 0;) {
        size_t k = n == 0 || len - at < n ? len - at : n;
        char *piece = wb_calloc(k, 1);
        memcpy(piece, text + at, k);
        rc = r->protocol->feed(r->w.context, &r->w, &r->c, piece, k);
        free(piece);
        at += k;
    }
    return rc;
}

static void check_replies(const struct wb_protocol *protocol, const char *letters,
                          const struct want *want, const char *text, size_t len)
{
    for (size_t n = 0; n <= len && n < 40; n++) {
        struct rig r;
        const struct wb_phase_stats *ph = &r.stats.phase[WB_PHASE_MEASURE];
        struct wb_phase_sum sum;
        rig_up_version(&r, protocol, letters, want->version ? want->version : 2);
        in_flight(&r, want->ops);
        assert_int_equal(feed(&r, text, len, n), want->rc);
        sum = wb_phase_total(&r.stats, WB_PHASE_MEASURE);
        assert_int_equal(sum.ok, want->ok);
        assert_int_equal(sum.misses, want->misses);
        assert_int_equal(ph->errors[WB_REPLY_SERVER], want->server);
        assert_int_equal(ph->errors[WB_REPLY_PROTOCOL], want->protocol);
        assert_int_equal(ph->errors[WB_REPLY_MISMATCH], want->mismatch);
        assert_int_equal(ph->errors[WB_REPLY_INVALID], want->invalid);
        assert_int_equal(ph->errors[WB_REPLY_UNAUTHORIZED], want->unauthorized);
        assert_int_equal(ph->errors[WB_REPLY_UNAVAILABLE], want->unavailable);
        assert_int_equal(wb_conn_in_flight(&r.c), want->left);
        assert_int_equal(r.w.live, want->left);
        rig_down(&r);
    }
}

/* What the connection says first, whole; then the answer in pieces of every size. The connection is
 * up at its end, or feed returns -1 and the worker has kept the reason. */
static void check_greeting(const struct wb_protocol *protocol, const char *letters, int version,
                           const char *user, const char *password, const char *says,
                           const char *answer, const char *refusal)
{
    size_t len = strlen(answer);

    for (size_t n = 0; n <= len && n < 40; n++) {
        struct rig r;
        struct wb_worker *w = &r.w;
        rig_up_version(&r, protocol, letters, version);
        protocol->end(w->context);
        r.job.cql.user = wb_strdup(user);
        if (password)
            assert_int_equal(setenv("WB_LOAD_PASSWORD", password, 1), 0);
        assert_int_equal(protocol->setup(&r.plan.data, &w->context, NULL), 0);
        assert_int_equal(unsetenv("WB_LOAD_PASSWORD"), 0);
        wb_conn_extend(&r.c, protocol);
        r.c.state = WB_CONN_GREETING;
        protocol->greet(w->context, w, &r.c);
        assert_int_equal(r.c.out_len, strlen(says));
        assert_memory_equal(r.c.out, says, strlen(says));
        assert_int_equal(feed(&r, answer, len, n), refusal ? -1 : 0);
        assert_int_equal(r.c.state, refusal ? WB_CONN_GREETING : WB_CONN_UP);
        if (refusal)
            assert_string_equal(w->refusal, refusal);
        free(r.job.cql.user);
        rig_down(&r);
    }
}

#endif
