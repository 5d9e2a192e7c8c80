#include "server/http/serve.h"

#include <ctype.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/http/daemon.h"
#include "server/queue/queue.h"

#define PEM_MAX (256u << 10)
#define ARENAS 2      /* of malloc; one for each thread would keep what each once needed */
#define TRIM_TICKS 10 /* seconds after which freed memory goes back to the kernel */

struct parts {
    const struct wb_serve_spec *spec;
    struct wb_service service;
    struct wb_pool *pool;
    struct wb_daemon *daemon;
    char *db_path, *certificate, *key, *token;
    int lock;
    struct wb_db *db; /* of the thread that ticks */
    int64_t looked_ns;
};

static void tell(void *arg, const char *const *topics, const char *type, wb_json *data)
{
    struct parts *p = arg;

    wb_hub_publish(p->service.hub, topics, type, data);
}

/* Streams end with the token they were opened with. What cannot be looked at is looked at again. */
static void check_streams(struct parts *p)
{
    struct wb_strv tokens = {0};

    wb_hub_tokens(p->service.hub, &tokens);
    for (size_t i = 0; i < tokens.n; i++) {
        bool alive = true;

        if (wb_token_alive(p->db, tokens.v[i], wb_now_unix_ms(NULL), &alive, NULL) == 0 && !alive)
            wb_hub_end(p->service.hub, tokens.v[i]);
    }
    wb_strv_release(&tokens);
}

static void tick(void *arg)
{
    struct parts *p = arg;
    int64_t now = wb_now_ns(NULL);

    wb_hub_tick(p->service.hub, now);
    if (now - p->looked_ns >= WB_HUB_HEARTBEAT_MS * WB_MS) {
        p->looked_ns = now;
        check_streams(p);
    }
}

/* What signs cursors stays the same over restarts, so that a reader can go on with its list. */
static int read_secret(struct parts *p, struct wb_err *err)
{
    WB_AUTO_FREE char *path = wb_strf("%s/service/secret", p->spec->state);
    WB_AUTO_FREE char *text = NULL;
    size_t n = 0;

    if (wb_path_exists(path)) {
        int rc = wb_file_read(path, 1024, &text, &n, err);

        if (rc < 0)
            return rc;
        if (n == sizeof(p->service.secret)) {
            memcpy(p->service.secret, text, n);
            return 0;
        }
    }
    if (getrandom(p->service.secret, sizeof(p->service.secret), 0) !=
        (ssize_t)sizeof(p->service.secret))
        return wb_fail_sys(err, errno, "no random numbers");
    return wb_file_write(path, p->service.secret, sizeof(p->service.secret), 0600, err);
}

/* The first start makes the token of the admin. */
static int make_token(struct parts *p, struct wb_err *err)
{
    const struct wb_token_ask ask = {.name = "admin", .scopes = WB_SCOPE_ALL};
    struct wb_db *db = NULL;
    bool any = false;
    int rc = wb_queue_open(p->db_path, &db, err);

    if (rc == 0)
        rc = wb_token_any(db, &any, err);
    if (rc == 0 && !any)
        rc = wb_token_make(db, &ask, wb_now_unix_ms(NULL), &p->token, err);
    wb_db_close(db);
    return rc;
}

static void add_host(struct wb_strv *hosts, const char *name)
{
    wb_strv_add(hosts, name);
    for (char *c = hosts->v[hosts->n - 1]; *c; c++)
        *c = (char)tolower((unsigned char)*c);
}

static void set_hosts(struct parts *p)
{
    const struct wb_serve_spec *spec = p->spec;
    struct wb_strv *hosts = &p->service.hosts;

    add_host(hosts, "localhost");
    add_host(hosts, "127.0.0.1");
    add_host(hosts, "[::1]");
    if (strchr(spec->address, ':')) {
        WB_AUTO_FREE char *v6 = wb_strf("[%s]", spec->address);

        add_host(hosts, v6);
    } else {
        add_host(hosts, spec->address);
    }
    for (size_t i = 0; spec->hosts && i < spec->hosts->n; i++)
        add_host(hosts, spec->hosts->v[i]);
}

static int read_pem(const char *path, char **out, struct wb_err *err)
{
    size_t n = 0;

    return path ? wb_file_read(path, PEM_MAX, out, &n, err) : 0;
}

