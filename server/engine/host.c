#include "server/engine/host.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/mem.h"
#include "server/base/units.h"

#define LOOK_AGAIN_NS (100 * WB_MS)
#define LOOKER_NS (50 * WB_MS) /* long enough for one who only looked to be gone */
#define NOTE_MAX (1u << 20)

int wb_host_lock(const char *dir, const char *who, const struct wb_host_wait *wait, int *fd,
                 struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("%s/host.lock", dir);
    int64_t end;
    struct wb_err busy = WB_ERR_INIT;
    bool told = false;
    int rc = wb_mkdir_all(dir, 0755, err);

    if (rc < 0)
        return wb_wrap(err, "host lock (are you root?)");
    rc = wb_lock_file(path, who, fd, &busy);
    if (rc == 0)
        return 0;
    if (rc == -WB_CONFLICT && wb_wait(wait ? wait->cancel : NULL, -1, LOOKER_NS, err) < 0)
        return wb_wrap(err, "waiting for this host (%s)", busy.root);
    end = wb_now_ns(NULL) + (wait ? wait->ns : 0);
    while ((rc = wb_lock_file(path, who, fd, &busy)) == -WB_CONFLICT && wb_now_ns(NULL) < end) {
        if (!told && wait->note) {
            WB_AUTO_FREE char *text = wb_strf("waiting for this host: %s", busy.root);

            wait->note(wait->arg, text);
        }
        told = true;
        if (wb_wait(wait->cancel, -1, LOOK_AGAIN_NS, err) < 0)
            return wb_wrap(err, "waiting for this host (%s)", busy.root);
    }
    if (rc == 0)
        return 0;
    if (err)
        *err = busy;
    return rc == -WB_CONFLICT
               ? wb_wrap(err, "this host is busy; wait for it (--wait-for-host) or stop it")
               : wb_wrap(err, "host lock (are you root?)");
}

int wb_host_look(const char *dir, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("%s/host.lock", dir);
    struct wb_err why = WB_ERR_INIT;
    int rc = wb_lock_look(path, &why);

    if (rc == 0 || rc == -WB_NOT_FOUND) /* nobody has ever used it */
        return 0;
    if (err)
        *err = why;
    return rc;
}

int wb_host_pin(const char *cpus, struct wb_err *err)
{
    cpu_set_t set;
    int *v = NULL, n = 0;
    int rc = wb_parse_cpulist(cpus, &v, &n, err);

    CPU_ZERO(&set);
    for (int i = 0; rc == 0 && i < n; i++)
        if (v[i] < CPU_SETSIZE)
            CPU_SET((size_t)v[i], &set);
    free(v);
    if (rc == 0 && sched_setaffinity(0, sizeof(set), &set) < 0)
        rc = wb_fail_sys(err, errno, "cannot move to CPUs %s", cpus);
    return rc;
}

/* DIR/KIND/NAME.json; NULL for a name that cannot be part of a path. */
static char *note_path(const char *dir, const char *kind, const char *name)
{
    return wb_safe_name(name) ? wb_strf("%s/%s/%s.json", dir, kind, name) : NULL;
}

static int write_note(const char *dir, const char *kind, const char *name, const wb_json *note,
                      struct wb_err *err)
{
    WB_AUTO_FREE char *folder = wb_strf("%s/%s", dir, kind);
    WB_AUTO_FREE char *path = note_path(dir, kind, name);
    struct wb_buf b = WB_BUF_INIT(NOTE_MAX);
    int rc;

    if (!path)
        return wb_fail(err, WB_INVALID, "'%s' cannot be the name of a file", name);
    rc = wb_mkdir_all(folder, 0755, err);
    wb_json_pretty(note, &b);
    if (rc == 0)
        rc = wb_buf_check(&b, path, err);
    if (rc == 0)
        rc = wb_file_write(path, wb_buf_str(&b), b.len, 0644, err);
    wb_buf_release(&b);
    return rc;
}

static int remove_note(const char *dir, const char *kind, const char *name, struct wb_err *err)
{
    WB_AUTO_FREE char *path = note_path(dir, kind, name);

    if (path && unlink(path) < 0 && errno != ENOENT)
        return wb_fail_sys(err, errno, "cannot remove %s", path);
    return 0;
}

