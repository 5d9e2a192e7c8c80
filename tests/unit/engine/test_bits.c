/* Artifacts and prefixes: fetched once, complete or absent, every damage noticed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/engine/bits.h"
#include "server/engine/steps.h"
#include "server/engine/tree.h"
#include "tests/unit/engine/recipe_fixture.h"

/* Copies source/ of the recipe into the cache and lists it; counts how often it ran. */
#define FETCH                                                                           \
    "echo x >>$WB_RECIPE_DIR/fetched\n"                                                 \
    "[ \"$WB_PACKAGES\" = 'one two' ] || exit 1\n"                                      \
    "cp $WB_RECIPE_DIR/source/* $WB_CACHE/\n"                                           \
    "sep=\n"                                                                            \
    "{ printf '{\"artifacts\":['\n"                                                     \
    "for f in $(cd $WB_CACHE && ls *.bin); do\n"                                        \
    "sum=$(sha256sum <$WB_CACHE/$f); size=$(wc -c <$WB_CACHE/$f)\n"                     \
    "printf '%s{\"package\":\"p\",\"version\":\"1\",\"file\":\"%s\",\"sha256\":\"%s\"," \
    "\"size\":%d}' \"$sep\" \"$f\" \"${sum%% *}\" \"$size\"\n"                          \
    "sep=,\n"                                                                           \
    "done; printf ']}'; } >$WB_CACHE/artifacts.json\n"                                  \
    "cat $WB_CACHE/artifacts.json"
#define INSTALL                                                                 \
    "echo x >>$WB_RECIPE_DIR/installed\n"                                       \
    "mkdir $WB_PREFIX/bin && cp $WB_CACHE/*.bin $WB_PREFIX/bin && ln -s a.bin " \
    "$WB_PREFIX/bin/link\n"                                                     \
    "chmod 755 $WB_PREFIX/bin/a.bin\n"                                          \
    "echo '{}'"

static void put(const char *dir, const char *name, const char *text)
{
    WB_AUTO_FREE char *path = wb_strf("%s/%s", dir, name);

    assert_int_equal(wb_file_put(path, text, strlen(text), NULL), 0);
}

static int setup(void **state)
{
    struct fixture *f;
    WB_AUTO_FREE char *source = NULL;

    if (fixture_setup(state) < 0)
        return -1;
    f = *state;
    source = wb_strf("%s/source", f->r.dir);
    if (wb_mkdir_all(source, 0755, NULL) < 0)
        return -1;
    put(source, "a.bin", "program");
    put(source, "b.bin", "library");
    fixture_step(f, WB_STEP_FETCH, FETCH);
    fixture_step(f, WB_STEP_INSTALL, INSTALL);
    return 0;
}

/* How often fetch or install ran. */
static size_t count(const struct fixture *f, const char *what)
{
    WB_AUTO_FREE char *path = wb_strf("%s/%s", f->r.dir, what);
    WB_AUTO_FREE char *text = NULL;
    size_t n = 0;

    return wb_file_read(path, 4096, &text, &n, NULL) == 0 ? n / 2 : 0;
}

static void remember(void *arg, const char *text)
{
    wb_buf_addf(arg, "%s\n", text);
}

static int ensure(struct fixture *f, struct wb_bits_info *out, struct wb_buf *notes,
                  struct wb_err *err)
{
    return wb_bits_ensure(&f->r, &f->v, f->state, NULL, notes ? remember : NULL, notes, out, err);
}

