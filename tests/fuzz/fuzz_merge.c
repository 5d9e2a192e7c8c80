/*
 * Any JSON document as a result to be merged with itself as the other part: whatever comes out has
 * the sums of both.
 */
#include <stdlib.h>

#include "runners/load/merge.h"
#include "server/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"a", "b"};
    wb_json *doc[2] = {NULL, NULL}, *merged = NULL;
    const char *verdict = NULL;
    struct wb_err err = WB_ERR_INIT;

    if (wb_json_parse((const char *)data, size, &doc[0], NULL) < 0)
        return 0;
    doc[1] = wb_json_copy(doc[0]);
    if (wb_json_type(wb_json_get(doc[1], "job")) == WB_JSON_OBJECT)
        wb_json_set_str(wb_json_get(doc[1], "job"), "part", "2/2");
    if (wb_load_merge((const wb_json *const *)doc, names, 2, &merged, &verdict, &err) == 0 &&
        wb_json_int_or(merged, "ok", -1) != 2 * wb_json_int_or(doc[0], "ok", 0))
        abort();
    wb_json_free(merged);
    wb_json_free(doc[0]);
    wb_json_free(doc[1]);
    return 0;
}
