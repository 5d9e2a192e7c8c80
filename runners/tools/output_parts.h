/* Inside of output.c: readers that are not line by line. */
#ifndef WB_TOOLS_OUTPUT_PARTS_H
#define WB_TOOLS_OUTPUT_PARTS_H

#include "runners/tools/output.h"

/* output_json.c: the only JSON document in a text, with words and numbers that JSON does not have
 * read as null. Text before it is passed over. *out is owned by the caller. */
int wb_output_json(const char *text, size_t n, wb_json **out, struct wb_err *err) WB_MUST_CHECK;
/* What a pointer leads to: borrowed, NULL when there is nothing. */
const wb_json *wb_json_pointer(const wb_json *j, const char *pointer);
bool wb_json_pointer_ok(const char *pointer);
/* A number, a text or null as a text for wb_figures_put; NULL for anything else. Caller frees. */
char *wb_json_figure_text(const wb_json *j);

/* output_hdr.c: adds all intervals of an HDR log with this tag to f. *found: whether there was
 * any. scale: ns per unit. */
int wb_output_hdr(const char *text, size_t n, const char *tag, int family, double ns,
                  struct wb_figures *f, bool *found, struct wb_err *err) WB_MUST_CHECK;
/* "service_us" -> family 0 and 1000 ns. */
int wb_output_hdr_name(const char *name, int *family, double *ns, struct wb_err *err) WB_MUST_CHECK;

#endif
