/* `replay RUN`: a recorded run once more, and what about it could not be the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/text.h"
#include "server/base/file.h"
#include "server/base/table.h"
#include "server/cli/commands.h"
#include "server/cli/records.h"
#include "server/cli/session.h"
#include "server/cli/study_args.h"

struct opts {
    int64_t rounds, wait_s;
    bool quiet;
};
static const struct wb_opt rows[] = {
    {"rounds", 0, WB_OPT_INT, offsetof(struct opts, rounds), "N", 1, 1000,
     "so many runs instead of one"},
    {"wait-for-host", 0, WB_OPT_INT, offsetof(struct opts, wait_s), "SECONDS", 0, 604800,
     "wait this long while another uses this host"},
    {"quiet", 'q', WB_OPT_FLAG, offsetof(struct opts, quiet), NULL, 0, 0, "no progress"},
    {0},
};

/* The record that is run again. */
struct old {
    char *id;
    wb_json *summary, *study, *environment, *result;
    char *recipes; /* folder with its recipe alone */
};

static void old_release(struct old *o)
{
    if (o->recipes)
        WB_IGNORE(wb_remove_tree(o->recipes, NULL)); /* a copy; the record has it */
    free(o->id);
    free(o->recipes);
    wb_json_free(o->summary);
    wb_json_free(o->study);
    wb_json_free(o->environment);
    wb_json_free(o->result);
}

static int read_old(struct wb_store *s, const char *typed, const char *state, struct old *o,
                    struct wb_err *err)
{
    struct wb_ref_id id = {0};
    int rc = wb_ref_id_find(s, typed, &id, err);

    if (rc == 0 && !id.run)
        rc = wb_fail(err, WB_INVALID,
                     "%s is a campaign: name one of its runs ('weighbridge show %s' lists them)",
                     id.campaign, id.campaign);
    o->id = WB_STEAL(id.run);
    wb_ref_id_release(&id);
    if (rc == 0)
        rc = wb_store_read(s, o->id, "summary", &o->summary, err);
    if (rc == 0)
        rc = wb_store_read(s, o->id, "study", &o->study, err);
    if (rc == 0)
        rc = wb_store_read(s, o->id, "environment", &o->environment, err);
    if (rc == 0)
        rc = wb_store_read(s, o->id, "result", &o->result, err);
    if (rc < 0)
        return rc;
    o->recipes = wb_strf("%s/replay/%s", state, o->id);
    WB_AUTO_FREE char *folder = wb_strf(
        "%s/%s", o->recipes, wb_json_str_or(wb_json_get(o->summary, "recipe"), "name", "recipe"));

    rc = wb_remove_tree(o->recipes, err);
    return rc < 0 ? rc : wb_store_read_recipe(s, o->id, folder, err);
}

/* ---- the study, with the one arm ---- */

/* The list of a factor's values in the study: under its name, or in a zip. */
static wb_json *values_of(const wb_json *study, const char *factor, wb_json **holder)
{
    wb_json *factors = wb_json_get(study, "factors");
    const wb_json *zip = wb_json_get(factors, "zip");

    *holder = factors;
    for (size_t i = 0; !wb_json_get(*holder, factor) && i < wb_json_len(zip); i++)
        *holder = wb_json_at(zip, i);
    return wb_json_get(*holder, factor);
}

static void keep_level(const wb_json *study, const char *factor, size_t level)
{
    wb_json *holder, *list = values_of(study, factor, &holder), *one;

    if (wb_json_type(list) != WB_JSON_ARRAY || level >= wb_json_len(list))
        return;
    one = wb_json_array();
    wb_json_push(one, wb_json_ref(wb_json_at(list, level)));
    wb_json_set(holder, factor, one);
}

static struct wb_study *check(const wb_json *study, const char *recipes, struct wb_problems *p,
                              struct wb_err *err)
{
    const struct wb_study_options o = {.recipes_dir = recipes};
    struct wb_node *tree = NULL;

