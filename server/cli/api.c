/* `api METHOD PATH`: one request to a server, as it is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/file.h"
#include "server/cli/commands.h"
#include "server/cli/remote.h"

#define BODY_MAX (1u << 20) /* what the server takes */

struct opts {
    const char *data, *key, *if_match, *range;
};
static const struct wb_opt rows[] = {
    {"data", 'd', WB_OPT_TEXT, offsetof(struct opts, data), "JSON|@FILE", 0, 0,
     "the body: JSON, or @FILE with it, or @- for standard input"},
    {"key", 0, WB_OPT_TEXT, offsetof(struct opts, key), "KEY", 0, 0,
     "Idempotency-Key: the same request under it is done once"},
    {"if-match", 0, WB_OPT_TEXT, offsetof(struct opts, if_match), "ETAG", 0, 0,
     "only if it still is what was read"},
    {"range", 0, WB_OPT_TEXT, offsetof(struct opts, range), "bytes=A-B", 0, 0, "a part of it"},
    {0},
};

/* The body as text; NULL without one. Caller frees. */
static int read_body(const char *data, char **out, struct wb_err *err)
{
    const char *name = "standard input";
    size_t n = 0;
    int rc;

    if (!data || *data != '@') {
        *out = wb_strdup(data);
        return 0;
    }
    if (!strcmp(data, "@-"))
        rc = wb_file_read_fd(STDIN_FILENO, name, BODY_MAX, out, &n, err);
    else
        rc = wb_file_read(name = data + 1, BODY_MAX, out, &n, err);
    return rc == 0 && strlen(*out) != n ? wb_fail(err, WB_INVALID, "%s is no text", name) : rc;
}

static int check(const char *method, const char *path, struct wb_err *err)
{
    static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", NULL};
    size_t i = 0;

    while (methods[i] && strcmp(methods[i], method) != 0)
        i++;
    if (!methods[i]) {
        WB_AUTO_FREE char *words = wb_word_list(methods);

        return wb_fail(err, WB_INVALID, "'%.20s' is no method; allowed: %s", method, words);
    }
    if (*path != '/')
        return wb_fail(err, WB_INVALID, "the path begins with a slash: /api/v1/runs, not '%.60s'",
                       path);
    return 0;
}

static int api(const struct wb_cli *cli, const void *opts, int argc, char **argv)
{
    const struct opts *o = opts;
    WB_AUTO_FREE char *text = NULL;
    struct wb_remote *r = NULL;
    struct wb_err err = WB_ERR_INIT;
    struct wb_buf body = WB_BUF_INIT(0);
    int rc = check(argv[0], argv[1], &err);

    (void)argc;
    if (rc == 0)
        rc = read_body(o->data, &text, &err);
    if (rc == 0)
        rc = wb_remote_open(cli, &r, &err);
    if (rc == 0) {
        const struct wb_remote_call c = {.method = argv[0],
                                         .path = argv[1],
                                         .text = text,
                                         .key = o->key,
                                         .if_match = o->if_match,
                                         .range = o->range,
                                         .answer_max = 256u << 20};

        rc = wb_remote_send(r, &c, &body, &err);
    }
    if (rc == 0) {
        wb_cli_print(&body);
        rc = WB_EXIT_OK;
    } else if (wb_remote_problem(r) && cli->json) {
        struct wb_cli quiet = *cli;

        /* The server's own words are the one document. */
        wb_cli_answer(cli, wb_json_copy(wb_remote_problem(r)), NULL);
        quiet.json = false;
        rc = wb_remote_fail(&quiet, r, &err);
    } else {
        rc = wb_remote_fail(cli, r, &err);
    }
    wb_buf_release(&body);
    wb_remote_free(r);
    return rc;
}

const struct wb_command wb_cmd_api = {
    .name = "api",
    .args = "METHOD PATH",
    .summary = "one request to a server, with the token",
    .help = "The answer's body goes to standard output as it came. Exit codes tell what a failure\n"
            "was; with --json the server's problem document is printed.\n",
    .examples = "  weighbridge api GET /api/v1/queue\n"
                "  weighbridge api POST /api/v1/campaigns -d @submission.json --key night-17\n",
    .opts = rows,
    .opts_size = sizeof(struct opts),
    .min_args = 2,
    .max_args = 2,
    .remote = api,
};
