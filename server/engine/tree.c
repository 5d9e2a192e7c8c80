#include "server/engine/tree.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/file.h"
#include "server/base/mem.h"

#define DEPTH_MAX 64

static int add_entry(struct wb_sha256 *d, const char *path, const char *shown,
                     const struct stat *st, struct wb_err *err)
{
    char hex[WB_SHA256_HEX] = "", link[4096];
    WB_AUTO_FREE char *head = NULL;
    char type;
    ssize_t n;
    int rc;

    if (S_ISDIR(st->st_mode)) {
        type = 'd';
    } else if (S_ISREG(st->st_mode)) {
        type = 'f';
        rc = wb_sha256_file(path, hex, err);
        if (rc < 0)
            return rc;
    } else if (S_ISLNK(st->st_mode)) {
        type = 'l';
        n = readlink(path, link, sizeof(link));
        if (n < 0)
            return wb_fail_sys(err, errno, "cannot read the link %s", path);
        wb_sha256_of(link, (size_t)n, hex);
    } else {
        return wb_fail(err, WB_UNSUPPORTED, "%s is neither file, folder nor symbolic link", path);
    }
    /* A link has no mode of its own. The path comes last and ends with a NUL: no two different
     * trees give the same bytes. */
    head =
        wb_strf("%c %04o %s %s", type, type == 'l' ? 0 : (unsigned)st->st_mode & 07777, hex, shown);
    wb_sha256_add(d, head, strlen(head) + 1);
    return 0;
}

static int digest_folder(struct wb_sha256 *d, const char *dir, const char *shown, int depth,
                         struct wb_err *err)
{
    struct wb_strv names = {0};
    int rc = 0;

    if (depth > DEPTH_MAX)
        return wb_fail(err, WB_LIMIT, "%s: folders are nested deeper than %d", dir, DEPTH_MAX);
    rc = wb_list_dir(dir, &names, err);
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        WB_AUTO_FREE char *path = wb_strf("%s/%s", dir, names.v[i]);
        WB_AUTO_FREE char *rel = wb_strf("%s%s%s", shown, *shown ? "/" : "", names.v[i]);
        struct stat st;

        if (lstat(path, &st) < 0)
            rc = wb_fail_sys(err, errno, "cannot look at %s", path);
        if (rc == 0)
            rc = add_entry(d, path, rel, &st, err);
        if (rc == 0 && S_ISDIR(st.st_mode))
            rc = digest_folder(d, path, rel, depth + 1, err);
    }
    wb_strv_release(&names);
    return rc;
}

int wb_tree_digest(const char *root, char hex[WB_SHA256_HEX], struct wb_err *err)
{
    struct wb_sha256 *d = wb_sha256_new();
    char all[WB_SHA256_HEX];
    int rc = digest_folder(d, root, "", 0, err);

    wb_sha256_end(d, all);
    if (rc < 0) {
        (void)wb_wrap(err, "digest of %s", root);
        return rc;
    }
    memcpy(hex, all, sizeof(all));
    return 0;
}
