#include "provisioners/forms/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "provisioners/forms/tar.h"
#include "server/base/child.h"
#include "server/base/clock.h"
#include "server/base/digest.h"
#include "server/base/file.h"
#include "server/base/mem.h"
#include "server/base/units.h"

#define TOOL "mmdebstrap"
/* Essential packages only: a shell and the C library, all configured. A recipe brings everything
 * else in its prefix, so that it is the same natively. */
#define VARIANT "essential"
#define REVISION "1" /* of what is asked of the tool below; a change makes a new base */
#define BUILD_NS (15 * 60 * WB_SEC)
#define STATUS_FILE "var/lib/dpkg/status"
#define STATUS_MAX (32 << 20)
#define SOURCES_MAX (1 << 20)
#define MANIFEST_MAX (4 << 20)

/* apt's own list of mirrors, in the order that Debian installs it. */
static const char *const sources_files[] = {"/etc/apt/sources.list.d/debian.sources",
                                            "/etc/apt/sources.list"};

static void say(const struct wb_rootfs_request *q, const char *text)
{
    if (q->note)
        q->note(q->note_arg, text);
}

static bool in_path(const char *tool)
{
    const char *path = getenv("PATH");

    for (const char *p = path ? path : "/usr/sbin:/usr/bin:/sbin:/bin"; *p;) {
        size_t n = strcspn(p, ":");
        WB_AUTO_FREE char *file = wb_strf("%.*s/%s", (int)n, p, tool);
        if (n && access(file, X_OK) == 0)
            return true;
        p += n + (p[n] == ':');
    }
    return false;
}

static bool is_manifest(const char *name)
{
    size_t n = strlen(name);
    return strncmp(name, "rootfs-", 7) == 0 && n > 5 && strcmp(name + n - 5, ".json") == 0;
}

static int need_tool(const char *cache_dir, struct wb_err *err)
{
    if (in_path(TOOL))
        return 0;
    return wb_fail(err, WB_UNSUPPORTED,
                   TOOL " is not installed and no base image is kept in %s: install it "
                        "(apt-get install " TOOL ")",
                   cache_dir);
}

int wb_rootfs_check(const char *cache_dir, struct wb_err *err)
{
    struct wb_strv names = {0};
    bool kept = false;

    if (wb_list_dir(cache_dir, &names, NULL) == 0)
        for (size_t i = 0; i < names.n; i++)
            kept = kept || is_manifest(names.v[i]);
    wb_strv_release(&names);
    return kept ? 0 : need_tool(cache_dir, err);
}

/* The sources file that offers the suite, and its text (owned by the caller). */
static int find_sources(const char *suite, const char **file, char **text, struct wb_err *err)
{
    const char *seen = NULL;

    for (size_t i = 0; i < WB_LEN(sources_files); i++) {
        WB_AUTO_FREE char *t = NULL;
        size_t n = 0;
        if (wb_file_read(sources_files[i], SOURCES_MAX, &t, &n, NULL) < 0)
            continue;
        seen = sources_files[i];
        if (strstr(t, suite)) {
            *file = sources_files[i];
            *text = WB_STEAL(t);
            return 0;
        }
    }
    if (seen)
        return wb_fail(err, WB_UNSUPPORTED,
                       "%s has no mirror for '%s', which the base image is made of: add one, or "
                       "run on a host of that distribution",
                       seen, suite);
    return wb_fail(err, WB_UNSUPPORTED,
                   "neither %s nor %s is there: a base image is made from the packages of the "
                   "mirrors named in them",
                   sources_files[0], sources_files[1]);
}

/* Temporary names end with the maker's pid; those of dead makers are rubbish. */
static void remove_stale(const char *cache_dir)
{
    struct wb_strv names = {0};

    if (wb_list_dir(cache_dir, &names, NULL) < 0)
        return;
    for (size_t i = 0; i < names.n; i++) {
        const char *dot = strstr(names.v[i], ".tmp.");
        int64_t pid = 0;
        if (strncmp(names.v[i], "rootfs-", 7) != 0 || !dot ||
            wb_parse_int(dot + 5, 1, 1 << 30, &pid, NULL) < 0)
            continue;
        if (kill((pid_t)pid, 0) == 0 || errno != ESRCH)
            continue;
        WB_AUTO_FREE char *path = wb_strf("%s/%s", cache_dir, names.v[i]);
        WB_IGNORE(wb_remove_tree(path, NULL)); /* the next one tries again */
    }
    wb_strv_release(&names);
}

struct status_place {
    int64_t offset, size;
};

