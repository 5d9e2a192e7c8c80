/*
 * The honest fake: hosts that are names for this machine, to prove queue and leases. What is left
 * on one is the text of a file of its name in the folder of sources.
 */
#include <stdlib.h>
#include <string.h>

#include "provisioners/hosts/source.h"
#include "server/base/fields.h"
#include "server/base/file.h"
#include "server/base/mem.h"

#define LEFT_MAX 4096u

struct raw {
    char *source, *kind;
    int64_t count;
    const struct wb_node *hosts;
};
static const struct wb_field fields[] = {
    {"source", WB_F_TEXT, true, offsetof(struct raw, source), 0, 0, NULL, "fake"},
    {"class", WB_F_NAME, false, offsetof(struct raw, kind), 0, 0, NULL, "of all its hosts"},
    {"count", WB_F_INT, false, offsetof(struct raw, count), 1, WB_POOL_HOSTS_MAX, NULL,
     "so many, with the pool's name and a number"},
    {"hosts", WB_F_NODE, false, offsetof(struct raw, hosts), 0, 0, NULL,
     "names, or {name, class, machine}"},
};
struct raw_host {
    char *name, *kind, *machine;
};
static const struct wb_field host_fields[] = {
    {"name", WB_F_TEXT, true, offsetof(struct raw_host, name), 0, 0, NULL, "lab1"},
    {"class", WB_F_NAME, false, offsetof(struct raw_host, kind), 0, 0, NULL, "big"},
    {"machine", WB_F_TEXT, false, offsetof(struct raw_host, machine), 0, 0, NULL,
     "which machine it is, when another name has it, too"},
};

static void add_host(const struct wb_node *n, const char *kind, struct wb_host_pool *pool,
                     struct wb_problems *p)
{
    struct raw_host h = {0};
    size_t faults = 0;

    if (n->kind == WB_NODE_TEXT)
        h.name = wb_strdup(n->text);
    else
        faults = wb_fields_read(n, "host", host_fields, WB_LEN(host_fields), &h, p);
    if (!faults && (!wb_safe_name(h.name) || (h.machine && !wb_safe_name(h.machine))))
        wb_problem(p, n, "bad-name", "a host's name is of letters, digits, . _ @ and -");
    else if (!faults)
        wb_host_pool_add(pool, h.name, h.machine, h.kind ? h.kind : kind);
    wb_fields_release(host_fields, WB_LEN(host_fields), &h);
}

static void fake_read(const struct wb_node *n, struct wb_host_pool *pool, struct wb_problems *p)
{
    struct raw raw = {0};
    const char *kind;

    if (wb_fields_read(n, pool->name, fields, WB_LEN(fields), &raw, p) == 0) {
        kind = raw.kind ? raw.kind : "fake";
        if (!raw.count == !raw.hosts)
            wb_problem(p, n, "missing", "pool %s has hosts or a count, one of the two", pool->name);
        for (int64_t i = 1; i <= raw.count; i++) {
            WB_AUTO_FREE char *name = wb_strf("%s-%lld", pool->name, (long long)i);

            wb_host_pool_add(pool, name, NULL, kind);
        }
        if (raw.hosts && raw.hosts->kind != WB_NODE_LIST)
            wb_problem(p, raw.hosts, "wrong-type", "hosts is a list");
        for (size_t i = 0; raw.hosts && raw.hosts->kind == WB_NODE_LIST && i < raw.hosts->n; i++)
            add_host(raw.hosts->items[i], kind, pool, p);
    }
    wb_fields_release(fields, WB_LEN(fields), &raw);
}

static int fake_look(const struct wb_host_pool *pool, const struct wb_host *host,
                     struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("%s/%s", pool->dir, host->machine);
    WB_AUTO_FREE char *left = NULL;
    size_t n = 0;
    int rc;

    if (!wb_path_exists(path))
        return 0;
    rc = wb_file_read(path, LEFT_MAX, &left, &n, err);
    return rc < 0 ? rc : wb_fail(err, WB_CONFLICT, "%s", n ? left : "something is left");
}

const struct wb_host_source_ops wb_host_fake = {.name = "fake",
                                                .summary = "names for this machine",
                                                .this_machine = true,
                                                .read = fake_read,
                                                .look = fake_look};
