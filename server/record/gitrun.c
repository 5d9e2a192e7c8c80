#include "server/record/gitrun.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"

#define LINE_SHOWN 400 /* bytes */

/* What git may need of ours to reach a remote. */
static const char *const passed[] = {
    "HOME",        "SSH_AUTH_SOCK", "GIT_SSH_COMMAND", "XDG_CONFIG_HOME",
    "https_proxy", "http_proxy",    "no_proxy"};

static void make_env(const struct wb_git_run *run, struct wb_strv *env)
{
    const char *path = getenv("PATH");

    wb_strv_addf(env, "PATH=%s", path ? path : "/usr/local/bin:/usr/bin:/bin");
    wb_strv_add(env, "LANG=C");
    wb_strv_add(env, "GIT_TERMINAL_PROMPT=0");
    wb_strv_add(env, "GIT_ALLOW_PROTOCOL=file:git:http:https:ssh");
    if (!run->network) {
        wb_strv_add(env, "GIT_CONFIG_NOSYSTEM=1");
        wb_strv_add(env, "GIT_CONFIG_GLOBAL=/dev/null");
        return;
    }
    for (size_t i = 0; i < WB_LEN(passed); i++) {
        const char *value = getenv(passed[i]);

        if (value)
            wb_strv_addf(env, "%s=%s", passed[i], value);
    }
    if (!getenv("GIT_SSH_COMMAND"))
        wb_strv_add(env, "GIT_SSH_COMMAND=ssh -o BatchMode=yes");
}

int wb_git_run(struct wb_store *s, struct wb_git_run *run, struct wb_child_result *res,
               struct wb_err *err)
{
    struct wb_strv argv = {0}, env = {0};
    int rc;

    if (run->gentle) {
        wb_strv_add(&argv, "nice");
        wb_strv_add(&argv, "-n19");
    }
    wb_strv_add(&argv, "git");
    wb_strv_add(&argv, "-c");
    wb_strv_add(&argv, "safe.directory=*"); /* no hook and no program of the store is run */
    wb_strv_add(&argv, "-c");
    wb_strv_add(&argv, "core.hooksPath=/dev/null");
    wb_strv_add(&argv, "-c");
    wb_strv_add(&argv, "gc.auto=0");
    wb_strv_add(&argv, "-c");
    wb_strv_add(&argv, "transfer.fsckObjects=true");
    wb_strv_add(&argv, "-c");
    wb_strv_add(&argv, "transfer.unpackLimit=1"); /* a pack is synced, loose objects are not */
    wb_strv_addf(&argv, "--git-dir=%s", s->path);
    for (size_t i = 0; i < run->args.n; i++)
        wb_strv_add(&argv, run->args.v[i]);
    wb_strv_release(&run->args);
    make_env(run, &env);
    rc = wb_child_run(
        &(struct wb_child_spec){
            .argv = argv.v, .env = env.v, .limit_ns = run->limit_ns, .cancel = run->cancel},
        res, err);
    if (rc == -WB_NOT_FOUND || (rc == 0 && res->exit_code == 127))
        rc = wb_fail(err, WB_UNSUPPORTED,
                     "there is no git on this host; packing, pushing and importing need it");
    wb_strv_release(&argv);
    wb_strv_release(&env);
    return rc;
}

char *wb_last_line(const char *text)
{
    const char *fatal = strstr(text, "fatal: ");
    size_t n = fatal ? (size_t)(fatal - text) + strcspn(fatal, "\n") : strlen(text), from;
    char *line;

    while (n && (text[n - 1] == '\n' || text[n - 1] == ' '))
        n--;
    from = n;
    while (from && text[from - 1] != '\n')
        from--;
    line = wb_strndup(text + from, n - from > LINE_SHOWN ? LINE_SHOWN : n - from);
    for (char *p = line; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = ' ';
    return line;
}

int wb_git_run_check(struct wb_store *s, struct wb_git_run *run, struct wb_err *err)
{
    struct wb_child_result res = {0};
    WB_AUTO_FREE char *what = wb_strdup(run->args.n ? run->args.v[0] : "");
    int rc = wb_git_run(s, run, &res, err);

    if (rc == 0 && res.exit_code != 0) {
        WB_AUTO_FREE char *said = wb_last_line(wb_buf_str(&res.err));

        rc = wb_fail(err, WB_IO, "git %s on %s: exit %d: %s", what, s->path, res.exit_code, said);
        if (err && strstr(said, strerrordesc_np(ENOSPC)))
            err->sys = ENOSPC;
    }
    wb_child_release(&res);
    return rc;
}
