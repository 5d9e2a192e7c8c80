/* What analyses.c and histories.c share. */
#ifndef WB_HTTP_ANALYSES_H
#define WB_HTTP_ANALYSES_H

#include "server/analysis/inquiry.h"
#include "server/http/service.h"

/* Over the records of the context; ended by wb_http_inquiry_answer, or its cache is closed. */
struct wb_inquiry wb_http_inquiry(const struct wb_context *c);
/* Answers with `out` (taken), or with the problem that fits err when rc < 0. */
void wb_http_inquiry_answer(const struct wb_request *q, struct wb_answer *a, struct wb_inquiry *in,
                            int rc, wb_json *out, const struct wb_err *err);

#endif
