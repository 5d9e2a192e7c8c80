/*
 * Archives from anyone: the walker refuses or walks them to their end, every member lies inside
 * the file, and the end mark does too.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "provisioners/forms/tar.h"
#include "server/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int ok)
{
    if (!ok)
        abort();
}

static int on_member(void *arg, const struct wb_tar_member *m, struct wb_err *err)
{
    const size_t *size = arg;

    require(strlen(m->path) < WB_TAR_PATH_MAX);
    require(m->size >= 0 && m->offset >= WB_TAR_BLOCK);
    require((uint64_t)m->offset + (uint64_t)m->size <= *size);
    return 0;
}

/* Makes the checksum of each block right, or random bytes would never get past it. */
static void set_checksums(uint8_t *data, size_t size)
{
    for (size_t at = 0; at + WB_TAR_BLOCK <= size; at += WB_TAR_BLOCK) {
        uint8_t *b = data + at;
        unsigned sum = 8 * ' ';
        if (b[257] != 'u')
            continue;
        for (int i = 0; i < WB_TAR_BLOCK; i++)
            sum += i >= 148 && i < 156 ? 0 : b[i];
        for (int i = 153; i >= 148; i--, sum >>= 3)
            b[i] = (uint8_t)('0' + (sum & 7));
        b[154] = 0;
        b[155] = ' ';
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    WB_AUTO_CLOSE int fd = memfd_create("tar", MFD_CLOEXEC);
    uint8_t *copy = wb_calloc(size + 1, 1);
    int64_t end = -1;

    require(fd >= 0);
    memcpy(copy, data, size);
    set_checksums(copy, size);
    require(write(fd, copy, size) == (ssize_t)size);
    free(copy);
    WB_AUTO_FREE char *path = wb_strf("/proc/self/fd/%d", fd);
    if (wb_tar_walk(path, on_member, &size, &end, NULL) == 0)
        require(end >= 0 && end % WB_TAR_BLOCK == 0 && (size_t)end < size);
    return 0;
}
