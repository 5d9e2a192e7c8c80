#include "server/engine/host.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "server/base/file.h"
#include "server/base/units.h"

/* Not below any controller's own folders: two controllers must meet here. */
#define LOCK_DIR "/run/weighbridge"

int wb_host_lock(const char *who, int *fd, struct wb_err *err)
{
    int rc = wb_mkdir_all(LOCK_DIR, 0755, err);

    if (rc == 0)
        rc = wb_lock_file(LOCK_DIR "/host.lock", who, fd, err);
    if (rc == -WB_CONFLICT)
        return wb_wrap(err, "this host is busy; wait for it or stop it");
    return rc < 0 ? wb_wrap(err, "host lock (are you root?)") : 0;
}

int wb_host_pin(const char *cpus, struct wb_err *err)
{
    cpu_set_t set;
    int *v = NULL, n = 0;
    int rc = wb_parse_cpulist(cpus, &v, &n, err);

    CPU_ZERO(&set);
    for (int i = 0; rc == 0 && i < n; i++)
        if (v[i] < CPU_SETSIZE)
            CPU_SET((size_t)v[i], &set);
    free(v);
    if (rc == 0 && sched_setaffinity(0, sizeof(set), &set) < 0)
        rc = wb_fail_sys(err, errno, "cannot move to CPUs %s", cpus);
    return rc;
}
