#include "server/engine/server_side.h"

#include <string.h>

/* Nothing that has to be looked up and answered takes a database less, at the slow end. */
#define LEAST_MS 0.005
/* Buckets are 20 % wide, and the two sides do not see exactly the same requests. */
#define ABOVE_SHARE 1.25
#define ABOVE_MS 0.2
/* Waiting in front of the server makes the client's time longer, but not by more. */
#define BELOW_RATIO 200

int wb_server_read(struct wb_run *r, wb_json **out)
{
    WB_AUTO_JSON wb_json *all = wb_json_array();

    if (!r->e->study->recipe->has_step[WB_STEP_MEASURE])
        return 0;
    for (int i = 0; i < r->ninstances; i++) {
        struct wb_err err = WB_ERR_INIT;
        wb_json *said = NULL;
        int code;

        if (r->instances[i].member &&
            wb_run_step(r, &r->instances[i], WB_STEP_MEASURE, &code, &said, &err) < 0)
            return wb_run_fail(r, WB_OUTCOME_SUT_ERROR, &err);
        wb_json_push(all, said ? said : wb_json_null());
    }
    *out = WB_STEAL(all);
    return 0;
}

/* ---- metrics ---- */

static bool is_counter(const struct wb_recipe *recipe, const char *name)
{
    for (size_t i = 0; i < recipe->nmetrics; i++)
        if (strcmp(recipe->metrics[i].name, name) == 0)
            return recipe->metrics[i].counter;
    return false;
}

static wb_json *metrics_window(const struct wb_recipe *recipe, const wb_json *before,
                               const wb_json *after)
{
    wb_json *o = wb_json_object();

    for (void *it = wb_json_first(after); it; it = wb_json_next(after, it)) {
        const char *name = wb_json_iter_key(it);
        const wb_json *was = wb_json_get(before, name), *is = wb_json_iter_value(it);
        double by = wb_json_number(is, 0) - wb_json_number(was, 0);

        if (!wb_json_is_number(is))
            continue;
        if (!is_counter(recipe, name))
            wb_json_set(o, name, wb_json_ref(is));
        else if (!wb_json_is_number(was))
            wb_json_set_reason(o, name, "not known at the start of the window");
        else if (by < 0)
            wb_json_set_reason(o, name, "ran backwards: the database was restarted in between");
        else
            wb_json_set_real(o, name, by);
    }
    return o;
}

/* ---- histograms ---- */

/* Adds after - before to sum, which is empty at first. False when they do not belong together. */
static bool add_counts(const wb_json *before, const wb_json *after, struct wb_buf *sum)
{
    const wb_json *was = wb_json_get(before, "counts"), *is = wb_json_get(after, "counts");
    size_t n = wb_json_len(is);
    double *v;

    if (n != wb_json_len(wb_json_get(after, "bounds")) + 1 || (was && wb_json_len(was) != n))
        return false;
    if (!sum->len) {
        char *room = wb_buf_room(sum, n * sizeof(double));

        if (!room)
            return false;
        memset(room, 0, n * sizeof(double));
        wb_buf_commit(sum, n * sizeof(double));
    }
    if (sum->len != n * sizeof(double))
        return false;
    v = (double *)(void *)sum->data;
    for (size_t i = 0; i < n; i++) {
        double by = wb_json_number(wb_json_at(is, i), -1) - wb_json_number(wb_json_at(was, i), 0);

        if (by < 0)
            return false;
        v[i] += by;
    }
    return true;
}

static double unit_ms(const wb_json *histogram)
{
    const char *unit = wb_json_str_or(histogram, "unit", "");

    return !strcmp(unit, "ns") ? 1e-6 : !strcmp(unit, "us") ? 1e-3 : !strcmp(unit, "ms") ? 1 : 0;
}

/* The bound of the bucket in which the value of this rank lies. */
static void set_rank(wb_json *o, const char *key, const wb_json *histogram, const double *v,
                     double rank)
{
    const wb_json *bounds = wb_json_get(histogram, "bounds");
    double seen = 0;

    for (size_t i = 0; i < wb_json_len(bounds); i++) {
        seen += v[i];
        if (seen >= rank && seen > 0) {
            wb_json_set_real(o, key, wb_json_number(wb_json_at(bounds, i), 0) * unit_ms(histogram));
            return;
        }
    }
    wb_json_set_reason(o, key, "above the server's last bucket");
}

static wb_json *summary(const wb_json *histogram, const struct wb_buf *sum)
{
    static const struct {
        const char *key;
        double q;
    } ranks[] = {{"p50_ms", 0.5}, {"p99_ms", 0.99}, {"p99_9_ms", 0.999}, {"max_ms", 1}};
    const double *v = (const double *)(const void *)sum->data;
    wb_json *o = wb_json_object();
    double count = 0;

    for (size_t i = 0; i < sum->len / sizeof(double); i++)
        count += v[i];
    wb_json_set_int(o, "count", (int64_t)count);
    for (size_t i = 0; i < WB_LEN(ranks); i++) {
        if (count > 0)
            set_rank(o, ranks[i].key, histogram, v, ranks[i].q * count);
        else
            wb_json_set_reason(o, ranks[i].key, "no such request");
    }
    return o;
}

