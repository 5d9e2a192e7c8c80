#include "server/queue/turns.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/mem.h"

/* ---- the order ---- */

static bool overdue(const struct wb_turn *t)
{
    return t->passed >= WB_PASSES_MAX;
}

static int by(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare(const struct wb_turn *a, const struct wb_turn *b)
{
    int d = (int)overdue(b) - (int)overdue(a);

    if (!d && overdue(a))
        d = by(a->since, b->since);
    if (!d && overdue(a) && strcmp(a->user, b->user) != 0)
        d = strcmp(a->user, b->user); /* since the same moment: one user after the other */
    if (!d)
        d = by(b->priority, a->priority);
    if (!d)
        d = by(a->last, b->last);
    return d ? d : by(a->seq, b->seq);
}

static int compare_at(const void *a, const void *b, void *arg)
{
    const struct wb_turn *v = arg;

    return compare(&v[*(const size_t *)a], &v[*(const size_t *)b]);
}

/* ---- machines ---- */

#define NOBODY SIZE_MAX

struct board {
    const struct wb_turn_machine *machines;
    size_t *claim; /* of each machine: who claims it, or NOBODY */
};

/* Machines of one class that would do, and how many of them can be had now. */
struct group {
    int kind;
    size_t size, now;
};

static struct group group_of(const struct board *b, const struct wb_turn *t, int kind)
{
    struct group g = {.kind = kind};

    for (size_t i = 0; i < t->nmachines; i++) {
        int m = t->machines[i];

        if (t->classes[i] != kind)
            continue;
        g.size++;
        g.now += !b->machines[m].held && b->claim[m] == NOBODY;
    }
    return g;
}

/* The class it would start with soonest: large enough, and the most of it to be had now. */
static bool best_group(const struct board *b, const struct wb_turn *t, struct group *best)
{
    bool any = false;

    for (size_t i = 0; i < t->nmachines; i++) {
        struct group g;
        bool first = true;

        for (size_t k = 0; k < i; k++)
            first &= t->classes[k] != t->classes[i];
        if (!first)
            continue;
        g = group_of(b, t, t->classes[i]);
        if (g.size < t->want || (any && g.now <= best->now))
            continue;
        *best = g;
        any = true;
    }
    return any;
}

/* The machine of a class that is claimed next: free ones first, then the one that is free soonest;
 * -1 when all are claimed. */
static int next_claim(const struct board *b, const struct wb_turn *t, int kind)
{
    int best = -1;

    for (size_t i = 0; i < t->nmachines; i++) {
        int m = t->machines[i];
        const struct wb_turn_machine *one = &b->machines[m];

        if (t->classes[i] != kind || b->claim[m] != NOBODY)
            continue;
        if (best < 0 || (b->machines[best].held && !one->held) ||
            (b->machines[best].held && one->held && one->until < b->machines[best].until))
            best = m;
    }
    return best;
}

static void claim(struct board *b, const struct wb_turn *t, const struct group *g, size_t who)
{
    if (overdue(t)) {
        for (size_t i = 0; i < t->nmachines; i++)
            if (b->claim[t->machines[i]] == NOBODY)
                b->claim[t->machines[i]] = who;
        return;
    }
    for (size_t n = 0; n < t->want; n++) {
        int m = next_claim(b, t, g->kind);

        if (m < 0)
            return;
        b->claim[m] = who;
    }
}

/* A campaign before t that claims a free machine which would do; NOBODY: all of them are held. */
static size_t claimed_by(const struct board *b, const struct wb_turn *t)
{
    for (size_t i = 0; i < t->nmachines; i++) {
        int m = t->machines[i];

        if (!b->machines[m].held && b->claim[m] != NOBODY)
            return b->claim[m];
    }
    return NOBODY;
}

static int *take(const struct board *b, const struct wb_turn *t, int kind)
{
    int *got = wb_calloc(t->want, sizeof(*got));
    size_t n = 0;

    for (size_t i = 0; i < t->nmachines && n < t->want; i++) {
        int m = t->machines[i];

        if (t->classes[i] == kind && !b->machines[m].held && b->claim[m] == NOBODY)
            got[n++] = m;
    }
    return got;
}

struct wb_turn_answer *wb_turns_look(const struct wb_turn *v, size_t n,
                                     const struct wb_turn_machine *machines, size_t nmachines)
{
    struct wb_turn_answer *out = wb_calloc(n, sizeof(*out));
    WB_AUTO_FREE size_t *order = wb_calloc(n, sizeof(*order));
    WB_AUTO_FREE size_t *claims = wb_calloc(nmachines, sizeof(*claims));
    WB_AUTO_FREE struct wb_turn *copy = wb_calloc(n, sizeof(*copy));
    struct board b = {machines, claims};
    bool started = false;

    for (size_t m = 0; m < nmachines; m++)
        claims[m] = NOBODY;
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    if (n)
        memcpy(copy, v, n * sizeof(*v));
    qsort_r(order, n, sizeof(*order), compare_at, copy);
    for (size_t i = 0; i < n; i++) {
        const struct wb_turn *t = &v[order[i]];
        struct wb_turn_answer *a = &out[i];
        struct group g = {0};

        a->turn = order[i];
        if (!best_group(&b, t, &g)) {
            a->state = WB_TURN_NEVER;
            continue; /* claims nothing: it would hold up everybody for ever */
        }
        a->behind = claimed_by(&b, t);
        a->state = a->behind == NOBODY ? WB_TURN_HELD : WB_TURN_CLAIMED;
        if (g.now >= t->want && !started) {
            a->state = WB_TURN_STARTS;
            a->got = take(&b, t, g.kind);
            started = true;
        }
        if (a->got)
            for (size_t k = 0; k < t->want; k++)
                claims[a->got[k]] = order[i];
        else
            claim(&b, t, &g, order[i]);
    }
    return out;
}

void wb_turns_free(struct wb_turn_answer *a, size_t n)
{
    for (size_t i = 0; a && i < n; i++)
        free(a[i].got);
    free(a);
}

bool wb_turn_passes(const struct wb_turn *waits, const char *user, const int *got, size_t ngot)
{
    if (!strcmp(waits->user, user))
        return false;
    for (size_t i = 0; i < waits->nmachines; i++)
        for (size_t k = 0; k < ngot; k++)
            if (waits->machines[i] == got[k])
                return true;
    return false;
}

/* ---- the forecast ---- */

/* The first that starts at this moment; false when none does. Takes it out of `left`. */
static bool start_one(struct wb_turn *left, size_t *of, size_t *n, struct wb_turn_machine *machines,
                      size_t nmachines, int64_t now, int64_t *starts)
{
    struct wb_turn_answer *a = wb_turns_look(left, *n, machines, nmachines);
    size_t who = NOBODY;

    for (size_t i = 0; i < *n && who == NOBODY; i++) {
        if (a[i].state != WB_TURN_STARTS)
            continue;
        who = a[i].turn;
        for (size_t k = 0; k < left[who].want; k++)
            machines[a[i].got[k]] =
                (struct wb_turn_machine){.held = true, .until = now + left[who].takes};
    }
    wb_turns_free(a, *n);
    if (who == NOBODY)
        return false;
    starts[of[who]] = now;
    for (size_t i = 0; i < *n; i++)
        if (!strcmp(left[i].user, left[who].user))
            left[i].last = now;
    left[who] = left[*n - 1];
    of[who] = of[*n - 1];
    (*n)--;
    return true;
}

/* The next moment at which a machine becomes free; frees it. False: none ever does. */
static bool next_moment(struct wb_turn_machine *machines, size_t n, int64_t *now)
{
    int64_t next = INT64_MAX;

    for (size_t m = 0; m < n; m++)
        if (machines[m].held && machines[m].until < next)
            next = machines[m].until;
    if (next == INT64_MAX)
        return false;
    *now = next > *now ? next : *now;
    for (size_t m = 0; m < n; m++)
        if (machines[m].held && machines[m].until <= *now)
            machines[m].held = false;
    return true;
}

void wb_turns_forecast(const struct wb_turn *v, size_t n, const struct wb_turn_machine *machines,
                       size_t nmachines, int64_t now, int64_t *starts)
{
    WB_AUTO_FREE struct wb_turn *left = wb_calloc(n, sizeof(*left));
    WB_AUTO_FREE size_t *of = wb_calloc(n, sizeof(*of));
    WB_AUTO_FREE struct wb_turn_machine *m = wb_calloc(nmachines, sizeof(*m));

    for (size_t i = 0; i < n; i++) {
        left[i] = v[i];
        of[i] = i;
        starts[i] = WB_NEVER;
    }
    if (nmachines)
        memcpy(m, machines, nmachines * sizeof(*m));
    do {
        while (n && start_one(left, of, &n, m, nmachines, now, starts)) {
        }
    } while (n && next_moment(m, nmachines, &now));
}
