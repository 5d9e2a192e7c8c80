/* Settings: precedence, files that must not be believed, and the exact words for each fault. */
#include "server/cli/config.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/base/file.h"

static char root[] = "/tmp/weighbridge-config.XXXXXX";
static char *base; /* where the tests were started */

static char *in(const char *name)
{
    return wb_strf("%s/%s", root, name);
}

static void write_to(const char *name, const char *text)
{
    WB_AUTO_FREE char *path = in(name);
    struct wb_err err = WB_ERR_INIT;

    assert_int_equal(wb_file_put(path, text, strlen(text), &err), 0);
}

/* A home and a project below it, and an environment without settings. */
static int setup(void **state)
{
    static const char *const folders[] = {"home/.config/weighbridge", "xdg/weighbridge",
                                          "lab/deep/er"};
    WB_AUTO_FREE char *home = in("home");
    WB_AUTO_FREE char *lab = in("lab/deep/er");

    (void)state;
    for (size_t i = 0; i < WB_LEN(folders); i++) {
        WB_AUTO_FREE char *path = in(folders[i]);

        assert_int_equal(wb_mkdir_all(path, 0755, NULL), 0);
    }
    for (int s = 0; s < WB_SET_N; s++)
        unsetenv(wb_config_variable((enum wb_setting)s));
    unsetenv("WB_CONFIG");
    unsetenv("XDG_CONFIG_HOME");
    unsetenv("SUDO_UID");
    setenv("HOME", home, 1);
    assert_int_equal(chdir(lab), 0);
    return 0;
}

static int teardown(void **state)
{
    static const char *const parts[] = {"home", "xdg", "lab"};

    (void)state;
    assert_int_equal(chdir(base), 0);
    for (size_t i = 0; i < WB_LEN(parts); i++) {
        WB_AUTO_FREE char *path = in(parts[i]);

        assert_int_equal(wb_remove_tree(path, NULL), 0);
    }
    return 0;
}

static struct wb_config *read_good(bool files)
{
    struct wb_problems p = {0};
    struct wb_config *c = NULL;

    if (wb_config_read(files, &c, &p) != 0) {
        struct wb_buf b = WB_BUF_INIT(65536);

        wb_problems_text(&p, &b);
        print_error("%s", wb_buf_str(&b));
        fail();
    }
    return c;
}

static void assert_setting(const struct wb_config *c, enum wb_setting s, const char *value,
                           const char *from)
{
    assert_string_equal(wb_config_get(c, s), value);
    assert_string_equal(wb_config_from(c, s), from);
}

static void test_precedence(void **state)
{
    WB_AUTO_FREE char *user = in("home/.config/weighbridge/config.yaml:1");
    WB_AUTO_FREE char *project = in("lab/weighbridge.yaml:2");
    WB_AUTO_FREE char *user_store = in("home/.config/weighbridge/u.git");
    WB_AUTO_FREE char *project_store = in("lab/p.git");
    struct wb_config *c;

    (void)state;
    write_to("home/.config/weighbridge/config.yaml", "store: u.git\nwidth: 100\n");
    c = read_good(true);
    assert_setting(c, WB_SET_STORE, user_store, user);
    wb_config_free(c);

    write_to("lab/weighbridge.yaml", "# of the lab\nstore: p.git\n");
    c = read_good(true);
    assert_setting(c, WB_SET_STORE, project_store, project);
    assert_string_equal(wb_config_get(c, WB_SET_WIDTH), "100"); /* the user's holds beside it */
    wb_config_free(c);

    setenv("WB_STORE", "e.git", 1);
    c = read_good(true);
    assert_setting(c, WB_SET_STORE, "e.git", "WB_STORE");
    wb_config_set(c, WB_SET_STORE, NULL, "--store");
    assert_setting(c, WB_SET_STORE, "e.git", "WB_STORE");
    wb_config_default(c, WB_SET_STORE, "d.git");
    assert_setting(c, WB_SET_STORE, "e.git", "WB_STORE");
    wb_config_set(c, WB_SET_STORE, "f.git", "--store");
    assert_setting(c, WB_SET_STORE, "f.git", "--store");
    assert_null(wb_config_get(c, WB_SET_RECIPES));
    assert_null(wb_config_from(c, WB_SET_RECIPES));
    wb_config_default(c, WB_SET_RECIPES, "recipes");
    assert_setting(c, WB_SET_RECIPES, "recipes", "default");
    wb_config_free(c);

    setenv("WB_STORE", "", 1); /* empty is not set */
    c = read_good(true);
    assert_setting(c, WB_SET_STORE, project_store, project);
    wb_config_free(c);

    c = read_good(false); /* the environment alone */
    assert_null(wb_config_get(c, WB_SET_STORE));
    wb_config_free(c);
    assert_null(wb_config_get(NULL, WB_SET_STORE));
    wb_config_free(NULL);
}

