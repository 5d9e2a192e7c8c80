/* `doctor`: is this host fit to measure on, and if not, what to do. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <unistd.h>

#include "provisioners/forms/docker_api.h"
#include "server/analysis/text.h"
#include "server/base/cancel.h"
#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/units.h"
#include "server/cli/commands.h"
#include "server/cli/places.h"
#include "server/collect/collect.h"
#include "server/engine/engine.h"
#include "server/engine/host.h"
#include "server/engine/leftovers.h"
#include "server/record/store.h"
#include "server/study/plan.h"
#include "server/study/study.h"

#define GIB (1LL << 30)
#define DISK_LEAST (1 * GIB)
#define DISK_COMFORT (5 * GIB)
#define MEMORY_LEAST (512LL << 20)
#define WATCH_NS (2 * WB_SEC) /* how long other work on the host is looked at */

/* What a check found. Only `bad` makes the host unfit. */
enum state { GOOD, NOTE, CAUTION, BAD };
static const char *const state_names[] = {"ok", "note", "caution", "bad"};

struct doctor {
    const struct wb_cli *cli;
    struct wb_places places;
    struct wb_cgroup_fs *cgroups;
    wb_json *checks;
    enum state worst;
};

/* Adds a result; todo may be NULL. Takes text and todo. */
static void say(struct doctor *d, const char *name, enum state state, char *text, char *todo)
{
    wb_json *c = wb_json_object();

    wb_json_set_str(c, "check", name);
    wb_json_set_str(c, "state", state_names[state]);
    wb_json_set_str(c, "text", text);
    wb_json_set_str(c, "todo", todo);
    wb_json_push(d->checks, c);
    if (state > d->worst)
        d->worst = state;
    free(text);
    free(todo);
}

/* ---- the machine ---- */

static void check_cores(struct doctor *d)
{
    struct wb_host_facts f = {0};
    struct wb_err err = WB_ERR_INIT;
    struct wb_buf b = WB_BUF_INIT(256);

    if (wb_host_facts_read(&f, &err) < 0) {
        say(d, "cores", BAD, wb_strf("cannot be read: %s", err.root), NULL);
        return;
    }
    if (f.ncpus < 2)
        say(d, "cores", BAD, wb_strf("%d CPU: database and load would share it", f.ncpus),
            wb_strdup("use a machine with 2 CPUs or more; `placement: shared` in a study measures "
                      "anyway and marks every result"));
    else if (f.ncpus < 4)
        say(d, "cores", NOTE, wb_strf("%d CPUs", f.ncpus),
            wb_strdup("several instances share the CPUs that the database gets; with 4 or more "
                      "each could have one of its own"));
    else
        say(d, "cores", GOOD, wb_strf("%d CPUs", f.ncpus), NULL);
    wb_format_bytes(f.memory_bytes, &b);
    if (f.memory_bytes < MEMORY_LEAST)
        say(d, "memory", BAD, wb_buf_take(&b), wb_strdup("512 MiB or more are needed"));
    else
        say(d, "memory", GOOD, wb_strf("%s, class %s", wb_buf_str(&b), f.host_class), NULL);
    wb_buf_release(&b);
    wb_host_facts_release(&f);
}

static void check_cgroups(struct doctor *d)
{
    struct wb_err err = WB_ERR_INIT;
    char text[2 * WB_ERR_TEXT_MAX];

    if (wb_cgroup_fs_open("/sys/fs/cgroup", &d->cgroups, &err) < 0)
        say(d, "cgroups", BAD, wb_strdup(wb_err_text(&err, text, sizeof(text))),
            wb_strdup("native runs need control groups: mount them (cgroup2 on /sys/fs/cgroup), or "
                      "leave the container this runs in"));
    else
        say(d, "cgroups", GOOD, wb_strf("version %d", wb_cgroup_version(d->cgroups)), NULL);
    if (geteuid() == 0)
        say(d, "rights", GOOD, wb_strdup("root"), NULL);
    else
        say(d, "rights", BAD, wb_strf("user %u, not root", (unsigned)geteuid()),
            wb_strdup("native runs make control groups: run as root (sudo)"));
}

static char *small_file(const char *path)
{
    struct wb_buf b = WB_BUF_INIT(4096);

    if (wb_file_read_small(path, &b, NULL) < 0) {
        wb_buf_release(&b);
        return NULL;
    }
    while (b.len && b.data[b.len - 1] == '\n')
        b.data[--b.len] = '\0';
    return wb_buf_take(&b);
}

