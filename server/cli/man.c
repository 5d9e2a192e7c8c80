/* `man`: the manual, made from the same table as help. */
#include <string.h>

#include "server/base/file.h"
#include "server/cli/commands.h"
#include "server/cli/help.h"

struct options {
    const char *dir;
};
static const struct wb_opt opts[] = {
    {"dir", 'd', WB_OPT_TEXT, offsetof(struct options, dir), "DIR", 0, 0,
     "write all pages into this folder instead of one to standard output"},
    {0},
};

/* Text of a line in roff: nothing in it is a request or an escape. */
static void add_plain(struct wb_buf *b, const char *text, size_t n)
{
    if (n && (text[0] == '.' || text[0] == '\''))
        wb_buf_adds(b, "\\&");
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\\')
            wb_buf_adds(b, "\\e");
        else if (text[i] == '-')
            wb_buf_adds(b, "\\-");
        else if (text[i] == '\'')
            wb_buf_adds(b, "\\(aq");
        else
            wb_buf_addc(b, text[i]);
    }
}

static void add_s(struct wb_buf *b, const char *text)
{
    add_plain(b, text, strlen(text));
}

/* Paragraphs are filled; lines with two blanks somewhere stand as they are (as in help). */
static void add_text(struct wb_buf *b, const char *text)
{
    bool kept = false;

    while (*text) {
        size_t n = strcspn(text, "\n");
        WB_AUTO_FREE char *line = wb_strndup(text, n);
        bool keep = strstr(line, "  ") != NULL;

        if (keep != kept)
            wb_buf_adds(b, keep ? ".nf\n" : ".fi\n");
        kept = keep;
        if (n == 0)
            wb_buf_adds(b, ".PP\n");
        else {
            add_plain(b, line, n);
            wb_buf_addc(b, '\n');
        }
        text += n + (text[n] == '\n');
    }
    if (kept)
        wb_buf_adds(b, ".fi\n");
}

static void add_term(struct wb_buf *b, const char *term, const char *meaning)
{
    wb_buf_adds(b, ".TP\n\\fB");
    add_s(b, term);
    wb_buf_adds(b, "\\fR\n");
    add_s(b, meaning);
    wb_buf_addc(b, '\n');
}

static void add_opts(struct wb_buf *b, const struct wb_command *cmd, const struct wb_opt *o)
{
    for (; o && o->name; o++) {
        WB_AUTO_FREE char *term = wb_opt_synopsis(o);

        if (wb_command_takes(cmd, o))
            add_term(b, term, o->help);
    }
}

static void add_topic(struct wb_buf *b, const struct wb_help_topic *t)
{
    wb_buf_addf(b, ".SH \"%s\"\n", !strcmp(t->name, "exit-codes") ? "EXIT STATUS" : t->title);
    for (size_t i = 0; t->rows[i][0]; i++)
        add_term(b, t->rows[i][0], t->rows[i][1]);
}

static void add_head(struct wb_buf *b, const char *page, const char *summary)
{
    wb_buf_addf(b, ".TH \"%s\" 1 \"\" \"weighbridge %s\" \"Weighbridge\"\n.SH NAME\n%s \\- ", page,
                WB_VERSION, page);
    add_s(b, summary);
    wb_buf_adds(b, "\n.SH SYNOPSIS\n.B weighbridge\n");
}

static void command_page(const struct wb_command *cmd, struct wb_buf *b)
{
    WB_AUTO_FREE char *page = wb_strf("weighbridge-%s", cmd->name);

    add_head(b, page, cmd->summary);
    wb_buf_addf(b, "%s ", cmd->name);
    add_s(b, cmd->args ? cmd->args : "");
    wb_buf_adds(b, "\n[\\fIoptions\\fR]\n.SH DESCRIPTION\n");
    if (cmd->help)
        add_text(b, cmd->help);
    else {
        add_s(b, cmd->summary);
        wb_buf_adds(b, ".\n");
    }
    wb_buf_adds(b, ".SH OPTIONS\n");
    add_opts(b, cmd, cmd->opts);
    add_opts(b, cmd, wb_common_opts);
    if (cmd->examples) {
        wb_buf_adds(b, ".SH EXAMPLES\n");
        add_text(b, cmd->examples);
    }
    add_topic(b, &wb_help_topics[0]);
    wb_buf_adds(b, ".SH \"SEE ALSO\"\n.BR weighbridge (1)\n");
}

