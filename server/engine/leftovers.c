#include "server/engine/leftovers.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/file.h"

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

static int add_owned(const struct wb_form_env *env, const struct wb_form_ops *must,
                     struct wb_strv *l, struct wb_err *err)
{
    for (size_t i = 0; wb_forms[i]; i++) {
        struct wb_owned_list owned = {0};
        int rc = wb_forms[i]->list_owned(env, &owned, err);

        for (size_t k = 0; rc == 0 && k < owned.n; k++)
            if (!owned.v[k].owner || !strcmp(owned.v[k].owner, env->owner))
                wb_strv_addf(l, "%s %s", owned.v[k].kind, owned.v[k].id);
        wb_owned_release(&owned);
        if (rc < 0 && (wb_forms[i] == must || rc != -WB_UNAVAILABLE))
            return wb_wrap(err, "looking for what the %s form left", wb_forms[i]->name);
    }
    return 0;
}

/* Processes whose environment carries our owner's mark. */
static int add_processes(const char *owner, struct wb_strv *l, struct wb_err *err)
{
    struct wb_strv pids = {0};
    WB_AUTO_FREE char *mark = wb_strf("WB_MARK=wb.owner=%s;", owner);
    int rc = wb_list_dir("/proc", &pids, err);

    for (size_t i = 0; rc == 0 && i < pids.n; i++) {
        WB_AUTO_FREE char *path = wb_strf("/proc/%s/environ", pids.v[i]);
        struct wb_buf b = WB_BUF_INIT(1u << 20);

        if (!isdigit((unsigned char)pids.v[i][0]))
            continue;
        if (wb_file_read_small(path, &b, NULL) == 0) /* gone meanwhile, or a kernel thread */
            for (size_t at = 0; at < b.len; at += strlen(b.data + at) + 1)
                if (!strncmp(b.data + at, mark, strlen(mark)))
                    wb_strv_addf(l, "process %s", pids.v[i]);
        wb_buf_release(&b);
    }
    wb_strv_release(&pids);
    return rc;
}

static int add_mounts(const char *below, struct wb_strv *l, struct wb_err *err)
{
    struct wb_buf b = WB_BUF_INIT(16u << 20);
    size_t n = strlen(below);
    int rc = wb_file_read_small("/proc/self/mounts", &b, err);

    for (const char *line = wb_buf_str(&b); rc == 0 && line && *line;) {
        const char *at = strchr(line, ' ');

        if (at && !strncmp(at + 1, below, n) && at[1 + n] == '/')
            wb_strv_addf(l, "mount %.*s", (int)strcspn(at + 1, " "), at + 1);
        line = strchr(line, '\n');
        if (line)
            line++;
    }
    wb_buf_release(&b);
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
