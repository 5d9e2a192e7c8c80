/*
 * The parity report: whether an instance in one form is the same thing as in another, but for what
 * the form is. Facts of the running process as the kernel says them and of its probe, compared
 * field by field.
 *
 * Fields are flat names with dots: version, build, files (digest of the prefix as the process sees
 * it), setting.NAME, paths.WHICH, limits.WHICH, libc, libc.build, allocator, filesystem (of the
 * prefix), data_filesystem, kernel.WHICH, thp_allowed, ulimit.WHICH, env.NAME, user.WHICH,
 * affinity.cpus, affinity.mems, nice, scheduler, oom_score_adj, seccomp, no_new_privs,
 * capabilities.WHICH, umask, security_label, network. Their values are texts, or null when the
 * kernel does not say. A recipe's allowed_differences name a field, or all below a dot ("ulimit").
 */
#ifndef WB_ENGINE_PARITY_H
#define WB_ENGINE_PARITY_H

#include "provisioners/forms/form.h"
#include "server/base/cgroup.h"
#include "server/base/json.h"

/* Where the facts of one running instance are. */
struct wb_parity_source {
    const char *proc, *sys; /* "/proc", "/sys"; fixtures in tests */
    pid_t pid;
    const struct wb_paths *paths; /* as the process sees them */
    int port;
    const wb_json *probe;                /* what the probe step said; NULL: nothing */
    const struct wb_limits_seen *limits; /* of its control group; NULL: unknown */
    const char *files;                   /* digest of its prefix; NULL: unknown */
    char *const *env; /* NAME=value texts of the recipe, NULL-ended: their values may be kept */
};
/* An object of the fields above; owned. Values that name the instance's own paths and port have
 * {prefix}, {config}, {data}, {log}, {port} for them. Of environment variables that neither the
 * recipe nor we set only a digest is kept. */
wb_json *wb_parity_facts(const struct wb_parity_source *s);

/*
 * What differs: an array of {field, here, there, allowed}, owned. allowed: names as above;
 * asked: more of them, differences that the study itself makes; both NULL-ended, may be NULL.
 * here and there are texts, null for unknown or absent.
 */
wb_json *wb_parity_compare(const wb_json *here, const wb_json *there, char *const *allowed,
                           const char *const *asked);
/* 0, or WB_CONFLICT naming each difference that is not allowed, with both values. */
int wb_parity_check(const wb_json *differences, const char *here, const char *there,
                    struct wb_err *err) WB_MUST_CHECK;

#endif
