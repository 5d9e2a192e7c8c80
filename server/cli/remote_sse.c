/* Reading text/event-stream (HTML Living Standard, 9.2.6). */
#include <string.h>

#include "server/cli/remote.h"

void wb_sse_init(struct wb_sse *s)
{
    *s = (struct wb_sse){.line = WB_BUF_INIT(WB_SSE_MAX), .data = WB_BUF_INIT(WB_SSE_MAX)};
}

void wb_sse_release(struct wb_sse *s)
{
    wb_buf_release(&s->line);
    wb_buf_release(&s->data);
}

/* A longer one is none that this server gives. */
static void keep(char *to, size_t size, const char *value)
{
    size_t n = strlen(value);

    to[0] = '\0';
    if (n < size)
        memcpy(to, value, n + 1);
}

static int tell(struct wb_sse *s, wb_remote_event_fn fn, void *arg, struct wb_err *err)
{
    WB_AUTO_JSON wb_json *data = NULL;
    int rc = 0;

    if (s->data.len) {
        WB_IGNORE(wb_json_parse(s->data.data, s->data.len - 1, &data, NULL)); /* then it is NULL */
        rc = fn(arg, *s->type ? s->type : "message", data, err);
    }
    wb_buf_clear(&s->data);
    s->type[0] = '\0';
    return rc;
}

static int take_line(struct wb_sse *s, wb_remote_event_fn fn, void *arg, struct wb_err *err)
{
    const char *line = wb_buf_str(&s->line), *value;
    size_t name = strcspn(line, ":");

    if (!*line)
        return tell(s, fn, arg, err);
    value = line[name] ? line + name + 1 : line + name;
    value += *value == ' ';
    if (name == 4 && !strncmp(line, "data", 4)) {
        wb_buf_adds(&s->data, value);
        wb_buf_addc(&s->data, '\n');
    } else if (name == 5 && !strncmp(line, "event", 5)) {
        keep(s->type, sizeof(s->type), value);
    } else if (name == 2 && !strncmp(line, "id", 2)) {
        keep(s->id, sizeof(s->id), value);
    }
    return wb_buf_check(&s->data, "an event of the server", err);
}

int wb_sse_feed(struct wb_sse *s, const char *bytes, size_t n, wb_remote_event_fn fn, void *arg,
                struct wb_err *err)
{
    for (size_t i = 0; i < n; i++) {
        bool after_cr = s->cr;
        int rc;

        s->cr = bytes[i] == '\r';
        if (bytes[i] == '\n' && after_cr)
            continue; /* CR LF is one end of a line */
        if (bytes[i] != '\n' && bytes[i] != '\r') {
            wb_buf_addc(&s->line, bytes[i]);
            continue;
        }
        rc = wb_buf_check(&s->line, "a line of the event stream", err);
        if (rc == 0)
            rc = take_line(s, fn, arg, err);
        wb_buf_clear(&s->line);
        if (rc != 0)
            return rc;
    }
    return wb_buf_check(&s->line, "a line of the event stream", err);
}
