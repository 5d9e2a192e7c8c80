#include "runners/tools/tool.h"

const struct wb_tool_ops *const wb_tools[] = {&wb_tool_wb_load, &wb_tool_foreign, NULL};

const struct wb_tool_ops *wb_tool_of(const struct wb_tool_command *command)
{
    return command ? &wb_tool_foreign : &wb_tool_wb_load;
}

void wb_tool_start_release(struct wb_tool_start *s)
{
    wb_strv_release(&s->argv);
    wb_strv_release(&s->env);
    *s = (struct wb_tool_start){0};
}
