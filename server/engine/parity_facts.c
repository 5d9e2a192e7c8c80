/* Facts of a running process for the parity report. Formats: proc(5). */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/child.h"
#include "server/base/clock.h"
#include "server/base/digest.h"
#include "server/base/file.h"
#include "server/engine/parity.h"

#define TEXT_MAX (1u << 20)
#define LIBC_MAX (16u << 20)
#define VALUE_MAX 200
#define NSENTER_LIMIT_NS (10 * WB_SEC)

/* ---- reading ---- */

/* A file of the process ("status"); NULL when it cannot be read. Caller frees; *n may be NULL. */
static char *read_of(const struct wb_parity_source *s, const char *file, size_t *n)
{
    WB_AUTO_FREE char *path = wb_strf("%s/%d/%s", s->proc, (int)s->pid, file);
    struct wb_buf b = WB_BUF_INIT(TEXT_MAX);
    char *text = NULL;

    if (wb_file_read_small(path, &b, NULL) == 0) {
        if (n)
            *n = b.len;
        text = b.len ? wb_buf_take(&b) : wb_strdup("");
    }
    wb_buf_release(&b);
    return text;
}

/* The rest of the line that begins with key, trimmed; NULL when there is none. Caller frees. */
static char *line_of(const char *text, const char *key)
{
    size_t n = strlen(key);

    for (const char *line = text; line && *line;) {
        size_t len = strcspn(line, "\n");

        if (!strncmp(line, key, n)) {
            const char *from = line + n, *to = line + len;

            while (from < to && isspace((unsigned char)*from))
                from++;
            while (to > from && isspace((unsigned char)to[-1]))
                to--;
            return wb_strndup(from, (size_t)(to - from));
        }
        line += len + (line[len] == '\n');
    }
    return NULL;
}

/* Takes value (may be NULL: unknown). */
static void set(wb_json *facts, const char *field, char *value)
{
    wb_json_set_str(facts, field, value);
    free(value);
}

/* ---- own paths ---- */

static void replace(char **text, const char *what, const char *by)
{
    struct wb_buf b = WB_BUF_INIT(TEXT_MAX);
    size_t n = strlen(what);

    if (!*text || n < 2)
        return;
    for (const char *p = *text; *p;) {
        if (!strncmp(p, what, n)) {
            wb_buf_adds(&b, by);
            p += n;
        } else {
            wb_buf_addc(&b, *p++);
        }
    }
    free(*text);
    *text = b.len ? wb_buf_take(&b) : wb_strdup("");
}

static char *without_paths(const struct wb_parity_source *s, const char *value)
{
    char *text = wb_strdup(value);

    replace(&text, s->paths->prefix, "{prefix}");
    replace(&text, s->paths->config, "{config}");
    replace(&text, s->paths->data, "{data}");
    replace(&text, s->paths->log, "{log}");
    return text;
}

static void add_paths(const struct wb_parity_source *s, wb_json *facts)
{
    wb_json_set_str(facts, "paths.prefix", s->paths->prefix);
    wb_json_set_str(facts, "paths.config", s->paths->config);
    wb_json_set_str(facts, "paths.data", s->paths->data);
    wb_json_set_str(facts, "paths.log", s->paths->log);
}

/* ---- what the probe and the control group say ---- */

static void add_probe(const struct wb_parity_source *s, wb_json *facts)
{
    const wb_json *settings = wb_json_get(s->probe, "settings");
    const wb_json *more = wb_json_get(s->probe, "facts");

    wb_json_set_str(facts, "version", wb_json_str_or(s->probe, "version", NULL));
    wb_json_set_str(facts, "build", wb_json_str_or(s->probe, "build", NULL));
    wb_json_set_str(facts, "allocator", wb_json_str_or(more, "allocator", NULL));
    wb_json_set_str(facts, "files", s->files);
    for (void *it = wb_json_first(settings); it; it = wb_json_next(settings, it)) {
        WB_AUTO_FREE char *field = wb_strf("setting.%s", wb_json_iter_key(it));

        wb_json_set_str(facts, field, wb_json_string(wb_json_iter_value(it)));
    }
}

