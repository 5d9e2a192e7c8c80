/*
 * Streams of the Engine API from anyone: however the bytes are cut into reads, the same comes out,
 * and never more than went in.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "provisioners/forms/docker_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int ok)
{
    if (!ok)
        abort();
}

struct got {
    struct wb_buf of[4];
    size_t bytes;
};

static int collect(void *arg, enum wb_stream stream, const void *data, size_t n, struct wb_err *err)
{
    struct got *g = arg;

    require(n > 0 && stream <= WB_STREAM_ENGINE);
    g->bytes += n;
    wb_buf_add(&g->of[stream], data, n);
    return 0;
}

static int run(const uint8_t *data, size_t size, size_t step, bool tty, struct got *g)
{
    struct wb_demux d = {.tty = tty, .sink = collect, .arg = g};
    struct wb_buf mark = WB_BUF_INIT(256);
    int rc = 0;

    *g = (struct got){0};
    for (int i = 0; i < 4; i++)
        g->of[i] = (struct wb_buf)WB_BUF_INIT(1 << 20);
    for (size_t at = 0; rc == 0 && at < size; at += step)
        rc = wb_demux_feed(&d, data + at, size - at < step ? size - at : step, NULL);
    bool cut = wb_demux_truncated(&d, &mark);
    require(cut == (mark.len > 0) && !mark.failed);
    wb_buf_release(&mark);
    require(g->bytes <= size);
    return rc;
}

static void release(struct got *g)
{
    for (int i = 0; i < 4; i++)
        wb_buf_release(&g->of[i]);
}

static int count(void *arg, const wb_json *line, struct wb_err *err)
{
    ++*(int *)arg;
    return 0;
}

static int progress(const uint8_t *data, size_t size, size_t step, int *lines)
{
    struct wb_progress p = WB_PROGRESS_INIT(count, lines);
    int rc = 0;

    for (size_t at = 0; rc == 0 && at < size; at += step)
        rc = wb_progress_feed(&p, data + at, size - at < step ? size - at : step, NULL);
    if (rc == 0)
        rc = wb_progress_end(&p, NULL);
    wb_progress_release(&p);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct got whole, parts;
    int lines = 0, again = 0;

    if (size < 2)
        return 0;
    size_t step = data[0] % 64 + 1;
    bool tty = data[1] & 1;
    data += 2;
    size -= 2;
    int rc = run(data, size, size ? size : 1, tty, &whole);
    require(run(data, size, step, tty, &parts) == rc);
    for (int i = 0; i < 4; i++) {
        require(whole.of[i].len == parts.of[i].len);
        require(memcmp(wb_buf_str(&whole.of[i]), wb_buf_str(&parts.of[i]), whole.of[i].len) == 0);
    }
    release(&whole);
    release(&parts);
    rc = progress(data, size, size ? size : 1, &lines);
    require(progress(data, size, step, &again) == rc && lines == again);
    return 0;
}
