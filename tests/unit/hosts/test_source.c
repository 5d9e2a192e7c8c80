#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "provisioners/hosts/source.h"
#include "server/base/file.h"
#include "server/base/mem.h"

static char *folder(void)
{
    char dir[] = "/tmp/wb-hosts-XXXXXX";

    assert_non_null(mkdtemp(dir));
    return wb_strdup(dir);
}

static void read_text(const char *dir, const char *text, struct wb_host_pools *out,
                      struct wb_problems *p)
{
    WB_AUTO_FREE char *path = wb_strf("%s/pools.yaml", dir);

    assert_int_equal(wb_file_put(path, text, strlen(text), NULL), 0);
    wb_host_pools_read(path, dir, out, p);
    p->file = NULL;
}

static void one_machine_is_one_host(void **state)
{
    WB_AUTO_FREE char *dir = folder();
    struct wb_host_pools pools = {0};
    struct wb_problems p = {0};
    const struct wb_host_pool *lab;

    (void)state;
    read_text(dir,
              "pools:\n  lab: {source: fake, class: big, hosts: [Lab1, LAB1, "
              "{name: other, machine: lab1}, lab2, {name: lab3, class: small}]}\n"
              "  many: {source: fake, count: 3}\n",
              &pools, &p);
    assert_int_equal(p.n, 0);
    assert_int_equal(pools.n, 3);
    assert_non_null(wb_host_pool_find(&pools, "local"));
    lab = wb_host_pool_find(&pools, "lab");
    assert_int_equal(lab->nhosts, 3);
    assert_string_equal(lab->hosts[0].name, "Lab1");
    assert_string_equal(lab->hosts[0].machine, "lab1");
    assert_string_equal(lab->hosts[2].kind, "small");
    assert_int_equal(wb_host_pool_alike(lab), 2);
    assert_int_equal(wb_host_pool_alike(wb_host_pool_find(&pools, "many")), 3);
    assert_string_equal(wb_host_pool_find(&pools, "many")->hosts[2].machine, "many-3");
    wb_host_pools_release(&pools);
    wb_problems_release(&p);
    assert_int_equal(wb_remove_tree(dir, NULL), 0);
}

static void wrong_files_are_refused(void **state)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"", "the document is empty"},
        {"pools: 3\n", "begins with 'pools:'"},
        {"pool: {}\n", "there is no key 'pool'"},
        {"pools: {lab: fake}\n", "{source, hosts or count, class} is wanted"},
        {"pools: {lab: {count: 2}}\n", "a pool has a source"},
        {"pools: {lab: {source: fak, count: 2}}\n", "did you mean 'fake'"},
        {"pools: {lab: {source: fake}}\n", "has hosts or a count"},
        {"pools: {lab: {source: fake, count: 2, hosts: [a]}}\n", "has hosts or a count"},
        {"pools: {lab: {source: fake, count: 0}}\n", "count"},
        {"pools: {lab: {source: fake, count: 1000000}}\n", "count"},
        {"pools: {lab: {source: fake, hosts: a}}\n", "hosts is a list"},
        {"pools: {lab: {source: fake, hosts: [../etc]}}\n", "a host's name is of letters"},
        {"pools: {lab: {source: fake, hosts: [{name: a, machine: ../b}]}}\n", "a host's name"},
        {"pools: {lab: {source: fake, hosts: [{class: a}]}}\n", "name"},
        {"pools: {lab: {source: fake, hosts: [a], colour: red}}\n", "colour"},
        {"pools: {local: {source: fake, count: 2}}\n", "always there"},
        {"pools: {lab: {source: local}}\n", "always there"},
        {"pools: {Lab: {source: fake, count: 2}}\n", "is no name"},
        {"pools: {lab: {source: fake, count: 2}, lab: {source: fake, count: 2}}\n", "lab"},
        {"pools: [\n", "line"},
    };

    (void)state;
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_FREE char *dir = folder();
        struct wb_host_pools pools = {0};
        struct wb_problems p = {0};
        bool found = false;

        read_text(dir, rows[i].text, &pools, &p);
        assert_true(p.n > 0);
        for (size_t k = 0; k < p.n; k++)
            found |= strstr(p.v[k].message, rows[i].want) != NULL;
        if (!found)
            fail_msg("%s: %s", rows[i].text, p.v[0].message);
        wb_host_pools_release(&pools);
        wb_problems_release(&p);
        assert_int_equal(wb_remove_tree(dir, NULL), 0);
    }
}

static void what_is_left_is_seen(void **state)
{
    WB_AUTO_FREE char *dir = folder();
    WB_AUTO_FREE char *left = wb_strf("%s/h1", dir);
    struct wb_host_pools pools = {0};
    struct wb_problems p = {0};
    struct wb_err err = WB_ERR_INIT;
    const struct wb_host_pool *lab;

    (void)state;
    read_text(dir, "pools: {lab: {source: fake, hosts: [H1, h2]}}\n", &pools, &p);
    lab = wb_host_pool_find(&pools, "lab");
    assert_int_equal(lab->source->look(lab, &lab->hosts[0], &err), 0);
    assert_int_equal(wb_file_put(left, "a mount", 7, NULL), 0);
    assert_int_equal(lab->source->look(lab, &lab->hosts[0], &err), -WB_CONFLICT);
    assert_string_equal(err.root, "a mount");
    assert_int_equal(lab->source->look(lab, &lab->hosts[1], &err), 0);
    wb_host_pools_release(&pools);
    wb_problems_release(&p);
    assert_int_equal(wb_remove_tree(dir, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_machine_is_one_host),
        cmocka_unit_test(wrong_files_are_refused),
        cmocka_unit_test(what_is_left_is_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
