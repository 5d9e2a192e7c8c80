#include "provisioners/forms/docker_image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "provisioners/forms/docker_stream.h"
#include "provisioners/forms/rootfs.h"
#include "provisioners/forms/tar.h"
#include "server/base/clock.h"
#include "server/base/digest.h"
#include "server/base/file.h"

#define LAYOUT "wb-image-1" /* of what is added to the base; a change makes new images */
#define IMPORT_NS (10 * 60 * WB_SEC)
#define TAG_MAX 100
/* A container inherits the labels of its image: those of images must not be those by which
 * instances are found, or anybody's container from our image would be taken for ours. */
#define LABEL_CONTENT "wb.image.content"
#define LABEL_OWNER "wb.image.owner"
#define LABEL_KIND "wb.image.kind"
#define KIND_CACHE "cache"

/* What one image is made of. */
struct recipe_image {
    struct wb_engine *engine;
    const struct wb_form_env *env;
    const struct wb_bits *bits;
    const struct wb_rootfs *base;
    char content[WB_SHA256_HEX]; /* of base, bits and how they are put together */
};

/* The archive that is imported: the base without its end mark, then what is added. */
struct import {
    int base, added;
    int64_t base_left;
    struct wb_sha256 *sent;
    char layer[WB_SHA256_HEX]; /* digest of all that was sent */
    char id[256];              /* what the engine calls the result */
};

static int64_t read_some(int fd, void *buf, size_t n, const char *what, struct wb_err *err)
{
    for (;;) {
        ssize_t got = read(fd, buf, n);
        if (got >= 0)
            return got;
        if (errno != EINTR)
            return wb_fail_sys(err, errno, "cannot read the %s", what);
    }
}

static int64_t on_read(void *arg, void *buf, size_t n, struct wb_err *err)
{
    struct import *im = arg;
    int64_t got = 0;

    if (im->base_left > 0) {
        size_t want = (int64_t)n < im->base_left ? n : (size_t)im->base_left;
        got = read_some(im->base, buf, want, "base image", err);
        if (got == 0)
            return wb_fail(err, WB_CORRUPT, "the base image became shorter while it was read");
        if (got > 0)
            im->base_left -= got;
    } else {
        got = read_some(im->added, buf, n, "packed prefix", err);
    }
    if (got > 0)
        wb_sha256_add(im->sent, buf, (size_t)got);
    return got;
}

