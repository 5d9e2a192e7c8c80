/* A campaign's folder: lock, events, ledger with torn lines, states of newer programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "server/base/file.h"
#include "server/engine/campaign.h"
#include "server/engine/leftovers.h"

static int setup(void **state)
{
    char *dir = wb_strdup("/tmp/wb-test-campaign-XXXXXX");

    *state = dir;
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    int rc = wb_remove_tree(*state, NULL);

    free(*state);
    return rc;
}

static struct wb_campaign_dir *make(const char *state_dir, const char *id)
{
    WB_AUTO_JSON wb_json *doc = wb_json_object();
    struct wb_campaign_dir *c = NULL;

    assert_int_equal(wb_campaign_create(state_dir, id, doc, doc, doc, &c, NULL), 0);
    return c;
}

static void test_lock_and_state(void **state)
{
    struct wb_campaign_dir *c = make(*state, "cmp_a"), *d = NULL;
    struct wb_err err = WB_ERR_INIT;

    assert_int_equal(wb_campaign_open(*state, "cmp_a", &d, &err), -WB_CONFLICT);
    wb_json_set_str(wb_campaign_state(c), "state", "running");
    assert_int_equal(wb_campaign_save_state(c, &err), 0);
    wb_campaign_close(c);
    assert_int_equal(wb_campaign_open(*state, "cmp_a", &d, &err), 0);
    assert_string_equal(wb_json_str_or(wb_campaign_state(d), "state", ""), "running");
    wb_json_set_int(wb_campaign_state(d), "state_version", WB_STATE_VERSION + 1);
    assert_int_equal(wb_campaign_save_state(d, &err), 0);
    wb_campaign_close(d);
    assert_int_equal(wb_campaign_open(*state, "cmp_a", &d, &err), -WB_UNSUPPORTED);
    assert_int_equal(wb_campaign_open(*state, "cmp_none", &d, &err), -WB_NOT_FOUND);
    assert_int_equal(wb_campaign_open(*state, "../cmp_a", &d, &err), -WB_NOT_FOUND);
}

static void heard(void *arg, const wb_json *event)
{
    wb_strv_add(arg, wb_json_str_or(event, "type", ""));
}

static void test_events(void **state)
{
    struct wb_campaign_dir *c = make(*state, "cmp_events");
    WB_AUTO_FREE char *path = wb_strf("%s/events.ndjson", wb_campaign_path(c));
    WB_AUTO_FREE char *text = NULL;
    WB_AUTO_JSON wb_json *taken = NULL;
    struct wb_strv types = {0};
    size_t n;

    wb_campaign_listen(c, heard, &types);
    wb_campaign_event(c, "one", NULL);
    wb_campaign_tell(c, "live", NULL);
    wb_campaign_event(c, "two", wb_json_object());
    assert_int_equal(types.n, 3);
    assert_string_equal(types.v[1], "live");
    taken = wb_campaign_take_events(c);
    assert_int_equal(wb_json_len(taken), 2); /* what is only told is not kept */
    wb_json_free(taken);
    taken = wb_campaign_take_events(c);
    assert_int_equal(wb_json_len(taken), 0);
    assert_int_equal(wb_file_read(path, 10000, &text, &n, NULL), 0);
    assert_non_null(strstr(text, "\"type\":\"two\""));
    assert_null(strstr(text, "live"));
    wb_strv_release(&types);
    wb_campaign_close(c);
}

static struct wb_ledger_entry entry(char *name)
{
    static char kind[] = "native", dir[] = "/d", run[] = "run_1";

    return (struct wb_ledger_entry){.kind = kind, .name = name, .dir = dir, .run = run};
}

static void test_ledger(void **state)
{
    struct wb_campaign_dir *c = make(*state, "cmp_ledger");
    WB_AUTO_FREE char *path = wb_strf("%s/ledger.ndjson", wb_campaign_path(c));
    char names[3][2] = {"a", "b", "d"};
    struct wb_ledger_entry *open = NULL, a = entry(names[0]), b = entry(names[1]),
                           d = entry(names[2]);
    size_t n;

    assert_int_equal(wb_ledger_open_entries(c, &open, &n, NULL), 0);
    assert_int_equal(n, 0);
    assert_int_equal(wb_ledger_make(c, &a, NULL), 0);
    assert_int_equal(wb_ledger_make(c, &b, NULL), 0);
    assert_int_equal(wb_ledger_gone(c, "a", NULL), 0);
    assert_int_equal(wb_ledger_make(c, &d, NULL), 0);
    assert_int_equal(wb_ledger_gone(c, "never-made", NULL), 0);
    /* The last line is torn: the machine went down while it was written. */
    assert_int_equal(wb_file_append(path, "{\"op\":\"gone\",\"na", 16, NULL), 0);
    assert_int_equal(wb_ledger_open_entries(c, &open, &n, NULL), 0);
    assert_int_equal(n, 2);
    assert_string_equal(open[0].name, "b");
    assert_string_equal(open[1].name, "d");
    assert_string_equal(open[1].run, "run_1");
    wb_ledger_free(open, n);
    wb_campaign_close(c);
}

static void test_snapshot_difference(void **state)
{
    WB_AUTO_JSON wb_json *before = NULL;
    WB_AUTO_JSON wb_json *after = NULL;
    WB_AUTO_JSON wb_json *left = NULL;
    char *const ports[] = {(char[]){"port 16379"}, NULL};
    static const char b[] = "[\"container old\",\"port 22\"]";
    static const char a[] =
        "[\"container new\",\"container old\",\"port 16379\",\"port 22\",\"port 9\"]";

    assert_int_equal(wb_json_parse(b, strlen(b), &before, NULL), 0);
    assert_int_equal(wb_json_parse(a, strlen(a), &after, NULL), 0);
    left = wb_snapshot_new(before, after, ports);
    assert_int_equal(wb_json_len(left), 2); /* a port that is not ours does not count */
    assert_string_equal(wb_json_string(wb_json_at(left, 0)), "container new");
    assert_string_equal(wb_json_string(wb_json_at(left, 1)), "port 16379");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lock_and_state),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_ledger),
        cmocka_unit_test(test_snapshot_difference),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
