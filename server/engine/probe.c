#include "server/engine/probe.h"

#include <string.h>

#include "server/base/buf.h"

/* Complaints beyond this many are only counted: the text of an error is bounded. */
#define NAMED_MAX 6

static bool version_matches(const char *asked, const char *found, bool allow_suffix)
{
    size_t n = strlen(asked);

    if (!strcmp(asked, found))
        return true;
    return allow_suffix && !strncmp(asked, found, n) && (found[n] == '-' || found[n] == '+') &&
           found[n + 1];
}

static void version_complaint(struct wb_buf *b, const char *asked, const char *found, size_t node)
{
    size_t n = strlen(asked);

    if (b->len)
        wb_buf_adds(b, "; ");
    if (!found)
        wb_buf_addf(b, "version of node %zu unknown, asked %s", node, asked);
    else if (!strncmp(found, asked, n))
        wb_buf_addf(b, "node %zu runs %.100s, which is not %s", node, found, asked);
    else
        wb_buf_addf(b, "node %zu runs %.100s, asked %s", node, found, asked);
}

static int complain(struct wb_buf *b, size_t bad, struct wb_err *err)
{
    int rc = 0;

    if (bad > NAMED_MAX)
        wb_buf_addf(b, "; and %zu more", bad - NAMED_MAX);
    if (bad)
        rc = wb_fail(err, WB_CONFLICT, "%s", wb_buf_str(b));
    wb_buf_release(b);
    return rc;
}

int wb_probe_check_suffix(const char *asked, bool allow_suffix, const wb_json *probes,
                          struct wb_err *err)
{
    struct wb_buf b = WB_BUF_INIT(8192);
    size_t bad = 0;

    if (wb_json_type(probes) != WB_JSON_ARRAY || wb_json_len(probes) == 0)
        return wb_fail(err, WB_CONFLICT, "no node was probed for its version, asked %s", asked);
    for (size_t i = 0; i < wb_json_len(probes); i++) {
        const char *found = wb_json_string(wb_json_get(wb_json_at(probes, i), "version"));

        if (found && !*found)
            found = NULL;
        if (found && version_matches(asked, found, allow_suffix))
            continue;
        if (++bad <= NAMED_MAX)
            version_complaint(&b, asked, found, i + 1);
    }
    return complain(&b, bad, err);
}

int wb_probe_check(const char *asked, const wb_json *probes, struct wb_err *err)
{
    return wb_probe_check_suffix(asked, false, probes, err);
}

int wb_settings_check(const struct wb_setting *want, size_t n, const wb_json *probe,
                      struct wb_err *err)
{
    const wb_json *settings = wb_json_get(probe, "settings");
    struct wb_buf b = WB_BUF_INIT(8192);
    size_t bad = 0;

    for (size_t i = 0; i < n; i++) {
        const wb_json *value = wb_json_get(settings, want[i].name);
        const char *found = wb_json_string(value);

        if (found && !strcmp(found, want[i].value))
            continue;
        if (++bad > NAMED_MAX)
            continue;
        wb_buf_addf(&b, "%ssetting %s: asked '%.80s', ", b.len ? "; " : "", want[i].name,
                    want[i].value);
        if (found)
            wb_buf_addf(&b, "found '%.80s'", found);
        else
            wb_buf_adds(&b, value ? "found something that is not text" : "not reported back");
    }
    return complain(&b, bad, err);
}