static void test_once(void **state)
{
    struct fixture *f = *state;
    struct wb_bits_info a = {0}, b = {0}, c = {0};
    struct wb_err err = WB_ERR_INIT;

    assert_int_equal(ensure(f, &a, NULL, &err), 0);
    assert_int_equal(wb_json_len(a.artifacts), 2);
    assert_int_equal(strlen(a.digest), 64);
    assert_non_null(strstr(a.prefix, "/state/prefix/tiny-1.0-"));
    assert_int_equal(count(f, "fetched"), 1);
    assert_int_equal(count(f, "installed"), 1);
    /* Offline from here on. */
    fixture_step(f, WB_STEP_FETCH, "exit 69");
    fixture_step(f, WB_STEP_INSTALL, "exit 1");
    assert_int_equal(ensure(f, &b, NULL, &err), 0);
    assert_string_equal(a.prefix, b.prefix);
    assert_string_equal(a.digest, b.digest);
    assert_string_equal(a.artifact_digest, b.artifact_digest);
    assert_int_equal(wb_bits_fetch(&f->r, &f->v, f->state, NULL, NULL, NULL, &c, &err), 0);
    assert_null(c.prefix);
    assert_true(wb_json_equal(a.artifacts, c.artifacts));
    wb_bits_info_release(&a);
    wb_bits_info_release(&b);
    wb_bits_info_release(&c);
}

/* The digest of the set is over the sorted digests, a line each. */
static void test_pin(void **state)
{
    struct fixture *f = *state;
    struct wb_bits_info b = {0};
    struct wb_err err = WB_ERR_INIT;
    char one[WB_SHA256_HEX], two[WB_SHA256_HEX], set[WB_SHA256_HEX];
    WB_AUTO_FREE char *lines = NULL;

    wb_sha256_of("program", 7, one);
    wb_sha256_of("library", 7, two);
    lines = strcmp(one, two) < 0 ? wb_strf("%s\n%s\n", one, two) : wb_strf("%s\n%s\n", two, one);
    wb_sha256_of(lines, strlen(lines), set);
    f->v.digest = wb_strdup(set);
    assert_int_equal(ensure(f, &b, NULL, &err), 0);
    assert_string_equal(b.artifact_digest, set);
    wb_bits_info_release(&b);
    f->v.digest[0] = f->v.digest[0] == '0' ? '1' : '0';
    assert_int_equal(ensure(f, &b, NULL, &err), -WB_CORRUPT);
    assert_non_null(strstr(err.root, set));
    assert_non_null(strstr(err.root, f->v.digest));
    assert_int_equal(wb_bits_verify(&f->r, &f->v, f->state, &b, &err), -WB_CORRUPT);
    wb_bits_info_release(&b);
    /* What was there before stays. */
    f->v.digest[0] = set[0];
    fixture_step(f, WB_STEP_FETCH, "exit 1");
    assert_int_equal(ensure(f, &b, NULL, &err), 0);
    wb_bits_info_release(&b);
}

/* A build that a study brings: in a set of artifacts of its own, proven by its digest, and found
 * again by the digest alone. */
static void test_subject(void **state)
{
    static const char taking[] = "[ -z \"$WB_ARTIFACT\" ] || cp $WB_ARTIFACT $WB_CACHE/a.bin\n";
    struct fixture *f = *state;
    WB_AUTO_FREE char *build = wb_strf("%s/build.bin", f->state);
    WB_AUTO_FREE char *fetch = wb_strdup(FETCH);
    WB_AUTO_FREE char *with = NULL;
    struct wb_bits_info plain = {0}, own = {0}, again = {0}, none = {0};
    struct wb_err err = WB_ERR_INIT;
    char hex[WB_SHA256_HEX];
    char *list = strstr(fetch, "sep=");

    assert_int_equal(wb_mkdir_all(f->state, 0755, NULL), 0);
    assert_int_equal(wb_file_put(build, "own build", 9, NULL), 0);
    wb_sha256_of("own build", 9, hex);
    assert_int_equal(ensure(f, &plain, NULL, &err), 0);
    f->v.artifact = build;
    f->v.artifact_sha256 = hex;
    assert_int_equal(ensure(f, &none, NULL, &err), -WB_CORRUPT); /* the recipe takes no build */
    assert_non_null(strstr(err.root, "none of the 2 artifacts"));
    with = wb_strf("%.*s%s%s", (int)(list - fetch), fetch, taking, list);
    fixture_step(f, WB_STEP_FETCH, with);
    f->v.digest = wb_strdup(plain.artifact_digest); /* pins the recipe's own set only */
    assert_int_equal(ensure(f, &own, NULL, &err), 0);
    assert_string_not_equal(own.prefix, plain.prefix);
    assert_string_not_equal(own.digest, plain.digest);
    assert_string_equal(wb_json_str_or(wb_json_at(own.artifacts, 0), "sha256", ""), hex);
    fixture_step(f, WB_STEP_FETCH, "exit 69");
    assert_int_equal(unlink(build), 0);
    f->v.artifact = NULL;
    assert_int_equal(ensure(f, &again, NULL, &err), 0);
    assert_string_equal(again.digest, own.digest);
    f->v.artifact_sha256 = NULL;
    wb_bits_info_release(&again);
    assert_int_equal(ensure(f, &again, NULL, &err), 0); /* and the recipe's own is still there */
    assert_string_equal(again.digest, plain.digest);
    free(f->v.digest);
    f->v.digest = NULL;
    wb_bits_info_release(&plain);
    wb_bits_info_release(&own);
    wb_bits_info_release(&again);
}

