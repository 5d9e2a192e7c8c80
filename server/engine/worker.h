/*
 * One load program in one phase of a run: started as a job, watched, ended, judged. Private to
 * server/engine.
 */
#ifndef WB_ENGINE_WORKER_H
#define WB_ENGINE_WORKER_H

#include "runners/tools/tool.h"
#include "server/collect/threads.h"
#include "server/engine/run.h"

struct wb_ring;

struct wb_worker {
    struct wb_run *r;
    const struct wb_phase *ph;
    const struct wb_tool_ops *tool;
    struct wb_tool_task task;
    char *base, *dir, *group; /* files of the phase, folder and control group of the job */
    struct wb_tool_peer *peers;
    char *version; /* of a foreign program, NULL: unknown */
    struct wb_sampler *sampler;
    struct wb_threads *threads; /* NULL where the program tells it itself */
    struct wb_ring *ring;       /* operations of the phase; NULL: none */
    struct wb_job_status status;
    int64_t told_to; /* the driver's own */
    char part[16];   /* "load", "warm-up", "measure", "drain" as it last said; "" not yet */
    bool placed;     /* its placement was looked at */
    int64_t began_ns, sampled_ns; /* start of the phase; the last sample */
};

/* worker.c: makes it; rate_per_s 0: as fast as it goes. */
void wb_worker_init(struct wb_worker *w, struct wb_run *r, const struct wb_phase *ph,
                    double rate_per_s);
/* From its start to its end, or the end of the run. Its job is over afterwards. */
int wb_worker_run(struct wb_worker *w) WB_MUST_CHECK;
/* Keeps its files and samples as raw data of the run. */
void wb_worker_keep_raw(struct wb_worker *w);
void wb_worker_release(struct wb_worker *w);

/* load_result.c: the result of a worker that has ended goes into the run and is judged. */
int wb_worker_take_result(struct wb_worker *w) WB_MUST_CHECK;

#endif
