#include "server/engine/leftovers.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/file.h"
#include "server/base/job.h"
#include "server/base/units.h"
#include "server/engine/host.h"

#define TCP_LISTEN 10 /* state 0A in /proc/net/tcp */

/* Calls fn for each listening port of one kernel table. */
static int each_listener(const char *path, void (*fn)(void *arg, int port), void *arg,
                         struct wb_err *err)
{
    struct wb_buf b = WB_BUF_INIT(16u << 20);
    int rc = wb_file_read_small(path, &b, err);

    if (rc < 0) {
        wb_buf_release(&b);
        return rc == -WB_NOT_FOUND ? 0 : rc; /* no IPv6 */
    }
    for (const char *line = strchr(wb_buf_str(&b), '\n'); line; line = strchr(line, '\n')) {
        /* "  sl: LOCALADDR:PORT REMOTE:PORT ST ..." in hexadecimal (proc(5)) */
        const char *colon, *state;
        long port;

        line++;
        colon = strchr(line, ':');
        colon = colon ? strchr(colon + 1, ':') : NULL;
        if (!colon)
            break;
        port = strtol(colon + 1, NULL, 16);
        state = strchr(colon, ' ');
        state = state ? strchr(state + 1, ' ') : NULL;
        if (state && strtol(state + 1, NULL, 16) == TCP_LISTEN)
            fn(arg, (int)port);
    }
    wb_buf_release(&b);
    return 0;
}

struct wanted {
    int port;
    bool seen;
};

static void is_wanted(void *arg, int port)
{
    struct wanted *w = arg;

    w->seen |= port == w->port;
}

int wb_port_listening(int port, bool *yes, struct wb_err *err)
{
    struct wanted w = {.port = port};
    int rc = each_listener("/proc/net/tcp", is_wanted, &w, err);

    if (rc == 0)
        rc = each_listener("/proc/net/tcp6", is_wanted, &w, err);
    if (rc == 0)
        *yes = w.seen;
    return rc;
}

static void add_port(void *arg, int port)
{
    wb_strv_addf(arg, "port %d", port);
}

/* The run in "weighbridge/<run>-db0"; caller frees; NULL when there is none. */
static char *run_of_group(const char *name)
{
    const char *at = strchr(name, '/'), *end = strrchr(name, '-');

    return at && end && end > at + 1 ? wb_strndup(at + 1, (size_t)(end - at - 1)) : NULL;
}

void wb_owned_complete(struct wb_owned *o)
{
    WB_AUTO_FREE char *run = NULL;
    WB_AUTO_JSON wb_json *mark = NULL;

    if (o->owner || strcmp(o->kind, "group") != 0)
        return;
    run = run_of_group(o->id);
    mark = run ? wb_run_marked(WB_HOST_DIR, run) : NULL;
    if (!mark)
        return;
    free(o->run);
    free(o->campaign);
    o->owner = wb_strdup(wb_json_str_or(mark, "owner", NULL));
    o->campaign = wb_strdup(wb_json_str_or(mark, "campaign", NULL));
    o->run = WB_STEAL(run);
}

static int add_owned(const struct wb_form_env *env, const struct wb_form_ops *must,
                     struct wb_strv *l, struct wb_err *err)
{
    for (size_t i = 0; wb_forms[i]; i++) {
        struct wb_owned_list owned = {0};
        int rc = wb_forms[i]->list_owned(env, &owned, err);

        for (size_t k = 0; rc == 0 && k < owned.n; k++) {
            wb_owned_complete(&owned.v[k]);
            if (owned.v[k].owner && !strcmp(owned.v[k].owner, env->owner))
                wb_strv_addf(l, "%s %s", owned.v[k].kind, owned.v[k].id);
        }
        wb_owned_release(&owned);
        if (rc < 0 && (wb_forms[i] == must || rc != -WB_UNAVAILABLE))
            return wb_wrap(err, "looking for what the %s form left", wb_forms[i]->name);
    }
    return 0;
}

/* The value of key in a mark "k=v;k=v", "" when absent; caller frees. */
static char *mark_part(const char *mark, const char *key)
{
    size_t n = strlen(key);

    for (const char *p = mark; p; p = strchr(p, ';')) {
        p += *p == ';';
        if (!strncmp(p, key, n) && p[n] == '=')
            return wb_strndup(p + n + 1, strcspn(p + n + 1, ";"));
    }
    return wb_strdup("");
}

