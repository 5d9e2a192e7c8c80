#include "provisioners/forms/docker_stream.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/mem.h"

static int start_frame(struct wb_demux *d, struct wb_err *err)
{
    const unsigned char *h = d->header;

    if (h[0] > WB_STREAM_ENGINE || h[1] || h[2] || h[3])
        return wb_fail(err, WB_PROTOCOL,
                       "the container engine sent no stream frame but the bytes "
                       "%02x %02x %02x %02x %02x %02x %02x %02x",
                       h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7]);
    d->promised = (uint32_t)h[4] << 24 | (uint32_t)h[5] << 16 | (uint32_t)h[6] << 8 | h[7];
    d->left = d->promised;
    return 0;
}

int wb_demux_feed(struct wb_demux *d, const void *data, size_t n, struct wb_err *err)
{
    const unsigned char *p = data;

    if (d->tty)
        return n ? d->sink(d->arg, WB_STREAM_OUT, p, n, err) : 0;
    while (n) {
        if (d->have < sizeof d->header) {
            d->header[d->have++] = *p++;
            n--;
            if (d->have == sizeof d->header) {
                int rc = start_frame(d, err);
                if (rc < 0)
                    return rc;
                if (d->left == 0)
                    d->have = 0;
            }
            continue;
        }
        size_t take = n < d->left ? n : d->left;
        int rc = d->sink(d->arg, (enum wb_stream)d->header[0], p, take, err);
        if (rc < 0)
            return rc;
        p += take;
        n -= take;
        d->left -= (uint32_t)take;
        if (d->left == 0)
            d->have = 0;
    }
    return 0;
}

bool wb_demux_truncated(const struct wb_demux *d, struct wb_buf *mark)
{
    if (d->tty || d->have == 0)
        return false;
    if (mark && d->have < sizeof d->header)
        wb_buf_addf(mark, "\n[log cut: the stream ended inside a frame header]\n");
    else if (mark)
        wb_buf_addf(mark, "\n[log cut: %u of %u bytes of the last frame arrived]\n",
                    d->promised - d->left, d->promised);
    return true;
}

static bool blank(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s[i] != ' ' && s[i] != '\r' && s[i] != '\t')
            return false;
    return true;
}

static int take_line(struct wb_progress *p, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *j = NULL;
    int rc = 0;

    if (!blank(wb_buf_str(&p->part), p->part.len)) {
        struct wb_err why = WB_ERR_INIT;
        if (wb_json_parse(p->part.data, p->part.len, &j, &why) < 0)
            return wb_fail(err, WB_PROTOCOL,
                           "the container engine sent a progress line that is not JSON: %.200s",
                           why.root);
        const char *text = wb_json_str_or(j, "error", NULL);
        if (!text)
            text = wb_json_string(wb_json_path(j, "errorDetail.message"));
        if (text && !p->error)
            p->error = wb_strdup(text);
        if (p->line)
            rc = p->line(p->arg, j, err);
    }
    wb_buf_clear(&p->part);
    return rc;
}

int wb_progress_feed(struct wb_progress *p, const void *data, size_t n, struct wb_err *err)
{
    const char *s = data;

    while (n) {
        const char *nl = memchr(s, '\n', n);
        size_t take = nl ? (size_t)(nl - s) : n;
        wb_buf_add(&p->part, s, take);
        int rc = wb_buf_check(&p->part, "progress line of the container engine", err);
        if (rc < 0)
            return rc;
        if (!nl)
            break;
        rc = take_line(p, err);
        if (rc < 0)
            return rc;
        s = nl + 1;
        n -= take + 1;
    }
    return 0;
}

int wb_progress_end(struct wb_progress *p, struct wb_err *err)
{
    return p->part.len ? take_line(p, err) : 0;
}

void wb_progress_release(struct wb_progress *p)
{
    wb_buf_release(&p->part);
    free(p->error);
    p->error = NULL;
}
