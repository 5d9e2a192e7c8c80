/*
 * Reading git's loose objects: "objects/xx/yyyy...", a zlib stream of "<type> <size>\0<content>".
 *
 * Done here and not left to libgit2, because its 1.5 series loops for ever on a stream that is cut
 * off and writes past a buffer when the head tells a size that is too small: just what a power
 * cut or a bad disk leaves behind. Plain files, no knowledge of git beyond this form.
 */
#ifndef WB_RECORD_LOOSE_H
#define WB_RECORD_LOOSE_H

#include "server/record/git.h"

struct wb_loose {
    char type[8]; /* "blob", "tree", "commit", "tag" */
    size_t size;  /* bytes of content */
};

/* Path of an object below an objects folder; caller frees. */
char *wb_loose_path(const char *objects, const struct wb_oid *id);
/* Type and size only. WB_NOT_FOUND when there is no such file, WB_CORRUPT. */
int wb_loose_head(const char *objects, const struct wb_oid *id, struct wb_loose *out,
                  struct wb_err *err) WB_MUST_CHECK;
/* The content too, appended to data; exactly size bytes. Whether it matches its id is for the
 * caller to check. At most 2 GiB; data's own bound is set here. */
int wb_loose_read(const char *objects, const struct wb_oid *id, struct wb_loose *out,
                  struct wb_buf *data, struct wb_err *err) WB_MUST_CHECK;

#endif