static char *bytes_text(int64_t bytes)
{
    return bytes == INT64_MAX ? wb_strdup("unlimited") : wb_strf("%lld", (long long)bytes);
}

static void add_limits(const struct wb_parity_source *s, wb_json *facts)
{
    const struct wb_limits_seen *l = s->limits;

    wb_json_set_str(facts, "limits.cpus", l ? l->cpus : NULL);
    wb_json_set_str(facts, "limits.mems", l ? l->mems : NULL);
    set(facts, "limits.memory", l ? bytes_text(l->memory_bytes) : NULL);
    set(facts, "limits.memory_swap", l ? bytes_text(l->memory_swap_bytes) : NULL);
    set(facts, "limits.cpu_quota",
        !l                  ? NULL
        : l->cpu_quota <= 0 ? wb_strdup("none")
                            : wb_strf("%.3f", l->cpu_quota));
}

/* ---- status, stat, limits ---- */

/* Supplementary groups but for the main one, which some forms list and some do not. */
static void add_groups(const char *status, wb_json *facts)
{
    WB_AUTO_FREE char *groups = line_of(status, "Groups:");
    WB_AUTO_FREE char *gids = line_of(status, "Gid:");
    size_t main_len = gids ? strcspn(gids, "\t ") : 0;
    struct wb_buf b = WB_BUF_INIT(65536);

    for (const char *p = groups; p && *p;) {
        size_t n = strcspn(p, " ");

        if (n && (n != main_len || strncmp(p, gids, n) != 0))
            wb_buf_addf(&b, "%s%.*s", b.len ? " " : "", (int)n, p);
        p += n + strspn(p + n, " ");
    }
    wb_json_set_str(facts, "user.groups", groups ? wb_buf_str(&b) : NULL);
    wb_buf_release(&b);
}

static void add_status(const struct wb_parity_source *s, wb_json *facts)
{
    static const struct {
        const char *field, *key;
    } rows[] = {
        {"user.uid", "Uid:"},
        {"user.gid", "Gid:"},
        {"umask", "Umask:"},
        {"seccomp", "Seccomp:"},
        {"no_new_privs", "NoNewPrivs:"},
        {"capabilities.effective", "CapEff:"},
        {"capabilities.permitted", "CapPrm:"},
        {"capabilities.bounding", "CapBnd:"},
        {"capabilities.ambient", "CapAmb:"},
        {"affinity.cpus", "Cpus_allowed_list:"},
        {"affinity.mems", "Mems_allowed_list:"},
        {"thp_allowed", "THP_enabled:"},
    };
    WB_AUTO_FREE char *status = read_of(s, "status", NULL);

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        char *value = line_of(status, rows[i].key);

        for (char *c = value; c && *c; c++)
            if (*c == '\t')
                *c = ' ';
        set(facts, rows[i].field, value);
    }
    add_groups(status, facts);
}

/* Field n of stat, counted from 3 after the name in parentheses; caller frees. */
static char *stat_field(const char *stat, int n)
{
    const char *p = stat ? strrchr(stat, ')') : NULL;

    for (int field = 2; p && field < n; field++) {
        p = strchr(p, ' ');
        p = p ? p + 1 : NULL;
    }
    return p ? wb_strndup(p, strcspn(p, " \n")) : NULL;
}

static void add_scheduling(const struct wb_parity_source *s, wb_json *facts)
{
    WB_AUTO_FREE char *stat = read_of(s, "stat", NULL);
    WB_AUTO_FREE char *policy = stat_field(stat, 41);
    WB_AUTO_FREE char *priority = stat_field(stat, 40);
    WB_AUTO_FREE char *adj = read_of(s, "oom_score_adj", NULL);

    set(facts, "nice", stat_field(stat, 19));
    set(facts, "scheduler",
        policy && priority ? wb_strf("policy %s priority %s", policy, priority) : NULL);
    set(facts, "oom_score_adj", line_of(adj, ""));
}

