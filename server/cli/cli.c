#include "server/cli/cli.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/file.h"
#include "server/base/problems.h"
#include "server/base/table.h"
#include "server/base/units.h"
#include "server/cli/config.h"
#include "server/cli/help.h"
#include "server/cli/records.h"
#include "server/cli/study_args.h"

#ifndef WB_DATA_DIR
#define WB_DATA_DIR "/usr/local/share/weighbridge"
#endif

/* Options that every command takes. */
struct common {
    bool json, ndjson, help, no_color;
    const char *store, *server, *token_file;
};
const struct wb_opt wb_common_opts[] = {
    {"json", 0, WB_OPT_FLAG, offsetof(struct common, json), NULL, 0, 0,
     "one JSON document on standard output"},
    {"ndjson", 0, WB_OPT_FLAG, offsetof(struct common, ndjson), NULL, 0, 0,
     "the same in lines: one for each item of a list"},
    {"store", 0, WB_OPT_TEXT, offsetof(struct common, store), "DIR", 0, 0,
     "the store of records (WB_STORE)"},
    {"server", 0, WB_OPT_TEXT, offsetof(struct common, server), "URL", 0, 0,
     "ask this server instead of this machine (WB_SERVER)"},
    {"token-file", 0, WB_OPT_TEXT, offsetof(struct common, token_file), "FILE", 0, 0,
     "the token for it; only its owner may read the file (WB_TOKEN, WB_TOKEN_FILE)"},
    {"no-color", 0, WB_OPT_FLAG, offsetof(struct common, no_color), NULL, 0, 0,
     "no colour on a terminal (NO_COLOR)"},
    {"help", 'h', WB_OPT_FLAG, offsetof(struct common, help), NULL, 0, 0, "this text"},
    {0},
};

/* Takes doc; NULL: the error is all of the document. */
static int say(const struct wb_cli *cli, enum wb_exit rc, const char *code, const char *text,
               wb_json *doc)
{
    struct wb_buf plain = WB_BUF_INIT(65536);

    if (cli->json) {
        wb_json *e = wb_json_object();

        if (!doc)
            doc = wb_json_object();
        wb_json_set_str(e, "code", code);
        wb_json_set_str(e, "message", text);
        wb_json_set(doc, "error", e);
        wb_cli_answer(cli, WB_STEAL(doc), NULL);
    }
    wb_json_free(doc);
    wb_cli_plain(text, strlen(text), &plain); /* it may name what others wrote */
    (void)fprintf(stderr, "weighbridge: %s\n", wb_buf_str(&plain));
    wb_buf_release(&plain);
    return (int)rc;
}

int wb_cli_say(const struct wb_cli *cli, enum wb_exit rc, const char *code, const char *text)
{
    return say(cli, rc, code, text, NULL);
}

int wb_cli_fail(const struct wb_cli *cli, const struct wb_err *err)
{
    return wb_cli_fail_with(cli, err, NULL);
}

int wb_cli_fail_with(const struct wb_cli *cli, const struct wb_err *err, wb_json *doc)
{
    static const enum wb_exit exits[] = {
        [WB_INVALID] = WB_EXIT_USAGE,     [WB_NOT_FOUND] = WB_EXIT_NOT_FOUND,
        [WB_CONFLICT] = WB_EXIT_CONFLICT, [WB_IO] = WB_EXIT_INFRA,
        [WB_TIMEOUT] = WB_EXIT_INFRA,     [WB_CANCELLED] = WB_EXIT_INTERRUPTED,
        [WB_PROTOCOL] = WB_EXIT_INFRA,    [WB_LIMIT] = WB_EXIT_USAGE,
        [WB_UNAVAILABLE] = WB_EXIT_INFRA, [WB_CORRUPT] = WB_EXIT_DAMAGE,
        [WB_UNSUPPORTED] = WB_EXIT_INFRA,
    };
    char text[2 * WB_ERR_TEXT_MAX];
    enum wb_exit rc =
        err->code > 0 && (size_t)err->code < WB_LEN(exits) ? exits[err->code] : WB_EXIT_UNEXPECTED;

    return say(cli, rc, wb_code_name(err->code), wb_err_text(err, text, sizeof(text)), doc);
}

