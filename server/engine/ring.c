#include "server/engine/ring.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/engine/complete.h"
#include "server/engine/steps.h"

#define POLL_NS (100 * WB_MS)
/* Between two questions whether the cluster is as it should be. */
#define ASK_PAUSE_NS WB_SEC
#define STEP_JSON_MAX (1u << 20)
#define LAST_WORDS_MAX 500

enum state {
    WAITING,  /* for its time */
    WORKING,  /* its step runs */
    STOPPING, /* the instance was told to stop */
    CHECKING  /* the nodes are asked */
};

struct operation {
    const struct wb_phase_op *o;
    struct wb_instance *in;
    int64_t began_ms, done_ms, confirmed_ms; /* Unix ms; 0: not yet */
    wb_json *said;
};

struct wb_ring {
    struct wb_worker *w;
    struct operation *v; /* n of them; those before `at` are over */
    size_t n, at;
    enum state state;
    int64_t began_ns, ask_ns; /* of the operation; when the nodes are asked next */
    int64_t good_ms;          /* first good answer of those in a row */
    struct wb_complete complete;
    char *dir, *group; /* of its jobs, one at a time */
    bool job, in_ledger;
};

struct wb_ring *wb_ring_new(struct wb_worker *w)
{
    struct wb_run *r = w->r;
    struct wb_ring *g = wb_calloc(1, sizeof(*g));

    g->w = w;
    g->n = w->ph->nduring;
    g->v = wb_calloc(g->n, sizeof(*g->v));
    for (size_t i = 0; i < g->n; i++) {
        g->v[i].o = &w->ph->during[i];
        g->v[i].in = &r->instances[wb_phase_op_instance(g->v[i].o, r->ninstances)];
    }
    g->dir = wb_strf("%s/op-%s.job", r->dir, w->ph->name);
    g->group = wb_strf("weighbridge/%s-op", r->id);
    return g;
}

static int fail(struct wb_ring *g, enum wb_outcome o, const char *fmt, ...) WB_PRINTF(3, 4);
static int fail(struct wb_ring *g, enum wb_outcome o, const char *fmt, ...)
{
    const struct operation *op = &g->v[g->at];
    va_list ap;
    int rc;

    va_start(ap, fmt);
    WB_AUTO_FREE char *text = wb_vstrf(fmt, ap);
    va_end(ap);
    rc = wb_run_failf(g->w->r, o, "phase %s: %s on instance %d %s", g->w->ph->name, op->o->op->name,
                      op->in->index, text);
    return rc;
}

static void tell(const struct wb_ring *g, const char *what)
{
    const struct operation *op = &g->v[g->at];
    wb_json *f = wb_json_object();

    wb_json_set_str(f, "run", g->w->r->id);
    wb_json_set_str(f, "phase", g->w->ph->name);
    wb_json_set_str(f, "do", op->o->op->name);
    wb_json_set_int(f, "instance", op->in->index);
    wb_json_set_str(f, "state", what);
    wb_campaign_event(g->w->r->e->dir, "run.operation", f);
}

/* ---- jobs ---- */

static int note_in_ledger(struct wb_ring *g)
{
    struct wb_ledger_entry entry = {
        .kind = (char[]){"load"}, .name = g->group, .dir = g->dir, .run = g->w->r->id};
    struct wb_err err = WB_ERR_INIT;

    if (g->in_ledger)
        return 0;
    if (wb_ledger_make(g->w->r->e->dir, &entry, &err) < 0)
        return wb_run_fail(g->w->r, WB_OUTCOME_INFRA_ERROR, &err);
    g->in_ledger = true;
    return 0;
}

