/*
 * store_seed STORE COUNT: prints a stream for `git fast-import` that fills STORE, which is made
 * here and empty, with COUNT records. The records are made by the code that makes real ones, up to
 * the rendered documents; 100 runs a day, 20 runs (5 arms, 4 rounds) a campaign, 40 studies, about
 * 35 KB a run. Raw data is left out.
 */
#include "server/base/rng.h"
#include "server/base/units.h"
#include "server/record/work.h"
#include "tests/support/sample_record.h"

#define RUNS_A_DAY 100
#define ARMS 5
#define RUNS_A_CAMPAIGN 20
#define STUDIES 40
#define SEED_STEP_MS (86400000LL / RUNS_A_DAY)

static const char *const arms[ARMS] = {"native x1", "native x4", "docker x1", "docker x4", "vm x1"};

/* n bytes that are a fact about run or study `salt`, a line each: numbers that compress as numbers
 * do. */
static void pad(wb_json *doc, uint64_t salt, size_t n)
{
    wb_json *facts = wb_json_object();
    struct wb_rng rng;
    size_t len = 0;

    wb_rng_seed(&rng, salt);
    for (int i = 0; len < n; i++) {
        WB_AUTO_FREE char *key = wb_strf("figure_of_something_%d", i);

        wb_json_set_real(facts, key, (double)wb_rng_below(&rng, 10000000) / 1000);
        len += strlen(key) + 12;
    }
    wb_json_set(doc, "facts", facts);
}

static void set_figures(struct wb_record *r, int64_t n, struct wb_rng *rng)
{
    wb_json *phases = wb_json_get(r->result, "phases");
    int arm = (int)(n % ARMS);
    double ops = 20000 * (1 - 0.05 * arm) * (1 + 0.01 * (wb_rng_unit(rng) - 0.5));
    wb_json *service, *response;

    wb_json_set_real(wb_json_get(wb_json_at(phases, 0), "load"), "achieved_per_s", ops);
    service = wb_json_path(wb_json_at(phases, 0), "load.operations.all.service");
    response = wb_json_path(wb_json_at(phases, 1), "load.operations.all.response");
    wb_json_set_real(service, "p99_ms", 2 + wb_rng_unit(rng));
    wb_json_set_real(response, "p99_ms", 1 + wb_rng_unit(rng));
}

static wb_json *make_plan(const char *campaign, const char *study)
{
    wb_json *plan = wb_json_object(), *list = wb_json_array(), *contrasts = wb_json_array();

    wb_json_set_str(plan, "campaign", campaign);
    wb_json_set_str(plan, "study", study);
    wb_json_set_int(plan, "rounds", RUNS_A_CAMPAIGN / ARMS);
    wb_json_set_real(plan, "threshold_percent", 2);
    wb_json_set_bool(plan, "accept_noisy", false);
    for (int i = 0; i < ARMS; i++) {
        wb_json *arm = wb_json_object();

        wb_json_set_str(arm, "label", arms[i]);
        wb_json_set_str(arm, "form", arms[i]);
        wb_json_push(list, arm);
        if (i) {
            wb_json *c = wb_json_object();
            WB_AUTO_FREE char *name = wb_strf("%s against %s", arms[i], arms[0]);

            wb_json_set_str(c, "name", name);
            wb_json_set_str(c, "arm", arms[i]);
            wb_json_set_str(c, "against", arms[0]);
            wb_json_set_str(c, "metric", "max.throughput");
            wb_json_set_str(c, "better", "higher");
            wb_json_set_bool(c, "primary", true);
            wb_json_push(contrasts, c);
        }
    }
    wb_json_set(plan, "arms", list);
    wb_json_set(plan, "contrasts", contrasts);
    return plan;
}

/* Record n of count; the last one is a day before those of sample_record. */
static struct wb_record make(int64_t n, int64_t count, struct wb_rng *rng)
{
    static const char *const steps[] = {"configure", "fetch", "install", "measure",
                                        "probe",     "ready", "stop",    "wipe"};
    struct wb_record r = sample_record(0);
    int64_t campaign_no = n / RUNS_A_CAMPAIGN, study_no = campaign_no % STUDIES;
    WB_AUTO_FREE char *campaign = wb_strf("cmp_01S%019lld", (long long)campaign_no);
    WB_AUTO_FREE char *study = wb_strf("study-%02lld", (long long)study_no);
    WB_AUTO_FREE char *series =
        wb_strf("%08llx%08x", (unsigned long long)wb_mix64(5, (uint64_t)study_no) >> 32,
                (unsigned)(n % ARMS));

