/* Data that is kept for later runs of its arm, and whose it is said to be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "server/base/file.h"
#include "server/engine/campaign.h"
#include "server/engine/data.h"

static int setup(void **state)
{
    char *dir = wb_strdup("/tmp/wb-test-data-XXXXXX");

    *state = dir;
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    int rc = wb_remove_tree(*state, NULL);

    free(*state);
    return rc;
}

/* What a later run says of the data that a run, or a calibration pass, has kept. */
static void keep_and_take(const char *dir, bool calibrating, const char *of_run)
{
    WB_AUTO_FREE char *id = wb_strf("cmp_%d", calibrating);
    WB_AUTO_FREE char *target = wb_strf("%s/%s-run", dir, id);
    WB_AUTO_FREE char *source = NULL;
    WB_AUTO_JSON wb_json *none = wb_json_object();
    WB_AUTO_JSON wb_json *state = wb_json_object();
    WB_AUTO_JSON wb_json *said = NULL;
    struct wb_setup s = {.reuse_data = true};
    struct wb_arm arm = {.setup = &s};
    struct wb_recipe recipe = {0};
    struct wb_plan plan = {.arms = &arm, .narms = 1};
    struct wb_study study = {.recipe = &recipe};
    struct wb_engine_spec spec = {0};
    struct wb_engine e = {.spec = &spec, .plan = &plan, .study = &study};
    struct wb_run first = {.e = &e, .arm = &arm, .calibrating = calibrating};
    struct wb_run later = {.e = &e, .arm = &arm};
    struct wb_instance in = {.dir = target, .member = true};
    struct wb_err err = WB_ERR_INIT;

    first.id = wb_strdup("run_first");
    first.timings = wb_json_object();
    first.reasons = wb_json_array();
    if (wb_campaign_create(dir, id, none, none, state, &e.dir, &err) < 0)
        fail_msg("%s: %s", err.context, err.root);
    assert_int_equal(wb_data_keep(&first), 0);
    source = wb_strf("%s/data/arm0/db0", wb_campaign_path(e.dir));
    assert_int_equal(wb_mkdir_all(source, 0755, NULL), 0);
    assert_int_equal(wb_data_take(&later, &in), 0);
    said = wb_data_json(&later);
    assert_true(wb_json_bool_or(said, "reused", false));
    assert_string_equal(wb_json_str_or(said, "of_run", "none"), of_run);
    assert_int_equal(wb_json_get(said, "of_run_reason") != NULL, calibrating);
    free(later.data_of);
    free(first.id);
    wb_json_free(first.timings);
    wb_json_free(first.reasons);
    wb_campaign_close(e.dir);
}

static void test_of_run(void **state)
{
    keep_and_take(*state, false, "run_first");
    keep_and_take(*state, true, "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_of_run, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
