/*
 * Checks of a job as a whole, and the fields that follow from others.
 */
#include "runners/load/job.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "runners/load/conn.h"
#include "runners/load/keys.h"
#include "server/base/buf.h"
#include "server/base/clock.h"
#include "server/base/mem.h"
#include "server/base/units.h"

#define MEMORY_MAX (4LL << 30)
#define RATE_LEAST 1e-6 /* per second */
#define RATE_MOST 1e6

/* Index of text among NULL-ended words; *def when text is NULL. */
static int find_word(const char *what, const char *text, const char *const *words, int def,
                     int *out, struct wb_err *err)
{
    struct wb_buf list = WB_BUF_INIT(256);

    if (!text) {
        *out = def;
        return 0;
    }
    for (int i = 0; words[i]; i++) {
        if (strcmp(words[i], text) == 0) {
            *out = i;
            wb_buf_release(&list);
            return 0;
        }
        wb_buf_addf(&list, "%s%s", i ? ", " : "", words[i]);
    }
    (void)wb_fail(err, WB_INVALID, "%s: '%s' is not one of: %s", what, text, wb_buf_str(&list));
    wb_buf_release(&list);
    return -WB_INVALID;
}

static int rate_of(const char *text, double *out, struct wb_err *err)
{
    int rc = wb_parse_rate(text, out, err);

    if (rc == 0 && !(*out >= RATE_LEAST && *out <= RATE_MOST))
        rc = wb_fail(err, WB_INVALID, "'%s' is not from 1 per 1000000s to 1M/s", text);
    return rc < 0 ? wb_wrap(err, "rate") : 0;
}

/* "20k/s", or "1k..20k/s". */
static int read_segment(const char *text, struct wb_rate_segment *out, struct wb_err *err)
{
    const char *dots = strstr(text, "..");
    WB_AUTO_FREE char *from = dots ? wb_strndup(text, (size_t)(dots - text)) : wb_strdup(text);
    int rc = rate_of(from, &out->from_per_s, err);

    out->to_per_s = out->from_per_s;
    return rc == 0 && dots ? rate_of(dots + 2, &out->to_per_s, err) : rc;
}

/* The text of a rate: one rate, or segments of equal length over the window. */
static int check_rate(struct wb_load_job *job, struct wb_err *err)
{
    double sum = 0;
    int n = 0;

    if (!job->rate_text)
        return 0;
    if (job->rate_per_s > 0 && !job->rate_derived)
        return wb_fail(err, WB_INVALID, "rate and rate_per_s are both given: one says the rate");
    for (const char *s = job->rate_text;; s++) {
        size_t len = strcspn(s, ",");
        WB_AUTO_FREE char *one = wb_strndup(s, len);
        int rc;
        if (n == WB_RATE_SEGMENTS_MAX)
            return wb_fail(err, WB_LIMIT, "rate: more than %d segments", WB_RATE_SEGMENTS_MAX);
        rc = read_segment(one, &job->segment[n], err);
        if (rc < 0)
            return rc;
        sum += (job->segment[n].from_per_s + job->segment[n].to_per_s) / 2;
        n++;
        s += len;
        if (!*s)
            break;
    }
    job->nsegments = n > 1 || job->segment[0].from_per_s != job->segment[0].to_per_s ? n : 0;
    job->rate_per_s = job->nsegments ? sum / n : job->segment[0].from_per_s;
    job->rate_derived = true;
    if (job->nsegments && job->ops > 0)
        return wb_fail(err, WB_INVALID,
                       "rate: steps and ramps share the time of the window among them: give for "
                       "instead of ops");
    return 0;
}

/* Sweep and search: windows at rates of their own in one process. */
static int check_exploring(struct wb_load_job *job, struct wb_err *err)
{
    int rc = 0;

    job->nsweep = 0;
    job->search = job->search_text != NULL;
    if (job->search_text)
        rc = wb_slo_parse(job->search_text, &job->slo, err);
    for (const char *s = job->sweep_text; s && rc == 0; s++) {
        size_t len = strcspn(s, ",");
        WB_AUTO_FREE char *one = wb_strndup(s, len);
        if (job->nsweep == WB_RATE_SEGMENTS_MAX)
            return wb_fail(err, WB_LIMIT, "sweep: more than %d rates", WB_RATE_SEGMENTS_MAX);
        rc = rate_of(one, &job->sweep[job->nsweep++], err);
        s += len;
        if (!*s)
            break;
    }
    if (rc < 0)
        return wb_wrap(err, job->nsweep ? "sweep" : "search");
    if (!job->search && job->nsweep == 0)
        return 0;
    if (job->nsweep > 0 && job->rate_per_s > 0)
        return wb_fail(err, WB_INVALID, "sweep: its rates are the rates: give no other one");
    if (job->nsegments > 0 || job->ops > 0 || job->load_only || job->part_text || job->start_at)
        return wb_fail(err, WB_INVALID,
                       "%s: steps and ramps, ops, load-only, part and start-at do not go with it: "
                       "each of its rates has a window of its own, in one process",
                       job->nsweep ? "sweep" : "search");
    return 0;
}