static void test_damaged_cache(void **state)
{
    static const struct {
        const char *damage; /* shell, in the cache folder */
        const char *says;
    } rows[] = {
        {"printf X >a.bin", "artifact a.bin is damaged: 1 bytes, recorded 7"},
        {"printf PROGRAM >a.bin", "artifact a.bin is damaged: sha256 "},
        {"rm b.bin", "artifact b.bin is missing"},
        {"mv b.bin ../b; ln -s ../b b.bin", "artifact b.bin is not a plain file"},
        {"echo more >c.bin", "holds c.bin, which is not one of its artifacts"},
        {"echo '{' >artifacts.json", "artifacts.json"},
        {"echo '{\"artifacts\":[]}' >artifacts.json", "must be a list of 1 to"},
        {"sed -i 's/a.bin/..\\/a.bin/' artifacts.json", "artifact 1 must have"},
        {"sed -i 's/\"size\":7/\"size\":\"7\"/' artifacts.json", "artifact 1 must have"},
    };
    struct fixture *f = *state;
    struct wb_bits_info b = {0};
    struct wb_err err = WB_ERR_INIT;

    assert_int_equal(ensure(f, &b, NULL, &err), 0);
    wb_bits_info_release(&b);
    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_FREE char *cmd =
            wb_strf("cd %s/cache/artifacts/tiny/1.0 && %s", f->state, rows[i].damage);
        struct wb_buf notes = WB_BUF_INIT(65536);
        char text[2 * WB_ERR_TEXT_MAX];

        fixture_step(f, WB_STEP_CLEAN, cmd);
        assert_int_equal(wb_step_run(&f->r, WB_STEP_CLEAN, NULL, NULL, NULL, NULL, NULL),
                         -WB_PROTOCOL);
        assert_int_equal(wb_bits_verify(&f->r, &f->v, f->state, &b, &err), -WB_CORRUPT);
        wb_bits_info_release(&b);
        if (!strstr(wb_err_text(&err, text, sizeof(text)), rows[i].says))
            fail_msg("row %zu: %s", i, text);
        /* Without a source it says both what is wrong and why it cannot be mended. */
        fixture_step(f, WB_STEP_FETCH, "echo 'no mirror' >&2; exit 69");
        assert_int_equal(ensure(f, &b, &notes, &err), -WB_NOT_FOUND);
        (void)wb_err_text(&err, text, sizeof(text));
        assert_non_null(strstr(text, rows[i].says));
        assert_non_null(strstr(text, "no mirror"));
        fixture_step(f, WB_STEP_FETCH, FETCH);
        assert_int_equal(ensure(f, &b, &notes, &err), 0);
        assert_int_equal(count(f, "fetched"), i + 2);
        assert_int_equal(count(f, "installed"), 1);
        assert_non_null(strstr(wb_buf_str(&notes), rows[i].says));
        wb_bits_info_release(&b);
        wb_buf_release(&notes);
    }
}