void wb_cli_answer(const struct wb_cli *cli, wb_json *doc, const char *list)
{
    const wb_json *items = list ? wb_json_get(doc, list) : NULL;
    struct wb_buf b = WB_BUF_INIT(256u << 20);

    if (!cli->ndjson) {
        wb_json_pretty(doc, &b);
    } else if (list) {
        for (size_t i = 0; i < wb_json_len(items); i++) {
            wb_json_line(wb_json_at(items, i), &b);
            wb_buf_addc(&b, '\n');
        }
    } else {
        wb_json_line(doc, &b);
        wb_buf_addc(&b, '\n');
    }
    wb_json_free(doc);
    wb_cli_print(&b);
}

void wb_cli_print(struct wb_buf *b)
{
    (void)fwrite(wb_buf_str(b), 1, b->len, stdout);
    (void)fflush(stdout);
    wb_buf_release(b);
}

static const struct wb_opt *find_opt(const struct wb_opt *rows, const char *name, size_t n, char c)
{
    for (; rows && rows->name; rows++)
        if ((name && strlen(rows->name) == n && !strncmp(rows->name, name, n)) ||
            (!name && rows->letter && rows->letter == c))
            return rows;
    return NULL;
}

/* Where one option's value goes. */
struct target {
    const struct wb_opt *row;
    void *into;
};

static struct target look_up(const struct wb_command *cmd, void *opts, struct common *common,
                             const char *name, size_t n, char c)
{
    const struct wb_opt *row = find_opt(cmd->opts, name, n, c);

    if (row)
        return (struct target){row, (char *)opts + row->offset};
    row = find_opt(wb_common_opts, name, n, c);
    return (struct target){row, row ? (char *)common + row->offset : NULL};
}

static int store_value(struct target t, const char *value, struct wb_err *err)
{
    switch (t.row->type) {
    case WB_OPT_FLAG:
        *(bool *)t.into = true;
        return 0;
    case WB_OPT_TEXT:
        *(const char **)t.into = value;
        return 0;
    case WB_OPT_INT:
        if (wb_parse_int(value, t.row->min, t.row->max, t.into, err) < 0)
            return wb_wrap(err, "--%s", t.row->name);
        return 0;
    case WB_OPT_LIST:
        wb_strv_add(t.into, value);
        return 0;
    }
    return 0;
}

static int unknown_option(const struct wb_command *cmd, const char *arg, size_t n,
                          struct wb_err *err)
{
    WB_AUTO_FREE char *name = wb_strndup(arg, n);
    struct wb_strv words = {0};
    WB_AUTO_FREE char *hint = NULL;
    int rc;

    for (const struct wb_opt *o = cmd->opts; o && o->name; o++)
        wb_strv_addf(&words, "--%s", o->name);
    for (const struct wb_opt *o = wb_common_opts; o->name; o++)
        wb_strv_addf(&words, "--%s", o->name);
    hint = wb_did_you_mean(name, (const char *const *)words.v);
    rc = wb_fail(err, WB_INVALID, "%s has no option %s%s; see 'weighbridge %s --help'", cmd->name,
                 name, hint, cmd->name);
    wb_strv_release(&words);
    return rc;
}

/* Reads options anywhere among the arguments; what is left is moved to the front of argv. "--"
 * ends options. Returns the number of positional arguments or a negative code. */
static int read_options(const struct wb_command *cmd, int argc, char **argv, void *opts,
                        struct common *common, struct wb_err *err)
{
    int kept = 0;
    bool only_args = false;

