/* `value CAMPAIGN...`: what operations cost by a price book, one campaign or several on other
 * hosts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/analysis/campaign_value.h"
#include "server/base/units.h"
#include "server/cli/commands.h"
#include "server/cli/compare.h"
#include "server/cli/config.h"

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

static int answer(const struct wb_cli *cli, const struct options *o, int argc, char **argv,
                  wb_json **report, struct wb_err *err)
{
    const char *path = o->book ? o->book : wb_config_get(cli->config, WB_SET_PRICE_BOOK);
    struct wb_inquiry_value q = {.metric = o->metric, .hosts = o->hosts, .force = o->force};
    struct wb_book book = {0};
    struct wb_inquiry j = {0};
    int rc;

    if (path == NULL)
        return wb_fail(err, WB_INVALID,
                       "name a price book with --book FILE: book, date, currency, source, and "
                       "hosts, a list of {class, per_hour}");
    rc = wb_cli_inquiry(cli, &j, err);
    if (rc == 0)
        rc = read_slo(o, &q.slo_p99_ms, err);
    if (rc == 0)
        rc = wb_book_read(path, &book, err);
    q.book = &book;
    if (rc == 0)
        rc = wb_inquiry_value(&j, argv, (size_t)argc, &q, report, err);
    wb_cli_inquiry_release(&j);
    wb_book_release(&book);
    return rc;
}

static int value(const struct wb_cli *cli, const void *opts, int argc, char **argv)
{
    struct wb_buf out = WB_BUF_INIT(OUT_MAX);
    struct wb_err err = WB_ERR_INIT;
    wb_json *report = NULL;

    if (answer(cli, opts, argc, argv, &report, &err) < 0)
        return wb_cli_fail(cli, &err);
    if (cli->json) {
        wb_cli_answer(cli, report, NULL);
        return WB_EXIT_OK;
    }
    wb_campaign_value_print(report, cli->width, &out);
    wb_json_free(report);
    wb_cli_print(&out);
    return WB_EXIT_OK;
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
