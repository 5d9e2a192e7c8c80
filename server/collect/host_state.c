#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/file.h"
#include "server/collect/evidence.h"
#include "server/collect/proc.h"

#define CPUS_MAX 4096

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Entries "cpu<digits>" of sys/devices/system/cpu. */
static void list_cpus(const char *sys, struct wb_strv *out)
{
    WB_AUTO_FREE char *dir = wb_strf("%s/devices/system/cpu", sys);
    struct wb_strv all = {0};

    if (wb_list_dir(dir, &all, NULL) == 0)
        for (size_t i = 0; i < all.n && out->n < CPUS_MAX; i++) {
            const char *name = all.v[i];

            if (!strncmp(name, "cpu", 3) && name[3] &&
                strspn(name + 3, "0123456789") == strlen(name + 3))
                wb_strv_add(out, name);
        }
    wb_strv_release(&all);
}

/* Governor of every CPU that has one, in the order of names. */
static void read_governors(const char *sys, struct wb_strv *out)
{
    struct wb_strv cpus = {0};
    struct wb_buf b = WB_BUF_INIT(4096);

    list_cpus(sys, &cpus);
    for (size_t i = 0; i < cpus.n; i++) {
        WB_AUTO_FREE char *path =
            wb_strf("%s/devices/system/cpu/%s/cpufreq/scaling_governor", sys, cpus.v[i]);

        wb_buf_clear(&b);
        if (wb_file_read_small(path, &b, NULL) == 0 && b.len) {
            WB_AUTO_FREE char *word = wb_strndup(b.data, strcspn(b.data, " \n"));

            wb_strv_add(out, word);
        }
    }
    if (out->n)
        qsort(out->v, out->n, sizeof(*out->v), by_text);
    wb_buf_release(&b);
    wb_strv_release(&cpus);
}

char *wb_governor(const char *sys)
{
    struct wb_strv all = {0};
    struct wb_buf b = WB_BUF_INIT(65536);
    char *out = NULL;

    read_governors(sys, &all);
    if (all.n && !strcmp(all.v[0], all.v[all.n - 1])) {
        out = wb_strdup(all.v[0]);
    } else if (all.n) {
        for (size_t i = 0, same; i < all.n; i += same) {
            for (same = 1; i + same < all.n && !strcmp(all.v[i], all.v[i + same]);)
                same++;
            wb_buf_addf(&b, "%s%s x%zu", b.len ? ", " : "", all.v[i], same);
        }
        out = wb_buf_take(&b);
    }
    wb_buf_release(&b);
    wb_strv_release(&all);
    return out;
}

/* Times any core was slowed for heat since boot, summed; false when the machine does not count. */
static bool heat_throttling(const char *sys, int64_t *sum)
{
    struct wb_strv cpus = {0};
    bool any = false;

    *sum = 0;
    list_cpus(sys, &cpus);
    for (size_t i = 0; i < cpus.n; i++) {
        WB_AUTO_FREE char *path = wb_strf(
            "%s/devices/system/cpu/%s/thermal_throttle/core_throttle_count", sys, cpus.v[i]);
        int64_t count;

        if (wb_file_read_int(path, &count, NULL) == 0) {
            *sum += count;
            any = true;
        }
    }
    wb_strv_release(&cpus);
    return any;
}

static void add_text(wb_json *out, const char *key, const char *proc, const char *file, bool number)
{
    WB_AUTO_FREE char *path = wb_strf("%s/%s", proc, file);
    struct wb_buf b = WB_BUF_INIT(4096);

    if (wb_file_read_small(path, &b, NULL) < 0 || !b.len) {
        wb_json_set_reason(out, key, "unreadable");
    } else if (number) {
        wb_json_set_real(out, key, strtod(b.data, NULL));
    } else {
        WB_AUTO_FREE char *word = wb_strndup(b.data, strcspn(b.data, " \n"));

        wb_json_set_str(out, key, word);
    }
    wb_buf_release(&b);
}

wb_json *wb_host_state(const char *proc, const char *sys)
{
    wb_json *out = wb_json_object();
    WB_AUTO_FREE char *governor = wb_governor(sys);
    int64_t v;

    if (governor)
        wb_json_set_str(out, "governor", governor);
    else
        wb_json_set_reason(out, "governor", "not applicable: no cpufreq on this machine");
    if (heat_throttling(sys, &v))
        wb_json_set_int(out, "throttle_count", v);
    else
        wb_json_set_reason(out, "throttle_count", "not applicable: this machine does not count it");
    if (wb_proc_swap_in(proc, &v, NULL) == 0)
        wb_json_set_int(out, "swap_in_pages", v);
    else
        wb_json_set_reason(out, "swap_in_pages", "unreadable");
    if (wb_proc_meminfo(proc, "Cached", &v, NULL) == 0)
        wb_json_set_int(out, "page_cache_bytes", v);
    else
        wb_json_set_reason(out, "page_cache_bytes", "unreadable");
    add_text(out, "boot_id", proc, "sys/kernel/random/boot_id", false);
    add_text(out, "load1", proc, "loadavg", true);
    return out;
}

/* A count that grows: entry "more than before"; returns the growth or NAN. */
static double growth(const wb_json *before, const wb_json *after, const char *key)
{
    double a = wb_json_real_or(before, key, NAN), b = wb_json_real_or(after, key, NAN);

    return b >= a ? b - a : NAN;
}

static void judge_heat(struct wb_judge *j, const wb_json *before, const wb_json *after)
{
    struct wb_check c = {.name = "heat-throttling",
                         .unit = "times",
                         .value = growth(before, after, "throttle_count"),
                         .reason = "this machine does not count it",
                         .noisy = 0,
                         .worse = NAN};

    if (isnan(c.value)) {
        c.not_applicable = true;
        wb_judge_add(j, &c, "CPU throttling for heat: not counted by this machine");
        return;
    }
    c.verdict = c.value > 0 ? WB_NOISY : WB_VALID;
    wb_judge_add(j, &c, "CPU throttled %.0f times during the run", c.value);
}

static void judge_boot(struct wb_judge *j, const wb_json *before, const wb_json *after)
{
    const char *a = wb_json_str_or(before, "boot_id", NULL);
    const char *b = wb_json_str_or(after, "boot_id", NULL);
    struct wb_check c = {.name = "boot",
                         .unit = "word",
                         .value = NAN,
                         .word = b,
                         .reason = "unreadable",
                         .noisy = NAN,
                         .worse = NAN};

    if (!a || !b) {
        c.not_applicable = true;
        wb_judge_add(j, &c, "boot id: unknown");
    } else if (strcmp(a, b) != 0) {
        c.verdict = WB_INVALID_RUN;
        c.outcome = "infra-error";
        wb_judge_add(j, &c, "the host was rebooted during the run");
    } else {
        wb_judge_add(j, &c, "the host was not rebooted during the run");
    }
}

enum wb_validity wb_host_state_judge(const wb_json *before, const wb_json *after, wb_json *evidence)
{
    struct wb_judge j = {.evidence = evidence, .worst = WB_VALID};
    struct wb_check swap = {.name = "swap-in",
                            .unit = "pages",
                            .value = growth(before, after, "swap_in_pages"),
                            .reason = "unreadable",
                            .noisy = NAN,
                            .worse = NAN};

    judge_boot(&j, before, after);
    judge_heat(&j, before, after);
    swap.not_applicable = isnan(swap.value);
    if (swap.not_applicable)
        wb_judge_add(&j, &swap, "pages swapped in during the run: unknown");
    else
        wb_judge_add(&j, &swap, "%.0f pages swapped in during the run", swap.value);
    return j.worst;
}
