#include "server/cli/config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/fields.h"
#include "server/base/file.h"

#define PROJECT_FILE "weighbridge.yaml"
#define WIDTH_MIN 40
#define WIDTH_MAX 500
#define TEXT_MAX 4000 /* bytes of a path or URL */

/* What a value must be. */
enum kind { PATH, URL, REMOTE, NUMBER, WORD };

static const char *const colors[] = {"auto", "never", NULL};

const char *const wb_config_rows[WB_SET_N + 1][2] = {
    [WB_SET_STORE] = {"store", "the store of records"},
    [WB_SET_STATE] = {"state", "folder of campaigns, prefixes and caches"},
    [WB_SET_RECIPES] = {"recipes", "the folder of recipes"},
    [WB_SET_SERVER] = {"server", "URL of the service that --server speaks to: http:// or https://"},
    [WB_SET_TOKEN_FILE] = {"token_file", "a file that holds the token for the service"},
    [WB_SET_LOAD_PROGRAM] = {"load_program", "the load program"},
    [WB_SET_DOCKER_SOCKET] = {"docker_socket", "the container engine's socket"},
    [WB_SET_WEB] = {"web", "the folder of the pages that 'serve' shows"},
    [WB_SET_PUSH_REMOTE] = {"push.remote", "where 'push' sends records: a path, a URL or a name of "
                                           "the store's git settings"},
    [WB_SET_PRICE_BOOK] = {"price.book", "the price book of 'value'"},
    [WB_SET_WIDTH] = {"width", "columns of tables, 40 to 500, instead of the terminal's"},
    [WB_SET_COLOR] = {"color", "auto (on a terminal) or never"},
    [WB_SET_N] = {NULL, NULL},
};

static const struct {
    enum kind kind;
    const char *variable;
} rules[WB_SET_N] = {
    [WB_SET_STORE] = {PATH, "WB_STORE"},
    [WB_SET_STATE] = {PATH, "WB_STATE"},
    [WB_SET_RECIPES] = {PATH, "WB_RECIPES"},
    [WB_SET_SERVER] = {URL, "WB_SERVER"},
    [WB_SET_TOKEN_FILE] = {PATH, "WB_TOKEN_FILE"},
    [WB_SET_LOAD_PROGRAM] = {PATH, "WB_LOAD"},
    [WB_SET_DOCKER_SOCKET] = {PATH, "WB_DOCKER_SOCKET"},
    [WB_SET_WEB] = {PATH, "WB_WEB"},
    [WB_SET_PUSH_REMOTE] = {REMOTE, "WB_PUSH_REMOTE"},
    [WB_SET_PRICE_BOOK] = {PATH, "WB_PRICE_BOOK"},
    [WB_SET_WIDTH] = {NUMBER, "WB_WIDTH"},
    [WB_SET_COLOR] = {WORD, "WB_COLOR"},
};

/* Maps in the file whose keys are settings: "push" of "push.remote". */
static const char *const groups[] = {"push", "price"};

struct file {
    char *path;
    const char *state; /* "read", "absent", "ignored" */
    char *reason;
};

struct wb_config {
    char *value[WB_SET_N], *from[WB_SET_N];
    struct file files[2];
    size_t nfiles;
    const char *found; /* path of the project's file, when nobody named it; of `files` */
    struct wb_strv notices;
};

const char *wb_config_variable(enum wb_setting s)
{
    return rules[s].variable;
}

/* Takes both texts. */
static void put(struct wb_config *c, enum wb_setting s, char *value, char *from)
{
    free(c->value[s]);
    free(c->from[s]);
    c->value[s] = value;
    c->from[s] = from;
}

/* ---- one value ---- */

/* Whether a URL carries a user or password before its host. */
static bool has_login(const char *url)
{
    const char *host = strstr(url, "://");
    const char *at = host ? strchr(host + 3, '@') : NULL;

    return at && (size_t)(at - (host + 3)) < strcspn(host + 3, "/?#");
}

