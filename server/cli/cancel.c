/* `cancel CAMPAIGN`: ends a campaign cleanly, whatever it is doing. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/base/cancel.h"
#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/job.h"
#include "server/cli/commands.h"
#include "server/cli/remote_run.h"
#include "server/cli/session.h"

/* A campaign that was just started has not written its lock's text yet. */
#define HOLDER_LOOKS 50
#define HOLDER_PAUSE_NS (20 * WB_MS)

struct opts {
    int64_t wait_s;
};
static const struct wb_opt rows[] = {
    {"wait", 0, WB_OPT_INT, offsetof(struct opts, wait_s), "SECONDS", 1, 86400,
     "how long to wait for its clean end (600)"},
    {0},
};

static int64_t wait_of(const struct opts *o)
{
    return o->wait_s ? o->wait_s : 600;
}

/* Signals the engine, through a descriptor so that no other process is ever hit; waits for its
 * end. */
static int end_engine(const struct wb_campaign_holder *h, const char *id, const struct opts *o,
                      const struct wb_cancel *cancel, struct wb_err *err)
{
    int64_t wait_s = wait_of(o);
    WB_AUTO_CLOSE int fd = (int)syscall(SYS_pidfd_open, h->pid, 0);
    int ended;

    if (fd < 0 || !wb_process_is(h->pid, h->ticks, h->boot))
        return 0; /* it has ended meanwhile */
    if (syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0) < 0)
        return errno == ESRCH ? 0
                              : wb_fail_sys(err, errno,
                                            "cannot signal process %d, the engine of "
                                            "campaign %s",
                                            (int)h->pid, id);
    ended = wb_wait(cancel, fd, wait_s * WB_SEC, err);
    if (ended == 0)
        return wb_fail(err, WB_TIMEOUT,
                       "campaign %s was told to end and has not within %lld s; its engine is "
                       "process %d",
                       id, (long long)wait_s, (int)h->pid);
    return ended < 0 ? wb_wrap(err, "campaign %s was told to end; waiting for it", id) : 0;
}

static int holder(const struct wb_session *s, const char *id, struct wb_campaign_holder *h,
                  struct wb_err *err)
{
    for (int i = 0;; i++) {
        int rc = wb_campaign_look(s->places.state, id, h, err);

        if (rc < 0 || !h->held || h->pid)
            return rc;
        if (i == HOLDER_LOOKS)
            return wb_fail(err, WB_CONFLICT, "campaign %s is held by a process that cannot be told",
                           id);
        rc = wb_wait(s->cancel, -1, HOLDER_PAUSE_NS, err);
        if (rc < 0)
            return rc;
    }
}

/* What the folder says, without its lock: another who cancels may be looking, too. */
static int state_of(const struct wb_session *s, const char *id, char **state, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("%s/campaigns/%s/state.json", s->places.state, id);
    WB_AUTO_JSON wb_json *j = NULL;
    struct wb_err why = WB_ERR_INIT;

    if (wb_path_exists(path) && wb_json_read_file(path, 8u << 20, &j, &why) < 0 && why.sys) {
        *err = why;
        return -why.code;
    }
    *state = wb_strdup(wb_json_str_or(j, "state", "running"));
    return 0;
}

/* What is so once no engine holds the campaign: one that was killed is closed here. */
static int close_dead(const struct wb_session *s, const char *id, int64_t wait_ns, char **state,
                      struct wb_err *err)
{
    const struct wb_clean_spec spec = {.store = s->store,
                                       .state_dir = s->places.state,
                                       .docker_socket = s->places.docker_socket,
                                       .cancel = s->cancel,
                                       .wait_ns = wait_ns};
    struct wb_clean_report report = {0};
    struct wb_campaign_dir *dir = NULL;
    bool left = false;
    int rc = state_of(s, id, state, err);

    if (rc < 0 || (strcmp(*state, "running") != 0 && strcmp(*state, "interrupted") != 0))
        return rc;
    rc = wb_engine_clean(&spec, &report, err);
    left = wb_json_len(report.left) > 0;
    wb_clean_report_release(&report);
    if (rc == 0 && left)
        return wb_fail(err, WB_CONFLICT,
                       "campaign %s has no engine any more and left something that could not be "
                       "removed: see `weighbridge clean`",
                       id);
    if (rc == 0)
        rc = wb_campaign_open(s->places.state, id, &dir, err);
    if (rc < 0)
        return rc;
    rc = wb_campaign_set_state(dir, "cancelled", true, err);
    wb_campaign_close(dir);
    free(*state);
    *state = wb_strdup("cancelled");
    return rc;
}

static int print(const struct wb_cli *cli, const char *id, const char *state, bool was_over)
{
    struct wb_buf b = WB_BUF_INIT(4096);
    int rc = !strcmp(state, "incomplete") ? WB_EXIT_LEFT : was_over ? WB_EXIT_CONFLICT : WB_EXIT_OK;

    if (cli->json) {
        wb_json *j = wb_json_object();

        wb_json_set_str(j, "campaign", id);
        wb_json_set_str(j, "state", state);
        wb_json_set_bool(j, "was_over", was_over);
        wb_cli_answer(cli, j, NULL);
        return rc;
    }
    if (was_over)
        wb_buf_addf(&b, "campaign %s was over already: %s\n", id, state);
    else
        wb_buf_addf(&b, "campaign %s: %s\n", id, state);
    wb_cli_print(&b);
    return rc;
}

static int run(const struct wb_cli *cli, const void *opts, int argc, char **argv)
{
    struct wb_session s = {0};
    struct wb_campaign_holder h = {0};
    WB_AUTO_FREE char *state = NULL;
    struct wb_err err = WB_ERR_INIT;
    int rc = wb_session_open(cli, false, NULL, &s, &err);

    if (rc == 0)
        rc = holder(&s, argv[0], &h, &err);
    if (rc == 0 && h.held)
        rc = end_engine(&h, argv[0], opts, s.cancel, &err);
    if (rc == 0)
        rc = close_dead(&s, argv[0], wait_of(opts) * WB_SEC, &state, &err);
    if (rc < 0)
        rc = wb_cli_fail(cli, &err);
    else
        rc = print(cli, argv[0], state, !h.held && strcmp(state, "cancelled") != 0);
    wb_session_release(&s);
    return rc;
}

static int remote(const struct wb_cli *cli, const void *opts, int argc, char **argv)
{
    (void)argc;
    return wb_remote_cancel_campaign(cli, argv[0], wait_of(opts));
}

const struct wb_command wb_cmd_cancel = {
    .name = "cancel",
    .args = "CAMPAIGN",
    .summary = "end a campaign cleanly",
    .help = "Legal at every moment: the engine ends what it is doing, removes everything, records\n"
            "the run as cancelled, and is waited for. A campaign whose engine was killed is\n"
            "cleaned up and closed. Exit 22 when it was over already, 16 when something is left.\n",
    .opts = rows,
    .opts_size = sizeof(struct opts),
    .min_args = 1,
    .max_args = 1,
    .run = run,
    .remote = remote,
};
