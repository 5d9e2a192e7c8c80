/*
 * `list hosts`: the hosts that records are from, and what this one does now.
 */
#ifndef WB_CLI_LIST_HOSTS_H
#define WB_CLI_LIST_HOSTS_H

#include "server/cli/cli.h"
#include "server/record/query.h"

/* Prints them: items as wb_store_hosts has them; the one of this machine, which is there also
 * without runs, has "here": true, "state" ("free", "busy", "quarantined", "unknown") and, unless it
 * is free, "text" beside. */
int wb_cli_list_hosts(const struct wb_cli *cli, struct wb_store *s, const struct wb_query *q,
                      struct wb_err *err) WB_MUST_CHECK;

/* Prints those of a server, as GET /api/v1/hosts has them. */
void wb_cli_print_machines(const struct wb_cli *cli, const wb_json *items);

#endif
