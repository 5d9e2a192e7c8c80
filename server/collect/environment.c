#include <gnu/libc-version.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "server/base/file.h"
#include "server/base/job.h"
#include "server/collect/collect.h"
#include "server/collect/proc.h"

#define TEXT_MAX 256 /* bytes of one fact */

/* One fact that is a line of a kernel file. */
enum fact_kind {
    TEXT,   /* the first line */
    NUMBER, /* an integer */
    CHOICE  /* the word in brackets: "always [madvise] never" */
};
static const struct fact {
    const char *key, *path;
    enum fact_kind kind;
    const char *absent; /* what it means when the file is not there */
} facts[] = {
    {"clock_source", "/sys/devices/system/clocksource/clocksource0/current_clocksource", TEXT,
     "not shown by this kernel"},
    {"cpus_online", "/sys/devices/system/cpu/online", TEXT, "not shown by this kernel"},
    {"smt_active", "/sys/devices/system/cpu/smt/active", NUMBER, "not applicable: no SMT control"},
    {"turbo_off", "/sys/devices/system/cpu/intel_pstate/no_turbo", NUMBER,
     "not applicable: no intel_pstate"},
    {"memory_nodes", "/sys/devices/system/node/online", TEXT, "not applicable: no NUMA"},
    {"transparent_hugepages", "/sys/kernel/mm/transparent_hugepage/enabled", CHOICE,
     "not applicable: built without"},
    {"transparent_hugepages_defrag", "/sys/kernel/mm/transparent_hugepage/defrag", CHOICE,
     "not applicable: built without"},
    {"swappiness", "/proc/sys/vm/swappiness", NUMBER, "not shown by this kernel"},
    {"overcommit_memory", "/proc/sys/vm/overcommit_memory", NUMBER, "not shown by this kernel"},
    {"numa_balancing", "/proc/sys/kernel/numa_balancing", NUMBER, "not applicable: no NUMA"},
    {"address_randomization", "/proc/sys/kernel/randomize_va_space", NUMBER,
     "not shown by this kernel"},
    {"somaxconn", "/proc/sys/net/core/somaxconn", NUMBER, "not shown by this kernel"},
    {"tcp_congestion_control", "/proc/sys/net/ipv4/tcp_congestion_control", TEXT,
     "not shown by this kernel"},
    {"product", "/sys/class/dmi/id/product_name", TEXT, "not shown by this machine"},
};

static char *trimmed(const char *s, size_t n)
{
    while (n && (unsigned char)s[n - 1] <= ' ')
        n--;
    while (n && (unsigned char)*s <= ' ') {
        s++;
        n--;
    }
    return wb_strndup(s, n < TEXT_MAX ? n : TEXT_MAX);
}

/* First line of a file, trimmed; NULL when unreadable or empty. */
static char *first_line(const char *path)
{
    struct wb_buf b = WB_BUF_INIT(1u << 20);
    char *line = NULL;

    if (wb_file_read_small(path, &b, NULL) == 0)
        line = trimmed(wb_buf_str(&b), strcspn(wb_buf_str(&b), "\n"));
    wb_buf_release(&b);
    if (line && !*line) {
        free(line);
        line = NULL;
    }
    return line;
}

static void add_fact(wb_json *out, const struct fact *f)
{
    WB_AUTO_FREE char *line = first_line(f->path);
    int64_t number;
    char *open;

    if (!line) {
        wb_json_set_reason(out, f->key, f->absent);
    } else if (f->kind == NUMBER) {
        if (wb_file_read_int(f->path, &number, NULL) == 0)
            wb_json_set_int(out, f->key, number);
        else
            wb_json_set_str(out, f->key, line);
    } else if (f->kind == CHOICE && (open = strchr(line, '[')) != NULL) {
        open[1 + strcspn(open + 1, "]")] = '\0';
        wb_json_set_str(out, f->key, open + 1);
    } else {
        wb_json_set_str(out, f->key, line);
    }
}

/* Value of the first line "key<blanks><separator> value" of a text; caller frees; NULL absent. */
static char *value_of(const char *text, const char *key, char separator)
{
    size_t n = strlen(key);

    for (const char *line = text; line && *line;) {
        size_t len = strcspn(line, "\n");

        if (!strncmp(line, key, n)) {
            const char *at = line + n + strspn(line + n, " \t");

            if (*at == separator)
                return trimmed(at + 1, len - (size_t)(at + 1 - line));
        }
        line += len + (line[len] == '\n');
    }
    return NULL;
}

