#include "server/base/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/mem.h"

#define CPU_MAX 1024

/* A unit and how many of the smallest unit it has. */
struct unit {
    const char *name;
    int64_t factor;
};

static const struct unit multiples[] = {
    {"", 1}, {"k", 1000}, {"M", 1000000}, {"G", 1000000000}, {NULL, 0}};

static const struct unit byte_units[] = {
    {"", 1},
    {"B", 1},
    {"kB", 1000},
    {"MB", 1000000},
    {"GB", 1000000000},
    {"TB", 1000000000000},
    {"KiB", 1LL << 10},
    {"MiB", 1LL << 20},
    {"GiB", 1LL << 30},
    {"TiB", 1LL << 40},
    {NULL, 0},
};

static const struct unit time_units[] = {
    {"ns", 1},          {"us", 1000},         {"ms", 1000000},       {"s", 1000000000},
    {"m", 60000000000}, {"h", 3600000000000}, {"d", 86400000000000}, {NULL, 0},
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* One more digit; false when the number does not fit. */
static bool push_digit(int64_t *v, char digit)
{
    return !__builtin_mul_overflow(*v, 10, v) && !__builtin_add_overflow(*v, digit - '0', v);
}

/* Reads digits with single '_' between them, and with `fraction` a decimal part, as value =
 * whole * 10^-places. Returns what follows, NULL when it is no such number or does not fit. */
static const char *scan_decimal(const char *s, bool fraction, int64_t *whole, int *places)
{
    *whole = 0;
    *places = 0;
    if (!is_digit(*s))
        return NULL;
    for (; is_digit(*s) || (*s == '_' && is_digit(s[-1]) && is_digit(s[1])); s++)
        if (*s != '_' && !push_digit(whole, *s))
            return NULL;
    if (*s != '.')
        return s;
    if (!fraction || !is_digit(s[1]))
        return NULL;
    for (s++; is_digit(*s); s++)
        if (++*places > 9 || !push_digit(whole, *s))
            return NULL;
    return s;
}

static int64_t find_unit(const struct unit *units, const char *name)
{
    for (; units->name != NULL; units++)
        if (strcmp(units->name, name) == 0)
            return units->factor;
    return 0;
}

/* whole * 10^-places * factor, exactly; false when it is no integer or does not fit. */
static bool scale_exact(int64_t whole, int places, int64_t factor, int64_t *out)
{
    __int128 v = (__int128)whole * factor;

    for (; places > 0; places--) {
        if (v % 10 != 0)
            return false;
        v /= 10;
    }
    if (v > INT64_MAX)
        return false;
    *out = (int64_t)v;
    return true;
}

int wb_parse_int(const char *s, int64_t lo, int64_t hi, int64_t *out, struct wb_err *err)
{
    bool negative = s[0] == '-';
    int64_t whole, v, factor;
    int places;
    const char *end = scan_decimal(s + negative, false, &whole, &places);

    if (end == NULL || (factor = find_unit(multiples, end)) == 0 ||
        !scale_exact(whole, places, factor, &v))
        return wb_fail(err, WB_INVALID, "'%s' is not an integer (such as 42, 1_000_000 or 10k)", s);
    if (negative)
        v = -v;
    if (v < lo || v > hi)
        return wb_fail(err, WB_INVALID, "'%s' is out of range, allowed is %lld to %lld", s,
                       (long long)lo, (long long)hi);
    *out = v;
    return 0;
}

/* [+-]digits[.digits][e[+-]digits]: what strtod takes less its hexadecimal, "inf" and "nan". */
static bool plain_real(const char *s)
{
    if (*s == '-' || *s == '+')
        s++;
    if (!is_digit(*s))
        return false;
    while (is_digit(*s))
        s++;
    if (*s == '.') {
        if (!is_digit(*++s))
            return false;
        while (is_digit(*s))
            s++;
    }
    if (*s == 'e' || *s == 'E') {
        s++;
        if (*s == '-' || *s == '+')
            s++;
        if (!is_digit(*s))
            return false;
        while (is_digit(*s))
            s++;
    }
    return *s == '\0';
}

int wb_parse_real(const char *s, double lo, double hi, double *out, struct wb_err *err)
{
    double v;

    if (!plain_real(s))
        return wb_fail(err, WB_INVALID, "'%s' is not a number (such as 0.5 or 1e-3)", s);
    v = strtod(s, NULL);
    if (!isfinite(v) || v < lo || v > hi)
        return wb_fail(err, WB_INVALID, "'%s' is out of range, allowed is %g to %g", s, lo, hi);
    *out = v;
    return 0;
}

int wb_parse_bytes(const char *s, int64_t lo, int64_t hi, int64_t *out, struct wb_err *err)
{
    int64_t whole, v, factor;
    int places;
    const char *end = scan_decimal(s, true, &whole, &places);

    if (end == NULL || (factor = find_unit(byte_units, end)) == 0)
        return wb_fail(err, WB_INVALID,
                       "'%s' is not a size (such as 64B, 4KiB, 1MiB, 2GiB, 10kB or 5MB)", s);
    if (!scale_exact(whole, places, factor, &v))
        return wb_fail(err, WB_INVALID, "'%s' is not a whole number of bytes below 8 EiB", s);
    if (v < lo || v > hi)
        return wb_fail(err, WB_INVALID, "'%s' is out of range, allowed is %lld to %lld bytes", s,
                       (long long)lo, (long long)hi);
    *out = v;
    return 0;
}

int wb_parse_duration(const char *s, int64_t lo_ns, int64_t hi_ns, int64_t *out, struct wb_err *err)
{
    int64_t whole, v, factor;
    int places;
    const char *end = scan_decimal(s, true, &whole, &places);

    if (end != NULL && *end == '\0')
        return wb_fail(err, WB_INVALID, "'%s' has no unit: write %sms, %ss or %sm", s, s, s, s);
    if (end == NULL || (factor = find_unit(time_units, end)) == 0)
        return wb_fail(err, WB_INVALID,
                       "'%s' is not a duration (such as 500us, 20ms, 1.5s, 5m or 1h)", s);
    if (!scale_exact(whole, places, factor, &v))
        return wb_fail(err, WB_INVALID, "'%s' is not a whole number of nanoseconds below 292 years",
                       s);
    if (v < lo_ns || v > hi_ns) {
        struct wb_buf range = WB_BUF_INIT(128);
        int rc;
        wb_format_ns(lo_ns, &range);
        wb_buf_adds(&range, " to ");
        wb_format_ns(hi_ns, &range);
        rc = wb_fail(err, WB_INVALID, "'%s' is out of range, allowed is %s", s, wb_buf_str(&range));
        wb_buf_release(&range);
        return rc;
    }
    *out = v;
    return 0;
}

int wb_parse_rate(const char *s, double *out, struct wb_err *err)
{
    WB_AUTO_FREE char *text = wb_strdup(s);
    char *per = strstr(text, " per ");
    size_t n = strlen(text);
    int64_t whole, factor, per_ns = 1000000000;
    int places;
    const char *end;

    if (per) {
        int rc = wb_parse_duration(per + 5, 1, INT64_MAX, &per_ns, err);
        if (rc < 0) {
            (void)wb_wrap(err, "rate '%s'", s);
            return rc;
        }
        *per = '\0';
    } else if (n > 2 && strcmp(text + n - 2, "/s") == 0) {
        text[n - 2] = '\0';
    }
    end = scan_decimal(text, true, &whole, &places);
    if (end == NULL || (factor = find_unit(multiples, end)) == 0)
        return wb_fail(err, WB_INVALID,
                       "'%s' is not a rate (such as 100/s, 20k/s, 1.5M/s, 0.5/s or 1 per 7s)", s);
    if (whole == 0)
        return wb_fail(err, WB_INVALID, "'%s': a rate must be above 0", s);
    *out = (double)whole * (double)factor / pow(10, places);
    if (per)
        *out = *out * 1e9 / (double)per_ns;
    return 0;
}

int wb_parse_percent(const char *s, double lo, double hi, double *out, struct wb_err *err)
{
    WB_AUTO_FREE char *text = wb_strdup(s);
    size_t n = strlen(text);
    double v;

    if (n > 1 && text[n - 1] == '%')
        text[n - 1] = '\0';
    if (!plain_real(text))
        return wb_fail(err, WB_INVALID, "'%s' is not a percentage (such as 77%%)", s);
    v = strtod(text, NULL);
    if (!isfinite(v) || v < lo || v > hi)
        return wb_fail(err, WB_INVALID, "'%s' is out of range, allowed is %g%% to %g%%", s, lo, hi);
    *out = v;
    return 0;
}

/* ---- as regular expressions ---- */

#define DIGITS "[0-9]+(_[0-9]+)*"
#define DECIMAL DIGITS "([.][0-9]{1,9})?"
#define REAL "[+-]?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?"

/* "(k|M|G)", with a question mark where a number without unit is taken. */
static void add_units(const struct unit *units, struct wb_buf *out)
{
    bool bare = false, first = true;

    wb_buf_addc(out, '(');
    for (; units->name != NULL; units++) {
        if (units->name[0] == '\0') {
            bare = true;
            continue;
        }
        wb_buf_addf(out, "%s%s", first ? "" : "|", units->name);
        first = false;
    }
    wb_buf_adds(out, bare ? ")?" : ")");
}

void wb_unit_pattern(enum wb_unit_kind kind, struct wb_buf *out)
{
    wb_buf_addc(out, '^');
    switch (kind) {
    case WB_UNIT_INT:
        wb_buf_adds(out, "-?" DIGITS);
        add_units(multiples, out);
        break;
    case WB_UNIT_REAL:
        wb_buf_adds(out, REAL);
        break;
    case WB_UNIT_BYTES:
        wb_buf_adds(out, DECIMAL);
        add_units(byte_units, out);
        break;
    case WB_UNIT_DURATION:
        wb_buf_adds(out, DECIMAL);
        add_units(time_units, out);
        break;
    case WB_UNIT_RATE:
        wb_buf_adds(out, DECIMAL);
        add_units(multiples, out);
        wb_buf_adds(out, "(/s| per " DECIMAL);
        add_units(time_units, out);
        wb_buf_adds(out, ")?");
        break;
    case WB_UNIT_PERCENT:
        wb_buf_adds(out, REAL "%?");
        break;
    }
    wb_buf_addc(out, '$');
}

/* ---- CPU lists ---- */

static const char *scan_cpu(const char *s, int *out)
{
    int v = 0;

    if (!is_digit(*s))
        return NULL;
    for (; is_digit(*s); s++) {
        v = v * 10 + (*s - '0');
        if (v >= CPU_MAX)
            return NULL;
    }
    *out = v;
    return s;
}

int wb_parse_cpulist(const char *s, int **set, int *n, struct wb_err *err)
{
    bool in[CPU_MAX] = {false};
    const char *p = s;
    int count = 0;

    while (*p != '\0' && *p != '\n') {
        int from = 0, to;
        p = scan_cpu(p, &from);
        to = from;
        if (p != NULL && *p == '-')
            p = scan_cpu(p + 1, &to);
        if (p == NULL || to < from || (*p == ',' && !is_digit(p[1])) ||
            (*p != ',' && *p != '\0' && *p != '\n'))
            return wb_fail(err, WB_INVALID,
                           "'%s' is not a list of numbers below %d (such as "
                           "0-2,5)",
                           s, CPU_MAX);
        for (; from <= to; from++) {
            count += !in[from];
            in[from] = true;
        }
        p += *p == ',';
    }
    if (*p == '\n' && p[1] != '\0')
        return wb_fail(err, WB_INVALID, "'%s' is not one line with a list of numbers", s);
    *set = wb_calloc((size_t)count, sizeof(**set));
    *n = 0;
    for (int i = 0; i < CPU_MAX; i++)
        if (in[i])
            (*set)[(*n)++] = i;
    return 0;
}

void wb_format_cpulist(const int *set, int n, struct wb_buf *out)
{
    for (int i = 0; i < n; i++) {
        int first = set[i];
        while (i + 1 < n && set[i + 1] == set[i] + 1)
            i++;
        wb_buf_addf(out, first == set[0] ? "%d" : ",%d", first);
        if (set[i] != first)
            wb_buf_addf(out, "-%d", set[i]);
    }
}

/* ---- for people ---- */

void wb_format_count(double v, struct wb_buf *out)
{
    WB_AUTO_FREE char *s = NULL;
    double a = fabs(v);
    size_t n;

    if (!isfinite(v)) {
        wb_buf_addc(out, '-');
        return;
    }
    if (a < 99.95 && a != floor(a)) {
        wb_buf_addf(out, a < 9.995 ? "%.2f" : "%.1f", v);
        return;
    }
    s = wb_strf("%.0f", a);
    n = strlen(s);
    if (v < 0)
        wb_buf_addc(out, '-');
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            wb_buf_addc(out, ',');
        wb_buf_addc(out, s[i]);
    }
}

