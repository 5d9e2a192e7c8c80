#include "server/record/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/rng.h"
#include "server/record/files.h"
#include "server/record/index.h"
#include "server/record/quarantine.h"

const char *const wb_record_docs[] = {"summary", "study",  "plan", "environment",
                                      "result",  "events", NULL};

/* A reference component: a safe name that git takes too. */
static bool good_controller(const char *id)
{
    size_t n = id ? strlen(id) : 0;

    return n > 0 && n <= 64 && wb_safe_name(id) && id[n - 1] != '.' && !strstr(id, "..") &&
           !(n >= 5 && !strcmp(id + n - 5, ".lock"));
}

static char *config_path(const char *store)
{
    return wb_strf("%s/weighbridge.config", store);
}

/* What makes a repository a store. Git's own commands do not read this file; it is in their
 * syntax because libgit2 reads it: references are synced when they move. */
static int write_config(const char *store, const char *controller, struct wb_err *err)
{
    WB_AUTO_FREE char *path = config_path(store);
    WB_AUTO_FREE char *text = wb_strf("# Settings of weighbridge for this store of records.\n"
                                      "[weighbridge]\n\tcontroller = %s\n"
                                      "[core]\n\tfsyncObjectFiles = true\n",
                                      controller);

    return wb_file_write(path, text, strlen(text), 0644, err);
}

/* Makes the folders of our references and everything init wrote last. */
static int settle(const char *repo, const char *controller, struct wb_err *err)
{
    static const char *const parts[] = {
        "HEAD",    "config", "objects/info",      "objects/pack", "refs", "refs/heads", "refs/tags",
        "objects", "",       "refs/heads/records"};
    WB_AUTO_FREE char *records = wb_strf("%s/refs/heads/records", repo);
    WB_AUTO_FREE char *raw = wb_strf("%s/refs/raw/%s", repo, controller);
    int rc = wb_mkdir_all(records, 0755, err);

    if (rc == 0)
        rc = wb_mkdir_all(raw, 0755, err);
    for (size_t i = 0; rc == 0 && i < WB_LEN(parts); i++) {
        WB_AUTO_FREE char *path = wb_strf("%s/%s", repo, parts[i]);

        rc = wb_sync_path(path, err);
    }
    return rc;
}

/* Makes a whole store beside path, then gives it its name: there is never half a store. Another
 * who did the same at the same time wins; what is there is opened then. */
static int make_store(const char *path, const char *controller, struct wb_err *err)
{
    WB_AUTO_FREE char *fresh =
        wb_strf("%s.new-%016llx", path, (unsigned long long)wb_random_seed());
    WB_AUTO_FREE char *head = wb_strf(WB_RECORDS "%s", controller);
    WB_AUTO_FREE char *parent = wb_strdup(path);
    char *slash = strrchr(parent, '/');
    int rc = 0;

    if (slash && slash != parent) {
        *slash = '\0';
        rc = wb_mkdir_all(parent, 0755, err);
    }
    if (rc == 0)
        rc = wb_git_init(fresh, head, err);
    if (rc == 0)
        rc = settle(fresh, controller, err);
    if (rc == 0)
        rc = write_config(fresh, controller, err);
    if (rc == 0 && rename(fresh, path) < 0 && errno != ENOTEMPTY && errno != EEXIST)
        rc = wb_fail_sys(err, errno, "cannot give the new store its name %s", path);
    WB_IGNORE(wb_remove_tree(fresh, NULL)); /* gone already unless something failed */
    return rc < 0 || !slash ? rc : wb_sync_path(slash == parent ? "/" : parent, err);
}

/* Whether a repository that is no store yet holds records: a clone of one. */
static int holds_records(const char *path, bool *out, struct wb_err *err)
{
    struct wb_git *g = NULL;
    struct wb_git_ref *refs = NULL;
    size_t n = 0;
    int rc = wb_git_open(path, NULL, &g, err);

    if (rc == 0)
        rc = wb_git_refs(g, WB_RECORDS, &refs, &n, NULL, err);
    if (rc == 0)
        *out = n > 0;
    wb_git_refs_free(refs, n);
    wb_git_close(g);
    return rc;
}

