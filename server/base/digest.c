#include "server/base/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/mem.h"

#define CHUNK 65536
#define SHA1_BYTES 20

struct wb_sha256 {
    EVP_MD_CTX *ctx;
};

/* SHA-256 in memory fails only when memory is out or the library is broken. */
static void must(int ok)
{
    if (ok != 1) {
        fputs("weighbridge: SHA-256 of OpenSSL does not work\n", stderr);
        abort();
    }
}

struct wb_sha256 *wb_sha256_new(void)
{
    struct wb_sha256 *d = wb_calloc(1, sizeof(*d));

    d->ctx = EVP_MD_CTX_new();
    must(d->ctx != NULL && EVP_DigestInit_ex(d->ctx, EVP_sha256(), NULL) == 1);
    return d;
}

void wb_sha256_add(struct wb_sha256 *d, const void *data, size_t n)
{
    must(EVP_DigestUpdate(d->ctx, data, n));
}

void wb_sha256_end(struct wb_sha256 *d, char hex[WB_SHA256_HEX])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char md[EVP_MAX_MD_SIZE];
    unsigned int n = 0;

    must(EVP_DigestFinal_ex(d->ctx, md, &n) == 1 && n == (WB_SHA256_HEX - 1) / 2);
    for (unsigned int i = 0; i < n; i++) {
        hex[2 * i] = digits[md[i] >> 4];
        hex[2 * i + 1] = digits[md[i] & 15];
    }
    hex[WB_SHA256_HEX - 1] = '\0';
    EVP_MD_CTX_free(d->ctx);
    free(d);
}

void wb_sha256_of(const void *data, size_t n, char hex[WB_SHA256_HEX])
{
    struct wb_sha256 *d = wb_sha256_new();

    wb_sha256_add(d, data, n);
    wb_sha256_end(d, hex);
}

int wb_sha256_file(const char *path, char hex[WB_SHA256_HEX], struct wb_err *err)
{
    WB_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    WB_AUTO_FREE unsigned char *chunk = NULL;
    char digest[WB_SHA256_HEX];
    struct wb_sha256 *d;
    ssize_t n;
    int sys;

    if (fd < 0)
        return wb_fail_sys(err, errno, "opening %s", path);
    chunk = wb_calloc(CHUNK, 1);
    d = wb_sha256_new();
    while ((n = read(fd, chunk, CHUNK)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0)
            wb_sha256_add(d, chunk, (size_t)n);
    sys = errno;
    wb_sha256_end(d, digest);
    if (n < 0)
        return wb_fail_sys(err, sys, "reading %s", path);
    for (size_t i = 0; i < sizeof(digest); i++)
        hex[i] = digest[i];
    return 0;
}

int wb_sha1_trailer(const char *path, struct wb_err *err)
{
    WB_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    WB_AUTO_FREE unsigned char *chunk = wb_calloc(CHUNK, 1);
    unsigned char md[EVP_MAX_MD_SIZE], end[SHA1_BYTES];
    off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END), at = 0;
    EVP_MD_CTX *ctx;
    ssize_t n = 1;

    if (size < 0)
        return wb_fail_sys(err, errno, "opening %s", path);
    if (size < SHA1_BYTES || pread(fd, end, SHA1_BYTES, size - SHA1_BYTES) != SHA1_BYTES)
        return wb_fail(err, WB_CORRUPT, "%s is cut off", path);
    ctx = EVP_MD_CTX_new();
    must(ctx != NULL && EVP_DigestInit_ex(ctx, EVP_sha1(), NULL) == 1);
    for (; n > 0 && at < size - SHA1_BYTES; at += n) {
        off_t left = size - SHA1_BYTES - at;

        n = pread(fd, chunk, left < CHUNK ? (size_t)left : CHUNK, at);
        if (n > 0)
            must(EVP_DigestUpdate(ctx, chunk, (size_t)n));
    }
    must(EVP_DigestFinal_ex(ctx, md, NULL));
    EVP_MD_CTX_free(ctx);
    if (n < 0)
        return wb_fail_sys(err, errno, "reading %s", path);
    if (n == 0 || memcmp(md, end, SHA1_BYTES) != 0)
        return wb_fail(err, WB_CORRUPT, "%s does not match the digest at its end", path);
    return 0;
}
