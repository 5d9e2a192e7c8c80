/*
 * What operations cost: arithmetic of prices, in one place. Money is of any one currency; the keys
 * of `stats price` say usd.
 */
#ifndef WB_ANALYSIS_PRICE_H
#define WB_ANALYSIS_PRICE_H

#include <stdbool.h>
#include <stddef.h>

#define WB_HOURS_OF_YEAR 8760.0
#define WB_HOURS_OF_MONTH 730.0

struct wb_owned_price {
    double purchase, years; /* written off evenly */
    double power_w, per_kwh;
};
double wb_owned_per_hour(const struct wb_owned_price *p);

/* Cost of a million operations at a rate > 0. */
double wb_cost_per_million(double per_hour, double ops_per_s);

/* One candidate of a choice: cost is better low, the second is better low or high. NaN in either
 * keeps it out. */
struct wb_choice {
    double cost, value;
    bool in_set; /* set by wb_pareto */
};
/* Marks those that no other beats in one without losing in the other. */
void wb_pareto(struct wb_choice *v, size_t n, bool value_high);

#endif
