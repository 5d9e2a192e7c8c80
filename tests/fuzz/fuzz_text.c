/*
 * Texts that a user of wb-load writes: the first byte chooses which of its flags has the rest as
 * its value, in a job that is then checked as a whole. What is taken must keep its promises:
 * bounds, and that keys, sizes and arrivals drawn by it lie in their ranges.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runners/load/job.h"
#include "runners/load/keys.h"
#include "runners/load/search.h"
#include "runners/load/target.h"
#include "runners/load/values.h"
#include "server/base/mem.h"

#define DRAWS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
    if (!ok)
        abort();
}

static void check_draws(const struct wb_load_job *job)
{
    struct wb_keys keys;
    struct wb_values values;
    uint64_t named = wb_keys_named(job);

    wb_keys_init(&keys, job);
    for (uint64_t i = 0; i < DRAWS; i++)
        require(wb_keys_at(&keys, i * 977) < named);
    if (job->value_bytes > 1 << 16)
        return; /* its pool takes longer than all else */
    wb_values_init(&values, job);
    for (uint64_t i = 0; i < DRAWS; i++)
        require(wb_values_size(&values, i * 977) <= values.most);
    wb_values_release(&values);
}

static void check_rates(const struct wb_load_job *job)
{
    struct wb_schedule s = {.rate_per_s = job->rate_per_s, .stride = 1};
    struct wb_arrivals a;
    int64_t last = 0;

    if (job->model != WB_LOAD_OPEN || !(job->rate_per_s > 0))
        return;
    require(isfinite(job->rate_per_s) && job->rate_per_s <= 1e6);
    if (job->nsegments > 0)
        wb_schedule_profile(&s, job->segment, job->nsegments, job->warm_up_ns, job->for_ns);
    wb_arrivals_start(&a, &s, 0);
    for (int i = 0; i < DRAWS; i++) {
        require(a.at >= last);
        last = a.at;
        wb_arrivals_next(&a);
    }
}

/* A host is taken as numbers only: names would be looked up. */
static void check_target(char *text)
{
    struct wb_target t = {0};
    WB_AUTO_FREE char *whole = NULL;

    for (char *c = text; *c; c++)
        if (*c >= 'a' && *c <= 'z')
            *c = (char)('0' + *c % 10);
    whole = wb_strf("resp://%s", text);
    if (wb_target_parse(whole, &t, NULL) == 0)
        require(t.n >= 1 && t.n <= WB_TARGETS_MAX && t.naddr == t.n);
    wb_target_release(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const flags[] = {"--rate",     "--sweep",    "--search",    "--key-choice",
                                        "--value",    "--mix",      "--split",     "--part",
                                        "--catch-up", "--start-at", "--arrivals",  "--transactions",
                                        "--for",      "--cpus",     "--key-bytes", "--keys"};
    struct wb_load_job job;
    struct wb_slo slo;
    struct wb_err err = WB_ERR_INIT;
    WB_AUTO_FREE char *text = NULL;

    if (size < 1 || size > 4096)
        return 0;
    text = wb_strndup((const char *)data + 1, size - 1);
    if (data[0] % 32 == 31) {
        check_target(text);
        return 0;
    }
    if (wb_slo_parse(text, &slo, &err) == 0)
        require(slo.percentile > 0 && slo.percentile <= 100 && slo.limit_ns >= 1000);
    wb_load_job_init(&job);
    job.target = wb_strdup("null://");
    if (wb_load_job_flag(&job, flags[data[0] % WB_LEN(flags)], text, &err) == 0 &&
        wb_load_job_check(&job, &err) == 0) {
        check_draws(&job);
        check_rates(&job);
        require(job.part >= 0 && job.part < job.parts);
    } else {
        require(err.code != 0 && err.root[0] != '\0');
    }
    wb_load_job_release(&job);
    return 0;
}
