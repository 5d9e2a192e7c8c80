/*
 * An invented but whole and valid record, for tests and benchmarks of the store.
 */
#ifndef WB_TESTS_SAMPLE_RECORD_H
#define WB_TESTS_SAMPLE_RECORD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/digest.h"
#include "server/record/store.h"
#include "server/record/summary.h"

#define SAMPLE_T0 1796053309123LL /* 2026-11-30T15:41:49.123Z */
#define SAMPLE_STEP_MS 1000LL     /* from one run to the next */

static inline void sample_file(struct wb_raw_file **v, size_t *n, const char *name,
                               const char *text)
{
    *v = wb_realloc(*v, *n + 1, sizeof(**v));
    (*v)[(*n)++] = (struct wb_raw_file){wb_strdup(name), wb_strdup(text), strlen(text), false};
}

static inline wb_json *sample_json(const char *text)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *j = NULL;

    if (wb_json_parse(text, strlen(text), &j, &err) < 0) {
        fprintf(stderr, "sample: %s\n", err.root);
        abort();
    }
    return j;
}

/* An arm of a plan; its label is the level of factor form. Owned. */
static inline wb_json *sample_arm(const char *label, const char *form, int count)
{
    wb_json *arm = wb_json_object(), *factors = wb_json_object();

    wb_json_set_str(factors, "form", label);
    wb_json_set_str(arm, "label", label);
    wb_json_set_str(arm, "form", form);
    wb_json_set_int(arm, "count", count);
    wb_json_set(arm, "factors", factors);
    return arm;
}

/* The recipe's digest as store.h describes it; the files are given in byte order. */
static inline char *sample_digest(const struct wb_record *r)
{
    struct wb_buf b = WB_BUF_INIT(65536);
    char hex[WB_SHA256_HEX];

    for (size_t i = 0; i < r->nrecipe_files; i++) {
        wb_sha256_of(r->recipe_files[i].data, r->recipe_files[i].n, hex);
        wb_buf_addf(&b, "%s %c %s\n", r->recipe_files[i].name,
                    strncmp(r->recipe_files[i].name, "steps/", 6) ? '-' : 'x', hex);
    }
    wb_sha256_of(wb_buf_str(&b), b.len, hex);
    wb_buf_release(&b);
    return wb_strdup(hex);
}

static inline void sample_time(wb_json *o, const char *key, int64_t unix_ms)
{
    struct wb_buf at = WB_BUF_INIT(64);

    wb_format_time(unix_ms, &at);
    wb_json_set_str(o, key, wb_buf_str(&at));
    wb_buf_release(&at);
}

/* The summary that goes with the rest; call it again after a change. */
static inline void sample_summary(struct wb_record *r, int n)
{
    WB_AUTO_FREE char *digest = sample_digest(r);
    wb_json *metrics = NULL, *recipe, *s;

    wb_json_free(r->summary);
    s = r->summary = sample_json(
        "{\"schema\":1,\"campaign\":\"cmp_A\",\"study\":\"forms\",\"attempt\":1,\"position\":0,"
        "\"factors\":{\"form\":\"docker x1\"},\"seconds\":31.5,\"outcome\":\"ok\",\"reasons\":[],"
        "\"validity\":\"valid\",\"evidence\":[{\"name\":\"steal\",\"phase\":\"max\",\"value\":0.25,"
        "\"unit\":\"percent\",\"noisy\":1,\"worse\":5,\"verdict\":\"valid\"}],"
        "\"teardown\":\"clean\",\"series_key\":\"0123456789abcdef\","
        "\"host\":{\"name\":\"h\",\"class\":\"c\"},\"windows_short\":false,\"limits\":[]}");
    wb_json_set_str(s, "id", r->run);
    wb_json_set_str(s, "arm", n % 2 ? "docker x1" : "native x1");
    wb_json_set_int(s, "round", n / 2 + 1);
    recipe = sample_json("{\"name\":\"redis\",\"revision\":\"1\",\"version\":\"7.0.15\"}");
    wb_json_set_str(recipe, "digest", digest);
    wb_json_set(s, "recipe", recipe);
    sample_time(s, "started_at", r->started_ms);
    sample_time(s, "ended_at", r->started_ms + 31500);
    if (wb_summary_metrics(r->result, &metrics, NULL) < 0)
        abort();
    wb_json_set(s, "metrics", metrics);
}

/* Record n; the run starts n steps after T0. Even ones are native, odd ones in a container. */
static inline struct wb_record sample_record(int n)
{
    struct wb_record r = {.run = wb_strf("run_01JX8AB%03dCDEFGHJKMNPQRST", n),
                          .started_ms = SAMPLE_T0 + n * SAMPLE_STEP_MS};
    WB_AUTO_FREE char *log = wb_strf("log of %d\n", n);

    r.study = sample_json("{\"study\":\"forms\",\"rounds\":8}");
    r.plan = sample_json("{\"rounds\":8,\"seed\":7}");
    r.environment = sample_json("{\"host\":{\"cpus\":2}}");
    r.events = sample_json("[{\"event\":\"run.start\"},{\"event\":\"run.end\"}]");
    r.result = sample_json(
        "{\"phases\":[{\"name\":\"max\",\"model\":\"closed\",\"load\":{\"achieved_per_s\":21543.5,"
        "\"verdict\":\"server-bound\",\"failed\":0,"
        "\"operations\":{\"all\":{\"response\":null,\"service\":{\"p50_ms\":0.8,\"p99_ms\":2.25,"
        "\"p99_9_ms\":4.5}}}}},"
        "{\"name\":\"latency\",\"model\":\"open\",\"load\":{\"achieved_per_s\":12000,"
        "\"verdict\":\"valid\",\"failed\":3,"
        "\"operations\":{\"all\":{\"response\":{\"p50_ms\":0.5,\"p99_ms\":1.5,\"p99_9_ms\":null},"
        "\"service\":{\"p50_ms\":0.1}}}}}]}");
    sample_file(&r.recipe_files, &r.nrecipe_files, "files/redis.conf", "save \"\"\n");
    sample_file(&r.recipe_files, &r.nrecipe_files, "recipe.yaml", "name: redis\n");
    sample_file(&r.recipe_files, &r.nrecipe_files, "steps/install", "#!/bin/sh\nexit 0\n");
    sample_file(&r.raw, &r.nraw, "db0.log", log);
    sample_file(&r.raw, &r.nraw, "load-max.ndjson", "{\"t\":1}\n{\"t\":2}\n");
    sample_summary(&r, n);
    return r;
}

#endif
