#include "server/base/clock.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/base/mem.h"

struct wb_clock {
    int64_t mono_ns;
    int64_t unix_ms;
    int64_t rest_ns; /* advanced by less than a millisecond, not yet in unix_ms */
};

int64_t wb_now_ns(const struct wb_clock *c)
{
    struct timespec t;

    if (c != NULL)
        return c->mono_ns;
    (void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail for this clock */
    return (int64_t)t.tv_sec * WB_SEC + t.tv_nsec;
}

int64_t wb_now_unix_ms(const struct wb_clock *c)
{
    struct timespec t;

    if (c != NULL)
        return c->unix_ms;
    (void)clock_gettime(CLOCK_REALTIME, &t); /* cannot fail for this clock */
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / WB_MS;
}

struct wb_clock *wb_clock_fake(int64_t mono_ns, int64_t unix_ms)
{
    struct wb_clock *c = wb_calloc(1, sizeof(*c));

    c->mono_ns = mono_ns;
    c->unix_ms = unix_ms;
    return c;
}

void wb_clock_advance(struct wb_clock *c, int64_t ns)
{
    c->mono_ns += ns;
    c->rest_ns += ns;
    c->unix_ms += c->rest_ns / WB_MS;
    c->rest_ns %= WB_MS;
}

void wb_clock_free(struct wb_clock *c)
{
    free(c);
}

/* Days since 1970-01-01 of a date in the proleptic Gregorian calendar, counted in years that
 * begin in March so that the leap day comes last. */
static int64_t days_from_date(int64_t year, int month, int day)
{
    int64_t y = year - (month <= 2), era = (y >= 0 ? y : y - 399) / 400;
    int64_t of_era = y - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

void wb_format_time(int64_t unix_ms, struct wb_buf *out)
{
    int64_t s = unix_ms / 1000, ms = unix_ms % 1000;
    struct tm tm;
    time_t t;

    if (ms < 0) {
        ms += 1000;
        s--;
    }
    t = (time_t)s;
    if (gmtime_r(&t, &tm) == NULL) {
        wb_buf_adds(out, "out of range");
        return;
    }
    wb_buf_addf(out, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900, tm.tm_mon + 1,
                tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)ms);
}

/* Reads exactly n digits at *p, moves *p behind them. */
static bool digits(const char **p, int n, int *out)
{
    int v = 0;

    for (; n > 0; n--, ++*p) {
        if (**p < '0' || **p > '9')
            return false;
        v = v * 10 + (**p - '0');
    }
    *out = v;
    return true;
}

static bool literal(const char **p, const char *choice)
{
    if (**p == '\0' || strchr(choice, **p) == NULL)
        return false;
    ++*p;
    return true;
}

/* An optional ".ddd..." as milliseconds, cut, not rounded. */
static bool fraction(const char **p, int *ms)
{
    int weight = 100, n = 0;

    *ms = 0;
    if (**p != '.')
        return true;
    for (++*p; **p >= '0' && **p <= '9' && n <= 9; ++*p, n++, weight /= 10)
        *ms += (**p - '0') * weight;
    return n >= 1 && n <= 9;
}

/* "Z" or "+hh:mm" as minutes east of UTC. */
static bool zone(const char **p, int *minutes)
{
    int h, m, sign = **p == '-' ? -1 : 1;

    *minutes = 0;
    if (literal(p, "Zz"))
        return true;
    if (!literal(p, "+-") || !digits(p, 2, &h) || !literal(p, ":") || !digits(p, 2, &m) || h > 23 ||
        m > 59)
        return false;
    *minutes = sign * (h * 60 + m);
    return true;
}

static int month_days(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return days[month - 1] + (month == 2 && leap);
}

int wb_parse_time(const char *s, int64_t *unix_ms, struct wb_err *err)
{
    const char *p = s;
    int year, month, day, h, m, sec, ms, east;
    bool shape = digits(&p, 4, &year) && literal(&p, "-") && digits(&p, 2, &month) &&
                 literal(&p, "-") && digits(&p, 2, &day) && literal(&p, "Tt ") &&
                 digits(&p, 2, &h) && literal(&p, ":") && digits(&p, 2, &m) && literal(&p, ":") &&
                 digits(&p, 2, &sec) && fraction(&p, &ms) && zone(&p, &east) && *p == '\0';

    if (!shape)
        return wb_fail(err, WB_INVALID,
                       "'%s' is not a time with zone (such as "
                       "2026-11-30T15:41:49Z or 2026-11-30T16:41:49.123+01:00)",
                       s);
    if (month < 1 || month > 12 || day < 1 || day > month_days(year, month) || h > 23 || m > 59 ||
        sec > 59)
        return wb_fail(err, WB_INVALID, "'%s' is not a date and time that exists", s);
    *unix_ms = ((days_from_date(year, month, day) * 24 + h) * 60 + m - east) * 60000 +
               (int64_t)sec * 1000 + ms;
    return 0;
}
