/*
 * Where the programs and folders of a command are: absolute paths from flags, environment and
 * defaults.
 */
#ifndef WB_CLI_PLACES_H
#define WB_CLI_PLACES_H

#include "server/cli/cli.h"

struct wb_places {
    char *store, *state; /* absolute; state exists */
    char *load_program;  /* WB_LOAD, else wb-load beside this program */
    char *docker_socket; /* WB_DOCKER_SOCKET, else DOCKER_HOST=unix://..., else the usual place */
    const char *store_flag; /* " --store " when the user named one, else "": for hints */
    char *store_arg;        /* what the user named, else "" */
};

/* WB_INVALID when DOCKER_HOST names something that is not a Unix socket, WB_NOT_FOUND without
 * wb-load. */
int wb_places_find(const struct wb_cli *cli, struct wb_places *out,
                   struct wb_err *err) WB_MUST_CHECK;
/* The same without making or wanting anything: the state folder may be absent, load_program NULL.
 */
int wb_places_look(const struct wb_cli *cli, struct wb_places *out,
                   struct wb_err *err) WB_MUST_CHECK;
void wb_places_release(struct wb_places *p);

/* Absolute path of this program; caller frees. */
int wb_own_program(char **out, struct wb_err *err) WB_MUST_CHECK;

#endif