    for (int i = 0; i < argc; i++) {
        const char *a = argv[i], *value = NULL;
        struct target t;
        size_t n;

        if (only_args || a[0] != '-' || !a[1]) {
            argv[kept++] = argv[i];
            continue;
        }
        if (!strcmp(a, "--")) {
            only_args = true;
            continue;
        }
        if (a[1] == '-') {
            n = strcspn(a + 2, "=");
            t = look_up(cmd, opts, common, a + 2, n, 0);
            value = a[2 + n] ? a + 3 + n : NULL;
            n += 2;
        } else {
            t = look_up(cmd, opts, common, NULL, 0, a[1]);
            value = a[2] ? a + 2 : NULL;
            n = 2;
        }
        if (!t.row)
            return unknown_option(cmd, a, n, err);
        if (t.row->type == WB_OPT_FLAG && value)
            return wb_fail(err, WB_INVALID, "--%s takes no value", t.row->name);
        if (t.row->type != WB_OPT_FLAG && !value) {
            if (i + 1 >= argc)
                return wb_fail(err, WB_INVALID, "--%s wants a value: --%s %s", t.row->name,
                               t.row->name, t.row->arg);
            value = argv[++i];
        }
        if (store_value(t, value, err) < 0)
            return -err->code;
    }
    return kept;
}

static int unknown_command(const struct wb_cli *cli, const char *name)
{
    struct wb_strv words = {0};
    WB_AUTO_FREE char *hint = NULL;
    WB_AUTO_FREE char *text = NULL;

    if (!name || name[0] == '-')
        return say(cli, WB_EXIT_USAGE, "invalid", "name a command; 'weighbridge help' lists them",
                   NULL);
    for (size_t i = 0; wb_commands[i]; i++)
        if (!wb_commands[i]->hidden)
            wb_strv_add(&words, wb_commands[i]->name);
    hint = wb_did_you_mean(name, (const char *const *)words.v);
    text = wb_strf("there is no command '%s'%s; 'weighbridge help' lists them", name, hint);
    wb_strv_release(&words);
    return say(cli, WB_EXIT_USAGE, "invalid", text, NULL);
}

/* $name, or NULL when unset or empty. */
static const char *env_or(const char *name, const char *dflt)
{
    const char *v = getenv(name);

    return v && *v ? v : dflt;
}

static char *default_store(void)
{
    const char *data = env_or("XDG_DATA_HOME", NULL), *home = env_or("HOME", "/root");

    return data ? wb_strf("%s/weighbridge/store.git", data)
                : wb_strf("%s/.local/share/weighbridge/store.git", home);
}

/* The store's folder name with its last part taken off. */
static char *beside(const char *store)
{
    const char *slash = strrchr(store, '/');

    return slash && slash != store ? wb_strf("%.*s/state", (int)(slash - store), store)
                                   : wb_strdup("state");
}

/* What nobody set. recipes/ here means a source tree. */
static int set_defaults(struct wb_config *c, struct wb_err *err)
{
    WB_AUTO_FREE char *store = default_store();
    WB_AUTO_FREE char *absolute = NULL;
    WB_AUTO_FREE char *state = NULL;

    wb_config_default(c, WB_SET_STORE, store);
    state = beside(wb_config_get(c, WB_SET_STORE));
    if (wb_path_absolute(state, &absolute, err) < 0) /* steps run elsewhere */
        return -err->code;
    wb_config_default(c, WB_SET_STATE, absolute);
    wb_config_default(c, WB_SET_RECIPES,
                      wb_path_exists("recipes/redis/recipe.yaml") ? "recipes"
                                                                  : WB_DATA_DIR "/recipes");
    wb_config_default(c, WB_SET_WEB, wb_path_exists("web/index.html") ? "web" : WB_DATA_DIR "/web");
    wb_config_default(c, WB_SET_COLOR, "auto");
    return 0;
}