static void check_clock(struct doctor *d)
{
    WB_AUTO_FREE char *source =
        small_file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    struct timex t = {0};
    int rc = adjtimex(&t);

    if (source && (!strcmp(source, "hpet") || !strcmp(source, "acpi_pm") || !strcmp(source, "pit")))
        say(d, "clock source", CAUTION,
            wb_strf("%s, which takes about a microsecond to read", source),
            wb_strdup("short times come out too long: boot with clocksource=tsc if the machine's "
                      "TSC is stable"));
    else
        say(d, "clock source", GOOD, wb_strdup(source ? source : "not told by this kernel"), NULL);
    if (rc < 0 || (t.status & STA_UNSYNC))
        say(d, "time of day", NOTE, wb_strdup("not kept by a time server, says the kernel"),
            wb_strdup("stamps of records may be wrong; run chrony or systemd-timesyncd. Durations "
                      "are not touched by it"));
    else
        say(d, "time of day", GOOD, wb_strf("kept, within %ld ms", t.maxerror / 1000 + 1), NULL);
}

static void check_governor(struct doctor *d)
{
    WB_AUTO_FREE char *governor = wb_governor("/sys");
    WB_AUTO_FREE char *thp = small_file("/sys/kernel/mm/transparent_hugepage/enabled");

    if (!governor)
        say(d, "governor", GOOD, wb_strdup("not applicable: this machine scales no frequency"),
            NULL);
    else if (!strcmp(governor, "performance"))
        say(d, "governor", GOOD, wb_strdup(governor), NULL);
    else
        say(d, "governor", CAUTION, wb_strf("%s: every run would be noisy", governor),
            wb_strdup("cpupower frequency-set -g performance"));
    if (thp && strstr(thp, "[always]"))
        say(d, "huge pages", NOTE, wb_strdup("transparent huge pages are always on"),
            wb_strdup("many databases ask for madvise: echo madvise "
                      ">/sys/kernel/mm/transparent_hugepage/enabled"));
}

/* Steal and the CPU that others use, over two seconds. */
static void check_quiet(struct doctor *d)
{
    const struct wb_sampler_spec spec = {.cgroups = d->cgroups,
                                         .proc = "/proc",
                                         .database = (const char *const[]){NULL},
                                         .load = (const char *const[]){NULL},
                                         .agent = getpid()};
    struct wb_validity_limits limits;
    struct wb_sampler *sampler = NULL;
    struct wb_err err = WB_ERR_INIT;
    double steal, foreign;

    if (!d->cgroups || wb_sampler_new(&spec, &sampler, &err) < 0) {
        say(d, "quiet", CAUTION,
            wb_strf("could not be looked at%s%s", *err.root ? ": " : "", err.root), NULL);
        return;
    }
    WB_IGNORE(wb_wait(NULL, -1, WATCH_NS, &err)); /* without a token it cannot fail */
    wb_sampler_take(sampler, "look");
    WB_AUTO_JSON wb_json *window = wb_sampler_window(sampler, "look");

    wb_validity_defaults(&limits);
    steal = wb_json_real_or(wb_json_path(window, "steal_percent"), "mean", -1);
    foreign = wb_json_real_or(wb_json_path(window, "foreign_cores"), "mean", -1);
    if (steal < 0)
        say(d, "steal", CAUTION, wb_strdup("the kernel does not tell: runs would be unverified"),
            NULL);
    else if (steal > limits.steal_noisy)
        say(d, "steal", CAUTION, wb_strf("%.1f %% of the CPU goes to other guests", steal),
            wb_strdup(
                "a dedicated machine or instance type; until then expect noisy or invalid runs"));
    else
        say(d, "steal", GOOD, wb_strf("%.1f %%", steal), NULL);
    if (foreign < 0)
        say(d, "other work", CAUTION, wb_strdup("could not be counted: runs would be unverified"),
            NULL);
    else if (foreign > limits.foreign_noisy)
        say(d, "other work", CAUTION,
            wb_strf("other processes use %.2f cores; runs are noisy above %.2f", foreign,
                    limits.foreign_noisy),
            wb_strdup("end them, or wait: `top` shows which"));
    else
        say(d, "other work", GOOD, wb_strf("%.2f cores", foreign), NULL);
    wb_sampler_free(sampler);
}

/* ---- what runs need ---- */

static void check_engine(struct doctor *d)
{
    struct wb_engine *e = NULL;
    struct wb_err err = WB_ERR_INIT;

    if (wb_engine_open(d->places.docker_socket, &e, &err) < 0)
        say(d, "engine", CAUTION, wb_strf("no container engine: %s", err.root),
            wb_strdup("native forms work without. Start dockerd (apt-get install docker.io), name "
                      "its socket in WB_DOCKER_SOCKET, or use provisioners/with-docker COMMAND"));
    else
        say(d, "engine", GOOD, wb_strf("%s, API %s", e->server, e->api), NULL);
    wb_engine_close(e);
}

