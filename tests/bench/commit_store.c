/*
 * commit_store STORE COUNT: commits COUNT records of a realistic size (about 45 KB of documents
 * and recipe, 60 KB of raw data) and prints the milliseconds each took.
 */
#include "server/base/rng.h"
#include "server/base/units.h"
#include "tests/support/sample_record.h"

/* n bytes of text that compresses like a log does. */
static char *prose(struct wb_rng *rng, size_t n)
{
    struct wb_buf b = WB_BUF_INIT(n + 64);

    while (b.len < n)
        wb_buf_addf(&b, "%llu info line %llu of the log\n",
                    (unsigned long long)wb_rng_below(rng, 1000000),
                    (unsigned long long)wb_rng_below(rng, 1000));
    return wb_buf_take(&b);
}

static void pad(wb_json *doc, struct wb_rng *rng, size_t n)
{
    WB_AUTO_FREE char *text = prose(rng, n);

    wb_json_set_str(doc, "pad", text);
}

/* Documents differ from run to run, the recipe does not. */
static struct wb_record big_record(int n, struct wb_rng *rng)
{
    static const char *const steps[] = {"configure", "fetch", "measure", "probe", "ready", "stop"};
    struct wb_record r = sample_record(n);
    struct wb_rng same;

    wb_rng_seed(&same, 1);
    pad(r.study, &same, 3000);
    pad(r.plan, &same, 6000);
    pad(r.environment, rng, 4000);
    pad(r.result, rng, 8000);
    for (int i = 0; i < 40; i++)
        wb_json_push(r.events,
                     sample_json("{\"event\":\"phase\",\"at\":\"2026-11-30T15:41:49Z\"}"));
    for (size_t i = 0; i < WB_LEN(steps); i++) {
        WB_AUTO_FREE char *name = wb_strf("steps/z-%s", steps[i]);
        WB_AUTO_FREE char *text = prose(&same, 3000);

        sample_file(&r.recipe_files, &r.nrecipe_files, name, text);
    }
    for (int i = 0; i < 3; i++) {
        WB_AUTO_FREE char *name = wb_strf("raw-%d.ndjson", i);
        WB_AUTO_FREE char *text = prose(rng, 20000);

        sample_file(&r.raw, &r.nraw, name, text);
    }
    sample_summary(&r, n);
    return r;
}

int main(int argc, char **argv)
{
    struct wb_err err = WB_ERR_INIT;
    struct wb_store *s = NULL;
    struct wb_rng rng;
    int64_t count = 0;
    char text[2 * WB_ERR_TEXT_MAX], hex[41];
    int rc;

    if (argc != 3 || wb_parse_int(argv[2], 1, 999, &count, &err) < 0) {
        (void)fprintf(stderr, "usage: commit_store STORE COUNT\n");
        return 2;
    }
    wb_rng_seed(&rng, 2);
    rc = wb_store_open(argv[1], true, "lab", &s, &err);
    for (int n = 0; rc == 0 && n < count; n++) {
        struct wb_record r = big_record(n, &rng);
        int64_t from = wb_now_ns(NULL);

        rc = wb_store_commit(s, &r, hex, &err);
        (void)printf("%.3f\n", (double)(wb_now_ns(NULL) - from) / 1e6);
        wb_record_release(&r);
    }
    if (rc < 0)
        (void)fprintf(stderr, "commit_store: %s\n", wb_err_text(&err, text, sizeof(text)));
    wb_store_close(s);
    return rc < 0;
}