    return wb_node_from_json(study, &tree, err) < 0 ? NULL : wb_study_check(tree, NULL, &o, p);
}

/* Whether the levels of a combination are the values that a run was recorded with. */
static bool is_arm(const struct wb_study *s, size_t combination, const wb_json *factors)
{
    for (size_t i = 0; i < s->nfactors; i++) {
        const struct wb_factor *f = &s->factors[i];
        const char *value = f->values.v[s->combinations[combination].levels[i]];

        if (strcmp(wb_json_str_or(factors, f->name, value), value) != 0)
            return false;
    }
    return true;
}

/* The study reduced to the arm of the run. NULL with problems, or with err. */
static struct wb_study *one_arm(const struct old *o, const struct opts *opts, struct wb_problems *p,
                                struct wb_err *err)
{
    static const char *const dropped[] = {"exclude", "contrasts", "copies", "profiles"};
    const char *arm = wb_json_str_or(o->summary, "arm", "");
    struct wb_study *whole = check(o->study, o->recipes, p, err), *one = NULL;
    WB_AUTO_JSON wb_json *study = wb_json_copy(o->study);
    WB_AUTO_FREE char *rounds = wb_strf("%lld", (long long)(opts->rounds ? opts->rounds : 1));
    size_t found = SIZE_MAX;

    if (!whole)
        return NULL;
    for (size_t i = 0; i < whole->ncombinations && found == SIZE_MAX; i++)
        if (is_arm(whole, i, wb_json_get(o->summary, "factors")))
            found = i;
    if (found == SIZE_MAX)
        (void)wb_fail(err, WB_CONFLICT, "the recorded study has no arm '%s' any more", arm);
    for (size_t i = 0; found != SIZE_MAX && i < whole->nfactors; i++)
        keep_level(study, whole->factors[i].name, whole->combinations[found].levels[i]);
    for (size_t i = 0; i < WB_LEN(dropped); i++)
        wb_json_del(study, dropped[i]);
    wb_json_set_str(study, "rounds", rounds);
    if (found != SIZE_MAX)
        one = check(study, o->recipes, p, err);
    wb_study_free(whole);
    return one;
}

/* ---- what is not the same ---- */

static void add_difference(wb_json *list, const char *input, const char *was, const char *is)
{
    wb_json *d = wb_json_object();

    wb_json_set_str(d, "input", input);
    wb_json_set_str(d, "was", was);
    wb_json_set_str(d, "is", is);
    wb_json_push(list, d);
}

static char *text_of(const wb_json *v)
{
    struct wb_buf b = WB_BUF_INIT(1u << 20);

    if (wb_json_string(v))
        return wb_strdup(wb_json_string(v));
    if (!v)
        return wb_strdup("-");
    wb_json_canonical(v, &b);
    return wb_buf_take(&b);
}

/* Leaves of two documents, those of `b` alone, too. */
static void differ(const wb_json *a, const wb_json *b, const char *path, wb_json *list)
{
    bool maps = wb_json_type(a) == WB_JSON_OBJECT && wb_json_type(b) == WB_JSON_OBJECT;

    if (!maps && !wb_json_equal(a, b)) {
        WB_AUTO_FREE char *was = text_of(a);
        WB_AUTO_FREE char *is = text_of(b);

        if (strcmp(was, is) != 0)
            add_difference(list, path, was, is);
        return;
    }
    for (int side = 0; maps && side < 2; side++) {
        const wb_json *of = side ? b : a;

        for (void *it = wb_json_first(of); it; it = wb_json_next(of, it)) {
            const char *key = wb_json_iter_key(it);
            WB_AUTO_FREE char *below = wb_strf("%s.%s", path, key);

            if (side == 0 || !wb_json_get(a, key))
                differ(wb_json_get(a, key), wb_json_get(b, key), below, list);
        }
    }
}