    free(r.run);
    r.run = wb_strf("run_01S%019lld", (long long)n);
    r.started_ms = SAMPLE_T0 - 86400000 - (count - n) * SEED_STEP_MS;
    wb_json_free(r.plan);
    r.plan = make_plan(campaign, study);
    set_figures(&r, n, rng);
    pad(r.study, (uint64_t)study_no, 500);
    pad(r.plan, (uint64_t)campaign_no, 2000);
    pad(r.environment, (uint64_t)study_no, 3500);
    wb_json_set_int(r.environment, "uptime_s", n * 864);
    pad(r.result, (uint64_t)n, 6000);
    for (size_t i = 0; i < WB_LEN(steps); i++) {
        WB_AUTO_FREE char *name = wb_strf("steps/z-%s", steps[i]);
        WB_AUTO_FREE char *text = wb_calloc(1, 1801);

        memset(text, 'a' + (int)i, 1800);
        sample_file(&r.recipe_files, &r.nrecipe_files, name, text);
    }
    sample_summary(&r, (int)(n % 1000));
    wb_json_set_str(r.summary, "campaign", campaign);
    wb_json_set_str(r.summary, "study", study);
    wb_json_set_str(r.summary, "arm", arms[n % ARMS]);
    wb_json_set_str(r.summary, "series_key", series);
    wb_json_set_int(r.summary, "round", n % RUNS_A_CAMPAIGN / ARMS + 1);
    if (n % 37 == 0)
        wb_json_set_str(r.summary, "outcome", "sut-error");
    for (size_t i = 0; i < r.nraw; i++) {
        free(r.raw[i].name);
        free(r.raw[i].data);
    }
    r.nraw = 0;
    return r;
}

static void emit_file(const char *folder, const char *name, bool exec, const void *data, size_t n)
{
    (void)printf("M %s inline %s/%s\ndata %zu\n", exec ? "100755" : "100644", folder, name, n);
    (void)fwrite(data, 1, n, stdout);
    (void)putchar('\n');
}

static void emit(const struct wb_work *w)
{
    (void)printf("commit %s\ncommitter Weighbridge <weighbridge@localhost> %lld +0000\n"
                 "data %zu\n%s\n",
                 w->ref, (long long)w->time_s, strlen(w->message), w->message);
    for (size_t i = 0; i < WB_NDOCS; i++) {
        WB_AUTO_FREE char *name = wb_strf("%s.json", wb_record_docs[i]);

        emit_file(w->folder, name, false, wb_buf_str(&w->docs[i]), w->docs[i].len);
    }
    for (size_t i = 0; i < w->r->nrecipe_files; i++) {
        const struct wb_raw_file *f = &w->r->recipe_files[i];
        WB_AUTO_FREE char *name = wb_strf("recipe/%s", f->name);

        emit_file(w->folder, name, !strncmp(f->name, "steps/", 6), f->data, f->n);
    }
}

int main(int argc, char **argv)
{
    struct wb_err err = WB_ERR_INIT;
    struct wb_store *s = NULL;
    struct wb_rng rng;
    int64_t count = 0;
    char text[2 * WB_ERR_TEXT_MAX];
    int rc;

    if (argc != 3 || wb_parse_int(argv[2], 1, 10000000, &count, &err) < 0) {
        (void)fprintf(stderr, "usage: store_seed STORE COUNT\n");
        return 2;
    }
    wb_rng_seed(&rng, 3);
    rc = wb_store_open(argv[1], true, "lab", &s, &err);
    for (int64_t n = 0; rc == 0 && n < count; n++) {
        struct wb_record r = make(n, count, &rng);
        struct wb_work w = {.s = s, .r = &r};

        rc = wb_work_prepare(&w, &err);
        if (rc == 0)
            emit(&w);
        wb_work_release(&w);
        wb_record_release(&r);
    }
    if (rc < 0)
        (void)fprintf(stderr, "store_seed: %s\n", wb_err_text(&err, text, sizeof(text)));
    wb_store_close(s);
    return rc < 0 || fflush(stdout) != 0;
}