/* Options rule over settings, settings over defaults. *state is owned by the caller. */
static int use_settings(struct wb_cli *cli, const struct common *common, struct wb_config *c,
                        char **state, struct wb_err *err)
{
    int64_t width = 0;
    int rc;

    wb_config_set(c, WB_SET_STORE, common->store, "--store");
    wb_config_set(c, WB_SET_SERVER, common->server, "--server");
    wb_config_set(c, WB_SET_TOKEN_FILE, common->token_file, "--token-file");
    wb_config_set(c, WB_SET_COLOR, common->no_color ? "never" : NULL, "--no-color");
    rc = set_defaults(c, err);
    if (rc == 0)
        rc = wb_path_absolute(wb_config_get(c, WB_SET_STATE), state, err);
    if (rc < 0)
        return rc;
    if (wb_config_get(c, WB_SET_WIDTH) && !env_or("COLUMNS", NULL) &&
        wb_parse_int(wb_config_get(c, WB_SET_WIDTH), 1, INT32_MAX, &width, NULL) == 0)
        cli->width = (int)width;
    cli->no_color = !strcmp(wb_config_get(c, WB_SET_COLOR), "never");
    cli->color = wb_terminal_fancy(STDOUT_FILENO) && !cli->no_color;
    cli->store_named = common->store != NULL;
    cli->store_path = wb_config_get(c, WB_SET_STORE);
    cli->recipes_dir = wb_config_get(c, WB_SET_RECIPES);
    cli->state_dir = *state;
    cli->server = wb_config_get(c, WB_SET_SERVER);
    cli->server_named = common->server != NULL;
    cli->token_file = wb_config_get(c, WB_SET_TOKEN_FILE);
    cli->token_named = common->token_file != NULL;
    cli->config = c;
    for (size_t i = 0; i < wb_config_notices(c)->n; i++)
        (void)fprintf(stderr, "weighbridge: %s\n", wb_config_notices(c)->v[i]);
    return 0;
}

/* With the settings: 0 when the command may run, else an exit code. */
static int prepare(const struct wb_command *cmd, struct wb_cli *cli, const struct common *common,
                   struct wb_config **c, char **state)
{
    struct wb_problems problems = {0};
    struct wb_err err = WB_ERR_INIT;
    int code = 0;

    if (wb_config_read(!cmd->no_files, c, &problems) > 0)
        code = wb_study_problems(cli, &problems);
    else if (use_settings(cli, common, *c, state, &err) < 0)
        code = wb_cli_fail(cli, &err);
    wb_problems_release(&problems);
    return code;
}

/* Here or on a server. What stands in the environment holds for all commands and is no reason to
 * refuse those that are of this machine; but none of them quietly answers from another store. */
static int dispatch(const struct wb_command *cmd, struct wb_cli *cli, const void *opts, int argc,
                    char **argv)
{
    struct wb_err err = WB_ERR_INIT;

    if (cli->server && cli->server_named && cli->store_named) {
        (void)wb_fail(&err, WB_INVALID, "--server and --store: name one of the two");
        return wb_cli_fail(cli, &err);
    }
    if (cli->server && !cli->server_named &&
        (cli->store_named || cmd->here || (cmd->no_store && cmd->run)))
        cli->server = NULL;
    if (!cli->server && cmd->run)
        return cmd->run(cli, opts, argc, argv);
    if (!cli->server) {
        (void)wb_fail(
            &err, WB_INVALID,
            "%s asks a server: name it with --server URL, in WB_SERVER or in the settings",
            cmd->name);
        return wb_cli_fail(cli, &err);
    }
    if (cmd->remote)
        return cmd->remote(cli, opts, argc, argv);
    if (cmd->here || cmd->no_store)
        (void)wb_fail(&err, WB_INVALID,
                      "%s works on this machine alone: leave --server out, or run it on the "
                      "server's host",
                      cmd->name);
    else
        (void)wb_fail(
            &err, WB_INVALID,
            "%s reads a store of this machine and cannot ask the server %s (%s): name the "
            "store with --store DIR",
            cmd->name, cli->server, wb_config_from(cli->config, WB_SET_SERVER));
    return wb_cli_fail(cli, &err);
}