static void add_ulimits(const struct wb_parity_source *s, wb_json *facts)
{
    static const struct {
        const char *field, *key;
    } rows[] = {
        {"ulimit.nofile", "Max open files"},     {"ulimit.nproc", "Max processes"},
        {"ulimit.memlock", "Max locked memory"}, {"ulimit.stack", "Max stack size"},
        {"ulimit.core", "Max core file size"},   {"ulimit.as", "Max address space"},
        {"ulimit.fsize", "Max file size"},       {"ulimit.data", "Max data size"},
        {"ulimit.nice", "Max nice priority"},    {"ulimit.rtprio", "Max realtime priority"},
    };
    WB_AUTO_FREE char *limits = read_of(s, "limits", NULL);

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_FREE char *rest = line_of(limits, rows[i].key);
        size_t soft = rest ? strcspn(rest, " ") : 0, gap = rest ? strspn(rest + soft, " ") : 0;
        size_t hard = rest ? strcspn(rest + soft + gap, " ") : 0;

        set(facts, rows[i].field,
            hard ? wb_strf("%.*s/%.*s", (int)soft, rest, (int)hard, rest + soft + gap) : NULL);
    }
}

/* ---- environment ---- */

/* Whether the recipe or we ourselves set a variable, so that its value is no secret. */
static bool is_ours(const struct wb_parity_source *s, const char *name, size_t n)
{
    static const char *const ours[] = {"PATH", "LANG", NULL};

    for (size_t i = 0; ours[i]; i++)
        if (strlen(ours[i]) == n && !strncmp(ours[i], name, n))
            return true;
    for (char *const *e = s->env; e && *e; e++)
        if (!strncmp(*e, name, n) && (*e)[n] == '=')
            return true;
    return false;
}

static bool is_variable(const char *text, const char **value)
{
    const char *eq = strchr(text, '=');

    if (!eq || eq == text || isdigit((unsigned char)*text))
        return false;
    for (const char *c = text; c < eq; c++)
        if (!isalnum((unsigned char)*c) && *c != '_')
            return false;
    *value = eq + 1;
    return true;
}

static void add_environment(const struct wb_parity_source *s, wb_json *facts)
{
    size_t n = 0;
    WB_AUTO_FREE char *text = read_of(s, "environ", &n);
    bool any = false;

    for (size_t i = 0; text && i < n; i += strlen(text + i) + 1) {
        WB_AUTO_FREE char *field = NULL;
        const char *value;
        char hex[WB_SHA256_HEX];
        size_t len;

        if (!is_variable(text + i, &value))
            continue;
        any = true;
        len = (size_t)(value - 1 - (text + i));
        if (!strncmp(text + i, "WB_MARK=", 8))
            continue; /* whose it is, not what it is */
        field = wb_strf("env.%.*s", (int)len, text + i);
        if (is_ours(s, text + i, len)) {
            set(facts, field, without_paths(s, value));
            continue;
        }
        wb_sha256_of(value, strlen(value), hex);
        set(facts, field, wb_strf("sha256 %.12s", hex));
    }
    if (!any) /* some programs write their title over it */
        wb_json_set_str(facts, "env", NULL);
}

/* ---- file systems ---- */

/* Undoes \040 and the like in place. */
static void unescape(char *path)
{
    char *to = path;

    for (const char *p = path; *p;) {
        if (p[0] == '\\' && p[1] >= '0' && p[1] <= '3' && p[2] >= '0' && p[2] <= '7' &&
            p[3] >= '0' && p[3] <= '7') {
            *to++ = (char)((p[1] - '0') * 64 + (p[2] - '0') * 8 + (p[3] - '0'));
            p += 4;
        } else {
            *to++ = *p++;
        }
    }
    *to = '\0';
}

static bool is_below(const char *path, const char *mount)
{
    size_t n = strlen(mount);

    return !strcmp(mount, "/") || (!strncmp(path, mount, n) && (path[n] == '/' || !path[n]));
}

