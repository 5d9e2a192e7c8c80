/*
 * wb-load: one load run from flags or a job document to a result document.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runners/load/explore.h"
#include "runners/load/merge.h"
#include "runners/load/report.h"
#include "runners/load/workload.h"
#include "server/base/file.h"
#include "server/base/mem.h"

#define JOB_TEXT_MAX (1u << 20)

enum exit_code {
    EXIT_VALID = 0,
    EXIT_USAGE = 2,
    EXIT_NO_CONNECTION = 3,
    EXIT_NOT_VALID = 4,
    EXIT_INTERNAL = 5,
    EXIT_INTERRUPTED = 130
};

/* A standard stream that is closed would be the number of the next file: what is meant for people
 * would go into that. Such a one reads nothing and takes nothing. */
static void keep_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0)
            _exit(EXIT_INTERNAL);
}

static void put(FILE *to, const struct wb_buf *text)
{
    fputs(wb_buf_str(text), to);
    fflush(to);
}

static void complain(const struct wb_err *err)
{
    char text[2 * WB_ERR_TEXT_MAX];

    fprintf(stderr, "wb-load: %s\n", wb_err_text(err, text, sizeof(text)));
}

/* Of what all protocols have, or of what one has beside that. */
static void print_help(const char *protocol)
{
    struct wb_buf b = WB_BUF_INIT(1 << 16);

    if (protocol) {
        wb_load_job_help(&b, protocol);
        put(stdout, &b);
        wb_buf_release(&b);
        return;
    }
    wb_buf_adds(&b, "Usage: wb-load [OPTIONS] TARGET; wb-load merge RESULT RESULT...\n"
                    "Puts load on a database and says whether the numbers may be believed.\n"
                    "TARGET is SCHEME://HOST:PORT[,HOST:PORT...]; schemes:");
    for (size_t i = 0; wb_protocols()[i]; i++)
        wb_buf_addf(&b, "%s %s", i ? "," : "", wb_protocols()[i]->name);
    wb_buf_adds(&b, "\n");
    wb_load_job_help(&b, NULL);
    wb_buf_adds(&b,
                "  --workload FILE      workload of a study (YAML); --phase NAME: one of several\n"
                "  --job FILE           the same from a JSON document, - is stdin\n"
                "  --schema             JSON Schemas of job and result\n"
                "  --help cql|resp|login  options of one protocol; passwords and TLS\n"
                "Exit: 0 valid, 2 usage, 3 no connection, 4 not valid, 5 internal, 130 stopped.\n");
    put(stdout, &b);
    wb_buf_release(&b);
}

static void print_schema(void)
{
    struct wb_buf b = WB_BUF_INIT(1 << 20);
    wb_json *both = wb_json_object();

    wb_json_set(both, "job", wb_load_job_schema());
    wb_json_set(both, "result", wb_load_report_schema());
    wb_json_pretty(both, &b);
    put(stdout, &b);
    wb_json_free(both);
    wb_buf_release(&b);
}

static int read_stdin(struct wb_buf *out, struct wb_err *err)
{
    for (;;) {
        char *room = wb_buf_room(out, 65536);
        ssize_t n;
        if (!room)
            return wb_buf_check(out, "job on stdin", err);
        n = read(STDIN_FILENO, room, 65536);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return wb_fail_sys(err, errno, "reading the job from stdin");
        if (n == 0)
            return 0;
        wb_buf_commit(out, (size_t)n);
    }
}

static int read_job(struct wb_load_job *job, const char *path, struct wb_err *err)
{
    wb_json *doc = NULL;
    struct wb_buf text = WB_BUF_INIT(JOB_TEXT_MAX);
    int rc;

    if (strcmp(path, "-") == 0) {
        rc = read_stdin(&text, err);
        if (rc == 0)
            rc = wb_json_parse(wb_buf_str(&text), text.len, &doc, err);
        if (rc < 0)
            (void)wb_wrap(err, "job on stdin");
    } else {
        rc = wb_json_read_file(path, JOB_TEXT_MAX, &doc, err);
    }
    if (rc == 0)
        rc = wb_load_job_read(job, doc, err);
    wb_json_free(doc);
    wb_buf_release(&text);
    return rc;
}

/* The value of a flag, given as "--flag VALUE" or "--flag=VALUE"; NULL when it is not there. */
static const char *flag_value(int argc, char **argv, const char *flag)
{
    size_t n = strlen(flag);

    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], flag, n) != 0)
            continue;
        if (argv[i][n] == '=')
            return argv[i] + n + 1;
        if (argv[i][n] == '\0' && i + 1 < argc)
            return argv[i + 1];
    }
    return NULL;
}

