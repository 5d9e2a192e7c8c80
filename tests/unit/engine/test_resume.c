/* Going on with a campaign: what counts as a finished round, and that study and plan come back from
 * their folder as they were. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "server/base/file.h"
#include "server/engine/campaign.h"
#include "server/engine/resume.h"

static int setup(void **state)
{
    char *dir = wb_strdup("/tmp/wb-test-resume-XXXXXX");

    *state = dir;
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    int rc = wb_remove_tree(*state, NULL);

    free(*state);
    return rc;
}

/* ---- rounds ---- */

/* A record per word "round.attempt.arm.outcome", i behind it: interrupted. */
static wb_json *records(const char *words)
{
    wb_json *all = wb_json_array();

    for (const char *w = words; *w; w += strcspn(w, " "), w += *w == ' ') {
        static const char *const outcomes[] = {"ok", "sut-error", "harness-error", "cancelled"};
        wb_json *s = wb_json_object();
        const char arm[2] = {w[4], '\0'};

        wb_json_set_int(s, "round", w[0] - '0');
        wb_json_set_int(s, "attempt", w[2] - '0');
        wb_json_set_str(s, "arm", arm);
        for (size_t i = 0; i < WB_LEN(outcomes); i++)
            if (outcomes[i][0] == w[6])
                wb_json_set_str(s, "outcome", outcomes[i]);
        wb_json_set_str(s, "validity", "valid");
        if (w[7] == 'i')
            wb_json_set_bool(s, "interrupted", true);
        wb_json_push(all, s);
    }
    return all;
}

static void test_rounds(void **state)
{
    static const struct {
        const char *records;
        const char *wanted; /* attempts and f(inished) or - of each of three rounds */
        size_t past;
    } cases[] = {
        {"", "0- 0- 0-", 0},
        {"1.1.a.o 1.1.b.o", "1f 0- 0-", 2},
        {"1.1.a.o", "1- 0- 0-", 0},                 /* an arm is missing */
        {"1.1.a.o 1.1.b.s 2.1.b.o", "1f 1- 0-", 2}, /* a failed run is a finished one */
        {"1.1.a.o 1.1.b.h", "1f 0- 0-", 2},         /* so is a hung load worker */
        {"1.1.a.o 1.1.b.hi", "1- 0- 0-", 0},        /* not so a killed engine */
        {"1.1.a.o 1.1.b.c", "1- 0- 0-", 0},         /* or a cancelled one */
        {"1.1.a.o 1.1.b.hi 1.2.a.o 1.2.b.o", "2f 0- 0-", 2},
        {"1.1.a.o 1.1.b.hi 1.2.a.o", "2- 0- 0-", 0}, /* attempts are never mixed */
        {"1.1.a.o 1.1.b.o 2.1.a.hi 2.2.a.hi 3.1.a.o", "1f 2- 1-", 2},
        {"9.1.a.o 0.1.b.o", "0- 0- 0-", 0}, /* rounds that the plan has not */
        {"1.1.a.o 1.1.z.o", "1- 0- 0-", 0}, /* an arm that it has not */
    };
    struct wb_arm arms[2] = {{.label = (char[]){"a"}}, {.label = (char[]){"b"}}};
    const struct wb_plan plan = {.arms = arms, .narms = 2, .rounds = 3};

    for (size_t i = 0; i < WB_LEN(cases); i++) {
        WB_AUTO_JSON wb_json *all = records(cases[i].records);
        struct wb_buf got = WB_BUF_INIT(100);
        struct wb_rounds r;

        wb_rounds_of(&plan, all, &r);
        for (size_t k = 0; k < r.n; k++)
            wb_buf_addf(&got, "%s%d%c", k ? " " : "", r.v[k].attempts, r.v[k].finished ? 'f' : '-');
        assert_string_equal(wb_buf_str(&got), cases[i].wanted);
        assert_int_equal(r.nruns, cases[i].past);
        wb_rounds_release(&r);
        wb_buf_release(&got);
    }
}

/* ---- study and plan ---- */

/* Makes the campaign of a study as `run` does; NULL when this host cannot hold it. */
static char *make(const char *state_dir, const char *recipes, const char *file, const char *profile)
{
    struct wb_study_options o = {.recipes_dir = recipes, .profile = profile};
    struct wb_problems p = {0};
    struct wb_host_facts host = {0};
    struct wb_study *s = wb_study_read_file(file, &o, &p);
    struct wb_plan *plan = NULL;
    struct wb_campaign_dir *c = NULL;
    char *id = NULL;

    if (!s)
        fail_msg("%s: %s", file, p.v[0].message);
    assert_int_equal(wb_host_facts_read(&host, NULL), 0);
    plan = wb_plan_make(s, &host, s->seed, &p);
    if (plan) {
        WB_AUTO_JSON wb_json *j = wb_plan_json(plan);
        WB_AUTO_JSON wb_json *st = wb_json_object();

        wb_json_set_str(st, "recipe_dir", s->recipe->dir);
        wb_json_set_str(st, "state", "running");
        id = wb_strdup(plan->campaign);
        assert_int_equal(wb_campaign_create(state_dir, id, s->resolved, j, st, &c, NULL), 0);
        wb_campaign_close(c);
    }
    wb_host_facts_release(&host);
    wb_plan_free(plan);
    wb_study_free(s);
    wb_problems_release(&p);
    return id;
}

