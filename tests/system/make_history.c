/*
 * make_history STORE: fills a new store with a history that there is something to say about: 24
 * nights of one study, three arms (native x1, x2, x4), a build with a commit each. From night 14 on
 * the build is 12 % slower. The last night has eight rounds, the others two.
 */
#include "tests/support/sample_record.h"

#define NIGHTS 24
#define SLOWER_FROM 14
#define ARMS 3

static const char *const labels[ARMS] = {"native x1", "native x2", "native x4"};

static wb_json *plan_of(const char *campaign, int rounds)
{
    wb_json *plan = sample_json(
        "{\"study\":\"nightly\",\"threshold_percent\":2,\"accept_noisy\":false,\"contrasts\":[{"
        "\"name\":\"x2\",\"arm\":\"native x2\",\"against\":\"native x1\",\"metric\":"
        "\"max.throughput\",\"better\":\"higher\",\"primary\":true}]}");
    wb_json *arms = wb_json_array();

    for (int i = 0; i < ARMS; i++)
        wb_json_push(arms, sample_arm(labels[i], "native", 1 << i));
    wb_json_set(plan, "arms", arms);
    wb_json_set_int(plan, "rounds", rounds);
    wb_json_set_str(plan, "campaign", campaign);
    return plan;
}

static void set_identity(struct wb_record *r, int night, int arm, int round)
{
    WB_AUTO_FREE char *campaign = wb_strf("cmp_%02d", night);
    WB_AUTO_FREE char *key = wb_strf("5e%014d", arm);
    WB_AUTO_FREE char *commit = wb_strf("c0ffee%02d", night);
    WB_AUTO_FREE char *built = wb_strf("2026-11-%02dT01:00:00.000Z", night + 1);
    wb_json *subject = wb_json_object();

    wb_json_free(r->plan);
    r->plan = plan_of(campaign, night == NIGHTS - 1 ? 8 : 2);
    wb_json_set_str(subject, "version", "7.0.15");
    wb_json_set_str(subject, "commit", commit);
    wb_json_set_str(subject, "built", built);
    wb_json_set(r->summary, "subject", subject);
    wb_json_set_str(r->summary, "study", "nightly");
    wb_json_set_str(r->summary, "campaign", campaign);
    wb_json_set_str(r->summary, "arm", labels[arm]);
    wb_json_set_str(r->summary, "series_key", key);
    wb_json_set_int(r->summary, "round", round + 1);
}

static int commit_run(struct wb_store *s, int n, int night, int arm, int round, struct wb_err *err)
{
    struct wb_record r = sample_record(n);
    wb_json *load = wb_json_get(wb_json_at(wb_json_get(r.result, "phases"), 0), "load"), *metrics;
    double speed = 20000 * (1 << arm) / (1 + 0.2 * ((1 << arm) - 1));
    char hex[41];
    int rc;

    set_identity(&r, night, arm, round);
    /* Noise that is the same each time: between -0.6 and 0.6 %. */
    speed *= (night >= SLOWER_FROM ? 0.88 : 1) * (1 + 0.001 * ((n * 37 + night * 11) % 13 - 6));
    wb_json_set_real(load, "achieved_per_s", speed);
    rc = wb_summary_metrics(r.result, &metrics, err);
    if (rc == 0) {
        wb_json_set(r.summary, "metrics", metrics);
        rc = wb_store_commit(s, &r, hex, err);
    }
    wb_record_release(&r);
    return rc;
}

int main(int argc, char **argv)
{
    struct wb_err err = WB_ERR_INIT;
    struct wb_store *s = NULL;
    char text[2 * WB_ERR_TEXT_MAX];
    int rc, n = 0;

    if (argc != 2) {
        (void)fprintf(stderr, "usage: make_history STORE\n");
        return 2;
    }
    rc = wb_store_open(argv[1], true, "lab", &s, &err);
    for (int night = 0; rc == 0 && night < NIGHTS; night++)
        for (int k = 0; rc == 0 && k < ARMS * (night == NIGHTS - 1 ? 8 : 2); k++)
            rc = commit_run(s, n++, night, k % ARMS, k / ARMS, &err);
    if (rc < 0)
        (void)fprintf(stderr, "make_history: %s\n", wb_err_text(&err, text, sizeof(text)));
    wb_store_close(s);
    return rc < 0;
}
