/*
 * What the commands that look at records share: opening the store, ids as people type them (those
 * of a store are found by analysis/refs.h), figures in a table cell.
 */
#ifndef WB_CLI_RECORDS_H
#define WB_CLI_RECORDS_H

#include "server/analysis/refs.h"
#include "server/cli/cli.h"
#include "server/record/store.h"

/* Opens the store of the command line for reading. */
int wb_cli_open_store(const struct wb_cli *cli, struct wb_store **out,
                      struct wb_err *err) WB_MUST_CHECK;

/* Whether an id begins as typed, with or without its prefix ("run_", "cmp_"). */
bool wb_cli_begins(const char *id, const char *typed, const char *prefix);
/* WB_CONFLICT that names the candidates. */
int wb_cli_more_than_one(const struct wb_strv *found, struct wb_err *err) WB_MUST_CHECK;

/* What `show` shows of a run beside its summary: phases, data and parity of the other documents. */
void wb_cli_run_complete(wb_json *summary, const wb_json *result, const wb_json *environment);
/* Runs (summaries) as a table for people. */
void wb_cli_run_table(const struct wb_cli *cli, const wb_json *runs, struct wb_buf *out);
/* One object per campaign of the runs, in their order: {id, study, runs, ok, rounds, arms:
 * [label], started_at, ended_at}. Owned. */
wb_json *wb_cli_campaigns(const wb_json *runs);

/* A metric {value, unit} ("215.3k/s", "1.24 ms"), "-" when there is none. */
void wb_cli_metric(const wb_json *metric, struct wb_buf *out);
/* "11-30 15:41" of an RFC 3339 time. */
void wb_cli_when(const char *time, struct wb_buf *out);
/* Text of others for a terminal or a pipe: line breaks and tabs stay, other control characters
 * become '?', so that a log cannot drive the terminal. */
void wb_cli_plain(const char *text, size_t n, struct wb_buf *out);

/* environment.parity: with what the run was compared, and each difference. NULL: nothing. */
void wb_cli_parity(const wb_json *parity, int width, struct wb_buf *out);

#endif
