/* `serve`: the service over REST. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/file.h"
#include "server/base/units.h"
#include "server/cli/commands.h"
#include "server/cli/config.h"
#include "server/cli/places.h"
#include "server/http/limit.h"
#include "server/http/serve.h"

#define PORT "8420"

struct opts {
    const char *address, *port, *certificate, *key, *requests;
    struct wb_strv hosts;
    bool anonymous_read;
};
static const struct wb_opt rows[] = {
    {"address", 0, WB_OPT_TEXT, offsetof(struct opts, address), "IP", 0, 0,
     "listen there instead of 127.0.0.1"},
    {"port", 'p', WB_OPT_TEXT, offsetof(struct opts, port), "N", 0, 0,
     "listen there instead of 8420; 0 takes any that is free"},
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

static void on_ready(void *arg, const char *url, const char *token)
{
    const struct wb_cli *cli = arg;

    if (cli->json) {
        wb_json *o = wb_json_object();

        wb_json_set_str(o, "url", url);
        wb_json_set_str(o, "token", token);
        wb_cli_answer(cli, o, NULL);
    } else {
        (void)printf("listening on %s\n", url);
        if (token)
            (void)printf("token of the admin, shown this once: %s\n", token);
    }
    (void)fflush(stdout);
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
    int64_t port = 0, requests = WB_LIMIT_REQUESTS;
    int rc = wb_parse_int(o->port ? o->port : PORT, 0, 65535, &port, &err);

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
        rc = wb_cancel_on_signals(cancel, &err);
    if (rc == 0) {
        struct wb_cli copy = *cli;
        const struct wb_serve_spec spec = {.store = places.store,
                                           .state = places.state,
                                           .recipes = recipes,
                                           .web = web,
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
    rc = rc < 0 ? wb_cli_fail(cli, &err) : WB_EXIT_OK;
    wb_places_release(&places);
    wb_cancel_free(cancel);
    return rc;
}

const struct wb_command wb_cmd_serve = {
    .name = "serve",
    .summary = "serve campaigns over REST, with a queue and events",
    .help = "Listens on loopback unless told otherwise. The first start makes a token for the\n"
            "admin and shows it once; more are made with it over REST. Campaigns that run go on\n"
            "when the server ends, and the next one finds them again. Ends on SIGTERM.\n",
    .opts = rows,
    .opts_size = sizeof(struct opts),
    .run = run,
};
