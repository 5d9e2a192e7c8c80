/*
 * slo: a limit of the response time that phases at a rate are held to, and the search for the
 * highest rate that holds it.
 */
#include <stdlib.h>
#include <string.h>

#include "runners/load/search.h"
#include "server/base/fields.h"
#include "server/study/parts.h"

#define FROM " from "

struct raw_slo {
    int64_t p50, p90, p95, p99, p99_9, p99_99, max;
    bool search;
};

#define AT(m) offsetof(struct raw_slo, m)
#define LIMIT(key, member, help)                                       \
    {                                                                  \
        key, WB_F_DURATION, false, AT(member), 1e3, 3600e9, NULL, help \
    }
static const struct wb_field fields[] = {
    LIMIT("p50", p50, "the median of the response time is at most this"),
    LIMIT("p90", p90, "the same of 90 %"),
    LIMIT("p95", p95, "95 %"),
    LIMIT("p99", p99, "99 %, such as 5ms"),
    LIMIT("p99.9", p99_9, "99.9 %"),
    LIMIT("p99.99", p99_99, "99.99 %"),
    LIMIT("max", max, "and of all"),
    {"search", WB_F_BOOL, false, AT(search), 0, 0, NULL,
     "after the steps of a list of rates, look for the highest rate that holds the limit"},
};
#undef LIMIT
#undef AT

/* Figures of a latency in a result, in the order of the fields. */
static const char *const figures[] = {"p50_ms",   "p90_ms",    "p95_ms", "p99_ms",
                                      "p99_9_ms", "p99_99_ms", "max_ms"};

void wb_study_slo(struct wb_setup *s, const struct wb_node *n, struct wb_problems *p)
{
    struct raw_slo raw = {0};
    int64_t *limits[] = {&raw.p50, &raw.p90, &raw.p95, &raw.p99, &raw.p99_9, &raw.p99_99, &raw.max};
    int given = 0;

    if (wb_fields_read(n, "slo", fields, WB_LEN(fields), &raw, p) > 0)
        return;
    for (size_t i = 0; i < WB_LEN(limits); i++) {
        if (*limits[i] == 0)
            continue;
        given++;
        s->slo.figure = figures[i];
        s->slo.limit_ms = (double)*limits[i] / 1e6;
        free(s->slo.text);
        s->slo.text = wb_strf("%s<%s", fields[i].key, wb_node_get(n, fields[i].key)->text);
    }
    s->slo.search = raw.search;
    if (given != 1)
        wb_problem(p, n, given ? "contradiction" : "missing",
                   "slo has one limit, such as {p99: 5ms, search: true}");
}

bool wb_study_search_rate(struct wb_phase *ph, const char *text, struct wb_err *err)
{
    if (strncmp(text, "search", 6) != 0)
        return false;
    ph->pace = WB_PACE_SEARCH;
    text += 6;
    if (*text != '\0' && strncmp(text, FROM, sizeof FROM - 1) != 0)
        (void)wb_fail(err, WB_INVALID, "behind search stands 'from' and a rate, or nothing");
    else if (*text != '\0')
        WB_IGNORE(wb_parse_rate(text + sizeof FROM - 1, &ph->rate_per_s, err));
    return true;
}

void wb_study_slo_check(const struct wb_setup *s, const struct wb_node *slo,
                        const struct wb_node *phases, struct wb_problems *p)
{
    size_t searches = 0, open = 0;

    for (size_t i = 0; i < s->nphases; i++) {
        searches += s->phases[i].pace == WB_PACE_SEARCH;
        open += s->phases[i].pace != WB_PACE_MAX;
    }
    if (searches > 0 && !slo)
        wb_problem(p, phases, "missing",
                   "rate: search needs the limit that is to hold: slo: {p99: 5ms}");
    else if (slo && s->slo.search && searches == 0)
        wb_problem(p, slo, "contradiction",
                   "search: true needs a phase that searches: one with rate: search, or one with a "
                   "list of rates");
    else if (slo && open == 0)
        wb_problem(p, slo, "contradiction",
                   "slo holds response times to a limit, and no phase has any: give one a rate, or "
                   "rate: search");
}

wb_json *wb_slo_schema(void)
{
    return wb_schema_map(fields, WB_LEN(fields));
}
