/*
 * Which key an operation uses: a pure function of (law, seed, index of the operation), so that
 * threads and hosts need no shared state and a run can be repeated.
 */
#ifndef WB_LOAD_KEYS_H
#define WB_LOAD_KEYS_H

#include <stdint.h>
#include <string.h>

#include "runners/load/job.h"

#define WB_KEY_BYTES_MAX 1024

struct wb_keys {
    struct wb_key_law law;
    uint64_t n; /* key space 0..n-1 */
    uint64_t seed;
    uint32_t bytes;  /* of the key's text */
    uint32_t digits; /* of the largest key */
    uint16_t crc;    /* CRC-16/XMODEM of the part of the text before the digits */
    /* Zipf by rejection-inversion (Hörmann and Derflinger 1996): constants of the hat. */
    double h_first, h_last, shift;
    uint64_t below; /* HOTSPOT, ABSENT: what is drawn when a second hash is below it */
    uint64_t hot;   /* HOTSPOT: the first so many keys, 1..n */
    double span;    /* EXPONENTIAL: of the distribution function up to n */
    /* Scatters ranks over the key space: a Feistel permutation of `half_bits` twice. */
    unsigned half_bits;
};

/* How many keys a job can name: those that are never loaded have the numbers behind the others. */
static inline uint64_t wb_keys_named(const struct wb_load_job *job)
{
    return (uint64_t)job->keys * (job->key_law.choice == WB_LOAD_ABSENT ? 2 : 1);
}

/* Fewest bytes that hold every key of a space of n. */
uint32_t wb_keys_bytes_min(uint64_t n);
/* bytes >= wb_keys_bytes_min(n), <= WB_KEY_BYTES_MAX. */
void wb_keys_init(struct wb_keys *k, const struct wb_load_job *job);

uint64_t wb_keys_drawn(const struct wb_keys *k, uint64_t index); /* the laws that cost more */
/* A bijection of 0..n-1. */
uint64_t wb_keys_scatter(const struct wb_keys *k, uint64_t rank);
/* 64 random bits for an index; one multiply-xor hash, inlined for the hot path. */
static inline uint64_t wb_keys_hash(uint64_t seed, uint64_t index)
{
    uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15ull;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/* Key of operation `index`. */
static inline uint64_t wb_keys_at(const struct wb_keys *k, uint64_t index)
{
    if (k->law.choice == WB_LOAD_UNIFORM)
        return (uint64_t)(((unsigned __int128)wb_keys_hash(k->seed, index) * k->n) >> 64);
    if (k->law.choice == WB_LOAD_SEQUENTIAL)
        return index % k->n;
    return wb_keys_drawn(k, index);
}

/* CRC-16/XMODEM (polynomial 0x1021, from the highest bit, start 0) going on from crc. */
uint16_t wb_crc16(uint16_t crc, const char *text, size_t n);
/* A normal deviate, the same for the same hash; by Box and Muller. */
double wb_keys_normal(uint64_t hash);
/* Writes the text of a key: 'k' and the number, zero-padded to `bytes`. */
void wb_keys_text(const struct wb_keys *k, uint64_t key, char *out);

/* Writes the last k->digits digits of a key so that they end before `end`: the part that differs
 * between keys, for requests that are copied from a template. Their number does not depend on the
 * key, so there is no branch to mispredict. */
static inline void wb_keys_digits(const struct wb_keys *k, uint64_t key, char *end)
{
    static const char pairs[200] = "00010203040506070809101112131415161718192021222324"
                                   "25262728293031323334353637383940414243444546474849"
                                   "50515253545556575859606162636465666768697071727374"
                                   "75767778798081828384858687888990919293949596979899";
    uint32_t left = k->digits;

    for (; left >= 2; left -= 2, key /= 100) {
        end -= 2;
        memcpy(end, pairs + key % 100 * 2, 2);
    }
    if (left)
        end[-1] = (char)('0' + key);
}

#endif
