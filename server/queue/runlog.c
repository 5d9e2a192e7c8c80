#include "server/queue/runlog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/file.h"
#include "server/base/mem.h"
#include "server/base/units.h"

struct stream {
    char *run, *name, *path;
    int64_t at;
    bool seen; /* in this look */
};

struct wb_runlog {
    char *campaign, *runs;
    struct stream *v;
    size_t n, cap;
    bool looked;
};

struct wb_runlog *wb_runlog_new(const char *state_dir, const char *campaign)
{
    struct wb_runlog *t = wb_calloc(1, sizeof(*t));

    t->campaign = wb_strdup(campaign);
    t->runs = wb_strf("%s/campaigns/%s/runs", state_dir, campaign);
    return t;
}

static void drop(struct stream *s)
{
    free(s->run);
    free(s->name);
    free(s->path);
}

void wb_runlog_free(struct wb_runlog *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n; i++)
        drop(&t->v[i]);
    free(t->v);
    free(t->campaign);
    free(t->runs);
    free(t);
}

/* ---- names ---- */

/* "load-max.job" -> "load-max.log"; caller frees. NULL: not a load program's folder. */
static char *load_stream(const char *folder)
{
    size_t n = strlen(folder);

    return !strncmp(folder, "load-", 5) && n > 9 && !strcmp(folder + n - 4, ".job")
               ? wb_strf("%.*s.log", (int)(n - 4), folder)
               : NULL;
}

char *wb_runlog_path(const char *run_dir, const char *stream)
{
    const char *dot = strchr(stream, '.');
    size_t n = strlen(stream);
    int64_t index = 0;

    if (!wb_safe_name(stream) || !dot || !dot[1])
        return NULL;
    if (!strncmp(stream, "load-", 5) && n > 9 && !strcmp(stream + n - 4, ".log"))
        return wb_strf("%s/%.*s.job/stderr.log", run_dir, (int)(n - 4), stream);
    if (strncmp(stream, "db", 2) != 0)
        return NULL;
    {
        WB_AUTO_FREE char *digits = wb_strndup(stream + 2, (size_t)(dot - stream - 2));

        if (wb_parse_int(digits, 0, 9999, &index, NULL) < 0)
            return NULL;
    }
    if (!strcmp(dot, ".out.log"))
        return wb_strf("%s/db%lld/job/stdout.log", run_dir, (long long)index);
    return wb_safe_name(dot + 1) ? wb_strf("%s/db%lld/log/%s", run_dir, (long long)index, dot + 1)
                                 : NULL;
}

/* ---- looking ---- */