/* So many in flight that the cap does not bind, and places for not more than a million in all: the
 * ring of a connection is walked whole, so its memory is used however few are in flight. */
static int64_t open_depth(int64_t connections)
{
    int64_t share = (1 << 20) / connections;

    return share < WB_LOAD_OPEN_DEPTH ? share : WB_LOAD_OPEN_DEPTH;
}

static int check_model(struct wb_load_job *job, struct wb_err *err)
{
    static const char *const models[] = {"closed", "open", NULL};
    static const char *const laws[] = {"constant", "poisson", NULL};
    static const char *const policies[] = {"immediate", "capped:N", "drop", NULL};
    const char *catch_up = job->catch_up_text;
    int model = 0, law = 0, policy = 0, rc = check_rate(job, err);

    if (rc == 0)
        rc = check_exploring(job, err);
    if (rc < 0)
        return rc;
    rc = find_word("model", job->model_text, models,
                   job->rate_per_s > 0 || job->search || job->nsweep > 0, &model, err);
    if (rc < 0)
        return rc;
    rc = find_word("arrivals", job->arrivals_text, laws, 0, &law, err);
    if (rc < 0)
        return rc;
    if (catch_up && strncmp(catch_up, "capped:", 7) == 0) {
        policy = WB_LOAD_CAPPED;
        rc = wb_parse_real(catch_up + 7, 1, 1000, &job->catch_up_times, err);
        if (rc < 0)
            return wb_wrap(err, "catch-up");
    } else {
        rc = find_word("catch-up", catch_up, policies, 0, &policy, err);
        if (rc < 0)
            return rc;
        if (policy == WB_LOAD_CAPPED)
            return wb_fail(err, WB_INVALID, "catch-up: capped needs a number, e.g. capped:2");
    }
    job->model = (enum wb_load_model)model;
    job->arrivals = (enum wb_load_arrivals)law;
    job->catch_up = (enum wb_load_catch_up)policy;
    if ((job->search || job->nsweep > 0) && job->model != WB_LOAD_OPEN)
        return wb_fail(err, WB_INVALID, "model: a sweep or search offers rates: it is open");
    if (job->model == WB_LOAD_OPEN && !(job->rate_per_s > 0) && !job->search && job->nsweep == 0)
        return wb_fail(err, WB_INVALID, "open loop needs a rate (rate_per_s, --rate)");
    if (job->rate_per_s > 0 && !(job->rate_per_s >= RATE_LEAST && job->rate_per_s <= RATE_MOST))
        return wb_fail(err, WB_INVALID, "rate: %g/s is not from 1 per 1000000s to 1M/s",
                       job->rate_per_s);
    if (job->depth == 0)
        job->depth = job->model == WB_LOAD_OPEN ? open_depth(job->connections) : 1;
    return 0;
}

/* random, letters, zeros, or a percentage of zeros. */
static int check_content(struct wb_load_job *job, struct wb_err *err)
{
    static const char *const contents[] = {"random", "letters", "zeros", "a share such as 60%",
                                           NULL};
    const char *text = job->content_text;
    int v = 0, rc;

    if (text && text[0] >= '0' && text[0] <= '9') {
        rc = wb_parse_percent(text, 0, 100, &job->zeros_share, err);
        if (rc < 0)
            return wb_wrap(err, "value content");
        job->zeros_share /= 100;
        v = WB_LOAD_COMPRESSIBLE;
    } else {
        rc = find_word("value content", text, contents, 0, &v, err);
        if (rc < 0)
            return rc;
    }
    job->content = (enum wb_load_content)v;
    return 0;
}

static int check_data(struct wb_load_job *job, struct wb_err *err)
{
    int rc = wb_key_law_parse(job->key_choice_text, &job->key_law, err);

    if (rc < 0)
        return wb_wrap(err, "key-choice");
    if (job->size_text) {
        rc = wb_size_law_parse(job->size_text, &job->size_law, err);
        if (rc < 0)
            return rc;
        job->value_bytes = job->size_law.most;
    } else {
        job->size_law = (struct wb_size_law){.kind = WB_SIZE_FIXED};
    }
    rc = check_content(job, err);
    if (rc < 0)
        return rc;
    if (job->key_bytes < (int64_t)wb_keys_bytes_min(wb_keys_named(job)))
        return wb_fail(err, WB_INVALID, "key-bytes: %lld are too few for %lld keys, at least %u",
                       (long long)job->key_bytes, (long long)wb_keys_named(job),
                       wb_keys_bytes_min(wb_keys_named(job)));
    if (job->load_only)
        job->load = true;
    if (job->load_state && !job->load)
        return wb_fail(err, WB_INVALID, "load-state: there is no data load (load, load-only)");
    return 0;
}