static int prepare(struct parts *p, struct wb_err *err)
{
    const struct wb_serve_spec *spec = p->spec;
    WB_AUTO_FREE char *dir = wb_strf("%s/service", spec->state);
    WB_AUTO_FREE char *lock = wb_strf("%s/lock", dir);
    WB_AUTO_FREE char *who = wb_strf("a server, process %d", (int)getpid());
    struct wb_store *store = NULL;
    int rc = wb_mkdir_all(dir, 0700, err);

    if (rc == 0)
        rc = wb_lock_file(lock, who, &p->lock, err);
    if (rc == 0)
        rc = wb_store_open(spec->store, true, NULL, &store, err); /* made when it is not there */
    wb_store_close(store);
    p->db_path = wb_strf("%s/service.db", dir);
    if (rc == 0)
        rc = make_token(p, err);
    if (rc == 0)
        rc = read_secret(p, err);
    if (rc == 0)
        rc = read_pem(spec->certificate, &p->certificate, err);
    if (rc == 0)
        rc = read_pem(spec->key, &p->key, err);
    return rc;
}

static int start(struct parts *p, struct wb_err *err)
{
    const struct wb_serve_spec *spec = p->spec;
    struct wb_service *s = &p->service;
    const struct wb_dispatch_spec dispatch = {.db_path = p->db_path,
                                              .store_path = spec->store,
                                              .state_dir = spec->state,
                                              .recipes_dir = spec->recipes,
                                              .program = spec->program,
                                              .load_program = spec->load_program,
                                              .docker_socket = spec->docker_socket,
                                              .pools = spec->pools,
                                              .tell = tell,
                                              .tick = tick,
                                              .arg = p};
    int rc;

    s->store_path = spec->store;
    s->state_dir = spec->state;
    s->recipes_dir = spec->recipes;
    s->web_dir = spec->web;
    s->pools = spec->pools;
    s->db_path = p->db_path;
    s->anonymous_read = spec->anonymous_read;
    s->secure = spec->certificate != NULL;
    s->started_ms = wb_now_unix_ms(NULL);
    /* Ids of events begin with the time, so those of an earlier server are always smaller. */
    s->limiter = wb_limiter_new(spec->requests);
    s->hub = wb_hub_new(s->started_ms * 1000);
    set_hosts(p);
    rc = wb_queue_open(p->db_path, &p->db, err);
    if (rc == 0)
        rc = wb_dispatch_start(&dispatch, &s->dispatch, err);
    if (rc == 0)
        rc = wb_pool_start(s, &p->pool, err);
    if (rc == 0) {
        const struct wb_daemon_spec http = {.service = s,
                                            .pool = p->pool,
                                            .address = spec->address,
                                            .port = spec->port,
                                            .certificate = p->certificate,
                                            .key = p->key};

        rc = wb_daemon_start(&http, &p->daemon, err);
    }
    return rc;
}

/* Streams end first, then what is being answered, then connections, then the thread that talks to
 * the hub. */
static void stop(struct parts *p)
{
    if (p->service.hub)
        wb_hub_close(p->service.hub);
    wb_pool_stop(p->pool);
    wb_daemon_stop(p->daemon);
    wb_dispatch_stop(p->service.dispatch);
    wb_db_close(p->db);
    wb_hub_free(p->service.hub);
    wb_limiter_free(p->service.limiter);
    wb_strv_release(&p->service.hosts);
    free(p->db_path);
    free(p->certificate);
    if (p->key)
        explicit_bzero(p->key, strlen(p->key));
    free(p->key);
    if (p->token)
        explicit_bzero(p->token, strlen(p->token));
    free(p->token);
    explicit_bzero(p->service.secret, sizeof(p->service.secret));
    if (p->lock >= 0)
        (void)close(p->lock);
}

static void serve_until_cancelled(struct parts *p)
{
    for (int n = 1; !wb_cancelled(p->spec->cancel); n++) {
        WB_IGNORE(wb_wait(p->spec->cancel, -1, WB_SEC, NULL));
        wb_daemon_tick(p->daemon, wb_now_ns(NULL));
        if (n % TRIM_TICKS == 0)
            (void)malloc_trim(0);
    }
}

int wb_serve(const struct wb_serve_spec *spec, struct wb_err *err)
{
    struct parts *p = wb_calloc(1, sizeof(*p));
    int rc;

    (void)mallopt(M_ARENA_MAX, ARENAS);
    p->spec = spec;
    p->lock = -1;
    rc = prepare(p, err);
    if (rc == 0)
        rc = start(p, err);
    if (rc == 0) {
        bool v6 = strchr(spec->address, ':');
        WB_AUTO_FREE char *url =
            wb_strf("%s://%s%s%s:%u", spec->certificate ? "https" : "http", v6 ? "[" : "",
                    spec->address, v6 ? "]" : "", wb_daemon_port(p->daemon));

        spec->ready(spec->arg, url, p->token);
        serve_until_cancelled(p);
    }
    stop(p);
    free(p);
    return rc;
}
