#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/collect/collect.h"
#include "server/collect/columns.h"

/* A window's figure is given when at least this share of its samples has it. */
#define READABLE_SHARE 0.8

/* What a group had used before it was made anew, and when it was seen last. */
struct group_past {
    struct wb_group_sum before, last;
};

struct wb_sampler {
    const struct wb_cgroup_fs *cgroups;
    const struct wb_clock *clock;
    char *proc;
    struct wb_strv database, load, phases;
    struct group_past *past; /* one for each group of a database that changes, else NULL */
    size_t past_cap;
    struct wb_processes *processes;
    char *no_processes;   /* why processes cannot be told apart, or NULL */
    struct wb_reading *v; /* v[0] is the first one, without a phase */
    size_t n, cap;
};

static void read_groups(const struct wb_sampler *s, const struct wb_strv *names,
                        struct wb_group_sum *out)
{
    *out = (struct wb_group_sum){.ok = names->n > 0};
    for (size_t i = 0; i < names->n; i++) {
        struct wb_cgroup_stats st;

        if (wb_cgroup_stats(s->cgroups, names->v[i], &st, NULL) < 0) {
            out->ok = false;
            return;
        }
        out->cpu_ns += st.cpu_ns;
        out->memory_bytes += st.memory_bytes;
        out->periods += st.periods;
        out->throttled += st.throttled;
    }
}

static void add(struct wb_group_sum *to, const struct wb_group_sum *from)
{
    to->cpu_ns += from->cpu_ns;
    to->periods += from->periods;
    to->throttled += from->throttled;
}

/* The same for groups that go and come: what is gone has used what it had used, and what begins
 * anew from 0 adds to it. */
static void read_changing(const struct wb_sampler *s, struct wb_group_sum *out)
{
    *out = (struct wb_group_sum){.ok = false};
    for (size_t i = 0; i < s->database.n; i++) {
        struct group_past *p = &s->past[i];
        struct wb_cgroup_stats st;

        if (wb_cgroup_stats(s->cgroups, s->database.v[i], &st, NULL) == 0) {
            if (st.cpu_ns < p->last.cpu_ns)
                add(&p->before, &p->last);
            p->last = (struct wb_group_sum){
                .ok = true, .cpu_ns = st.cpu_ns, .periods = st.periods, .throttled = st.throttled};
            out->memory_bytes += st.memory_bytes;
            out->ok = true;
        }
        add(out, &p->before);
        add(out, &p->last);
    }
}

static int by_pid(const void *a, const void *b)
{
    pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

    return (x > y) - (x < y);
}

/* Pids of all groups of both roles, ascending. A group that cannot be read adds none: its known
 * processes stay ours. */
static pid_t *all_pids(const struct wb_sampler *s, size_t *n)
{
    const struct wb_strv *const lists[] = {&s->database, &s->load};
    pid_t *all = NULL;
    size_t cap = 0;

    *n = 0;
    for (size_t k = 0; k < WB_LEN(lists); k++)
        for (size_t i = 0; i < lists[k]->n; i++) {
            pid_t *pids = NULL;
            size_t count = 0;

            if (wb_cgroup_pids(s->cgroups, lists[k]->v[i], &pids, &count, NULL) < 0)
                continue;
            wb_grow(&all, &cap, *n + count + 1, sizeof(*all));
            if (count)
                memcpy(all + *n, pids, count * sizeof(*all));
            *n += count;
            free(pids);
        }
    if (*n)
        qsort(all, *n, sizeof(*all), by_pid);
    return all;
}

static void read_processes(struct wb_sampler *s, struct wb_reading *r)
{
    struct wb_err err = WB_ERR_INIT;
    char text[2 * WB_ERR_TEXT_MAX];
    size_t n;
    pid_t *ours;

    if (s->n > 0)
        memcpy(r->used, s->v[s->n - 1].used, sizeof(r->used));
    if (s->no_processes) /* an interval without them stays unknown to the end */
        return;
    ours = all_pids(s, &n);
    r->processes_ok = wb_processes_take(s->processes, ours, n, r->used, &err) == 0;
    r->processes_ns = wb_now_ns(s->clock);
    if (!r->processes_ok)
        s->no_processes = wb_strdup(wb_err_text(&err, text, sizeof(text)));
    free(ours);
}

static void take(struct wb_sampler *s, size_t phase)
{
    struct wb_reading r = {.phase = phase};

    r.host_ns = wb_now_ns(s->clock);
    r.cpu_ok = wb_proc_cpu(s->proc, &r.cpu, NULL) == 0;
    r.groups_ns = wb_now_ns(s->clock);
    if (s->past)
        read_changing(s, &r.database);
    else
        read_groups(s, &s->database, &r.database);
    read_groups(s, &s->load, &r.load);
    read_processes(s, &r);
    r.net_ok = wb_proc_net(s->proc, &r.net, NULL) == 0;
    r.swap_ok = wb_proc_swap_in(s->proc, &r.swap_in, NULL) == 0;
    wb_grow(&s->v, &s->cap, s->n + 1, sizeof(*s->v));
    s->v[s->n++] = r;
}

int wb_sampler_new(const struct wb_sampler_spec *spec, struct wb_sampler **out, struct wb_err *err)
{
    struct wb_sampler *s;

    if (!spec->cgroups || !spec->proc)
        return wb_fail(err, WB_INVALID, "a sampler needs control groups and a /proc");
    s = wb_calloc(1, sizeof(*s));
    s->cgroups = spec->cgroups;
    s->clock = spec->clock;
    s->proc = wb_strdup(spec->proc);
    for (const char *const *g = spec->database; g && *g; g++)
        wb_strv_add(&s->database, *g);
    for (const char *const *g = spec->load; g && *g; g++)
        wb_strv_add(&s->load, *g);
    if (spec->database_changes) {
        s->past = wb_calloc(s->database.n + 1, sizeof(*s->past));
        s->past_cap = s->database.n + 1;
    }
    s->processes = wb_processes_new(spec->proc, spec->agent);
    take(s, 0);
    *out = s;
    return 0;
}

