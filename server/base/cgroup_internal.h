/* Shared by cgroup.c and cgroup_read.c only. */
#ifndef WB_BASE_CGROUP_INTERNAL_H
#define WB_BASE_CGROUP_INTERNAL_H

#include "server/base/cgroup.h"

/* Version 1 controllers used; version 2 has one tree for all. Order: memory first, because a
 * group's members are read there. */
enum wb_controller { WB_CG_MEMORY, WB_CG_CPU, WB_CG_CPUACCT, WB_CG_CPUSET, WB_CG_PIDS, WB_CG_N };

struct wb_cgroup_fs {
    int version;
    char *root;
    bool has[WB_CG_N];
};

/* Path of a file of a group for a controller; caller frees. file may be NULL: the folder. */
char *wb_cgroup_path(const struct wb_cgroup_fs *fs, enum wb_controller c, const char *name,
                     const char *file);
/* Relative group names have no empty, "." or ".." part and do not begin with '/'. */
int wb_cgroup_check_name(const char *name, struct wb_err *err);

#endif
