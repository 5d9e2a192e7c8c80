/*
 * The builds of a series: who is who, and in which order. A build is known by its commit, else by
 * its version; builds stand in the order in which they were made (subject.built), and where that is
 * not known, in which they were measured. All of it over run summaries.
 */
#ifndef WB_ANALYSIS_SUBJECT_H
#define WB_ANALYSIS_SUBJECT_H

#include <stdint.h>

#include "server/base/json.h"
#include "server/base/mem.h"

/* Unix ms of subject.built, else of started_at; INT64_MIN for a run without a time. */
int64_t wb_subject_ms(const wb_json *summary);
/* Borrowed; NULL where the study named none. */
const char *wb_subject_commit(const wb_json *summary);
/* The version of the build, else the recipe's; NULL where neither is there. */
const char *wb_subject_version(const wb_json *summary);
const char *wb_subject_digest(const wb_json *summary);

/*
 * The run of a series that `which` means: "last" (the newest build with a run that could be
 * measured, of a campaign that is not among `skip`, NULL: none), a commit, a version, a campaign,
 * or the beginning of a commit or campaign. Of several runs the newest one of the newest build.
 * runs: summaries of the one series; key is for messages. WB_NOT_FOUND names commits that there
 * are; WB_CONFLICT those that begin so.
 */
int wb_subject_find(const wb_json *runs, const char *key, const char *which,
                    const struct wb_strv *skip, const wb_json **run,
                    struct wb_err *err) WB_MUST_CHECK;

/* Warnings about builds whose bits changed under one name: a point {version, commit, digest,
 * campaign} with another digest than an earlier one of the same version and commit. */
void wb_subject_digests(const wb_json *points, wb_json *warnings);

#endif