/* The workload file comes before all flags, which then change it. */
static int read_workload(struct wb_load_job *job, int argc, char **argv, struct wb_err *err)
{
    const char *path = flag_value(argc, argv, "--workload");
    const char *phase = flag_value(argc, argv, "--phase");

    if (path)
        return wb_workload_read(job, path, phase, err);
    return phase ? wb_fail(err, WB_INVALID, "--phase names a phase of a --workload file") : 0;
}

/* Returns 1 when the program is to end well (--help and the like), 0 to go on. */
static int read_arguments(struct wb_load_job *job, int argc, char **argv, struct wb_err *err)
{
    bool target = false;

    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *eq = strchr(a, '='), *value;
        WB_AUTO_FREE char *flag = NULL;
        int rc;
        if (strcmp(a, "--help") == 0 || strcmp(a, "-h") == 0) {
            print_help(i + 1 < argc ? argv[i + 1] : NULL);
            return 1;
        }
        if (strcmp(a, "--version") == 0) {
            puts("wb-load " WB_VERSION);
            return 1;
        }
        if (strcmp(a, "--schema") == 0) {
            print_schema();
            return 1;
        }
        if (a[0] != '-') {
            if (target)
                return wb_fail(err, WB_INVALID, "more than one target: '%s'", a);
            target = true;
            rc = wb_load_job_flag(job, "target", a, err);
            if (rc < 0)
                return rc;
            continue;
        }
        eq = a[1] == '-' ? eq : NULL;
        flag = eq ? wb_strndup(a, (size_t)(eq - a)) : wb_strdup(a);
        value = eq ? eq + 1 : NULL;
        if (wb_load_job_flag_alone(flag))
            value = value ? value : "";
        else if (!value && i + 1 < argc)
            value = argv[++i];
        if (!value)
            return wb_fail(err, WB_INVALID, "option %s needs a value (see wb-load --help)", flag);
        if (strcmp(flag, "--workload") == 0 || strcmp(flag, "--phase") == 0)
            continue;
        rc = strcmp(flag, "--job") == 0 ? read_job(job, value, err)
                                        : wb_load_job_flag(job, flag, value, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int exit_code(const struct wb_load_job *job, enum wb_load_end end, const char *verdict)
{
    switch (end) {
    case WB_LOAD_NO_CONNECTION:
        return EXIT_NO_CONNECTION;
    case WB_LOAD_INTERRUPTED:
        return EXIT_INTERRUPTED;
    case WB_LOAD_BROKEN:
        return EXIT_INTERNAL;
    case WB_LOAD_DONE:
        break;
    }
    if (strcmp(verdict, "valid") == 0)
        return EXIT_VALID;
    return strcmp(verdict, "server-bound") == 0 &&
                   (job->model == WB_LOAD_CLOSED || wb_load_explores(job))
               ? EXIT_VALID
               : EXIT_NOT_VALID;
}

/* Writes the document and the summary. */
static int finish(const struct wb_load_job *job, const wb_json *result, struct wb_err *err)
{
    struct wb_buf text = WB_BUF_INIT(1 << 20);
    bool json_on_stdout = job->output && strcmp(job->output, "-") == 0;
    int rc = 0;

    if (job->output)
        rc = wb_load_report_write(result, job->output, err);
    if (!job->quiet) {
        wb_load_report_text(result, &text);
        put(json_on_stdout ? stderr : stdout, &text);
        if (rc == 0 && !json_on_stdout && ferror(stdout))
            rc = wb_fail_sys(err, errno, "writing the summary");
    }
    wb_buf_release(&text);
    return rc;
}

/* One run with its document. What hangs is not released. */
static int run_once(const struct wb_load_job *job, const struct wb_cancel *cancel,
                    const struct wb_load_watch *watch, struct wb_load_exploration *out,
                    struct wb_err *err)
{
    struct wb_load_outcome o;
    int rc = wb_load_run(job, cancel, watch, &o, err);

    if (rc < 0)
        return rc;
    out->result = wb_load_report(&o, &out->verdict);
    out->end = o.end;
    if (o.end != WB_LOAD_BROKEN)
        wb_load_outcome_release(&o);
    return 0;
}

static int run(const struct wb_load_job *job, const struct wb_cancel *cancel)
{
    struct wb_load_exploration done = {0};
    struct wb_load_watch watch;
    struct wb_load_live *live = NULL;
    struct wb_err err = WB_ERR_INIT;
    int rc = wb_load_live_open(job, &live, &err), code;

    if (rc < 0) {
        complain(&err);
        return EXIT_INTERNAL;
    }
    wb_load_live_watch(live, &watch);
    rc = wb_load_explores(job) ? wb_load_explore(job, cancel, &watch, &done, &err)
                               : run_once(job, cancel, &watch, &done, &err);
    if (rc < 0) {
        complain(&err);
        wb_load_live_free(live);
        return rc == -WB_INVALID || rc == -WB_LIMIT ? EXIT_USAGE
               : rc == -WB_CANCELLED                ? EXIT_INTERRUPTED
               : rc == -WB_UNAVAILABLE || rc == -WB_TIMEOUT || rc == -WB_PROTOCOL
                   ? EXIT_NO_CONNECTION
                   : EXIT_INTERNAL;
    }
    code = exit_code(job, done.end, done.verdict);
    rc = wb_load_live_close(live, &err);
    if (rc == 0)
        rc = finish(job, done.result, &err);
    else
        (void)finish(job, done.result, NULL);
    if (rc < 0) {
        complain(&err);
        code = EXIT_INTERNAL;
    }
    wb_json_free(done.result);
    if (done.end == WB_LOAD_BROKEN)
        _exit(code); /* a thread may hang: nothing of it can be taken down */
    return code;
}

static void print_merge_help(void)
{
    fputs("Usage: wb-load merge RESULT RESULT... [-o FILE] [--quiet]\n"
          "Makes one result of those of several processes that made one load (--part h/H), or of\n"
          "closed loops that ran at the same time (--part 1/1). Histograms are added, nothing is\n"
          "averaged. Results of different workloads are refused.\n",
          stdout);
}

/* Options and files of `merge`; 1 to end well. */
static int read_merge_arguments(struct wb_load_job *job, int argc, char **argv,
                                struct wb_strv *files, struct wb_err *err)
{
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_merge_help();
            return 1;
        }
        if (strcmp(argv[i], "--quiet") == 0) {
            job->quiet = true;
        } else if (strcmp(argv[i], "-o") == 0 && i + 1 < argc) {
            free(job->output);
            job->output = wb_strdup(argv[++i]);
        } else if (argv[i][0] == '-') {
            return wb_fail(err, WB_INVALID, "merge: unknown option %s, or one without its value",
                           argv[i]);
        } else {
            wb_strv_add(files, argv[i]);
        }
    }
    return 0;
}

