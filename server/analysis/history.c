/* Reading a history, and choosing the points that are analysed. */
#include "server/analysis/history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/ediv.h"
#include "server/analysis/robust.h"
#include "server/base/mem.h"
#include "server/base/problems.h"

#define WILD 6.0          /* noise widths from its neighbours that make a point wild */
#define WILD_SHARE 0.005  /* and at least this share of the level */
#define NEIGHBOURS 2      /* on each side */
#define WILD_MOST 10      /* one in so many; where more stand out, that is how the values are */
#define NEVER_WILD_LAST 2 /* the newest points may be the beginning of a level */

static const char *const known_keys[] = {
    "values", "better", "ids",  "annotations", "previous", "min_magnitude_percent",
    "series", "window", "unit", "name",        NULL};

static const struct {
    const char *word;
    unsigned char mark;
} mark_words[] = {{"accepted", WB_MARK_ACCEPTED},
                  {"excluded", WB_MARK_EXCLUDED},
                  {"environment", WB_MARK_ENVIRONMENT}};

static bool is_id(const wb_json *j)
{
    return wb_json_type(j) == WB_JSON_STRING || wb_json_type(j) == WB_JSON_INT;
}

static int read_ids(const wb_json *in, struct wb_history *h, struct wb_err *err)
{
    const wb_json *ids = wb_json_get(in, "ids");

    if (wb_json_type(ids) == WB_JSON_NULL)
        return 0;
    if (wb_json_type(ids) != WB_JSON_ARRAY)
        return wb_fail(err, WB_INVALID, "/ids: must be a list");
    if (wb_json_len(ids) != h->values.n)
        return wb_fail(err, WB_INVALID, "/ids: has %zu entries, values has %zu", wb_json_len(ids),
                       h->values.n);
    for (size_t i = 0; i < wb_json_len(ids); i++)
        if (!is_id(wb_json_at(ids, i)))
            return wb_fail(err, WB_INVALID, "/ids/%zu: must be a text or a whole number", i);
    h->ids = ids;
    return 0;
}

size_t wb_history_find(const struct wb_history *h, const wb_json *id)
{
    for (size_t i = 0; i < wb_json_len(h->ids); i++)
        if (wb_json_equal(wb_json_at(h->ids, i), id))
            return i;
    return h->values.n;
}

char *wb_history_id(const struct wb_history *h, size_t index)
{
    const wb_json *id = wb_json_at(h->ids, index);

    if (wb_json_type(id) == WB_JSON_STRING)
        return wb_strdup(wb_json_string(id));
    return wb_strf("%lld", id ? (long long)wb_json_integer(id) : (long long)index);
}

/* {index or id, type, to?}: to ends a range (inclusive). */
static int read_mark(const wb_json *a, size_t i, struct wb_history *h, struct wb_err *err)
{
    const wb_json *at = wb_json_get(a, "index"), *id = wb_json_get(a, "id");
    const char *word = wb_json_str_or(a, "type", "");
    int64_t from = wb_json_integer(at), to, n = (int64_t)h->values.n;
    size_t k = 0;

    if (wb_json_type(a) != WB_JSON_OBJECT)
        return wb_fail(err, WB_INVALID, "/annotations/%zu: must be an object", i);
    while (k < WB_LEN(mark_words) && strcmp(mark_words[k].word, word) != 0)
        k++;
    if (k == WB_LEN(mark_words))
        return wb_fail(err, WB_INVALID,
                       "/annotations/%zu/type: must be 'accepted', 'excluded' or 'environment'", i);
    if (at == NULL && id != NULL) {
        from = (int64_t)wb_history_find(h, id);
        if (from == n)
            return wb_fail(err, WB_INVALID, "/annotations/%zu/id: is not among ids", i);
    } else if (wb_json_type(at) != WB_JSON_INT || from < 0 || from >= n) {
        return wb_fail(err, WB_INVALID,
                       "/annotations/%zu/index: must be a whole number from 0 to %lld", i,
                       (long long)n - 1);
    }
    to = wb_json_int_or(a, "to", from);
    if (to < from || to >= n)
        return wb_fail(err, WB_INVALID,
                       "/annotations/%zu/to: must be a whole number from %lld to %lld", i,
                       (long long)from, (long long)n - 1);
    if (mark_words[k].mark != WB_MARK_EXCLUDED)
        to = from;
    for (int64_t m = from; m <= to; m++)
        h->marks[m] |= mark_words[k].mark;
    return 0;
}

static int read_marks(const wb_json *in, struct wb_history *h, struct wb_err *err)
{
    const wb_json *list = wb_json_get(in, "annotations");

    h->marks = wb_calloc(h->values.n, 1);
    if (wb_json_type(list) != WB_JSON_NULL && wb_json_type(list) != WB_JSON_ARRAY)
        return wb_fail(err, WB_INVALID, "/annotations: must be a list");
    for (size_t i = 0; i < wb_json_len(list); i++)
        if (read_mark(wb_json_at(list, i), i, h, err) < 0)
            return -WB_INVALID;
    return 0;
}

