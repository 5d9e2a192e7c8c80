#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/base/problems.h"
#include "server/cli/commands.h"
#include "server/cli/live.h"
#include "server/cli/logs_follow.h"
#include "server/cli/records.h"
#include "server/cli/remote_look.h"

#define STREAM_MAX (1u << 30) /* as much as a record holds of one stream */
#define SHOWN_MAX (2u << 30)

struct options {
    const char *stream;
    bool follow;
};
static const struct wb_opt opts[] = {
    {"follow", 'f', WB_OPT_FLAG, offsetof(struct options, follow), NULL, 0, 0,
     "of a campaign or run that goes on here, or of one stream of a server's run: to its end"},
    {"stream", 's', WB_OPT_TEXT, offsetof(struct options, stream), "NAME", 0, 0,
     "only this one, byte for byte unless to a terminal"},
    {0},
};

static bool is_log(const char *name)
{
    size_t n = strlen(name);

    return n > 4 && !strcmp(name + n - 4, ".log");
}

static int no_stream(const char *run, const char *name, const wb_json *raw, struct wb_err *err)
{
    struct wb_strv names = {0};
    WB_AUTO_FREE char *hint = NULL;
    WB_AUTO_FREE char *list = NULL;
    int rc;

    for (void *it = wb_json_first(raw); it; it = wb_json_next(raw, it))
        wb_strv_add(&names, wb_json_iter_key(it));
    if (names.n == 0) {
        rc = wb_fail(err, WB_NOT_FOUND, "%s has no raw data", run);
    } else {
        hint = wb_did_you_mean(name, (const char *const *)names.v);
        list = wb_word_list((const char *const *)names.v);
        rc = wb_fail(err, WB_NOT_FOUND, "%s has no stream '%s'%s; there is %s", run, name, hint,
                     list);
    }
    wb_strv_release(&names);
    return rc;
}

/* One stream of the JSON document: {name, bytes, sha256, text}. */
static wb_json *stream_json(const char *name, const wb_json *facts, const struct wb_buf *data)
{
    wb_json *j = wb_json_copy(facts);

    wb_json_set_str(j, "name", name);
    wb_json_set(j, "text", wb_json_strn(wb_buf_str(data), data->len));
    return j;
}

/* Where streams come from: a store, or a server. */
struct source {
    struct wb_store *store;
    struct wb_remote *remote;
    const char *run; /* whole id */
};

static int read_stream(const struct source *src, const char *name, struct wb_buf *out,
                       struct wb_err *err)
{
    return src->store ? wb_store_read_raw(src->store, src->run, name, out, err)
                      : wb_remote_raw(src->remote, src->run, name, out, err);
}

/* The streams asked for, each once: all logs with a head each, or the one named. A named one goes
 * out as it is, unless to a terminal, which a log could drive. */
static int read_streams(const struct source *src, const char *only, const wb_json *raw,
                        wb_json *streams, struct wb_buf *text, struct wb_err *err)
{
    int rc = 0;

    for (void *it = wb_json_first(raw); rc == 0 && it; it = wb_json_next(raw, it)) {
        const char *name = wb_json_iter_key(it);
        struct wb_buf data = WB_BUF_INIT(STREAM_MAX);

        if (only ? strcmp(name, only) != 0 : !is_log(name))
            continue;
        if (!only && !streams && wb_json_int_or(wb_json_iter_value(it), "bytes", 0) == 0)
            continue; /* nothing to read */
        rc = read_stream(src, name, &data, err);
        if (rc == 0 && streams)
            wb_json_push(streams, stream_json(name, wb_json_iter_value(it), &data));
        else if (rc == 0 && only && !isatty(STDOUT_FILENO))
            wb_buf_add(text, wb_buf_str(&data), data.len);
        else if (rc == 0 && only)
            wb_cli_plain(wb_buf_str(&data), data.len, text);
        else if (rc == 0) {
            wb_buf_addf(text, "%s==> %s <==\n", text->len ? "\n" : "", name);
            wb_cli_plain(wb_buf_str(&data), data.len, text);
            if (text->data[text->len - 1] != '\n')
                wb_buf_addc(text, '\n');
        }
        wb_buf_release(&data);
    }
    return rc;
}

static int print_logs(const struct wb_cli *cli, const struct source *src, const wb_json *summary,
                      const char *only, struct wb_err *err)
{
    struct wb_buf text = WB_BUF_INIT(SHOWN_MAX);
    WB_AUTO_JSON wb_json *doc = cli->json ? wb_json_object() : NULL;
    wb_json *streams = NULL;
    const wb_json *raw = wb_json_get(summary, "raw");
    int rc;

    if (only && !wb_json_get(raw, only))
        return no_stream(src->run, only, raw, err);
    if (doc) {
        streams = wb_json_array();
        wb_json_set_str(doc, "run", src->run);
        wb_json_set(doc, "streams", streams);
    }
    rc = read_streams(src, only, raw, streams, &text, err);
    if (rc == 0 && doc)
        wb_cli_answer(cli, WB_STEAL(doc), "streams");
    else if (rc == 0 && text.len == 0 && !only)
        (void)fprintf(stderr,
                      "the logs of %s are empty; 'weighbridge show %s' lists all of its "
                      "raw data\n",
                      src->run, src->run);
    if (rc == 0)
        wb_cli_print(&text);
    wb_buf_release(&text);
    return rc;
}