void wb_sampler_add_database(struct wb_sampler *s, const char *group)
{
    for (size_t i = 0; i < s->database.n; i++)
        if (strcmp(s->database.v[i], group) == 0)
            return;
    wb_grow(&s->past, &s->past_cap, s->database.n + 1, sizeof(*s->past));
    s->past[s->database.n] = (struct group_past){0};
    wb_strv_add(&s->database, group);
}

void wb_sampler_database_ended(struct wb_sampler *s, const char *group, int64_t cpu_ns)
{
    for (size_t i = 0; i < s->database.n; i++) {
        struct group_past *p = &s->past[i];

        if (strcmp(s->database.v[i], group) != 0)
            continue;
        if (cpu_ns > p->last.cpu_ns)
            p->last.cpu_ns = cpu_ns;
        add(&p->before, &p->last);
        p->last = (struct wb_group_sum){.ok = false};
    }
}

void wb_sampler_take(struct wb_sampler *s, const char *phase)
{
    size_t i = 0;

    while (i < s->phases.n && strcmp(s->phases.v[i], phase) != 0)
        i++;
    if (i == s->phases.n)
        wb_strv_add(&s->phases, phase);
    take(s, i);
}

void wb_sampler_free(struct wb_sampler *s)
{
    if (!s)
        return;
    wb_processes_free(s->processes);
    wb_strv_release(&s->database);
    wb_strv_release(&s->load);
    wb_strv_release(&s->phases);
    free(s->past);
    free(s->no_processes);
    free(s->proc);
    free(s->v);
    free(s);
}

/* To six decimals: more is noise, and records are kept. */
static wb_json *rounded(double v)
{
    return wb_json_real(round(v * 1e6) / 1e6);
}

wb_json *wb_sampler_series(const struct wb_sampler *s)
{
    wb_json *out = wb_json_object(), *t = wb_json_array(), *phase = wb_json_array();

    wb_json_set(out, "t_ms", t);
    wb_json_set(out, "phase", phase);
    for (size_t i = 1; i < s->n; i++) {
        wb_json_push(t, wb_json_int((s->v[i].host_ns - s->v[0].host_ns) / WB_MS));
        wb_json_push(phase, wb_json_str(s->phases.v[s->v[i].phase]));
    }
    for (size_t c = 0; c < wb_column_count; c++) {
        wb_json *values = wb_json_array();

        for (size_t i = 1; i < s->n; i++) {
            struct wb_ratio r;

            wb_json_push(values, wb_columns[c].figure(&s->v[i - 1], &s->v[i], &r)
                                     ? rounded(r.num / r.den)
                                     : wb_json_null());
        }
        wb_json_set(out, wb_columns[c].name, values);
    }
    return out;
}

static void window_column(const struct wb_sampler *s, const struct wb_column *c, size_t phase,
                          size_t samples, wb_json *out)
{
    struct wb_ratio sum = {0, 0};
    double max = 0;
    size_t have = 0;

    for (size_t i = 1; i < s->n; i++) {
        struct wb_ratio r;

        if (s->v[i].phase != phase || !c->figure(&s->v[i - 1], &s->v[i], &r))
            continue;
        sum.num += r.num;
        sum.den += r.den;
        if (!have || r.num / r.den > max)
            max = r.num / r.den;
        have++;
    }
    if (have == 0 || (double)have < READABLE_SHARE * (double)samples) {
        const char *cause = c->of_processes && s->no_processes ? s->no_processes : "";
        WB_AUTO_FREE char *why = wb_strf("%zu of %zu samples could not be read%s%s", samples - have,
                                         samples, *cause ? ": " : "", cause);

        wb_json_set_reason(out, c->name, why);
    } else {
        wb_json *v = wb_json_object();

        wb_json_set(v, "mean", rounded(sum.num / sum.den));
        wb_json_set(v, "max", rounded(max));
        wb_json_set(out, c->name, v);
    }
}

wb_json *wb_sampler_window(const struct wb_sampler *s, const char *phase)
{
    size_t p = 0, samples = 0, swapped = 0;
    int64_t ns = 0, pages = 0;
    wb_json *out;
    int cpus = 0;

    while (p < s->phases.n && strcmp(s->phases.v[p], phase) != 0)
        p++;
    for (size_t i = 1; i < s->n; i++) {
        const struct wb_reading *a = &s->v[i - 1], *b = &s->v[i];

        if (b->phase != p || p == s->phases.n)
            continue;
        samples++;
        ns += b->host_ns - a->host_ns;
        cpus = b->cpu_ok ? b->cpu.cpus : cpus;
        if (a->swap_ok && b->swap_ok && b->swap_in > a->swap_in) {
            swapped++;
            pages += b->swap_in - a->swap_in;
        }
    }
    if (!samples)
        return NULL;
    out = wb_json_object();
    wb_json_set_int(out, "samples", (int64_t)samples);
    wb_json_set(out, "seconds", rounded((double)ns / 1e9));
    wb_json_set_int(out, "cpus", cpus);
    for (size_t c = 0; c < wb_column_count; c++)
        window_column(s, &wb_columns[c], p, samples, out);
    wb_json_set_int(out, "swap_in_pages", pages);
    wb_json_set_int(out, "swap_in_samples", (int64_t)swapped);
    return out;
}
