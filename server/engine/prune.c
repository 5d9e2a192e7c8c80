#include "server/engine/prune.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "provisioners/forms/form.h"
#include "server/base/file.h"

#define MANIFEST_MAX (1u << 20)
#define STATE_MAX (8u << 20)

static void pruned(struct wb_clean_report *report, const char *kind, const char *id)
{
    wb_json *j = wb_json_object();

    wb_json_set_str(j, "kind", kind);
    wb_json_set_str(j, "id", id);
    wb_json_push(report->pruned, j);
}

static void kept(struct wb_clean_report *report, const char *kind, const char *id, const char *why)
{
    WB_AUTO_FREE char *text = wb_strf("%s %s was kept: %s", kind, id, why);

    wb_json_push(report->notes, wb_json_str(text));
}

/* Whether a campaign was broken off, and its resumption is to find the bits that it began with. */
static bool can_go_on(const wb_json *state)
{
    static const char *const over[] = {"finished", "failed", NULL};
    const char *word = wb_json_str_or(state, "state", "running");

    for (size_t i = 0; over[i]; i++)
        if (!strcmp(word, over[i]))
            return false;
    return true;
}

/* Digests of the bits of campaigns that can go on, each with its campaign: {DIGEST: ID}. */
static int needed(const char *state_dir, wb_json **out, struct wb_err *err)
{
    struct wb_strv ids = {0};
    wb_json *all;
    int rc = wb_campaign_list(state_dir, &ids, err);

    if (rc < 0)
        return rc;
    all = wb_json_object();
    for (size_t i = 0; i < ids.n; i++) {
        WB_AUTO_FREE char *path = wb_strf("%s/campaigns/%s/state.json", state_dir, ids.v[i]);
        WB_AUTO_JSON wb_json *state = NULL;
        const char *bits;

        if (wb_json_read_file(path, STATE_MAX, &state, NULL) < 0)
            continue; /* without its state it is not resumed either */
        bits = wb_json_str_or(state, "bits", NULL);
        if (bits && can_go_on(state))
            wb_json_set_str(all, bits, ids.v[i]);
    }
    wb_strv_release(&ids);
    *out = all;
    return 0;
}

static int prune_prefix(const char *folder, const char *name, const wb_json *need,
                        struct wb_clean_report *report, struct wb_err *err)
{
    WB_AUTO_FREE char *prefix = wb_strf("%s/%s", folder, name);
    WB_AUTO_FREE char *manifest = wb_strf("%s.json", prefix);
    WB_AUTO_JSON wb_json *j = NULL;
    const char *user = NULL;
    int rc;

    if (wb_json_read_file(manifest, MANIFEST_MAX, &j, NULL) == 0)
        user = wb_json_str_or(need, wb_json_str_or(j, "digest", ""), NULL);
    if (user) {
        WB_AUTO_FREE char *why = wb_strf("campaign %s can be resumed", user);

        kept(report, "prefix", prefix, why);
        return 0;
    }
    /* The manifest goes first: a prefix without one is made again, a part of one never used. */
    if (unlink(manifest) < 0 && errno != ENOENT)
        return wb_fail_sys(err, errno, "cannot remove %s", manifest);
    rc = wb_remove_tree(prefix, err);
    if (rc == 0)
        pruned(report, "prefix", prefix);
    return rc;
}

static int prune_prefixes(const struct wb_clean_spec *spec, struct wb_clean_report *report,
                          struct wb_err *err)
{
    WB_AUTO_FREE char *folder = wb_strf("%s/prefix", spec->state_dir);
    WB_AUTO_JSON wb_json *need = NULL;
    struct wb_strv names = {0};
    int rc = needed(spec->state_dir, &need, err);

    if (rc == 0 && wb_path_exists(folder))
        rc = wb_list_dir(folder, &names, err);
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        size_t n = strlen(names.v[i]);

        if (n < 5 || strcmp(names.v[i] + n - 5, ".json") != 0)
            rc = prune_prefix(folder, names.v[i], need, report, err);
    }
    wb_strv_release(&names);
    return rc;
}

static void on_image(void *arg, const char *id, const char *in_use)
{
    struct wb_clean_report *report = arg;

    if (in_use)
        kept(report, "image", id, in_use);
    else
        pruned(report, "image", id);
}

int wb_prune_caches(const struct wb_clean_spec *spec, const char *owner,
                    struct wb_clean_report *report, struct wb_err *err)
{
    const struct wb_form_env env = {
        .owner = owner, .docker_socket = spec->docker_socket, .cancel = spec->cancel};
    struct wb_err why = WB_ERR_INIT;
    int rc = prune_prefixes(spec, report, err);

    if (rc < 0)
        return rc;
    rc = wb_forms_prune(&env, on_image, report, &why);
    if (rc == -WB_UNAVAILABLE) {
        wb_json_push(report->notes,
                     wb_json_str("images were not looked at: no container engine answers"));
        return 0;
    }
    if (rc < 0 && err)
        *err = why;
    return rc;
}
