/*
 * What people said about records (annotations, record/annotate.h), as the analysis takes it. All
 * lists are of annotations in force: {annotation, type, id, text, who, made_at, at}.
 */
#ifndef WB_ANALYSIS_REMARKS_H
#define WB_ANALYSIS_REMARKS_H

#include "server/base/json.h"

/* A run that was excluded gets "excluded": why, which keeps it out of every count. */
void wb_remarks_exclude(const wb_json *annotations, wb_json *summaries);

/* Whether the annotation is about the host or host class that the run was on. */
bool wb_remark_is_of_host(const wb_json *annotation, const wb_json *summary);

/* The first change of environment between two runs: of a host or class that either was on, of the
 * later run, or of its campaign. NULL: none. Borrowed. */
const wb_json *wb_remark_between(const wb_json *annotations, const wb_json *a, const wb_json *b);

/* [{code: "annotation", text}]: notes, exclusions and changes of environment that name the
 * campaign itself. Owned. */
wb_json *wb_remarks_on(const wb_json *annotations, const char *campaign);

#endif
