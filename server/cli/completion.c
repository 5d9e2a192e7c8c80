/* `completion`: scripts for bash and zsh, made from the same table as help. */
#include <ctype.h>
#include <string.h>

#include "server/base/problems.h"
#include "server/cli/commands.h"
#include "server/cli/help.h"

/* What stands for an argument or an option's value. */
enum kind { NOTHING, WORDS, FILES, FOLDERS, RUNS, CAMPAIGNS, SERIES, RECIPES, COMMANDS };

static bool begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

static enum kind kind_of(const char *arg, struct wb_strv *words)
{
    static const struct {
        const char *begin;
        enum kind kind;
    } kinds[] = {{"STUDY", FILES},        {"FILE", FILES},      {"DIR", FOLDERS},
                 {"CAMPAIGN", CAMPAIGNS}, {"REF", CAMPAIGNS},   {"HEAD", CAMPAIGNS},
                 {"ID|", CAMPAIGNS},      {"ID", CAMPAIGNS},    {"RUN", RUNS},
                 {"SERIES", SERIES},      {"RECIPE", RECIPES},  {"STORE", FOLDERS},
                 {"REMOTE", FOLDERS},     {"COMMAND", COMMANDS}};

    if (!arg)
        return NOTHING;
    wb_arg_words(arg, words);
    if (words->n)
        return WORDS;
    arg += *arg == '[';
    for (size_t i = 0; i < WB_LEN(kinds); i++)
        if (begins(arg, kinds[i].begin))
            return kinds[i].kind;
    return NOTHING;
}

/* The second word of "fetch|list|verify RECIPE". */
static const char *after_words(const char *args)
{
    const char *blank = args ? strchr(args, ' ') : NULL;

    return blank ? blank + 1 : NULL;
}

static void add_joined(struct wb_buf *b, const struct wb_strv *words)
{
    for (size_t i = 0; i < words->n; i++)
        wb_buf_addf(b, "%s%s", i ? " " : "", words->v[i]);
}

/* Ids are asked of the program itself; a store that is not there gives none. */
static const char *const id_functions =
    "_weighbridge_ids() {\n"
    "    weighbridge list \"$1\" --limit 200 --ndjson 2>/dev/null |\n"
    "        sed -n 's/.*\"id\":\"\\('\"$2\"'[^\"]*\\)\".*/\\1/p'\n"
    "}\n"
    "_weighbridge_recipes() {\n"
    "    local d=${WB_RECIPES:-recipes}\n"
    "    [ -d \"$d\" ] || d=" WB_DATA_DIR "/recipes\n"
    "    (cd \"$d\" 2>/dev/null && for r in */recipe.yaml; do echo \"${r%/*}\"; done)\n"
    "}\n";

/* ---- bash ---- */

static void bash_kind(struct wb_buf *b, enum kind kind, const struct wb_strv *words)
{
    switch (kind) {
    case WORDS:
        wb_buf_adds(b, "COMPREPLY=($(compgen -W '");
        add_joined(b, words);
        wb_buf_adds(b, "' -- \"$cur\"))");
        break;
    case FILES:
        wb_buf_adds(b, "COMPREPLY=($(compgen -f -- \"$cur\")); compopt -o filenames");
        break;
    case FOLDERS:
        wb_buf_adds(b, "COMPREPLY=($(compgen -d -- \"$cur\")); compopt -o filenames");
        break;
    case RUNS:
        wb_buf_adds(b, "COMPREPLY=($(compgen -W \"$(_weighbridge_ids runs run_)\" -- \"$cur\"))");
        break;
    case CAMPAIGNS:
        wb_buf_adds(b,
                    "COMPREPLY=($(compgen -W \"$(_weighbridge_ids campaigns cmp_)\" -- \"$cur\"))");
        break;
    case SERIES:
        wb_buf_adds(b, "COMPREPLY=($(compgen -W \"$(_weighbridge_ids series '')\" -- \"$cur\"))");
        break;
    case RECIPES:
        wb_buf_adds(b, "COMPREPLY=($(compgen -W \"$(_weighbridge_recipes)\" -- \"$cur\"))");
        break;
    case COMMANDS:
        wb_buf_adds(b, "COMPREPLY=($(compgen -W \"$commands\" -- \"$cur\"))");
        break;
    case NOTHING:
        wb_buf_addc(b, ':');
        break;
    }
}

/* Values of options: "command:--option) ..." lines. */
static void bash_values(struct wb_buf *b, const char *command, const struct wb_opt *o)
{
    for (; o && o->name; o++) {
        struct wb_strv words = {0};
        enum kind kind = kind_of(o->arg, &words);

        if (o->type != WB_OPT_FLAG) {
            wb_buf_addf(b, "    %s:--%s", command, o->name);
            if (o->letter)
                wb_buf_addf(b, " | %s:-%c", command, o->letter);
            wb_buf_adds(b, ") ");
            bash_kind(b, kind, &words);
            wb_buf_adds(b, "; return ;;\n");
        }
        wb_strv_release(&words);
    }
}

