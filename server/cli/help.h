/*
 * Help for people, from the command table: what the commands are, how each is used, and what holds
 * for all of them (exit codes, environment, references). The man pages say the same.
 */
#ifndef WB_CLI_HELP_H
#define WB_CLI_HELP_H

#include "server/cli/cli.h"

/* server/cli/cli.c: options that every command takes, ended by a row with name NULL. */
extern const struct wb_opt wb_common_opts[];

/* What holds for all commands: "exit-codes", "environment", "references". */
struct wb_help_topic {
    const char *name, *title;
    const char *const (*rows)[2]; /* term and meaning; ended by a NULL term */
};
extern const struct wb_help_topic wb_help_topics[]; /* ended by one with name NULL */

const struct wb_command *wb_command_find(const char *name); /* NULL: none */
/* Whether help shows a common option for a command. */
bool wb_command_takes(const struct wb_command *cmd, const struct wb_opt *common);
/* "-f, --factor PATH=VALUES"; caller frees. */
char *wb_opt_synopsis(const struct wb_opt *o);
/* The words of "a|b|c" or "[a|b] REST" when these are to be typed as they stand (lower case);
 * nothing is added otherwise. */
void wb_arg_words(const char *arg, struct wb_strv *out);

/* Prints help for a command, a topic or all; an exit code. WB_EXIT_USAGE after a message when there
 * is no such name. */
int wb_help(const struct wb_cli *cli, const char *name);

#endif
