/* Recipes: what is read, what is refused, values of parameters, digests. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/study/study.h"

static const char good[] =
    "name: toy\n"
    "revision: \"1\"\n"
    "summary: a toy\n"
    "protocol: resp\n"
    "port: 6379\n"
    "memory_min: 64MiB\n"
    "topologies: [single]\n"
    "versions:\n"
    "  - {version: 3.10, source: distribution, packages: [toy]}\n"
    "start: {argv: [\"{prefix}/toyd\"]}\n"
    "parameters:\n"
    "  - {name: hz, type: int, default: 10, min: 1, max: 500, help: ticks}\n";

/* A folder "<tmp>/toy" that is a recipe. */
struct folder {
    char *tmp, *dir;
};

static void put(const struct folder *f, const char *name, const char *text, mode_t mode)
{
    WB_AUTO_FREE char *path = wb_strf("%s/%s", f->dir, name);
    struct wb_err err = WB_ERR_INIT;

    assert_int_equal(wb_file_put(path, text, strlen(text), &err), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void make(struct folder *f)
{
    struct wb_err err = WB_ERR_INIT;
    char name[] = "/tmp/wb-test-recipe-XXXXXX";

    assert_non_null(mkdtemp(name));
    f->tmp = wb_strdup(name);
    f->dir = wb_strf("%s/toy", name);
    WB_AUTO_FREE char *steps = wb_strf("%s/steps", f->dir);
    WB_AUTO_FREE char *studies = wb_strf("%s/studies", f->dir);

    assert_int_equal(wb_mkdir_all(steps, 0755, &err), 0);
    assert_int_equal(wb_mkdir_all(studies, 0755, &err), 0);
    put(f, "recipe.yaml", good, 0644);
    put(f, "steps/ready", "#!/bin/sh\n", 0755);
    put(f, "steps/probe", "#!/bin/sh\n", 0755);
}

static void drop(struct folder *f)
{
    struct wb_err err = WB_ERR_INIT;

    assert_int_equal(wb_remove_tree(f->tmp, &err), 0);
    free(f->tmp);
    free(f->dir);
}

static struct wb_recipe *read_good(const char *dir)
{
    struct wb_problems p = {0};
    struct wb_recipe *r = wb_recipe_read(dir, &p);

    if (!r)
        fail_msg("%s: %s", dir, p.v[0].message);
    assert_int_equal(p.n, 0);
    return r;
}

static void test_toy(void **state)
{
    struct wb_recipe *r = read_good("tests/data/recipes/toy");

    assert_true(r->dir[0] == '/');
    assert_string_equal(r->name, "toy");
    assert_string_equal(r->revision, "1");
    assert_string_equal(r->protocol, "resp");
    assert_int_equal(r->port, 6399);
    assert_int_equal(r->memory_min, 64LL << 20);
    assert_int_equal(r->nversions, 2);
    assert_string_equal(r->versions[0].version, "3.10");
    assert_string_equal(r->versions[1].packages.v[1], "libtoy++1");
    assert_null(r->versions[0].digest);
    assert_int_equal(r->nparams, 5);
    assert_string_equal(wb_recipe_find_param(r, "cache")->dflt, "0");
    assert_int_equal(wb_recipe_find_param(r, "cache")->max, 1LL << 30);
    assert_string_equal(wb_recipe_find_param(r, "sync")->dflt, "no");
    assert_string_equal(wb_recipe_find_param(r, "rules")->dflt, "");
    assert_null(wb_recipe_find_param(r, "cach"));
    assert_null(wb_recipe_find_version(r, "3.1"));
    assert_string_equal(r->start.v[1], "--port={port}");
    assert_string_equal(r->start_env.v[0], "LD_LIBRARY_PATH={prefix}/lib");
    assert_true(r->has_step[WB_STEP_READY]);
    assert_true(r->has_step[WB_STEP_STOP]);
    assert_false(r->has_step[WB_STEP_FETCH]);
    assert_int_equal(r->step_limit_ns[WB_STEP_READY], 5 * WB_SEC);
    assert_int_equal(r->step_limit_ns[WB_STEP_FETCH], wb_step_default_limit_ns(WB_STEP_FETCH));
    assert_int_equal(r->nmetrics, 2);
    assert_true(r->metrics[0].counter);
    assert_string_equal(r->metrics[0].unit, "");
    assert_string_equal(r->metrics[1].unit, "bytes");
    assert_string_equal(r->allowed_differences.v[0], "paths");
    assert_int_equal(r->files.n, 5); /* without studies/ */
    assert_string_equal(r->files.v[0], "files/toy.conf");
    assert_string_equal(r->files.v[1], "recipe.yaml");
    assert_int_equal(strlen(r->digest), 64);
    wb_recipe_free(r);
    wb_recipe_free(NULL);
}

static void test_redis(void **state)
{
    struct wb_recipe *r = read_good("recipes/redis");

    assert_non_null(wb_recipe_find_version(r, "7.0.15"));
    assert_string_equal(wb_recipe_find_version(r, "7.0.15")->packages.v[0], "redis-server");
    for (int s = WB_STEP_FETCH; s <= WB_STEP_STOP; s++)
        assert_true(r->has_step[s]);
    wb_recipe_free(r);
}

static void test_operations(void **state)
{
    struct wb_recipe *r = read_good("tests/data/recipes/ringy");

    assert_int_equal(r->noperations, 4);
    assert_int_equal(wb_recipe_find_operation(r, "grow")->kind, WB_OP_JOIN);
    assert_int_equal(wb_recipe_find_operation(r, "grow")->limit_ns, 120 * WB_SEC);
    assert_int_equal(wb_recipe_find_operation(r, "shrink")->kind, WB_OP_LEAVE);
    assert_int_equal(wb_recipe_find_operation(r, "shrink")->limit_ns, 600 * WB_SEC);
    assert_int_equal(wb_recipe_find_operation(r, "tidy")->kind, WB_OP_WORK);
    assert_int_equal(wb_recipe_find_operation(r, "bounce")->kind, WB_OP_RESTART);
    assert_null(wb_recipe_find_operation(r, "repair"));
    wb_recipe_free(r);
}

static void test_broken(void **state)
{
    static const struct {
        const char *from, *to; /* edit of the good text */
        int line;
        const char *pointer, *message;
    } rows[] = {
        {"name: toy", "name: tay", 1, "/name", "name 'tay' differs from the folder's name 'toy'"},
        {"name: toy\n", "", 1, "/name", "recipe needs name: the name of the folder"},
        {"port: 6379", "port: 70000", 5, "/port",
         "port: '70000' is out of range, allowed is 1 to 65535"},
        {"memory_min: 64MiB", "memory: 64MiB", 6, "/memory",
         "recipe has no key 'memory' (did you mean 'memory_min'?); allowed: name, revision, "
         "summary, protocol, port, memory_min, versions, ports, addresses, measure, data, "
         "parameters, "
         "start, topologies, steps, "
         "operations, metrics, shared or allowed_differences"},
        {"[single]", "single", 7, "/topologies", "topologies must be a list of 1 to 200 texts"},
        {"source: distribution", "source: web", 9, "/versions/0/source",
         "source cannot be 'web'; allowed: distribution, maven or release"},
        {"packages: [toy]", "packages: [../toy]", 9, "/versions/0/packages",
         "'../toy' is no package name"},
        {"packages: [toy]", "packages: [toy], digest: abc", 9, "/versions/0/digest",
         "digest must be 64 lower-case hex digits of SHA-256"},
        {", packages: [toy]", "", 9, "/versions/0/packages",
         "source distribution needs packages: names of packages"},
        {"packages: [toy]", "packages: [toy], lock: versions/a", 9, "/versions/0/lock",
         "lock belongs to source maven, not to distribution"},
        {"source: distribution, packages: [toy]", "source: maven, lock: ../a", 9,
         "/versions/0/lock", "lock must be a plain file name below versions/, not '../a'"},
        {"source: distribution, packages: [toy]", "source: maven, lock: versions/none", 9,
         "/versions/0/lock", NULL},
        {"source: distribution, packages: [toy]", "source: release, url: \"ftp://x/y\", sha512: ab",
         9, "/versions/0/url", "url must start with https://, http:// or file:///"},
        {"source: distribution, packages: [toy]",
         "source: release, url: \"https://x/y\", sha512: ab", 9, "/versions/0/sha512",
         "sha512 must be 128 lower-case hex digits"},
        {"port: 6379\n", "port: 6379\nports: [{name: a, default: 1}, {name: a, default: 2}]\n", 6,
         "/ports/1", "port 'a' is there twice"},
        {"port: 6379\n", "port: 6379\naddresses: many\n", 6, "/addresses",
         "addresses cannot be 'many'; allowed: shared or own"},
        {"port: 6379\n",
         "port: 6379\noperations: [{name: a, kind: join, help: x}, {name: a, kind: join, help: y}]"
         "\n",
         6, "/operations/1", "operation 'a' is there twice"},
        {"port: 6379\n", "port: 6379\noperations: [{name: wipe, kind: join, help: x}]\n", 6,
         "/operations/0", "operation 'wipe' has the name of a step that every recipe may have"},
        {"port: 6379\n", "port: 6379\noperations: [{name: a, kind: leave, help: x}]\n", 6,
         "/operations/0", "steps/a is missing: operation 'a' is done by it"},
        {"port: 6379\n", "port: 6379\noperations: [{name: a, kind: go, help: x}]\n", 6,
         "/operations/0/kind", "kind cannot be 'go'; allowed: work, leave, join or restart"},
        {"port: 6379\n", "port: 6379\nshared: [../x]\n", 6, "/shared",
         "'../x' is no plain file name"},
        {"port: 6379\n", "port: 6379\nshared: [x.sh]\n", 6, "/shared",
         "shared/x.sh is not there, nor in the folder beside this one"},
        {"{prefix}/toyd", "/usr/bin/toyd", 10, "/start/argv/0",
         "the program must be below {prefix}/, not '/usr/bin/toyd'"},
        {"{prefix}/toyd", "{prefix}/toyd{x}", 10, "/start/argv",
         "'{prefix}/toyd{x}' has a brace that is none of {prefix}, {config}, {data}, {log} or "
         "{port}"},
        {"argv: [\"{prefix}/toyd\"]", "argv: [\"{prefix}/toyd\"], env: [X]", 10, "/start/env",
         "'X' is not NAME=value"},
        {"default: 10", "default: 0", 12, "/parameters/0/default",
         "default: '0' is out of range, allowed is 1 to 500"},
        {"default: 10, ", "", 12, "/parameters/0/default", "parameter needs default: a value"},
        {"min: 1", "min: x", 12, "/parameters/0/min",
         "min: 'x' is not an integer (such as 42, 1_000_000 or 10k)"},
        {"type: int", "type: word", 12, "/parameters/0/max", "max: only int and bytes have a max"},
        {"help: ticks", "help: ticks, words: [a]", 12, "/parameters/0",
         "words belong to a parameter of type word, and only there"},
        {"help: ticks}\n", "help: ticks}\n  - {name: hz, type: bool, default: yes, help: again}\n",
         13, "/parameters/1", "parameter 'hz' is there twice"},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_problems p = {.file = "outer"};
        struct wb_buf text = WB_BUF_INIT(8192);
        const char *at = strstr(good, rows[i].from);
        bool found = false;
        struct folder f;

        make(&f);
        wb_buf_add(&text, good, (size_t)(at - good));
        wb_buf_addf(&text, "%s%s", rows[i].to, at + strlen(rows[i].from));
        put(&f, "recipe.yaml", wb_buf_str(&text), 0644);
        assert_null(wb_recipe_read(f.dir, &p));
        for (size_t k = 0; k < p.n; k++) {
            found = found ||
                    ((!rows[i].message || strcmp(p.v[k].message, rows[i].message) == 0) &&
                     strcmp(p.v[k].pointer, rows[i].pointer) == 0 && p.v[k].line == rows[i].line);
            assert_non_null(strstr(p.v[k].file, "/toy/recipe.yaml"));
        }
        if (!found)
            fail_msg("wanted %d %s: %s; got %d %s: %s", rows[i].line, rows[i].pointer,
                     rows[i].message ? rows[i].message : "any", p.v[0].line, p.v[0].pointer,
                     p.v[0].message);
        assert_string_equal(p.file, "outer");
        wb_problems_release(&p);
        wb_buf_release(&text);
        drop(&f);
    }
}

/* What stands among the allowed differences is compared, or the recipe is refused. */
static void test_allowed_differences(void **state)
{
    static const struct {
        const char *name, *guess; /* guess NULL: it is known */
    } rows[] = {
        {"paths", NULL},
        {"paths.data", NULL},
        {"libc", NULL},
        {"libc.build", NULL},
        {"setting.cache", NULL},
        {"setting", NULL},
        {"env.HOME", NULL},
        {"env", NULL},
        {"capabilities", NULL},
        {"security_label", NULL},
        {"path", ""},
        {"seccom", " (did you mean 'seccomp'?)"},
        {"libc.buidl", " (did you mean 'libc.build'?)"},
        {"paths.", ""},
        {"env.", ""},
        {"paths.dat", " (did you mean 'paths.data'?)"},
        {"seccomp.filter", ""},
        {"ulimit.nofile.soft", ""},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        WB_AUTO_FREE char *text = wb_strf("%sallowed_differences: [\"%s\"]\n", good, rows[i].name);
        WB_AUTO_FREE char *begin = wb_strf("'%s' is nothing that the parity report compares%s",
                                           rows[i].name, rows[i].guess ? rows[i].guess : "");
        struct wb_problems p = {0};
        struct wb_recipe *r;
        struct folder f;

        make(&f);
        put(&f, "recipe.yaml", text, 0644);
        r = wb_recipe_read(f.dir, &p);
        assert_int_equal(r != NULL, rows[i].guess == NULL);
        assert_int_equal(p.n, rows[i].guess ? 1 : 0);
        if (rows[i].guess) {
            assert_string_equal(p.v[0].code, "unknown-value");
            assert_string_equal(p.v[0].pointer, "/allowed_differences/0");
            if (*rows[i].guess)
                assert_memory_equal(p.v[0].message, begin, strlen(begin));
        }
        wb_recipe_free(r);
        wb_problems_release(&p);
        drop(&f);
    }
    (void)state;
}

#define BROKEN "tests/data/broken-recipes/"

/* Each file stands for recipe.yaml of the toy recipe; its lines "#! TEXT" are the problems it must
 * give, in their order. */
static void check_broken_file(const struct folder *f, const char *path)
{
    struct wb_buf want = WB_BUF_INIT(1 << 20), got = WB_BUF_INIT(1 << 20);
    struct wb_problems p = {0};
    struct wb_err err = WB_ERR_INIT;
    WB_AUTO_FREE char *text = NULL;
    size_t n = 0;

    assert_int_equal(wb_file_read(path, 1 << 20, &text, &n, &err), 0);
    put(f, "recipe.yaml", text, 0644);
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
        if (strncmp(line, "#! ", 3) == 0)
            wb_buf_add(&want, line + 3, strcspn(line, "\n") - 2);
        if (!strchr(line, '\n'))
            fail_msg("%s: no line break at its end", path);
    }
    assert_null(wb_recipe_read(f->dir, &p));
    for (size_t i = 0; i < p.n; i++) {
        if (p.v[i].line > 0)
            wb_buf_addf(&got, "%d: ", p.v[i].line);
        wb_buf_addf(&got, "%s%s%s\n", p.v[i].pointer, *p.v[i].pointer ? ": " : "", p.v[i].message);
    }
    if (want.len == 0 || strcmp(wb_buf_str(&got), wb_buf_str(&want)) != 0)
        fail_msg("%s gave\n%swanted\n%s", path, wb_buf_str(&got), wb_buf_str(&want));
    wb_problems_release(&p);
    wb_buf_release(&want);
    wb_buf_release(&got);
}

static void test_broken_files(void **state)
{
    struct wb_err err = WB_ERR_INIT;
    struct wb_strv names = {0};
    struct folder f;

    make(&f);
    assert_int_equal(wb_list_dir(BROKEN, &names, &err), 0);
    assert_true(names.n >= 40);
    for (size_t i = 0; i < names.n; i++) {
        WB_AUTO_FREE char *path = wb_strf(BROKEN "%s", names.v[i]);

        check_broken_file(&f, path);
    }
    wb_strv_release(&names);
    drop(&f);
}

/* Case 026 over JSON: a version that is a number is refused, never shortened. */
static void test_version_as_number(void **state)
{
    static const char text[] = "{\"study\":\"s\",\"recipe\":{\"name\":\"toy\",\"version\":3.10}}";
    const struct wb_study_options o = {.recipes_dir = "tests/data/recipes"};
    struct wb_problems p = {0};
    struct wb_err err = WB_ERR_INIT;
    struct wb_node *tree = NULL;
    WB_AUTO_JSON wb_json *j = NULL;
    bool found = false;

    assert_int_equal(wb_json_parse(text, strlen(text), &j, &err), 0);
    assert_int_equal(wb_node_from_json(j, &tree, &err), 0);
    assert_null(wb_study_check(tree, NULL, &o, &p));
    for (size_t i = 0; i < p.n; i++)
        found |= !strcmp(p.v[i].pointer, "/recipe/version") &&
                 !strcmp(p.v[i].message,
                         "version is a number, which loses digits (3.10 becomes 3.1): write the "
                         "version as a string, in quotes");
    assert_true(found);
    wb_problems_release(&p);
}

static void expect_one(const struct folder *f, const char *code, const char *message)
{
    struct wb_problems p = {0};

    assert_null(wb_recipe_read(f->dir, &p));
    assert_int_equal(p.n, 1);
    assert_string_equal(p.v[0].code, code);
    if (message)
        assert_string_equal(p.v[0].message, message);
    wb_problems_release(&p);
}

/* A lock is read before anything is fetched: its lines become paths. */
static void test_lock(void **state)
{
    static const char sha[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    static const struct {
        const char *line; /* %s: a digest */
        bool good;
    } rows[] = {
        {"%s  org.a:b-c:1.0\n", true},
        {"%s  org.a:b_c:1.0:linux-x86_64\n", true},
        {"%s  org.a:b:1.0", true}, /* the last line may lack its end */
        {"", false},
        {"\n", false},
        {"%s org.a:b:1.0\n", false},
        {"%s  org.a:b\n", false},
        {"%s  org.a:b:1.0:c:d\n", false},
        {"%s  org.a::1.0\n", false},
        {"%s  org.a:b:\n", false},
        {"%s  :b:1.0\n", false},
        {"%s  org.a:../../etc:1.0\n", false},
        {"%s  org.a:..:1.0\n", false},
        {"%s  org/a:b:1.0\n", false},
        {"%s  org.a:b:1.0 x\n", false},
        {"x%s  org.a:b:1.0\n", false},
    };

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_problems p = {0};
        struct folder f;
        struct wb_recipe *r;

        make(&f);
        WB_AUTO_FREE char *versions = wb_strf("%s/versions", f.dir);
        struct wb_buf text = WB_BUF_INIT(8192), lock = WB_BUF_INIT(8192);
        const char *at = strstr(good, "source: distribution, packages: [toy]");
        const char *sign = strstr(rows[i].line, "%s");

        assert_int_equal(wb_mkdir_all(versions, 0755, NULL), 0);
        wb_buf_add(&text, good, (size_t)(at - good));
        wb_buf_adds(&text, "source: maven, lock: versions/1.lock");
        wb_buf_adds(&text, at + strlen("source: distribution, packages: [toy]"));
        if (sign)
            wb_buf_addf(&lock, "%.*s%s%s", (int)(sign - rows[i].line), rows[i].line, sha, sign + 2);
        else
            wb_buf_adds(&lock, rows[i].line);
        put(&f, "recipe.yaml", wb_buf_str(&text), 0644);
        put(&f, "versions/1.lock", wb_buf_str(&lock), 0644);
        r = wb_recipe_read(f.dir, &p);
        if ((r != NULL) != rows[i].good)
            fail_msg("row %zu: %s", i, p.n ? p.v[0].message : "was taken");
        wb_recipe_free(r);
        wb_problems_release(&p);
        wb_buf_release(&text);
        wb_buf_release(&lock);
        drop(&f);
    }
}

/* The bits of a version are no part of what makes series comparable. */
static void test_lock_series(void **state)
{
    struct folder f;
    struct wb_recipe *a, *b;

    make(&f);
    a = read_good(f.dir);
    WB_AUTO_FREE char *versions = wb_strf("%s/versions", f.dir);

    assert_int_equal(wb_mkdir_all(versions, 0755, NULL), 0);
    put(&f, "versions/9.lock", "anything", 0644);
    b = read_good(f.dir);
    assert_string_equal(a->series_digest, b->series_digest);
    assert_string_not_equal(a->digest, b->digest);
    wb_recipe_free(a);
    wb_recipe_free(b);
    drop(&f);
}

static void test_cassandra(void **state)
{
    struct wb_recipe *r = read_good("recipes/cassandra");

    assert_string_equal(r->protocol, "cql");
    assert_true(r->own_addresses);
    assert_true(r->measure_phases);
    assert_int_equal(r->nports, 2);
    assert_string_equal(r->ports[0].name, "storage");
    assert_int_equal(r->ports[1].dflt, 7199);
    for (size_t i = 0; i < r->nversions; i++) {
        assert_string_equal(r->versions[i].source, "maven");
        assert_non_null(r->versions[i].lock);
    }
    assert_true(r->nversions >= 2);
    wb_recipe_free(r);
}

static void test_folder(void **state)
{
    struct folder f;

    make(&f);
    WB_AUTO_FREE char *link_path = wb_strf("%s/files", f.dir);
    WB_AUTO_FREE char *ready = wb_strf("%s/steps/ready", f.dir);
    WB_AUTO_FREE char *yaml = wb_strf("%s/recipe.yaml", f.dir);

    put(&f, "steps/relaod", "", 0755);
    expect_one(&f, "unknown-step",
               "steps/relaod is no step; allowed: fetch, install, configure, ready, probe, "
               "measure, stop, clean, unmount, wipe or settle");
    WB_AUTO_FREE char *wrong = wb_strf("%s/steps/relaod", f.dir);
    assert_int_equal(unlink(wrong), 0);
    put(&f, "steps/ready", "", 0644);
    expect_one(&f, "not-executable", "steps/ready is not executable (chmod +x)");
    assert_int_equal(unlink(ready), 0);
    expect_one(&f, "missing",
               "steps/ready is missing: without it a run cannot prove what it measured");
    put(&f, "steps/ready", "", 0755);
    assert_int_equal(symlink("/etc/passwd", link_path), 0);
    expect_one(&f, "not-a-file",
               "files is neither file nor folder; a recipe has no links or special files");
    assert_int_equal(unlink(link_path), 0);
    assert_int_equal(unlink(yaml), 0);
    expect_one(&f, "unreadable", NULL);
    drop(&f);
}

/* What changes the content digest, and what of it the series must not see. */
/* A shared file counts as the recipe's own, beside it or in a copy of it alone. */
static void test_shared(void **state)
{
    WB_AUTO_FREE char *text = wb_strf("%sshared: [x.sh]\n", good);
    struct wb_recipe *r[3];
    struct folder f;

    make(&f);
    put(&f, "recipe.yaml", text, 0644);
    WB_AUTO_FREE char *beside = wb_strf("%s/shared", f.tmp);
    WB_AUTO_FREE char *within = wb_strf("%s/shared", f.dir);

    assert_int_equal(wb_mkdir_all(beside, 0755, NULL), 0);
    put(&f, "../shared/x.sh", "one", 0644);
    r[0] = read_good(f.dir);
    assert_string_equal(r[0]->files.v[1], "shared/x.sh");
    WB_AUTO_FREE char *path = wb_recipe_path(r[0], "shared/x.sh");

    assert_non_null(strstr(path, "/toy/../shared/x.sh"));
    put(&f, "../shared/x.sh", "two", 0644);
    r[1] = read_good(f.dir);
    assert_string_not_equal(r[0]->digest, r[1]->digest);
    assert_string_not_equal(r[0]->series_digest, r[1]->series_digest);
    assert_int_equal(wb_mkdir_all(within, 0755, NULL), 0);
    put(&f, "shared/x.sh", "one", 0644);
    r[2] = read_good(f.dir);
    assert_string_equal(r[0]->digest, r[2]->digest);
    assert_string_equal(r[0]->series_digest, r[2]->series_digest);
    assert_int_equal(r[0]->files.n, r[2]->files.n);
    for (int i = 0; i < 3; i++)
        wb_recipe_free(r[i]);
    drop(&f);
}

static void test_digests(void **state)
{
    static const struct {
        const char *file, *text;
        mode_t mode;
        bool digest, series; /* whether each changes */
    } rows[] = {
        {"studies/new.yaml", "x", 0644, false, false},
        {"files.txt", "x", 0644, true, true},
        {"steps/ready", "#!/bin/sh\n#\n", 0755, true, true},
        {"steps/stop", "#!/bin/sh\n", 0755, true, true},
        {"recipe.yaml", NULL, 0644, true, false}, /* one more version */
        {"recipe.yaml", "#", 0644, true, false},  /* only a comment */
    };

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        struct wb_buf text = WB_BUF_INIT(8192);
        struct wb_recipe *before, *after;
        struct folder f;

        make(&f);
        before = read_good(f.dir);
        wb_buf_adds(&text, rows[i].text ? rows[i].text : "");
        if (strcmp(rows[i].file, "recipe.yaml") == 0) {
            const char *at = strstr(good, "start:");

            wb_buf_clear(&text);
            wb_buf_add(&text, good, (size_t)(at - good));
            wb_buf_adds(&text, rows[i].text
                                   ? "# a comment\n"
                                   : "  - {version: 3.9, source: distribution, packages: [toy]}\n");
            wb_buf_adds(&text, at);
        }
        put(&f, rows[i].file, wb_buf_str(&text), rows[i].mode);
        after = read_good(f.dir);
        assert_int_equal(strcmp(before->digest, after->digest) != 0, rows[i].digest);
        assert_int_equal(strcmp(before->series_digest, after->series_digest) != 0, rows[i].series);
        wb_recipe_free(before);
        wb_recipe_free(after);
        wb_buf_release(&text);
        drop(&f);
    }
}

