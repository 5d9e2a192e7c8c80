#include "server/queue/follow.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/file.h"
#include "server/base/mem.h"

#define READ_MAX (256u << 10) /* of one turn; more waits for the next */
#define LINE_MAX_BYTES (1u << 20)

struct wb_follow {
    char *campaign, *events, *live;
    int64_t at;         /* bytes of events.ndjson that were read */
    int64_t live_stamp; /* of the live figures told last: mtime in ns */
    struct wb_buf rest; /* a line that is not whole yet */
    bool cancelled;
};

struct wb_follow *wb_follow_new(const char *state_dir, const char *campaign)
{
    struct wb_follow *f = wb_calloc(1, sizeof(*f));
    struct stat st;

    f->campaign = wb_strdup(campaign);
    f->events = wb_strf("%s/campaigns/%s/events.ndjson", state_dir, campaign);
    f->live = wb_strf("%s/campaigns/%s/live.json", state_dir, campaign);
    f->rest = (struct wb_buf)WB_BUF_INIT(LINE_MAX_BYTES);
    if (stat(f->events, &st) == 0)
        f->at = st.st_size;
    return f;
}

void wb_follow_free(struct wb_follow *f)
{
    if (!f)
        return;
    free(f->campaign);
    free(f->events);
    free(f->live);
    wb_buf_release(&f->rest);
    free(f);
}

bool wb_follow_first_cancel(struct wb_follow *f)
{
    bool first = !f->cancelled;

    f->cancelled = true;
    return first;
}

static void tell_line(const struct wb_follow *f, const char *line, size_t n, wb_follow_fn tell,
                      void *arg)
{
    WB_AUTO_FREE char *campaign = wb_strf("campaign:%s", f->campaign);
    WB_AUTO_FREE char *run = NULL;
    const char *topics[3] = {campaign, NULL, NULL};
    wb_json *j = NULL;

    if (wb_json_parse(line, n, &j, NULL) < 0)
        return;
    wb_json_set_str(j, "campaign", f->campaign);
    if (wb_json_str_or(j, "run", NULL)) {
        run = wb_strf("run:%s", wb_json_str_or(j, "run", ""));
        topics[1] = run;
    }
    {
        WB_AUTO_FREE char *type = wb_strdup(wb_json_str_or(j, "type", "campaign.event"));

        tell(arg, topics, type, j);
    }
}

static void tell_lines(struct wb_follow *f, const char *data, size_t n, wb_follow_fn tell,
                       void *arg)
{
    while (n) {
        const char *nl = memchr(data, '\n', n);
        size_t part = nl ? (size_t)(nl - data) : n;

        wb_buf_add(&f->rest, data, part);
        if (!nl)
            return;
        if (!f->rest.failed && f->rest.len)
            tell_line(f, f->rest.data, f->rest.len, tell, arg);
        wb_buf_release(&f->rest);
        f->rest = (struct wb_buf)WB_BUF_INIT(LINE_MAX_BYTES);
        data += part + 1;
        n -= part + 1;
    }
}

static void read_events(struct wb_follow *f, wb_follow_fn tell, void *arg)
{
    WB_AUTO_CLOSE int fd = open(f->events, O_RDONLY | O_CLOEXEC);
    WB_AUTO_FREE char *data = NULL;
    ssize_t n;

    if (fd < 0)
        return;
    data = wb_calloc(1, READ_MAX);
    do {
        n = pread(fd, data, READ_MAX, f->at);
        if (n > 0) {
            f->at += n;
            tell_lines(f, data, (size_t)n, tell, arg);
        }
    } while (n == (ssize_t)READ_MAX || (n < 0 && errno == EINTR));
}

static void read_live(struct wb_follow *f, wb_follow_fn tell, void *arg)
{
    WB_AUTO_FREE char *text = NULL;
    struct stat st;
    int64_t stamp;
    size_t n = 0;

    if (stat(f->live, &st) < 0)
        return;
    stamp = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    if (stamp == f->live_stamp || wb_file_read(f->live, 64u << 10, &text, &n, NULL) < 0)
        return;
    f->live_stamp = stamp;
    tell_line(f, text, n, tell, arg);
}

void wb_follow_read(struct wb_follow *f, wb_follow_fn tell, void *arg)
{
    read_events(f, tell, arg);
    read_live(f, tell, arg);
}
