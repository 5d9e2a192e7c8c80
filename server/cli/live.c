#include "server/cli/live.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/file.h"
#include "server/base/json.h"
#include "server/base/mem.h"
#include "server/cli/records.h"
#include "server/engine/campaign.h"

#define STATE_MAX (8u << 20)

int wb_live_find(const char *state_dir, const char *typed, char **id, struct wb_err *err)
{
    struct wb_strv all = {0}, found = {0};
    int rc = wb_campaign_list(state_dir, &all, err);

    for (size_t i = 0; rc == 0 && i < all.n; i++) {
        struct wb_campaign_holder h = {0};

        if (typed ? !wb_cli_begins(all.v[i], typed, "cmp_")
                  : wb_campaign_look(state_dir, all.v[i], &h, NULL) < 0 || !h.held)
            continue;
        wb_strv_add(&found, all.v[i]);
    }
    if (rc == 0 && found.n == 0)
        rc = typed ? wb_fail(err, WB_NOT_FOUND,
                             "there is no campaign '%s' in %s; 'weighbridge list campaigns' shows "
                             "recorded ones",
                             typed, state_dir)
                   : wb_fail(err, WB_NOT_FOUND, "no campaign runs here now (looked in %s)",
                             state_dir);
    else if (rc == 0 && found.n > 1)
        rc = wb_cli_more_than_one(&found, err);
    else if (rc == 0)
        *id = wb_strdup(found.v[0]);
    wb_strv_release(&found);
    wb_strv_release(&all);
    return rc;
}

int wb_live_find_run(const char *state_dir, const char *typed, char **run, char **campaign,
                     struct wb_err *err)
{
    struct wb_strv all = {0}, found = {0}, of = {0};
    int rc = wb_campaign_list(state_dir, &all, err);

    for (size_t i = 0; rc == 0 && i < all.n; i++) {
        WB_AUTO_FREE char *dir = wb_strf("%s/campaigns/%s/runs", state_dir, all.v[i]);
        struct wb_strv names = {0};

        if (wb_list_dir(dir, &names, NULL) < 0) /* it has none */
            names.n = 0;
        for (size_t k = 0; k < names.n; k++)
            if (wb_cli_begins(names.v[k], typed, "run_")) {
                wb_strv_add(&found, names.v[k]);
                wb_strv_add(&of, all.v[i]);
            }
        wb_strv_release(&names);
    }
    if (rc == 0 && found.n == 0)
        rc = wb_fail(err, WB_NOT_FOUND, "no run '%s' is going on in %s", typed, state_dir);
    else if (rc == 0 && found.n > 1)
        rc = wb_cli_more_than_one(&found, err);
    if (rc == 0) {
        *run = wb_strdup(found.v[0]);
        *campaign = wb_strdup(of.v[0]);
    }
    wb_strv_release(&of);
    wb_strv_release(&found);
    wb_strv_release(&all);
    return rc;
}

char *wb_live_state(const char *state_dir, const char *id)
{
    WB_AUTO_FREE char *path = wb_strf("%s/campaigns/%s/state.json", state_dir, id);
    WB_AUTO_JSON wb_json *state = NULL;

    WB_IGNORE(wb_json_read_file(path, STATE_MAX, &state, NULL)); /* then it is not known */
    return wb_strdup(wb_json_str_or(state, "state", "unknown"));
}