static int on_member(void *arg, const struct wb_tar_member *m, struct wb_err *err)
{
    struct status_place *p = arg;

    if (strcmp(m->path, STATUS_FILE) != 0)
        return 0;
    *p = (struct status_place){m->offset, m->size};
    return 1;
}

/* dpkg's status file: paragraphs of "Field: value" lines. */
static void add_packages(char *text, wb_json *packages)
{
    const char *package = NULL;
    char *save = text;

    for (char *line = strsep(&save, "\n"); line; line = strsep(&save, "\n")) {
        if (strncmp(line, "Package: ", 9) == 0) {
            package = line + 9;
        } else if (strncmp(line, "Version: ", 9) == 0 && package) {
            wb_json_set_str(packages, package, line + 9);
            package = NULL;
        }
    }
}

static int read_packages(const char *tar, wb_json *packages, struct wb_err *err)
{
    struct status_place p = {-1, 0};
    int rc = wb_tar_walk(tar, on_member, &p, NULL, err);

    if (rc < 0)
        return rc;
    if (p.offset < 0 || p.size > STATUS_MAX)
        return wb_fail(err, WB_CORRUPT, "%s has no package list at %s", tar, STATUS_FILE);
    WB_AUTO_CLOSE int fd = open(tar, O_RDONLY | O_CLOEXEC);
    WB_AUTO_FREE char *text = wb_calloc((size_t)p.size + 1, 1);
    if (fd < 0 || pread(fd, text, (size_t)p.size, (off_t)p.offset) != (ssize_t)p.size)
        return wb_fail_sys(err, errno, "cannot read %s", tar);
    add_packages(text, packages);
    if (wb_json_len(packages) == 0)
        return wb_fail(err, WB_CORRUPT, "%s lists no package in %s", tar, STATUS_FILE);
    return 0;
}

