/*
 * The command line: one table of subcommands, each a row with its options, from which help is
 * made and arguments are read. One file per subcommand, thin: read options, call the room that
 * does the work, print.
 *
 * Data goes to stdout, everything else to stderr. `--json` prints exactly one document on stdout,
 * also for errors: {"error": {"code", "message"}}. `--ndjson` prints the same in lines: a list is
 * one line per member.
 */
#ifndef WB_CLI_CLI_H
#define WB_CLI_CLI_H

#include <stdbool.h>

#include "server/base/buf.h"
#include "server/base/err.h"
#include "server/base/json.h"
#include "server/base/mem.h"

enum wb_exit {
    WB_EXIT_OK = 0,
    WB_EXIT_UNEXPECTED = 1,
    WB_EXIT_USAGE = 2,         /* usage or invalid study */
    WB_EXIT_WORSE = 10,        /* gate: worse than the reference */
    WB_EXIT_INCONCLUSIVE = 11, /* gate: not decided, and that was asked for */
    WB_EXIT_SUT = 12,
    WB_EXIT_INFRA = 13,     /* infra-error, capacity, harness-error, inconsistent */
    WB_EXIT_NOT_VALID = 14, /* not steady, or no valid run */
    WB_EXIT_DAMAGE = 15,    /* verify found damage */
    WB_EXIT_LEFT = 16,      /* something is left, or teardown incomplete */
    WB_EXIT_UNFIT = 17,     /* doctor: host unfit */
    WB_EXIT_REFUSED = 20,   /* a server does not know who asks, or that token may not */
    WB_EXIT_NOT_FOUND = 21,
    WB_EXIT_CONFLICT = 22,
    WB_EXIT_UNREACHABLE = 23, /* the server */
    WB_EXIT_WAITED = 24,      /* long enough; the work goes on */
    WB_EXIT_LIMITED = 25,     /* by the server's rate limit, after retries */
    WB_EXIT_INTERRUPTED = 130
};

enum wb_opt_type {
    WB_OPT_FLAG /* bool */,
    WB_OPT_TEXT /* const char * */,
    WB_OPT_INT /* int64_t */,
    WB_OPT_LIST /* struct wb_strv */
};
struct wb_opt {
    const char *name; /* "rounds" for --rounds N or --rounds=N */
    char letter;      /* 'f' for -f, or 0 */
    enum wb_opt_type type;
    size_t offset;    /* of the member in the command's options struct */
    const char *arg;  /* "N", "DIR"; NULL for flags */
    int64_t min, max; /* INT */
    const char *help;
};

struct wb_config;

/* What every command gets. */
struct wb_cli {
    bool json;   /* --json or --ndjson, accepted by every command */
    bool ndjson; /* documents go out in lines */
    bool no_color;
    bool color;             /* stdout is a terminal that takes colour */
    int width;              /* of the terminal on stdout */
    bool store_named;       /* by --store, not by default or environment */
    const char *store_path; /* of the settings, as recipes_dir and state_dir are */
    const char *recipes_dir;
    const char *state_dir; /* campaigns, prefixes, caches; absolute */
    struct wb_config *config;
    const char *server;     /* of the settings; NULL: what is asked is done here */
    bool server_named;      /* by --server */
    const char *token_file; /* of the settings, or NULL */
    bool token_named;       /* by --token-file */
};

struct wb_command {
    const char *name;
    const char *args;          /* "STUDY", "REF OTHER..." for the usage line */
    const char *summary;       /* one line */
    const char *help;          /* more, may be NULL; ends with \n */
    const struct wb_opt *opts; /* rows ended by one with name NULL; may be NULL */
    size_t opts_size;          /* sizeof of the options struct, zeroed before reading */
    int min_args, max_args;    /* positional; max -1: any number */
    /* opts: the filled options struct. Returns an exit code. NULL: only a server can do it. */
    int (*run)(const struct wb_cli *cli, const void *opts, int argc, char **argv);
    /* The same with a server (cli->server) instead of this machine; NULL: that cannot be. */
    int (*remote)(const struct wb_cli *cli, const void *opts, int argc, char **argv);
    bool here;   /* about this machine by nature: a server of the environment does not change it */
    bool hidden; /* not in the list of `weighbridge help` */
    bool no_store;        /* works without a store: help does not speak of one */
    bool no_files;        /* reads no settings files: the environment says all */
    const char *examples; /* lines "  weighbridge ...\n"; may be NULL */
};

/* server/cli/commands.c: all of them, NULL-ended. */
extern const struct wb_command *const wb_commands[];

/* Reports an error once at the edge and gives the exit code that fits its code. */
int wb_cli_fail(const struct wb_cli *cli, const struct wb_err *err);
/* The same; with --json the one document is doc, which is taken, with "error" in it. */
int wb_cli_fail_with(const struct wb_cli *cli, const struct wb_err *err, wb_json *doc);
/* The same with an exit code and a word of the caller's. */
int wb_cli_say(const struct wb_cli *cli, enum wb_exit rc, const char *code, const char *text);
/* Prints a document on stdout, and frees it: as one document, or with --ndjson in lines. list names
 * the member whose items are a line each; NULL: the document is one line. */
void wb_cli_answer(const struct wb_cli *cli, wb_json *doc, const char *list);
/* Writes a builder to stdout and releases it. */
void wb_cli_print(struct wb_buf *b);

/* main: picks the command, reads options, runs it. */
int wb_cli_main(int argc, char **argv);

#endif
