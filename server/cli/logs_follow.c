#include "server/cli/logs_follow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/cancel.h"
#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/cli/records.h"
#include "server/cli/tail.h"
#include "server/engine/campaign.h"

#define LOOK_NS (200 * WB_MS)
#define EVENTS "events"
#define OUT_MAX (8u << 20)

struct follow;

/* One run's logs. */
struct source {
    struct follow *f;
    char *run; /* NULL: the campaign's events */
    char *dir;
    struct wb_tail *tail;
};

struct follow {
    const struct wb_logs_follow *spec;
    char *dir; /* of the campaign */
    struct source **v;
    size_t n, cap;
    const char *shown; /* whose lines were told last; borrowed from a source */
};

/* ---- telling ---- */

static void tell_json(const struct source *s, const char *stream, const char *line, size_t n)
{
    struct wb_buf out = WB_BUF_INIT(OUT_MAX);
    wb_json *o = wb_json_object(), *event = NULL;

    wb_json_set_str(o, "run", s->run);
    wb_json_set_str(o, "stream", stream);
    if (!s->run && wb_json_parse(line, n, &event, NULL) == 0)
        wb_json_set(o, "event", event);
    else
        wb_json_set(o, "line", wb_json_strn(line, n));
    wb_json_line(o, &out);
    wb_buf_addc(&out, '\n');
    wb_json_free(o);
    wb_cli_print(&out);
}

/* "22:42:27 run.phase  run=run_01M8 phase=deploy" */
static void add_event(struct wb_buf *out, const wb_json *event)
{
    wb_buf_addf(out, "%.8s %s ", wb_json_str_or(event, "t", "0000-00-00T00:00:00") + 11,
                wb_json_str_or(event, "type", "?"));
    for (void *it = wb_json_first(event); it; it = wb_json_next(event, it)) {
        const char *key = wb_json_iter_key(it);
        const wb_json *value = wb_json_iter_value(it);

        if (!strcmp(key, "t") || !strcmp(key, "type") || wb_json_type(value) == WB_JSON_NULL)
            continue;
        wb_buf_addf(out, " %s=", key);
        if (wb_json_string(value))
            wb_cli_plain(wb_json_string(value), strlen(wb_json_string(value)), out);
        else
            wb_json_line(value, out);
    }
}

static void tell(void *arg, const char *stream, const char *line, size_t n)
{
    const struct source *s = arg;
    const struct wb_logs_follow *spec = s->f->spec;
    struct wb_buf out = WB_BUF_INIT(OUT_MAX);
    WB_AUTO_JSON wb_json *event = NULL;

    if (spec->stream && strcmp(stream, spec->stream) != 0)
        return;
    if (spec->cli->json) {
        tell_json(s, stream, line, n);
        return;
    }
    if (!spec->run && s->run && s->run != s->f->shown) {
        wb_buf_addf(&out, "==> %s <==\n", s->run);
        s->f->shown = s->run;
    }
    if (!spec->stream)
        wb_buf_addf(&out, "%s: ", stream);
    if (!s->run && wb_json_parse(line, n, &event, NULL) == 0 &&
        strlen(wb_json_str_or(event, "t", "")) > 19)
        add_event(&out, event);
    else
        wb_cli_plain(line, n, &out);
    wb_buf_addc(&out, '\n');
    wb_cli_print(&out);
}

/* ---- sources ---- */

static void free_source(struct source *s)
{
    wb_tail_free(s->tail);
    free(s->run);
    free(s->dir);
    free(s);
}

static struct source *add_source(struct follow *f, const char *run)
{
    struct source *s = wb_calloc(1, sizeof(*s));

    *s = (struct source){.f = f,
                         .run = wb_strdup(run),
                         .dir = run ? wb_strf("%s/runs/%s", f->dir, run) : NULL,
                         .tail = wb_tail_new(tell, s)};
    wb_grow(&f->v, &f->cap, f->n + 1, sizeof(struct source *));
    f->v[f->n++] = s;
    return s;
}

static bool has_source(const struct follow *f, const char *run)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i]->run && !strcmp(f->v[i]->run, run))
            return true;
    return false;
}

/* Runs whose folders are there now. */
static void find_runs(struct follow *f)
{
    WB_AUTO_FREE char *dir = wb_strf("%s/runs", f->dir);
    struct wb_strv names = {0};

    if (wb_list_dir(dir, &names, NULL) < 0)
        names.n = 0; /* none yet */
    for (size_t i = 0; i < names.n; i++)
        if ((!f->spec->run || !strcmp(f->spec->run, names.v[i])) && !has_source(f, names.v[i]))
            (void)add_source(f, names.v[i]);
    wb_strv_release(&names);
}

/* True when something was told. */
static bool look(struct follow *f)
{
    WB_AUTO_FREE char *events = wb_strf("%s/events.ndjson", f->dir);
    size_t kept = 0;
    bool any = false;

    find_runs(f);
    for (size_t i = 0; i < f->n; i++) {
        struct source *s = f->v[i];

        if (s->run)
            wb_tail_scan(s->tail, s->dir);
        else
            wb_tail_add(s->tail, events, EVENTS);
        any |= wb_tail_read(s->tail);
        if (s->run && !wb_path_exists(s->dir) && wb_tail_is_over(s->tail)) {
            if (f->shown == s->run)
                f->shown = NULL;
            free_source(s);
        } else {
            f->v[kept++] = s;
        }
    }
    f->n = kept;
    return any;
}

/* Whether more can come. */
static int goes_on(const struct follow *f, bool *on, struct wb_err *err)
{
    const struct wb_logs_follow *spec = f->spec;
    struct wb_campaign_holder h = {0};
    WB_AUTO_FREE char *run = spec->run ? wb_strf("%s/runs/%s", f->dir, spec->run) : NULL;
    int rc = wb_campaign_look(spec->cli->state_dir, spec->campaign, &h, err);

    *on = rc == 0 && h.held && (!run || wb_path_exists(run));
    return rc;
}

static int loop(struct follow *f, const struct wb_cancel *cancel, struct wb_err *err)
{
    for (;;) {
        bool on = false;
        int rc = goes_on(f, &on, err); /* asked first: what was written before is still read */

        if (rc < 0)
            return rc;
        if (!look(f) && !on)
            return 0;
        rc = on ? wb_wait(cancel, -1, LOOK_NS, err) : 0;
        if (rc < 0)
            return rc;
    }
}

int wb_logs_follow(const struct wb_logs_follow *spec)
{
    struct follow f = {.spec = spec,
                       .dir = wb_strf("%s/campaigns/%s", spec->cli->state_dir, spec->campaign)};
    struct wb_cancel *cancel = wb_cancel_new();
    struct wb_err err = WB_ERR_INIT;
    int rc = wb_cancel_on_signals(cancel, &err), code = WB_EXIT_OK;

    if (!spec->run)
        (void)add_source(&f, NULL);
    if (rc == 0)
        rc = loop(&f, cancel, &err);
    for (size_t i = 0; i < f.n; i++) {
        wb_tail_end(f.v[i]->tail);
        free_source(f.v[i]);
    }
    if (rc == -WB_CANCELLED) {
        (void)fprintf(stderr, "campaign %s goes on; 'weighbridge cancel %s' ends it\n",
                      spec->campaign, spec->campaign);
        code = WB_EXIT_INTERRUPTED;
    } else if (rc < 0) {
        code = wb_cli_fail(spec->cli, &err);
    }
    free(f.v);
    free(f.dir);
    wb_cancel_free(cancel);
    return code;
}
