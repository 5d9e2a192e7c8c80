/* `watch [CAMPAIGN]`: follows a campaign that runs on this host. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "server/base/cancel.h"
#include "server/base/clock.h"
#include "server/cli/commands.h"
#include "server/cli/live.h"
#include "server/cli/places.h"
#include "server/cli/progress.h"
#include "server/cli/remote_run.h"
#include "server/cli/tail.h"
#include "server/engine/campaign.h"

#define LOOK_NS (250 * WB_MS)
#define OUT_MAX (8u << 20)

struct watch {
    const struct wb_cli *cli;
    struct wb_places places;
    struct wb_cancel *cancel;
    struct wb_progress *progress; /* NULL with --json: events go out as lines */
    char *id;
};

static void tell(void *arg, const char *stream, const char *line, size_t n)
{
    struct watch *w = arg;
    struct wb_buf out = WB_BUF_INIT(OUT_MAX);
    WB_AUTO_JSON wb_json *event = NULL;

    (void)stream; /* there is one */
    if (wb_json_parse(line, n, &event, NULL) < 0)
        return; /* torn by a crash; the next is whole again */
    if (w->progress) {
        wb_progress_event(w->progress, event);
        return;
    }
    wb_json_line(event, &out);
    wb_buf_addc(&out, '\n');
    wb_cli_print(&out);
}

static int loop(struct watch *w, struct wb_tail *events, struct wb_err *err)
{
    struct wb_campaign_holder h = {0};
    int rc;

    for (;;) {
        rc = wb_campaign_look(w->places.state, w->id, &h, err);
        if (rc < 0)
            return rc;
        if (!wb_tail_read(events) && !h.held)
            return 0;
        rc = h.held ? wb_wait(w->cancel, -1, LOOK_NS, err) : 0;
        if (rc < 0)
            return rc;
    }
}

static int watch(const struct wb_cli *cli, const void *options, int argc, char **argv)
{
    struct watch w = {.cli = cli};
    struct wb_tail *events = wb_tail_new(tell, &w);
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
        wb_tail_add(events, path, "events");
        if (wb_tail_is_over(events))
            rc = wb_fail(&err, WB_NOT_FOUND, "campaign %s has no events at %s", w.id, path);
    }
    if (rc == 0) {
        w.progress = cli->json ? NULL : wb_progress_new(STDERR_FILENO, cli->no_color);
        rc = loop(&w, events, &err);
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
    wb_tail_free(events);
    free(w.id);
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