static int read_better(const wb_json *in, struct wb_history *h, struct wb_err *err)
{
    const wb_json *better = wb_json_get(in, "better");
    const char *word = wb_json_string(better);

    if (wb_json_type(better) == WB_JSON_NULL)
        return 0;
    if (word != NULL && strcmp(word, "higher") == 0)
        h->better = WB_BETTER_HIGHER;
    else if (word != NULL && strcmp(word, "lower") == 0)
        h->better = WB_BETTER_LOWER;
    else
        return wb_fail(err, WB_INVALID, "/better: must be 'higher' or 'lower'");
    return 0;
}

int wb_history_read(const wb_json *in, struct wb_history *h, wb_json *warnings, struct wb_err *err)
{
    double window = WB_HISTORY_WINDOW;

    *h = (struct wb_history){.min_percent = WB_MIN_MAGNITUDE_PERCENT};
    if (wb_in_object(in, "values: a list of numbers, null where a night has no valid run", err) < 0)
        return -WB_INVALID;
    if (wb_in_values(in, "", "values", WB_HISTORY_MAX, &h->values, err) < 0 ||
        read_better(in, h, err) < 0 || read_ids(in, h, err) < 0 || read_marks(in, h, err) < 0 ||
        wb_in_real(in, "", "threshold_percent", 0, 1000, &h->min_percent, err) < 0 ||
        wb_in_real(in, "", "min_magnitude_percent", 0, 1000, &h->min_percent, err) < 0 ||
        wb_in_real(in, "", "window", WB_HISTORY_LEAST, WB_EDIV_MAX, &window, err) < 0)
        return -WB_INVALID;
    h->window = (size_t)window;
    h->series = wb_json_str_or(in, "series", NULL);
    h->previous = wb_json_get(in, "previous");
    if (wb_json_type(h->previous) == WB_JSON_NULL)
        h->previous = NULL;
    else if (wb_json_type(h->previous) != WB_JSON_OBJECT ||
             wb_json_type(wb_json_get(h->previous, "change_points")) != WB_JSON_ARRAY)
        return wb_fail(err, WB_INVALID,
                       "/previous: must be an earlier answer (an object with change_points)");
    wb_in_known(in, "", known_keys, warnings);
    return 0;
}

void wb_history_release(struct wb_history *h)
{
    wb_numbers_release(&h->values);
    free(h->marks);
    h->marks = NULL;
}

bool wb_history_matters(const struct wb_history *h, double before, double after)
{
    if (before == 0)
        return after != 0;
    return fabs(after - before) >= h->min_percent / 100 * fabs(before) * (1 - 1e-9);
}

/* ---- points ---- */

/* Far from the median of its neighbours: two points at most can be, three in a row are a level. */
static bool is_wild(const struct wb_points *p, size_t i, double sigma)
{
    size_t from = i > NEIGHBOURS ? i - NEIGHBOURS : 0;
    size_t to = i + NEIGHBOURS < p->n ? i + NEIGHBOURS + 1 : p->n;
    double centre;

    if (i + NEVER_WILD_LAST >= p->n)
        return false;
    centre = wb_median_of(p->v + from, to - from);
    return fabs(p->v[i] - centre) > fmax(WILD * sigma, WILD_SHARE * fabs(centre));
}

static void drop_wild(struct wb_points *p)
{
    double sigma = wb_diff_sigma(p->v, p->n);
    WB_AUTO_FREE bool *wild = wb_calloc(p->n, sizeof(bool));
    size_t kept = 0, found = 0;

    for (size_t i = 0; i < p->n; i++)
        found += wild[i] = is_wild(p, i, sigma);
    if (found > p->n / WILD_MOST)
        return;
    for (size_t i = 0; i < p->n; i++) {
        if (wild[i]) {
            p->wild[p->nwild++] = p->at[i];
            continue;
        }
        p->v[kept] = p->v[i];
        p->at[kept++] = p->at[i];
    }
    p->n = kept;
}

void wb_points_of(const struct wb_history *h, struct wb_points *p)
{
    size_t n = h->values.n, skip;

    *p = (struct wb_points){.v = wb_calloc(n, sizeof(double)),
                            .at = wb_calloc(n, sizeof(size_t)),
                            .wild = wb_calloc(n, sizeof(size_t))};
    for (size_t i = 0; i < n; i++) {
        if (isnan(h->values.v[i]) || (h->marks[i] & WB_MARK_EXCLUDED))
            continue;
        p->v[p->n] = h->values.v[i];
        p->at[p->n++] = i;
    }
    p->all = p->n;
    skip = p->n > h->window ? p->n - h->window : 0;
    p->n -= skip;
    memmove(p->v, p->v + skip, p->n * sizeof(double));
    memmove(p->at, p->at + skip, p->n * sizeof(size_t));
    if (p->n >= WB_HISTORY_LEAST)
        drop_wild(p);
}

void wb_points_release(struct wb_points *p)
{
    free(p->v);
    free(p->at);
    free(p->wild);
    *p = (struct wb_points){0};
}
