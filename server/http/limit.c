#include "server/http/limit.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/digest.h"
#include "server/base/mem.h"

#define BUCKETS 4096 /* a power of two */
#define WAYS 8       /* buckets that one key may be in */
#define MINUTE_NS (60 * WB_SEC)
#define GOOD_NS (3600 * WB_SEC)

enum kind { REQUESTS = 'r', FAILURES = 'f', GOOD = 'g' };
struct bucket {
    uint64_t key; /* 0: free */
    double left;
    int64_t at_ns; /* when `left` was so */
};
struct wb_limiter {
    pthread_mutex_t lock; /* guards all below */
    int64_t requests;
    struct bucket buckets[BUCKETS];
};

struct wb_limiter *wb_limiter_new(int64_t requests)
{
    struct wb_limiter *l = wb_calloc(1, sizeof(*l));

    (void)pthread_mutex_init(&l->lock, NULL);
    l->requests = requests;
    return l;
}

void wb_limiter_free(struct wb_limiter *l)
{
    if (!l)
        return;
    (void)pthread_mutex_destroy(&l->lock);
    free(l);
}

/* Cryptographic, so that nobody can choose names that share a bucket with somebody else's. */
static uint64_t key_of(enum kind kind, const char *who, const char *more)
{
    struct wb_sha256 *d = wb_sha256_new();
    char hex[WB_SHA256_HEX];
    uint64_t key = 0;
    const char tag = (char)kind;

    wb_sha256_add(d, &tag, 1);
    wb_sha256_add(d, who, strlen(who) + 1);
    wb_sha256_add(d, more, strlen(more));
    wb_sha256_end(d, hex);
    for (int i = 0; i < 16; i++)
        key = key << 4 | (uint64_t)(hex[i] <= '9' ? hex[i] - '0' : hex[i] - 'a' + 10);
    return key ? key : 1;
}

/* Its bucket; make: a new one, full, in the place of the oldest. NULL when there is none. */
static struct bucket *find(struct wb_limiter *l, uint64_t key, bool make, double most,
                           int64_t now_ns)
{
    struct bucket *row = &l->buckets[(key % (BUCKETS / WAYS)) * WAYS], *oldest = row;

    for (size_t i = 0; i < WAYS; i++) {
        if (row[i].key == key)
            return &row[i];
        if (!row[i].key || row[i].at_ns < oldest->at_ns)
            oldest = &row[i];
        if (!row[i].key)
            break;
    }
    if (!make)
        return NULL;
    *oldest = (struct bucket){.key = key, .left = most, .at_ns = now_ns};
    return oldest;
}

static void refill(struct bucket *b, int64_t most, int64_t now_ns)
{
    if (now_ns <= b->at_ns)
        return;
    b->left += (double)(now_ns - b->at_ns) / (double)MINUTE_NS * (double)most;
    if (b->left > (double)most)
        b->left = (double)most;
    b->at_ns = now_ns;
}

static void tell(const struct bucket *b, int64_t most, struct wb_limit_state *s)
{
    double lacking = b->left < 1 ? 1 - b->left : (double)most - b->left;

    s->most = most;
    s->left = (int64_t)b->left;
    s->wait_s = (int64_t)(lacking * 60 / (double)most) + 1;
}

bool wb_limiter_take(struct wb_limiter *l, const char *who, int64_t now_ns,
                     struct wb_limit_state *s)
{
    struct bucket *b;
    bool may;

    *s = (struct wb_limit_state){0};
    if (!l->requests)
        return true;
    (void)pthread_mutex_lock(&l->lock);
    b = find(l, key_of(REQUESTS, who, ""), true, (double)l->requests, now_ns);
    refill(b, l->requests, now_ns);
    may = b->left >= 1;
    if (may)
        b->left -= 1;
    tell(b, l->requests, s);
    (void)pthread_mutex_unlock(&l->lock);
    return may;
}

bool wb_limiter_may_try(struct wb_limiter *l, const char *address, const char *token_id,
                        int64_t now_ns, struct wb_limit_state *s)
{
    struct bucket *b, *good;
    bool may = true;

    *s = (struct wb_limit_state){0};
    if (!l->requests)
        return true;
    (void)pthread_mutex_lock(&l->lock);
    b = find(l, key_of(FAILURES, address, ""), false, 0, now_ns);
    good = find(l, key_of(GOOD, address, token_id), false, 0, now_ns);
    if (b && !(good && now_ns - good->at_ns < GOOD_NS)) {
        refill(b, WB_LIMIT_FAILURES, now_ns);
        may = b->left >= 1;
        tell(b, WB_LIMIT_FAILURES, s);
    }
    (void)pthread_mutex_unlock(&l->lock);
    return may;
}

void wb_limiter_failed(struct wb_limiter *l, const char *address, int64_t now_ns)
{
    struct bucket *b;

    (void)pthread_mutex_lock(&l->lock);
    b = find(l, key_of(FAILURES, address, ""), true, WB_LIMIT_FAILURES, now_ns);
    refill(b, WB_LIMIT_FAILURES, now_ns);
    if (b->left >= 1)
        b->left -= 1;
    (void)pthread_mutex_unlock(&l->lock);
}

void wb_limiter_succeeded(struct wb_limiter *l, const char *address, const char *token_id,
                          int64_t now_ns)
{
    struct bucket *b;

    (void)pthread_mutex_lock(&l->lock);
    b = find(l, key_of(GOOD, address, token_id), true, 0, now_ns);
    b->at_ns = now_ns;
    (void)pthread_mutex_unlock(&l->lock);
}
