/* `config [KEY]`: the settings that hold here, and where each is from. */
#include <string.h>
#include <unistd.h>

#include "server/cli/commands.h"
#include "server/cli/config.h"

extern char **environ;

static wb_json *setting_json(const struct wb_config *c, enum wb_setting s)
{
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "key", wb_config_rows[s][0]);
    wb_json_set_str(o, "value", wb_config_get(c, s));
    wb_json_set_str(o, "from", wb_config_from(c, s));
    wb_json_set_str(o, "variable", wb_config_variable(s));
    wb_json_set_str(o, "help", wb_config_rows[s][1]);
    return o;
}

/* Variables that are nearly the name of a setting, as {name, hint}: a slip of the pen would else
 * pass unseen. Others that begin with WB_ are the affair of steps of recipes. */
static wb_json *unknown_variables(void)
{
    const char *names[WB_SET_N + 2] = {NULL};
    wb_json *list = wb_json_array();

    for (int s = 0; s < WB_SET_N; s++)
        names[s] = wb_config_variable((enum wb_setting)s);
    names[WB_SET_N] = "WB_CONFIG";
    for (char **e = environ; e && *e; e++) {
        WB_AUTO_FREE char *name = wb_strndup(*e, strcspn(*e, "="));
        WB_AUTO_FREE char *hint = strncmp(name, "WB_", 3) ? NULL : wb_did_you_mean(name, names);
        wb_json *o;
        bool known = false;

        for (size_t i = 0; names[i]; i++)
            known |= !strcmp(name, names[i]);
        if (known || !hint || !*hint)
            continue;
        o = wb_json_object();
        wb_json_set_str(o, "name", name);
        wb_json_set_str(o, "hint", hint + 1); /* without the blank in front */
        wb_json_push(list, o);
    }
    return list;
}

static void print(const struct wb_cli *cli, const wb_json *doc, bool all)
{
    const wb_json *items = wb_json_get(doc, "items"), *files = wb_json_get(doc, "files");
    const wb_json *unknown = wb_json_get(doc, "unknown_variables");
    struct wb_buf out = WB_BUF_INIT(1u << 20);

    for (size_t i = 0; i < wb_json_len(items); i++) { /* paths are there to be used: none is cut */
        const wb_json *o = wb_json_at(items, i);
        const char *from = wb_json_str_or(o, "from", NULL);

        wb_buf_addf(&out, "%-14s %s\n", wb_json_str_or(o, "key", ""),
                    wb_json_str_or(o, "value", "-"));
        if (from)
            wb_buf_addf(&out, "%-14s   from %s\n", "", from);
    }
    for (size_t i = 0; all && i < wb_json_len(files); i++) {
        const wb_json *f = wb_json_at(files, i);
        const char *reason = wb_json_str_or(f, "reason", NULL);

        wb_buf_addf(&out, "%s%s: %s%s%s\n", i ? "" : "\n", wb_json_str_or(f, "path", ""),
                    wb_json_str_or(f, "state", ""), reason ? ", " : "", reason ? reason : "");
    }
    for (size_t i = 0; all && i < wb_json_len(unknown); i++)
        wb_buf_addf(&out, "%s in the environment is no setting %s\n",
                    wb_json_str_or(wb_json_at(unknown, i), "name", ""),
                    wb_json_str_or(wb_json_at(unknown, i), "hint", ""));
    wb_cli_print(&out);
}

static int config(const struct wb_cli *cli, const void *options, int argc, char **argv)
{
    const char *keys[WB_SET_N + 1] = {NULL};
    wb_json *doc = wb_json_object(), *items = wb_json_array();
    struct wb_err err = WB_ERR_INIT;

    for (int s = 0; s < WB_SET_N; s++) {
        keys[s] = wb_config_rows[s][0];
        if (argc == 0 || !strcmp(argv[0], keys[s]))
            wb_json_push(items, setting_json(cli->config, (enum wb_setting)s));
    }
    wb_json_set(doc, "items", items);
    wb_json_set(doc, "files", wb_config_files(cli->config));
    wb_json_set(doc, "unknown_variables", unknown_variables());
    if (wb_json_len(items) == 0) {
        WB_AUTO_FREE char *hint = wb_did_you_mean(argv[0], keys);
        WB_AUTO_FREE char *list = wb_word_list(keys);

        wb_json_free(doc);
        (void)wb_fail(&err, WB_INVALID, "there is no setting '%s'%s; allowed: %s", argv[0], hint,
                      list);
        return wb_cli_fail(cli, &err);
    }
    if (cli->json) {
        wb_cli_answer(cli, doc, "items");
        return WB_EXIT_OK;
    }
    print(cli, doc, argc == 0);
    wb_json_free(doc);
    return WB_EXIT_OK;
}

const struct wb_command wb_cmd_config = {
    .name = "config",
    .args = "[KEY]",
    .summary = "the settings that hold here, and where each is from",
    .help = "An option rules over the environment, that over weighbridge.yaml of the project (in\n"
            "this folder or the nearest one above), that over config.yaml of the user, that over\n"
            "the default. 'weighbridge help settings' lists the keys. Secrets are never among\n"
            "them: token_file names the file that holds one.\n",
    .examples = "  weighbridge config\n"
                "  weighbridge config push.remote --json\n",
    .max_args = 1,
    .run = config,
    .remote = config, /* which server is asked is one of them */
};
