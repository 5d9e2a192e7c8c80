#include "server/study/parts.h"

#include <stdlib.h>
#include <string.h>

/* What the rest of the host keeps beside the database. */
#define MEMORY_RESERVE (512LL << 20)
/* A multiple of every page size in use: limits are set and read back without rounding. */
#define MEMORY_GRAIN (64LL << 10)

int64_t wb_memory_share(const struct wb_setup *s, int n)
{
    int64_t share = s->share == WB_SHARE_HOST ? s->memory_bytes / n : s->memory_bytes;

    return share - share % MEMORY_GRAIN;
}

double wb_quota_share(const struct wb_setup *s, double quota, int n)
{
    return s->share == WB_SHARE_HOST ? quota / n : quota;
}

/* ---- CPUs of the host, neighbours together ---- */

struct cpu {
    int id, node, core;
};

static int compare_cpus(const void *a, const void *b)
{
    const struct cpu *x = a, *y = b;

    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    if (x->core != y->core)
        return x->core < y->core ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* All CPUs in the order node, core, number. A core that is not known is one of its own. */
static struct cpu *ordered_cpus(const struct wb_host_facts *host)
{
    struct cpu *v = wb_calloc((size_t)host->ncpus, sizeof *v);

    for (int i = 0; i < host->ncpus; i++) {
        int core = host->cores ? host->cores[i] : -1;

        v[i] = (struct cpu){.id = host->cpus[i],
                            .node = host->nodes && host->nodes[i] > 0 ? host->nodes[i] : 0,
                            .core = core >= 0 ? core : (1 << 20) + host->cpus[i]};
    }
    qsort(v, (size_t)host->ncpus, sizeof *v, compare_cpus);
    return v;
}

static int compare_ints(const void *a, const void *b)
{
    const int *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static char *list_text(int *v, int n)
{
    struct wb_buf b = WB_BUF_INIT(8192);
    int unique = 0;

    qsort(v, (size_t)n, sizeof *v, compare_ints);
    for (int i = 0; i < n; i++) {
        if (unique == 0 || v[unique - 1] != v[i])
            v[unique++] = v[i];
    }
    wb_format_cpulist(v, unique, &b);
    return b.data ? wb_buf_take(&b) : wb_strdup("");
}

static char *cpus_text(const struct cpu *cpus, int n)
{
    WB_AUTO_FREE int *v = wb_calloc((size_t)n, sizeof *v);

    for (int i = 0; i < n; i++)
        v[i] = cpus[i].id;
    return list_text(v, n);
}

/* The memory nodes of some CPUs; all that are allowed where the nodes are not known. */
static char *mems_text(const struct wb_host_facts *host, const struct cpu *cpus, int n)
{
    WB_AUTO_FREE int *v = wb_calloc((size_t)n, sizeof *v);
    WB_AUTO_FREE int *allowed = NULL;
    int nallowed = 0, found = 0;

    if (!host->nodes || wb_parse_cpulist(host->mems, &allowed, &nallowed, NULL) < 0)
        return wb_strdup(host->mems);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < nallowed; k++) {
            if (allowed[k] == cpus[i].node)
                v[found++] = cpus[i].node;
        }
    }
    return found ? list_text(v, found) : wb_strdup(host->mems);
}

/* Where the load's CPUs end and the database's begin: the middle, moved to the next edge of a core
 * so that the two never share one, as long as both get something. */
static int cut(const struct cpu *v, int n)
{
    int middle = n / 2 > 1 ? n / 2 : 1;

    for (int by = 0; by < n; by++) {
        for (int sign = -1; sign <= 1; sign += 2) {
            int at = middle + sign * by;

            if (at > 0 && at < n && v[at - 1].core != v[at].core)
                return at;
        }
    }
    return middle;
}

/* ---- the whole host ---- */

/* Memory that the arm with the most needs. */
static int64_t memory_needed(const struct wb_study *s)
{
    int64_t most = 0;

    for (size_t i = 0; i < s->ncombinations; i++) {
        const struct wb_combination *c = &s->combinations[i];
        int64_t n = c->setup.share == WB_SHARE_HOST ? 1 : c->form.count;
        int64_t need =
            c->setup.memory_bytes > INT64_MAX / n ? INT64_MAX : c->setup.memory_bytes * n;

        most = need > most ? need : most;
    }
    return most;
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
    WB_AUTO_FREE struct cpu *v = ordered_cpus(host);
    int n = host->ncpus, at;

    check_memory(s, host, p);
    out->shared = s->placement == WB_PLACEMENT_SHARED;
    if (out->shared) {
        out->database_cpus = cpus_text(v, n);
        out->load_cpus = cpus_text(v, n);
        out->agent_cpus = cpus_text(v, n);
        out->mems = wb_strdup(host->mems);
        out->load_mems = wb_strdup(host->mems);
        return;
    }
    if (n < 2) {
        wb_problem(p, NULL, "capacity",
                   "placement same-host needs at least 2 CPUs, one for the database and one for "
                   "the load; this process may use %d. placement: shared runs both on it and "
                   "marks every result",
                   n);
        return;
    }
    at = cut(v, n);
    out->core_split = v[at - 1].core == v[at].core;
    out->load_cpus = cpus_text(v, at);
    out->agent_cpus = cpus_text(v, at);
    out->load_mems = mems_text(host, v, at);
    out->database_cpus = cpus_text(v + at, n - at);
    out->mems = mems_text(host, v + at, n - at);
}

