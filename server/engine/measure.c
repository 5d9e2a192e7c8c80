/* The phases of the workload, one after the other, and what the server says of itself. */
#include <stdlib.h>
#include <string.h>

#include "server/engine/data.h"
#include "server/engine/server_side.h"
#include "server/engine/worker.h"

static bool is_closed(const struct wb_phase *ph)
{
    return ph->pace == WB_PACE_MAX;
}

static double rate_of(const struct wb_run *r, const struct wb_phase *ph)
{
    if (ph->pace == WB_PACE_RATE || (ph->pace == WB_PACE_SEARCH && !r->calibrating))
        return ph->rate_per_s;
    if (ph->pace == WB_PACE_CALIBRATED && !r->calibrating)
        return r->e->calibrated_per_s * ph->calibrated_percent / 100;
    return 0;
}

static int load_phase(struct wb_run *r, const struct wb_phase *ph)
{
    struct wb_worker w;
    int rc;

    wb_run_phase(r, ph->name, ph->load_only ? 0 : wb_phase_seconds(ph));
    wb_worker_init(&w, r, ph, rate_of(r, ph));
    rc = wb_worker_run(&w);
    if (rc == 0)
        rc = wb_worker_take_result(&w);
    wb_worker_keep_raw(&w);
    wb_worker_release(&w);
    return rc;
}

/* What an instance had counted before it was restarted is no beginning of the window: its reading
 * becomes null. */
static void forget_restarted(struct wb_run *r, wb_json **readings)
{
    wb_json *kept = wb_json_array();

    for (int i = 0; i < r->ninstances; i++) {
        const wb_json *reading = wb_json_at(*readings, (size_t)i);

        wb_json_push(kept,
                     reading && !r->instances[i].restarted ? wb_json_ref(reading) : wb_json_null());
        r->instances[i].restarted = false;
    }
    wb_json_free(*readings);
    *readings = kept;
}

/* A measured phase between two readings of the server, where the recipe wants them. `last` is the
 * one before it, or NULL, and then the one after it. */
static int run_phase(struct wb_run *r, const struct wb_phase *ph, wb_json **last)
{
    wb_json *after = NULL;
    int rc = 0;

    if (ph->load_only || !r->e->study->recipe->measure_phases || r->calibrating) {
        wb_json_free(*last);
        *last = NULL;
        return load_phase(r, ph);
    }
    if (!*last && wb_server_read(r, last) < 0)
        return -WB_IO;
    rc = load_phase(r, ph);
    if (rc < 0 && r->outcome != WB_OUTCOME_TARGET_MISSED)
        return rc;
    if (ph->nduring)
        forget_restarted(r, last);
    if (wb_server_read(r, &after) < 0)
        return -WB_IO;
    wb_server_note(r, ph->name, *last, after);
    wb_json_free(*last);
    *last = after;
    return rc;
}

/* Whether a phase is part of this run: a calibration pass needs the data and one closed-loop phase.
 */
static bool wanted(const struct wb_run *r, const struct wb_phase *ph, bool *calibrated)
{
    if (!r->calibrating || ph->load_only)
        return true;
    if (*calibrated)
        return false;
    for (size_t i = 0; i < r->arm->setup->nphases; i++)
        if (!r->arm->setup->phases[i].load_only && is_closed(&r->arm->setup->phases[i]) &&
            !is_closed(ph))
            return false; /* a closed-loop phase of the study's own will do it */
    *calibrated = true;
    return true;
}

/* Steps run in the order of their round; the result has them in the study's. */
static void sort_phases(struct wb_run *r)
{
    const struct wb_setup *s = r->arm->setup;
    wb_json *sorted = wb_json_array();

    for (size_t i = 0; i < s->nphases; i++) {
        for (size_t k = 0; k < wb_json_len(r->phases); k++) {
            wb_json *phase = wb_json_at(r->phases, k);

            if (!strcmp(wb_json_str_or(phase, "name", ""), s->phases[i].name))
                wb_json_push(sorted, wb_json_ref(phase));
        }
    }
    wb_json_free(r->phases);
    r->phases = sorted;
}

int wb_run_measure(struct wb_run *r)
{
    const struct wb_setup *s = r->arm->setup;
    WB_AUTO_FREE int *order = wb_calloc(s->nphases, sizeof(*order));
    WB_AUTO_JSON wb_json *last = NULL;
    bool calibrated = false, settled = false;

    wb_plan_phase_order(r->e->plan, r->round, order);
    for (size_t i = 0; i < s->nphases; i++) {
        const struct wb_phase *ph = &s->phases[order[i]];
        int rc = 0;

        if (!wanted(r, ph, &calibrated) || (ph->load_only && r->data_of))
            continue;
        if (!ph->load_only && !settled) {
            settled = true;
            rc = wb_data_settle(r);
        }
        if (rc == 0)
            rc = run_phase(r, ph, &last);
        if (rc == 0 && ph->load_only)
            rc = wb_data_keep(r);
        /* A missed target is a result: the other phases still say something. */
        if (rc < 0 && r->outcome != WB_OUTCOME_TARGET_MISSED) {
            sort_phases(r);
            return rc;
        }
    }
    sort_phases(r);
    wb_run_phase(r, "collect", 0);
    if (!last && wb_server_read(r, &last) < 0)
        return -WB_IO;
    for (size_t i = 0; i < wb_json_len(last); i++) {
        wb_json_del(wb_json_at(last, i), "histograms"); /* long, and of no use without a window */
        wb_json_push(r->server, wb_json_ref(wb_json_at(last, i)));
    }
    return 0;
}
