#include "server/study/parts.h"

#include <stdlib.h>

/* What the rest of the host keeps beside the database. */
#define MEMORY_RESERVE (512LL << 20)

static char *cpu_text(const int *cpus, int n)
{
    struct wb_buf b = WB_BUF_INIT(8192);

    wb_format_cpulist(cpus, n, &b);
    return b.data ? wb_buf_take(&b) : wb_strdup("");
}

/* Memory that the arm with the most instances needs. */
static int64_t memory_needed(const struct wb_study *s)
{
    struct wb_arm *arms = NULL;
    size_t n = 0;
    int64_t most = 1;

    wb_arms_make(s, &arms, &n);
    for (size_t i = 0; i < n; i++) {
        if (arms[i].form.count > most)
            most = arms[i].form.count;
    }
    wb_arms_free(arms, n);
    if (s->share == WB_SHARE_HOST)
        return s->memory_bytes;
    return s->memory_bytes > INT64_MAX / most ? INT64_MAX : s->memory_bytes * most;
}

static void check_memory(const struct wb_study *s, const struct wb_host_facts *host,
                         struct wb_problems *p)
{
    int64_t need = memory_needed(s);
    struct wb_buf want = WB_BUF_INIT(64), have = WB_BUF_INIT(64);

    if (need <= host->memory_bytes - MEMORY_RESERVE)
        return;
    wb_format_bytes(need, &want);
    wb_format_bytes(host->memory_bytes, &have);
    wb_problem(p, NULL, "capacity",
               "the database gets %s, but this host has %s and 512 MiB of it must stay for the "
               "load and the system; lower memory",
               wb_buf_str(&want), wb_buf_str(&have));
    wb_buf_release(&want);
    wb_buf_release(&have);
}

void wb_placement_make(const struct wb_study *s, const struct wb_host_facts *host,
                       struct wb_placement *out, struct wb_problems *p)
{
    int low = host->ncpus / 2 > 1 ? host->ncpus / 2 : 1;

    check_memory(s, host, p);
    out->mems = wb_strdup(host->mems);
    out->shared = s->placement == WB_PLACEMENT_SHARED;
    if (out->shared) {
        out->database_cpus = cpu_text(host->cpus, host->ncpus);
        out->load_cpus = cpu_text(host->cpus, host->ncpus);
        out->agent_cpus = cpu_text(host->cpus, host->ncpus);
        return;
    }
    if (host->ncpus < 2) {
        wb_problem(p, NULL, "capacity",
                   "placement same-host needs at least 2 CPUs, one for the database and one for "
                   "the load; this process may use %d. placement: shared runs both on it and "
                   "marks every result",
                   host->ncpus);
        return;
    }
    out->database_cpus = cpu_text(host->cpus + low, host->ncpus - low);
    out->load_cpus = cpu_text(host->cpus, low);
    out->agent_cpus = cpu_text(host->cpus, low);
}
