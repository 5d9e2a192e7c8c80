#include "server/cli/help.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "server/analysis/text.h"
#include "server/base/problems.h"
#include "server/cli/config.h"

#define USAGE_REST 40 /* columns of a usage line beside the arguments, at most */
#define NAMES_MAX 26  /* columns for option names; longer ones have a line of their own */

/* ---- what holds for all commands ---- */

static const char *const exit_rows[][2] = {
    {"0", "ok; for 'gate': no regression"},
    {"1", "unexpected error"},
    {"2", "wrong usage, or an invalid study"},
    {"10", "gate: worse than the reference"},
    {"11", "gate: not decided, and that was asked for"},
    {"12", "a run failed by the database"},
    {"13", "a run failed by the infrastructure, the harness or a contradiction"},
    {"14", "could not be measured: not steady, or no valid run"},
    {"15", "damage was found in the store"},
    {"16", "something is left on the host, or a teardown is incomplete"},
    {"17", "doctor: this host is unfit"},
    {"20", "the server does not know who asks, or the token may not"},
    {"21", "not found"},
    {"22", "conflict: held by another, in the wrong state, or not unique"},
    {"23", "the server does not answer"},
    {"24", "waited long enough; the work goes on"},
    {"25", "the server takes no more requests for now"},
    {"130", "interrupted; with a server: detached, the work goes on"},
    {NULL, NULL},
};
static const char *const environment_rows[][2] = {
    {"WB_CONFIG", "a settings file instead of the project's weighbridge.yaml"},
    {"WB_STORE", "the store of records; --store rules over it. Default: "
                 "$XDG_DATA_HOME/weighbridge/store.git, else ~/.local/share/weighbridge/store.git"},
    {"WB_STATE", "campaigns, prefixes and caches; default: 'state' beside the store"},
    {"WB_RECIPES", "the folder of recipes; default: recipes/ here, else the installed ones"},
    {"WB_LOAD", "the load program; default: wb-load beside this program"},
    {"WB_DOCKER_SOCKET", "the container engine's socket; else that of DOCKER_HOST=unix://..., else "
                         "/var/run/docker.sock"},
    {"WB_SERVER", "URL of the service to ask instead of this machine"},
    {"WB_TOKEN", "the token for it; --token-file rules over it, it rules over WB_TOKEN_FILE"},
    {"WB_TOKEN_FILE", "a file with the token that only its owner may read"},
    {"WB_CA", "PEM file of who may sign the service's certificate; default: the system's"},
    {"WB_PUSH_REMOTE", "where 'push' sends records when no REMOTE is given"},
    {"WB_PRICE_BOOK", "the price book of 'value'"},
    {"WB_WEB", "the folder of the pages that 'serve' shows"},
    {"WB_WIDTH, WB_COLOR", "as width and color in 'weighbridge help settings'"},
    {"NO_COLOR", "not empty: no colour"},
    {"COLUMNS", "width of tables, instead of the terminal's"},
    {NULL, NULL},
};
static const char *const reference_rows[][2] = {
    {"RUN", "a run: run_01JX8AB003..., or the beginning of it, with or without 'run_'"},
    {"CAMPAIGN", "a campaign: cmp_01JX8A..., or the beginning of it"},
    {"ID", "a run or a campaign"},
    {"CAMPAIGN/ARM", "one arm of a campaign by its label, such as cmp_01JX8A/docker x1; the "
                     "beginning of the label is enough where it is unique"},
    {"series:KEY@last",
     "what a series had in the campaign of its newest build; instead of last a commit, a "
     "version or a campaign"},
    {"SERIES", "a series key ('list series'), its beginning, CAMPAIGN/ARM, or a run"},
    {"STUDY", "a study file, such as recipes/redis/studies/forms.yaml"},
    {NULL, NULL},
};
const struct wb_help_topic wb_help_topics[] = {
    {"exit-codes", "Exit codes", exit_rows},
    {"environment", "Environment", environment_rows},
    {"references", "References", reference_rows},
    {"settings", "Keys of weighbridge.yaml and of the user's config.yaml", wb_config_rows},
    {NULL, NULL, NULL},
};

/* ---- the table ---- */

const struct wb_command *wb_command_find(const char *name)
{
    for (size_t i = 0; wb_commands[i]; i++)
        if (!strcmp(wb_commands[i]->name, name))
            return wb_commands[i];
    return NULL;
}

bool wb_command_takes(const struct wb_command *cmd, const struct wb_opt *common)
{
    return !cmd->no_store || strcmp(common->name, "store") != 0;
}

char *wb_opt_synopsis(const struct wb_opt *o)
{
    WB_AUTO_FREE char *letter = o->letter ? wb_strf("-%c, ", o->letter) : wb_strdup("");

    return wb_strf("%s--%s%s%s", letter, o->name, o->arg ? " " : "", o->arg ? o->arg : "");
}

