/*
 * The root file system of a distribution, made from its packages: what images (and later virtual
 * machines) stand on. No image registry is asked; mmdebstrap takes the packages from the mirrors
 * this machine's apt is set up with and checks their signatures.
 *
 * Kept in a folder and used again until it is deleted, so that a comparison of tonight stands on
 * the same base as that of last week; the package versions are in its manifest.
 */
#ifndef WB_FORMS_ROOTFS_H
#define WB_FORMS_ROOTFS_H

#include "server/base/cancel.h"
#include "server/base/err.h"
#include "server/base/json.h"

struct wb_rootfs {
    char *tar;      /* path of the archive */
    wb_json *facts; /* {suite, variant, sha256, bytes, libc, packages: {name: version}} */
};

struct wb_rootfs_request {
    const char *cache_dir;
    const char *suite; /* "bookworm" */
    const struct wb_cancel *cancel;
    void (*note)(void *arg, const char *text); /* may be NULL */
    void *note_arg;
};

/* Finds or makes it; idempotent. Slow when it must be made (tens of seconds). */
int wb_rootfs_make(const struct wb_rootfs_request *q, struct wb_rootfs *out,
                   struct wb_err *err) WB_MUST_CHECK;
void wb_rootfs_release(struct wb_rootfs *r);
/* Whether it can be had here: one is kept in cache_dir, or the tool to make one is installed. */
int wb_rootfs_check(const char *cache_dir, struct wb_err *err) WB_MUST_CHECK;

#endif
