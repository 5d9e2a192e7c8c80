#include "server/cli/places.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/file.h"
#include "server/cli/config.h"

#define DOCKER_SOCKET "/var/run/docker.sock"

int wb_own_program(char **out, struct wb_err *err)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (n <= 0)
        return wb_fail_sys(err, errno, "cannot read /proc/self/exe");
    self[n] = '\0';
    *out = wb_strdup(self);
    return 0;
}

static int find_load(const struct wb_config *c, char **out, struct wb_err *err)
{
    const char *set = wb_config_get(c, WB_SET_LOAD_PROGRAM);
    WB_AUTO_FREE char *self = NULL;
    int rc;

    if (set)
        return wb_path_absolute(set, out, err);
    rc = wb_own_program(&self, err);
    if (rc < 0)
        return rc;
    *out = wb_strf("%.*s/wb-load", (int)(strrchr(self, '/') - self), self);
    if (access(*out, X_OK) < 0)
        return wb_fail_sys(err, errno, "the load program %s (WB_LOAD names another)", *out);
    return 0;
}

static int find_socket(const struct wb_config *c, char **out, struct wb_err *err)
{
    const char *set = wb_config_get(c, WB_SET_DOCKER_SOCKET), *host = getenv("DOCKER_HOST");

    if (set)
        return wb_path_absolute(set, out, err);
    if (host && *host) {
        if (strncmp(host, "unix://", 7) != 0)
            return wb_fail(err, WB_INVALID, "DOCKER_HOST is '%s'; only unix:// sockets are taken",
                           host);
        *out = wb_strdup(host + 7);
        return 0;
    }
    *out = wb_strdup(DOCKER_SOCKET);
    return 0;
}

int wb_places_find(const struct wb_cli *cli, struct wb_places *out, struct wb_err *err)
{
    char real[PATH_MAX];
    int rc = wb_path_absolute(cli->store_path, &out->store, err);

    out->state = wb_strdup(cli->state_dir);
    if (rc == 0)
        rc = wb_mkdir_all(out->state, 0755, err);
    if (rc == 0 && realpath(out->state, real)) {
        free(out->state);
        out->state = wb_strdup(real);
    }
    if (rc == 0)
        rc = find_load(cli->config, &out->load_program, err);
    if (rc == 0)
        rc = find_socket(cli->config, &out->docker_socket, err);
    out->store_flag = cli->store_named ? " --store " : "";
    out->store_arg = wb_strdup(cli->store_named ? cli->store_path : "");
    return rc;
}

int wb_places_look(const struct wb_cli *cli, struct wb_places *out, struct wb_err *err)
{
    int rc = wb_path_absolute(cli->store_path, &out->store, err);

    out->state = wb_strdup(cli->state_dir);
    if (rc == 0)
        rc = find_socket(cli->config, &out->docker_socket, err);
    if (rc == 0 && (find_load(cli->config, &out->load_program, NULL) < 0 ||
                    access(out->load_program, X_OK) < 0)) {
        free(out->load_program);
        out->load_program = NULL;
    }
    out->store_flag = "";
    return rc;
}

void wb_places_release(struct wb_places *p)
{
    free(p->store);
    free(p->state);
    free(p->load_program);
    free(p->docker_socket);
    free(p->store_arg);
    *p = (struct wb_places){0};
}