void wb_format_rate(double v, struct wb_buf *out)
{
    double a = fabs(v);

    /* The bounds are where rounding would reach the next unit. */
    if (!isfinite(v))
        wb_buf_addc(out, '-');
    else if (a < 9.995)
        wb_buf_addf(out, "%.2f/s", v);
    else if (a < 99.95)
        wb_buf_addf(out, "%.1f/s", v);
    else if (a < 999.5)
        wb_buf_addf(out, "%.0f/s", v);
    else if (a < 999.95e3)
        wb_buf_addf(out, "%.1fk/s", v / 1e3);
    else if (a < 999.95e6)
        wb_buf_addf(out, "%.1fM/s", v / 1e6);
    else
        wb_buf_addf(out, "%.1fG/s", v / 1e9);
}

/* Three significant digits, v in [0, 1000). */
static void add_three(double v, const char *unit, struct wb_buf *out)
{
    int places = v < 9.995 ? 2 : v < 99.95 ? 1 : 0;

    wb_buf_addf(out, "%.*f %s", places, v, unit);
}

void wb_format_ns(int64_t ns, struct wb_buf *out)
{
    uint64_t a = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    uint64_t s = (a + 500000000) / 1000000000; /* whole seconds, rounded */

    if (ns < 0)
        wb_buf_addc(out, '-');
    if (a < 1000)
        wb_buf_addf(out, "%llu ns", (unsigned long long)a);
    else if (a < 999500)
        add_three((double)a / 1e3, "us", out);
    else if (a < 999500000)
        add_three((double)a / 1e6, "ms", out);
    else if (a < 59950000000)
        wb_buf_addf(out, "%.1f s", (double)a / 1e9);
    else if (s < 3600)
        wb_buf_addf(out, "%llu m %02llu s", (unsigned long long)(s / 60),
                    (unsigned long long)(s % 60));
    else
        wb_buf_addf(out, "%llu h %02llu m", (unsigned long long)((s + 30) / 3600),
                    (unsigned long long)((s + 30) / 60 % 60));
}

void wb_format_bytes(int64_t v, struct wb_buf *out)
{
    static const char *const names[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double a = fabs((double)v);
    size_t i = 0;

    if (a < 1024) {
        wb_buf_addf(out, "%lld B", (long long)v);
        return;
    }
    for (a /= 1024; a >= 1023.95 && i + 1 < WB_LEN(names); i++)
        a /= 1024;
    wb_buf_addf(out, "%s%.1f %s", v < 0 ? "-" : "", a, names[i]);
}