static void test_damaged_prefix(void **state)
{
    static const char *const damage[] = {
        "printf X >bin/a.bin",
        "chmod 644 bin/a.bin",
        "rm bin/b.bin",
        "echo >bin/more",
        "ln -sf b.bin bin/link",
        "mkfifo bin/fifo",
        "rm -r bin",
        "rm ../*.json",
        "echo '{' >$(echo ../*.json)",
        "mkdir -p $PWD.new/left && rm ../*.json",
        "mkdir -p $PWD.old/left && rm ../*.json",
    };
    struct fixture *f = *state;
    struct wb_bits_info first = {0};
    struct wb_err err = WB_ERR_INIT;

    assert_int_equal(ensure(f, &first, NULL, &err), 0);
    for (size_t i = 0; i < WB_LEN(damage); i++) {
        WB_AUTO_FREE char *cmd = wb_strf("cd %s && %s", first.prefix, damage[i]);
        struct wb_bits_info b = {0};
        WB_AUTO_FREE char *rest = wb_strf("%s/prefix", f->state);
        struct wb_strv names = {0};

        fixture_step(f, WB_STEP_CLEAN, cmd);
        assert_int_equal(wb_step_run(&f->r, WB_STEP_CLEAN, NULL, NULL, NULL, NULL, NULL),
                         -WB_PROTOCOL);
        assert_int_equal(ensure(f, &b, NULL, &err), 0);
        assert_string_equal(b.digest, first.digest);
        assert_string_equal(b.prefix, first.prefix);
        assert_int_equal(count(f, "installed"), i + 2);
        assert_int_equal(count(f, "fetched"), 1);
        assert_int_equal(wb_list_dir(rest, &names, &err), 0);
        assert_int_equal(names.n, 2); /* the prefix and its manifest, nothing else */
        wb_strv_release(&names);
        wb_bits_info_release(&b);
    }
    wb_bits_info_release(&first);
}

static void test_failing_steps(void **state)
{
    struct fixture *f = *state;
    WB_AUTO_FREE char *cache = wb_strf("%s/cache/artifacts/tiny/1.0", f->state);
    WB_AUTO_FREE char *prefixes = wb_strf("%s/prefix", f->state);
    struct wb_bits_info b = {0};
    struct wb_err err = WB_ERR_INIT;
    struct wb_strv names = {0};
    char text[2 * WB_ERR_TEXT_MAX];

    assert_int_equal(wb_bits_verify(&f->r, &f->v, f->state, &b, &err), -WB_NOT_FOUND);
    fixture_step(f, WB_STEP_FETCH, FETCH "; printf X >$WB_CACHE/a.bin");
    assert_int_equal(ensure(f, &b, NULL, &err), -WB_CORRUPT);
    assert_non_null(strstr(wb_err_text(&err, text, sizeof(text)), "what step fetch left"));
    assert_false(wb_path_exists(cache));
    fixture_step(f, WB_STEP_FETCH, "echo '{}'");
    assert_int_equal(ensure(f, &b, NULL, &err), -WB_NOT_FOUND);
    assert_false(wb_path_exists(cache));
    fixture_step(f, WB_STEP_FETCH, FETCH);
    fixture_step(f, WB_STEP_INSTALL, "mkdir $WB_PREFIX/half; echo 'no room' >&2; exit 1");
    assert_int_equal(ensure(f, &b, NULL, &err), -WB_IO);
    assert_non_null(strstr(err.root, "step install failed (exit 1): no room"));
    assert_int_equal(wb_list_dir(prefixes, &names, &err), 0);
    assert_int_equal(names.n, 0);
    assert_null(b.prefix);
    assert_null(b.artifacts);
    f->r.has_step[WB_STEP_FETCH] = false;
    assert_int_equal(wb_remove_tree(cache, &err), 0);
    assert_int_equal(ensure(f, &b, NULL, &err), -WB_NOT_FOUND);
    assert_non_null(strstr(err.root, "has no fetch step"));
}

