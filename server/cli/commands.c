#include "server/cli/commands.h"

/* A line each, so that two additions do not meet. */
/* clang-format off */
const struct wb_command *const wb_commands[] = {
    &wb_cmd_run,
    &wb_cmd_resume,
    &wb_cmd_cancel,
    &wb_cmd_validate,
    &wb_cmd_plan,
    &wb_cmd_clean,
    &wb_cmd_list,
    &wb_cmd_show,
    &wb_cmd_logs,
    &wb_cmd_compare,
    &wb_cmd_trend,
    &wb_cmd_scaling,
    &wb_cmd_value,
    &wb_cmd_gate,
    &wb_cmd_explain,
    &wb_cmd_verify,
    &wb_cmd_replay,
    &wb_cmd_report,
    &wb_cmd_export,
    &wb_cmd_annotate,
    &wb_cmd_stats,
    &wb_cmd_artifacts,
    &wb_cmd_doctor,
    &wb_cmd_schema,
    &wb_cmd_serve,
    &wb_cmd_engine,
    &wb_cmd_completion,
    &wb_cmd_man,
    NULL,
};
/* clang-format on */
