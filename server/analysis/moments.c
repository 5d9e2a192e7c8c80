#include "server/analysis/moments.h"

#include <math.h>

#define FRACTION_STEPS 10000
#define HALVINGS 200

double wb_sum(const double *v, size_t n)
{
    double sum = 0, lost = 0;

    for (size_t i = 0; i < n; i++) {
        double t = sum + v[i];
        lost += fabs(sum) >= fabs(v[i]) ? (sum - t) + v[i] : (v[i] - t) + sum;
        sum = t;
    }
    return sum + lost;
}

double wb_mean(const double *v, size_t n)
{
    return wb_sum(v, n) / (double)n;
}

double wb_variance(const double *v, size_t n)
{
    double mean = n > 0 ? wb_mean(v, n) : NAN, squares = 0, rest = 0;

    if (n < 2)
        return NAN;
    for (size_t i = 0; i < n; i++) {
        squares += (v[i] - mean) * (v[i] - mean);
        rest += v[i] - mean;
    }
    squares -= rest * rest / (double)n; /* the mean itself is rounded */
    return squares > 0 ? squares / (double)(n - 1) : 0;
}

/* Continued fraction of the incomplete beta function, by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1), h;

    d = 1 / (fabs(d) < tiny ? tiny : d);
    h = d;
    for (int i = 1; i <= FRACTION_STEPS; i++) {
        double m = i;
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        double change;
        d = 1 + even * d;
        c = 1 + even / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = fabs(c) < tiny ? tiny : c;
        h *= d * c;
        d = 1 + odd * d;
        c = 1 + odd / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = fabs(c) < tiny ? tiny : c;
        change = d * c;
        h *= change;
        if (fabs(change - 1) < 1e-16)
            break;
    }
    return h;
}

/* I_x(a, b) */
static double incomplete_beta(double a, double b, double x)
{
    double front;

    if (x <= 0 || x >= 1)
        return x <= 0 ? 0 : 1;
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double wb_student_above(double t, double df)
{
    return incomplete_beta(df / 2, 0.5, df / (df + t * t)) / 2;
}

double wb_normal_below(double z)
{
    return erfc(-z / sqrt(2)) / 2;
}

double wb_normal_quantile(double p)
{
    double tail = p < 0.5 ? p : 1 - p, lo = 0, hi = 40; /* of the far side, z >= 0 */

    for (int i = 0; i < HALVINGS; i++) {
        double mid = lo / 2 + hi / 2;
        if (mid <= lo || mid >= hi)
            break;
        if (wb_normal_below(-mid) > tail)
            lo = mid;
        else
            hi = mid;
    }
    return p < 0.5 ? -hi : hi;
}

double wb_student_quantile(double p, double df)
{
    double lo = 0, hi = 1, tail = 1 - p;

    while (wb_student_above(hi, df) > tail && hi < 1e300)
        hi *= 2;
    for (int i = 0; i < HALVINGS; i++) {
        double mid = lo / 2 + hi / 2;
        if (mid <= lo || mid >= hi)
            break;
        if (wb_student_above(mid, df) > tail)
            lo = mid;
        else
            hi = mid;
    }
    return lo / 2 + hi / 2;
}