/* Every ready study comes back as the same plan, whatever profile and seed. */
static void test_round_trip(void **state)
{
    static const struct {
        const char *recipes, *dir, *profile; /* "good-": no profile, only files of that name */
    } places[] = {{"recipes", "recipes/redis/studies", NULL},
                  {"recipes", "recipes/redis/studies", "small"},
                  {"tests/data/recipes", "tests/data/studies", "good-"}};
    int plans = 0;

    for (size_t i = 0; i < WB_LEN(places); i++) {
        bool good = places[i].profile && !strcmp(places[i].profile, "good-");
        const char *profile = good ? NULL : places[i].profile;
        struct wb_strv names = {0};

        assert_int_equal(wb_list_dir(places[i].dir, &names, NULL), 0);
        for (size_t k = 0; k < names.n; k++) {
            WB_AUTO_FREE char *file = wb_strf("%s/%s", places[i].dir, names.v[k]);
            WB_AUTO_FREE char *text = NULL;
            WB_AUTO_FREE char *id = NULL;
            struct wb_problems p = {0};
            struct wb_resume r = {0};
            struct wb_err err = WB_ERR_INIT;

            if (good && strncmp(names.v[k], "good-", 5) != 0)
                continue;
            assert_int_equal(wb_file_read(file, 1u << 20, &text, NULL, NULL), 0);
            if (profile && !strstr(text, profile))
                continue;
            id = make(*state, places[i].recipes, file, profile);
            if (!id)
                continue;
            if (wb_resume_read(*state, id, "/nowhere", &r, &p, &err) < 0)
                fail_msg("%s: %s: %s", file, err.context, err.root);
            if (!r.plan)
                fail_msg("%s: %s", file, p.v[0].message);
            assert_string_equal(r.plan->campaign, id);
            plans++;
            wb_resume_release(&r);
        }
        wb_strv_release(&names);
    }
    assert_true(plans >= 4);
}

static void replace(const char *path, const char *from, const char *to)
{
    WB_AUTO_FREE char *text = NULL;
    struct wb_buf b = WB_BUF_INIT(1u << 20);
    char *at;

    assert_int_equal(wb_file_read(path, 1u << 20, &text, NULL, NULL), 0);
    at = strstr(text, from);
    assert_non_null(at);
    wb_buf_add(&b, text, (size_t)(at - text));
    wb_buf_adds(&b, to);
    wb_buf_adds(&b, at + strlen(from));
    assert_int_equal(wb_file_put(path, wb_buf_str(&b), b.len, NULL), 0);
    wb_buf_release(&b);
}

static void copy_recipe(const char *to)
{
    static const char *const files[] = {"recipe.yaml", "files/toy.conf", "steps/probe",
                                        "steps/ready", "steps/stop"};

    for (size_t i = 0; i < WB_LEN(files); i++) {
        WB_AUTO_FREE char *src = wb_strf("tests/data/recipes/toy/%s", files[i]);
        WB_AUTO_FREE char *dst = wb_strf("%s/%s", to, files[i]);
        WB_AUTO_FREE char *dir = wb_strdup(dst);
        WB_AUTO_FREE char *text = NULL;
        size_t n;

        *strrchr(dir, '/') = '\0';
        assert_int_equal(wb_mkdir_all(dir, 0755, NULL), 0);
        assert_int_equal(wb_file_read(src, 1u << 20, &text, &n, NULL), 0);
        assert_int_equal(wb_file_write(dst, text, n, 0755, NULL), 0);
    }
}