static void test_names(void **state)
{
    struct fixture *f = *state;
    struct wb_bits_info a = {0}, b = {0};
    struct wb_err err = WB_ERR_INIT;

    assert_int_equal(ensure(f, &a, NULL, &err), 0);
    f->r.digest[0] = 'b'; /* another install step may give other bits */
    assert_int_equal(ensure(f, &b, NULL, &err), 0);
    assert_string_not_equal(a.prefix, b.prefix);
    assert_string_equal(a.digest, b.digest);
    wb_bits_info_release(&a);
    wb_bits_info_release(&b);
    free(f->v.version);
    f->v.version = wb_strdup("../../1.0");
    assert_int_equal(ensure(f, &b, NULL, &err), -WB_INVALID);
    assert_int_equal(wb_bits_verify(&f->r, &f->v, f->state, &b, &err), -WB_INVALID);
    assert_null(b.prefix);
}

/* Processes at once: one fetches and installs, the others wait and take what it made. */
static void test_at_once(void **state)
{
    struct fixture *f = *state;
    pid_t pids[4];

    fixture_step(f, WB_STEP_INSTALL, "sleep 0.2\n" INSTALL);
    for (size_t i = 0; i < WB_LEN(pids); i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            struct wb_bits_info b = {0};

            _exit(ensure(f, &b, NULL, NULL) == 0 && b.prefix ? 0 : 1);
        }
    }
    for (size_t i = 0; i < WB_LEN(pids); i++) {
        int status = -1;

        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(count(f, "fetched"), 1);
    assert_int_equal(count(f, "installed"), 1);
}

static void digest_after(const char *dir, char hex[WB_SHA256_HEX])
{
    assert_int_equal(wb_tree_digest(dir, hex, NULL), 0);
}

static void test_tree_digest(void **state)
{
    struct fixture *f = *state;
    WB_AUTO_FREE char *dir = wb_strf("%s/tree", f->dir), *sub = wb_strf("%s/d", dir);
    WB_AUTO_FREE char *file = wb_strf("%s/d/file", dir), *link = wb_strf("%s/d/ln", dir);
    WB_AUTO_FREE char *fifo = wb_strf("%s/fifo", dir);
    char content[WB_SHA256_HEX], target[WB_SHA256_HEX], want[WB_SHA256_HEX], have[WB_SHA256_HEX];
    struct wb_sha256 *d = wb_sha256_new();
    WB_AUTO_FREE char *l2 = NULL, *l3 = NULL;

    assert_int_equal(wb_mkdir_all(sub, 0755, NULL), 0);
    put(sub, "file", "text");
    assert_int_equal(chmod(sub, 0750) | chmod(file, 04711) | symlink("file", link), 0);
    wb_sha256_of("text", 4, content);
    wb_sha256_of("file", 4, target);
    l2 = wb_strf("f 4711 %s d/file", content);
    l3 = wb_strf("l 0000 %s d/ln", target);
    wb_sha256_add(d, "d 0750  d", sizeof("d 0750  d"));
    wb_sha256_add(d, l2, strlen(l2) + 1);
    wb_sha256_add(d, l3, strlen(l3) + 1);
    wb_sha256_end(d, want);
    digest_after(dir, have);
    assert_string_equal(have, want);
    /* Times do not count. */
    put(sub, "file", "text");
    assert_int_equal(chmod(file, 04711), 0);
    digest_after(dir, have);
    assert_string_equal(have, want);
    put(sub, "file", "texT");
    digest_after(dir, have);
    assert_string_not_equal(have, want);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    memset(have, 'x', sizeof(have));
    assert_int_equal(wb_tree_digest(dir, have, NULL), -WB_UNSUPPORTED);
    assert_int_equal(have[0], 'x');
    assert_int_equal(wb_tree_digest("/tmp/wb-test-none", have, NULL), -WB_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_once, setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_pin, setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_subject, setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_damaged_cache, setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_damaged_prefix, setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_failing_steps, setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_names, setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_at_once, setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_tree_digest, setup, fixture_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