static void see(struct wb_runlog *t, const char *run, const char *name)
{
    WB_AUTO_FREE char *dir = wb_strf("%s/%s", t->runs, run);
    WB_AUTO_FREE char *path = NULL;
    struct stat st;

    for (size_t i = 0; i < t->n; i++)
        if (!strcmp(t->v[i].run, run) && !strcmp(t->v[i].name, name)) {
            t->v[i].seen = true;
            return;
        }
    path = wb_runlog_path(dir, name);
    if (!path || t->n == WB_RUNLOG_STREAMS_MAX || lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return;
    wb_grow(&t->v, &t->cap, t->n + 1, sizeof(*t->v));
    t->v[t->n++] = (struct stream){.run = wb_strdup(run),
                                   .name = wb_strdup(name),
                                   .path = WB_STEAL(path),
                                   .at = t->looked ? 0 : st.st_size,
                                   .seen = true};
}

static void see_instance(struct wb_runlog *t, const char *run, const char *folder)
{
    WB_AUTO_FREE char *dir = wb_strf("%s/%s/%s/log", t->runs, run, folder);
    WB_AUTO_FREE char *own = wb_strf("%s.out.log", folder);
    struct wb_strv files = {0};

    see(t, run, own);
    if (wb_list_dir(dir, &files, NULL) == 0)
        for (size_t i = 0; i < files.n; i++) {
            WB_AUTO_FREE char *name = wb_strf("%s.%s", folder, files.v[i]);

            see(t, run, name);
        }
    wb_strv_release(&files);
}

static void see_run(struct wb_runlog *t, const char *run)
{
    WB_AUTO_FREE char *dir = wb_strf("%s/%s", t->runs, run);
    struct wb_strv parts = {0};

    if (wb_list_dir(dir, &parts, NULL) == 0)
        for (size_t i = 0; i < parts.n; i++) {
            WB_AUTO_FREE char *load = load_stream(parts.v[i]);

            if (load)
                see(t, run, load);
            else if (!strncmp(parts.v[i], "db", 2) && !strchr(parts.v[i], '.'))
                see_instance(t, run, parts.v[i]);
        }
    wb_strv_release(&parts);
}

static void look(struct wb_runlog *t)
{
    struct wb_strv runs = {0};

    for (size_t i = 0; i < t->n; i++)
        t->v[i].seen = false;
    if (wb_list_dir(t->runs, &runs, NULL) == 0)
        for (size_t i = 0; i < runs.n; i++)
            see_run(t, runs.v[i]);
    wb_strv_release(&runs);
    for (size_t i = 0; i < t->n;) { /* of runs that are recorded by now */
        if (t->v[i].seen) {
            i++;
            continue;
        }
        drop(&t->v[i]);
        t->v[i] = t->v[--t->n];
    }
    t->looked = true;
}

/* ---- telling ---- */

/* Bytes at the end that begin a character which is not whole yet. */
static size_t torn(const unsigned char *b, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        unsigned char c = b[n - back];

        if ((c & 0xc0) == 0x80)
            continue;
        if ((c >= 0xf0 && back < 4) || (c >= 0xe0 && c < 0xf0 && back < 3) ||
            (c >= 0xc0 && c < 0xe0 && back < 2))
            return back;
        return 0;
    }
    return 0;
}

/* The bytes as a JSON text that holds exactly them; NULL: there is none. */
static wb_json *exact_text(const char *data, size_t n)
{
    wb_json *j = memchr(data, '\0', n) ? NULL : wb_json_strn(data, n);
    const char *text = wb_json_string(j);

    if (text && strlen(text) == n && !memcmp(text, data, n))
        return j;
    wb_json_free(j); /* something in it is no UTF-8 */
    return NULL;
}

static void tell_part(const struct wb_runlog *t, const struct stream *s, int64_t to,
                      const char *data, size_t n, wb_follow_fn tell, void *arg)
{
    WB_AUTO_FREE char *topic = wb_strf("run:%s", s->run);
    const char *topics[] = {topic, NULL};
    wb_json *o = wb_json_object(), *text = n ? exact_text(data, n) : NULL;

    wb_json_set_str(o, "campaign", t->campaign);
    wb_json_set_str(o, "run", s->run);
    wb_json_set_str(o, "stream", s->name);
    wb_json_set_int(o, "from", s->at);
    wb_json_set_int(o, "to", to);
    if (text)
        wb_json_set(o, "text", text);
    tell(arg, topics, "run.log", o);
}

static void read_stream(const struct wb_runlog *t, struct stream *s, wb_follow_fn tell, void *arg)
{
    WB_AUTO_CLOSE int fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    char data[WB_RUNLOG_TEXT_MAX + 1];
    struct stat st;
    ssize_t n;
    size_t keep;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= s->at)
        return;
    if (st.st_size - s->at > (int64_t)WB_RUNLOG_TEXT_MAX) {
        tell_part(t, s, st.st_size, NULL, 0, tell, arg);
        s->at = st.st_size;
        return;
    }
    n = pread(fd, data, WB_RUNLOG_TEXT_MAX, s->at);
    if (n <= 0)
        return;
    keep = torn((const unsigned char *)data, (size_t)n);
    if (keep == (size_t)n)
        return; /* the rest of the character comes, or more that is none */
    n -= (ssize_t)keep;
    tell_part(t, s, s->at + n, data, (size_t)n, tell, arg);
    s->at += n;
}

void wb_runlog_read(struct wb_runlog *t, wb_follow_fn tell, void *arg)
{
    look(t);
    for (size_t i = 0; i < t->n; i++)
        read_stream(t, &t->v[i], tell, arg);
}