/* What is at path when it is no store: nothing (or an empty folder), a clone, something else. */
enum found { FOUND_NOTHING, FOUND_CLONE };

static int look(const char *path, enum found *out, struct wb_err *err)
{
    struct wb_strv names = {0};
    WB_AUTO_FREE char *head = wb_strf("%s/HEAD", path);
    struct stat st;
    bool records = false;
    int rc;

    *out = FOUND_NOTHING;
    if (stat(path, &st) < 0)
        return errno == ENOENT ? 0 : wb_fail_sys(err, errno, "cannot look at %s", path);
    rc = wb_list_dir(path, &names, err);
    if (rc < 0 || names.n == 0) {
        wb_strv_release(&names);
        return rc;
    }
    wb_strv_release(&names);
    if (wb_path_exists(head) && holds_records(path, &records, NULL) == 0 && records) {
        *out = FOUND_CLONE;
        return 0;
    }
    return wb_fail(err, WB_INVALID,
                   "%s is not a store of Weighbridge and not empty; name another folder with "
                   "--store or WB_STORE",
                   path);
}

static int prepare(const char *path, bool create, const char *controller, struct wb_err *err)
{
    WB_AUTO_FREE char *config = config_path(path);
    WB_AUTO_FREE char *made =
        controller ? wb_strdup(controller)
                   : wb_strf("c%012llx", (unsigned long long)(wb_random_seed() >> 16));
    enum found found;
    int rc;

    if (wb_path_exists(config))
        return 0;
    rc = look(path, &found, err);
    if (rc < 0)
        return rc;
    if (found == FOUND_CLONE)
        return create ? write_config(path, made, err) : 0;
    if (!create)
        return wb_fail(err, WB_NOT_FOUND,
                       "there is no store of records at %s; 'weighbridge run' makes one, --store "
                       "or WB_STORE names another",
                       path);
    return make_store(path, made, err);
}

static int read_controller(struct wb_store *s, bool create, const char *wanted, struct wb_err *err)
{
    WB_AUTO_FREE char *id = NULL;
    int rc = wb_git_config(s->git, "weighbridge.controller", &id, err);

    if (rc == -WB_NOT_FOUND && !create)
        return 0; /* a copy that can only be read */
    if (rc == -WB_NOT_FOUND)
        return wb_fail(err, WB_CORRUPT,
                       "%s/weighbridge.config names no controller, so nothing can be recorded; "
                       "put it back: git config --file %s/weighbridge.config "
                       "weighbridge.controller NAME (HEAD ends with its name)",
                       s->path, s->path);
    if (rc < 0)
        return rc;
    if (!good_controller(id))
        return wb_fail(err, WB_CORRUPT, "%s/weighbridge.config: '%s' is no controller id", s->path,
                       id);
    if (wanted && strcmp(wanted, id) != 0)
        return wb_fail(err, WB_CONFLICT, "the store %s belongs to controller '%s', not to '%s'",
                       s->path, id, wanted);
    s->controller = WB_STEAL(id);
    return 0;
}

int wb_store_open(const char *path, bool create, const char *controller, struct wb_store **out,
                  struct wb_err *err)
{
    size_t n = strlen(path);
    WB_AUTO_FREE char *config = NULL;
    struct wb_store *s;
    int rc;

