/*
 * Settings and where each came from. Rules, the first that has it wins: an option of the command,
 * the WB_* environment, the project's file, the user's file, the default.
 *
 * The project's file is the nearest `weighbridge.yaml` in the current folder or above it; WB_CONFIG
 * names another. The user's is $XDG_CONFIG_HOME/weighbridge/config.yaml, else
 * ~/.config/weighbridge/config.yaml. Both are YAML maps of the keys of wb_config_rows:
 *
 *     store: records/store.git
 *     server: https://bench.example:8420
 *     token_file: ~/.config/weighbridge/token
 *     push: {remote: "git@bench.example:records.git"}
 *
 * Relative paths in a file count from the file's folder, "~/" from the home folder. A secret never
 * stands in a file: token_file names where it is. A file that another user owns, or that everybody
 * may write to, is left alone (it could name recipes that run as this user), and a notice says so.
 */
#ifndef WB_CLI_CONFIG_H
#define WB_CLI_CONFIG_H

#include "server/base/mem.h"
#include "server/base/problems.h"

enum wb_setting {
    WB_SET_STORE,
    WB_SET_STATE,
    WB_SET_RECIPES,
    WB_SET_SERVER,     /* "http://..." or "https://...", no user, no password */
    WB_SET_TOKEN_FILE, /* absolute path */
    WB_SET_LOAD_PROGRAM,
    WB_SET_DOCKER_SOCKET,
    WB_SET_WEB,
    WB_SET_PUSH_REMOTE,
    WB_SET_PRICE_BOOK,
    WB_SET_WIDTH, /* a decimal number, 40 to 500 */
    WB_SET_COLOR, /* "auto" or "never" */
    WB_SET_N
};

/* Key ("push.remote") and meaning of each setting, in the order of the enum; ended by NULL. */
extern const char *const wb_config_rows[WB_SET_N + 1][2];
/* The variable of the environment that sets it, or NULL. */
const char *wb_config_variable(enum wb_setting s);

struct wb_config;

/* Reads environment and files (files: false leaves these out). *out, owned, is there also with
 * problems: all of them at once, each with file, line, key and what is allowed. Returns the number
 * of problems added. */
int wb_config_read(bool files, struct wb_config **out, struct wb_problems *p);
void wb_config_free(struct wb_config *c); /* NULL is fine */

/* The same from the text of a file alone, for tests; path is absolute. */
int wb_config_parse(const char *text, size_t n, const char *path, struct wb_config **out,
                    struct wb_problems *p);

/* What holds, or NULL when nobody set it; borrowed, until the next set. c may be NULL. */
const char *wb_config_get(const struct wb_config *c, enum wb_setting s);
/* An option of the command line ("--server") rules over the rest. NULL as value: left alone. */
void wb_config_set(struct wb_config *c, enum wb_setting s, const char *value, const char *option);
/* The default of the program, where nobody set it. */
void wb_config_default(struct wb_config *c, enum wb_setting s, const char *value);
/* Where the value is from: "--store", "WB_STORE", "/home/ada/lab/weighbridge.yaml:3", "default";
 * NULL when there is none. Borrowed. */
const char *wb_config_from(const struct wb_config *c, enum wb_setting s);

/* Whether it is from a project's file that was only found: who fetched the project may never have
 * read it, so that no token may go to a server it names. */
bool wb_config_found(const struct wb_config *c, enum wb_setting s);

/* The two files as {path, state: "read", "absent" or "ignored", reason}; an owned array. */
wb_json *wb_config_files(const struct wb_config *c);
/* What the user should know, a sentence each: files that were left alone. Borrowed. */
const struct wb_strv *wb_config_notices(const struct wb_config *c);

#endif