static void check_disk(struct doctor *d)
{
    WB_AUTO_FREE char *at = wb_strdup(d->places.state);
    struct wb_buf b = WB_BUF_INIT(256);
    struct wb_err err = WB_ERR_INIT;
    int64_t free_bytes = 0;

    while (!wb_path_exists(at) && strrchr(at, '/') && strrchr(at, '/') != at)
        *strrchr(at, '/') = '\0';
    if (wb_disk_free(at, &free_bytes, &err) < 0) {
        say(d, "disk", BAD, wb_strf("%s", err.root), NULL);
        return;
    }
    wb_format_bytes(free_bytes, &b);
    if (free_bytes < DISK_LEAST)
        say(d, "disk", BAD, wb_strf("%s free at %s", wb_buf_str(&b), at),
            wb_strdup(
                "free some, or name another place in WB_STATE and --store; 1 GiB is the least"));
    else if (free_bytes < DISK_COMFORT)
        say(d, "disk", CAUTION, wb_strf("%s free at %s", wb_buf_str(&b), at),
            wb_strdup("images and data sets may not fit; 5 GiB is comfortable"));
    else
        say(d, "disk", GOOD, wb_strf("%s free at %s", wb_buf_str(&b), at), NULL);
    wb_buf_release(&b);
}

/* Whether a program is found in PATH. */
static bool in_path(const char *name)
{
    const char *path = getenv("PATH");

    while (path && *path) {
        size_t n = strcspn(path, ":");
        WB_AUTO_FREE char *file = wb_strf("%.*s/%s", (int)n, path, name);

        if (access(file, X_OK) == 0)
            return true;
        path += n + (path[n] == ':');
    }
    return false;
}

static void check_programs(struct doctor *d)
{
    static const char *const needed[] = {"apt-get", "dpkg-deb", "mmdebstrap", NULL};
    struct wb_buf missing = WB_BUF_INIT(1024);

    for (size_t i = 0; needed[i]; i++)
        if (!in_path(needed[i]))
            wb_buf_addf(&missing, "%s%s", missing.len ? ", " : "", needed[i]);
    if (!d->places.load_program)
        say(d, "load program", BAD, wb_strdup("wb-load is not beside this program"),
            wb_strdup("install it there, or name it in WB_LOAD"));
    if (missing.len)
        say(d, "programs", CAUTION, wb_strf("not here: %s", wb_buf_str(&missing)),
            wb_strdup("recipes of distribution packages and their base image need them: "
                      "apt-get install mmdebstrap (Debian)"));
    else
        say(d, "programs", GOOD, wb_strdup("apt-get, dpkg-deb, mmdebstrap"), NULL);
    wb_buf_release(&missing);
}

/* ---- what is on the host ---- */

static void check_lock(struct doctor *d)
{
    struct wb_err err = WB_ERR_INIT;

    if (wb_host_look(WB_HOST_DIR, &err) == 0)
        say(d, "host lock", GOOD, wb_strdup("free"), NULL);
    else if (err.code == WB_CONFLICT)
        say(d, "host lock", CAUTION, wb_strdup(err.root),
            wb_strdup("`run --wait-for-host SECONDS` waits for its turn"));
    else
        say(d, "host lock", BAD, wb_strdup(err.root), wb_strdup("run as root (sudo)"));
    err = (struct wb_err)WB_ERR_INIT;
    if (wb_quarantine_check(WB_HOST_DIR, &err) < 0)
        say(d, "quarantine", BAD, wb_strdup(err.root), wb_strdup("`weighbridge clean`"));
    else
        say(d, "quarantine", GOOD, wb_strdup("none"), NULL);
}

static void check_leftovers(struct doctor *d)
{
    struct wb_err err = WB_ERR_INIT;
    struct wb_store *s = NULL;
    WB_AUTO_JSON wb_json *seen = NULL;
    struct wb_buf list = WB_BUF_INIT(65536);
    size_t n = 0;

    if (wb_store_open(d->places.store, false, NULL, &s, &err) < 0) {
        say(d, "leftovers", GOOD,
            wb_strf("no store at %s yet, so nothing is its own", d->places.store), NULL);
        return;
    }
    const struct wb_form_env env = {.owner = wb_store_controller(s),
                                    .cgroups = d->cgroups,
                                    .docker_socket = d->places.docker_socket};

    if (!env.owner || !d->cgroups || wb_host_snapshot(&env, NULL, d->places.state, &seen, &err) < 0)
        say(d, "leftovers", CAUTION,
            wb_strf("could not be looked for%s%s", *err.root ? ": " : "", err.root), NULL);
    for (size_t i = 0; i < wb_json_len(seen); i++) {
        const char *what = wb_json_string(wb_json_at(seen, i));

        if (!what || !strncmp(what, "port ", 5)) /* those of others, too */
            continue;
        if (n++ < 5)
            wb_buf_addf(&list, "%s%s", n > 1 ? "; " : "", what);
    }
    if (seen && n)
        say(d, "leftovers", CAUTION,
            wb_strf("%zu of ours on this host: %s%s", n, wb_buf_str(&list), n > 5 ? "; ..." : ""),
            wb_strdup("a campaign that runs now is fine; else `weighbridge clean`"));
    else if (seen)
        say(d, "leftovers", GOOD, wb_strdup("none"), NULL);
    wb_buf_release(&list);
    wb_store_close(s);
}