static void test_nearest_and_named(void **state)
{
    WB_AUTO_FREE char *near = in("lab/deep/near");
    WB_AUTO_FREE char *named = in("lab/other.yaml");
    WB_AUTO_FREE char *other = in("lab/other");
    WB_AUTO_FREE char *xdg = in("xdg");
    WB_AUTO_FREE char *home = in("home/tokens/a");
    struct wb_config *c;

    (void)state;
    write_to("lab/weighbridge.yaml", "store: far\nserver: http://far\n");
    write_to("lab/deep/weighbridge.yaml", "store: near\n");
    c = read_good(true);
    assert_string_equal(wb_config_get(c, WB_SET_STORE), near);
    assert_null(wb_config_get(c, WB_SET_SERVER)); /* only the nearest is read */
    wb_config_free(c);

    write_to("lab/other.yaml", "store: other\ntoken_file: ~/tokens/a\n");
    setenv("WB_CONFIG", "../../other.yaml", 1);
    c = read_good(true);
    assert_true(wb_path_exists(named));
    assert_non_null(strstr(wb_config_get(c, WB_SET_STORE), "/other"));
    assert_string_equal(wb_config_get(c, WB_SET_TOKEN_FILE), home);
    wb_config_free(c);

    setenv("WB_CONFIG", named, 1);
    c = read_good(true);
    assert_string_equal(wb_config_get(c, WB_SET_STORE), other);
    wb_config_free(c);

    setenv("WB_CONFIG", "/dev/null", 1);
    c = read_good(true);
    assert_null(wb_config_get(c, WB_SET_STORE));
    wb_config_free(c);
    unsetenv("WB_CONFIG");

    write_to("home/.config/weighbridge/config.yaml", "width: 90\n");
    write_to("xdg/weighbridge/config.yaml", "width: 91\n");
    setenv("XDG_CONFIG_HOME", xdg, 1);
    c = read_good(true);
    assert_string_equal(wb_config_get(c, WB_SET_WIDTH), "91");
    wb_config_free(c);
    setenv("XDG_CONFIG_HOME", "relative", 1); /* means nothing, as its specification says */
    c = read_good(true);
    assert_string_equal(wb_config_get(c, WB_SET_WIDTH), "90");
    wb_config_free(c);
}

static void test_values(void **state)
{
    WB_AUTO_FREE char *local = in("lab/mirror.git");
    struct wb_config *c;

    (void)state;
    write_to("lab/weighbridge.yaml", "push: {remote: ./mirror.git}\nprice:\n  book: /b/lab.yaml\n"
                                     "width: 1_00\ncolor: never\nstate: /s\nweb: /w\n"
                                     "load_program: /l\ndocker_socket: /d.sock\n");
    c = read_good(true);
    assert_string_equal(wb_config_get(c, WB_SET_PUSH_REMOTE), local);
    assert_string_equal(wb_config_get(c, WB_SET_PRICE_BOOK), "/b/lab.yaml");
    assert_string_equal(wb_config_get(c, WB_SET_WIDTH), "100");
    assert_string_equal(wb_config_get(c, WB_SET_COLOR), "never");
    assert_string_equal(wb_config_get(c, WB_SET_STATE), "/s");
    assert_string_equal(wb_config_get(c, WB_SET_WEB), "/w");
    assert_string_equal(wb_config_get(c, WB_SET_LOAD_PROGRAM), "/l");
    assert_string_equal(wb_config_get(c, WB_SET_DOCKER_SOCKET), "/d.sock");
    wb_config_free(c);

    /* A name, a URL and git's short form of ssh are no paths. */
    static const char *const remotes[] = {"origin", "https://h/r.git", "git@h:r.git", "/abs/r.git"};

    for (size_t i = 0; i < WB_LEN(remotes); i++) {
        WB_AUTO_FREE char *text = wb_strf("push: {remote: \"%s\"}\n", remotes[i]);

        write_to("lab/weighbridge.yaml", text);
        c = read_good(true);
        assert_string_equal(wb_config_get(c, WB_SET_PUSH_REMOTE), remotes[i]);
        wb_config_free(c);
    }
}

