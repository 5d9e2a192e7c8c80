/*
 * Tokens of Cassandra's Murmur3Partitioner: where on the ring a partition key lies.
 */
#ifndef WB_LOAD_CQL_MURMUR_H
#define WB_LOAD_CQL_MURMUR_H

#include <stddef.h>
#include <stdint.h>

/* Token of a partition key of n bytes. Its hash is the first half of MurmurHash3 x64 128 with seed
 * 0, but bytes behind the last whole block are signed there, so that the reference implementation
 * gives others (org.apache.cassandra.utils.MurmurHash). The empty key has the smallest token. */
int64_t wb_cql_token(const void *key, size_t n);

#endif
