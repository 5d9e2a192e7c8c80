/* `annotate ID WHAT [TEXT]`: what people say about records afterwards. */
#include "server/record/annotate.h"
#include "server/record/query.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/problems.h"
#include "server/cli/commands.h"
#include "server/cli/records.h"

struct options {
    const char *who, *at;
};
static const struct wb_opt opts[] = {
    {"who", 0, WB_OPT_TEXT, offsetof(struct options, who), "NAME", 0, 0,
     "whose word it is (your login and host)"},
    {"at", 0, WB_OPT_TEXT, offsetof(struct options, at), "TIME", 0, 0,
     "environment: when it changed, such as 2026-11-30T08:00:00Z"},
    {0},
};

/* Words of the command line and the types behind them. */
static const struct {
    const char *word, *type;
} words[] = {
    {"exclude", "excluded"}, {"accept", "accepted"}, {"environment", "environment"},
    {"note", "note"},        {"pin", "pinned"},      {"withdraw", "withdrawn"},
};

static int find_type(const char *word, const char **type, struct wb_err *err)
{
    const char *all[WB_LEN(words) + 1] = {NULL};
    WB_AUTO_FREE char *hint = NULL;
    WB_AUTO_FREE char *list = NULL;

    for (size_t i = 0; i < WB_LEN(words); i++) {
        all[i] = words[i].word;
        if (strcmp(word, words[i].word) != 0 && strcmp(word, words[i].type) != 0)
            continue;
        *type = words[i].type;
        return 0;
    }
    hint = wb_did_you_mean(word, all);
    list = wb_word_list(all);
    return wb_fail(err, WB_INVALID, "annotate cannot '%s'%s; allowed: %s", word, hint, list);
}

/* "c-" and hex digits, as trend and 'list findings' show them. They are found by the analysis and
 * stand in no record. */
static bool is_finding(const char *id)
{
    return !strncmp(id, "c-", 2) && id[2] && strspn(id + 2, "0123456789abcdef") == strlen(id + 2);
}

static int is_host(struct wb_store *s, const char *name, bool *yes, struct wb_err *err)
{
    static const struct wb_query all;
    WB_AUTO_JSON wb_json *hosts = NULL;
    int rc = wb_store_hosts(s, &all, &hosts, err);

    *yes = false;
    for (size_t i = 0; rc == 0 && i < wb_json_len(hosts); i++) {
        const wb_json *h = wb_json_at(hosts, i);

        *yes |= !strcmp(wb_json_str_or(h, "id", ""), name) ||
                !strcmp(wb_json_str_or(h, "host_class", ""), name);
    }
    return rc;
}

/* What an annotation may be about: something that is there, so that a slip of the pen is told. The
 * beginning of a run, campaign or series is completed. Caller frees. */
static int find_id(struct wb_store *s, const char *typed, char **out, struct wb_err *err)
{
    struct wb_ref_id id = {0};
    struct wb_err own = WB_ERR_INIT;
    bool host = false;
    int rc;

    if (is_finding(typed) || !strncmp(typed, "ann_", 4)) {
        *out = wb_strdup(typed);
        return 0;
    }
    rc = wb_ref_id_find(s, typed, &id, &own);
    if (rc == 0)
        *out = wb_strdup(id.run ? id.run : id.campaign);
    if (rc == -WB_NOT_FOUND || rc == -WB_INVALID)
        rc = is_host(s, typed, &host, &own);
    if (rc == 0 && host)
        *out = wb_strdup(typed);
    else if (rc == 0 && !*out)
        rc = wb_store_resolve_series(s, typed, out, &own);
    wb_ref_id_release(&id);
    if (rc == -WB_NOT_FOUND || rc == -WB_INVALID)
        return wb_fail(err, WB_NOT_FOUND,
                       "there is no run, campaign, series, host or host class '%.100s' in %s",
                       typed, wb_store_path(s));
    if (rc < 0)
        *err = own;
    return rc;
}

static int annotate(const struct wb_cli *cli, const void *options, int argc, char **argv)
{
    const struct options *o = options;
    struct wb_annotation a = {
        .text = argc > 2 ? argv[2] : NULL, .who = o->who, .at = o->at, .type = NULL};
    struct wb_buf out = WB_BUF_INIT(8192);
    struct wb_err err = WB_ERR_INIT;
    struct wb_store *s = NULL;
    WB_AUTO_FREE char *about = NULL;
    WB_AUTO_FREE char *made = NULL;
    int rc = find_type(argv[1], &a.type, &err);

    if (rc == 0)
        rc = wb_cli_open_store(cli, &s, &err);
    if (rc == 0)
        rc = find_id(s, argv[0], &about, &err);
    a.id = about;
    if (rc == 0)
        rc = wb_store_annotate(s, &a, &made, &err);
    wb_store_close(s);
    if (rc < 0)
        return wb_cli_fail(cli, &err);
    if (cli->json) {
        wb_json *doc = wb_json_object();

        wb_json_set_str(doc, "annotation", made);
        wb_json_set_str(doc, "type", a.type);
        wb_json_set_str(doc, "id", about);
        wb_cli_answer(cli, doc, NULL);
        return WB_EXIT_OK;
    }
    wb_buf_addf(&out, "%s: %s, %s\n", about, a.type, made);
    wb_cli_print(&out);
    return WB_EXIT_OK;
}

const struct wb_command wb_cmd_annotate = {
    .name = "annotate",
    .args = "ID WHAT [TEXT]",
    .summary = "say something about a run, a campaign or a series afterwards",
    .help = "WHAT is one of\n"
            "exclude      a run or campaign is left out of histories; TEXT says why\n"
            "accept       a run, campaign or finding: the change there is meant\n"
            "environment  something around a run, campaign, host or host class changed\n"
            "note         for people only; also of a series or a finding\n"
            "pin          a run or campaign keeps its raw data when old ones are pruned\n"
            "withdraw     an annotation (ann_...) counts no more\n\n"
            "Nothing is ever changed: an annotation is a record of its own, with who and when.\n"
            "'weighbridge list annotations' shows them; 'show' tells those of a run or campaign.\n",
    .examples = "  weighbridge annotate 01JX8AB003 exclude 'backup ran on the host'\n"
                "  weighbridge annotate cmp_01JX8A environment 'kernel 6.12'\n",
    .opts = opts,
    .opts_size = sizeof(struct options),
    .min_args = 2,
    .max_args = 3,
    .run = annotate,
};
