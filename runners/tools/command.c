#include "runners/tools/command.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/child.h"
#include "server/base/clock.h"
#include "server/base/file.h"

#define LOG_HEAD (1 << 20)
#define FILE_MAX (64u << 20)
#define VERSION_LIMIT_NS (20 * WB_SEC)
/* Beyond the length of its phase, when the study gives no limit. */
#define LIMIT_SLACK_NS (30 * WB_SEC)
#define LIMIT_BY_COUNT_NS (600 * WB_SEC)
#define ARGS_MAX 256
/* The measured window may differ from the asked one by this share. */
#define WINDOW_TOLERANCE 0.10
/* Clocks of program and engine; ends of the job are known to 1 ms, told within one poll. */
#define CLOCK_TOLERANCE_S 0.05

static const char path_dirs[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

void wb_tool_command_free(struct wb_tool_command *c)
{
    if (!c)
        return;
    free(c->name);
    wb_strv_release(&c->argv);
    wb_strv_release(&c->env);
    wb_strv_release(&c->version_argv);
    free(c->version_regex);
    free(c->version);
    wb_tool_output_release(&c->output);
    free(c);
}

/* ---- checking ---- */

static int check_words(const struct wb_strv *words, const char *key, struct wb_err *err)
{
    if (words->n > ARGS_MAX)
        return wb_fail(err, WB_INVALID, "%s has %zu words; at most %d are allowed", key, words->n,
                       ARGS_MAX);
    for (size_t i = 0; i < words->n; i++)
        if (wb_tool_word_check(words->v[i], err) < 0)
            return wb_wrap(err, "%s", key);
    return 0;
}

bool wb_tool_command_gives(const struct wb_tool_command *c, const char *figure)
{
    for (size_t i = 0; i < c->output.nrules; i++)
        for (size_t k = 0; k < c->output.rules[i].names.n; k++)
            if (!strncmp(c->output.rules[i].names.v[k], figure, strlen(figure)))
                return true;
    return false;
}

static int check_env(const struct wb_tool_command *c, struct wb_err *err)
{
    for (size_t i = 0; i < c->env.n; i++) {
        const char *eq = strchr(c->env.v[i], '=');

        if (!eq || eq == c->env.v[i])
            return wb_fail(err, WB_INVALID, "env: '%.60s' is not NAME=value", c->env.v[i]);
    }
    return check_words(&c->env, "env", err);
}

static int check_version(const struct wb_tool_command *c, struct wb_err *err)
{
    int rc;

    if (c->version_argv.n == 0)
        return c->version_regex || c->version
                   ? wb_fail(err, WB_INVALID, "version: its command is missing")
                   : 0;
    rc = check_words(&c->version_argv, "version: command", err);
    if (rc < 0)
        return rc;
    if (!c->version_regex)
        return wb_fail(err, WB_INVALID,
                       "version: regex is missing; its first group is the version, such as "
                       "'version ([0-9.]+)'");
    return wb_tool_regex_check(c->version_regex, 1, err) < 0 ? wb_wrap(err, "version: regex") : 0;
}

/* That a result can be made of what the rules give. */
static int check_figures(const struct wb_tool_command *c, struct wb_err *err)
{
    if (!wb_tool_command_gives(c, "achieved_per_s") && !wb_tool_command_gives(c, "ok"))
        return wb_fail(err, WB_INVALID,
                       "parse: no rule gives achieved_per_s or ok, so there is no throughput");
    if (!c->errors_fatal && !wb_tool_command_gives(c, "failed"))
        return wb_fail(err, WB_INVALID,
                       "parse: no rule gives failed; if the program ends with a status at the "
                       "first failed operation, say errors: fatal");
    return 0;
}

int wb_tool_command_check(const struct wb_tool_command *c, struct wb_err *err)
{
    const char *from = c->output.from;
    int rc;

    if (c->argv.n == 0 || !*c->argv.v[0])
        return wb_fail(err, WB_INVALID,
                       "command is empty; it is a list such as [memtier, -p, "
                       "\"{port}\"]");
    rc = check_words(&c->argv, "command", err);
    if (rc == 0 && !wb_tool_command_uses(c, "port") && !wb_tool_command_uses(c, "targets"))
        rc = wb_fail(err, WB_INVALID,
                     "command: the program is not told the port of the database: {port} is in no "
                     "word");
    if (rc == 0)
        rc = check_env(c, err);
    if (rc == 0)
        rc = check_version(c, err);
    if (rc < 0)
        return rc;
    if (!from ||
        (strcmp(from, "stdout") != 0 && strcmp(from, "stderr") != 0 && strcmp(from, "file") != 0))
        return wb_fail(err, WB_INVALID, "parse: from is stdout, stderr or file");
    if (!strcmp(from, "file") != wb_tool_command_uses(c, "file"))
        return wb_fail(err, WB_INVALID,
                       "parse: from: file and the placeholder {file} in the command belong "
                       "together");
    rc = wb_tool_output_check(&c->output, err);
    return rc < 0 ? wb_wrap(err, "parse") : check_figures(c, err);
}

/* ---- starting ---- */

static void fill_all(const struct wb_tool_task *t, const struct wb_strv *words, struct wb_strv *out)
{
    for (size_t i = 0; i < words->n; i++) {
        WB_AUTO_FREE char *word = wb_tool_fill(t, words->v[i]);

        wb_strv_add(out, word);
    }
}

/* The program's own file, looked up in the standard folders. */
static int find_program(struct wb_strv *argv, struct wb_err *err)
{
    WB_AUTO_FREE char *path = NULL;

    if (strchr(argv->v[0], '/')) {
        if (access(argv->v[0], X_OK) == 0)
            return 0;
        return wb_fail(err, WB_NOT_FOUND, "there is no program %s that can be run", argv->v[0]);
    }
    for (const char *dir = path_dirs; *dir;) {
        size_t n = strcspn(dir, ":");

        free(path);
        path = wb_strf("%.*s/%s", (int)n, dir, argv->v[0]);
        if (access(path, X_OK) == 0) {
            free(argv->v[0]);
            argv->v[0] = WB_STEAL(path);
            return 0;
        }
        dir += n + (dir[n] == ':');
    }
    return wb_fail(err, WB_NOT_FOUND, "there is no program '%s' in %s", argv->v[0], path_dirs);
}

/* Programs print numbers by their locale and pictures for terminals. */
static void environment(const struct wb_tool_task *t, struct wb_strv *env)
{
    wb_strv_addf(env, "PATH=%s", path_dirs);
    wb_strv_add(env, "LC_ALL=C");
    wb_strv_add(env, "LANG=C");
    wb_strv_add(env, "TZ=UTC");
    wb_strv_add(env, "TERM=dumb");
    fill_all(t, &t->command->env, env);
}

static int version(const struct wb_tool_task *t, const struct wb_cancel *cancel, char **out,
                   struct wb_err *err)
{
    const struct wb_tool_command *c = t->command;
    struct wb_strv argv = {0}, env = {0};
    struct wb_child_result res = {0};
    WB_AUTO_FREE char *found = NULL;
    int rc;

    *out = NULL;
    if (c->version_argv.n == 0)
        return 0;
    fill_all(t, &c->version_argv, &argv);
    environment(t, &env);
    rc = find_program(&argv, err);
    if (rc == 0) {
        struct wb_child_spec spec = {
            .argv = argv.v, .env = env.v, .limit_ns = VERSION_LIMIT_NS, .cancel = cancel};

        rc = wb_child_run(&spec, &res, err);
    }
    if (rc == 0) {
        found = wb_tool_regex_first(c->version_regex, wb_buf_str(&res.out), res.out.len);
        if (!found)
            found = wb_tool_regex_first(c->version_regex, wb_buf_str(&res.err), res.err.len);
    }
    if (rc == 0 && (!found || !*found))
        rc = wb_fail(err, WB_CONFLICT,
                     "%s does not say its version (status %d): nothing matches "
                     "'%.60s'",
                     c->name, res.exit_code, c->version_regex);
    else if (rc == 0 && c->version && strcmp(found, c->version) != 0)
        rc =
            wb_fail(err, WB_CONFLICT, "%s has version %.60s, asked %s", c->name, found, c->version);
    wb_child_release(&res);
    wb_strv_release(&argv);
    wb_strv_release(&env);
    if (rc < 0)
        return wb_wrap(err, "version of %s", c->name);
    *out = WB_STEAL(found);
    return 0;
}

static int begin(const struct wb_tool_task *t, struct wb_tool_start *out, struct wb_err *err)
{
    const struct wb_tool_command *c = t->command;
    int rc;

    if (t->npeers > 1 && !wb_tool_command_uses(c, "targets"))
        return wb_fail(err, WB_UNSUPPORTED,
                       "%s talks to one instance of the database, there are %zu; a program that "
                       "takes several has {targets} in its command",
                       c->name, t->npeers);
    fill_all(t, &c->argv, &out->argv);
    environment(t, &out->env);
    rc = find_program(&out->argv, err);
    if (rc < 0)
        return wb_wrap(err, "tool %s", c->name);
    out->limit_ns = c->limit_ns ? c->limit_ns
                    : t->operations > 0
                        ? LIMIT_BY_COUNT_NS
                        : t->warm_up_ns + t->for_ns + c->startup_ns + LIMIT_SLACK_NS;
    out->silence_ns = c->silence_ns;
    out->log_max = LOG_HEAD;
    return 0;
}

/* ---- the result ---- */

static int read_output(const struct wb_tool_task *t, char **text, size_t *n, struct wb_err *err)
{
    const char *from = t->command->output.from;
    WB_AUTO_FREE char *path =
        !strcmp(from, "file") ? wb_strf("%s.out", t->base) : wb_strf("%s/%s.log", t->job_dir, from);
    struct stat st;

    if (lstat(path, &st) < 0)
        return wb_fail(err, WB_PROTOCOL, "no result: it did not write its file");
    /* The program made it: whatever it is, it is not waited on or followed. */
    if (!S_ISREG(st.st_mode))
        return wb_fail(err, WB_PROTOCOL, "no result: its file is not a plain file");
    return wb_file_read(path, FILE_MAX, text, n, err);
}

/* What it says of its length against what was asked and against our own clock. */
static int check_clock(const struct wb_tool_task *t, const wb_json *result, struct wb_err *err)
{
    const wb_json *w = wb_json_get(result, "window");
    double seconds = wb_json_real_or(w, "seconds", NAN);
    double wall = wb_json_real_or(w, "wall_seconds", NAN);
    double startup = (double)t->command->startup_ns / 1e9, asked = (double)t->for_ns / 1e9;
    bool by_wall = !strcmp(wb_json_str_or(w, "seconds_from", ""), "the wall clock");
    double most = asked * (1 + WINDOW_TOLERANCE) + (by_wall ? startup : 0);
    double ran = wall - (double)t->warm_up_ns / 1e9;

    if (t->operations == 0 && (seconds < asked * (1 - WINDOW_TOLERANCE) || seconds > most))
        return wb_fail(err, WB_PROTOCOL, "measured for %.2f s instead of %.2f s", seconds, asked);
    if (seconds > wall * (1 + WINDOW_TOLERANCE) + CLOCK_TOLERANCE_S)
        return wb_fail(err, WB_CONFLICT,
                       "it says that it measured for %.2f s, but it ran for only %.2f s", seconds,
                       wall);
    if (ran > seconds * (1 + WINDOW_TOLERANCE) + startup)
        return wb_fail(err, WB_CONFLICT,
                       "it says that it measured for %.2f s, but it ran for %.2f s (beside its "
                       "window at most startup: %.2f s)",
                       seconds, wall, startup);
    return 0;
}

static int check_count(const struct wb_tool_task *t, const wb_json *result, struct wb_err *err)
{
    int64_t did = wb_json_int_or(result, "scheduled", 0);

    if (t->operations > 0 && did != t->operations)
        return wb_fail(err, WB_CONFLICT, "it did %lld operations, asked were %lld", (long long)did,
                       (long long)t->operations);
    return 0;
}

static int result(const struct wb_tool_task *t, const struct wb_job_status *s, const char *version_,
                  wb_json **out, struct wb_err *err)
{
    const struct wb_tool_command *c = t->command;
    struct wb_figures_run run = {.tool = c->name,
                                 .version = version_,
                                 .open = t->rate_per_s > 0,
                                 .rate_per_s = t->rate_per_s,
                                 .operations = t->operations,
                                 .errors_fatal = c->errors_fatal,
                                 .started_ms = s->started_ms,
                                 .wall_s = (double)(s->ended_ms - s->started_ms) / 1e3,
                                 .cpu_ns = s->cpu_ns};
    WB_AUTO_FREE char *text = NULL;
    WB_AUTO_JSON wb_json *r = NULL;
    struct wb_figures f = {0};
    size_t n = 0;
    int rc;

    /* A clean block before a bad end is no result. */
    if (s->exit_code != 0)
        return wb_fail(err, WB_PROTOCOL, "it ended with status %d", s->exit_code);
    rc = read_output(t, &text, &n, err);
    if (rc == 0)
        rc = wb_tool_output_read(&c->output, text, n, &f, err);
    if (rc == 0)
        rc = wb_figures_result(&f, &run, &r, err);
    if (rc == 0)
        rc = check_count(t, r, err);
    if (rc == 0)
        rc = check_clock(t, r, err);
    wb_figures_release(&f);
    if (rc < 0)
        return wb_wrap(err, "%s", c->name);
    *out = WB_STEAL(r);
    return 0;
}

static const struct wb_tool_file files[] = {{".out", ".out"}, {0}};

const struct wb_tool_ops wb_tool_foreign = {
    .name = "command",
    .summary = "any program, read by declared rules",
    .stdout_is_raw = true,
    .files = files,
    .version = version,
    .begin = begin,
    .result = result,
};
