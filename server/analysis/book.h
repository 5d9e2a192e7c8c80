/*
 * A price book: a dated file with prices of host classes. Records hold no prices, so any book
 * prices any campaign, old or new.
 *
 *     book: lab-2026
 *     date: 2026-11-01
 *     currency: EUR
 *     source: invoices 4711 and 4712, power at the tariff of 2026
 *     hosts:
 *       - {class: "AMD EPYC 7443P, 48 CPUs, 256 GiB", per_hour: 1.20}
 *       - {class: "Intel(R) Xeon(R)*", purchase: 9000, years: 4, power_w: 350, per_kwh: 0.31}
 */
#ifndef WB_ANALYSIS_BOOK_H
#define WB_ANALYSIS_BOOK_H

#include <stdbool.h>
#include <stddef.h>

#include "server/base/err.h"

struct wb_book_host {
    char *class;     /* as records have it; a '*' at the end stands for any rest */
    double per_hour; /* of one host; owned hardware: written off and powered as if always used */
    bool owned;
};

struct wb_book {
    char *name, *date, *currency, *source;
    struct wb_book_host *hosts;
    size_t nhosts;
};

/* WB_INVALID names file, line and key of the first problem and how many more there are. */
int wb_book_parse(const char *file, const char *text, size_t n, struct wb_book *out,
                  struct wb_err *err) WB_MUST_CHECK;
int wb_book_read(const char *path, struct wb_book *out, struct wb_err *err) WB_MUST_CHECK;
void wb_book_release(struct wb_book *b);

/* The row of a host class: the exact one, else the longest one with a '*'; NULL when there is
 * none. */
const struct wb_book_host *wb_book_find(const struct wb_book *b, const char *class);

#endif
