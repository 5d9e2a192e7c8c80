#include "runners/load/links.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/file.h"
#include "server/base/mem.h"

/* "  eth0: RX_BYTES 7 more fields TX_BYTES ...": false when it is no such line. */
static bool parse_line(const char *line, struct wb_link *out)
{
    const char *colon = strchr(line, ':');
    size_t n;
    char *p;

    line += strspn(line, " ");
    if (!colon || colon < line)
        return false;
    n = (size_t)(colon - line);
    if (n == 0 || n >= sizeof(out->name) || memchr(line, '\n', n))
        return false;
    memcpy(out->name, line, n);
    out->name[n] = 0;
    p = (char *)(uintptr_t)(colon + 1);
    for (int i = 0; i <= 8; i++) {
        const char *before = p;
        int64_t v = strtoll(p, &p, 10);
        if (p == before)
            return false;
        if (i == 0)
            out->received = v;
        if (i == 8)
            out->sent = v;
    }
    return true;
}

void wb_links_read(const char *proc, const char *sys, struct wb_links *out)
{
    WB_AUTO_FREE char *path = wb_strf("%s/net/dev", proc);
    struct wb_buf b = WB_BUF_INIT(1 << 20);

    out->n = 0;
    if (wb_file_read_small(path, &b, NULL) == 0) {
        for (const char *line = wb_buf_str(&b); *line && out->n < WB_LINKS_MAX;) {
            struct wb_link link = {.mbit_per_s = 0};
            if (parse_line(line, &link) && strcmp(link.name, "lo") != 0) {
                WB_AUTO_FREE char *speed = wb_strf("%s/class/net/%s/speed", sys, link.name);
                WB_AUTO_FREE char *device = wb_strf("%s/class/net/%s/device", sys, link.name);
                if (wb_path_exists(device) &&
                    wb_file_read_int(speed, &link.mbit_per_s, NULL) == 0 && link.mbit_per_s > 0)
                    out->link[out->n++] = link;
            }
            line += strcspn(line, "\n");
            line += *line == '\n';
        }
    }
    wb_buf_release(&b);
}

double wb_links_busiest(const struct wb_links *from, const struct wb_links *to, double seconds,
                        const char **name)
{
    double most = -1;

    for (int i = 0; i < to->n && seconds > 0; i++) {
        const struct wb_link *b = &to->link[i];
        for (int k = 0; k < from->n; k++) {
            const struct wb_link *a = &from->link[k];
            int64_t in = b->received - a->received, out = b->sent - a->sent;
            double percent =
                100.0 * 8 * (double)(in > out ? in : out) / seconds / ((double)b->mbit_per_s * 1e6);
            if (strcmp(a->name, b->name) == 0 && percent > most) {
                most = percent;
                *name = b->name;
            }
        }
    }
    return most;
}