static void test_refused(void **state)
{
    WB_AUTO_FREE char *recipes = wb_strf("%s/recipes", (char *)*state);
    WB_AUTO_FREE char *toy = wb_strf("%s/toy", recipes);
    WB_AUTO_FREE char *conf = wb_strf("%s/files/toy.conf", toy);
    WB_AUTO_FREE char *plan = NULL;
    WB_AUTO_FREE char *id = NULL;
    struct wb_problems p = {0};
    struct wb_resume r = {0};
    struct wb_err err = WB_ERR_INIT;

    copy_recipe(toy);
    id = make(*state, recipes, "tests/data/studies/good-small.yaml", NULL);
    if (!id)
        skip();
    assert_int_equal(wb_resume_read(*state, id, "/nowhere", &r, &p, &err), 0);
    wb_resume_release(&r);
    assert_int_equal(wb_resume_read(*state, "cmp_none", recipes, &r, &p, &err), -WB_NOT_FOUND);
    assert_int_equal(wb_resume_read(*state, "../x", recipes, &r, &p, &err), -WB_NOT_FOUND);
    /* One byte of one file of the recipe. */
    assert_int_equal(wb_file_append(conf, "\n", 1, NULL), 0);
    assert_int_equal(wb_resume_read(*state, id, "/nowhere", &r, &p, &err), -WB_CONFLICT);
    assert_non_null(strstr(err.root, "recipe toy"));
    assert_null(r.plan);
    copy_recipe(toy);
    /* Another placement than the one that was planned: other hardware, say. */
    plan = wb_strf("%s/campaigns/%s/plan.json", (char *)*state, id);
    replace(plan, "\"database_cpus\": \"", "\"database_cpus\": \"7,");
    assert_int_equal(wb_resume_read(*state, id, "/nowhere", &r, &p, &err), -WB_CONFLICT);
    assert_non_null(strstr(err.root, "placement"));
    /* The recipe is gone altogether. */
    assert_int_equal(wb_remove_tree(toy, NULL), 0);
    assert_int_equal(wb_resume_read(*state, id, recipes, &r, &p, &err), 0);
    assert_null(r.plan);
    assert_int_equal(p.n, 1);
    wb_problems_release(&p);
    wb_resume_release(&r);
}

/* Whether the campaign's state says that it is clean. */
static bool is_clean(const char *state_dir, const char *id)
{
    WB_AUTO_FREE char *path = wb_strf("%s/campaigns/%s/state.json", state_dir, id);
    WB_AUTO_JSON wb_json *j = NULL;

    assert_int_equal(wb_json_read_file(path, 1u << 20, &j, NULL), 0);
    assert_string_equal(wb_json_str_or(j, "state", ""), "queued");
    return wb_json_bool_or(j, "clean", false);
}

/* More rounds of the same plan and of no other; what was left behind stays known. */
static bool extend(char *state_dir, const char *file)
{
    static const char recipes[] = "tests/data/recipes";
    WB_AUTO_FREE char *id = make(state_dir, recipes, file, NULL);
    WB_AUTO_FREE char *plan = NULL;
    struct wb_campaign_dir *c = NULL;
    struct wb_problems p = {0};
    struct wb_resume r = {0};
    struct wb_err err = WB_ERR_INIT;

    if (!id)
        return false;
    plan = wb_strf("%s/campaigns/%s/plan.json", state_dir, id);
    for (int clean = 0; clean < 2; clean++) {
        assert_int_equal(wb_campaign_open(state_dir, id, &c, &err), 0);
        assert_int_equal(wb_campaign_set_state(c, "cancelled", clean, &err), 0);
        wb_campaign_close(c);
        if (wb_campaign_extend(state_dir, id, recipes, 30 + clean, &err) < 0)
            fail_msg("%s: %s: %s", file, err.context, err.root);
        assert_int_equal(is_clean(state_dir, id), clean);
        assert_int_equal(wb_resume_read(state_dir, id, "/nowhere", &r, &p, &err), 0);
        assert_int_equal(r.plan->rounds, 30 + clean);
        wb_resume_release(&r);
    }
    /* The host has other processors now. */
    replace(plan, "\"database_cpus\":", "\"database_cpus\": \"7\", \"was\":");
    assert_int_equal(wb_campaign_extend(state_dir, id, recipes, 40, &err), -WB_CONFLICT);
    assert_non_null(strstr(err.root, "placement"));
    assert_int_equal(wb_resume_read(state_dir, id, "/nowhere", &r, &p, &err), -WB_CONFLICT);
    /* Looks that are planned for so many rounds. */
    replace(plan, "{", "{\"looks\": [{\"rounds\": 8}],");
    assert_int_equal(wb_campaign_extend(state_dir, id, recipes, 40, &err), -WB_CONFLICT);
    assert_non_null(strstr(err.root, "its looks are planned for 31 rounds"));
    wb_problems_release(&p);
    return true;
}

/* The second one has steps, whose order is planned round by round. */
static void test_extend(void **state)
{
    bool any = extend(*state, "tests/data/studies/good-small.yaml");

    any |= extend(*state, "tests/data/studies/good-steps.yaml");
    if (!any)
        skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounds),
        cmocka_unit_test_setup_teardown(test_round_trip, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_extend, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
