/*
 * What happened to a run, in exactly one word, with reasons. The causes behind each word are in
 * one place: wb_outcome_exit and the callers of wb_run_fail in the phases.
 */
#ifndef WB_ENGINE_OUTCOME_H
#define WB_ENGINE_OUTCOME_H

#include <stdbool.h>

enum wb_outcome {
    WB_OUTCOME_OK,
    WB_OUTCOME_TARGET_MISSED, /* the offered rate was not reached, and the client is not why */
    WB_OUTCOME_NOT_STEADY,
    WB_OUTCOME_INCONSISTENT, /* other version, ignored setting, placement or limits not as planned
                              */
    WB_OUTCOME_SUT_ERROR,   /* the database died, was killed for memory, did not get ready, erred */
    WB_OUTCOME_INFRA_ERROR, /* image, artifact, disk, port, container engine, host */
    WB_OUTCOME_CAPACITY,    /* no host to be had */
    WB_OUTCOME_CANCELLED,
    WB_OUTCOME_HARNESS_ERROR /* the engine was interrupted; a load worker silent, hung, killed */
};

const char *wb_outcome_name(enum wb_outcome o);
/* The outcome with this name; false when there is none. */
bool wb_outcome_find(const char *name, enum wb_outcome *out);
/* Exit code of `run` for a campaign whose worst run ended so (DESIGN.md section 14). */
int wb_outcome_exit(enum wb_outcome o);
/* Whether statistics may take a run with this outcome. */
int wb_outcome_counts(enum wb_outcome o);

#endif