static int check_split(struct wb_load_job *job, struct wb_err *err)
{
    static const char *const words[] = {"none", "keys", "slots", "cluster", NULL};
    int v = 0, rc = find_word("split", job->split_text, words, 0, &v, err);

    job->split = (enum wb_load_split)v;
    return rc;
}

/* "get=80,set=20"; the names are checked when the protocol is known. */
static int check_mix(struct wb_load_job *job, struct wb_err *err)
{
    const char *s = job->mix_text ? job->mix_text : "get=100";
    double total = 0;

    job->nmix = job->ntxn = 0;
    if (job->txn_text) {
        int rc = wb_txn_parse(job->txn_text, job->txn, &job->ntxn, err);
        if (rc < 0)
            return rc;
        for (; !job->mix_text && job->nmix < job->ntxn; job->nmix++) { /* all as often */
            memcpy(job->mix[job->nmix].name, job->txn[job->nmix].name, sizeof(job->mix[0].name));
            job->mix[job->nmix].weight = 1;
        }
        if (!job->mix_text)
            return 0;
    }
    while (*s) {
        size_t n = strcspn(s, ","), name = strcspn(s, "=,");
        struct wb_load_mix_part *part = &job->mix[job->nmix];
        WB_AUTO_FREE char *weight = NULL;
        int rc;
        if (job->nmix == WB_LOAD_OPS_MAX)
            return wb_fail(err, WB_LIMIT, "mix: more than %d operations", WB_LOAD_OPS_MAX);
        if (name == 0 || name >= sizeof(part->name) || s[name] != '=')
            return wb_fail(err, WB_INVALID, "mix: '%s' is not NAME=WEIGHT[,NAME=WEIGHT...]",
                           job->mix_text);
        memcpy(part->name, s, name);
        part->name[name] = 0;
        weight = wb_strndup(s + name + 1, n - name - 1);
        rc = wb_parse_percent(weight, 0, 1e6, &part->weight, err);
        if (rc < 0)
            return wb_wrap(err, "mix: weight of %s", part->name);
        for (int i = 0; i < job->nmix; i++)
            if (strcmp(job->mix[i].name, part->name) == 0)
                return wb_fail(err, WB_INVALID, "mix: '%s' stands there twice", part->name);
        total += part->weight;
        job->nmix++;
        s += n + (s[n] == ',');
    }
    if (!(total > 0))
        return wb_fail(err, WB_INVALID, "mix: at least one weight must be above 0");
    return 0;
}

/* The allowed CPUs, or the asked ones after a check that they are allowed. */
static int check_cpus(struct wb_load_job *job, struct wb_err *err)
{
    cpu_set_t allowed;
    int *asked = NULL, n = 0, rc = 0;

    free(job->cpu);
    job->cpu = NULL;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
        return wb_fail(err, WB_UNSUPPORTED, "reading the allowed CPUs: more than %d CPUs",
                       CPU_SETSIZE);
    if (job->cpus) {
        rc = wb_parse_cpulist(job->cpus, &asked, &n, err);
        if (rc < 0)
            return wb_wrap(err, "cpus");
    }
    if (n == 0) {
        asked = wb_realloc(asked, CPU_SETSIZE, sizeof(*asked));
        for (int c = 0; c < CPU_SETSIZE; c++)
            if (CPU_ISSET(c, &allowed))
                asked[n++] = c;
    }
    for (int i = 0; i < n && rc == 0; i++) {
        if (asked[i] < CPU_SETSIZE && CPU_ISSET(asked[i], &allowed))
            continue;
        rc = wb_fail(err, WB_INVALID, "cpus: CPU %d is not one this process may use", asked[i]);
    }
    if (rc < 0) {
        free(asked);
        return rc;
    }
    job->cpu = asked;
    job->ncpu = n;
    return 0;
}

