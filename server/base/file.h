/*
 * Files and folders: durable writes, bounded reads, trees.
 */
#ifndef WB_BASE_FILE_H
#define WB_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "server/base/buf.h"
#include "server/base/err.h"

/* Reads a whole file of at most max bytes into *out (owned by the caller, terminated). */
int wb_file_read(const char *path, size_t max, char **out, size_t *n,
                 struct wb_err *err) WB_MUST_CHECK;
/* The same from an open file; name is for errors. */
int wb_file_read_fd(int fd, const char *name, size_t max, char **out, size_t *n,
                    struct wb_err *err) WB_MUST_CHECK;
/* The same for kernel files whose size reads as 0 (/proc, /sys). */
int wb_file_read_small(const char *path, struct wb_buf *out, struct wb_err *err) WB_MUST_CHECK;
/* One decimal integer in a file such as /sys/fs/cgroup/.../memory.max ("max" gives INT64_MAX). */
int wb_file_read_int(const char *path, int64_t *out, struct wb_err *err) WB_MUST_CHECK;

/* Atomic: writes a temporary name in the same folder, fsyncs, renames, fsyncs the folder. */
int wb_file_write(const char *path, const void *data, size_t n, mode_t mode,
                  struct wb_err *err) WB_MUST_CHECK;
/* Plain open-truncate-write, no sync: for kernel files and scratch. */
int wb_file_put(const char *path, const void *data, size_t n, struct wb_err *err) WB_MUST_CHECK;
/* Appends and fsyncs; creates with mode 0644. */
int wb_file_append(const char *path, const void *data, size_t n, struct wb_err *err) WB_MUST_CHECK;

int wb_mkdir_all(const char *path, mode_t mode,
                 struct wb_err *err) WB_MUST_CHECK; /* like mkdir -p */
/* Removes a tree without following links or crossing mounts; absent is success. */
int wb_remove_tree(const char *path, struct wb_err *err) WB_MUST_CHECK;
bool wb_path_exists(const char *path);
/* *out (caller frees) is path when it starts with a slash, else path under the current folder;
 * nothing is looked up, links and .. stay. WB_IO when the current folder cannot be read. */
int wb_path_absolute(const char *path, char **out, struct wb_err *err) WB_MUST_CHECK;
/* Names in a folder, sorted, without . and ..; at most 100,000. */
struct wb_strv;
int wb_list_dir(const char *path, struct wb_strv *out, struct wb_err *err) WB_MUST_CHECK;
/* Bytes free for this user on the file system of path. */
int wb_disk_free(const char *path, int64_t *bytes, struct wb_err *err) WB_MUST_CHECK;

/* True for names safe as one path component: [A-Za-z0-9][A-Za-z0-9._@-]{0,127}. */
bool wb_safe_name(const char *s);

/* Advisory lock (flock, freed by the kernel when the holder dies). *fd is -1 on failure.
 * WB_CONFLICT when another holds it; the text in the file (who) is part of the error. On success
 * the file's content is replaced by `who`. */
int wb_lock_file(const char *path, const char *who, int *fd, struct wb_err *err) WB_MUST_CHECK;
/* Whether the lock is held: WB_CONFLICT as above, WB_NOT_FOUND when there is no such file. Nothing
 * is written. Others who look are not in the way; who takes the lock in just this moment is. */
int wb_lock_look(const char *path, struct wb_err *err) WB_MUST_CHECK;

#endif
