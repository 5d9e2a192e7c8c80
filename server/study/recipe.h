/*
 * A recipe: how one database is installed, configured, started, checked, measured and removed.
 * A folder: recipe.yaml, steps/, files/, studies/.
 */
#ifndef WB_STUDY_RECIPE_H
#define WB_STUDY_RECIPE_H

#include <stdbool.h>

#include "server/base/mem.h"
#include "server/base/problems.h"
#include "server/base/units.h"

/* Steps with fixed names: executables in steps/. stop, clean, unmount and wipe are all tried
 * whatever fails. */
enum wb_step {
    WB_STEP_FETCH, /* fill $WB_CACHE with the artifacts of $WB_VERSION; network allowed here only */
    WB_STEP_INSTALL,   /* unpack from $WB_CACHE into $WB_PREFIX; offline */
    WB_STEP_CONFIGURE, /* write $WB_CONFIG_DIR from WB_SETTING_* */
    WB_STEP_READY,     /* exit 0 ready, 75 not yet, other: failed */
    WB_STEP_PROBE,     /* {version, build, settings:{name: text}} of the running instance */
    WB_STEP_MEASURE,   /* {metrics:{name: number}} from the server's side */
    WB_STEP_STOP,
    WB_STEP_CLEAN,
    WB_STEP_UNMOUNT,
    WB_STEP_WIPE,
    WB_STEP_SETTLE, /* after the data load: exit 0 nothing is under way inside, 75 not yet */
    WB_STEP_COUNT
};
const char *wb_step_name(enum wb_step s);
/* Limit of a step where the recipe names none; of READY it is the whole wait, not one call. */
int64_t wb_step_default_limit_ns(enum wb_step s);

enum wb_param_type { WB_PARAM_TEXT, WB_PARAM_WORD, WB_PARAM_INT, WB_PARAM_BYTES, WB_PARAM_BOOL };
struct wb_param {
    char *name;
    enum wb_param_type type;
    char *dflt;           /* canonical text of the default */
    int64_t min, max;     /* INT and BYTES */
    struct wb_strv words; /* WORD */
    char *help;
};

struct wb_recipe_version {
    char *version;           /* exact text: "7.0.15" */
    char *source;            /* where from: "distribution", "maven" or "release" */
    struct wb_strv packages; /* packages whose files make the prefix, with their own versions pinned
                                at fetch */
    char *digest; /* optional pin: sha256 over the fetched artifacts' digests; NULL if recorded at
                     fetch only */
    char *lock;   /* maven: file of the recipe's folder below versions/ with a line "SHA-256
                     group:artifact:version[:classifier]" for each jar; else NULL */
    char *url;    /* release: where the archive is; else NULL */
    char *sha512; /* release: 128 hex digits; else NULL */
    /* Of a study's subject, borrowed; NULL in a recipe's own list: the file that takes the place of
     * an artifact (or NULL), and the SHA-256 that one of the artifacts must have. */
    const char *artifact, *artifact_sha256;
};

/* A port beside the client's, planned by the engine. Instances that share an address have one each.
 */
#define WB_RECIPE_PORTS_MAX 8
struct wb_recipe_port {
    char *name; /* "storage"; steps find it in WB_PORT_STORAGE */
    int dflt;
    bool loopback; /* at 127.0.0.1 even when the instance has an address of its own */
};

/* What can be done to a running instance while load goes on, each with a limit of its own. */
enum wb_op_kind {
    WB_OP_WORK,   /* its step does it, the instance stays what it was */
    WB_OP_LEAVE,  /* its step takes the instance out of the cluster */
    WB_OP_JOIN,   /* the engine starts the instance, which was held back until then */
    WB_OP_RESTART /* the engine stops the instance in an orderly way and starts it again */
};
struct wb_recipe_operation {
    char *name; /* "decommission"; of WORK and LEAVE it is also the name of a step */
    enum wb_op_kind kind;
    int64_t limit_ns; /* from its begin until the cluster is as it should be */
    char *help;
};

/* What the measure step gives. */
struct wb_recipe_metric {
    char *name, *unit; /* unit "" for plain counts */
    bool counter;      /* since start: the difference of two readings counts; else a gauge */
};

/* Names of the fields that the parity report compares (engine/parity.h), NULL-ended; one that ends
 * with a dot is a family of any names. */
extern const char *const wb_parity_names[];
/* Whether a recipe can name it among its allowed differences: a field, or the part before a dot,
 * which stands for all below it. */
bool wb_parity_name_known(const char *name);

struct wb_recipe {
    char *dir; /* absolute folder */
    char *name, *revision, *summary;
    char *protocol; /* of wb-load: "resp" */
    int port;       /* default client port */
    struct wb_recipe_port *ports;
    size_t nports;
    bool own_addresses;  /* on the host's network instance i has the address 127.0.0.(i+1), and all
                            have the same client port */
    bool measure_phases; /* step measure is also asked before and after each measured phase */
    bool data_in_files;  /* what was loaded lies in the data folder and is whole after an orderly
                            stop: it can be kept and taken again */
    struct wb_recipe_version *versions;
    size_t nversions;
    struct wb_param *params;
    size_t nparams;
    struct wb_strv start;     /* argv with {prefix} {config} {data} {log} {port} in it */
    struct wb_strv start_env; /* NAME=value with the same */
    struct wb_strv topologies;
    struct wb_recipe_operation *operations;
    size_t noperations;
    bool has_step[WB_STEP_COUNT];
    int64_t step_limit_ns[WB_STEP_COUNT];
    int64_t memory_min; /* smallest memory share it runs in, bytes */
    struct wb_recipe_metric *metrics;
    size_t nmetrics;
    struct wb_strv allowed_differences;
    struct wb_strv shared; /* files that it has in common with others, in the folder `shared` beside
                              its own, or, in a copy of the recipe alone, in it */
    struct wb_strv files;  /* of the folder without studies/ and those that are shared as
                              "shared/NAME", relative paths, sorted; see wb_recipe_path */
    char digest[65];       /* sha256 over those files: recipe content */
    char series_digest[65]; /* the same without the list of versions: part of series keys */
};

/* Reads and checks recipe.yaml in dir. All problems are added to p; NULL then. Free with
 * wb_recipe_free. */
struct wb_recipe *wb_recipe_read(const char *dir, struct wb_problems *p);
/* Where one of its files is; caller frees. */
char *wb_recipe_path(const struct wb_recipe *r, const char *file);
const struct wb_recipe_version *wb_recipe_find_version(const struct wb_recipe *r,
                                                       const char *version);
const struct wb_param *wb_recipe_find_param(const struct wb_recipe *r, const char *name);
const struct wb_recipe_operation *wb_recipe_find_operation(const struct wb_recipe *r,
                                                           const char *name);
/* Checks a value of a parameter and gives its canonical text (bytes as a number, bool as yes/no);
 * caller frees. */
int wb_param_check(const struct wb_param *p, const char *text, char **canonical,
                   struct wb_err *err) WB_MUST_CHECK;
/* How people see a canonical value: sizes in their largest exact unit, an empty text as "empty";
 * caller frees. */
char *wb_param_show(const struct wb_param *p, const char *canonical);
/* Names of the versions, for messages; caller frees. */
char *wb_recipe_version_list(const struct wb_recipe *r);
void wb_recipe_free(struct wb_recipe *r);
/* JSON Schema (2020-12) of recipe.yaml, made from the tables that check it; owned by the caller. It
 * has no "$schema" and no title. */
wb_json *wb_recipe_schema(void);

#endif