static int check_part(struct wb_load_job *job, struct wb_err *err)
{
    const char *slash = job->part_text ? strchr(job->part_text, '/') : NULL;
    int64_t part = 1, parts = 1;

    if (job->part_text) {
        WB_AUTO_FREE char *left =
            slash ? wb_strndup(job->part_text, (size_t)(slash - job->part_text)) : NULL;
        if (!slash || wb_parse_int(slash + 1, 1, 1024, &parts, NULL) < 0 ||
            wb_parse_int(left, 1, parts, &part, NULL) < 0)
            return wb_fail(err, WB_INVALID,
                           "part: '%s' is not h/H with h from 1 to H and H at most 1024",
                           job->part_text);
    }
    job->part = part - 1;
    job->parts = parts;
    job->start_unix_ms = 0;
    if (job->start_at && wb_parse_time(job->start_at, &job->start_unix_ms, err) < 0)
        return wb_wrap(err, "start-at");
    return 0;
}

int wb_load_job_check(struct wb_load_job *job, struct wb_err *err)
{
    int64_t memory;
    int rc;

    if (!job->target)
        return wb_fail(err, WB_INVALID, "no target: give an address like resp://127.0.0.1:6379");
    if (job->connections < job->threads)
        return wb_fail(err, WB_INVALID, "connections: %lld are too few for %lld threads",
                       (long long)job->connections, (long long)job->threads);
    rc = check_model(job, err);
    if (rc == 0)
        rc = check_data(job, err);
    if (rc == 0)
        rc = check_split(job, err);
    if (rc == 0)
        rc = check_mix(job, err);
    if (rc == 0)
        rc = check_part(job, err);
    if (rc == 0)
        rc = check_cpus(job, err);
    if (rc < 0)
        return rc;
    memory = job->connections * wb_conn_memory(job);
    if (memory > MEMORY_MAX)
        return wb_fail(err, WB_LIMIT,
                       "connections x depth x value size would need %lld MiB of buffers, the "
                       "bound is %lld MiB: lower one of them",
                       (long long)(memory >> 20), MEMORY_MAX >> 20);
    return 0;
}

static const char *or_text(const char *s, const char *dflt)
{
    return s ? s : dflt;
}

wb_json *wb_load_job_json(const struct wb_load_job *job)
{
    wb_json *j = wb_json_object(), *mix = wb_json_object();
    bool open = job->model == WB_LOAD_OPEN;

    for (int i = 0; i < job->nmix; i++)
        wb_json_set_real(mix, job->mix[i].name, job->mix[i].weight);
    wb_json_set_str(j, "target", job->target);
    wb_json_set_str(j, "split", or_text(job->split_text, "none"));
    wb_json_set_int(j, "threads", job->threads);
    wb_json_set_str(j, "cpus", job->cpus);
    wb_json_set_int(j, "connections", job->connections);
    wb_json_set_int(j, "depth", job->depth);
    wb_json_set_int(j, "keys", job->keys);
    wb_json_set_int(j, "key_bytes", job->key_bytes);
    wb_json_set_str(j, "key_choice", or_text(job->key_choice_text, "uniform"));
    wb_json_set_str(j, "transactions", job->txn_text);
    wb_json_set_int(j, "value_bytes", job->value_bytes);
    wb_json_set_str(j, "value_size", job->size_text);
    wb_json_set_str(j, "value_content", or_text(job->content_text, "random"));
    wb_json_set(j, "mix", mix);
    wb_json_set_str(j, "rate", open ? job->rate_text : NULL);
    wb_json_set_str(j, "sweep", job->sweep_text);
    wb_json_set_str(j, "search", job->search_text);
    wb_json_set(j, "rate_per_s",
                job->rate_per_s > 0 ? wb_json_real(job->rate_per_s) : wb_json_null());
    wb_json_set_str(j, "arrivals", open ? or_text(job->arrivals_text, "constant") : NULL);
    wb_json_set_str(j, "catch_up", open ? or_text(job->catch_up_text, "immediate") : NULL);
    wb_json_set(j, "gather_us",
                open ? wb_json_real((double)job->gather_ns / WB_US) : wb_json_null());
    wb_json_set_real(j, "timeout_ms", (double)job->timeout_ns / WB_MS);
    wb_json_set_real(j, "warm_up_s", (double)job->warm_up_ns / WB_SEC);
    wb_json_set(j, "for_s", job->ops ? wb_json_null() : wb_json_real((double)job->for_ns / WB_SEC));
    wb_json_set(j, "ops", job->ops ? wb_json_int(job->ops) : wb_json_null());
    wb_json_set_bool(j, "load", job->load);
    wb_json_set_bool(j, "load_only", job->load_only);
    wb_json_set_str(j, "load_state", job->load_state);
    wb_json_set_real(j, "verify", job->verify_share);
    wb_json_set_int(j, "resp_version", job->resp_version);
    wb_json_set_str(j, "tls", job->tls);
    wb_json_set_str(j, "part", or_text(job->part_text, "1/1"));
    wb_json_set_real(j, "interval_s", (double)job->interval_ns / WB_SEC);
    return j;
}