/* ---- */

static void print(const struct doctor *d, struct wb_buf *out)
{
    static const enum wb_tint tints[] = {WB_GOOD, WB_PLAIN, WB_CAUTION, WB_BAD};
    struct wb_table *t = wb_table_new();

    wb_table_column(t, "check", WB_RIGHT);
    wb_table_column(t, "state", WB_RIGHT);
    wb_table_column(t, "what was found", WB_LEFT);
    wb_table_color(t, d->cli->color);
    for (size_t i = 0; i < wb_json_len(d->checks); i++) {
        const wb_json *c = wb_json_at(d->checks, i);
        const char *state = wb_json_str_or(c, "state", "");
        enum state s = GOOD;

        while (strcmp(state_names[s], state) != 0)
            s++;
        wb_table_row(t);
        wb_table_cell(t, "%s", wb_json_str_or(c, "check", ""));
        wb_table_cell(t, "%s", state);
        wb_table_tint(t, tints[s]);
        wb_table_cell(t, "%s", wb_json_str_or(c, "text", ""));
    }
    wb_table_print(t, d->cli->width, out);
    wb_table_free(t);
    for (size_t i = 0; i < wb_json_len(d->checks); i++) {
        const wb_json *c = wb_json_at(d->checks, i);
        WB_AUTO_FREE char *first = NULL;
        WB_AUTO_FREE char *text = NULL;

        if (!wb_json_string(wb_json_get(c, "todo")))
            continue;
        first = wb_strf("\n%s: ", wb_json_str_or(c, "check", ""));
        text =
            wb_strf("%s. To do: %s", wb_json_str_or(c, "text", ""), wb_json_str_or(c, "todo", ""));
        wb_text_wrapped(out, first, 2, text, d->cli->width);
    }
    wb_buf_adds(out, d->worst == BAD       ? "\nThis host is unfit.\n"
                     : d->worst == CAUTION ? "\nThis host can be used, with care.\n"
                                           : "\nThis host is fit.\n");
}

static int doctor(const struct wb_cli *cli, const void *options, int argc, char **argv)
{
    struct doctor d = {.cli = cli, .checks = wb_json_array()};
    struct wb_buf out = WB_BUF_INIT(1u << 20);
    struct wb_err err = WB_ERR_INIT;

    if (wb_places_look(cli, &d.places, &err) < 0) {
        wb_json_free(d.checks);
        return wb_cli_fail(cli, &err);
    }
    check_cores(&d);
    check_cgroups(&d);
    check_clock(&d);
    check_governor(&d);
    check_quiet(&d);
    check_engine(&d);
    check_programs(&d);
    check_disk(&d);
    check_lock(&d);
    check_leftovers(&d);
    if (cli->json) {
        wb_json *doc = wb_json_object();

        wb_json_set_bool(doc, "fit", d.worst != BAD);
        wb_json_set_str(doc, "worst", state_names[d.worst]);
        wb_json_set(doc, "checks", wb_json_ref(d.checks));
        wb_cli_answer(cli, doc, "checks");
    } else {
        print(&d, &out);
        wb_cli_print(&out);
    }
    wb_json_free(d.checks);
    wb_cgroup_fs_free(d.cgroups);
    wb_places_release(&d.places);
    return d.worst == BAD ? WB_EXIT_UNFIT : WB_EXIT_OK;
}

const struct wb_command wb_cmd_doctor = {
    .name = "doctor",
    .summary = "is this host fit to measure on, and what to do if not",
    .help =
        "Looks at CPUs, memory, control groups, clock, frequency governor, steal and other work\n"
        "(over two seconds), the container engine, disk, and what earlier campaigns left.\n"
        "Changes nothing. Exit code 17: unfit, a run would be refused or mean nothing.\n"
        "'caution' is what may make runs noisy or leaves a form out.\n",
    .here = true,
    .run = doctor,
};