/* One histogram by name, over all instances; NULL when nothing can be said. */
static wb_json *histogram_window(const char *name, const wb_json *before, const wb_json *after)
{
    struct wb_buf sum = WB_BUF_INIT(1 << 16);
    const wb_json *last = NULL;
    wb_json *o = NULL;
    bool good = true;

    for (size_t i = 0; good && i < wb_json_len(after); i++) {
        const wb_json *first = wb_json_at(before, i), *second = wb_json_at(after, i);
        const wb_json *was = wb_json_get(wb_json_get(first, "histograms"), name);
        const wb_json *is = wb_json_get(wb_json_get(second, "histograms"), name);

        if (wb_json_type(second) != WB_JSON_OBJECT)
            continue;
        /* An instance that began in the window counts from 0, one that left it out does not. */
        good = is && (was || wb_json_type(first) != WB_JSON_OBJECT) && unit_ms(is) > 0 &&
               (!last || unit_ms(is) == unit_ms(last)) && add_counts(was, is, &sum);
        last = is;
    }
    if (good && last)
        o = summary(last, &sum);
    wb_buf_release(&sum);
    return o;
}

wb_json *wb_server_window(const struct wb_recipe *recipe, const wb_json *before,
                          const wb_json *after)
{
    wb_json *o = wb_json_object(), *instances = wb_json_array(), *histograms = wb_json_object();

    for (size_t i = 0; i < wb_json_len(after); i++) {
        const wb_json *was = wb_json_at(before, i), *is = wb_json_at(after, i);
        const wb_json *of = wb_json_get(is, "histograms");
        wb_json *one = wb_json_object();

        wb_json_set(
            one, "metrics",
            metrics_window(recipe, wb_json_get(was, "metrics"), wb_json_get(is, "metrics")));
        wb_json_push(instances, one);
        for (void *it = wb_json_first(of); it; it = wb_json_next(of, it)) {
            const char *name = wb_json_iter_key(it);

            if (wb_json_get(histograms, name))
                continue;
            one = histogram_window(name, before, after);
            if (one)
                wb_json_set(histograms, name, one);
            else
                wb_json_set_reason(histograms, name,
                                   "the readings at the two ends do not belong together");
        }
    }
    wb_json_set(o, "instances", instances);
    wb_json_set(o, "histograms", histograms);
    return o;
}

/* ---- both sides ---- */

const char *wb_server_units(double client_p99_ms, double server_p99_ms)
{
    if (server_p99_ms > client_p99_ms * ABOVE_SHARE + ABOVE_MS)
        return "the server's p99 is above the client's: its unit may be off by 1000, or it counts "
               "other requests";
    if (server_p99_ms < LEAST_MS || client_p99_ms > server_p99_ms * BELOW_RATIO)
        return "the server's p99 is too small to be a part of the client's: its unit may be off by "
               "1000";
    return NULL;
}

/* What clients call an operation and what the server's histogram of it is called. */
static void note_units(const wb_json *load, wb_json *window)
{
    static const char *const pairs[][2] = {{"get", "coordinator_read"},
                                           {"select", "coordinator_read"},
                                           {"set", "coordinator_write"},
                                           {"update", "coordinator_write"},
                                           {"insert", "coordinator_write"}};
    wb_json *units = wb_json_object();

    for (size_t i = 0; i < WB_LEN(pairs); i++) {
        const wb_json *op = wb_json_get(wb_json_get(load, "operations"), pairs[i][0]);
        const wb_json *server = wb_json_get(wb_json_get(window, "histograms"), pairs[i][1]);
        double client = wb_json_real_or(wb_json_get(op, "service"), "p99_ms", 0);
        double of_server = wb_json_real_or(server, "p99_ms", 0);
        const char *why = NULL;

        if (client <= 0 || of_server <= 0)
            continue;
        why = wb_server_units(client, of_server);
        wb_json_set_str(units, pairs[i][0], why ? why : "ok");
    }
    wb_json_set(window, "units", units);
}

void wb_server_note(const struct wb_run *r, const char *phase, const wb_json *before,
                    const wb_json *after)
{
    for (size_t i = 0; i < wb_json_len(r->phases); i++) {
        wb_json *p = wb_json_at(r->phases, i), *window;

        if (strcmp(wb_json_str_or(p, "name", ""), phase) != 0)
            continue;
        window = wb_server_window(r->e->study->recipe, before, after);
        note_units(wb_json_get(p, "load"), window);
        wb_json_set(p, "server", window);
    }
}