static void test_values(void **state)
{
    static const struct {
        const char *param, *text, *canonical, *shown; /* canonical NULL: error in `shown` */
    } rows[] = {
        {"cache", "64MiB", "67108864", "64MiB"},
        {"cache", "65536KiB", "67108864", "64MiB"},
        {"cache", "0", "0", "0"},
        {"cache", "1500", "1500", "1500"},
        {"cache", "1GiB", "1073741824", "1GiB"},
        {"cache", "2GiB", NULL, "'2GiB' is out of range, allowed is 0 to 1073741824 bytes"},
        {"policy", "lfu", "lfu", "lfu"},
        {"policy", "LFU", NULL,
         "policy cannot be 'LFU' (did you mean 'lfu'?); allowed: lru or lfu"},
        {"sync", "true", "yes", "yes"},
        {"sync", "on", "yes", "yes"},
        {"sync", "off", "no", "no"},
        {"sync", "1", NULL, "sync cannot be '1'; allowed: yes or no"},
        {"hz", "500", "500", "500"},
        {"hz", "0500", "500", "500"},
        {"hz", "501", NULL, "'501' is out of range, allowed is 1 to 500"},
        {"rules", "", "", "empty"},
        {"rules", "3600 1", "3600 1", "3600 1"},
        {"rules", "a\nb", NULL, "rules has a line break or control character in it"},
    };
    struct wb_recipe *r = read_good("tests/data/recipes/toy");
    char *longest = wb_calloc(1026, 1);

    for (size_t i = 0; i < WB_LEN(rows); i++) {
        const struct wb_param *p = wb_recipe_find_param(r, rows[i].param);
        struct wb_err err = WB_ERR_INIT;
        WB_AUTO_FREE char *canonical = NULL;
        WB_AUTO_FREE char *shown = NULL;
        int rc = wb_param_check(p, rows[i].text, &canonical, &err);

        if (!rows[i].canonical) {
            assert_int_equal(rc, -WB_INVALID);
            assert_string_equal(err.root, rows[i].shown);
            assert_null(canonical);
            continue;
        }
        assert_int_equal(rc, 0);
        assert_string_equal(canonical, rows[i].canonical);
        shown = wb_param_show(p, canonical);
        assert_string_equal(shown, rows[i].shown);
    }
    memset(longest, 'a', 1025);
    for (size_t i = 0; i < r->nparams; i++) {
        WB_AUTO_FREE char *canonical = NULL;

        assert_int_equal(wb_param_check(&r->params[i], longest, &canonical, NULL), -WB_INVALID);
    }
    free(longest);
    wb_recipe_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_toy),          cmocka_unit_test(test_redis),
        cmocka_unit_test(test_cassandra),    cmocka_unit_test(test_lock),
        cmocka_unit_test(test_lock_series),  cmocka_unit_test(test_operations),
        cmocka_unit_test(test_shared),       cmocka_unit_test(test_broken),
        cmocka_unit_test(test_folder),       cmocka_unit_test(test_digests),
        cmocka_unit_test(test_values),       cmocka_unit_test(test_allowed_differences),
        cmocka_unit_test(test_broken_files), cmocka_unit_test(test_version_as_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
