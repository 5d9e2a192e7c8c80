/*
 * Any program as a load program: a command, and rules by which its output is read.
 *
 * Words of the command and its environment may have placeholders; "{{" is a brace. The program
 * runs without a shell and without a terminal, with LC_ALL=C; its two outputs are kept apart.
 */
#ifndef WB_TOOLS_COMMAND_H
#define WB_TOOLS_COMMAND_H

#include "runners/tools/output.h"
#include "runners/tools/tool.h"

struct wb_tool_command {
    char *name;                  /* as people see it: "redis-benchmark" */
    struct wb_strv argv, env;    /* env: NAME=value, beside PATH, LC_ALL, LANG, TZ, TERM */
    struct wb_strv version_argv; /* asks the program for its version; empty: it is not asked */
    char *version_regex;         /* its first group is the version */
    char *version;               /* it must be this one; NULL: any, it is recorded */
    struct wb_tool_output output;
    bool errors_fatal;  /* it ends with a status at the first failed operation */
    int64_t limit_ns;   /* 0: made from the length of the phase */
    int64_t silence_ns; /* 0: any */
    int64_t startup_ns; /* what it may take beside its window, at most */
};
#define WB_TOOL_STARTUP_NS 5000000000LL /* unless the study says otherwise */

void wb_tool_command_free(struct wb_tool_command *c);

/* Everything that can be known before it runs; the error names the key and the way out. */
int wb_tool_command_check(const struct wb_tool_command *c, struct wb_err *err) WB_MUST_CHECK;
/* Whether a placeholder ("connections") is in the command or its environment. */
bool wb_tool_command_uses(const struct wb_tool_command *c, const char *placeholder);
/* Whether some rule gives a figure whose name begins so ("response_"). */
bool wb_tool_command_gives(const struct wb_tool_command *c, const char *figure);

/* A word with its placeholders filled in; caller frees. */
char *wb_tool_fill(const struct wb_tool_task *t, const char *word);
/* WB_INVALID for a placeholder that does not exist, naming those that do. */
int wb_tool_word_check(const char *word, struct wb_err *err) WB_MUST_CHECK;

#endif
