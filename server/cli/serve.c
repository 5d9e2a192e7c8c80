/* `serve`: the service over REST. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/file.h"
#include "server/base/units.h"
#include "server/cli/commands.h"
#include "server/cli/config.h"
#include "provisioners/hosts/source.h"
#include "server/cli/places.h"
#include "server/cli/study_args.h"
#include "server/http/limit.h"
#include "server/http/serve.h"

#define PORT "8420"

struct opts {
    const char *address, *port, *certificate, *key, *requests, *pools;
    struct wb_strv hosts;
    bool anonymous_read;
};
static const struct wb_opt rows[] = {
    {"address", 0, WB_OPT_TEXT, offsetof(struct opts, address), "IP", 0, 0,
     "listen there instead of 127.0.0.1"},
    {"port", 'p', WB_OPT_TEXT, offsetof(struct opts, port), "N", 0, 0,
     "listen there instead of 8420; 0 takes any that is free"},
    {"pools", 0, WB_OPT_TEXT, offsetof(struct opts, pools), "FILE", 0, 0,
     "YAML file of pools of hosts, beside this machine ('local')"},
    {"host", 0, WB_OPT_LIST, offsetof(struct opts, hosts), "NAME", 0, 0,
     "a name that this server has, beside localhost and its address"},
    {"tls-certificate", 0, WB_OPT_TEXT, offsetof(struct opts, certificate), "FILE", 0, 0,
     "PEM file; then only TLS is spoken"},
    {"tls-key", 0, WB_OPT_TEXT, offsetof(struct opts, key), "FILE", 0, 0,
     "PEM file of the certificate's key"},
    {"requests-per-minute", 0, WB_OPT_TEXT, offsetof(struct opts, requests), "N", 0, 0,
     "of one token, and of one address without; 6000 unless given, 0 is no limit"},
    {"anonymous-read", 0, WB_OPT_FLAG, offsetof(struct opts, anonymous_read), NULL, 0, 0,
     "reading needs no token"},
    {0},
};

/* Not into a log: a file that only its owner may read, made before the token is. */
static int make_token_file(const struct wb_cli *cli, struct wb_err *err)
{
    int fd;

    if (!cli->token_named)
        return 0;
    fd = open(cli->token_file, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return wb_fail_sys(err, errno, "--token-file %s", cli->token_file);
    (void)close(fd);
    return 0;
}

/* What is shown of the token; caller frees. NULL: there is none. */
static char *shown(const struct wb_cli *cli, const char *token)
{
    WB_AUTO_FREE char *line = token ? wb_strf("%s\n", token) : NULL;

    if (!token || !cli->token_named)
        return wb_strdup(token);
    if (wb_file_write(cli->token_file, line, strlen(line), 0600, NULL) < 0)
        return wb_strdup(token); /* better seen than lost */
    return wb_strf("in %s", cli->token_file);
}

static void on_ready(void *arg, const char *url, const char *made)
{
    const struct wb_cli *cli = arg;
    WB_AUTO_FREE char *token = shown(cli, made);

    if (cli->json) {
        wb_json *o = wb_json_object();

        wb_json_set_str(o, "url", url);
        wb_json_set_str(o, "token", token);
        wb_cli_answer(cli, o, NULL);
    } else {
        (void)printf("listening on %s\n", url);
        if (token)
            (void)printf("token of the admin, %s: %s\n",
                         cli->token_named ? "made now" : "shown this once", token);
    }
    (void)fflush(stdout);
}

/* Pools of hosts; problems are told, then the exit code. */
static int read_pools(const struct wb_cli *cli, const struct opts *o,
                      const struct wb_places *places, struct wb_host_pools *out)
{
    WB_AUTO_FREE char *dir = wb_strf("%s/service/hosts", places->state);
    struct wb_problems p = {0};
    int rc = WB_EXIT_OK;

    wb_host_pools_read(o->pools, dir, out, &p);
    if (p.n)
        rc = wb_study_problems(cli, &p);
    wb_problems_release(&p);
    return rc;
}

static int run(const struct wb_cli *cli, const void *opts, int argc, char **argv)
{
    const struct opts *o = opts;
    struct wb_places places = {0};
    struct wb_err err = WB_ERR_INIT;
    struct wb_cancel *cancel = wb_cancel_new();
    WB_AUTO_FREE char *web = NULL;
    WB_AUTO_FREE char *recipes = NULL;
    WB_AUTO_FREE char *program = NULL;
    struct wb_host_pools pools = {0};
    int64_t port = 0, requests = WB_LIMIT_REQUESTS;
    int code = WB_EXIT_OK, rc = wb_parse_int(o->port ? o->port : PORT, 0, 65535, &port, &err);

    if (rc < 0)
        (void)wb_wrap(&err, "--port");
    else if (!o->certificate != !o->key)
        rc = wb_fail(&err, WB_INVALID, "--tls-certificate and --tls-key go together");
    else if (o->requests && (rc = wb_parse_int(o->requests, 0, 1000000, &requests, &err)) < 0)
        (void)wb_wrap(&err, "--requests-per-minute");
    if (rc == 0)
        rc = wb_places_find(cli, &places, &err);
    if (rc == 0)
        rc = wb_path_absolute(wb_config_get(cli->config, WB_SET_WEB), &web, &err);
    if (rc == 0)
        rc = wb_path_absolute(cli->recipes_dir, &recipes, &err);
    if (rc == 0)
        rc = wb_own_program(&program, &err);
    if (rc == 0)
        rc = make_token_file(cli, &err);
    if (rc == 0)
        rc = wb_cancel_on_signals(cancel, &err);
    if (rc == 0 && (code = read_pools(cli, o, &places, &pools)) == WB_EXIT_OK) {
        struct wb_cli copy = *cli;
        const struct wb_serve_spec spec = {.store = places.store,
                                           .state = places.state,
                                           .recipes = recipes,
                                           .web = web,
                                           .pools = &pools,
                                           .program = program,
                                           .load_program = places.load_program,
                                           .docker_socket = places.docker_socket,
                                           .address = o->address ? o->address : "127.0.0.1",
                                           .port = (uint16_t)port,
                                           .certificate = o->certificate,
                                           .key = o->key,
                                           .hosts = &o->hosts,
                                           .anonymous_read = o->anonymous_read,
                                           .requests = requests,
                                           .cancel = cancel,
                                           .ready = on_ready,
                                           .arg = &copy};

        rc = wb_serve(&spec, &err);
    }
    rc = rc < 0 ? wb_cli_fail(cli, &err) : code;
    wb_host_pools_release(&pools);
    wb_places_release(&places);
    wb_cancel_free(cancel);
    return rc;
}

const struct wb_command wb_cmd_serve = {
    .name = "serve",
    .summary = "serve campaigns over REST, with a queue and events",
    .help = "Listens on loopback unless told otherwise. The first start makes a token for the\n"
            "admin and shows it once; more are made with it over REST. Campaigns that run go on\n"
            "when the server ends, and the next one finds them again. Ends on SIGTERM.\n\n"
            "With --token-file the admin's token is written there, for its owner alone, instead\n"
            "of being shown. Commands speak to the service with --server URL or WB_SERVER.\n\n"
            "Campaigns wait in a fair queue for the hosts they need, all at once or none. Beside\n"
            "this machine, the pool 'local', there are those of the file of pools:\n\n"
            "  pools:\n"
            "    lab: {source: fake, class: big,\n"
            "          hosts: [lab1, {name: lab2, machine: m2}]}\n"
            "    spare: {source: fake, class: big, count: 4}\n\n"
            "A study names one with 'hosts: {pool: lab, database: 1, load: 1}'. A host whose\n"
            "campaign is over is looked at first and is free once nothing is left on it. Hosts of\n"
            "the source 'fake' are names for this machine, which still measures one at a time.\n\n"
            "State is in WB_STATE: service/service.db (queue, leases, tokens, audit, stored\n"
            "studies), campaigns/ (one folder each); records are in the store. An older database\n"
            "is brought up to date; one of a newer program is left alone. Only one server uses a\n"
            "state folder (exit 22). A systemd unit is installed as weighbridge.service.\n",
    .opts = rows,
    .opts_size = sizeof(struct opts),
    .run = run,
    .here = true,
    .examples = "  weighbridge serve --token-file ~/.config/weighbridge/token\n"
                "  weighbridge serve --address 10.0.0.5 --host bench.example \\\n"
                "      --tls-certificate c.pem --tls-key k.pem\n"
                "  weighbridge serve --pools pools.yaml --anonymous-read\n",
};