/* ---- the parts of an arm ---- */

/* The database's CPUs, neighbours together. */
static struct cpu *database_cpus(const struct wb_host_facts *host, const struct wb_placement *pl,
                                 int *n)
{
    struct cpu *v = ordered_cpus(host);
    WB_AUTO_FREE int *allowed = NULL;
    int nallowed = 0;

    *n = 0;
    if (wb_parse_cpulist(pl->database_cpus, &allowed, &nallowed, NULL) < 0)
        return v;
    for (int i = 0; i < host->ncpus; i++) {
        for (int k = 0; k < nallowed; k++) {
            if (allowed[k] == v[i].id)
                v[(*n)++] = v[i];
        }
    }
    return v;
}

/* With share: instance every instance of every arm has the same number of CPUs, so it is the arm
 * with the most instances that decides. */
static int most_disjoint(const struct wb_study *s)
{
    int most = 1;

    for (size_t i = 0; i < s->ncombinations; i++) {
        const struct wb_combination *c = &s->combinations[i];

        if (c->setup.cpus == WB_CPUS_DISJOINT && c->setup.share == WB_SHARE_INSTANCE &&
            c->form.count > most)
            most = c->form.count;
    }
    return most;
}

/* CPUs of each instance when they are disjoint; 0 after a problem. */
static int cpus_each(const struct wb_study *s, const struct wb_arm *a, int n, struct wb_problems *p)
{
    int count = a->form.count, asked = (int)a->setup->cpus_per_instance;
    const char *form = a->form.ops->name;

    if (a->setup->share == WB_SHARE_INSTANCE) {
        int each = asked ? asked : n / most_disjoint(s);

        if (each > 0 && (long long)each * count <= n)
            return each;
        wb_problem(p, NULL, "capacity",
                   "cpus: disjoint gives each of the %d instances of %s x%d %d CPU%s, %lld in all, "
                   "but the database has %d; take fewer instances or cpus: shared",
                   count, form, count, each ? each : 1, each > 1 ? "s" : "",
                   (long long)(each ? each : 1) * count, n);
        return 0;
    }
    if (n % count == 0)
        return n / count;
    wb_problem(p, NULL, "capacity",
               "cpus: disjoint cannot cut the %d CPU%s of the database into %d equal parts for "
               "%s x%d; take a number of instances that divides %d, or cpus: shared",
               n, n == 1 ? "" : "s", count, form, count, n);
    return 0;
}

static void make_parts(const struct wb_study *s, const struct wb_host_facts *host,
                       const struct wb_placement *pl, struct wb_arm *a, struct wb_problems *p)
{
    int n = 0, each = 0;
    WB_AUTO_FREE struct cpu *v = database_cpus(host, pl, &n);
    bool disjoint = a->setup->cpus == WB_CPUS_DISJOINT;

    if (disjoint && (each = cpus_each(s, a, n, p)) == 0)
        return;
    a->cpus_per_instance = disjoint ? each : n;
    a->parts = wb_calloc((size_t)a->form.count, sizeof *a->parts);
    for (int i = 0; i < a->form.count; i++) {
        struct wb_part *part = &a->parts[i];

        part->cpus = disjoint ? cpus_text(v + i * each, each) : wb_strdup(pl->database_cpus);
        part->mems = disjoint ? mems_text(host, v + i * each, each) : wb_strdup(pl->mems);
        part->memory_bytes = wb_memory_share(a->setup, a->form.count);
        part->cpu_quota = wb_quota_share(a->setup, a->cpu_quota, a->form.count);
    }
}

void wb_parts_make(const struct wb_study *s, const struct wb_host_facts *host,
                   const struct wb_placement *placement, struct wb_arm *arms, size_t narms,
                   struct wb_problems *p)
{
    for (size_t i = 0; i < narms; i++) {
        struct wb_problems own = {.file = p->file};

        make_parts(s, host, placement, &arms[i], &own);
        wb_problems_merge(p, &own);
    }
}