static void test_files_that_say_nothing(void **state)
{
    static const char *const texts[] = {"", "\n", "# only this", "   \n# a\n\t\n", "{}\n"};

    (void)state;
    for (size_t i = 0; i < WB_LEN(texts); i++) {
        struct wb_config *c;

        write_to("lab/weighbridge.yaml", texts[i]);
        c = read_good(true);
        for (int s = 0; s < WB_SET_N; s++)
            assert_null(wb_config_get(c, (enum wb_setting)s));
        wb_config_free(c);
    }
}

/* What a text of the project's file gives, all of it, without the path in front. */
static const struct {
    const char *text, *problems;
} broken[] = {
    {"stoer: x\n",
     ":1: /stoer: a settings file has no key 'stoer' (did you mean 'store'?); allowed: store, "
     "state, recipes, server, token_file, load_program, docker_socket, web, width, color, push or "
     "price\n"},
    {"push: {remot: x}\n",
     ":1: /push/remot: push has no key 'remot' (did you mean 'remote'?); allowed: remote\n"},
    {"push: origin\n", ":1: /push: push must be a map of keys and values\n"},
    {"price: [a]\n", ":1: /price: price must be a map of keys and values\n"},
    {"store: [a]\n", ":1: /store: store must be text, not a list\n"},
    {"store:\n", ":1: /store: store has no value; it must be text\n"},
    {"store: ''\n", ":1: /store: store is empty; leave it out instead\n"},
    {"width: wide\n", NULL},
    {"width: 39\n", NULL},
    {"width: 501\n", NULL},
    {"\ncolor: nevre\n",
     ":2: /color: color cannot be 'nevre' (did you mean 'never'?); allowed: auto or never\n"},
    {"server: bench:8420\n", ":1: /server: server cannot be 'bench:8420'; allowed: "
                             "http://HOST[:PORT] or https://HOST[:PORT]\n"},
    {"server: https://ada:s3cret@bench\n",
     ":1: /server: server has a user or password in it; secrets do not belong here: token_file "
     "names a file with the token\n"},
    {"server: ftp://ada:s3cret@bench\n",
     ":1: /server: server cannot be '(not shown)'; allowed: http://HOST[:PORT] or "
     "https://HOST[:PORT]\n"},
    {"push: {remote: 'https://ada:s3cret@h/r.git'}\n",
     ":1: /push/remote: push.remote has a user or password in it; secrets do not belong here: "
     "git's credential helpers keep them\n"},
    {"push: {remote: --upload-pack=x}\n", ":1: /push/remote: push.remote cannot begin with '-'\n"},
    {"store: \"a\\tb\"\n", ":1: /store: store has a control character in it\n"},
    {"token: s3cret\n",
     ":1: /token: token: a secret does not belong in a settings file; write it to a file of its "
     "own that only you can read, and name that with token_file\n"},
    {"push: {password: s3cret, remote: a}\n",
     ":1: /push/password: password: a secret does not belong in a settings file; write it to a "
     "file of its own that only you can read, and name that with token_file\n"},
    {"- store\n", ":1: a map of keys and values is wanted, such as store: PATH\n"},
    {"store: a\nstore: b\n", NULL},
    {"store: *a\n", NULL},
    {"store: a\n---\nstore: b\n", NULL},
    {"store: 'a\n", NULL},
    {"\tstore: a\n", NULL},
    /* all at once, in reading order of the tables */
    {"stoer: x\ncolor: blue\nstate: []\n",
     ":1: /stoer: a settings file has no key 'stoer' (did you mean 'store'?); allowed: store, "
     "state, recipes, server, token_file, load_program, docker_socket, web, width, color, push or "
     "price\n"
     ":2: /color: color cannot be 'blue'; allowed: auto or never\n"
     ":3: /state: state must be text, not a list\n"},
};