static void add_cpu(wb_json *out)
{
    static const char *const names[] = {"model name", "Model", "cpu model", "cpu"};
    struct wb_buf b = WB_BUF_INIT(8u << 20);
    WB_AUTO_FREE char *model = NULL, *microcode = NULL;
    const char *text;

    if (wb_file_read_small("/proc/cpuinfo", &b, NULL) < 0)
        wb_buf_clear(&b);
    text = wb_buf_str(&b);
    for (size_t i = 0; !model && i < WB_LEN(names); i++)
        model = value_of(text, names[i], ':');
    microcode = value_of(text, "microcode", ':');
    if (model)
        wb_json_set_str(out, "cpu_model", model);
    else
        wb_json_set_reason(out, "cpu_model", "not named in /proc/cpuinfo");
    if (microcode)
        wb_json_set_str(out, "microcode", microcode);
    else
        wb_json_set_reason(out, "microcode", "not named in /proc/cpuinfo");
    wb_json_set_int(out, "cpus", sysconf(_SC_NPROCESSORS_ONLN));
    wb_json_set_bool(out, "virtual_machine", strstr(text, " hypervisor") != NULL);
    wb_buf_release(&b);
}

static void add_system(wb_json *out)
{
    WB_AUTO_FREE char *libc = wb_strf("glibc %s", gnu_get_libc_version());
    struct utsname u;
    struct wb_buf b = WB_BUF_INIT(65536);

    if (uname(&u) == 0) {
        wb_json_set_str(out, "kernel", u.release);
        wb_json_set_str(out, "kernel_build", u.version);
        wb_json_set_str(out, "machine", u.machine);
    }
    if (wb_file_read_small("/etc/os-release", &b, NULL) == 0) {
        WB_AUTO_FREE char *name = value_of(wb_buf_str(&b), "PRETTY_NAME", '=');
        size_t n = name ? strlen(name) : 0;

        if (n >= 2 && name[0] == '"' && name[n - 1] == '"') {
            name[n - 1] = '\0';
            wb_json_set_str(out, "distribution", name + 1);
        } else if (n) {
            wb_json_set_str(out, "distribution", name);
        }
    }
    wb_buf_release(&b);
    if (!wb_json_get(out, "distribution"))
        wb_json_set_reason(out, "distribution", "no /etc/os-release");
    wb_json_set_str(out, "libc", libc);
    wb_json_set_int(out, "page_bytes", sysconf(_SC_PAGESIZE));
    wb_json_set_int(out, "tick_hz", wb_tick_hz());
}

static void add_memory(wb_json *out)
{
    int64_t bytes;

    if (wb_proc_meminfo("/proc", "MemTotal", &bytes, NULL) == 0)
        wb_json_set_int(out, "memory_bytes", bytes);
    else
        wb_json_set_reason(out, "memory_bytes", "not in /proc/meminfo");
    if (wb_proc_meminfo("/proc", "SwapTotal", &bytes, NULL) == 0)
        wb_json_set_int(out, "swap_bytes", bytes);
    else
        wb_json_set_reason(out, "swap_bytes", "not in /proc/meminfo");
}

static void add_governor(wb_json *out)
{
    WB_AUTO_FREE char *governor = wb_governor("/sys");

    if (governor)
        wb_json_set_str(out, "governor", governor);
    else
        wb_json_set_reason(out, "governor", "not applicable: no cpufreq on this machine");
}

/* The zone's name where it can be had, else its offset. */
static void add_time_zone(wb_json *out)
{
    const char *tz = getenv("TZ"), *zone;
    char link[1024];
    ssize_t n = readlink("/etc/localtime", link, sizeof(link) - 1);

    if (tz && *tz) {
        wb_json_set_str(out, "time_zone", tz);
        return;
    }
    link[n > 0 ? n : 0] = '\0';
    zone = strstr(link, "zoneinfo/");
    wb_json_set_str(out, "time_zone", zone ? zone + strlen("zoneinfo/") : "UTC");
}

static void add_cgroups(wb_json *out)
{
    struct wb_cgroup_fs *fs = NULL;

    if (wb_cgroup_fs_open("/sys/fs/cgroup", &fs, NULL) == 0)
        wb_json_set_int(out, "cgroup_version", wb_cgroup_version(fs));
    else
        wb_json_set_reason(out, "cgroup_version", "no usable control groups");
    wb_cgroup_fs_free(fs);
}

int wb_environment_facts(wb_json **out, struct wb_err *err)
{
    wb_json *j;
    char boot[37];
    int rc = wb_boot_id(boot, err);

    if (rc < 0) {
        (void)wb_wrap(err, "facts of this machine");
        return rc;
    }
    j = wb_json_object();
    add_system(j);
    add_cpu(j);
    add_memory(j);
    add_governor(j);
    add_cgroups(j);
    for (size_t i = 0; i < WB_LEN(facts); i++)
        add_fact(j, &facts[i]);
    add_time_zone(j);
    wb_json_set_str(j, "boot_id", boot);
    *out = j;
    return 0;
}