/* The environment of the tool: proxies are the user's way to a mirror. */
static void fill_env(struct wb_strv *env, const char *tmp)
{
    static const char *const pass[] = {"http_proxy", "https_proxy", "no_proxy",
                                       "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"};

    wb_strv_add(env, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    wb_strv_add(env, "LC_ALL=C.UTF-8");
    wb_strv_add(env, "SOURCE_DATE_EPOCH=1"); /* the same packages give the same archive */
    wb_strv_addf(env, "TMPDIR=%s", tmp);
    for (size_t i = 0; i < WB_LEN(pass); i++)
        if (getenv(pass[i]))
            wb_strv_addf(env, "%s=%s", pass[i], getenv(pass[i]));
}

/* The tool's first line that says what went wrong; the last lines only say that something did. */
static const char *tool_error(const char *stderr_text)
{
    const char *e =
        strncmp(stderr_text, "E: ", 3) == 0 ? stderr_text : strstr(stderr_text, "\nE: ");
    return e ? e + (*e == '\n') : stderr_text;
}

static int run_tool(const struct wb_rootfs_request *q, const char *sources, const char *tar,
                    const char *tmp, struct wb_err *err)
{
    struct wb_strv argv = {0}, env = {0};
    struct wb_child_result res = {0};

    wb_strv_add(&argv, TOOL);
    wb_strv_add(&argv, geteuid() == 0 ? "--mode=root" : "--mode=auto");
    wb_strv_add(&argv, "--variant=" VARIANT);
    wb_strv_add(&argv, "--format=tar");
    wb_strv_add(&argv, "--dpkgopt=path-exclude=/usr/share/man/*");
    wb_strv_add(&argv, "--dpkgopt=path-exclude=/usr/share/doc/*");
    wb_strv_add(&argv, "--dpkgopt=path-exclude=/usr/share/locale/*");
    wb_strv_add(&argv, q->suite);
    wb_strv_add(&argv, tar);
    wb_strv_add(&argv, sources);
    fill_env(&env, tmp);
    struct wb_child_spec spec = {
        .argv = argv.v, .env = env.v, .limit_ns = BUILD_NS, .cancel = q->cancel};
    int rc = wb_child_run(&spec, &res, err);
    if (rc == 0 && (res.exit_code != 0)) {
        const char *text = tool_error(wb_buf_str(&res.err));
        rc = wb_fail(err, WB_IO, TOOL " failed (exit %d): %.*s (it needs the mirrors of %s once)",
                     res.exit_code, (int)strcspn(text, "\n"), text, sources);
    }
    wb_child_release(&res);
    wb_strv_release(&argv);
    wb_strv_release(&env);
    return rc;
}

/* Describes a finished archive. */
static int describe(const struct wb_rootfs_request *q, const char *tar, wb_json *facts,
                    struct wb_err *err)
{
    wb_json *packages = wb_json_object();
    char hex[WB_SHA256_HEX];
    struct stat st;

    wb_json_set_str(facts, "suite", q->suite);
    wb_json_set_str(facts, "variant", VARIANT);
    int rc = wb_sha256_file(tar, hex, err);
    if (rc == 0)
        rc = read_packages(tar, packages, err);
    if (rc == 0 && stat(tar, &st) < 0)
        rc = wb_fail_sys(err, errno, "cannot look at %s", tar);
    if (rc < 0) {
        wb_json_free(packages);
        return rc;
    }
    wb_json_set_str(facts, "sha256", hex);
    wb_json_set_int(facts, "bytes", st.st_size);
    wb_json_set_str(facts, "libc", wb_json_str_or(packages, "libc6", NULL));
    wb_json_set(facts, "packages", packages);
    return 0;
}

/* Makes archive and manifest. The manifest is written last: where it is, the archive is whole. */
static int build(const struct wb_rootfs_request *q, const char *sources, const char *tar,
                 const char *manifest, struct wb_err *err)
{
    WB_AUTO_FREE char *tmp = wb_strf("%s.tmp.%d", tar, (int)getpid());
    WB_AUTO_FREE char *part = wb_strf("%s/root.tar", tmp);
    WB_AUTO_JSON wb_json *facts = wb_json_object();
    struct wb_buf text = WB_BUF_INIT(MANIFEST_MAX);

    int rc = wb_mkdir_all(tmp, 0755, err);
    if (rc == 0)
        rc = run_tool(q, sources, part, tmp, err);
    if (rc == 0)
        rc = describe(q, part, facts, err);
    if (rc == 0 && rename(part, tar) < 0)
        rc = wb_fail_sys(err, errno, "cannot rename %s to %s", part, tar);
    if (rc == 0) {
        wb_json_pretty(facts, &text);
        rc = wb_buf_check(&text, "manifest of the base image", err);
    }
    if (rc == 0)
        rc = wb_file_write(manifest, text.data, text.len, 0644, err);
    wb_buf_release(&text);
    WB_IGNORE(wb_remove_tree(tmp, NULL)); /* a remainder is stale for the next maker */
    return rc;
}

/* Loads a manifest whose archive is there with the size it says. */
static bool load(const char *tar, const char *manifest, wb_json **facts)
{
    WB_AUTO_JSON wb_json *j = NULL;
    struct stat st;

    if (wb_json_read_file(manifest, MANIFEST_MAX, &j, NULL) < 0 || stat(tar, &st) < 0 ||
        wb_json_int_or(j, "bytes", -1) != st.st_size || !wb_json_str_or(j, "sha256", NULL))
        return false;
    *facts = WB_STEAL(j);
    return true;
}

int wb_rootfs_make(const struct wb_rootfs_request *q, struct wb_rootfs *out, struct wb_err *err)
{
    WB_AUTO_FREE char *key = wb_strf("%s/rootfs-%s-" VARIANT "-" REVISION, q->cache_dir, q->suite);
    WB_AUTO_FREE char *tar = wb_strf("%s.tar", key);
    WB_AUTO_FREE char *manifest = wb_strf("%s.json", key);
    WB_AUTO_FREE char *text = NULL;
    const char *sources = NULL;

    if (!wb_safe_name(q->suite))
        return wb_fail(err, WB_INVALID, "'%.80s' is no name of a distribution's suite", q->suite);
    if (!load(tar, manifest, &out->facts)) {
        int rc = wb_mkdir_all(q->cache_dir, 0755, err);
        if (rc == 0)
            rc = need_tool(q->cache_dir, err);
        if (rc == 0)
            rc = find_sources(q->suite, &sources, &text, err);
        if (rc < 0)
            return rc;
        remove_stale(q->cache_dir);
        say(q,
            "making the base image from the distribution's packages (about half a minute, once)");
        rc = build(q, sources, tar, manifest, err);
        if (rc < 0)
            return wb_wrap(err, "base image of %s", q->suite);
        if (!load(tar, manifest, &out->facts))
            return wb_fail(err, WB_CORRUPT, "%s does not describe %s", manifest, tar);
    }
    out->tar = WB_STEAL(tar);
    return 0;
}

void wb_rootfs_release(struct wb_rootfs *r)
{
    free(r->tar);
    wb_json_free(r->facts);
    *r = (struct wb_rootfs){0};
}
