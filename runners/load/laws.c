#include "runners/load/laws.h"

#include <string.h>

#include "server/base/mem.h"
#include "server/base/units.h"

#define DEVIATIONS_MOST 6 /* gaussian sizes: above the mean */

/* Cuts text at its colons. At most `most` parts; owned by the caller as *copy. */
static int cut(const char *text, char **copy, char **part, int most)
{
    int n = 0;

    *copy = wb_strdup(text);
    for (char *p = *copy;;) {
        char *colon = strchr(p, ':');
        if (n == most)
            return most + 1;
        part[n++] = p;
        if (!colon)
            return n;
        *colon = '\0';
        p = colon + 1;
    }
}

static const char *const names[] = {"uniform",     "sequential", "zipf",   "latest", "gaussian",
                                    "exponential", "hotspot",    "absent", NULL};

/* In the order of the names. */
static const struct {
    enum wb_load_key_choice choice;
    int numbers; /* that it takes: none of them or all */
    bool scatter, may_scatter;
} laws[] = {
    {WB_LOAD_UNIFORM, 0, false, false}, {WB_LOAD_SEQUENTIAL, 0, false, false},
    {WB_LOAD_ZIPF, 1, true, true},      {WB_LOAD_LATEST, 1, false, false},
    {WB_LOAD_GAUSSIAN, 1, false, true}, {WB_LOAD_EXPONENTIAL, 1, false, true},
    {WB_LOAD_HOTSPOT, 2, false, true},  {WB_LOAD_ABSENT, 1, false, false},
};

const char *const *wb_key_law_names(void)
{
    return names;
}

static int percent(const char *s, double lo, double *out, struct wb_err *err)
{
    int rc = wb_parse_percent(s, lo, 100, out, err);

    if (rc == 0)
        *out /= 100;
    return rc;
}

static int read_numbers(struct wb_key_law *l, char *const *number, struct wb_err *err)
{
    int rc;

    switch (l->choice) {
    case WB_LOAD_ZIPF:
    case WB_LOAD_LATEST:
        return wb_parse_real(number[0], 0.01, 10, &l->exponent, err);
    case WB_LOAD_GAUSSIAN:
    case WB_LOAD_EXPONENTIAL:
        return percent(number[0], 1e-6, &l->width, err);
    case WB_LOAD_HOTSPOT:
        rc = percent(number[0], 0, &l->share, err);
        return rc == 0 ? percent(number[1], 1e-6, &l->hot, err) : rc;
    default:
        return percent(number[0], 0, &l->share, err);
    }
}

int wb_key_law_parse(const char *text, struct wb_key_law *out, struct wb_err *err)
{
    struct wb_key_law l = {.exponent = 0.99, .share = 1, .hot = 0.2};
    WB_AUTO_FREE char *copy = NULL;
    char *part[4];
    int n = cut(text ? text : "uniform", &copy, part, 4), rc = 0;
    size_t i = 0;

    while (names[i] && strcmp(names[i], part[0]) != 0)
        i++;
    if (!names[i])
        return wb_fail(err, WB_INVALID,
                       "keys: '%s' is not one of: uniform, sequential, zipf[:S], latest[:S], "
                       "gaussian[:SD], exponential[:MEAN], hotspot[:OPS:KEYS], absent[:SHARE]",
                       part[0]);
    l.choice = laws[i].choice;
    l.scatter = laws[i].scatter;
    if (l.choice == WB_LOAD_GAUSSIAN)
        l.width = 1.0 / 6;
    if (l.choice == WB_LOAD_EXPONENTIAL)
        l.width = 0.1;
    if (l.choice == WB_LOAD_HOTSPOT)
        l.share = 0.8;
    if (n > 1 && n <= 4 && laws[i].may_scatter &&
        (strcmp(part[n - 1], "scattered") == 0 || strcmp(part[n - 1], "ordered") == 0))
        l.scatter = part[--n][0] == 's';
    if (n > 1 && n - 1 != laws[i].numbers)
        return wb_fail(err, WB_INVALID, "keys: '%s': %s takes %s%s", text, names[i],
                       laws[i].numbers == 0   ? "no number"
                       : laws[i].numbers == 1 ? "one number"
                                              : "two numbers",
                       laws[i].may_scatter ? ", and :scattered or :ordered" : "");
    if (n > 1)
        rc = read_numbers(&l, part + 1, err);
    if (rc < 0)
        return wb_wrap(err, "keys: %s", names[i]);
    *out = l;
    return 0;
}

