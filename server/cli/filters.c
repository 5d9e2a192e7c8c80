#include "server/cli/filters.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/problems.h"
#include "server/base/units.h"
#include "server/cli/records.h"
#include "server/collect/collect.h"
#include "server/engine/outcome.h"

#define DAY_NS 86400000000000LL
#define BACK_MAX_DAYS 36500

int wb_cli_time(const char *option, const char *text, char **out, struct wb_err *err)
{
    size_t n = strlen(text);
    struct wb_buf b = WB_BUF_INIT(64);
    int64_t ns = 0;

    if (n >= 10 && text[4] == '-' && text[7] == '-') {
        *out = wb_strdup(text);
        return 0;
    }
    if (n > 1 && text[n - 1] == 'd') {
        WB_AUTO_FREE char *days = wb_strndup(text, n - 1);

        if (wb_parse_int(days, 0, BACK_MAX_DAYS, &ns, err) < 0)
            return wb_wrap(err, "--%s", option);
        ns *= DAY_NS;
    } else if (wb_parse_duration(text, 0, BACK_MAX_DAYS * DAY_NS, &ns, NULL) < 0) {
        return wb_fail(err, WB_INVALID,
                       "--%s: '%s' is neither a time back (90d, 12h) nor a day (2026-11-30)",
                       option, text);
    }
    wb_format_time(wb_now_unix_ms(NULL) - ns / 1000000, &b);
    *out = wb_buf_take(&b);
    return 0;
}

static int check_word(const char *option, const char *word, const char *const *words,
                      struct wb_err *err)
{
    WB_AUTO_FREE char *hint = NULL;
    WB_AUTO_FREE char *list = NULL;

    for (size_t i = 0; words[i]; i++)
        if (!word || !strcmp(words[i], word))
            return 0;
    hint = wb_did_you_mean(word, words);
    list = wb_word_list(words);
    return wb_fail(err, WB_INVALID, "--%s: '%s' is none%s; allowed: %s", option, word, hint, list);
}

static int check_words(const struct wb_cli_filters *f, struct wb_err *err)
{
    const char *outcomes[WB_OUTCOME_HARNESS_ERROR + 2] = {NULL};
    const char *validities[WB_UNVERIFIED + 2] = {NULL};
    int rc;

    for (int i = 0; i <= WB_OUTCOME_HARNESS_ERROR; i++)
        outcomes[i] = wb_outcome_name((enum wb_outcome)i);
    for (int i = 0; i <= WB_UNVERIFIED; i++)
        validities[i] = wb_validity_name((enum wb_validity)i);
    rc = check_word("outcome", f->outcome, outcomes, err);
    return rc < 0 ? rc : check_word("validity", f->validity, validities, err);
}

static int find_campaign(struct wb_store *s, const char *typed, char **out, struct wb_err *err)
{
    struct wb_ref_id id = {0};
    int rc = wb_ref_id_find(s, typed, &id, err);

    if (rc == 0 && id.run)
        rc = wb_fail(err, WB_INVALID, "'%s' is a run, not a campaign", typed);
    if (rc == 0)
        *out = WB_STEAL(id.campaign);
    wb_ref_id_release(&id);
    return rc;
}

int wb_cli_question_make(struct wb_store *s, const struct wb_cli_filters *f,
                         struct wb_cli_question *out, struct wb_err *err)
{
    int rc = check_words(f, err);

    *out = (struct wb_cli_question){0};
    if (rc == 0 && f->campaign)
        rc = find_campaign(s, f->campaign, &out->campaign, err);
    if (rc == 0 && f->since)
        rc = wb_cli_time("since", f->since, &out->since, err);
    if (rc == 0 && f->until)
        rc = wb_cli_time("until", f->until, &out->until, err);
    out->q = (struct wb_query){.campaign = out->campaign,
                               .study = f->study,
                               .arm = f->arm,
                               .outcome = f->outcome,
                               .validity = f->validity,
                               .series = f->series,
                               .recipe = f->recipe,
                               .version = f->version,
                               .since = out->since,
                               .until = out->until};
    return rc;
}

void wb_cli_question_release(struct wb_cli_question *q)
{
    free(q->campaign);
    free(q->since);
    free(q->until);
    *q = (struct wb_cli_question){0};
}
