/* A stored verdict on validity that does not follow from what is stored is damage. */
#include "tests/unit/record/fixture.h"

#include "server/collect/collect.h"
#include "server/study/study.h"

static const struct wb_validity_limits limits = {.steal_noisy = 1,
                                                 .steal_invalid = 5,
                                                 .foreign_noisy = 0.25,
                                                 .foreign_invalid = 1,
                                                 .canary_noisy = 2,
                                                 .canary_invalid = 5,
                                                 .throttled_noisy = 1,
                                                 .client_cpu_noisy = 80,
                                                 .client_cpu_limited = 95,
                                                 .run_queue_noisy = 10,
                                                 .errors_noisy = 0.01,
                                                 .errors_fail = 1};

/* The sample with a verdict that follows: unverified, because it has no samples. */
static struct wb_record judged(int n)
{
    struct wb_record r = sample_record(n);
    wb_json *evidence = wb_json_array();
    enum wb_validity v;

    wb_json_set(r.result, "validity", wb_validity_rules_json(&limits));
    assert_int_equal(wb_validity_of_result(r.result, NULL, &v, evidence, NULL), 0);
    wb_json_set_str(r.summary, "validity", wb_validity_name(v));
    wb_json_set(r.summary, "evidence", evidence);
    return r;
}

static void test_verdicts(void **state)
{
    static const struct {
        const char *what, *code; /* code NULL: no complaint */
        const char *words;
        bool note;
    } cases[] = {
        {"nothing", NULL, NULL, false},
        {"word", "validity", "what follows from result.json is", false},
        {"evidence value", "validity", "the evidence is not what follows", false},
        {"evidence gone", "validity", "the evidence is not what follows", false},
        {"limits", "validity", "the evidence is not what follows", false},
        {"rules", "other-rules", "this program has rules", true},
        {"limits gone", "other-rules", "is not known", true},
    };
    struct wb_store *s = open_store(*state, true);

    for (int i = 0; i < (int)WB_LEN(cases); i++) {
        struct wb_record r = judged(i);
        wb_json *evidence = wb_json_get(r.summary, "evidence");
        wb_json *validity = wb_json_get(r.result, "validity");
        WB_AUTO_JSON wb_json *damage = wb_json_array();
        struct wb_err err = WB_ERR_INIT;
        char commit[41];

        if (!strcmp(cases[i].what, "word"))
            wb_json_set_str(r.summary, "validity", "valid");
        else if (!strcmp(cases[i].what, "evidence value"))
            wb_json_set_real(wb_json_at(evidence, 0), "value", 0.5);
        else if (!strcmp(cases[i].what, "evidence gone"))
            wb_json_set(r.summary, "evidence", wb_json_array());
        else if (!strcmp(cases[i].what, "limits"))
            wb_json_set_real(wb_json_path(validity, "limits.steal"), "noisy", 99);
        else if (!strcmp(cases[i].what, "rules"))
            wb_json_set_int(validity, "rules", 99);
        else if (!strcmp(cases[i].what, "limits gone"))
            wb_json_del(wb_json_get(validity, "limits"), "steal");
        if (wb_store_commit(s, &r, commit, &err) < 0)
            fail_msg("%s: %s", cases[i].what, err.root);
        assert_int_equal(wb_store_verify(s, r.run, damage, NULL, &err), 0);
        if (!cases[i].code) {
            assert_int_equal(wb_json_len(damage), 0);
        } else {
            const wb_json *d = wb_json_at(damage, 0);

            assert_int_equal(wb_json_len(damage), 1);
            assert_string_equal(wb_json_str_or(d, "code", ""), cases[i].code);
            assert_non_null(strstr(wb_json_str_or(d, "message", ""), cases[i].words));
            assert_int_equal(wb_json_bool_or(d, "note", false), cases[i].note);
        }
        wb_record_release(&r);
    }
    wb_store_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_verdicts, fixture_setup, fixture_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
