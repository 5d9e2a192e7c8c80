/*
 * git's loose objects: files "objects/xx/yyyy...", each a zlib stream of "<type>
 * <size>\0<content>".
 *
 * Reading is done here and not left to libgit2, because its 1.5 series loops for ever on a stream
 * that is cut off and writes past a buffer when the head tells a size that is too small: just what
 * a power cut or a bad disk leaves behind. Writing is done here because it can then be one plain
 * file, without a folder and a temporary name for each. Nothing is known of git beyond this form.
 */
#ifndef WB_RECORD_LOOSE_H
#define WB_RECORD_LOOSE_H

#include "server/record/git.h"

struct wb_loose {
    char type[8]; /* "blob", "tree", "commit", "tag" */
    size_t size;  /* bytes of content */
};

/* Path of an object below an objects folder; flat: right in a folder, under its whole name. Caller
 * frees. */
char *wb_loose_path(const char *objects, const struct wb_oid *id, bool flat);
/* Type and size only. WB_NOT_FOUND when there is no such file, WB_CORRUPT. */
int wb_loose_head(const char *path, struct wb_loose *out, struct wb_err *err) WB_MUST_CHECK;
/* The content too, exactly size bytes; data is set up here and empty on failure. Whether it
 * matches its id is for the caller to check. At most 2 GiB. */
int wb_loose_read(const char *path, struct wb_loose *out, struct wb_buf *data,
                  struct wb_err *err) WB_MUST_CHECK;
/* Writes a new file, not synced; an existing one is an error. */
int wb_loose_write(const char *path, const char *type, const void *data, size_t n,
                   struct wb_err *err) WB_MUST_CHECK;

#endif