void wb_arg_words(const char *arg, struct wb_strv *out)
{
    size_t n;

    if (!arg)
        return;
    arg += *arg == '[';
    n = strcspn(arg, " ]");
    if (!memchr(arg, '|', n))
        return;
    for (size_t i = 0; i < n; i++)
        if (!islower((unsigned char)arg[i]) && arg[i] != '|' && arg[i] != '-')
            return;
    while (n > 0) {
        size_t w = strcspn(arg, "| ]");

        wb_strv_addf(out, "%.*s", (int)w, arg);
        w += w < n;
        arg += w;
        n -= w;
    }
}

/* ---- printing ---- */

/* "  term   meaning", the meaning wrapped; a term wider than `at` has a line of its own. */
static void add_row(struct wb_buf *b, const char *term, const char *meaning, int at, int width)
{
    WB_AUTO_FREE char *first = NULL;

    if ((int)strlen(term) > at) {
        wb_buf_addf(b, "  %s\n", term);
        first = wb_strf("  %*s", at + 2, "");
    } else {
        first = wb_strf("  %-*s  ", at, term);
    }
    wb_text_wrapped(b, first, at + 4, meaning, width);
}

static int widest(int so_far, const char *term)
{
    int n = (int)strlen(term);

    return n > so_far && n <= NAMES_MAX ? n : so_far;
}

static void add_rows(struct wb_buf *b, const char *const rows[][2], int width)
{
    int at = 0;

    for (size_t i = 0; rows[i][0]; i++)
        at = widest(at, rows[i][0]);
    for (size_t i = 0; rows[i][0]; i++)
        add_row(b, rows[i][0], rows[i][1], at, width);
}

static void add_opts(struct wb_buf *b, const struct wb_command *cmd, int width)
{
    const struct wb_opt *const tables[] = {cmd->opts, wb_common_opts};
    int at = 0;

    for (int pass = 0; pass < 2; pass++)
        for (size_t t = 0; t < WB_LEN(tables); t++)
            for (const struct wb_opt *o = tables[t]; o && o->name; o++) {
                WB_AUTO_FREE char *synopsis = wb_opt_synopsis(o);
                WB_AUTO_FREE char *term = wb_strf("%s%s", o->letter ? "" : "    ", synopsis);

                if (t == 1 && !wb_command_takes(cmd, o))
                    continue;
                if (pass == 0)
                    at = widest(at, term);
                else
                    add_row(b, term, o->help, at, width);
            }
}

/* Paragraphs of help are wrapped anew; lines with two blanks somewhere stand as they are. */
static void add_text(struct wb_buf *b, const char *text, int width)
{
    struct wb_buf paragraph = WB_BUF_INIT(65536);

    while (*text) {
        size_t n = strcspn(text, "\n");
        WB_AUTO_FREE char *line = wb_strndup(text, n);
        bool keep = n == 0 || strstr(line, "  ");

        if (!keep)
            wb_buf_addf(&paragraph, "%s%s", paragraph.len ? " " : "", line);
        text += n + (text[n] == '\n');
        if (paragraph.len && (keep || !*text)) {
            wb_text_wrapped(b, "", 0, wb_buf_str(&paragraph), width);
            wb_buf_clear(&paragraph);
        }
        if (keep)
            wb_buf_addf(b, "%s\n", line);
    }
    wb_buf_release(&paragraph);
}

/* ---- the same as documents ---- */

static wb_json *opts_json(const struct wb_command *cmd)
{
    static const char *const types[] = {[WB_OPT_FLAG] = "flag",
                                        [WB_OPT_TEXT] = "text",
                                        [WB_OPT_INT] = "integer",
                                        [WB_OPT_LIST] = "list"};
    const struct wb_opt *const tables[] = {cmd->opts, wb_common_opts};
    wb_json *list = wb_json_array();

    for (size_t t = 0; t < WB_LEN(tables); t++)
        for (const struct wb_opt *o = tables[t]; o && o->name; o++) {
            wb_json *row = wb_json_object();

            if (t == 1 && !wb_command_takes(cmd, o)) {
                wb_json_free(row);
                continue;
            }
            wb_json_set_str(row, "name", o->name);
            if (o->letter)
                wb_json_set(row, "letter", wb_json_strn(&o->letter, 1));
            wb_json_set_str(row, "type", types[o->type]);
            wb_json_set_str(row, "argument", o->arg);
            wb_json_set_str(row, "help", o->help);
            wb_json_push(list, row);
        }
    return list;
}

static wb_json *command_json(const struct wb_command *cmd)
{
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "name", cmd->name);
    wb_json_set_str(o, "arguments", cmd->args);
    wb_json_set_str(o, "summary", cmd->summary);
    wb_json_set_str(o, "help", cmd->help);
    wb_json_set(o, "options", opts_json(cmd));
    wb_json_set_str(o, "examples", cmd->examples);
    return o;
}

static wb_json *topic_json(const struct wb_help_topic *t)
{
    wb_json *o = wb_json_object(), *items = wb_json_array();

    wb_json_set_str(o, "name", t->name);
    wb_json_set_str(o, "title", t->title);
    wb_json_set(o, "items", items);
    for (size_t i = 0; t->rows[i][0]; i++) {
        wb_json *row = wb_json_object();

        wb_json_set_str(row, "term", t->rows[i][0]);
        wb_json_set_str(row, "meaning", t->rows[i][1]);
        wb_json_push(items, row);
    }
    return o;
}

