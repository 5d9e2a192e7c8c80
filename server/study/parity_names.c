#include "server/study/recipe.h"

#include <string.h>

const char *const wb_parity_names[] = {
    "version",
    "build",
    "files",
    "allocator",
    "setting.",
    "paths.prefix",
    "paths.config",
    "paths.data",
    "paths.log",
    "limits.cpus",
    "limits.mems",
    "limits.memory",
    "limits.memory_swap",
    "limits.cpu_quota",
    "libc",
    "libc.build",
    "filesystem",
    "data_filesystem",
    "kernel.thp",
    "kernel.thp_defrag",
    "kernel.overcommit_memory",
    "kernel.swappiness",
    "kernel.somaxconn",
    "kernel.tcp_max_syn_backlog",
    "thp_allowed",
    "ulimit.nofile",
    "ulimit.nproc",
    "ulimit.memlock",
    "ulimit.stack",
    "ulimit.core",
    "ulimit.as",
    "ulimit.fsize",
    "ulimit.data",
    "ulimit.nice",
    "ulimit.rtprio",
    "env.",
    "user.uid",
    "user.gid",
    "user.groups",
    "affinity.cpus",
    "affinity.mems",
    "nice",
    "scheduler",
    "oom_score_adj",
    "seccomp",
    "no_new_privs",
    "capabilities.effective",
    "capabilities.permitted",
    "capabilities.bounding",
    "capabilities.ambient",
    "umask",
    "security_label",
    "network",
    NULL,
};

bool wb_parity_name_known(const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; wb_parity_names[i]; i++) {
        const char *known = wb_parity_names[i];
        size_t len = strlen(known);

        if (n == 0 || name[n - 1] == '.')
            return false;
        if (!strcmp(name, known) || (!strncmp(known, name, n) && known[n] == '.'))
            return true;
        if (known[len - 1] == '.' && n > len && !strncmp(name, known, len))
            return true;
    }
    return false;
}
