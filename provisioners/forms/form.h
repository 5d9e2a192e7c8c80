/*
 * How instances stand on a host: one const table of operations per form (native, docker; later
 * vm) and one explicit list of all of them. See provisioners/README.md for the smallest one.
 *
 * Every thing a form makes outside its folders has a name that is a pure function of
 * (form, run id, instance index), so that the engine can write it to its ledger before `start`.
 */
#ifndef WB_FORMS_FORM_H
#define WB_FORMS_FORM_H

#include "server/base/cancel.h"
#include "server/base/cgroup.h"
#include "server/base/json.h"
#include "server/base/mem.h"

/* How clients reach instances: on the host's own network, through ports that the container engine
 * publishes on the host, or at addresses of their own. */
enum wb_network { WB_NETWORK_HOST, WB_NETWORK_PUBLISHED, WB_NETWORK_ROUTED };
extern const char *const wb_network_names[]; /* "host", ..., NULL */

/* "docker x2": a form by name and its number of instances per host. */
#define WB_FORM_COUNT_MAX 64
struct wb_form_ref {
    const struct wb_form_ops *ops;
    int count;
};
/* Parses "native x1", "docker x4"; the error names the allowed forms. */
int wb_form_parse(const char *text, struct wb_form_ref *out, struct wb_err *err) WB_MUST_CHECK;

/* What all operations of one campaign share. Borrowed pointers, valid for the campaign. */
struct wb_form_env {
    const char *owner;    /* controller id */
    const char *campaign; /* campaign id */
    const struct wb_cgroup_fs *cgroups;
    const struct wb_cancel *cancel;
    const char *docker_socket; /* path of the Engine API's Unix socket */
    const char *cache_dir;     /* base image and build contexts, by digest */
    unsigned networks;         /* bit 1 << enum wb_network of each that the campaign's arms use */
    void (*note)(void *arg, const char *text); /* progress for people; may be NULL */
    void *note_arg;
};

/* The installed bits of a recipe version on the controller: a prefix folder and its digest. */
struct wb_bits {
    const char *recipe, *version;
    const char *prefix;     /* absolute folder with the unpacked bits */
    const char *digest;     /* sha256 over paths, modes and contents of the prefix */
    const char *base_suite; /* distribution of the base image: "bookworm" */
};

/* Where the recipe's paths are inside an instance. */
struct wb_paths {
    char *prefix, *config, *data, *log; /* owned */
};
void wb_paths_release(struct wb_paths *p);

struct wb_instance_spec {
    const char *run; /* run id */
    int index;       /* 0 .. count-1 */
    const char *dir; /* absolute folder of this instance on the host; has config/ data/ log/ (made
                        by the engine) */
    const struct wb_bits *bits;
    char *const
        *argv; /* the recipe's start, with paths of this form already filled in; argv[0] absolute */
    char *const *env; /* NULL-ended, may be NULL */
    struct wb_limits limits;
    int port; /* planned client port: of the host, and the one the program listens on */
    enum wb_network network; /* forms without a choice take HOST only */
    const char *image;       /* what `prepare` gave, NULL for forms without */
};

enum wb_instance_state { WB_INSTANCE_RUNNING, WB_INSTANCE_EXITED, WB_INSTANCE_GONE };
struct wb_instance_status {
    enum wb_instance_state state;
    int exit_code; /* when EXITED and not by a signal, else -1 */
    int signal;
    bool oom_killed;
    pid_t pid;        /* on the host, of the database process itself (0 unknown) */
    char cgroup[256]; /* relative name of its control group, "" unknown */
    char helper[256]; /* group of a process that works for it, such as a port proxy; "" none */
    char address[64]; /* where clients reach it; "" is the host's loopback */
};

/* One owned thing found on the host by looking at the kernel or the container engine. */
struct wb_owned {
    char *kind;     /* "container", "network", "volume", "group" */
    char *id;       /* name or id that `reap` takes */
    char *run;      /* run id from its mark, or NULL */
    char *campaign; /* from its mark, or NULL */
    char *owner;    /* from its mark, or NULL */
};
struct wb_owned_list {
    struct wb_owned *v;
    size_t n, cap;
};
void wb_owned_add(struct wb_owned_list *l, const char *kind, const char *id, const char *owner,
                  const char *campaign, const char *run);
void wb_owned_release(struct wb_owned_list *l);

struct wb_form_ops {
    const char *name;    /* "native" */
    const char *summary; /* one line for people */
    /* Whether this form can work here. No side effects; may block for seconds (an API call). */
    int (*check)(const struct wb_form_env *env, struct wb_err *err);
    /* Makes what arms of this form share (an image), once per campaign; idempotent, slow, never
     * inside a measured window. *image (owned by the caller; NULL for forms without) is a digest
     * reference; facts is an object to fill for the record (engine version, image digest, storage
     * driver). */
    int (*prepare)(const struct wb_form_env *env, const struct wb_bits *bits, char **image,
                   wb_json *facts, struct wb_err *err);
    /* Paths as the program will see them. */
    void (*paths)(const struct wb_bits *bits, const char *instance_dir, struct wb_paths *out);
    /* Name of the outside thing that start will make; caller frees. Pure. */
    char *(*name_of)(const char *run, int index);
    /* Starts one instance; returns when the process was started or with the reason (nothing left
     * then). */
    int (*start)(const struct wb_form_env *env, const struct wb_instance_spec *spec,
                 struct wb_err *err);
    /* State now. `name` is what name_of gave; `dir` the instance folder. */
    int (*status)(const struct wb_form_env *env, const char *name, const char *dir,
                  struct wb_instance_status *out, struct wb_err *err);
    /* Orderly stop within grace_ns, then force. Idempotent. */
    int (*stop)(const struct wb_form_env *env, const char *name, const char *dir, int64_t grace_ns,
                struct wb_err *err);
    /* Last max bytes of the instance's own output. */
    int (*logs)(const struct wb_form_env *env, const char *name, const char *dir, size_t max,
                struct wb_buf *out, struct wb_err *err);
    /* Removes everything of it (not the folder). Idempotent: succeeds when already gone. */
    int (*destroy)(const struct wb_form_env *env, const char *name, const char *dir,
                   struct wb_err *err);
    /* Everything with our marks on this host, whatever the ledger says. env->campaign may be NULL.
     */
    int (*list_owned)(const struct wb_form_env *env, struct wb_owned_list *out, struct wb_err *err);
    /* Removes one of them. Idempotent. */
    int (*reap)(const struct wb_form_env *env, const struct wb_owned *what, struct wb_err *err);
};

extern const struct wb_form_ops wb_form_native, wb_form_docker;
/* All forms, NULL-ended. */
extern const struct wb_form_ops *const wb_forms[];
const struct wb_form_ops *wb_form_find(const char *name); /* NULL when unknown */

/* Told of each thing that `prepare` of any form had made: in_use NULL when it was removed, else why
 * it was not. */
typedef void (*wb_form_pruned_fn)(void *arg, const char *id, const char *in_use);
/* Removes what forms keep for later campaigns of env->owner (images), but for what is in use. It is
 * made again when it is needed. WB_UNAVAILABLE: no container engine. */
int wb_forms_prune(const struct wb_form_env *env, wb_form_pruned_fn fn, void *arg,
                   struct wb_err *err) WB_MUST_CHECK;

#endif