/* What is wrong with a text, or NULL. Texts that may hold a secret are not repeated. */
static char *fault(enum wb_setting s, const char *v)
{
    const char *key = wb_config_rows[s][0];

    if (!*v)
        return wb_strf("%s is empty; leave it out instead", key);
    if (strlen(v) > TEXT_MAX)
        return wb_strf("%s has %zu bytes, at most %d are taken", key, strlen(v), TEXT_MAX);
    for (const char *p = v; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return wb_strf("%s has a control character in it", key);
    if (rules[s].kind == URL && strncmp(v, "http://", 7) != 0 && strncmp(v, "https://", 8) != 0)
        return wb_strf("%s cannot be '%.100s'; allowed: http://HOST[:PORT] or https://HOST[:PORT]",
                       key, has_login(v) ? "(not shown)" : v);
    if ((rules[s].kind == URL || !strncmp(v, "http", 4)) && has_login(v))
        return wb_strf("%s has a user or password in it; secrets do not belong here: %s", key,
                       rules[s].kind == URL ? "token_file names a file with the token"
                                            : "git's credential helpers keep them");
    if (rules[s].kind == REMOTE && *v == '-')
        return wb_strf("%s cannot begin with '-'", key);
    return NULL;
}

/* A number or word that stands in the environment, where no table reads it. */
static char *scalar_fault(enum wb_setting s, const char *v)
{
    struct wb_err err = WB_ERR_INIT;
    int64_t n;

    if (rules[s].kind == NUMBER && wb_parse_int(v, WIDTH_MIN, WIDTH_MAX, &n, &err) < 0)
        return wb_strf("%s: %s", wb_config_rows[s][0], err.root);
    if (rules[s].kind == WORD && strcmp(v, colors[0]) != 0 && strcmp(v, colors[1]) != 0) {
        WB_AUTO_FREE char *hint = wb_did_you_mean(v, colors);

        return wb_strf("%s cannot be '%.100s'%s; allowed: auto or never", wb_config_rows[s][0], v,
                       hint);
    }
    return NULL;
}

/* Caller frees. */
static char *home(void)
{
    const char *h = getenv("HOME");
    struct passwd pw, *user = NULL;
    char buf[4096];

    if (h && *h)
        return wb_strdup(h);
    if (getpwuid_r(geteuid(), &pw, buf, sizeof(buf), &user) == 0 && user)
        return wb_strdup(user->pw_dir);
    return wb_strdup("/nonexistent");
}

/* Whether a remote is a path that counts from somewhere: a name or URL is not. */
static bool is_relative(enum wb_setting s, const char *v)
{
    return *v != '/' &&
           (rules[s].kind == PATH ||
            (rules[s].kind == REMOTE && (!strncmp(v, "./", 2) || !strncmp(v, "../", 3))));
}

/* A value of a file as what it means: paths from the file's folder on. */
static char *resolve(enum wb_setting s, const char *v, const char *folder)
{
    bool path = rules[s].kind == PATH || rules[s].kind == REMOTE;

    if (path && !strncmp(v, "~/", 2)) {
        WB_AUTO_FREE char *h = home();

        return wb_strf("%s/%s", h, v + 2);
    }
    if (!is_relative(s, v))
        return wb_strdup(v);
    while (!strncmp(v, "./", 2))
        v += 2;
    return wb_strf("%s/%s", folder, v);
}

/* ---- a file ---- */

/* What wb_fields_read fills. */
struct raw {
    char *text[WB_SET_N];
    int64_t number[WB_SET_N];
    int word[WB_SET_N];
    const struct wb_node *group[WB_LEN(groups)];
};

/* The key of a setting below a group (NULL: at the top), or NULL when it is not there. */
static const char *key_in(enum wb_setting s, const char *group)
{
    const char *key = wb_config_rows[s][0], *dot = strchr(key, '.');
    size_t n = group ? strlen(group) : 0;

    if (!group)
        return dot ? NULL : key;
    return dot && (size_t)(dot - key) == n && !strncmp(key, group, n) ? dot + 1 : NULL;
}

/* The field table of one level of the file, from the one table of settings. */
static size_t make_fields(const char *group, struct wb_field *rows)
{
    size_t n = 0;

    for (int s = 0; s < WB_SET_N; s++) {
        struct wb_field *f = &rows[n];

        if (!key_in((enum wb_setting)s, group))
            continue;
        *f = (struct wb_field){.key = key_in((enum wb_setting)s, group),
                               .type = WB_F_TEXT,
                               .offset = offsetof(struct raw, text) + (size_t)s * sizeof(char *),
                               .help = wb_config_rows[s][1]};
        if (rules[s].kind == NUMBER) {
            f->type = WB_F_INT;
            f->offset = offsetof(struct raw, number) + (size_t)s * sizeof(int64_t);
            f->min = WIDTH_MIN;
            f->max = WIDTH_MAX;
        } else if (rules[s].kind == WORD) {
            f->type = WB_F_WORD;
            f->offset = offsetof(struct raw, word) + (size_t)s * sizeof(int);
            f->words = colors;
        }
        n++;
    }
    for (size_t g = 0; !group && g < WB_LEN(groups); g++)
        rows[n++] = (struct wb_field){.key = groups[g],
                                      .type = WB_F_NODE,
                                      .offset = offsetof(struct raw, group) + g * sizeof(void *)};
    return n;
}

/* Keys that people try for a secret: told, and taken out. */
static void refuse_secrets(struct wb_node *map, struct wb_problems *p)
{
    static const char *const secrets[] = {"token", "password", "secret"};

    for (size_t i = 0; i < WB_LEN(secrets); i++) {
        const struct wb_node *n = wb_node_get(map, secrets[i]);

        if (!n)
            continue;
        wb_problem(p, n, "secret",
                   "%s: a secret does not belong in a settings file; write it to a file of its "
                   "own that only you can read, and name that with token_file",
                   secrets[i]);
        (void)wb_node_remove(map, secrets[i]);
    }
}

static void take_value(struct wb_config *c, enum wb_setting s, const struct wb_node *at,
                       char *value, const char *path, struct wb_problems *p)
{
    WB_AUTO_FREE char *why = fault(s, value);
    WB_AUTO_FREE char *folder = wb_strndup(path, (size_t)(strrchr(path, '/') - path));

    if (why)
        wb_problem(p, at, "bad-value", "%s", why);
    else if (s != WB_SET_SERVER || !c->value[s] || strcmp(c->value[s], value) != 0)
        put(c, s, resolve(s, value, folder), wb_strf("%s:%d", path, at->line));
    /* else the user named this server before the project did: see wb_config_found */
    free(value);
}

static void read_level(struct wb_config *c, struct wb_node *map, const char *group,
                       const char *path, struct wb_problems *p)
{
    struct wb_field rows[WB_SET_N + WB_LEN(groups)];
    size_t nrows = make_fields(group, rows);
    struct raw raw = {.word = {0}};

    for (int s = 0; s < WB_SET_N; s++) {
        raw.number[s] = -1;
        raw.word[s] = -1;
    }
    refuse_secrets(map, p);
    (void)wb_fields_read(map, group ? group : "a settings file", rows, nrows, &raw, p);
    for (int s = 0; s < WB_SET_N; s++) {
        const char *key = key_in((enum wb_setting)s, group);
        const struct wb_node *at = key ? wb_node_get(map, key) : NULL;

        if (at && raw.text[s])
            take_value(c, (enum wb_setting)s, at, WB_STEAL(raw.text[s]), path, p);
        else if (at && raw.number[s] >= 0)
            put(c, (enum wb_setting)s, wb_strf("%lld", (long long)raw.number[s]),
                wb_strf("%s:%d", path, at->line));
        else if (at && raw.word[s] >= 0)
            put(c, (enum wb_setting)s, wb_strdup(colors[raw.word[s]]),
                wb_strf("%s:%d", path, at->line));
    }
    for (size_t g = 0; !group && g < WB_LEN(groups); g++)
        if (wb_node_get(map, groups[g]))
            read_level(c, wb_node_get(map, groups[g]), groups[g], path, p);
}

/* Whether there is nothing but blanks and comments. */
static bool says_nothing(const char *text)
{
    while (*text) {
        text += strspn(text, " \t\r\n");
        if (*text && *text != '#')
            return false;
        text += strcspn(text, "\n");
    }
    return true;
}

static void read_text(struct wb_config *c, const char *text, size_t n, const char *path,
                      struct wb_problems *p)
{
    struct wb_node *root =
        says_nothing(text) && strlen(text) == n ? NULL : wb_yaml_check(text, n, p);

    if (root && root->kind != WB_NODE_MAP)
        wb_problem(p, root, "wrong-type",
                   "a map of keys and values is wanted, such as store: PATH");
    else if (root)
        read_level(c, root, NULL, path, p);
    wb_node_free(root);
}

/* Whether a file may be believed: it is this user's, root's, or that of who called sudo. */
static bool is_ours(const struct stat *st, char **reason)
{
    const char *sudo = geteuid() == 0 ? getenv("SUDO_UID") : NULL;
    int64_t caller = -1;

    if (sudo)
        WB_IGNORE(wb_parse_int(sudo, 0, UINT_MAX, &caller, NULL)); /* then there is none */
    if (st->st_uid != geteuid() && st->st_uid != 0 && (int64_t)st->st_uid != caller)
        *reason = wb_strf("it belongs to another user (uid %u)", st->st_uid);
    else if (S_ISREG(st->st_mode) && (st->st_mode & S_IWOTH))
        *reason = wb_strdup("everybody may write to it");
    return *reason == NULL;
}

static void leave_alone(struct wb_config *c, struct file *f, const char *way)
{
    f->state = "ignored";
    wb_strv_addf(&c->notices, "ignoring %s: %s%s%s%s", f->path, f->reason, way, *way ? f->path : "",
                 *way ? " uses it all the same" : "");
}

/* Opens it for reading, so that what is looked at is what is read; -1 with errno. */
static int open_file(const char *path, bool named, struct stat *st)
{
    struct stat link;
    int fd;

    /* A link in a folder that others write to could name any file of this user. */
    if (!named && lstat(path, &link) == 0 && S_ISLNK(link.st_mode) && link.st_uid != geteuid() &&
        link.st_uid != 0) {
        errno = EPERM;
        return -1;
    }
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, st) < 0) {
        int e = errno;

        close(fd);
        errno = e;
        return -1;
    }
    return fd;
}