static void bash_options(struct wb_buf *b, const struct wb_command *cmd, const struct wb_opt *o)
{
    for (; o && o->name; o++)
        if (wb_command_takes(cmd, o))
            wb_buf_addf(b, " --%s", o->name);
}

static void add_commands(struct wb_buf *b)
{
    for (size_t i = 0; wb_commands[i]; i++)
        if (!wb_commands[i]->hidden)
            wb_buf_addf(b, "%s ", wb_commands[i]->name);
    wb_buf_adds(b, "help version");
}

static void bash(struct wb_buf *b)
{
    wb_buf_adds(b, "# bash completion for weighbridge; made by 'weighbridge completion bash'\n");
    wb_buf_adds(b, id_functions);
    wb_buf_adds(b, "_weighbridge() {\n"
                   "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                   "    local cmd='' words=0 i options=''\n"
                   "    local commands='");
    add_commands(b);
    wb_buf_adds(b, "'\n"
                   "    COMPREPLY=()\n"
                   "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                   "        [[ ${COMP_WORDS[i]} == -* ]] && continue\n"
                   "        if [ -z \"$cmd\" ]; then cmd=${COMP_WORDS[i]}; else ((words++)); fi\n"
                   "    done\n"
                   "    if [ -z \"$cmd\" ]; then\n"
                   "        COMPREPLY=($(compgen -W \"$commands\" -- \"$cur\"))\n"
                   "        return\n"
                   "    fi\n"
                   "    case $cmd:$prev in\n"
                   "    *:--store) COMPREPLY=($(compgen -d -- \"$cur\")); compopt -o filenames; "
                   "return ;;\n");
    for (size_t i = 0; wb_commands[i]; i++)
        bash_values(b, wb_commands[i]->name, wb_commands[i]->opts);
    wb_buf_adds(b, "    esac\n    case $cmd in\n");
    for (size_t i = 0; wb_commands[i]; i++) {
        wb_buf_addf(b, "    %s) options='", wb_commands[i]->name);
        bash_options(b, wb_commands[i], wb_commands[i]->opts);
        bash_options(b, wb_commands[i], wb_common_opts);
        wb_buf_adds(b, "' ;;\n");
    }
    wb_buf_adds(b, "    esac\n"
                   "    if [[ $cur == -* ]]; then\n"
                   "        COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
                   "        return\n"
                   "    fi\n"
                   "    case $cmd:$words in\n"
                   "    help:0) COMPREPLY=($(compgen -W \"$commands\" -- \"$cur\")) ;;\n");
    for (size_t i = 0; wb_commands[i]; i++) {
        struct wb_strv words = {0};
        enum kind kind = kind_of(wb_commands[i]->args, &words);

        wb_buf_addf(b, "    %s:%s) ", wb_commands[i]->name, kind == WORDS ? "0" : "*");
        bash_kind(b, kind, &words);
        wb_buf_adds(b, " ;;\n");
        wb_strv_release(&words);
        if (kind == WORDS && after_words(wb_commands[i]->args)) {
            wb_buf_addf(b, "    %s:*) ", wb_commands[i]->name);
            bash_kind(b, kind_of(after_words(wb_commands[i]->args), &words), &words);
            wb_buf_adds(b, " ;;\n");
            wb_strv_release(&words);
        }
    }
    wb_buf_adds(b, "    esac\n}\ncomplete -F _weighbridge weighbridge wb\n");
}

/* ---- zsh ---- */

/* Text inside '...[...]': quotes, brackets and colons are escaped. */
static void zsh_text(struct wb_buf *b, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            wb_buf_adds(b, "'\\'");
        else if (strchr("[]:\\", *text))
            wb_buf_addc(b, '\\');
        wb_buf_addc(b, *text);
    }
}

/* ":name:action" of an argument. */
static void zsh_kind(struct wb_buf *b, const char *name, enum kind kind,
                     const struct wb_strv *words)
{
    static const char *const actions[] = {
        [NOTHING] = "( )",
        [FILES] = "_files",
        [FOLDERS] = "_files -/",
        [RUNS] = "($(_weighbridge_ids runs run_))",
        [CAMPAIGNS] = "($(_weighbridge_ids campaigns cmp_))",
        [SERIES] = "($(_weighbridge_ids series \"\"))",
        [RECIPES] = "($(_weighbridge_recipes))",
        [COMMANDS] = "(${=wbcommands})",
    };

    wb_buf_addc(b, ':');
    zsh_text(b, name);
    wb_buf_addc(b, ':');
    if (kind != WORDS) {
        wb_buf_adds(b, actions[kind]);
        return;
    }
    wb_buf_addc(b, '(');
    add_joined(b, words);
    wb_buf_addc(b, ')');
}

