#include "server/analysis/hdr_log.h"

#include <math.h>
#include <string.h>

#include "server/base/mem.h"
#include "server/base/units.h"

#define YEAR_S (365.0 * 86400)
#define TIME_MOST 1e12
#define NUMBER_MOST 40 /* characters */
#define TAG_MOST 200

void wb_hdr_log_init(struct wb_hdr_log *log, const char *text, size_t n)
{
    *log = (struct wb_hdr_log){.p = text, .end = text + n};
}

/* A number of n characters; NaN when it is none, or of no time's size. */
static double number(const char *s, size_t n)
{
    char text[NUMBER_MOST + 1];
    double v;

    while (n > 0 && *s == ' ') {
        s++;
        n--;
    }
    if (n == 0 || n > NUMBER_MOST)
        return NAN;
    memcpy(text, s, n);
    text[n] = '\0';
    return wb_parse_real(text, -TIME_MOST, TIME_MOST, &v, NULL) == 0 ? v : NAN;
}

static bool begins(const char *s, size_t n, const char *with)
{
    size_t k = strlen(with);

    return n >= k && memcmp(s, with, k) == 0;
}

/* "#[StartTime: 1441812279.474 (seconds since epoch), ...]" and the like. */
static int read_comment(struct wb_hdr_log *log, const char *s, size_t n, struct wb_err *err)
{
    static const char *const words[] = {"#[StartTime:", "#[BaseTime:"};
    double v;
    size_t at, length = 0;

    log->seen_log = true;
    for (size_t i = 0; i < WB_LEN(words); i++) {
        if (!begins(s, n, words[i]))
            continue;
        at = strlen(words[i]);
        while (at < n && s[at] == ' ')
            at++;
        while (at + length < n && strchr(" ]", s[at + length]) == NULL)
            length++;
        v = number(s + at, length);
        if (isnan(v))
            return wb_fail(err, WB_CORRUPT, "%s is no time in seconds since 1970",
                           i == 0 ? "StartTime" : "BaseTime");
        if (i == 0) {
            log->start = v;
            log->has_start = true;
            if (!log->has_first)
                log->first = v;
            log->has_first = true;
        } else {
            log->base = v;
            log->has_base = true;
        }
    }
    return 0;
}

static double seconds_from_first(struct wb_hdr_log *log, double stamp)
{
    double base = 0;

    if (log->has_base)
        base = log->base;
    else if (log->has_start && stamp < log->start - YEAR_S)
        base = log->start;
    if (!log->has_first)
        log->first = base + stamp;
    log->has_first = true;
    return base + stamp - log->first;
}

/* The field up to the next comma; false when there is none. */
static bool next_field(const char **s, size_t *n, const char **field, size_t *length)
{
    const char *comma = memchr(*s, ',', *n);

    if (comma == NULL)
        return false;
    *field = *s;
    *length = (size_t)(comma - *s);
    *n -= *length + 1;
    *s = comma + 1;
    return true;
}

static int read_entry(struct wb_hdr_log *log, const char *s, size_t n, struct wb_hdr_entry *e,
                      struct wb_err *err)
{
    static const char *const names[] = {"start", "length", "maximum"};
    struct wb_hdr_entry found = {0};
    double v[WB_LEN(names)];
    const char *field;
    size_t length;

    if (begins(s, n, "Tag=")) {
        if (!next_field(&s, &n, &field, &length))
            return wb_fail(err, WB_CORRUPT, "nothing follows the tag");
        found.tag = field + 4;
        found.tag_n = length - 4;
        if (found.tag_n == 0 || found.tag_n > TAG_MOST)
            return wb_fail(err, WB_CORRUPT, "a tag of %zu characters, allowed are 1 to %d",
                           found.tag_n, TAG_MOST);
    }
    for (size_t i = 0; i < WB_LEN(names); i++) {
        if (!next_field(&s, &n, &field, &length))
            return wb_fail(err, WB_CORRUPT, "an entry needs start, length, maximum and histogram");
        v[i] = number(field, length);
        if (isnan(v[i]))
            return wb_fail(err, WB_CORRUPT, "the %s is no number", names[i]);
    }
    found.from_s = seconds_from_first(log, v[0]);
    found.length_s = v[1];
    found.text = s;
    found.n = n;
    log->seen_log = true;
    *e = found;
    return 1;
}

int wb_hdr_log_next(struct wb_hdr_log *log, struct wb_hdr_entry *e, struct wb_err *err)
{
    while (log->p < log->end) {
        const char *s = log->p, *nl = memchr(s, '\n', (size_t)(log->end - s));
        size_t n = (size_t)((nl != NULL ? nl : log->end) - s);
        log->p = nl != NULL ? nl + 1 : log->end;
        log->line++;
        while (n > 0 && (s[n - 1] == '\r' || s[n - 1] == ' '))
            n--;
        if (n == 0)
            continue;
        if (*s == '#') {
            if (read_comment(log, s, n, err) < 0)
                return -WB_CORRUPT;
        } else if (*s == '"') {
            log->seen_log = true;
        } else {
            return read_entry(log, s, n, e, err);
        }
    }
    return 0;
}
