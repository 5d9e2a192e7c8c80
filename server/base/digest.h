/*
 * SHA-256, from OpenSSL (the only file with its headers in server/base).
 */
#ifndef WB_BASE_DIGEST_H
#define WB_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "server/base/err.h"

#define WB_SHA256_HEX 65 /* 64 lower-case hex digits and the terminator */

struct wb_sha256; /* running digest */
struct wb_sha256 *wb_sha256_new(void);
void wb_sha256_add(struct wb_sha256 *d, const void *data, size_t n);
void wb_sha256_end(struct wb_sha256 *d, char hex[WB_SHA256_HEX]); /* frees d */

void wb_sha256_of(const void *data, size_t n, char hex[WB_SHA256_HEX]);
int wb_sha256_file(const char *path, char hex[WB_SHA256_HEX], struct wb_err *err) WB_MUST_CHECK;

/* WB_CORRUPT unless the last 20 bytes of a file are the SHA-1 of all before them: git's packs and
 * what belongs to them end like this. */
int wb_sha1_trailer(const char *path, struct wb_err *err) WB_MUST_CHECK;

#endif