static int help_json(const struct wb_cli *cli)
{
    wb_json *o = wb_json_object(), *commands = wb_json_array(), *topics = wb_json_array();

    for (size_t i = 0; wb_commands[i]; i++)
        if (!wb_commands[i]->hidden)
            wb_json_push(commands, command_json(wb_commands[i]));
    for (size_t i = 0; wb_help_topics[i].name; i++)
        wb_json_push(topics, topic_json(&wb_help_topics[i]));
    wb_json_set(o, "commands", commands);
    wb_json_set(o, "topics", topics);
    wb_cli_answer(cli, o, NULL);
    return WB_EXIT_OK;
}

/* ---- for people ---- */

static int help_command(const struct wb_cli *cli, const struct wb_command *cmd)
{
    struct wb_buf b = WB_BUF_INIT(65536);

    if (cli->json) {
        wb_cli_answer(cli, command_json(cmd), NULL);
        return WB_EXIT_OK;
    }
    if (cmd->args && strlen(cmd->args) + USAGE_REST > (size_t)cli->width)
        wb_buf_addf(&b, "usage: weighbridge %s\n    %s\n    [OPTIONS]\n\n", cmd->name, cmd->args);
    else
        wb_buf_addf(&b, "usage: weighbridge %s%s%s [OPTIONS]\n\n", cmd->name, cmd->args ? " " : "",
                    cmd->args ? cmd->args : "");
    wb_text_wrapped(&b, "", 0, cmd->summary, cli->width);
    if (cmd->help) {
        wb_buf_addc(&b, '\n');
        add_text(&b, cmd->help, cli->width);
    }
    wb_buf_adds(&b, "\nOptions:\n");
    add_opts(&b, cmd, cli->width);
    if (cmd->examples) {
        wb_buf_adds(&b, "\nExamples:\n");
        wb_buf_adds(&b, cmd->examples);
    }
    wb_cli_print(&b);
    return WB_EXIT_OK;
}

static int help_topic(const struct wb_cli *cli, const struct wb_help_topic *t)
{
    struct wb_buf b = WB_BUF_INIT(65536);

    if (cli->json) {
        wb_cli_answer(cli, topic_json(t), "items");
        return WB_EXIT_OK;
    }
    wb_buf_addf(&b, "%s:\n", t->title);
    add_rows(&b, t->rows, cli->width);
    wb_cli_print(&b);
    return WB_EXIT_OK;
}

static int help_all(const struct wb_cli *cli)
{
    struct wb_buf b = WB_BUF_INIT(65536);
    int at = 0;

    if (cli->json)
        return help_json(cli);
    wb_text_wrapped(&b, "", 0,
                    "Weighbridge weighs a database the way it will really run: natively and in "
                    "containers, on the same bits, settings and load, and says with an interval "
                    "what each form costs.",
                    cli->width);
    wb_buf_adds(&b, "\nusage: weighbridge COMMAND [ARGUMENTS] [OPTIONS]\n\n");
    for (size_t i = 0; wb_commands[i]; i++)
        at = wb_commands[i]->hidden ? at : widest(at, wb_commands[i]->name);
    for (size_t i = 0; wb_commands[i]; i++)
        if (!wb_commands[i]->hidden)
            add_row(&b, wb_commands[i]->name, wb_commands[i]->summary, at, cli->width);
    wb_buf_addc(&b, '\n');
    wb_text_wrapped(&b, "", 0,
                    "'weighbridge COMMAND --help' says more; 'weighbridge help exit-codes', 'help "
                    "environment', 'help references' and 'help settings' tell what holds for all. "
                    "Begin with",
                    cli->width);
    wb_buf_adds(&b, "  weighbridge doctor\n"
                    "  weighbridge run recipes/redis/studies/forms.yaml --profile small\n");
    wb_cli_print(&b);
    return WB_EXIT_OK;
}

static int unknown(const struct wb_cli *cli, const char *name)
{
    struct wb_strv words = {0};
    WB_AUTO_FREE char *hint = NULL;
    struct wb_err err = WB_ERR_INIT;

    for (size_t i = 0; wb_commands[i]; i++)
        if (!wb_commands[i]->hidden)
            wb_strv_add(&words, wb_commands[i]->name);
    for (size_t i = 0; wb_help_topics[i].name; i++)
        wb_strv_add(&words, wb_help_topics[i].name);
    hint = wb_did_you_mean(name, (const char *const *)words.v);
    wb_strv_release(&words);
    (void)wb_fail(&err, WB_INVALID, "there is no help on '%s'%s; 'weighbridge help' lists commands",
                  name, hint);
    return wb_cli_fail(cli, &err);
}

int wb_help(const struct wb_cli *cli, const char *name)
{
    const struct wb_command *cmd = name ? wb_command_find(name) : NULL;

    if (!name)
        return help_all(cli);
    if (cmd)
        return help_command(cli, cmd);
    for (size_t i = 0; wb_help_topics[i].name; i++)
        if (!strcmp(wb_help_topics[i].name, name))
            return help_topic(cli, &wb_help_topics[i]);
    return unknown(cli, name);
}