/* Type, device and options of the file system that a path is on, by the process's own mounts. */
static char *filesystem_of(const char *mountinfo, const char *path)
{
    char *found = NULL;
    size_t best = 0;

    for (const char *line = mountinfo; line && *line;) {
        size_t len = strcspn(line, "\n");
        WB_AUTO_FREE char *copy = wb_strndup(line, len);
        char *f[6] = {NULL}, *rest = copy, *type;

        line += len + (line[len] == '\n');
        type = strstr(copy, " - ");
        if (!type)
            continue;
        *type = '\0';
        type += 3;
        type[strcspn(type, " ")] = '\0';
        for (size_t i = 0; rest && i < WB_LEN(f); i++) {
            f[i] = rest;
            rest = strchr(rest, ' ');
            if (rest)
                *rest++ = '\0';
        }
        if (!f[5])
            continue;
        unescape(f[4]);
        /* Of mounts on one place the last one is seen. */
        if (is_below(path, f[4]) && strlen(f[4]) >= best) {
            best = strlen(f[4]);
            free(found);
            found = wb_strf("%s on %s, %s", type, f[2], f[5]);
        }
    }
    return found;
}

static void add_filesystems(const struct wb_parity_source *s, wb_json *facts)
{
    WB_AUTO_FREE char *mountinfo = read_of(s, "mountinfo", NULL);

    set(facts, "filesystem", filesystem_of(mountinfo, s->paths->prefix));
    set(facts, "data_filesystem", filesystem_of(mountinfo, s->paths->data));
}

/* ---- C library ---- */

/* The path of a C library in maps, as the process sees it; caller frees. */
static char *libc_path(const char *maps)
{
    for (const char *line = maps; line && *line;) {
        size_t len = strcspn(line, "\n");
        const char *path = memchr(line, '/', len);
        WB_AUTO_FREE char *copy = path ? wb_strndup(path, len - (size_t)(path - line)) : NULL;
        const char *base = copy ? strrchr(copy, '/') + 1 : "";

        line += len + (line[len] == '\n');
        if (!strncmp(base, "libc.so", 7) || !strncmp(base, "libc-2.", 7) ||
            !strncmp(base, "ld-musl-", 8))
            return WB_STEAL(copy);
    }
    return NULL;
}

/* "GNU C Library (Debian GLIBC 2.36-9+deb12u13) stable release version 2.36." in the library. */
static void add_libc_text(const char *data, size_t n, wb_json *facts)
{
    static const char head[] = "GNU C Library (", mid[] = "release version ";
    const char *at = memmem(data, n, head, strlen(head)), *end, *version;
    size_t left;

    if (!at)
        return;
    left = n - (size_t)(at - data);
    end = memchr(at, ')', left);
    version = memmem(at, left, mid, strlen(mid));
    if (!end || !version)
        return;
    at += strlen(head);
    version += strlen(mid);
    set(facts, "libc.build", wb_strndup(at, (size_t)(end - at)));
    left = strspn(version, "0123456789.");
    if (left && version[left - 1] == '.')
        left--;
    set(facts, "libc", wb_strf("glibc %.*s", (int)left, version));
}

static void add_libc(const struct wb_parity_source *s, wb_json *facts)
{
    WB_AUTO_FREE char *maps = read_of(s, "maps", NULL);
    WB_AUTO_FREE char *path = libc_path(maps);
    WB_AUTO_FREE char *file = path ? wb_strf("%s/%d/root%s", s->proc, (int)s->pid, path) : NULL;
    WB_AUTO_FREE char *data = NULL;
    size_t n = 0;

    wb_json_set_str(facts, "libc", NULL);
    wb_json_set_str(facts, "libc.build", NULL);
    if (path && strstr(path, "/ld-musl-"))
        wb_json_set_str(facts, "libc", "musl");
    else if (file && wb_file_read(file, LIBC_MAX, &data, &n, NULL) == 0)
        add_libc_text(data, n, facts);
}