static void test_broken(void **state)
{
    WB_AUTO_FREE char *path = in("lab/weighbridge.yaml");

    (void)state;
    for (size_t i = 0; i < WB_LEN(broken); i++) {
        struct wb_problems p = {0};
        struct wb_config *c = NULL;
        struct wb_buf said = WB_BUF_INIT(65536), want = WB_BUF_INIT(65536);

        write_to("lab/weighbridge.yaml", broken[i].text);
        if (wb_config_read(true, &c, &p) == 0)
            fail_msg("taken: %s", broken[i].text);
        wb_problems_text(&p, &said);
        for (const char *line = broken[i].problems; line && *line;) {
            size_t n = strcspn(line, "\n") + 1;

            wb_buf_adds(&want, path);
            wb_buf_add(&want, line, n);
            line += n;
        }
        if (broken[i].problems)
            assert_string_equal(wb_buf_str(&said), wb_buf_str(&want));
        else /* the words are those of another table: file and line are there */
            assert_int_equal(strncmp(wb_buf_str(&said), path, strlen(path)), 0);
        assert_null(strstr(wb_buf_str(&said), "s3cret"));
        wb_buf_release(&said);
        wb_buf_release(&want);
        wb_problems_release(&p);
        wb_config_free(c);
    }
}

static void assert_problem(const char *text)
{
    struct wb_problems p = {0};
    struct wb_config *c = NULL;
    struct wb_buf said = WB_BUF_INIT(65536);

    assert_true(wb_config_read(true, &c, &p) > 0);
    wb_problems_text(&p, &said);
    if (!strstr(wb_buf_str(&said), text))
        fail_msg("'%s' is not in: %s", text, wb_buf_str(&said));
    wb_buf_release(&said);
    wb_problems_release(&p);
    wb_config_free(c);
}

static void test_environment(void **state)
{
    (void)state;
    setenv("WB_WIDTH", "12", 1);
    assert_problem("WB_WIDTH: width: ");
    setenv("WB_WIDTH", "120", 1);
    setenv("WB_COLOR", "nver", 1);
    assert_problem("WB_COLOR: color cannot be 'nver' (did you mean 'never'?); allowed: auto or "
                   "never\n");
    unsetenv("WB_COLOR");
    setenv("WB_SERVER", "localhost", 1);
    assert_problem("WB_SERVER: server cannot be 'localhost'");
    unsetenv("WB_SERVER");
    setenv("WB_STORE", "a\nb", 1);
    assert_problem("WB_STORE: store has a control character in it");
    unsetenv("WB_STORE");
    setenv("WB_CONFIG", "nowhere.yaml", 1);
    assert_problem("nowhere.yaml: cannot be read: No such file or directory");
}

static void test_things_that_are_no_files(void **state)
{
    WB_AUTO_FREE char *path = in("lab/weighbridge.yaml");
    struct wb_buf huge = WB_BUF_INIT(2u << 20);

    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0); /* nobody writes to it: reading it would hang */
    assert_problem("it is not a file");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0755), 0);
    assert_problem("it is not a file");
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(symlink("weighbridge.yaml", path), 0); /* a circle */
    assert_int_equal(unlink(path), 0);
    while (huge.len < (1u << 20) + 1)
        wb_buf_adds(&huge, "# nothing to see here, but a lot of it\n");
    write_to("lab/weighbridge.yaml", wb_buf_str(&huge));
    assert_problem("weighbridge.yaml: ");
    wb_buf_release(&huge);
}