/* --- sizes --- */

static int size_of(const char *s, size_t n, int64_t *out, struct wb_err *err)
{
    WB_AUTO_FREE char *text = wb_strndup(s, n);

    return wb_parse_bytes(text, 0, WB_VALUE_BYTES_MAX, out, err);
}

/* "100=70,4KiB=30" */
static int read_weights(const char *text, struct wb_size_law *l, struct wb_err *err)
{
    double total = 0;

    l->kind = WB_SIZE_WEIGHTED;
    l->least = WB_VALUE_BYTES_MAX;
    for (const char *s = text;; s++) {
        size_t len = strcspn(s, ","), name = strcspn(s, "=,");
        WB_AUTO_FREE char *weight = len > name ? wb_strndup(s + name + 1, len - name - 1) : NULL;
        int rc;
        if (l->n == WB_SIZE_PARTS_MAX)
            return wb_fail(err, WB_LIMIT, "more than %d sizes", WB_SIZE_PARTS_MAX);
        if (!weight)
            return wb_fail(err, WB_INVALID, "'%s' is not SIZE=WEIGHT[,SIZE=WEIGHT...]", text);
        rc = size_of(s, name, &l->part[l->n], err);
        if (rc == 0)
            rc = wb_parse_percent(weight, 0, 1e6, &l->weight[l->n], err);
        if (rc < 0)
            return rc;
        if (l->weight[l->n] > 0) {
            total += l->weight[l->n];
            l->least = l->part[l->n] < l->least ? l->part[l->n] : l->least;
            l->most = l->part[l->n] > l->most ? l->part[l->n] : l->most;
            l->n++;
        }
        s += len;
        if (!*s)
            break;
    }
    return total > 0 ? 0 : wb_fail(err, WB_INVALID, "at least one weight must be above 0");
}

static int read_gaussian(const char *text, size_t mean_len, struct wb_size_law *l,
                         struct wb_err *err)
{
    int64_t mean = 0, deviation = 0;
    int rc = size_of(text, mean_len, &mean, err);

    if (rc == 0)
        rc = size_of(text + mean_len + 1, strlen(text) - mean_len - 1, &deviation, err);
    if (rc < 0)
        return rc;
    if (deviation == 0)
        return wb_fail(err, WB_INVALID, "'%s': the deviation must be above 0", text);
    l->kind = WB_SIZE_GAUSSIAN;
    l->mean = (double)mean;
    l->deviation = (double)deviation;
    l->most = mean + DEVIATIONS_MOST * deviation;
    l->least = mean > DEVIATIONS_MOST * deviation ? mean - DEVIATIONS_MOST * deviation : 0;
    if (l->most > WB_VALUE_BYTES_MAX)
        return wb_fail(err, WB_INVALID, "'%s': %d deviations above the mean are more than %d bytes",
                       text, DEVIATIONS_MOST, WB_VALUE_BYTES_MAX);
    return 0;
}

static int read_size(const char *text, struct wb_size_law *l, struct wb_err *err)
{
    const char *dots = strstr(text, ".."), *tilde = strchr(text, '~');
    int rc;

    if (strchr(text, '='))
        return read_weights(text, l, err);
    if (tilde)
        return read_gaussian(text, (size_t)(tilde - text), l, err);
    rc = size_of(text, dots ? (size_t)(dots - text) : strlen(text), &l->least, err);
    l->most = l->least;
    if (rc < 0 || !dots)
        return rc;
    l->kind = WB_SIZE_UNIFORM;
    rc = size_of(dots + 2, strlen(dots + 2), &l->most, err);
    if (rc == 0 && l->most < l->least)
        return wb_fail(err, WB_INVALID, "'%s': the second size is below the first", text);
    return rc;
}

int wb_size_law_parse(const char *text, struct wb_size_law *out, struct wb_err *err)
{
    struct wb_size_law l = {.kind = WB_SIZE_FIXED};
    int rc = read_size(text, &l, err);

    if (rc < 0) {
        (void)wb_wrap(err, "value size (such as 1KiB, 100..4KiB, 1KiB~200 or 100=70,4KiB=30)");
        return rc;
    }
    *out = l;
    return 0;
}