int wb_marked_processes(const char *owner, struct wb_marked **out, size_t *n, struct wb_err *err)
{
    WB_AUTO_FREE char *want = wb_strf("WB_MARK=wb.owner=%s;", owner);
    struct wb_strv pids = {0};
    struct wb_marked *v = NULL;
    size_t found = 0, cap = 0;
    int rc = wb_list_dir("/proc", &pids, err);

    for (size_t i = 0; rc == 0 && i < pids.n; i++) {
        WB_AUTO_FREE char *path = wb_strf("/proc/%s/environ", pids.v[i]);
        struct wb_buf b = WB_BUF_INIT(1u << 20);
        const char *mark = NULL;
        int64_t pid = 0;

        /* Not a process, gone meanwhile, or a kernel thread. */
        if (wb_parse_int(pids.v[i], 1, INT32_MAX, &pid, NULL) < 0 ||
            wb_file_read_small(path, &b, NULL) < 0)
            wb_buf_clear(&b);
        for (size_t at = 0; at < b.len && !mark; at += strlen(b.data + at) + 1)
            if (!strncmp(b.data + at, want, strlen(want)))
                mark = b.data + at;
        if (mark) {
            wb_grow(&v, &cap, found + 1, sizeof(*v));
            v[found++] = (struct wb_marked){.pid = (pid_t)pid,
                                            .ticks = wb_process_ticks((pid_t)pid),
                                            .campaign = mark_part(mark, "wb.campaign"),
                                            .run = mark_part(mark, "wb.run")};
        }
        wb_buf_release(&b);
    }
    wb_strv_release(&pids);
    if (rc < 0)
        return rc;
    *out = v;
    *n = found;
    return 0;
}

void wb_marked_free(struct wb_marked *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(v[i].campaign);
        free(v[i].run);
    }
    free(v);
}

static int add_processes(const char *owner, struct wb_strv *l, struct wb_err *err)
{
    struct wb_marked *v = NULL;
    size_t n = 0;
    int rc = wb_marked_processes(owner, &v, &n, err);

    for (size_t i = 0; i < n; i++)
        if (v[i].ticks) /* 0: it has ended meanwhile */
            wb_strv_addf(l, "process %d", (int)v[i].pid);
    wb_marked_free(v, n);
    return rc;
}

/* Blanks and the like stand as \\ooo in the kernel's list. */
static char *unescape(const char *s, size_t n)
{
    struct wb_buf b = WB_BUF_INIT(65536);

    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\\' && i + 3 < n) {
            wb_buf_addc(&b, (char)((s[i + 1] - '0') * 64 + (s[i + 2] - '0') * 8 + s[i + 3] - '0'));
            i += 3;
        } else {
            wb_buf_addc(&b, s[i]);
        }
    }
    return wb_buf_take(&b);
}

int wb_mounts_below(const char *below, struct wb_strv *out, struct wb_err *err)
{
    struct wb_buf b = WB_BUF_INIT(16u << 20);
    struct wb_strv found = {0};
    size_t n = strlen(below);
    int rc = wb_file_read_small("/proc/self/mounts", &b, err);

    for (const char *line = wb_buf_str(&b); rc == 0 && line && *line;) {
        const char *at = strchr(line, ' ');
        WB_AUTO_FREE char *point = at ? unescape(at + 1, strcspn(at + 1, " ")) : NULL;

        if (point && !strncmp(point, below, n) && point[n] == '/')
            wb_strv_add(&found, point);
        line = strchr(line, '\n');
        if (line)
            line++;
    }
    /* The kernel lists them in the order in which they were mounted. */
    for (size_t i = found.n; i > 0; i--)
        wb_strv_add(out, found.v[i - 1]);
    wb_strv_release(&found);
    wb_buf_release(&b);
    return rc;
}

static int add_mounts(const char *below, struct wb_strv *l, struct wb_err *err)
{
    struct wb_strv points = {0};
    int rc = below ? wb_mounts_below(below, &points, err) : 0;

    for (size_t i = 0; i < points.n; i++)
        wb_strv_addf(l, "mount %s", points.v[i]);
    wb_strv_release(&points);
    return rc;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int wb_host_snapshot(const struct wb_form_env *env, const struct wb_form_ops *must,
                     const char *below, wb_json **out, struct wb_err *err)
{
    struct wb_strv l = {0};
    int rc = add_owned(env, must, &l, err);

    if (rc == 0)
        rc = add_processes(env->owner, &l, err);
    if (rc == 0)
        rc = each_listener("/proc/net/tcp", add_port, &l, err);
    if (rc == 0)
        rc = each_listener("/proc/net/tcp6", add_port, &l, err);
    if (rc == 0)
        rc = add_mounts(below, &l, err);
    if (rc == 0) {
        *out = wb_json_array();
        if (l.n)
            qsort(l.v, l.n, sizeof(*l.v), by_text);
        for (size_t i = 0; i < l.n; i++)
            if (i == 0 || strcmp(l.v[i], l.v[i - 1]) != 0)
                wb_json_push(*out, wb_json_str(l.v[i]));
    }
    wb_strv_release(&l);
    return rc;
}

static bool has_text(const wb_json *list, const char *text)
{
    for (size_t i = 0; i < wb_json_len(list); i++)
        if (!strcmp(wb_json_string(wb_json_at(list, i)), text))
            return true;
    return false;
}

static bool is_foreign_port(const char *text, char *const *ports)
{
    if (strncmp(text, "port ", 5) != 0)
        return false;
    for (; ports && *ports; ports++)
        if (!strcmp(text, *ports))
            return false;
    return true;
}

wb_json *wb_snapshot_new(const wb_json *before, const wb_json *after, char *const *ports)
{
    wb_json *left = wb_json_array();

    for (size_t i = 0; i < wb_json_len(after); i++) {
        const char *text = wb_json_string(wb_json_at(after, i));

        if (!has_text(before, text) && !is_foreign_port(text, ports))
            wb_json_push(left, wb_json_str(text));
    }
    return left;
}