/* Takes path. named: by the user, so that it must be there and is believed. */
static void read_file(struct wb_config *c, char *path, bool named, struct wb_problems *p)
{
    struct file *f = &c->files[c->nfiles++];
    struct wb_err err = WB_ERR_INIT;
    WB_AUTO_FREE char *text = NULL;
    struct stat st;
    WB_AUTO_CLOSE int fd = open_file(path, named, &st);
    int why = errno;
    size_t n = 0;

    *f = (struct file){.path = path, .state = "absent"};
    p->file = path;
    if (fd < 0 && !named && (why == ENOENT || why == ENOTDIR))
        return;
    if (fd < 0 && !named && (why == EACCES || why == EPERM)) {
        f->reason = wb_strdup(why == EPERM ? "it is a link that another user made"
                                           : "this user may not read it");
        leave_alone(c, f, "");
        return;
    }
    if (fd < 0) {
        (void)wb_fail_sys(&err, why, "cannot be read");
        wb_problem(p, NULL, "unreadable", "%s", err.root);
        return;
    }
    if (S_ISCHR(st.st_mode) && named) { /* /dev/null: none */
        f->state = "read";
        return;
    }
    if (!named && !is_ours(&st, &f->reason)) {
        leave_alone(c, f, "; WB_CONFIG=");
        return;
    }
    f->state = "read";
    if (!S_ISREG(st.st_mode)) /* a pipe would be waited for */
        wb_problem(p, NULL, "unreadable", "it is not a file");
    else if (wb_file_read_fd(fd, path, WB_NODE_TEXT_MAX, &text, &n, &err) < 0)
        wb_problem(p, NULL, "unreadable", "%s", err.root);
    else
        read_text(c, text, n, path, p);
}