/* `wb-load merge RESULT...`. The job is only where to write to. */
static int merge(struct wb_load_job *job, int argc, char **argv)
{
    struct wb_strv files = {0};
    struct wb_err err = WB_ERR_INIT;
    wb_json **docs = NULL, *result = NULL;
    const char *verdict = NULL;
    int rc = read_merge_arguments(job, argc, argv, &files, &err), code = EXIT_USAGE;
    size_t n = 0;

    docs = wb_calloc(files.n + 1, sizeof(*docs));
    for (; rc == 0 && n < files.n; n++)
        rc = wb_json_read_file(files.v[n], WB_JSON_TEXT_MAX, &docs[n], &err);
    if (rc == 0)
        rc = wb_load_merge((const wb_json *const *)docs, (const char *const *)files.v, files.n,
                           &result, &verdict, &err);
    if (rc == 0) {
        job->model = strcmp(wb_json_str_or(result, "model", ""), "closed") == 0 ? WB_LOAD_CLOSED
                                                                                : WB_LOAD_OPEN;
        code = exit_code(job, WB_LOAD_DONE, verdict);
        if (finish(job, result, &err) < 0) {
            code = EXIT_INTERNAL;
            rc = -1;
        }
    }
    if (rc < 0)
        complain(&err);
    wb_json_free(result);
    for (size_t i = 0; i < n; i++)
        wb_json_free(docs[i]);
    free(docs);
    wb_strv_release(&files);
    return rc == 1 ? EXIT_VALID : code;
}

int main(int argc, char **argv)
{
    struct wb_load_job job;
    struct wb_err err = WB_ERR_INIT;
    struct wb_cancel *cancel = wb_cancel_new();
    int rc, code = EXIT_USAGE;

    keep_standard_streams();
    wb_load_job_init(&job);
    rc = argc > 1 && strcmp(argv[1], "merge") == 0 ? 2 : read_workload(&job, argc, argv, &err);
    if (rc == 0)
        rc = read_arguments(&job, argc, argv, &err);
    if (rc == 2) {
        code = merge(&job, argc, argv);
    } else if (rc == 1) {
        code = EXIT_VALID;
    } else {
        if (rc == 0)
            rc = wb_load_job_check(&job, &err);
        if (rc == 0)
            rc = wb_cancel_on_signals(cancel, &err);
        if (rc < 0)
            complain(&err);
        else
            code = run(&job, cancel);
    }
    wb_load_job_release(&job);
    wb_cancel_free(cancel);
    return code;
}
