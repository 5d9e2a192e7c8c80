#include "provisioners/forms/docker_limits.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/base/file.h"
#include "server/base/mem.h"

#define CAP_SYS_RESOURCE_BIT 24 /* capabilities(7): may raise hard limits */

static const struct {
    const char *ulimit, *kernel; /* names in the engine's API and in /proc/PID/limits */
    int which;
} rows[] = {
    {"nofile", "Max open files", RLIMIT_NOFILE},
    {"core", "Max core file size", RLIMIT_CORE},
    {"stack", "Max stack size", RLIMIT_STACK},
};

/* The process at the other end of a Unix socket; 0 when it is not known here. */
static pid_t peer_of(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct ucred who = {0};
    socklen_t n = sizeof who;
    WB_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || strlen(path) >= sizeof a.sun_path)
        return 0;
    memcpy(a.sun_path, path, strlen(path) + 1);
    if (connect(fd, (const struct sockaddr *)&a, sizeof a) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0)
        return 0;
    return who.pid;
}

static char *read_proc(pid_t pid, const char *file)
{
    WB_AUTO_FREE char *path = wb_strf("/proc/%d/%s", (int)pid, file);
    struct wb_buf b = WB_BUF_INIT(64 << 10);
    char *text = NULL;

    if (wb_file_read_small(path, &b, NULL) == 0)
        text = wb_strdup(wb_buf_str(&b));
    wb_buf_release(&b);
    return text;
}

static bool may_raise(const char *status)
{
    const char *caps = status ? strstr(status, "\nCapEff:") : NULL;

    return caps && (strtoull(caps + strlen("\nCapEff:"), NULL, 16) >> CAP_SYS_RESOURCE_BIT & 1);
}

int64_t wb_hard_limit(const char *text, const char *name)
{
    const char *line = strstr(text, name);

    if (!line || (line != text && line[-1] != '\n'))
        return -2;
    /* "Max open files            1024                 20000                files" */
    line += strlen(name);
    line += strspn(line, " ");
    line += strcspn(line, " \n");
    line += strspn(line, " ");
    if (strncmp(line, "unlimited", 9) == 0)
        return -1;
    return *line >= '0' && *line <= '9' ? strtoll(line, NULL, 10) : -2;
}

int64_t wb_limit_clamped(rlim_t own, int64_t most)
{
    if (own == RLIM_INFINITY || own > (rlim_t)INT64_MAX)
        return most;
    return most >= 0 && (int64_t)own > most ? most : (int64_t)own;
}

wb_json *wb_docker_ulimits(const char *path)
{
    pid_t pid = peer_of(path);
    WB_AUTO_FREE char *limits = pid > 0 ? read_proc(pid, "limits") : NULL;
    WB_AUTO_FREE char *status = pid > 0 ? read_proc(pid, "status") : NULL;
    bool any = may_raise(status);
    wb_json *list;

    if (!limits)
        return NULL;
    list = wb_json_array();
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        int64_t most = any ? -1 : wb_hard_limit(limits, rows[i].kernel);
        struct rlimit own;
        wb_json *one;

        if (most == -2 || getrlimit(rows[i].which, &own) < 0)
            continue;
        one = wb_json_object();
        wb_json_set_str(one, "Name", rows[i].ulimit);
        wb_json_set_int(one, "Soft", wb_limit_clamped(own.rlim_cur, most));
        wb_json_set_int(one, "Hard", wb_limit_clamped(own.rlim_max, most));
        wb_json_push(list, one);
    }
    return list;
}