    while (n > 1 && path[n - 1] == '/')
        n--;
    if (n == 0)
        return wb_fail(err, WB_INVALID, "the store's path is empty");
    if (controller && !good_controller(controller))
        return wb_fail(err, WB_INVALID,
                       "'%s' cannot be a controller id; allowed: up to 64 letters, digits, '.', "
                       "'_', '-', beginning with a letter or digit, no '..', no '.lock' at the end",
                       controller);
    s = wb_calloc(1, sizeof(*s));
    s->path = wb_strndup(path, n);
    config = config_path(s->path);
    rc = prepare(s->path, create, controller, err);
    if (rc == 0)
        rc = wb_git_open(s->path, wb_path_exists(config) ? config : NULL, &s->git, err);
    if (rc == 0)
        rc = read_controller(s, create || controller, controller, err);
    if (rc < 0) {
        wb_store_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

void wb_store_close(struct wb_store *s)
{
    if (!s)
        return;
    wb_index_free(s->index);
    wb_git_close(s->git);
    wb_strv_release(&s->notices);
    free(s->controller);
    free(s->path);
    free(s);
}

const char *wb_store_controller(const struct wb_store *s)
{
    return s->controller;
}

const char *wb_store_path(const struct wb_store *s)
{
    return s->path;
}

const struct wb_strv *wb_store_notices(const struct wb_store *s)
{
    return &s->notices;
}

void wb_record_release(struct wb_record *r)
{
    wb_json *docs[] = {r->summary, r->study, r->plan, r->environment, r->result, r->events};

    for (size_t i = 0; i < WB_LEN(docs); i++)
        wb_json_free(docs[i]);
    for (size_t i = 0; i < r->nrecipe_files; i++) {
        free(r->recipe_files[i].name);
        free(r->recipe_files[i].data);
    }
    for (size_t i = 0; i < r->nraw; i++) {
        free(r->raw[i].name);
        free(r->raw[i].data);
    }
    free(r->recipe_files);
    free(r->raw);
    free(r->run);
    *r = (struct wb_record){0};
}

bool wb_day_text(int64_t unix_ms, char out[11])
{
    struct wb_buf b = WB_BUF_INIT(64);

    if (unix_ms < 0 || unix_ms > 253402300799999)
        return false;
    wb_format_time(unix_ms, &b);
    memcpy(out, wb_buf_str(&b), 10);
    out[10] = '\0';
    wb_buf_release(&b);
    return true;
}

static void add_one(struct wb_added_list *l, struct wb_added a)
{
    wb_grow(&l->v, &l->cap, l->n + 1, sizeof(*l->v));
    l->v[l->n++] = a;
}

/* "<path> <id of an object>" of n bytes. False: it is something else. */
static bool read_added(const char *text, size_t n, struct wb_added *out)
{
    size_t hex = 2 * sizeof(out->object.id), len = n > hex ? n - hex - 1 : 0, name = len, end = len;
    struct wb_err err = WB_ERR_INIT;

    if (len == 0 || text[len] != ' ' || wb_oid_parse(text + len + 1, &out->object, &err) < 0)
        return false;
    while (name > 0 && text[name - 1] != '/')
        name--;
    if (end - name > 5 && !strncmp(text + end - 5, ".json", 5))
        end -= 5;
    out->path = wb_strndup(text, len);
    if (name == 0 || end == name || !wb_safe_path(out->path) ||
        (strncmp(text, "runs/", 5) != 0 && strncmp(text, WB_ANNOTATIONS "/", 12) != 0)) {
        free(WB_STEAL(out->path));
        return false;
    }
    out->id = wb_strndup(text + name, end - name);
    return true;
}

void wb_commit_added(const struct wb_git_commit *c, struct wb_added_list *out)
{
    *out = (struct wb_added_list){0};
    for (const char *line = c->message; *line;) {
        size_t n = strcspn(line, "\n"), skip = strlen(WB_ADDED);
        struct wb_added a = {0};

        if (n > skip && !strncmp(line, WB_ADDED, skip) && read_added(line + skip, n - skip, &a))
            add_one(out, a);
        line += n + (line[n] == '\n');
    }
    if (out->n == 0)
        add_one(out, (struct wb_added){.id = wb_strndup(c->message, strcspn(c->message, " \n"))});
}

bool wb_commit_adds(const struct wb_git_commit *c, const char *id)
{
    struct wb_added_list l;
    bool found = false;

    wb_commit_added(c, &l);
    for (size_t i = 0; !found && i < l.n; i++)
        found = !strcmp(l.v[i].id, id);
    wb_added_release(&l);
    return found;
}

void wb_added_release(struct wb_added_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->v[i].id);
        free(l->v[i].path);
    }
    free(l->v);
    *l = (struct wb_added_list){0};
}

void wb_run_place_release(struct wb_run_place *p)
{
    free(p->ref);
    free(p->path);
    *p = (struct wb_run_place){0};
}
