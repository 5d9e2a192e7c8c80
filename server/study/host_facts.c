#include "server/study/plan.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "server/base/file.h"

/* The value of a line "name : value" of a kernel file, without the blanks around it; NULL when the
 * line is not there. */
static char *value_of(const char *text, const char *name)
{
    size_t n = strlen(name);

    for (const char *line = text; line; line = strchr(line, '\n')) {
        const char *v;

        line += *line == '\n';
        if (strncmp(line, name, n) != 0)
            continue;
        v = line + n + strspn(line + n, " \t");
        if (*v != ':')
            continue;
        v++;
        v += strspn(v, " \t");
        return wb_strndup(v, strcspn(v, "\n"));
    }
    return NULL;
}

static int read_cpus(struct wb_host_facts *f, struct wb_err *err)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) < 0)
        return wb_fail_sys(err, errno, "cannot read the CPUs of this process");
    f->cpus = wb_calloc((size_t)CPU_COUNT(&set), sizeof *f->cpus);
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, &set))
            f->cpus[f->ncpus++] = i;
    }
    return 0;
}

static int read_mems(struct wb_host_facts *f, struct wb_err *err)
{
    struct wb_buf b = WB_BUF_INIT(64 << 10);
    int rc = wb_file_read_small("/proc/self/status", &b, err);

    if (rc == 0)
        f->mems = value_of(wb_buf_str(&b), "Mems_allowed_list");
    if (rc == 0 && !f->mems)
        f->mems = wb_strdup("0"); /* a kernel without memory nodes */
    wb_buf_release(&b);
    return rc;
}

/* The number in a small file of the kernel; -1 when it is not there. */
static int number_in(const char *path)
{
    int64_t v = -1;

    return wb_file_read_int(path, &v, NULL) == 0 && v >= 0 && v < 1 << 20 ? (int)v : -1;
}

/* The memory node of a CPU: the one folder node<N> beside it. -1 where the kernel has no nodes. */
static int node_of(int cpu)
{
    WB_AUTO_FREE char *dir = wb_strf("/sys/devices/system/cpu/cpu%d", cpu);
    struct wb_strv names = {0};
    int64_t node = -1;

    if (wb_list_dir(dir, &names, NULL) == 0) {
        for (size_t i = 0; i < names.n && node < 0; i++) {
            if (strncmp(names.v[i], "node", 4) == 0 &&
                wb_parse_int(names.v[i] + 4, 0, 1 << 20, &node, NULL) < 0)
                node = -1;
        }
    }
    wb_strv_release(&names);
    return (int)node;
}

/* Which CPUs are neighbours. What the kernel does not tell stays unknown. */
static void read_topology(struct wb_host_facts *f)
{
    f->nodes = wb_calloc((size_t)f->ncpus, sizeof *f->nodes);
    f->cores = wb_calloc((size_t)f->ncpus, sizeof *f->cores);
    for (int i = 0; i < f->ncpus; i++) {
        WB_AUTO_FREE char *dir = wb_strf("/sys/devices/system/cpu/cpu%d/topology", f->cpus[i]);
        WB_AUTO_FREE char *package = wb_strf("%s/physical_package_id", dir);
        WB_AUTO_FREE char *core = wb_strf("%s/core_id", dir);
        int p = number_in(package), c = number_in(core);

        f->nodes[i] = node_of(f->cpus[i]);
        /* Core numbers begin anew in every package. */
        f->cores[i] = p >= 0 && p < 1 << 10 && c >= 0 && c < 1 << 10 ? p * (1 << 10) + c : -1;
    }
}

static int read_memory(struct wb_host_facts *f, struct wb_err *err)
{
    struct wb_buf b = WB_BUF_INIT(64 << 10);
    WB_AUTO_FREE char *total = NULL;
    int64_t kib = 0;
    int rc = wb_file_read_small("/proc/meminfo", &b, err);

    if (rc == 0)
        total = value_of(wb_buf_str(&b), "MemTotal");
    wb_buf_release(&b);
    if (rc < 0)
        return rc;
    if (total)
        total[strcspn(total, " ")] = '\0';
    if (!total || wb_parse_int(total, 1, INT64_MAX / 1024, &kib, NULL) < 0)
        return wb_fail(err, WB_IO, "/proc/meminfo has no MemTotal");
    f->memory_bytes = kib * 1024;
    return 0;
}

/* Machines alike enough to compare: model, CPUs this process may use, memory to the next power of
 * two, so that a few MiB kept by firmware do not make another class. */
static int make_class(struct wb_host_facts *f, struct wb_err *err)
{
    struct wb_buf b = WB_BUF_INIT(8 << 20);
    WB_AUTO_FREE char *model = NULL;
    struct utsname u;
    int64_t gib = 1;
    int rc = wb_file_read_small("/proc/cpuinfo", &b, err);

    if (rc == 0)
        model = value_of(wb_buf_str(&b), "model name");
    wb_buf_release(&b);
    if (rc < 0)
        return rc;
    if (uname(&u) < 0)
        return wb_fail_sys(err, errno, "cannot read the machine's architecture");
    while (gib << 30 < f->memory_bytes && gib < 1 << 20)
        gib *= 2;
    f->host_class = wb_strf("%s, %d CPU%s, %lld GiB", model ? model : u.machine, f->ncpus,
                            f->ncpus == 1 ? "" : "s", (long long)gib);
    return 0;
}

int wb_host_facts_read(struct wb_host_facts *out, struct wb_err *err)
{
    struct wb_host_facts f = {0};
    int rc = read_cpus(&f, err);

    if (rc == 0)
        rc = read_mems(&f, err);
    if (rc == 0)
        read_topology(&f);
    if (rc == 0)
        rc = read_memory(&f, err);
    if (rc == 0)
        rc = make_class(&f, err);
    if (rc < 0) {
        wb_host_facts_release(&f);
        return rc;
    }
    *out = f;
    return 0;
}

void wb_host_facts_release(struct wb_host_facts *f)
{
    free(f->cpus);
    free(f->nodes);
    free(f->cores);
    free(f->mems);
    free(f->host_class);
    *f = (struct wb_host_facts){0};
}
