#include "runners/load/keys.h"

#include <math.h>

#include "server/base/rng.h"

uint32_t wb_keys_bytes_min(uint64_t n)
{
    uint32_t digits = 1;

    for (uint64_t last = n > 0 ? n - 1 : 0; last >= 10; last /= 10)
        digits++;
    return digits + 1;
}

/* Integral of x^-s from 1, the hat of the Zipf law, and its inverse. expm1 and log1p keep the
 * neighbourhood of s = 1 exact. */
static double hat(double s, double x)
{
    double l = log(x), e = (1 - s) * l;

    return fabs(e) > 1e-8 ? expm1(e) / (1 - s) : l * (1 + e / 2);
}

static double hat_inverse(double s, double y)
{
    double e = y * (1 - s);

    if (e < -1)
        e = -1;
    return exp(fabs(e) > 1e-8 ? log1p(e) / (1 - s) : y * (1 - e / 2));
}

uint16_t wb_crc16(uint16_t crc, const char *text, size_t n)
{
    /* By half bytes: what the four highest bits of the register add. */
    static const uint16_t half[16] = {0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5,
                                      0x60c6, 0x70e7, 0x8108, 0x9129, 0xa14a, 0xb16b,
                                      0xc18c, 0xd1ad, 0xe1ce, 0xf1ef};

    for (size_t i = 0; i < n; i++) {
        uint8_t c = (uint8_t)text[i];

        crc = (uint16_t)(crc << 4 ^ half[(crc >> 12 ^ c >> 4) & 15]);
        crc = (uint16_t)(crc << 4 ^ half[(crc >> 12 ^ c) & 15]);
    }
    return crc;
}

void wb_keys_init(struct wb_keys *k, const struct wb_load_job *job)
{
    char text[WB_KEY_BYTES_MAX];
    const struct wb_key_law *l = &job->key_law;
    double s = l->exponent, share = l->share >= 1 ? 1 : l->share;
    unsigned bits = 0;

    *k = (struct wb_keys){.law = *l,
                          .n = (uint64_t)job->keys,
                          .seed = wb_mix64((uint64_t)job->seed, 'k'),
                          .bytes = (uint32_t)job->key_bytes,
                          .digits = wb_keys_bytes_min(wb_keys_named(job)) - 1};
    if (l->choice == WB_LOAD_ZIPF || l->choice == WB_LOAD_LATEST) {
        k->h_first = hat(s, 1.5) - 1;
        k->h_last = hat(s, (double)k->n + 0.5);
        k->shift = 2 - hat_inverse(s, hat(s, 2.5) - pow(2, -s));
    }
    if (l->choice == WB_LOAD_EXPONENTIAL)
        k->span = -expm1(-1 / l->width);
    k->hot = (uint64_t)(l->hot * (double)k->n);
    k->hot = k->hot < 1 ? 1 : k->hot > k->n ? k->n : k->hot;
    while (bits < 64 && ((uint64_t)1 << bits) < k->n)
        bits++;
    k->half_bits = bits < 2 ? 1 : (bits + 1) / 2;
    wb_keys_text(k, 0, text);
    k->crc = wb_crc16(0, text, k->bytes - k->digits);
    k->below = share >= 1 ? UINT64_MAX : (uint64_t)(share * 0x1p64);
}

uint64_t wb_keys_scatter(const struct wb_keys *k, uint64_t rank)
{
    uint64_t mask = ((uint64_t)1 << k->half_bits) - 1;

    if (k->n < 2)
        return 0;
    do { /* at most 4 times as wide as n: on average fewer than 4 walks */
        uint64_t left = rank >> k->half_bits, right = rank & mask;
        for (uint64_t round = 0; round < 4; round++) {
            uint64_t next = left ^ (wb_keys_hash(k->seed + round, right) & mask);
            left = right;
            right = next;
        }
        rank = left << k->half_bits | right;
    } while (rank >= k->n);
    return rank;
}

static double unit(uint64_t hash) /* [0, 1) */
{
    return (double)(hash >> 11) * 0x1p-53;
}

static uint64_t evenly(uint64_t hash, uint64_t n)
{
    return (uint64_t)(((unsigned __int128)hash * n) >> 64);
}

double wb_keys_normal(uint64_t hash)
{
    double u = 1 - unit(hash), v = unit(wb_keys_hash(hash, 1)); /* u > 0 */

    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

/* The rank from 0. */
static uint64_t zipf(const struct wb_keys *k, uint64_t index)
{
    uint64_t state = wb_keys_hash(k->seed, index);

    for (uint64_t attempt = 0;; attempt++) {
        double u = unit(wb_keys_hash(state, attempt));
        double y = k->h_last + u * (k->h_first - k->h_last);
        double x = hat_inverse(k->law.exponent, y);
        double rank = floor(x + 0.5);
        if (rank < 1)
            rank = 1;
        if (rank > (double)k->n)
            rank = (double)k->n;
        if (rank - x <= k->shift ||
            y >= hat(k->law.exponent, rank + 0.5) - exp(-log(rank) * k->law.exponent))
            return (uint64_t)rank - 1;
    }
}

static uint64_t absent(const struct wb_keys *k, uint64_t index)
{
    uint64_t key = evenly(wb_keys_hash(k->seed, index), k->n);

    return wb_keys_hash(~k->seed, index) < k->below ? key + k->n : key;
}

/* What falls outside of the key space is drawn again. */
static uint64_t gaussian(const struct wb_keys *k, uint64_t index)
{
    double n = (double)k->n;
    uint64_t state = wb_keys_hash(k->seed, index);

    for (uint64_t attempt = 0;; attempt++) {
        double x = n / 2 + k->law.width * n * wb_keys_normal(wb_keys_hash(state, attempt));
        if (x >= 0 && x < n)
            return (uint64_t)x;
    }
}

/* The exponential law up to n, by its inverse. */
static uint64_t exponential(const struct wb_keys *k, uint64_t index)
{
    double u = unit(wb_keys_hash(k->seed, index));
    uint64_t key = (uint64_t)(-k->law.width * log1p(-u * k->span) * (double)k->n);

    return key < k->n ? key : k->n - 1;
}

static uint64_t hotspot(const struct wb_keys *k, uint64_t index)
{
    uint64_t h = wb_keys_hash(k->seed, index);

    if (k->hot == k->n || wb_keys_hash(~k->seed, index) < k->below)
        return evenly(h, k->hot);
    return k->hot + evenly(h, k->n - k->hot);
}

static uint64_t in_order(const struct wb_keys *k, uint64_t index)
{
    switch (k->law.choice) {
    case WB_LOAD_ZIPF:
        return zipf(k, index);
    case WB_LOAD_LATEST:
        return k->n - 1 - zipf(k, index);
    case WB_LOAD_GAUSSIAN:
        return gaussian(k, index);
    case WB_LOAD_EXPONENTIAL:
        return exponential(k, index);
    case WB_LOAD_HOTSPOT:
        return hotspot(k, index);
    default:
        return absent(k, index);
    }
}

uint64_t wb_keys_drawn(const struct wb_keys *k, uint64_t index)
{
    uint64_t key = in_order(k, index);

    return k->law.scatter ? wb_keys_scatter(k, key) : key;
}

void wb_keys_text(const struct wb_keys *k, uint64_t key, char *out)
{
    memset(out, '0', k->bytes);
    out[0] = 'k';
    wb_keys_digits(k, key, out + k->bytes);
}
