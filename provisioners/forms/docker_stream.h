/*
 * The two stream formats of the Engine API.
 *
 * Multiplexed (logs, exec and attach without a terminal): frames of an 8-byte header
 * {stream, 0, 0, 0, length big-endian} and `length` bytes. Frames and reads have nothing to do
 * with each other. With a terminal there are no headers at all. The demultiplexer holds no data:
 * it hands parts on as they arrive, so a frame that claims 4 GiB costs nothing.
 *
 * Progress (pull, import, load, build): one JSON object a line; an error after the 200 is a line
 * of its own.
 */
#ifndef WB_FORMS_DOCKER_STREAM_H
#define WB_FORMS_DOCKER_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "server/base/buf.h"
#include "server/base/err.h"
#include "server/base/json.h"

enum wb_stream { WB_STREAM_IN = 0, WB_STREAM_OUT = 1, WB_STREAM_ERR = 2, WB_STREAM_ENGINE = 3 };

/* Takes a part of a stream; n > 0. < 0 after setting err ends the reading with it. */
typedef int (*wb_stream_fn)(void *arg, enum wb_stream stream, const void *data, size_t n,
                            struct wb_err *err);

struct wb_demux {
    bool tty; /* no frames: everything is WB_STREAM_OUT */
    wb_stream_fn sink;
    void *arg;
    unsigned char header[8];
    unsigned have;     /* header bytes so far; 8: inside a frame */
    uint32_t promised; /* length of the frame */
    uint32_t left;     /* of it still to come */
};

/* Takes the next n bytes. WB_PROTOCOL when they are no frames. */
int wb_demux_feed(struct wb_demux *d, const void *data, size_t n, struct wb_err *err) WB_MUST_CHECK;
/* At the end of the stream: whether it ended inside a header or a frame. Then a line that says so
 * is appended to `mark` (which may be NULL). */
bool wb_demux_truncated(const struct wb_demux *d, struct wb_buf *mark);

/* Takes one line of a progress stream, parsed. */
typedef int (*wb_progress_fn)(void *arg, const wb_json *line, struct wb_err *err);

struct wb_progress {
    wb_progress_fn line;
    void *arg;
    struct wb_buf part; /* of the line that is not complete; WB_PROGRESS_INIT bounds it */
    char *error;        /* text of the first error line; owned */
};
#define WB_PROGRESS_LINE_MAX (256 << 10)
#define WB_PROGRESS_INIT(fn, a)                                             \
    {                                                                       \
        .line = (fn), .arg = (a), .part = WB_BUF_INIT(WB_PROGRESS_LINE_MAX) \
    }

int wb_progress_feed(struct wb_progress *p, const void *data, size_t n,
                     struct wb_err *err) WB_MUST_CHECK;
/* Takes what is left without a newline at the end. */
int wb_progress_end(struct wb_progress *p, struct wb_err *err) WB_MUST_CHECK;
void wb_progress_release(struct wb_progress *p);

#endif
