/* What handlers of campaigns share. */
#ifndef WB_HTTP_CAMPAIGNS_H
#define WB_HTTP_CAMPAIGNS_H

#include "server/base/digest.h"
#include "server/http/service.h"

extern const char *const wb_campaign_states[];  /* NULL-ended */
extern const struct wb_form wb_form_campaign;   /* one campaign, whole */
extern const struct wb_form wb_form_submission; /* what starts one */

/* Rows of a campaign as the queue has it. */
#define WB_CAMPAIGN_ROWS                                                                      \
    {"id", WB_S_TEXT, .flags = WB_S_NEED}, {"study", WB_S_TEXT, .flags = WB_S_NEED},          \
        {"state", WB_S_WORD, WB_S_NEED, .words = wb_campaign_states,                          \
         .help = "recorded: known from its records alone"},                                   \
        {"priority", .type = WB_S_INT}, {"labels", WB_S_TEXT, .flags = WB_S_LIST},            \
        {"reason", WB_S_TEXT, .flags = WB_S_NULL}, {"token", WB_S_TEXT, .flags = WB_S_NULL},  \
        {"submitted_at", WB_S_TIME, .flags = WB_S_NEED | WB_S_NULL},                          \
        {"started_at", WB_S_TIME, .flags = WB_S_NULL},                                        \
        {"ended_at", WB_S_TIME, .flags = WB_S_NULL},                                          \
        {"runs", WB_S_INT, .help = "That are planned"}, {"arms", .type = WB_S_INT},           \
        {"rounds", .type = WB_S_INT}, {"forecast_s", WB_S_REAL, .flags = WB_S_NULL},          \
        {"recorded", WB_S_INT, .help = "Runs with a record, where only those are known"},     \
        {"ok", .type = WB_S_INT}, {"cancel_requested", .type = WB_S_BOOL},                    \
        {"starts", .type = WB_S_INT}, {"detail", WB_S_TEXT, .flags = WB_S_NULL},              \
        {"rerun_of", WB_S_TEXT, .flags = WB_S_NULL}, {"pool", .type = WB_S_TEXT},             \
        {"hosts", WB_S_INT, .help = "That it needs at once"},                                 \
        {"rounds_to_add", WB_S_INT, .help = "Of its rounds, those that no engine knows yet"}, \
    {                                                                                         \
        "study_version", WB_S_INT, .flags = WB_S_NULL, .help = "Of a stored study"            \
    }

/* Answers with one campaign. */
void wb_campaign_answer(struct wb_context *c, const struct wb_request *q, struct wb_answer *a,
                        const char *id, int status);
/* The same with 202 and where it is. */
void wb_campaign_accepted(struct wb_context *c, const struct wb_request *q, struct wb_answer *a,
                          const char *id);
/* Tells everybody who listens that a campaign was changed, with its state as it is now. */
void wb_campaign_announce(struct wb_context *c, const char *id);
/* Of an Idempotency-Key: what makes two requests the same. */
void wb_request_digest(const struct wb_request *q, char hex[WB_SHA256_HEX]);
/* A request that was made before with the same key is answered as then; true after answering. */
bool wb_request_answered(struct wb_context *c, struct wb_request *q, struct wb_answer *a);
/* Checks a study (text) as a submission would; the problems of the answer are owned by the caller,
 * NULL: none. Answers itself, then false. */
bool wb_study_text_check(struct wb_context *c, struct wb_request *q, struct wb_answer *a,
                         const char *text);

#endif