static void main_page(struct wb_buf *b)
{
    add_head(b, "weighbridge", "what containers and settings cost a database, measured");
    wb_buf_adds(b, "\\fIcommand\\fR [\\fIarguments\\fR] [\\fIoptions\\fR]\n.SH DESCRIPTION\n"
                   "Weighbridge weighs a database the way it will really run: natively and in "
                   "containers, on the same bits, settings and load, and says with an interval "
                   "what each form costs. Every run is kept in a git repository that anyone can "
                   "verify.\n.SH COMMANDS\n");
    for (size_t i = 0; wb_commands[i]; i++)
        if (!wb_commands[i]->hidden)
            add_term(b, wb_commands[i]->name, wb_commands[i]->summary);
    for (size_t i = 0; wb_help_topics[i].name; i++)
        add_topic(b, &wb_help_topics[i]);
    wb_buf_adds(b, ".SH \"SEE ALSO\"\n");
    for (size_t i = 0; wb_commands[i]; i++)
        if (!wb_commands[i]->hidden)
            wb_buf_addf(b, ".BR weighbridge\\-%s (1)%s\n", wb_commands[i]->name,
                        wb_commands[i + 1] ? "," : "");
}

static int write_page(const char *dir, const char *name, struct wb_buf *b, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("%s/weighbridge%s%s.1", dir, *name ? "-" : "", name);
    int rc = wb_buf_check(b, path, err);

    if (rc == 0)
        rc = wb_file_put(path, wb_buf_str(b), b->len, err);
    wb_buf_clear(b);
    return rc;
}

static int write_all(const char *dir, struct wb_err *err)
{
    struct wb_buf b = WB_BUF_INIT(1u << 20);
    int rc = wb_mkdir_all(dir, 0755, err);

    main_page(&b);
    if (rc == 0)
        rc = write_page(dir, "", &b, err);
    for (size_t i = 0; rc == 0 && wb_commands[i]; i++) {
        if (wb_commands[i]->hidden)
            continue;
        command_page(wb_commands[i], &b);
        rc = write_page(dir, wb_commands[i]->name, &b, err);
    }
    wb_buf_release(&b);
    return rc;
}

static int man(const struct wb_cli *cli, const void *options, int argc, char **argv)
{
    const struct options *o = options;
    const struct wb_command *cmd = argc ? wb_command_find(argv[0]) : NULL;
    struct wb_buf b = WB_BUF_INIT(1u << 20);
    struct wb_err err = WB_ERR_INIT;
    wb_json *doc = NULL;

    if (argc && !cmd)
        return wb_help(cli, argv[0]);
    if (o->dir && write_all(o->dir, &err) < 0)
        return wb_cli_fail(cli, &err);
    if (cli->json)
        doc = wb_json_object();
    if (doc && o->dir) {
        wb_json_set_str(doc, "dir", o->dir);
        wb_cli_answer(cli, doc, NULL);
    }
    if (o->dir)
        return WB_EXIT_OK;
    if (cmd)
        command_page(cmd, &b);
    else
        main_page(&b);
    if (doc) {
        wb_json_set_str(doc, "page", wb_buf_str(&b));
        wb_buf_release(&b);
        wb_cli_answer(cli, doc, NULL);
        return WB_EXIT_OK;
    }
    wb_cli_print(&b);
    return WB_EXIT_OK;
}

const struct wb_command wb_cmd_man = {
    .name = "man",
    .args = "[COMMAND]",
    .summary = "the manual, as pages for man",
    .help = "'make install' installs the pages; this prints one, in roff.\n",
    .examples = "  weighbridge man run | man -l -\n",
    .opts = opts,
    .opts_size = sizeof(struct options),
    .max_args = 1,
    .run = man,
    .no_store = true,
};