/* ---- all of it ---- */

static char *user_file(void)
{
    const char *base = getenv("XDG_CONFIG_HOME");
    WB_AUTO_FREE char *h = home();

    return base && *base == '/' ? wb_strf("%s/weighbridge/config.yaml", base)
                                : wb_strf("%s/.config/weighbridge/config.yaml", h);
}

/* The nearest one upward; NULL when there is none. */
static char *project_file(void)
{
    char dir[PATH_MAX];

    if (!getcwd(dir, sizeof(dir)) || dir[0] != '/')
        return NULL;
    for (;;) {
        char *path = wb_strf("%s/" PROJECT_FILE, strcmp(dir, "/") ? dir : "");
        char *slash = strrchr(dir, '/');

        if (wb_path_exists(path))
            return path;
        free(path);
        if (!dir[1])
            return NULL;
        slash[slash == dir] = '\0';
    }
}

static void read_environment(struct wb_config *c, struct wb_problems *p)
{
    for (int s = 0; s < WB_SET_N; s++) {
        const char *v = getenv(rules[s].variable);
        WB_AUTO_FREE char *why = NULL;

        if (!v || !*v)
            continue;
        why = fault((enum wb_setting)s, v);
        if (!why)
            why = scalar_fault((enum wb_setting)s, v);
        p->file = rules[s].variable;
        if (why)
            wb_problem(p, NULL, "bad-value", "%s", why);
        else
            put(c, (enum wb_setting)s, wb_strdup(v), wb_strdup(rules[s].variable));
    }
}

