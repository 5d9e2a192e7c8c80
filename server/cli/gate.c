/*
 * `gate`: may a build go on? The only command whose exit code depends on a verdict.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/gate.h"
#include "server/base/file.h"
#include "server/base/problems.h"
#include "server/cli/commands.h"
#include "server/cli/compare.h"

#define OUT_MAX (16u << 20)
#define SUMMARY_MAX (1u << 20) /* of a job, by GitHub's own limit */

struct options {
    struct wb_cli_compare_options compare;
    const char *ref, *head, *fail_on, *junit, *markdown;
    bool all_metrics, github;
};

static int read_rules(const struct options *o, struct wb_gate_rules *rules, struct wb_err *err)
{
    static const char *const words[] = {"worse", "inconclusive", NULL};
    const char *word = o->fail_on ? o->fail_on : words[0];

    *rules = (struct wb_gate_rules){.all_metrics = o->all_metrics};
    if (strcmp(word, words[1]) == 0) {
        rules->fail_on_inconclusive = true;
    } else if (strcmp(word, words[0]) != 0) {
        WB_AUTO_FREE char *hint = wb_did_you_mean(word, words);
        return wb_fail(err, WB_INVALID, "--fail-on '%s'%s; allowed: worse, inconclusive", word,
                       hint);
    }
    return 0;
}

/* CAMPAIGN, or REF and HEAD by place or by option. At most two; *argc is set. */
static int references(const struct options *o, int *argc, char **argv, char **refs,
                      struct wb_err *err)
{
    int n = 0;

    if ((o->ref != NULL) != (o->head != NULL))
        return wb_fail(err, WB_INVALID, "--ref and --head belong together");
    if (o->ref != NULL && *argc > 0)
        return wb_fail(err, WB_INVALID, "give either references, or --ref and --head");
    if (o->ref != NULL) {
        refs[n++] = wb_strdup(o->ref);
        refs[n++] = wb_strdup(o->head);
    }
    for (int i = 0; i < *argc; i++)
        refs[n++] = wb_strdup(argv[i]);
    if (n == 0)
        return wb_fail(err, WB_INVALID,
                       "gate needs a CAMPAIGN, or --ref REF --head HEAD: what to judge, and "
                       "against what");
    *argc = n;
    return 0;
}

static int write_file(const char *path, struct wb_buf *text, struct wb_err *err)
{
    int rc = wb_buf_check(text, path, err);

    if (rc == 0 && strcmp(path, "-") == 0)
        (void)fwrite(wb_buf_str(text), 1, text->len, stdout);
    else if (rc == 0)
        rc = wb_file_put(path, wb_buf_str(text), text->len, err);
    return rc;
}

static int write_junit(const struct options *o, const wb_json *gate, struct wb_err *err)
{
    struct wb_buf b = WB_BUF_INIT(OUT_MAX);
    int rc = 0;

    if (o->junit != NULL) {
        wb_gate_junit(gate, &b);
        rc = write_file(o->junit, &b, err);
    }
    wb_buf_release(&b);
    return rc;
}

/* --markdown FILE, and the summary of a job on GitHub. */
static int write_markdown(const struct options *o, const wb_json *gate, struct wb_err *err)
{
    struct wb_buf b = WB_BUF_INIT(SUMMARY_MAX);
    const char *summary = getenv("GITHUB_STEP_SUMMARY");
    int rc = 0;

    wb_gate_markdown(gate, &b);
    if (o->markdown != NULL)
        rc = write_file(o->markdown, &b, err);
    if (rc == 0 && o->github && summary != NULL && *summary != '\0')
        rc = wb_file_append(summary, wb_buf_str(&b), b.len, err);
    wb_buf_release(&b);
    return rc;
}

