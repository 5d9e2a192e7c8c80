/*
 * truth_subsets METRIC ARM AGAINST ROUNDS SUBSETS < list.json: draws random subsets of ROUNDS
 * complete rounds out of a campaign's runs (the output of `weighbridge list --json`) and counts the
 * verdicts that the comparison gives on each. Prints one JSON object.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/analysis/compare.h"
#include "server/base/file.h"
#include "server/base/mem.h"
#include "server/base/rng.h"
#include "server/base/units.h"

#define ROUNDS_MAX 1000
#define SEED 20261130

/* One value per round and arm; 0 where the round has no usable run. */
struct data {
    double arm[ROUNDS_MAX + 1], against[ROUNDS_MAX + 1];
    int complete[ROUNDS_MAX];
    size_t n;
};

static bool usable(const wb_json *run)
{
    const char *outcome = wb_json_str_or(run, "outcome", "");
    const char *validity = wb_json_str_or(run, "validity", "");

    return (!strcmp(outcome, "ok") || !strcmp(outcome, "target-missed")) &&
           (!strcmp(validity, "valid") || !strcmp(validity, "noisy"));
}

static void collect(const wb_json *items, char *const *argv, struct data *d)
{
    for (size_t i = 0; i < wb_json_len(items); i++) {
        const wb_json *run = wb_json_at(items, i);
        const wb_json *metric = wb_json_get(wb_json_get(run, "metrics"), argv[1]);
        int64_t round = wb_json_int_or(run, "round", 0);
        const char *arm = wb_json_str_or(run, "arm", "");
        double v = wb_json_real_or(metric, "value", 0);

        if (!usable(run) || round < 1 || round > ROUNDS_MAX)
            continue;
        if (!strcmp(arm, argv[2]))
            d->arm[round] = v;
        if (!strcmp(arm, argv[3]))
            d->against[round] = v;
    }
    for (int r = 1; r <= ROUNDS_MAX; r++)
        if (d->arm[r] > 0 && d->against[r] > 0)
            d->complete[d->n++] = r;
}

static const char *judge(const struct data *d, const int *rounds, size_t n, wb_json **answer)
{
    WB_AUTO_JSON wb_json *in = wb_json_object();
    wb_json *base = wb_json_array(), *new = wb_json_array();
    struct wb_err err = WB_ERR_INIT;

    for (size_t i = 0; i < n; i++) {
        wb_json_push(base, wb_json_real(d->against[rounds[i]]));
        wb_json_push(new, wb_json_real(d->arm[rounds[i]]));
    }
    wb_json_set(in, "rounds_base", base);
    wb_json_set(in, "rounds_new", new);
    wb_json_set_str(in, "better", "higher");
    if (wb_stats_compare(in, answer, &err) < 0) {
        (void)fprintf(stderr, "truth_subsets: %s\n", err.root);
        exit(1);
    }
    return wb_json_str_or(*answer, "verdict", "");
}

int main(int argc, char **argv)
{
    struct data *d = wb_calloc(1, sizeof(*d));
    struct wb_buf text = WB_BUF_INIT(256u << 20);
    WB_AUTO_JSON wb_json *list = NULL;
    WB_AUTO_JSON wb_json *counts = wb_json_object();
    WB_AUTO_JSON wb_json *all = NULL;
    wb_json *out;
    struct wb_rng rng;
    int64_t rounds, subsets;

    if (argc != 6 || wb_parse_int(argv[4], 4, ROUNDS_MAX, &rounds, NULL) < 0 ||
        wb_parse_int(argv[5], 1, 1000000, &subsets, NULL) < 0) {
        (void)fprintf(stderr, "usage: truth_subsets METRIC ARM AGAINST ROUNDS SUBSETS < list\n");
        return 2;
    }
    if (wb_file_read_small("/dev/stdin", &text, NULL) < 0 ||
        wb_json_parse(wb_buf_str(&text), text.len, &list, NULL) < 0) {
        (void)fprintf(stderr, "truth_subsets: no list of runs on standard input\n");
        return 1;
    }
    collect(wb_json_get(list, "items"), argv, d);
    if (d->n < (size_t)rounds) {
        (void)fprintf(stderr, "truth_subsets: only %zu complete rounds\n", d->n);
        return 1;
    }
    (void)judge(d, d->complete, d->n, &all);
    wb_rng_seed(&rng, SEED);
    for (int64_t i = 0; i < subsets; i++) {
        WB_AUTO_JSON wb_json *answer = NULL;
        const char *verdict;

        wb_rng_shuffle(&rng, d->complete, d->n);
        verdict = judge(d, d->complete, (size_t)rounds, &answer);
        wb_json_set_int(counts, verdict, wb_json_int_or(counts, verdict, 0) + 1);
    }
    out = wb_json_object();
    wb_json_set_int(out, "complete_rounds", (int64_t)d->n);
    wb_json_set_int(out, "subsets", subsets);
    wb_json_set(out, "verdicts", wb_json_ref(counts));
    wb_json_set_real(
        out, "alarm_percent",
        100.0 * (double)(wb_json_int_or(counts, "worse", 0) + wb_json_int_or(counts, "better", 0)) /
            (double)subsets);
    wb_json_set_real(out, "worse_percent",
                     100.0 * (double)wb_json_int_or(counts, "worse", 0) / (double)subsets);
    wb_json_set_str(out, "verdict_of_all", wb_json_str_or(all, "verdict", ""));
    wb_json_set(out, "ratio_of_all", wb_json_copy(wb_json_get(all, "ratio")));
    wb_buf_clear(&text);
    wb_json_pretty(out, &text);
    (void)fwrite(wb_buf_str(&text), 1, text.len, stdout);
    wb_json_free(out);
    wb_buf_release(&text);
    free(d);
    return 0;
}