static int run_command(const struct wb_command *cmd, struct wb_cli *cli, int argc, char **argv)
{
    WB_AUTO_FREE void *opts = wb_calloc(1, cmd->opts_size);
    WB_AUTO_FREE char *state = NULL;
    struct wb_config *config = NULL;
    struct common common = {0};
    struct wb_err err = WB_ERR_INIT;
    int n, rc;

    n = read_options(cmd, argc, argv, opts, &common, &err);
    if (common.help)
        return wb_help(cli, cmd->name);
    if (n < 0)
        return wb_cli_fail(cli, &err);
    if (n < cmd->min_args || (cmd->max_args >= 0 && n > cmd->max_args)) {
        (void)wb_fail(&err, WB_INVALID, "usage: weighbridge %s%s%s; see 'weighbridge %s --help'",
                      cmd->name, cmd->args ? " " : "", cmd->args ? cmd->args : "", cmd->name);
        return wb_cli_fail(cli, &err);
    }
    cli->ndjson = common.ndjson;
    cli->json = common.json || common.ndjson;
    rc = prepare(cmd, cli, &common, &config, &state);
    if (rc == 0)
        rc = dispatch(cmd, cli, opts, n, argv);
    wb_config_free(config);
    for (const struct wb_opt *o = cmd->opts; o && o->name; o++)
        if (o->type == WB_OPT_LIST) {
            void *list = (char *)opts + o->offset;

            wb_strv_release(list);
        }
    return rc;
}

/* A descriptor that the starter left closed would go to the next file that is opened, and what is
 * said to people into that file. */
static void open_missing(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
            _exit(WB_EXIT_UNEXPECTED);
}

/* Common options may stand before the command: moves the command to argv[1]. False when there is
 * none. */
static bool command_first(int argc, char **argv)
{
    int at = 1;
    char *name;

    while (at < argc && argv[at][0] == '-' && argv[at][1]) {
        bool is_long = argv[at][1] == '-';
        size_t n = is_long ? strcspn(argv[at] + 2, "=") : 0;
        const struct wb_opt *o = is_long ? find_opt(wb_common_opts, argv[at] + 2, n, 0) : NULL;

        if (!o || o->type == WB_OPT_FLAG) {
            at++;
            continue;
        }
        at += argv[at][2 + n] ? 1 : 2;
    }
    if (at >= argc)
        return false;
    name = argv[at];
    memmove(argv + 2, argv + 1, (size_t)(at - 1) * sizeof(*argv));
    argv[1] = name;
    return true;
}

/* What was printed has reached its reader, or the exit code says that it has not. */
static int flushed(const struct wb_cli *cli, int rc)
{
    struct wb_err err = WB_ERR_INIT;

    if (fflush(stdout) == 0 && !ferror(stdout))
        return rc;
    (void)wb_fail(&err, WB_IO, "standard output could not be written: the answer is not complete");
    (void)fprintf(stderr, "weighbridge: %s\n", err.root);
    return rc == WB_EXIT_OK ? WB_EXIT_INFRA : rc;
}

static int version(const struct wb_cli *cli)
{
    if (cli->json) {
        wb_json *doc = wb_json_object();

        wb_json_set_str(doc, "version", WB_VERSION);
        wb_cli_answer(cli, doc, NULL);
    } else {
        (void)printf("weighbridge %s\n", WB_VERSION);
    }
    return WB_EXIT_OK;
}

int wb_cli_main(int argc, char **argv)
{
    struct wb_cli cli = {.width = 80};
    const struct wb_command *cmd;
    const char *name = argc > 1 ? argv[1] : "help";

    open_missing();
    cli.width = wb_terminal_width(STDOUT_FILENO);
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) { /* for errors in others, too */
        cli.ndjson |= !strcmp(argv[i], "--ndjson");
        cli.json |= cli.ndjson || !strcmp(argv[i], "--json");
    }
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        int at = 2, rc;

        while (at < argc && argv[at][0] == '-') /* its only argument; options do not matter */
            at++;
        rc = wb_help(&cli, at < argc ? argv[at] : NULL);
        return flushed(&cli, argc > 1 ? rc : WB_EXIT_USAGE);
    }
    if (!strcmp(name, "--version") || !strcmp(name, "version"))
        return flushed(&cli, version(&cli));
    if (!command_first(argc, argv))
        return unknown_command(&cli, NULL);
    cmd = wb_command_find(argv[1]);
    if (!cmd)
        return unknown_command(&cli, argv[1]);
    return flushed(&cli, run_command(cmd, &cli, argc - 2, argv + 2));
}