/* ---- kernel ---- */

/* The word in brackets of "always [madvise] never", or the first line; NULL unreadable. */
static char *kernel_file(const char *root, const char *file)
{
    WB_AUTO_FREE char *path = wb_strf("%s/%s", root, file);
    struct wb_buf b = WB_BUF_INIT(65536);
    char *value = NULL, *open;

    if (wb_file_read_small(path, &b, NULL) == 0)
        value = line_of(wb_buf_str(&b), "");
    wb_buf_release(&b);
    open = value ? strchr(value, '[') : NULL;
    if (open && strchr(open, ']')) {
        char *word = wb_strndup(open + 1, strcspn(open + 1, "]"));

        free(value);
        value = word;
    }
    return value;
}

/* A network setting as the process has it: by its own network name space where that is not ours.
 */
static char *network_file(const struct wb_parity_source *s, bool own, const char *file)
{
    WB_AUTO_FREE char *path = wb_strf("/proc/%s", file);
    WB_AUTO_FREE char *pid = wb_strf("%d", (int)s->pid);
    char *const argv[] = {(char[]){"nsenter"},
                          (char[]){"--target"},
                          pid,
                          (char[]){"--net"},
                          (char[]){"cat"},
                          path,
                          NULL};
    struct wb_child_spec spec = {.argv = argv, .limit_ns = NSENTER_LIMIT_NS};
    struct wb_child_result res = {0};
    char *value = NULL;

    if (!own)
        return kernel_file(s->proc, file);
    if (wb_child_check(&spec, &res, NULL) == 0)
        value = line_of(wb_buf_str(&res.out), "");
    wb_child_release(&res);
    return value;
}

/* Whether the process has a network name space of its own; -1 unknown. */
static int own_network(const struct wb_parity_source *s)
{
    WB_AUTO_FREE char *theirs = wb_strf("%s/%d/ns/net", s->proc, (int)s->pid);
    WB_AUTO_FREE char *ours = wb_strf("%s/self/ns/net", s->proc);
    struct stat a, b;

    if (stat(theirs, &a) < 0 || stat(ours, &b) < 0)
        return -1;
    return a.st_ino != b.st_ino || a.st_dev != b.st_dev;
}

static void add_kernel(const struct wb_parity_source *s, wb_json *facts)
{
    static const struct {
        const char *field, *file;
        bool sys;
    } rows[] = {
        {"kernel.thp", "kernel/mm/transparent_hugepage/enabled", true},
        {"kernel.thp_defrag", "kernel/mm/transparent_hugepage/defrag", true},
        {"kernel.overcommit_memory", "sys/vm/overcommit_memory", false},
        {"kernel.swappiness", "sys/vm/swappiness", false},
    };
    static const struct {
        const char *field, *file;
    } network[] = {{"kernel.somaxconn", "sys/net/core/somaxconn"},
                   {"kernel.tcp_max_syn_backlog", "sys/net/ipv4/tcp_max_syn_backlog"}};
    WB_AUTO_FREE char *label = read_of(s, "attr/current", NULL);
    int own = own_network(s);

    for (size_t i = 0; i < WB_LEN(rows); i++)
        set(facts, rows[i].field, kernel_file(rows[i].sys ? s->sys : s->proc, rows[i].file));
    for (size_t i = 0; i < WB_LEN(network); i++)
        set(facts, network[i].field, network_file(s, own > 0, network[i].file));
    wb_json_set_str(facts, "network", own < 0 ? NULL : own ? "own" : "host");
    set(facts, "security_label", line_of(label, ""));
}

wb_json *wb_parity_facts(const struct wb_parity_source *s)
{
    wb_json *facts = wb_json_object();

    add_probe(s, facts);
    add_paths(s, facts);
    add_limits(s, facts);
    add_libc(s, facts);
    add_filesystems(s, facts);
    add_kernel(s, facts);
    add_status(s, facts);
    add_scheduling(s, facts);
    add_ulimits(s, facts);
    add_environment(s, facts);
    return facts;
}
