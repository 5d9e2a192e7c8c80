#include "server/record/pack.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/record/gitrun.h"
#include "server/record/locks.h"

#define LOOSE_DUE 6000     /* objects, as git itself has it */
#define SAMPLE_FOLDER "17" /* ids are even: one folder of 256 tells of all */
#define PACK_LIMIT_NS (3600 * WB_SEC)

/* Files in a folder that end with `end`. */
static int count_files(const struct wb_store *s, const char *below, const char *end, size_t *n,
                       struct wb_err *err)
{
    WB_AUTO_FREE char *dir = wb_strf("%s/objects/%s", s->path, below);
    struct wb_strv names = {0};
    int rc = wb_path_exists(dir) ? wb_list_dir(dir, &names, err) : 0;
    size_t len = strlen(end);

    *n = 0;
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        size_t k = strlen(names.v[i]);

        *n += k >= len && !strcmp(names.v[i] + k - len, end);
    }
    wb_strv_release(&names);
    return rc;
}

static int look(const struct wb_store *s, struct wb_pack_report *out, struct wb_err *err)
{
    int rc = count_files(s, SAMPLE_FOLDER, "", &out->loose, err);

    out->loose *= 256;
    return rc < 0 ? rc : count_files(s, "pack", ".pack", &out->packs, err);
}

int wb_store_pack(struct wb_store *s, bool now, const struct wb_cancel *cancel,
                  struct wb_pack_report *out, struct wb_err *err)
{
    static const char *const args[] = {"repack", "-d", "-l", "-q", "--geometric=2"};
    WB_AUTO_FREE char *lock_path = wb_strf("%s/weighbridge.pack.lock", s->path);
    struct wb_git_run run = {.limit_ns = PACK_LIMIT_NS, .gentle = true, .cancel = cancel};
    struct wb_pack_report report = {0};
    WB_AUTO_CLOSE int lock = -1;
    int rc = look(s, &report, err);

    if (rc == 0 && (now || report.loose >= LOOSE_DUE)) {
        rc = wb_lock_wait(lock_path, 0, &lock, err);
        report.done = rc == 0;
        if (rc == -WB_CONFLICT)
            rc = 0; /* somebody is at it */
    }
    if (rc == 0 && report.done) {
        for (size_t i = 0; i < WB_LEN(args); i++)
            wb_strv_add(&run.args, args[i]);
        rc = wb_git_run_check(s, &run, err);
        if (rc == 0)
            rc = look(s, &report, err);
    }
    if (rc == 0)
        *out = report;
    return rc < 0 ? wb_wrap(err, "packing") : 0;
}