/* NULL when there is none; one that cannot be read is an empty object. */
static wb_json *read_note(const char *dir, const char *kind, const char *name)
{
    WB_AUTO_FREE char *path = note_path(dir, kind, name);
    wb_json *j = NULL;

    if (!path || !wb_path_exists(path))
        return NULL;
    return wb_json_read_file(path, NOTE_MAX, &j, NULL) == 0 ? j : wb_json_object();
}

/* All notes of a kind, each with "file", its name. */
static int all_notes(const char *dir, const char *kind, wb_json **out, struct wb_err *err)
{
    WB_AUTO_FREE char *folder = wb_strf("%s/%s", dir, kind);
    struct wb_strv names = {0};
    int rc = wb_path_exists(folder) ? wb_list_dir(folder, &names, err) : 0;

    if (rc == 0)
        *out = wb_json_array();
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        size_t n = strlen(names.v[i]);
        WB_AUTO_FREE char *name =
            n > 5 && !strcmp(names.v[i] + n - 5, ".json") ? wb_strndup(names.v[i], n - 5) : NULL;
        wb_json *note = name ? read_note(dir, kind, name) : NULL;

        if (!note)
            continue; /* a temporary name, or gone meanwhile */
        wb_json_set_str(note, "file", name);
        wb_json_push(*out, note);
    }
    wb_strv_release(&names);
    return rc;
}

int wb_run_mark(const char *dir, const wb_json *mark, struct wb_err *err)
{
    return write_note(dir, "runs", wb_json_str_or(mark, "run", ""), mark, err);
}

int wb_run_unmark(const char *dir, const char *run, struct wb_err *err)
{
    return remove_note(dir, "runs", run, err);
}

wb_json *wb_run_marked(const char *dir, const char *run)
{
    return read_note(dir, "runs", run);
}

int wb_run_marks(const char *dir, wb_json **out, struct wb_err *err)
{
    return all_notes(dir, "runs", out, err);
}

int wb_quarantine_set(const char *dir, const wb_json *note, struct wb_err *err)
{
    return write_note(dir, "quarantine", wb_json_str_or(note, "owner", ""), note, err);
}

int wb_quarantine_lift(const char *dir, const char *owner, struct wb_err *err)
{
    return remove_note(dir, "quarantine", owner, err);
}

wb_json *wb_quarantine_of(const char *dir, const char *owner)
{
    return read_note(dir, "quarantine", owner);
}

int wb_quarantine_check(const char *dir, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *all = NULL;
    struct wb_buf left = WB_BUF_INIT(WB_ERR_TEXT_MAX / 2);
    WB_AUTO_FREE char *whose = NULL;
    const wb_json *q, *list;
    const char *store;
    int rc = all_notes(dir, "quarantine", &all, err);

    if (rc < 0 || wb_json_len(all) == 0)
        return rc;
    q = wb_json_at(all, 0);
    list = wb_json_get(q, "left");
    for (size_t i = 0; i < wb_json_len(list); i++)
        wb_buf_addf(&left, "%s%s", i ? "; " : "", wb_json_string(wb_json_at(list, i)));
    store = wb_json_str_or(q, "store", "");
    whose = wb_path_exists(store) ? wb_strf("--store %s", store)
                                  : wb_strf("--owner %s", wb_json_str_or(q, "file", "OWNER"));
    rc = wb_fail(err, WB_CONFLICT,
                 "this host is in quarantine since %s: run %s of campaign %s could not be cleaned "
                 "up (%s). Put that right (start its container engine again), then `weighbridge "
                 "clean %s`; if that engine is gone for good, remove %s/quarantine/%s.json",
                 wb_json_str_or(q, "since", "some time"), wb_json_str_or(q, "run", "(unknown)"),
                 wb_json_str_or(q, "campaign", "(unknown)"), left.len ? left.data : "no details",
                 whose, dir, wb_json_str_or(q, "file", ""));
    wb_buf_release(&left);
    return rc;
}
