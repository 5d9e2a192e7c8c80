/*
 * store_ask STORE TIMES [as-it-is]: makes the index (not as-it-is), asks a store what a server is
 * asked, in one process, TIMES times each at random places; prints "<question> <p50 ms> <p95 ms>"
 * and the anonymous memory in MB: the most while the index is made, and at the end.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/compare.h"
#include "server/base/cancel.h"
#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/rng.h"
#include "server/base/units.h"
#include "server/record/query.h"

struct asker {
    struct wb_store *s;
    const char *path;
    struct wb_rng rng;
    struct wb_strv runs, campaigns; /* some of them, from all of the store's life */
    char *cursor;                   /* far down the list */
};

typedef int question(struct asker *a, struct wb_err *err);

static const char *any(struct asker *a, const struct wb_strv *v)
{
    return v->v[wb_rng_below(&a->rng, v->n)];
}

static int ask_runs(struct asker *a, const struct wb_query *q, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *items = NULL;
    WB_AUTO_FREE char *next = NULL;

    return wb_store_runs(a->s, q, &items, &next, err);
}

static int q_open(struct asker *a, struct wb_err *err)
{
    struct wb_store *s = NULL;
    WB_AUTO_JSON wb_json *items = NULL;
    WB_AUTO_FREE char *next = NULL;
    int rc = wb_store_open(a->path, false, NULL, &s, err);

    if (rc == 0)
        rc = wb_store_runs(s, &(struct wb_query){.limit = 1}, &items, &next, err);
    wb_store_close(s);
    return rc;
}

static int q_list(struct asker *a, struct wb_err *err)
{
    return ask_runs(a, &(struct wb_query){.limit = 50}, err);
}

static int q_list_arm(struct asker *a, struct wb_err *err)
{
    return ask_runs(a, &(struct wb_query){.limit = 50, .arm = "docker x4", .outcome = "ok"}, err);
}

static int q_list_deep(struct asker *a, struct wb_err *err)
{
    return ask_runs(a, &(struct wb_query){.limit = 50, .cursor = a->cursor}, err);
}

static int q_list_fastest(struct asker *a, struct wb_err *err)
{
    return ask_runs(a, &(struct wb_query){.limit = 50, .order = WB_BY_THROUGHPUT}, err);
}

static int q_campaigns(struct asker *a, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *items = NULL;
    WB_AUTO_FREE char *next = NULL;

    return wb_store_campaigns(a->s, &(struct wb_query){.limit = 50}, &items, &next, err);
}

static int q_series(struct asker *a, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *items = NULL;
    WB_AUTO_FREE char *next = NULL;

    return wb_store_series(a->s, &(struct wb_query){.limit = 50}, &items, &next, err);
}

static int q_show(struct asker *a, struct wb_err *err)
{
    static const char *const docs[] = {"summary", "result", "environment"};
    const char *run = any(a, &a->runs);
    struct wb_run_place place = {0};
    int rc = wb_store_where(a->s, run, &place, err);

    wb_run_place_release(&place);
    for (size_t i = 0; rc == 0 && i < WB_LEN(docs); i++) {
        WB_AUTO_JSON wb_json *doc = NULL;

        rc = wb_store_read(a->s, run, docs[i], &doc, err);
    }
    return rc;
}

static int q_compare(struct asker *a, struct wb_err *err)
{
    const struct wb_list_filter f = {.campaign = any(a, &a->campaigns)};
    WB_AUTO_JSON wb_json *runs = NULL;
    WB_AUTO_JSON wb_json *plan = NULL;
    WB_AUTO_JSON wb_json *report = NULL;
    int rc = wb_store_list(a->s, &f, &runs, err);

    if (rc == 0)
        rc = wb_store_read(a->s, wb_json_str_or(wb_json_at(runs, 0), "id", ""), "plan", &plan, err);
    return rc < 0 ? rc : wb_campaign_report(plan, runs, &report, err);
}

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;

    return (a > b) - (a < b);
}

static int ask(struct asker *a, const char *name, question *q, size_t times, struct wb_err *err)
{
    WB_AUTO_FREE double *ms = wb_calloc(times, sizeof(*ms));
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < times; i++) {
        int64_t from = wb_now_ns(NULL);

        rc = q(a, err);
        ms[i] = (double)(wb_now_ns(NULL) - from) / 1e6;
    }
    if (rc < 0)
        return wb_wrap(err, "%s", name);
    qsort(ms, times, sizeof(*ms), by_value);
    (void)printf("%s %.2f %.2f\n", name, ms[times / 2], ms[times * 95 / 100]);
    return 0;
}