/* The digest of each artifact by its package. */
static wb_json *artifacts_of(const wb_json *environment)
{
    const wb_json *list = wb_json_get(environment, "artifacts");
    wb_json *o = wb_json_object();

    for (size_t i = 0; i < wb_json_len(list); i++) {
        const wb_json *a = wb_json_at(list, i);
        WB_AUTO_FREE char *what = wb_strf("%s %.16s", wb_json_str_or(a, "version", "?"),
                                          wb_json_str_or(a, "sha256", "?"));

        wb_json_set_str(o, wb_json_str_or(a, "package", "?"), what);
    }
    return o;
}

/* Every input of the two runs that is not the same; owned. */
static wb_json *differences(const struct old *o, const wb_json *summary, const wb_json *environment,
                            const wb_json *result)
{
    static const char *const of_environment[] = {"host", "form_facts", "programs",
                                                 "bits", "image",      "weighbridge"};
    static const char *const of_summary[] = {"recipe", "series_key", "host", "factors"};
    wb_json *list = wb_json_array();
    WB_AUTO_JSON wb_json *had = artifacts_of(o->environment);
    WB_AUTO_JSON wb_json *has = artifacts_of(environment);

    add_difference(list, "time", wb_json_str_or(o->summary, "started_at", "?"),
                   wb_json_str_or(summary, "started_at", "?"));
    for (size_t i = 0; i < WB_LEN(of_summary); i++)
        differ(wb_json_get(o->summary, of_summary[i]), wb_json_get(summary, of_summary[i]),
               of_summary[i], list);
    for (size_t i = 0; i < WB_LEN(of_environment); i++)
        differ(wb_json_get(o->environment, of_environment[i]),
               wb_json_get(environment, of_environment[i]), of_environment[i], list);
    differ(had, has, "artifacts", list);
    differ(wb_json_get(o->result, "calibration"), wb_json_get(result, "calibration"), "calibration",
           list);
    return list;
}

/* ---- printing ---- */

static const wb_json *headline(const wb_json *summary, const char *which)
{
    const char *name = wb_json_str_or(wb_json_get(summary, "headline"), which, NULL);

    return name ? wb_json_get(wb_json_get(summary, "metrics"), name) : NULL;
}

static void figures(const struct wb_cli *cli, const struct old *o, const wb_json *summary,
                    struct wb_buf *out)
{
    const wb_json *of[] = {o->summary, summary};
    struct wb_table *t = wb_table_new();

    wb_table_column(t, "run", WB_RIGHT);
    wb_table_column(t, "outcome", WB_LEFT);
    wb_table_column(t, "validity", WB_LEFT);
    wb_table_column(t, "ops", WB_RIGHT);
    wb_table_column(t, "p99", WB_RIGHT);
    for (size_t i = 0; i < WB_LEN(of); i++) {
        static const char *const which[] = {"throughput", "p99"};

        wb_table_row(t);
        wb_table_cell(t, "%s", wb_json_str_or(of[i], "id", "?"));
        wb_table_cell(t, "%s", wb_json_str_or(of[i], "outcome", "?"));
        wb_table_cell(t, "%s", wb_json_str_or(of[i], "validity", "?"));
        for (size_t k = 0; k < WB_LEN(which); k++) {
            struct wb_buf b = WB_BUF_INIT(256);

            wb_cli_metric(headline(of[i], which[k]), &b);
            wb_table_cell(t, "%s", wb_buf_str(&b));
            wb_buf_release(&b);
        }
    }
    wb_table_print(t, cli->width, out);
    wb_table_free(t);
}

