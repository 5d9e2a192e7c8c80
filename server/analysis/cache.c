#include "server/analysis/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/analysis/compare.h"
#include "server/base/digest.h"
#include "server/base/file.h"
#include "server/base/mem.h"

#define QUESTION_MAX (64u << 20)
#define HEX (WB_SHA256_HEX - 1)

struct wb_cache {
    char *newer, *older; /* folders */
    size_t files;        /* in the newer one, about: others may add to it, too */
    bool counted;        /* they were, before the first one was kept */
};

struct wb_cache *wb_cache_open(const char *dir)
{
    struct wb_cache *c = wb_calloc(1, sizeof(*c));

    c->newer = wb_strf("%s/newer", dir);
    c->older = wb_strf("%s/older", dir);
    if (wb_mkdir_all(c->newer, 0755, NULL) < 0) {
        wb_cache_close(c);
        return NULL;
    }
    return c;
}

void wb_cache_close(struct wb_cache *c)
{
    if (c == NULL)
        return;
    free(c->newer);
    free(c->older);
    free(c);
}

/* Name of the answer to a question; false when the question is too long to be kept. */
static bool name_of(const char *topic, const wb_json *in, char hex[WB_SHA256_HEX])
{
    struct wb_buf b = WB_BUF_INIT(QUESTION_MAX);
    bool fits;

    wb_buf_addf(&b, "%s %d %s\n", topic, WB_ANALYSIS_VERSION, WB_VERSION);
    wb_json_canonical(in, &b);
    fits = !b.failed;
    if (fits)
        wb_sha256_of(wb_buf_str(&b), b.len, hex);
    wb_buf_release(&b);
    return fits;
}

/* A file is the digest of what follows on its first line, then the answer. NULL, and the file is
 * gone, when it is not whole. */
static wb_json *read_answer(const char *path)
{
    WB_AUTO_FREE char *text = NULL;
    char hex[WB_SHA256_HEX];
    wb_json *answer = NULL;
    size_t n = 0;

    if (wb_file_read(path, WB_CACHE_ANSWER_MAX + WB_SHA256_HEX, &text, &n, NULL) < 0)
        return NULL;
    if (n > HEX && text[HEX] == '\n') {
        wb_sha256_of(text + HEX + 1, n - HEX - 1, hex);
        if (memcmp(text, hex, HEX) == 0 &&
            wb_json_parse(text + HEX + 1, n - HEX - 1, &answer, NULL) == 0)
            return answer;
    }
    (void)unlink(path);
    return NULL;
}

static wb_json *find(const struct wb_cache *c, const char *hex)
{
    WB_AUTO_FREE char *newer = wb_strf("%s/%s", c->newer, hex);
    WB_AUTO_FREE char *older = wb_strf("%s/%s", c->older, hex);
    wb_json *answer = read_answer(newer);

    if (answer == NULL) {
        answer = read_answer(older);
        if (answer != NULL)
            (void)rename(older, newer); /* still in use: it stays for another generation */
    }
    return answer;
}

static void count_files(struct wb_cache *c)
{
    struct wb_strv names = {0};

    if (c->counted)
        return;
    /* A folder with too many names cannot be listed: full. */
    c->files = wb_list_dir(c->newer, &names, NULL) < 0 ? WB_CACHE_FILES : names.n;
    c->counted = true;
    wb_strv_release(&names);
}

static void keep(struct wb_cache *c, const char *hex, const wb_json *answer)
{
    struct wb_buf text = WB_BUF_INIT(WB_CACHE_ANSWER_MAX), file;
    WB_AUTO_FREE char *path = wb_strf("%s/%s", c->newer, hex);
    WB_AUTO_FREE char *own = wb_strf("%s.%d", path, (int)gettid());
    char digest[WB_SHA256_HEX];

    count_files(c);
    wb_json_line(answer, &text); /* keys stay in their order */
    if (!text.failed) {
        file = (struct wb_buf)WB_BUF_INIT(WB_CACHE_ANSWER_MAX + WB_SHA256_HEX);
        wb_sha256_of(wb_buf_str(&text), text.len, digest);
        wb_buf_addf(&file, "%s\n", digest);
        wb_buf_add(&file, wb_buf_str(&text), text.len);
        /* Not synced: what a crash leaves is not whole, and is computed again. */
        if (wb_file_put(own, wb_buf_str(&file), file.len, NULL) == 0)
            (void)rename(own, path);
        c->files++;
        wb_buf_release(&file);
    }
    wb_buf_release(&text);
    if (c->files < WB_CACHE_FILES)
        return;
    if (wb_remove_tree(c->older, NULL) == 0 && rename(c->newer, c->older) == 0 &&
        wb_mkdir_all(c->newer, 0755, NULL) == 0)
        c->files = 0;
}

int wb_cache_compute(struct wb_cache *c, const char *topic, const wb_json *key, wb_compute_fn fn,
                     void *arg, wb_json **out, struct wb_err *err)
{
    char hex[WB_SHA256_HEX];
    int rc;

    if (c == NULL || !name_of(topic, key, hex))
        return fn(arg, out, err);
    *out = find(c, hex);
    if (*out != NULL)
        return 0;
    rc = fn(arg, out, err);
    if (rc == 0)
        keep(c, hex, *out);
    return rc;
}

/* A question as a document. */
struct document {
    wb_answer_fn fn;
    const wb_json *in;
};

static int compute_document(void *arg, wb_json **out, struct wb_err *err)
{
    const struct document *d = arg;

    return d->fn(d->in, out, err);
}

int wb_cache_answer(struct wb_cache *c, const char *topic, wb_answer_fn fn, const wb_json *in,
                    wb_json **out, struct wb_err *err)
{
    struct document d = {fn, in};

    return wb_cache_compute(c, topic, in, compute_document, &d, out, err);
}
