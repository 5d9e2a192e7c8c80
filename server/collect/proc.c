#include "server/collect/proc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/file.h"
#include "server/base/mem.h"

#define FILE_MAX (4u << 20)     /* /proc/stat has a number per interrupt line */
#define KERNEL_THREAD 0x200000u /* PF_KTHREAD of field 9 */

static int read_proc(const char *proc, const char *name, struct wb_buf *b, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("%s/%s", proc, name);

    return wb_file_read_small(path, b, err);
}

/* Reads n numbers from s; false when there are fewer. */
static bool numbers(const char *s, int64_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char *end;

        out[i] = strtoll(s, &end, 10);
        if (end == s)
            return false;
        s = end;
    }
    return true;
}

bool wb_proc_cpu_parse(const char *text, struct wb_cpu_ticks *out)
{
    const char *line = text;
    int64_t v[8];
    int cpus = 0;

    if (strncmp(line, "cpu ", 4) != 0 || !numbers(line + 4, v, WB_LEN(v)))
        return false;
    while ((line = strchr(line, '\n')) != NULL && !strncmp(++line, "cpu", 3))
        cpus++;
    *out = (struct wb_cpu_ticks){.user = v[0],
                                 .nice = v[1],
                                 .system = v[2],
                                 .idle = v[3],
                                 .iowait = v[4],
                                 .irq = v[5],
                                 .softirq = v[6],
                                 .steal = v[7],
                                 .cpus = cpus};
    return true;
}

int wb_proc_cpu(const char *proc, struct wb_cpu_ticks *out, struct wb_err *err)
{
    struct wb_buf b = WB_BUF_INIT(FILE_MAX);
    int rc = read_proc(proc, "stat", &b, err);

    if (rc == 0 && !wb_proc_cpu_parse(wb_buf_str(&b), out))
        rc =
            wb_fail(err, WB_PROTOCOL, "%s/stat does not begin with a line of 8 CPU counters", proc);
    wb_buf_release(&b);
    return rc;
}

int wb_proc_net(const char *proc, struct wb_net_bytes *out, struct wb_err *err)
{
    struct wb_buf b = WB_BUF_INIT(FILE_MAX);
    struct wb_net_bytes sum = {0};
    int rc = read_proc(proc, "net/dev", &b, err);
    const char *line = wb_buf_str(&b);
    size_t found = 0;

    /* Two lines of heads, then "  name: rx_bytes packets ... tx_bytes(9th) ..." */
    while (rc == 0 && line && *line) {
        const char *name = line + strspn(line, " ");
        const char *colon = name + strcspn(name, ":\n");
        int64_t v[9];

        if (*colon == ':' && numbers(colon + 1, v, WB_LEN(v))) {
            found++;
            if (colon - name == 2 && !strncmp(name, "lo", 2)) {
                sum.loopback += v[0];
            } else {
                sum.rx += v[0];
                sum.tx += v[8];
            }
        }
        line = strchr(colon, '\n');
        line = line ? line + 1 : NULL;
    }
    if (rc == 0 && !found)
        rc = wb_fail(err, WB_PROTOCOL, "%s/net/dev names no interface", proc);
    if (rc == 0)
        *out = sum;
    wb_buf_release(&b);
    return rc;
}

/* The number behind "key" and blanks at the start of a line. */
static bool keyed(const char *text, const char *key, int64_t *out)
{
    size_t n = strlen(key);

    for (const char *line = text; line && *line;) {
        if (!strncmp(line, key, n) && line[n] == ' ')
            return numbers(line + n, out, 1);
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return false;
}

int wb_proc_swap_in(const char *proc, int64_t *pages, struct wb_err *err)
{
    struct wb_buf b = WB_BUF_INIT(FILE_MAX);
    int rc = read_proc(proc, "vmstat", &b, err);

    if (rc == 0 && !keyed(wb_buf_str(&b), "pswpin", pages))
        *pages = 0;
    wb_buf_release(&b);
    return rc;
}

int wb_proc_meminfo(const char *proc, const char *key, int64_t *bytes, struct wb_err *err)
{
    WB_AUTO_FREE char *name = wb_strf("%s:", key);
    struct wb_buf b = WB_BUF_INIT(FILE_MAX);
    int64_t kib = 0;
    int rc = read_proc(proc, "meminfo", &b, err);

    if (rc == 0 && !keyed(wb_buf_str(&b), name, &kib))
        rc = wb_fail(err, WB_NOT_FOUND, "%s/meminfo has no %s", proc, key);
    if (rc == 0)
        *bytes = kib * 1024;
    wb_buf_release(&b);
    return rc;
}

bool wb_pid_stat_parse(const char *line, struct wb_pid_stat *out)
{
    /* The name in parentheses may hold blanks and parentheses: count from the last one. */
    const char *p = strrchr(line, ')');
    int64_t v[19]; /* fields 4 to 22 */
    char *end;

    out->pid = (pid_t)strtoll(line, &end, 10);
    if (end == line || !p || p[1] != ' ' || !p[2] || !numbers(p + 3, v, WB_LEN(v)))
        return false;
    out->parent = (pid_t)v[0];
    out->kernel = ((uint64_t)v[5] & KERNEL_THREAD) != 0;
    out->own = v[10] + v[11];
    out->reaped = v[12] + v[13];
    out->start = (uint64_t)v[18];
    return true;
}

int64_t wb_tick_hz(void)
{
    long hz = sysconf(_SC_CLK_TCK);

    return hz > 0 ? hz : 100;
}