static int start_step(struct wb_ring *g, const char *step, const struct wb_instance *in)
{
    struct wb_run *r = g->w->r;
    const struct wb_recipe *recipe = r->e->study->recipe;
    const struct wb_placement *p = &r->e->plan->placement;
    WB_AUTO_FREE char *path = wb_strf("%s/steps/%s", recipe->dir, step);
    WB_AUTO_FREE char *mark = wb_strf("wb.owner=%s;wb.campaign=%s;wb.run=%s", r->e->form_env.owner,
                                      r->e->form_env.campaign, r->id);
    char *argv[] = {path, NULL};
    struct wb_strv env = {0};
    struct wb_job_spec job = {.dir = g->dir,
                              .group = g->group,
                              .argv = argv,
                              .cwd = recipe->dir,
                              .limits = {.cpus = p->database_cpus, .mems = p->mems},
                              .limit_ns = g->v[g->at].o->op->limit_ns,
                              .mark = mark};
    struct wb_err err = WB_ERR_INIT;
    int rc;

    if (note_in_ledger(g) < 0)
        return -WB_IO;
    wb_run_step_env(r, in, &env);
    wb_strv_add(&env, "HOME=/");
    job.env = env.v;
    wb_sampler_add_database(g->w->sampler, g->group);
    rc = wb_job_start(r->e->cgroups, &job, &err);
    wb_strv_release(&env);
    if (rc < 0)
        return fail(g, WB_OUTCOME_INFRA_ERROR, "could not be begun: %s", err.root);
    g->job = true;
    return 0;
}

/* Ends the job and removes what it left. */
static int end_job(struct wb_ring *g, struct wb_err *err)
{
    int rc = wb_job_stop(g->w->r->e->cgroups, g->dir, 0, 0, NULL, err);

    if (rc == 0)
        rc = wb_remove_tree(g->dir, err);
    g->job = rc < 0;
    return rc;
}

/* 1: it has ended, with its status, what it told (NULL: nothing of use) and its last words. */
static int poll_job(struct wb_ring *g, struct wb_job_status *s, wb_json **told,
                    struct wb_buf *words)
{
    WB_AUTO_FREE char *out = wb_strf("%s/stdout.log", g->dir);
    struct wb_err err = WB_ERR_INIT;

    if (wb_job_poll(g->dir, s, &err) < 0)
        return wb_run_fail(g->w->r, WB_OUTCOME_HARNESS_ERROR, &err);
    if (s->state == WB_JOB_RUNNING)
        return 0;
    wb_sampler_database_ended(g->w->sampler, g->group, s->cpu_ns);
    if (wb_json_read_file(out, STEP_JSON_MAX, told, NULL) < 0)
        *told = NULL;
    if (wb_job_log_tail(g->dir, "stderr.log", LAST_WORDS_MAX, words, NULL) < 0)
        wb_buf_clear(words);
    while (words->len && (unsigned char)words->data[words->len - 1] <= ' ')
        words->data[--words->len] = '\0';
    if (end_job(g, &err) < 0)
        return wb_run_fail(g->w->r, WB_OUTCOME_HARNESS_ERROR, &err);
    return 1;
}

/* ---- the nodes' own word ---- */

static void begin_check(struct wb_ring *g)
{
    wb_complete_release(&g->complete);
    wb_complete_init(&g->complete, wb_run_members(g->w->r));
    g->good_ms = 0;
    g->ask_ns = wb_now_ns(NULL);
    g->state = CHECKING;
}

/* The last member answers for all of them. */
static const struct wb_instance *last_member(const struct wb_run *r)
{
    for (int i = r->ninstances; i-- > 0;)
        if (r->instances[i].member)
            return &r->instances[i];
    return NULL;
}

static void over(struct wb_ring *g)
{
    struct operation *op = &g->v[g->at];

    op->confirmed_ms = wb_now_unix_ms(NULL);
    if (!op->done_ms)
        op->done_ms = g->good_ms ? g->good_ms : op->confirmed_ms;
    tell(g, "end");
    g->at++;
    g->state = WAITING;
}

/* An answer of step ready: good ones have to come in a row. */
static int take_answer(struct wb_ring *g, const struct wb_job_status *s, const wb_json *told,
                       const struct wb_buf *words)
{
    const wb_json *nodes = wb_json_get(told, "nodes");
    bool all = wb_complete_add(&g->complete, nodes);
    int64_t now = wb_now_unix_ms(NULL);

    g->ask_ns = wb_now_ns(NULL) + ASK_PAUSE_NS;
    if (s->exit_code == WB_STEP_NOT_YET || (s->exit_code == 0 && nodes && g->complete.good == 0)) {
        g->complete.good = 0;
        g->good_ms = 0;
        return 0;
    }
    if (s->exit_code != 0)
        return fail(g, WB_OUTCOME_SUT_ERROR, "could not be checked (status %d)%s%s", s->exit_code,
                    words->len ? ": " : "", wb_buf_str(words));
    g->good_ms = g->good_ms ? g->good_ms : now;
    if (all || !nodes) /* a recipe may answer for itself */
        over(g);
    return 0;
}