static void print(const struct wb_cli *cli, const struct old *o, const wb_json *summary,
                  wb_json *list)
{
    struct wb_buf out = WB_BUF_INIT(4u << 20);
    WB_AUTO_FREE char *hint = NULL;
    struct wb_table *t;

    if (cli->json) {
        wb_json *doc = wb_json_object();

        wb_json_set_str(doc, "replayed", o->id);
        wb_json_set(doc, "run", wb_json_ref(summary));
        wb_json_set(doc, "not_the_same", list);
        wb_cli_answer(cli, doc, NULL);
        return;
    }
    figures(cli, o, summary, &out);
    wb_buf_adds(&out, "\nNot the same:\n");
    t = wb_table_new();
    wb_table_column(t, "input", WB_LEFT);
    wb_table_column(t, "was", WB_LEFT);
    wb_table_column(t, "is", WB_LEFT);
    for (size_t i = 0; i < wb_json_len(list); i++) {
        const wb_json *d = wb_json_at(list, i);

        wb_table_row(t);
        wb_table_cell(t, "%s", wb_json_str_or(d, "input", ""));
        wb_table_cell(t, "%s", wb_json_str_or(d, "was", ""));
        wb_table_cell(t, "%s", wb_json_str_or(d, "is", ""));
    }
    wb_table_print(t, cli->width, &out);
    wb_table_free(t);
    hint = wb_strf("One run against one says little: 'weighbridge replay %s --rounds 8', then "
                   "'weighbridge compare' of the two campaigns.",
                   o->id);
    wb_text_wrapped(&out, "\n", 0, hint, cli->width);
    wb_json_free(list);
    wb_cli_print(&out);
}

static int told(const struct wb_cli *cli, const struct wb_session *s, const struct old *o,
                struct wb_err *err)
{
    const struct wb_list_filter f = {.campaign = s->plan->campaign};
    WB_AUTO_JSON wb_json *runs = NULL;
    WB_AUTO_JSON wb_json *environment = NULL;
    WB_AUTO_JSON wb_json *result = NULL;
    const wb_json *run;
    int rc = wb_store_list(s->store, &f, &runs, err);

    run = wb_json_at(runs, 0);
    if (rc < 0 || !run)
        return rc;
    rc = wb_store_read(s->store, wb_json_str_or(run, "id", ""), "environment", &environment, err);
    if (rc == 0)
        rc = wb_store_read(s->store, wb_json_str_or(run, "id", ""), "result", &result, err);
    if (rc == 0)
        print(cli, o, run, differences(o, run, environment, result));
    return rc;
}

static int replay(const struct wb_cli *cli, const void *options, int argc, char **argv)
{
    const struct opts *opts = options;
    struct wb_problems problems = {.file = "the recorded study"};
    struct wb_host_facts host = {0};
    struct wb_session s = {0};
    struct old o = {0};
    struct wb_err err = WB_ERR_INIT;
    int rc = wb_session_open(cli, false, NULL, &s, &err), code;

    if (rc == 0)
        rc = read_old(s.store, argv[0], s.places.state, &o, &err);
    if (rc == 0)
        s.study = one_arm(&o, opts, &problems, &err);
    if (rc == 0 && s.study)
        rc = wb_host_facts_read(&host, &err);
    if (rc == 0 && s.study)
        s.plan = wb_plan_make(s.study, &host, 0, &problems);
    if (rc < 0 || err.code) {
        code = wb_cli_fail(cli, &err);
    } else if (!s.plan) {
        code = wb_study_problems(cli, &problems);
    } else {
        code = wb_session_run(cli, &s,
                              &(struct wb_session_opts){
                                  .quiet = opts->quiet, .wait_s = opts->wait_s, .no_report = true});
        if (told(cli, &s, &o, &err) < 0)
            code = wb_cli_fail(cli, &err);
    }
    old_release(&o);
    wb_host_facts_release(&host);
    wb_session_release(&s);
    wb_problems_release(&problems);
    return code;
}

const struct wb_command wb_cmd_replay = {
    .name = "replay",
    .args = "RUN",
    .summary = "a recorded run once more, and what could not be the same",
    .help = "Runs the arm of a recorded run with the recorded study and the recorded recipe, as a\n"
            "new campaign of one arm. Afterwards each input that is not the same is listed: time,\n"
            "kernel, host, container engine, digests of artifacts, programs and images. A rate\n"
            "given as a share of the calibrated one is calibrated anew. Exit codes are those of\n"
            "'run'.\n",
    .opts = rows,
    .opts_size = sizeof(struct opts),
    .min_args = 1,
    .max_args = 1,
    .run = replay,
};