static void test_files_of_others(void **state)
{
    WB_AUTO_FREE char *path = in("lab/weighbridge.yaml");
    WB_AUTO_FREE char *want = wb_strf("ignoring %s: everybody may write to it; WB_CONFIG=%s uses "
                                      "it all the same",
                                      path, path);
    WB_AUTO_JSON wb_json *files = NULL;
    struct wb_config *c;

    (void)state;
    write_to("lab/weighbridge.yaml", "recipes: /evil\n");
    assert_int_equal(chmod(path, 0666), 0);
    c = read_good(true);
    assert_null(wb_config_get(c, WB_SET_RECIPES));
    assert_int_equal(wb_config_notices(c)->n, 1);
    assert_string_equal(wb_config_notices(c)->v[0], want);
    files = wb_config_files(c);
    assert_string_equal(wb_json_str_or(wb_json_at(files, 1), "state", ""), "ignored");
    wb_config_free(c);

    setenv("WB_CONFIG", path, 1); /* named: the user means it */
    c = read_good(true);
    assert_string_equal(wb_config_get(c, WB_SET_RECIPES), "/evil");
    wb_config_free(c);
    unsetenv("WB_CONFIG");

    if (geteuid() != 0)
        return; /* giving files away is root's */
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(chown(path, 1234, 1234), 0);
    c = read_good(true);
    assert_null(wb_config_get(c, WB_SET_RECIPES));
    assert_non_null(strstr(wb_config_notices(c)->v[0], "it belongs to another user (uid 1234)"));
    wb_config_free(c);
    setenv("SUDO_UID", "1234", 1);
    c = read_good(true);
    assert_string_equal(wb_config_get(c, WB_SET_RECIPES), "/evil");
    wb_config_free(c);
    setenv("SUDO_UID", "12x4", 1);
    c = read_good(true);
    assert_null(wb_config_get(c, WB_SET_RECIPES));
    wb_config_free(c);
}

/* A project that was only found gets no say in where a token goes. */
static void test_servers_that_were_found(void **state)
{
    static const struct {
        const char *user, *environment, *server;
        bool named, found;
    } rows[] = {
        {NULL, NULL, "http://evil", false, true},
        {"server: https://mine\n", NULL, "http://evil", false, true},
        {"server: http://evil\n", NULL, "http://evil", false, false}, /* the user said so before */
        {NULL, "http://env", "http://env", false, false},
        {NULL, NULL, "http://evil", true, false},
    };
    WB_AUTO_FREE char *path = in("lab/weighbridge.yaml");

    (void)state;
    write_to("lab/weighbridge.yaml", "server: http://evil\n");
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_config *c;

        write_to("home/.config/weighbridge/config.yaml", rows[i].user ? rows[i].user : "# none\n");
        if (rows[i].environment)
            setenv("WB_SERVER", rows[i].environment, 1);
        if (rows[i].named)
            setenv("WB_CONFIG", path, 1);
        c = read_good(true);
        assert_string_equal(wb_config_get(c, WB_SET_SERVER), rows[i].server);
        assert_int_equal(wb_config_found(c, WB_SET_SERVER), rows[i].found);
        wb_config_set(c, WB_SET_SERVER, "http://evil", "--server");
        assert_false(wb_config_found(c, WB_SET_SERVER));
        wb_config_free(c);
        unsetenv("WB_SERVER");
        unsetenv("WB_CONFIG");
    }
}

static void test_links_of_others(void **state)
{
    WB_AUTO_FREE char *path = in("lab/weighbridge.yaml");
    struct wb_config *c;

    (void)state;
    write_to("home/mine.yaml", "recipes: /mine\n");
    {
        WB_AUTO_FREE char *mine = in("home/mine.yaml");

        assert_int_equal(symlink(mine, path), 0);
    }
    c = read_good(true);
    assert_string_equal(wb_config_get(c, WB_SET_RECIPES), "/mine");
    wb_config_free(c);
    if (geteuid() != 0)
        return; /* giving links away is root's */
    assert_int_equal(lchown(path, 1234, 1234), 0);
    c = read_good(true);
    assert_null(wb_config_get(c, WB_SET_RECIPES));
    assert_non_null(strstr(wb_config_notices(c)->v[0], "it is a link that another user made"));
    wb_config_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_precedence, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nearest_and_named, setup, teardown),
        cmocka_unit_test_setup_teardown(test_values, setup, teardown),
        cmocka_unit_test_setup_teardown(test_files_that_say_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_broken, setup, teardown),
        cmocka_unit_test_setup_teardown(test_environment, setup, teardown),
        cmocka_unit_test_setup_teardown(test_things_that_are_no_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_files_of_others, setup, teardown),
        cmocka_unit_test_setup_teardown(test_servers_that_were_found, setup, teardown),
        cmocka_unit_test_setup_teardown(test_links_of_others, setup, teardown),
    };
    int rc;

    base = getcwd(NULL, 0);
    if (!base || !mkdtemp(root))
        return 1;
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    WB_IGNORE(wb_remove_tree(root, NULL));
    free(base);
    return rc;
}
