#include "server/engine/steps.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/child.h"

#define STDOUT_MAX (4u << 20)

/* A name is set in env already. */
static bool has_name(char *const *env, const char *name)
{
    size_t n = strlen(name);

    for (; env && *env; env++)
        if (!strncmp(*env, name, n) && (*env)[n] == '=')
            return true;
    return false;
}

static void add_default(struct wb_strv *all, char *const *env, const char *name, const char *value)
{
    if (value && !has_name(env, name))
        wb_strv_addf(all, "%s=%s", name, value);
}

static void build_env(enum wb_step step, char *const *env, struct wb_strv *all)
{
    /* How this machine gets to the network, and where it is to look instead. */
    static const char *const of_fetch[] = {
        "http_proxy",    "https_proxy",         "ftp_proxy",          "no_proxy",
        "HTTP_PROXY",    "HTTPS_PROXY",         "all_proxy",          "NO_PROXY",
        "SSL_CERT_FILE", "WB_ARTIFACTS_MIRROR", "WB_ARTIFACTS_FOLDER"};

    for (char *const *e = env; e && *e; e++)
        wb_strv_add(all, *e);
    add_default(all, env, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    add_default(all, env, "LANG", "C.UTF-8");
    /* Clients of package repositories have their settings and their own cache there. */
    if (step == WB_STEP_FETCH)
        add_default(all, env, "HOME", getenv("HOME"));
    add_default(all, env, "HOME", "/");
    for (size_t i = 0; step == WB_STEP_FETCH && i < WB_LEN(of_fetch); i++)
        add_default(all, env, of_fetch[i], getenv(of_fetch[i]));
}

/* The last line of stderr that is not blank; "" when there is none. Cuts the text. */
static const char *last_line(struct wb_buf *b)
{
    char *nl;

    while (b->len && (unsigned char)b->data[b->len - 1] <= ' ')
        b->data[--b->len] = '\0';
    if (!b->len)
        return "";
    nl = strrchr(b->data, '\n');
    return nl ? nl + 1 : b->data;
}

static int check_exit(const struct wb_recipe *r, enum wb_step step, struct wb_child_result *res,
                      struct wb_err *err)
{
    const char *said = last_line(&res->err), *sep = *said ? ": " : "";
    const char *name = wb_step_name(step);

    if (res->signal)
        return wb_fail(err, WB_IO, "recipe %s: step %s was ended by signal %d%s%s", r->name, name,
                       res->signal, sep, said);
    if (res->exit_code == 0 ||
        (res->exit_code == WB_STEP_NOT_YET && (step == WB_STEP_READY || step == WB_STEP_SETTLE)))
        return 0;
    if (res->exit_code == WB_STEP_NOT_HAD && step == WB_STEP_FETCH)
        return wb_fail(err, WB_NOT_FOUND, "recipe %s: step %s (exit %d)%s%s", r->name, name,
                       res->exit_code, sep, said);
    return wb_fail(err, WB_IO, "recipe %s: step %s failed (exit %d)%s%s", r->name, name,
                   res->exit_code, sep, said);
}

static int check_json(const struct wb_recipe *r, enum wb_step step,
                      const struct wb_child_result *res, wb_json **out, struct wb_err *err)
{
    const char *name = wb_step_name(step), *text = wb_buf_str(&res->out);
    wb_json *j = NULL;
    int rc;

    if (text[strspn(text, " \t\r\n")] == '\0' && res->out.len == strlen(text)) {
        if (res->exit_code == WB_STEP_NOT_YET)
            return 0;
        return wb_fail(err, WB_PROTOCOL,
                       "recipe %s: step %s wrote nothing to stdout; it must write one JSON object",
                       r->name, name);
    }
    rc = wb_json_parse(text, res->out.len, &j, err);
    if (rc < 0) {
        if (err)
            err->code = WB_PROTOCOL;
        (void)wb_wrap(err, "recipe %s: step %s must write one JSON object to stdout", r->name,
                      name);
        return -WB_PROTOCOL;
    }
    if (wb_json_type(j) != WB_JSON_OBJECT) {
        wb_json_free(j);
        return wb_fail(err, WB_PROTOCOL,
                       "recipe %s: step %s wrote JSON to stdout that is not an object", r->name,
                       name);
    }
    *out = j;
    return 0;
}

int wb_step_run(const struct wb_recipe *r, enum wb_step step, char *const *env,
                const struct wb_cancel *cancel, int *exit_code, wb_json **out, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("%s/steps/%s", r->dir, wb_step_name(step));
    struct wb_strv all = {0};
    char *argv[] = {path, NULL};
    struct wb_child_spec spec = {.argv = argv,
                                 .cwd = r->dir,
                                 .limit_ns = r->step_limit_ns[step],
                                 .out_max = STDOUT_MAX,
                                 .cancel = cancel};
    struct wb_child_result res = {0};
    int rc;

    if (exit_code)
        *exit_code = -1;
    if (access(path, F_OK) < 0)
        return wb_fail(err, WB_NOT_FOUND, "recipe %s has no step %s (%s)", r->name,
                       wb_step_name(step), path);
    if (access(path, X_OK) < 0)
        return wb_fail(err, WB_INVALID, "recipe %s: step %s is not executable (%s)", r->name,
                       wb_step_name(step), path);
    if (spec.limit_ns <= 0)
        spec.limit_ns = wb_step_default_limit_ns(step);
    build_env(step, env, &all);
    spec.env = all.v;
    rc = wb_child_run(&spec, &res, err);
    if (rc < 0) {
        const char *said = last_line(&res.err);

        (void)wb_wrap(err, "recipe %s: step %s%s%.200s%s", r->name, wb_step_name(step),
                      *said ? " (last said: " : "", said, *said ? ")" : "");
    } else {
        if (exit_code)
            *exit_code = res.exit_code;
        rc = check_exit(r, step, &res, err);
        if (rc == 0)
            rc = check_json(r, step, &res, out, err);
    }
    wb_child_release(&res);
    wb_strv_release(&all);
    return rc;
}
