/* `watch [CAMPAIGN]`: follows a campaign that runs on this host. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/cancel.h"
#include "server/base/clock.h"
#include "server/cli/commands.h"
#include "server/cli/live.h"
#include "server/cli/places.h"
#include "server/cli/progress.h"
#include "server/cli/remote_run.h"
#include "server/engine/campaign.h"

#define LOOK_NS (250 * WB_MS)
#define LINE_MAX_BYTES (1u << 20)

struct watch {
    const struct wb_cli *cli;
    struct wb_places places;
    struct wb_cancel *cancel;
    struct wb_progress *progress; /* NULL with --json: events go out as lines */
    char *id;
    int fd;
    struct wb_buf rest; /* of a line that is not whole yet */
};

static void tell(struct watch *w, const char *line, size_t n)
{
    WB_AUTO_JSON wb_json *event = NULL;

    if (wb_json_parse(line, n, &event, NULL) < 0)
        return; /* torn by a crash; the next is whole again */
    if (w->progress) {
        wb_progress_event(w->progress, event);
        return;
    }
    struct wb_buf out = WB_BUF_INIT(2 * LINE_MAX_BYTES);

    wb_json_line(event, &out);
    wb_buf_addc(&out, '\n');
    wb_cli_print(&out);
}

/* Tells what was added since the last look. True when there was something. */
static bool follow(struct watch *w)
{
    bool any = false;
    char block[65536];
    ssize_t got;

    while ((got = read(w->fd, block, sizeof(block))) > 0) {
        const char *end;

        any = true;
        wb_buf_add(&w->rest, block, (size_t)got);
        if (w->rest.failed) /* no event is that long */
            wb_buf_clear(&w->rest);
        while (w->rest.len && (end = memchr(w->rest.data, '\n', w->rest.len))) {
            size_t n = (size_t)(end - w->rest.data);

            tell(w, w->rest.data, n);
            wb_buf_consume(&w->rest, n + 1);
        }
    }
    return any;
}

static int loop(struct watch *w, struct wb_err *err)
{
    struct wb_campaign_holder h = {0};
    int rc;

    for (;;) {
        rc = wb_campaign_look(w->places.state, w->id, &h, err);
        if (rc < 0)
            return rc;
        if (!follow(w) && !h.held)
            return 0;
        rc = h.held ? wb_wait(w->cancel, -1, LOOK_NS, err) : 0;
        if (rc < 0)
            return rc;
    }
}

static int watch(const struct wb_cli *cli, const void *options, int argc, char **argv)
{
    struct watch w = {.cli = cli, .fd = -1, .rest = WB_BUF_INIT(2 * LINE_MAX_BYTES)};
    struct wb_err err = WB_ERR_INIT;
    WB_AUTO_FREE char *path = NULL;
    WB_AUTO_FREE char *state = NULL;
    int rc = wb_places_look(cli, &w.places, &err), code = WB_EXIT_OK;

    w.cancel = wb_cancel_new();
    if (rc == 0)
        rc = wb_live_find(w.places.state, argc ? argv[0] : NULL, &w.id, &err);
    if (rc == 0)
        rc = wb_cancel_on_signals(w.cancel, &err);
    if (rc == 0) {
        path = wb_strf("%s/campaigns/%s/events.ndjson", w.places.state, w.id);
        w.fd = open(path, O_RDONLY | O_CLOEXEC);
        if (w.fd < 0)
            rc = wb_fail(&err, WB_NOT_FOUND, "campaign %s has no events at %s", w.id, path);
    }
    if (rc == 0) {
        w.progress = cli->json ? NULL : wb_progress_new(STDERR_FILENO, cli->no_color);
        rc = loop(&w, &err);
        wb_progress_free(w.progress);
    }
    if (rc == -WB_CANCELLED) {
        (void)fprintf(stderr,
                      "campaign %s goes on; 'weighbridge watch %s' follows it again, 'weighbridge "
                      "cancel %s' ends it\n",
                      w.id, w.id, w.id);
        code = WB_EXIT_INTERRUPTED;
    } else if (rc < 0) {
        code = wb_cli_fail(cli, &err);
    } else {
        state = wb_live_state(w.places.state, w.id);
        if (!cli->json)
            (void)printf("campaign %s: %s\n", w.id, state);
    }
    if (w.fd >= 0)
        (void)close(w.fd);
    free(w.id);
    wb_buf_release(&w.rest);
    wb_cancel_free(w.cancel);
    wb_places_release(&w.places);
    return code;
}

static int remote(const struct wb_cli *cli, const void *options, int argc, char **argv)
{
    (void)options; /* it has none */
    return wb_remote_watch(cli, argc ? argv[0] : NULL);
}

const struct wb_command wb_cmd_watch = {
    .name = "watch",
    .args = "[CAMPAIGN]",
    .summary = "follow a campaign that runs on this host, or on a server",
    .help =
        "Without CAMPAIGN: the one that runs. Begins with what has happened so far, ends when\n"
        "the campaign does. Ctrl-C only stops looking (exit 130). With --json or --ndjson each\n"
        "event is a line of its own.\n",
    .max_args = 1,
    .run = watch,
    .remote = remote,
};
