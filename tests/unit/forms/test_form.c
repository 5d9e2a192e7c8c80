/* Names of forms, and the lists that forms fill. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "provisioners/forms/form.h"

static void forms_are_read(void **state)
{
    static const struct {
        const char *text, *name;
        int count;
    } good[] = {{"native x1", "native", 1},
                {"native x4", "native", 4},
                {"docker x1", "docker", 1},
                {"docker x2", "docker", 2},
                {"docker x64", "docker", 64}};

    for (size_t i = 0; i < WB_LEN(good); i++) {
        struct wb_form_ref r = {0};
        struct wb_err err = WB_ERR_INIT;
        assert_int_equal(wb_form_parse(good[i].text, &r, &err), 0);
        assert_string_equal(r.ops->name, good[i].name);
        assert_int_equal(r.count, good[i].count);
    }
}

static void other_texts_are_refused(void **state)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"dockr x1", "did you mean 'docker'?"},
        {"", "is not a form"},
        {" x1", "is not a form"},
        {"Docker x1", "docker"},
        {"podman x1", "allowed: native"},
        {"native", "'native x1'"},
        {"native ", "'native x1'"},
        {"native 1", "'native x1'"},
        {"native x", "'native x1'"},
        {"native x0", "x1 to x64"},
        {"native x01", "x1 to x64"},
        {"native x-1", "x1 to x64"},
        {"native x+1", "x1 to x64"},
        {"native x1k", "x1 to x64"},
        {"native x1_0", "x1 to x64"},
        {"native x65", "x1 to x64"},
        {"native x18446744073709551617", "x1 to x64"},
        {"native  x1", "'native x1'"},
        {"native x1 ", "'native x1'"},
        {"native x 1", "'native x1'"},
        {"native\tx1", "is not a form"},
        {"nativex1", "is not a form"},
    };

    for (size_t i = 0; i < WB_LEN(bad); i++) {
        struct wb_form_ref r = {.count = -7};
        struct wb_err err = WB_ERR_INIT;
        int rc = wb_form_parse(bad[i].text, &r, &err);
        if (rc != -WB_INVALID || !strstr(err.root, bad[i].says) || r.count != -7)
            fail_msg("'%s' gives %d: %s", bad[i].text, rc, err.root);
    }
}

static void a_long_text_is_not_repeated_whole(void **state)
{
    struct wb_form_ref r;
    struct wb_err err = WB_ERR_INIT;
    char text[5000];

    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(wb_form_parse(text, &r, &err), -WB_INVALID);
    assert_non_null(strstr(err.root, "allowed: native"));
}

static void all_forms_have_all_operations(void **state)
{
    size_t n = 0;

    for (; wb_forms[n]; n++) {
        const struct wb_form_ops *f = wb_forms[n];
        assert_non_null(f->name);
        assert_non_null(f->summary);
        assert_true(f->check && f->prepare && f->paths && f->name_of && f->start && f->status &&
                    f->stop && f->logs && f->destroy && f->list_owned && f->reap);
        assert_ptr_equal(wb_form_find(f->name), f);
    }
    assert_int_equal(n, 2);
    assert_null(wb_form_find("vm"));
    assert_null(wb_form_find(""));
}

static void docker_names_and_paths_are_fixed(void **state)
{
    struct wb_bits bits = {.prefix = "/somewhere"};
    struct wb_paths p;
    char *name = wb_form_docker.name_of("run_01ABC", 3);

    assert_string_equal(name, "wb-run_01ABC-db3");
    free(name);
    wb_form_docker.paths(&bits, "/tmp/i", &p);
    assert_string_equal(p.prefix, "/wb/prefix");
    assert_string_equal(p.config, "/wb/config");
    assert_string_equal(p.data, "/wb/data");
    assert_string_equal(p.log, "/wb/log");
    wb_paths_release(&p);
    assert_null(p.prefix);
    wb_paths_release(&p);
}

static void owned_things_are_copied(void **state)
{
    struct wb_owned_list l = {0};
    char id[] = "name0";

    for (int i = 0; i < 100; i++) {
        id[4] = (char)('0' + i % 10);
        wb_owned_add(&l, "container", id, "me", NULL, i % 2 ? "run" : NULL);
    }
    assert_int_equal(l.n, 100);
    assert_string_equal(l.v[13].id, "name3");
    assert_string_equal(l.v[13].run, "run");
    assert_null(l.v[14].run);
    assert_null(l.v[14].campaign);
    wb_owned_release(&l);
    assert_int_equal(l.n, 0);
    wb_owned_release(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_are_read),
        cmocka_unit_test(other_texts_are_refused),
        cmocka_unit_test(a_long_text_is_not_repeated_whole),
        cmocka_unit_test(all_forms_have_all_operations),
        cmocka_unit_test(docker_names_and_paths_are_fixed),
        cmocka_unit_test(owned_things_are_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
