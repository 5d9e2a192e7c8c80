/* `value CAMPAIGN...`: what operations cost by a price book, one campaign or several on other
 * hosts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/campaign_value.h"
#include "server/base/units.h"
#include "server/cli/commands.h"
#include "server/cli/config.h"
#include "server/cli/refs.h"

#define OUT_MAX (16u << 20)
#define HOSTS_MAX 10000
#define SLO_MOST_NS (3600ll * 1000000000)

struct options {
    const char *book, *slo, *metric;
    int64_t hosts;
    bool force;
};

static int read_slo(const struct options *o, double *ms, struct wb_err *err)
{
    int64_t ns;

    *ms = NAN;
    if (o->slo == NULL)
        return 0;
    if (wb_parse_duration(o->slo, 1, SLO_MOST_NS, &ns, err) < 0)
        return wb_wrap(err, "--slo");
    *ms = (double)ns / 1e6;
    return 0;
}

/* All campaigns against the first: hosts are what is compared, the rest must match. */
static int guard(const struct wb_cli_ref *refs, size_t n, bool force, wb_json *warnings,
                 wb_json *forced, struct wb_err *err)
{
    static const char *const compared[] = {"host.class", "host.cpu_model", NULL};
    int rc = 0;

    for (size_t i = 1; i < n && rc == 0; i++)
        if (strcmp(refs[0].campaign, refs[i].campaign) != 0)
            rc = wb_cli_ref_guard(&refs[0], &refs[i], force, compared, warnings, forced, err);
    return rc;
}

static int report_of(const struct wb_cli_ref *refs, size_t n, const struct options *o,
                     wb_json **out, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *notes = wb_json_array(), *forced = wb_json_array();
    struct wb_value_source *sources = wb_calloc(n, sizeof(*sources));
    struct wb_value_question q = {.metric = o->metric, .hosts = o->hosts};
    struct wb_book book = {0};
    int rc = read_slo(o, &q.slo_p99_ms, err);

    if (rc == 0)
        rc = wb_book_read(o->book, &book, err);
    if (rc == 0)
        rc = guard(refs, n, o->force, notes, forced, err);
    for (size_t i = 0; i < n; i++) {
        const char *slash = strchr(refs[i].typed, '/');
        WB_AUTO_FREE char *prefix = wb_strndup(
            refs[i].typed, slash ? (size_t)(slash - refs[i].typed) : strlen(refs[i].typed));
        sources[i] = (struct wb_value_source){.plan = refs[i].plan,
                                              .summaries = refs[i].runs,
                                              .prefix = n > 1 ? WB_STEAL(prefix) : NULL,
                                              .arm = refs[i].arm};
    }
    q.book = &book;
    if (rc == 0)
        rc = wb_campaign_value(sources, n, &q, out, err);
    for (size_t i = 0; i < wb_json_len(notes) && rc == 0; i++)
        wb_json_push(wb_json_get(*out, "warnings"), wb_json_ref(wb_json_at(notes, i)));
    if (rc == 0 && wb_json_len(forced) > 0)
        wb_json_set(*out, "forced", WB_STEAL(forced));
    for (size_t i = 0; i < n; i++) {
        char *prefix = (char *)(uintptr_t)sources[i].prefix;
        free(prefix);
    }
    free(sources);
    wb_book_release(&book);
    return rc;
}

static int value(const struct wb_cli *cli, const void *opts, int argc, char **argv)
{
    struct options given = *(const struct options *)opts;
    const struct options *o = &given;
    struct wb_cli_ref *refs = wb_calloc((size_t)argc, sizeof(*refs));
    struct wb_buf out = WB_BUF_INIT(OUT_MAX);
    struct wb_err err = WB_ERR_INIT;
    struct wb_store *s = NULL;
    wb_json *report = NULL;
    int rc = 0;

    if (o->book == NULL)
        given.book = wb_config_get(cli->config, WB_SET_PRICE_BOOK);
    if (o->book == NULL)
        rc = wb_fail(
            &err, WB_INVALID,
            "name a price book with --book FILE: book, date, currency, source, and hosts, a "
            "list of {class, per_hour}");
    if (rc == 0)
        rc = wb_cli_open_store(cli, &s, &err);
    for (int i = 0; i < argc && rc == 0; i++)
        rc = wb_cli_ref_read(s, argv[i], &refs[i], &err);
    if (rc == 0)
        rc = report_of(refs, (size_t)argc, o, &report, &err);
    if (rc == 0 && cli->json) {
        wb_cli_answer(cli, report, NULL);
    } else if (rc == 0) {
        wb_campaign_value_print(report, cli->width, &out);
        wb_json_free(report);
        wb_cli_print(&out);
    }
    for (int i = 0; i < argc; i++)
        wb_cli_ref_release(&refs[i]);
    free(refs);
    wb_store_close(s);
    return rc < 0 ? wb_cli_fail(cli, &err) : WB_EXIT_OK;
}

static const struct wb_opt value_opts[] = {
    {"book", 0, WB_OPT_TEXT, offsetof(struct options, book), "FILE", 0, 0,
     "price book: book, date, currency, source, hosts (setting price.book)"},
    {"slo", 0, WB_OPT_TEXT, offsetof(struct options, slo), "TIME", 0, 0,
     "p99 that a throughput must keep to count (such as 5ms)"},
    {"metric", 0, WB_OPT_TEXT, offsetof(struct options, metric), "NAME", 0, 0,
     "the throughput that is priced"},
    {"hosts", 0, WB_OPT_INT, offsetof(struct options, hosts), "N", 1, HOSTS_MAX,
     "database hosts that are paid for (the plan's)"},
    {"force", 0, WB_OPT_FLAG, offsetof(struct options, force), NULL, 0, 0,
     "set side by side also what does not compare; the answer says so"},
    {0},
};

const struct wb_command wb_cmd_value = {
    .name = "value",
    .args = "CAMPAIGN...",
    .summary = "what a million operations cost, by a price book",
    .help = "Prices are not in the records: another book prices old runs anew. A row of hosts has\n"
            "class (as in the record; a '*' at the end stands for any rest) and per_hour, or for\n"
            "owned hardware purchase, years, power_w and per_kwh. Load hosts are not paid for.\n"
            "With --slo the greatest throughput of a phase whose p99 keeps it counts.\n",
    .opts = value_opts,
    .opts_size = sizeof(struct options),
    .min_args = 1,
    .max_args = -1,
    .run = value,
};