static int check(struct wb_ring *g)
{
    struct wb_buf words = WB_BUF_INIT(4 * LAST_WORDS_MAX);
    WB_AUTO_JSON wb_json *told = NULL;
    struct wb_job_status s;
    int rc;

    if (!g->job)
        return wb_now_ns(NULL) < g->ask_ns
                   ? 0
                   : start_step(g, wb_step_name(WB_STEP_READY), last_member(g->w->r));
    rc = poll_job(g, &s, &told, &words);
    if (rc > 0)
        rc = take_answer(g, &s, told, &words);
    wb_buf_release(&words);
    return rc;
}

/* ---- what is done ---- */

static int start_instance(struct wb_ring *g, struct wb_instance *in)
{
    struct wb_run *r = g->w->r;

    if (wb_run_start_instance(r, in) < 0 || wb_run_know(r, in) < 0)
        return -WB_IO;
    if (in->status.cgroup[0])
        wb_sampler_add_database(g->w->sampler, in->status.cgroup);
    if (in->status.helper[0])
        wb_sampler_add_database(g->w->sampler, in->status.helper);
    in->away = false;
    begin_check(g);
    return 0;
}

static int begin(struct wb_ring *g)
{
    struct operation *op = &g->v[g->at];

    g->began_ns = wb_now_ns(NULL);
    op->began_ms = wb_now_unix_ms(NULL);
    tell(g, "begin");
    switch (op->o->op->kind) {
    case WB_OP_WORK:
    case WB_OP_LEAVE:
        g->state = WORKING;
        return start_step(g, op->o->op->name, op->in);
    case WB_OP_JOIN:
        op->in->member = true;
        return start_instance(g, op->in);
    case WB_OP_RESTART:
        op->in->away = op->in->restarted = true;
        g->state = STOPPING;
        /* It may have ended this moment: then it is stopped, too. */
        (void)kill(op->in->status.pid, SIGTERM);
        return 0;
    }
    return 0;
}

static int work(struct wb_ring *g)
{
    struct operation *op = &g->v[g->at];
    struct wb_buf words = WB_BUF_INIT(4 * LAST_WORDS_MAX);
    WB_AUTO_JSON wb_json *told = NULL;
    struct wb_job_status s;
    int rc = poll_job(g, &s, &told, &words);

    if (rc > 0 && s.exit_code == 0 && wb_json_type(told) != WB_JSON_OBJECT) {
        rc = fail(g, WB_OUTCOME_SUT_ERROR, "told nothing: its step must write one JSON object");
    } else if (rc > 0 && s.exit_code != 0) {
        const char *last = strrchr(wb_buf_str(&words), '\n');

        last = last ? last + 1 : wb_buf_str(&words);
        rc = fail(g, WB_OUTCOME_SUT_ERROR, "failed (%s %d)%s%s", s.signal ? "signal" : "status",
                  s.signal ? s.signal : s.exit_code, *last ? ": " : "", last);
    } else if (rc > 0) {
        op->done_ms = wb_now_unix_ms(NULL);
        op->said = WB_STEAL(told);
        op->in->member = op->o->op->kind != WB_OP_LEAVE;
        begin_check(g);
        rc = 0;
    }
    wb_buf_release(&words);
    return rc;
}

static int await_stop(struct wb_ring *g)
{
    struct wb_run *r = g->w->r;
    struct wb_instance *in = g->v[g->at].in;
    struct wb_err err = WB_ERR_INIT;

    if (wb_process_ticks(in->status.pid) == in->start_ticks)
        return 0;
    if (r->form->ops->destroy(&r->e->form_env, in->name, in->dir, &err) < 0)
        return fail(g, WB_OUTCOME_INFRA_ERROR, "could not take the stopped instance away: %s",
                    err.root);
    return start_instance(g, in);
}

/* The limit has passed: says what was missing. */
static int too_long(struct wb_ring *g)
{
    static const char *const doing[] = {[WAITING] = "it waited",
                                        [WORKING] = "its step still ran",
                                        [STOPPING] = "the instance had not stopped",
                                        [CHECKING] = "the cluster was not as it should be"};
    struct wb_buf why = WB_BUF_INIT(1024);
    int rc;

    wb_complete_why(&g->complete, &why);
    rc = fail(g, WB_OUTCOME_SUT_ERROR, "was not done within %.0f s: %s%s%s",
              (double)g->v[g->at].o->op->limit_ns / 1e9, doing[g->state], why.len ? ": " : "",
              wb_buf_str(&why));
    wb_buf_release(&why);
    return rc;
}