/* A run or campaign with a folder here is followed; -1: it has none. */
static int follow(const struct wb_cli *cli, const char *typed, const char *stream)
{
    WB_AUTO_FREE char *run = NULL;
    WB_AUTO_FREE char *campaign = NULL;
    struct wb_err err = WB_ERR_INIT;
    int rc = wb_live_find_run(cli->state_dir, typed, &run, &campaign, &err);

    if (rc == -WB_NOT_FOUND)
        rc = wb_live_find(cli->state_dir, typed, &campaign, &err);
    if (rc == -WB_NOT_FOUND)
        return -1;
    if (rc < 0)
        return wb_cli_fail(cli, &err);
    return wb_logs_follow(&(struct wb_logs_follow){cli, campaign, run, stream});
}

static int no_campaign(const struct wb_ref_id *id, struct wb_err *err)
{
    if (id->run)
        return 0;
    return wb_fail(err, WB_INVALID,
                   "%s is a campaign; logs are kept run by run, 'weighbridge show %s' lists them",
                   id->campaign, id->campaign);
}

static int logs(const struct wb_cli *cli, const void *options, int argc, char **argv)
{
    const struct options *o = options;
    struct wb_err err = WB_ERR_INIT;
    struct wb_store *s = NULL;
    struct wb_ref_id id = {0};
    WB_AUTO_JSON wb_json *summary = NULL;
    int followed = o->follow ? follow(cli, argv[0], o->stream) : -1, rc;

    (void)argc; /* one, checked before */
    if (followed >= 0)
        return followed;
    rc = wb_cli_open_store(cli, &s, &err);
    if (rc == 0)
        rc = wb_ref_id_find(s, argv[0], &id, &err);
    if (rc == 0)
        rc = no_campaign(&id, &err);
    if (rc == 0)
        rc = wb_store_read(s, id.run, "summary", &summary, &err);
    if (rc == 0)
        rc = print_logs(cli, &(struct source){.store = s, .run = id.run}, summary, o->stream, &err);
    wb_ref_id_release(&id);
    wb_store_close(s);
    return rc < 0 ? wb_cli_fail(cli, &err) : WB_EXIT_OK;
}

static int remote(const struct wb_cli *cli, const void *options, int argc, char **argv)
{
    const struct options *o = options;
    struct wb_err err = WB_ERR_INIT;
    struct wb_remote *r = NULL;
    struct wb_ref_id id = {0};
    WB_AUTO_JSON wb_json *summary = NULL;
    int rc = wb_remote_open(cli, &r, &err);

    (void)argc;
    if (rc == 0 && o->follow) {
        rc = wb_remote_follow_log(cli, r, argv[0], o->stream);
        wb_remote_free(r);
        return rc;
    }
    if (rc == 0)
        rc = wb_remote_find(r, argv[0], &id.run, &id.campaign, &err);
    if (rc == 0)
        rc = no_campaign(&id, &err);
    if (rc == 0)
        rc = wb_remote_get(r, &summary, &err, "/api/v1/runs/%s", id.run);
    if (rc == 0)
        rc =
            print_logs(cli, &(struct source){.remote = r, .run = id.run}, summary, o->stream, &err);
    rc = rc < 0 ? wb_remote_fail(cli, r, &err) : WB_EXIT_OK;
    wb_ref_id_release(&id);
    wb_remote_free(r);
    return rc;
}

const struct wb_command wb_cmd_logs = {
    .name = "logs",
    .args = "ID",
    .summary = "logs and other raw data of a run, also of one that goes on",
    .help =
        "Without --stream: all logs, one after the other. Control characters are shown as '?'.\n"
        "'weighbridge show RUN' lists the streams there are. With -f ID may be a campaign: its\n"
        "events and the logs of its runs go out as they are written, each line once, until it\n"
        "is over; Ctrl-C only stops looking (exit 130). What is recorded already is shown as\n"
        "without -f. With --json or --ndjson each line is a document of its own.\n",
    .examples = "  weighbridge logs 01JX8AB003 --stream db0.log\n"
                "  weighbridge logs cmp_01JX8A -f\n",
    .opts = opts,
    .opts_size = sizeof(struct options),
    .min_args = 1,
    .max_args = 1,
    .run = logs,
    .remote = remote,
};
