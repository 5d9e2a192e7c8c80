#include "runners/tools/output_parts.h"

#include <math.h>
#include <string.h>

int wb_output_hdr_name(const char *name, int *family, double *ns, struct wb_err *err)
{
    static const struct {
        const char *family;
        int index;
    } families[] = {{"service_", 0}, {"response_", 1}};
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};

    for (size_t f = 0; f < WB_LEN(families); f++)
        for (size_t u = 0; u < WB_LEN(units); u++) {
            size_t n = strlen(families[f].family);

            if (!strncmp(name, families[f].family, n) && !strcmp(name + n, units[u].unit)) {
                *family = families[f].index;
                *ns = units[u].ns;
                return 0;
            }
        }
    return wb_fail(err, WB_INVALID,
                   "'%.60s' is no family of times of an HDR log; allowed: service_UNIT, "
                   "response_UNIT (UNIT: ns, us, ms, s)",
                   name);
}

/* Adds src, whose values count in units of `ns`, as ns. */
static void add_scaled(struct wb_figures *f, int family, const struct wb_hist *src, double ns)
{
    struct wb_hist scaled;

    if (ns == 1) {
        wb_figures_add(f, family, src);
        return;
    }
    wb_hist_init_ns(&scaled);
    for (uint32_t i = 0; i < src->ncounts; i++) {
        uint64_t n = wb_hist_count_at(src, i);

        /* The middle of a bucket stands for what is in it. */
        if (n)
            wb_hist_record_n(
                &scaled,
                llround(((double)wb_hist_lower(src, i) + (double)wb_hist_upper(src, i)) / 2 * ns),
                n);
    }
    wb_figures_add(f, family, &scaled);
    wb_hist_release(&scaled);
}

/* The payload of a line "[Tag=T,]start,length,max,payload" when its tag is the wanted one. */
static bool payload_of(const char *line, size_t n, const char *tag, const char **payload,
                       size_t *len)
{
    size_t tag_len = strlen(tag);
    const char *end = line + n, *p = line;

    if (n == 0 || *line == '#' || *line == '"')
        return false;
    if (n > 4 && !strncmp(line, "Tag=", 4)) {
        const char *comma = memchr(line, ',', n);

        if (!comma || (size_t)(comma - line - 4) != tag_len || strncmp(line + 4, tag, tag_len) != 0)
            return false;
        p = comma + 1;
    } else if (tag_len) {
        return false;
    }
    for (int i = 0; i < 3 && p; i++) {
        p = memchr(p, ',', (size_t)(end - p));
        p = p ? p + 1 : NULL;
    }
    if (!p)
        return false;
    *payload = p;
    *len = (size_t)(end - p);
    return true;
}

int wb_output_hdr(const char *text, size_t n, const char *tag, int family, double ns,
                  struct wb_figures *f, bool *found, struct wb_err *err)
{
    for (size_t at = 0; at < n;) {
        const char *nl = memchr(text + at, '\n', n - at), *payload;
        size_t len = nl ? (size_t)(nl - text) - at : n - at, plen;
        struct wb_hist h = {0};
        int rc;

        if (len && text[at + len - 1] == '\r')
            len--;
        if (payload_of(text + at, len, tag, &payload, &plen)) {
            rc = wb_hist_decode(payload, plen, &h, err);
            if (rc < 0) {
                (void)wb_wrap(err, "interval of the HDR log%s", nl ? "" : ", which is cut off");
                if (err)
                    err->code = WB_PROTOCOL;
                return -WB_PROTOCOL;
            }
            add_scaled(f, family, &h, ns);
            wb_hist_release(&h);
            *found = true;
        }
        at = nl ? (size_t)(nl - text) + 1 : n;
    }
    return 0;
}