int wb_ring_turn(struct wb_ring *g)
{
    const struct wb_phase *ph = g->w->ph;
    int64_t now = wb_now_ns(NULL);

    if (g->at >= g->n)
        return 0;
    if (g->state == WAITING)
        return now >= g->w->began_ns + ph->warm_up_ns + g->v[g->at].o->at_ns ? begin(g) : 0;
    if (now > g->began_ns + g->v[g->at].o->op->limit_ns)
        return too_long(g);
    return g->state == WORKING ? work(g) : g->state == STOPPING ? await_stop(g) : check(g);
}

int wb_ring_finish(struct wb_ring *g)
{
    struct wb_run *r = g->w->r;
    struct wb_err err = WB_ERR_INIT;

    while (g->at < g->n) {
        if (g->state == WAITING)
            return fail(g, WB_OUTCOME_SUT_ERROR,
                        "could not begin before the load ended: %s. Make `for` longer",
                        g->at ? "the operation before it took too long" : "its time had not come");
        if (wb_ring_turn(g) < 0 || wb_run_alive(r) < 0)
            return -WB_IO;
        if (wb_wait(r->e->spec->cancel, -1, POLL_NS, &err) < 0)
            return wb_run_fail(r, WB_OUTCOME_CANCELLED, &err);
    }
    for (size_t i = 0; i < g->n; i++) {
        enum wb_op_kind kind = g->v[i].o->op->kind;

        if ((kind == WB_OP_JOIN || kind == WB_OP_RESTART) && g->v[i].in->member &&
            wb_run_prove(r, g->v[i].in) < 0)
            return -WB_IO;
    }
    return 0;
}

/* ---- the report ---- */

static void set_stamp(wb_json *o, const char *key, int64_t unix_ms)
{
    struct wb_buf b = WB_BUF_INIT(64);

    wb_format_time(unix_ms, &b);
    wb_json_set_str(o, key, wb_buf_str(&b));
    wb_buf_release(&b);
}

static wb_json *one(const struct wb_ring *g, size_t i, const struct wb_ring_series *s)
{
    const struct operation *op = &g->v[i];
    double began = (double)op->began_ms / 1e3, done = (double)op->done_ms / 1e3;
    double before = i ? (double)op[-1].done_ms / 1e3 : 0;
    double after = i + 1 < g->n ? (double)op[1].began_ms / 1e3 : 1e12;
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "do", op->o->op->name);
    wb_json_set_int(o, "instance", op->in->index);
    wb_json_set_real(o, "at_s", (double)op->o->at_ns / 1e9);
    set_stamp(o, "began_at", op->began_ms);
    wb_json_set_real(o, "seconds", (double)(op->done_ms - op->began_ms) / 1e3);
    wb_json_set_real(o, "confirmed_s", (double)(op->confirmed_ms - op->began_ms) / 1e3);
    wb_json_set(o, "said", op->said ? wb_json_ref(op->said) : wb_json_null());
    wb_json_set(o, "before", wb_ring_window(s, before, began, false));
    wb_json_set(o, "during", wb_ring_window(s, began, done, true));
    wb_json_set(o, "after", wb_ring_window(s, done, after, false));
    return o;
}

wb_json *wb_ring_report(const struct wb_ring *g)
{
    struct wb_ring_series s;
    wb_json *list = wb_json_array();

    wb_ring_series_read(&s, g->w->base, g->w->task.rate_per_s > 0);
    for (size_t i = 0; i < g->n; i++)
        wb_json_push(list, one(g, i, &s));
    wb_ring_series_release(&s);
    return list;
}

void wb_ring_free(struct wb_ring *g)
{
    if (!g)
        return;
    if (g->in_ledger && (!g->job || end_job(g, NULL) == 0))
        WB_IGNORE(wb_ledger_gone(g->w->r->e->dir, g->group, NULL)); /* clean looks once more */
    wb_complete_release(&g->complete);
    for (size_t i = 0; i < g->n; i++)
        wb_json_free(g->v[i].said);
    free(g->v);
    free(g->dir);
    free(g->group);
    free(g);
}
