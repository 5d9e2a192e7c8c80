/*
 * Tar archives (POSIX.1-2001 ustar with pax records): a deterministic writer for what images are
 * made of, and a walker over archives of others.
 *
 * The same tree gives the same bytes on every machine: sorted by path, owner 0:0, one time stamp,
 * no user names. Written here and not with an archive library because exactly this is needed and
 * nothing else: folders, plain files and links.
 */
#ifndef WB_FORMS_TAR_H
#define WB_FORMS_TAR_H

#include <stddef.h>
#include <stdint.h>

#include "server/base/err.h"

#define WB_TAR_BLOCK 512
#define WB_TAR_MEMBERS_MAX 200000
#define WB_TAR_PATH_MAX 4096
#define WB_TAR_DEPTH_MAX 48 /* less than wb_remove_tree takes */

/* Where written bytes go; < 0 after setting err ends the writing with it. */
typedef int (*wb_tar_sink_fn)(void *arg, const void *data, size_t n, struct wb_err *err);

struct wb_tar {
    wb_tar_sink_fn sink;
    void *arg;
    int64_t members; /* so far */
    int64_t bytes;
};

/* A folder member `path` ("wb/data") with mode (07777 bits). */
int wb_tar_add_dir(struct wb_tar *t, const char *path, unsigned mode,
                   struct wb_err *err) WB_MUST_CHECK;
/* A file member from memory. */
int wb_tar_add_file(struct wb_tar *t, const char *path, unsigned mode, const void *data, size_t n,
                    struct wb_err *err) WB_MUST_CHECK;
/* Everything below folder `from` as members below `path`, the folder itself included. Links are
 * kept as links and never followed; hard links become copies. Anything else (device, socket, pipe)
 * is WB_INVALID; a file that changes its size meanwhile is WB_CONFLICT. */
int wb_tar_add_tree(struct wb_tar *t, const char *from, const char *path,
                    struct wb_err *err) WB_MUST_CHECK;
/* The end mark. */
int wb_tar_end(struct wb_tar *t, struct wb_err *err) WB_MUST_CHECK;

struct wb_tar_member {
    char path[WB_TAR_PATH_MAX]; /* without "./" in front and '/' at the end */
    char type;                  /* '0' file, '1' hard link, '2' link, '5' folder, ... */
    int64_t offset;             /* of the contents in the archive */
    int64_t size;
};
/* Called for each member; > 0 stops the walk without error, < 0 with it. */
typedef int (*wb_tar_member_fn)(void *arg, const struct wb_tar_member *m, struct wb_err *err);

/* Walks an archive in a file and checks every header. *end (may be NULL) becomes the offset of its
 * end mark, so that members can be added after it. WB_CORRUPT for what is no tar archive, or one
 * that is cut off. */
int wb_tar_walk(const char *file, wb_tar_member_fn member, void *arg, int64_t *end,
                struct wb_err *err) WB_MUST_CHECK;

#endif