static int to_file(void *arg, const void *data, size_t n, struct wb_err *err)
{
    const int *fd = arg;
    const char *p = data;

    while (n) {
        ssize_t done = write(*fd, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return wb_fail_sys(err, errno, "cannot write the packed prefix");
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

/* Packs the prefix and the mount points into a file that has no name any more. */
static int pack(const struct wb_form_env *env, const struct wb_bits *bits, int *out,
                struct wb_err *err)
{
    static const char *const points[] = {WB_DOCKER_CONFIG, WB_DOCKER_DATA, WB_DOCKER_LOG};
    WB_AUTO_FREE char *path = wb_strf("%s/prefix.tmp.%d", env->cache_dir, (int)getpid());
    WB_AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct wb_tar t = {.sink = to_file, .arg = &fd};

    if (fd < 0)
        return wb_fail_sys(err, errno, "cannot make %s", path);
    (void)unlink(path); /* a name that stays is overwritten by the next process with this pid */
    int rc = wb_tar_add_dir(&t, &WB_DOCKER_ROOT[1], 0755, err);
    for (size_t i = 0; rc == 0 && i < WB_LEN(points); i++)
        rc = wb_tar_add_dir(&t, &points[i][1], 0755, err);
    if (rc == 0)
        rc = wb_tar_add_tree(&t, bits->prefix, &WB_DOCKER_PREFIX[1], err);
    if (rc == 0)
        rc = wb_tar_end(&t, err);
    if (rc == 0 && lseek(fd, 0, SEEK_SET) < 0)
        rc = wb_fail_sys(err, errno, "cannot read back the packed prefix");
    if (rc == 0) {
        *out = fd;
        fd = -1;
    }
    return rc;
}

/* Lower-case letters, digits, '.', '_' and '-' only, so that any text can be part of a name. */
static void add_name(struct wb_buf *b, const char *text)
{
    for (; *text; text++) {
        char c = *text >= 'A' && *text <= 'Z' ? (char)(*text + 32) : *text;
        bool fine = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        wb_buf_addc(b, fine || (c == '.' && b->len) ? c : '-');
    }
}

static void add_change(struct wb_buf *path, const char *label, const char *value)
{
    struct wb_buf text = WB_BUF_INIT(4096);

    /* An instruction of a build file: quotes and dollar signs would mean something there. */
    wb_buf_addf(&text, "LABEL %s=\"", label);
    wb_rest_escape(&text, value);
    wb_buf_addc(&text, '"');
    wb_rest_add_query(path, "changes", wb_buf_str(&text));
    wb_buf_release(&text);
}

static void import_path(const struct recipe_image *r, struct wb_buf *path)
{
    struct wb_buf repo = WB_BUF_INIT(TAG_MAX), tag = WB_BUF_INIT(TAG_MAX);

    wb_buf_adds(&repo, "weighbridge/");
    add_name(&repo, r->bits->recipe);
    add_name(&tag, r->bits->version);
    wb_buf_addf(&tag, "-%.12s", r->content);
    wb_buf_adds(path, "/images/create");
    wb_rest_add_query(path, "fromSrc", "-");
    wb_rest_add_query(path, "repo", wb_buf_str(&repo));
    wb_rest_add_query(path, "tag", wb_buf_str(&tag));
    wb_rest_add_query(path, "message", "base image and prefix of a recipe");
    add_change(path, LABEL_CONTENT, r->content);
    add_change(path, LABEL_KIND, KIND_CACHE);
    add_change(path, LABEL_OWNER, r->env->owner);
    add_change(path, "wb.image.recipe", r->bits->recipe);
    add_change(path, "wb.image.version", r->bits->version);
    wb_buf_release(&repo);
    wb_buf_release(&tag);
}

static int on_line(void *arg, const wb_json *line, struct wb_err *err)
{
    struct import *im = arg;
    const char *status = wb_json_str_or(line, "status", "");

    if (strncmp(status, "sha256:", 7) == 0 && strlen(status) < sizeof im->id)
        memcpy(im->id, status, strlen(status) + 1);
    return 0;
}

static int on_answer(void *arg, const void *data, size_t n, struct wb_err *err)
{
    return wb_progress_feed(arg, data, n, err);
}

static int send_import(const struct recipe_image *r, const char *path, struct import *im,
                       struct wb_err *err)
{
    struct wb_progress progress = WB_PROGRESS_INIT(on_line, im);
    struct wb_engine_call call = {.method = "POST",
                                  .path = path,
                                  .content_type = "application/x-tar",
                                  .read = on_read,
                                  .read_arg = im,
                                  .data = on_answer,
                                  .data_arg = &progress,
                                  .limit_ns = IMPORT_NS,
                                  .cancel = r->env->cancel};
    int rc = wb_engine_do(r->engine, &call, NULL, err);

    if (rc == 0)
        rc = wb_progress_end(&progress, err);
    if (rc == 0 && progress.error)
        rc = wb_fail(err, wb_engine_classify(500, progress.error),
                     "the container engine says: %.300s", progress.error);
    if (rc == 0 && !im->id[0])
        rc = wb_fail(err, WB_PROTOCOL, "the container engine names no image after the import");
    wb_progress_release(&progress);
    return rc;
}

/* Imports base and prefix; im->layer is then the digest of the layer that must come out. */
static int import_image(const struct recipe_image *r, struct import *im, struct wb_err *err)
{
    struct wb_buf path = WB_BUF_INIT(16 << 10);
    const char *tar = r->base->tar;
    char hex[WB_SHA256_HEX];

    *im = (struct import){.base = -1, .added = -1, .sent = wb_sha256_new()};
    int rc = wb_sha256_file(tar, hex, err);
    if (rc == 0 && strcmp(hex, wb_json_str_or(r->base->facts, "sha256", "")) != 0)
        rc = wb_fail(err, WB_CORRUPT,
                     "%s does not have the digest of its manifest any more: delete it, it is then "
                     "made anew",
                     tar);
    if (rc == 0)
        rc = wb_tar_walk(tar, NULL, NULL, &im->base_left, err);
    if (rc == 0)
        rc = pack(r->env, r->bits, &im->added, err);
    if (rc == 0 && (im->base = open(tar, O_RDONLY | O_CLOEXEC)) < 0)
        rc = wb_fail_sys(err, errno, "cannot open %s", tar);
    import_path(r, &path);
    if (rc == 0)
        rc = wb_buf_check(&path, "import request", err);
    if (rc == 0)
        rc = send_import(r, wb_buf_str(&path), im, err);
    wb_sha256_end(im->sent, im->layer);
    wb_buf_release(&path);
    wb_auto_close(&im->base);
    wb_auto_close(&im->added);
    return rc;
}

static void set_content(struct recipe_image *r)
{
    WB_AUTO_FREE char *text =
        wb_strf(LAYOUT "\n%s\n%s\n", wb_json_str_or(r->base->facts, "sha256", ""), r->bits->digest);
    wb_sha256_of(text, strlen(text), r->content);
}

/* Id of an image with this content; *id NULL when there is none. */
static int find_image(struct wb_engine *e, const char *content, char **id, struct wb_err *err)
{
    WB_AUTO_FREE char *label = wb_strf(LABEL_CONTENT "=%s", content);
    struct wb_buf path = WB_BUF_INIT(4096);
    WB_AUTO_JSON wb_json *list = NULL;

    wb_buf_adds(&path, "/images/json");
    wb_engine_add_labels(&path, (const char *const[]){label, NULL});
    int rc = wb_engine_get(e, wb_buf_str(&path), &list, err);
    wb_buf_release(&path);
    if (rc == 0)
        *id = wb_strdup(wb_json_str_or(wb_json_at(list, 0), "Id", NULL));
    return rc;
}

static int inspect_image(struct wb_engine *e, const char *id, wb_json **out, struct wb_err *err)
{
    struct wb_buf path = WB_BUF_INIT(4096);

    wb_buf_adds(&path, "/images/");
    wb_rest_escape(&path, id);
    wb_buf_adds(&path, "/json");
    int rc = wb_engine_get(e, wb_buf_str(&path), out, err);
    wb_buf_release(&path);
    return rc < 0 ? wb_wrap(err, "image %s", id) : 0;
}

/* The engine stores what was sent: its layer has the digest of the archive. */
static int check_layer(const wb_json *image, const char *expected, struct wb_err *err)
{
    const char *seen = wb_json_string(wb_json_at(wb_json_path(image, "RootFS.Layers"), 0));

    if (!seen || strncmp(seen, "sha256:", 7) != 0 || strcmp(seen + 7, expected) != 0)
        return wb_fail(err, WB_CORRUPT,
                       "the engine holds layer %s, sent was sha256:%s: the image is not the one "
                       "that was packed",
                       seen ? seen : "(none)", expected);
    return 0;
}

static void fill_facts(const struct recipe_image *r, const wb_json *image, bool made,
                       wb_json *facts)
{
    wb_json_set_str(facts, "id", wb_json_str_or(image, "Id", NULL));
    wb_json_set_str(facts, "layer",
                    wb_json_string(wb_json_at(wb_json_path(image, "RootFS.Layers"), 0)));
    wb_json_set_str(facts, "bits", r->bits->digest);
    wb_json_set(facts, "base", wb_json_copy(r->base->facts));
    wb_json_set_bool(facts, "made", made);
}

static int make(const struct recipe_image *r, char **image, wb_json *facts, struct wb_err *err)
{
    struct import im;
    WB_AUTO_FREE char *found = NULL;
    WB_AUTO_JSON wb_json *info = NULL;

    int rc = find_image(r->engine, r->content, &found, err);
    if (rc == 0 && !found) {
        if (r->env->note)
            r->env->note(r->env->note_arg, "importing the image into the container engine");
        rc = import_image(r, &im, err);
    }
    if (rc == 0)
        rc = inspect_image(r->engine, found ? found : im.id, &info, err);
    if (rc == 0 && !found)
        rc = check_layer(info, im.layer, err);
    if (rc == 0 && !wb_json_str_or(info, "Id", NULL))
        rc = wb_fail(err, WB_PROTOCOL, "the container engine describes an image without Id");
    if (rc < 0)
        return wb_wrap(err, "image of %s %s", r->bits->recipe, r->bits->version);
    fill_facts(r, info, !found, facts);
    *image = wb_strdup(wb_json_str_or(info, "Id", NULL));
    return 0;
}

int wb_docker_image_make(struct wb_engine *e, const struct wb_form_env *env,
                         const struct wb_bits *bits, char **image, wb_json *facts,
                         struct wb_err *err)
{
    struct wb_rootfs base = {0};
    struct wb_rootfs_request q = {.cache_dir = env->cache_dir,
                                  .suite = bits->base_suite,
                                  .cancel = env->cancel,
                                  .note = env->note,
                                  .note_arg = env->note_arg};
    int rc = wb_rootfs_make(&q, &base, err);

    if (rc == 0) {
        struct recipe_image r = {.engine = e, .env = env, .bits = bits, .base = &base};
        set_content(&r);
        rc = make(&r, image, facts, err);
    }
    wb_rootfs_release(&base);
    return rc;
}

int wb_docker_images_prune(struct wb_engine *e, const char *owner, wb_form_pruned_fn fn, void *arg,
                           struct wb_err *err)
{
    WB_AUTO_FREE char *whose = wb_strf(LABEL_OWNER "=%s", owner);
    struct wb_buf path = WB_BUF_INIT(4096);
    WB_AUTO_JSON wb_json *list = NULL;
    int rc;

    wb_buf_adds(&path, "/images/json");
    wb_engine_add_labels(&path, (const char *const[]){LABEL_KIND "=" KIND_CACHE, whose, NULL});
    rc = wb_engine_get(e, wb_buf_str(&path), &list, err);
    for (size_t i = 0; rc == 0 && i < wb_json_len(list); i++) {
        const char *id = wb_json_str_or(wb_json_at(list, i), "Id", "");
        struct wb_engine_call call = {.method = "DELETE"};
        struct wb_err why = WB_ERR_INIT;

        wb_buf_clear(&path);
        wb_buf_adds(&path, "/images/");
        wb_rest_escape(&path, id);
        call.path = wb_buf_str(&path);
        rc = wb_engine_do(e, &call, NULL, &why);
        if (rc == 0 || rc == -WB_CONFLICT)
            fn(arg, id, rc < 0 ? why.root : NULL);
        else if (rc != -WB_NOT_FOUND && err)
            *err = why;
        /* Gone meanwhile, or in use: nothing that failed. */
        if (rc == -WB_CONFLICT || rc == -WB_NOT_FOUND)
            rc = 0;
    }
    wb_buf_release(&path);
    return rc;
}
