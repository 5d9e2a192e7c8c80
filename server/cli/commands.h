/* One row per subcommand; each lives in a file of its own name. */
#ifndef WB_CLI_COMMANDS_H
#define WB_CLI_COMMANDS_H

#include "server/cli/cli.h"

extern const struct wb_command wb_cmd_run;
extern const struct wb_command wb_cmd_resume;
extern const struct wb_command wb_cmd_cancel;
extern const struct wb_command wb_cmd_validate;
extern const struct wb_command wb_cmd_plan;
extern const struct wb_command wb_cmd_clean;
extern const struct wb_command wb_cmd_list;
extern const struct wb_command wb_cmd_show;
extern const struct wb_command wb_cmd_watch;
extern const struct wb_command wb_cmd_logs;
extern const struct wb_command wb_cmd_compare;
extern const struct wb_command wb_cmd_trend;
extern const struct wb_command wb_cmd_scaling;
extern const struct wb_command wb_cmd_value;
extern const struct wb_command wb_cmd_gate;
extern const struct wb_command wb_cmd_explain;
extern const struct wb_command wb_cmd_verify;
extern const struct wb_command wb_cmd_replay;
extern const struct wb_command wb_cmd_report;
extern const struct wb_command wb_cmd_export;
extern const struct wb_command wb_cmd_annotate;
extern const struct wb_command wb_cmd_reindex;
extern const struct wb_command wb_cmd_import;
extern const struct wb_command wb_cmd_push;
extern const struct wb_command wb_cmd_prune;
extern const struct wb_command wb_cmd_stats;
extern const struct wb_command wb_cmd_artifacts;
extern const struct wb_command wb_cmd_doctor;
extern const struct wb_command wb_cmd_schema;
extern const struct wb_command wb_cmd_completion;
extern const struct wb_command wb_cmd_serve;
extern const struct wb_command wb_cmd_engine;
extern const struct wb_command wb_cmd_config;
extern const struct wb_command wb_cmd_man;
extern const struct wb_command wb_cmd_rerun;
extern const struct wb_command wb_cmd_extend;
extern const struct wb_command wb_cmd_queue;
extern const struct wb_command wb_cmd_token;
extern const struct wb_command wb_cmd_api;

#endif