static int judge(const struct wb_cli *cli, const struct options *o, int argc, char **argv,
                 wb_json **gate, enum wb_gate_result *result, struct wb_err *err)
{
    char *refs[2] = {NULL, NULL};
    WB_AUTO_JSON wb_json *report = NULL;
    struct wb_gate_rules rules;
    int rc = read_rules(o, &rules, err);

    if (rc == 0)
        rc = references(o, &argc, argv, refs, err);
    if (rc == 0)
        rc = wb_cli_compare_report(cli, argc, refs, &o->compare, &report, err);
    if (rc == 0)
        *result = wb_gate(report, &rules, gate);
    free(refs[0]);
    free(refs[1]);
    return rc;
}

static int gate(const struct wb_cli *cli, const void *opts, int argc, char **argv)
{
    static const int codes[] = {[WB_GATE_PASS] = WB_EXIT_OK,
                                [WB_GATE_WORSE] = WB_EXIT_WORSE,
                                [WB_GATE_INCONCLUSIVE] = WB_EXIT_INCONCLUSIVE,
                                [WB_GATE_NOT_MEASURED] = WB_EXIT_NOT_VALID};
    const struct options *o = opts;
    struct wb_buf out = WB_BUF_INIT(OUT_MAX);
    struct wb_err err = WB_ERR_INIT;
    enum wb_gate_result result = WB_GATE_NOT_MEASURED;
    wb_json *found = NULL;

    if (judge(cli, o, argc, argv, &found, &result, &err) < 0)
        return wb_cli_fail(cli, &err);
    if (write_junit(o, found, &err) < 0 || write_markdown(o, found, &err) < 0) {
        wb_json_free(found);
        return wb_cli_fail(cli, &err);
    }
    if (cli->json) {
        wb_cli_answer(cli, found, NULL);
        return codes[result];
    }
    wb_gate_print(found, cli->width, &out);
    if (o->github)
        wb_gate_github(found, &out);
    wb_json_free(found);
    wb_cli_print(&out);
    return codes[result];
}

#define AT(m) offsetof(struct options, m)
static const struct wb_opt gate_opts[] = {
    {"ref", 0, WB_OPT_TEXT, AT(ref), "REF", 0, 0, "against what: CAMPAIGN or CAMPAIGN/ARM"},
    {"head", 0, WB_OPT_TEXT, AT(head), "HEAD", 0, 0, "what is judged"},
    {"fail-on", 0, WB_OPT_TEXT, AT(fail_on), "WORD", 0, 0,
     "worse (the default), or inconclusive: also what is not decided"},
    {"all-metrics", 0, WB_OPT_FLAG, AT(all_metrics), NULL, 0, 0,
     "judge the other metrics of the contrasts, too"},
    {"metric", 0, WB_OPT_TEXT, AT(compare.metric), "NAME", 0, 0,
     "the metric that decides (such as max.throughput)"},
    {"threshold", 0, WB_OPT_TEXT, AT(compare.threshold), "PERCENT", 0, 0,
     "changes below this do not matter (the study's, else 2%)"},
    {"force", 0, WB_OPT_FLAG, AT(compare.force), NULL, 0, 0,
     "judge also what does not compare; the answer says so"},
    {"junit", 0, WB_OPT_TEXT, AT(junit), "FILE", 0, 0, "write JUnit XML"},
    {"markdown", 0, WB_OPT_TEXT, AT(markdown), "FILE", 0, 0, "write Markdown"},
    {"github", 0, WB_OPT_FLAG, AT(github), NULL, 0, 0,
     "add lines for GitHub's log, and the job's summary"},
    {0},
};

const struct wb_command wb_cmd_gate = {
    .name = "gate",
    .args = "CAMPAIGN | REF HEAD",
    .summary = "judge for a build: is anything worse?",
    .help = "With one campaign: the contrasts of its study. With two references: HEAD against\n"
            "REF, as 'compare' does it. Exit code 0: no regression; 10: worse; 11: not decided\n"
            "(only with --fail-on inconclusive); 14: could not be measured, because no run\n"
            "counts or something other than the database was the limit.\n",
    .opts = gate_opts,
    .opts_size = sizeof(struct options),
    .min_args = 0,
    .max_args = 2,
    .run = gate,
};