static void zsh_option(struct wb_buf *b, const struct wb_opt *o)
{
    struct wb_strv words = {0};
    enum kind kind = kind_of(o->arg, &words);

    for (int pass = 0; pass < 2; pass++) {
        if (pass == 0 && !o->letter)
            continue;
        if (pass == 0)
            wb_buf_addf(b, " '%s-%c", o->type == WB_OPT_LIST ? "*" : "", o->letter);
        else
            wb_buf_addf(b, " '%s--%s", o->type == WB_OPT_LIST ? "*" : "", o->name);
        wb_buf_addc(b, '[');
        zsh_text(b, o->help);
        wb_buf_addc(b, ']');
        if (o->type != WB_OPT_FLAG)
            zsh_kind(b, o->arg, kind, &words);
        wb_buf_addc(b, '\'');
    }
    wb_strv_release(&words);
}

static void zsh_command(struct wb_buf *b, const struct wb_command *cmd)
{
    const struct wb_opt *const tables[] = {cmd->opts, wb_common_opts};
    struct wb_strv words = {0};
    enum kind kind = kind_of(cmd->args, &words);

    wb_buf_addf(b, "    %s) _arguments", cmd->name);
    for (size_t t = 0; t < WB_LEN(tables); t++)
        for (const struct wb_opt *o = tables[t]; o && o->name; o++)
            if (wb_command_takes(cmd, o))
                zsh_option(b, o);
    if (cmd->args && kind == WORDS) {
        wb_buf_adds(b, " '1");
        zsh_kind(b, "what", kind, &words);
        wb_buf_addc(b, '\'');
        wb_strv_release(&words);
        kind = kind_of(after_words(cmd->args), &words);
    }
    if (cmd->args && kind != WORDS) {
        wb_buf_adds(b, " '*");
        zsh_kind(b, cmd->args, kind, &words);
        wb_buf_addc(b, '\'');
    }
    wb_buf_adds(b, " ;;\n");
    wb_strv_release(&words);
}

static void zsh(struct wb_buf *b)
{
    wb_buf_adds(b, "#compdef weighbridge wb\n"
                   "# zsh completion for weighbridge; made by 'weighbridge completion zsh'\n");
    wb_buf_adds(b, id_functions);
    wb_buf_adds(b, "_weighbridge() {\n"
                   "    local wbcommands='");
    add_commands(b);
    wb_buf_adds(b, "'\n"
                   "    if ((CURRENT == 2)); then\n"
                   "        local -a described=(");
    for (size_t i = 0; wb_commands[i]; i++) {
        if (wb_commands[i]->hidden)
            continue;
        wb_buf_addf(b, " '%s:", wb_commands[i]->name);
        zsh_text(b, wb_commands[i]->summary);
        wb_buf_addc(b, '\'');
    }
    wb_buf_adds(b, " 'help:help on a command' 'version:the version')\n"
                   "        _describe command described\n"
                   "        return\n"
                   "    fi\n"
                   "    shift words\n"
                   "    ((CURRENT--))\n"
                   "    case $words[1] in\n");
    for (size_t i = 0; wb_commands[i]; i++)
        zsh_command(b, wb_commands[i]);
    wb_buf_adds(b, "    help) _arguments '1:command:(${=wbcommands})' ;;\n"
                   "    esac\n"
                   "}\n"
                   "_weighbridge \"$@\"\n");
}

static int completion(const struct wb_cli *cli, const void *options, int argc, char **argv)
{
    static const char *const shells[] = {"bash", "zsh", NULL};
    struct wb_buf b = WB_BUF_INIT(1u << 20);
    struct wb_err err = WB_ERR_INIT;

    if (!strcmp(argv[0], shells[0])) {
        bash(&b);
    } else if (!strcmp(argv[0], shells[1])) {
        zsh(&b);
    } else {
        WB_AUTO_FREE char *hint = wb_did_you_mean(argv[0], shells);

        (void)wb_fail(&err, WB_INVALID, "there is no completion for '%s'%s; allowed: bash, zsh",
                      argv[0], hint);
        return wb_cli_fail(cli, &err);
    }
    if (cli->json) {
        wb_json *doc = wb_json_object();

        wb_json_set_str(doc, "shell", argv[0]);
        wb_json_set_str(doc, "script", wb_buf_str(&b));
        wb_buf_release(&b);
        wb_cli_answer(cli, doc, NULL);
        return WB_EXIT_OK;
    }
    wb_cli_print(&b);
    return WB_EXIT_OK;
}

const struct wb_command wb_cmd_completion = {
    .name = "completion",
    .args = "bash|zsh",
    .summary = "completion for a shell, as a script",
    .help = "'make install' installs both. Ids of runs and campaigns are completed from the store\n"
            "that WB_STORE names, or the default one.\n",
    .examples = "  source <(weighbridge completion bash)\n"
                "  weighbridge completion zsh >~/.zfunc/_weighbridge\n",
    .min_args = 1,
    .max_args = 1,
    .run = completion,
    .no_store = true,
};