/* Ids from pages all over the list. */
static int learn(struct asker *a, struct wb_err *err)
{
    size_t pages = 0;
    char *cursor = NULL;
    int rc = 0;

    do {
        const struct wb_query q = {.limit = 200, .cursor = cursor};
        WB_AUTO_JSON wb_json *items = NULL;
        char *next = NULL;

        rc = wb_store_runs(a->s, &q, &items, &next, err);
        free(cursor);
        cursor = next;
        for (size_t i = 0; rc == 0 && i < wb_json_len(items); i += 20) {
            const wb_json *r = wb_json_at(items, i);

            wb_strv_add(&a->runs, wb_json_str_or(r, "id", ""));
            wb_strv_add(&a->campaigns, wb_json_str_or(r, "campaign", ""));
        }
    } while (rc == 0 && cursor && ++pages < 20);
    a->cursor = cursor;
    return rc;
}

/* Anonymous memory of this process in kB; -1 when the kernel does not say. */
static int64_t anonymous_kb(void)
{
    struct wb_buf b = WB_BUF_INIT(65536);
    const char *at = NULL;
    int64_t kb = -1;

    if (wb_file_read_small("/proc/self/status", &b, NULL) == 0)
        at = strstr(wb_buf_str(&b), "RssAnon:");
    if (at)
        kb = (int64_t)strtod(at + 8, NULL);
    wb_buf_release(&b);
    return kb;
}

/* Looks every two milliseconds, for the kernel keeps no peak of this. */
struct sampler {
    pthread_t thread;
    atomic_bool stop;
    int64_t peak_kb;
};

static void *sample(void *arg)
{
    struct sampler *s = arg;

    while (!atomic_load(&s->stop)) {
        int64_t now = anonymous_kb();

        s->peak_kb = now > s->peak_kb ? now : s->peak_kb;
        WB_IGNORE(wb_wait(NULL, -1, 2 * WB_MS, NULL));
    }
    return NULL;
}

static int timed_reindex(struct asker *a, struct wb_err *err)
{
    struct sampler s = {.peak_kb = -1};
    int64_t from = wb_now_ns(NULL);
    size_t runs = 0;
    int rc;

    if (pthread_create(&s.thread, NULL, sample, &s) != 0)
        return wb_fail(err, WB_IO, "no thread to look at the memory");
    rc = wb_store_reindex(a->s, &runs, err);
    atomic_store(&s.stop, true);
    (void)pthread_join(s.thread, NULL);
    if (rc == 0) {
        double ms = (double)(wb_now_ns(NULL) - from) / 1e6;

        (void)printf("reindex %.2f %.2f\n", ms, ms);
        (void)printf("memory-reindex %.1f\n", (double)s.peak_kb / 1024);
    }
    return rc;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        question *q;
    } questions[] = {
        {"start", q_open},
        {"list", q_list},
        {"list-filtered", q_list_arm},
        {"list-deep", q_list_deep},
        {"list-fastest", q_list_fastest},
        {"list-campaigns", q_campaigns},
        {"list-series", q_series},
        {"show", q_show},
        {"compare", q_compare},
    };
    struct asker a = {.path = argc > 1 ? argv[1] : ""};
    struct wb_err err = WB_ERR_INIT;
    char text[2 * WB_ERR_TEXT_MAX];
    int64_t times = 0;
    int rc;

    if (argc < 3 || argc > 4 || wb_parse_int(argv[2], 1, 100000, &times, &err) < 0) {
        (void)fprintf(stderr, "usage: store_ask STORE TIMES [as-it-is]\n");
        return 2;
    }
    wb_rng_seed(&a.rng, 4);
    rc = wb_store_open(argv[1], false, NULL, &a.s, &err);
    if (rc == 0 && argc == 3)
        rc = timed_reindex(&a, &err);
    if (rc == 0)
        rc = learn(&a, &err);
    for (size_t i = 0; rc == 0 && i < WB_LEN(questions); i++)
        rc = ask(&a, questions[i].name, questions[i].q, (size_t)times, &err);
    if (rc < 0)
        (void)fprintf(stderr, "store_ask: %s\n", wb_err_text(&err, text, sizeof(text)));
    else
        (void)printf("memory %.1f\n", (double)anonymous_kb() / 1024);
    wb_store_close(a.s);
    wb_strv_release(&a.runs);
    wb_strv_release(&a.campaigns);
    free(a.cursor);
    return rc < 0;
}