int wb_config_read(bool files, struct wb_config **out, struct wb_problems *p)
{
    struct wb_config *c = wb_calloc(1, sizeof(*c));
    const char *named = getenv("WB_CONFIG"), *file = p->file;
    size_t before = p->n + p->dropped;
    struct wb_err err = WB_ERR_INIT;
    char *path = NULL;

    if (files) {
        read_file(c, user_file(), false, p);
        if (!named || !*named)
            path = project_file();
        else if (wb_path_absolute(named, &path, &err) < 0)
            wb_problem(p, NULL, "unreadable", "WB_CONFIG: %s", err.root);
        if (path && (!named || !*named))
            c->found = path;
        if (path)
            read_file(c, path, named && *named, p);
    }
    read_environment(c, p);
    p->file = file;
    *out = c;
    return (int)(p->n + p->dropped - before);
}

int wb_config_parse(const char *text, size_t n, const char *path, struct wb_config **out,
                    struct wb_problems *p)
{
    size_t before = p->n + p->dropped;

    *out = wb_calloc(1, sizeof(**out));
    read_text(*out, text, n, path, p);
    return (int)(p->n + p->dropped - before);
}

void wb_config_free(struct wb_config *c)
{
    if (!c)
        return;
    for (int s = 0; s < WB_SET_N; s++) {
        free(c->value[s]);
        free(c->from[s]);
    }
    for (size_t i = 0; i < c->nfiles; i++) {
        free(c->files[i].path);
        free(c->files[i].reason);
    }
    wb_strv_release(&c->notices);
    free(c);
}

const char *wb_config_get(const struct wb_config *c, enum wb_setting s)
{
    return c ? c->value[s] : NULL;
}

const char *wb_config_from(const struct wb_config *c, enum wb_setting s)
{
    return c ? c->from[s] : NULL;
}

bool wb_config_found(const struct wb_config *c, enum wb_setting s)
{
    size_t n = c && c->found ? strlen(c->found) : 0;

    return n && c->from[s] && !strncmp(c->from[s], c->found, n) && c->from[s][n] == ':';
}

void wb_config_set(struct wb_config *c, enum wb_setting s, const char *value, const char *option)
{
    if (value)
        put(c, s, wb_strdup(value), wb_strdup(option));
}

void wb_config_default(struct wb_config *c, enum wb_setting s, const char *value)
{
    if (!c->value[s] && value)
        put(c, s, wb_strdup(value), wb_strdup("default"));
}

wb_json *wb_config_files(const struct wb_config *c)
{
    wb_json *list = wb_json_array();

    for (size_t i = 0; i < c->nfiles; i++) {
        wb_json *o = wb_json_object();

        wb_json_set_str(o, "path", c->files[i].path);
        wb_json_set_str(o, "state", c->files[i].state);
        wb_json_set_str(o, "reason", c->files[i].reason);
        wb_json_push(list, o);
    }
    return list;
}

const struct wb_strv *wb_config_notices(const struct wb_config *c)
{
    return &c->notices;
}
