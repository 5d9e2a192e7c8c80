#include "server/analysis/remarks.h"

#include <string.h>

#include "server/analysis/effect.h"
#include "server/base/mem.h"

static bool is_type(const wb_json *annotation, const char *type)
{
    return strcmp(wb_json_str_or(annotation, "type", ""), type) == 0;
}

static bool is_about(const wb_json *annotation, const char *id)
{
    return *id != '\0' && strcmp(wb_json_str_or(annotation, "id", ""), id) == 0;
}

void wb_remarks_exclude(const wb_json *annotations, wb_json *summaries)
{
    for (size_t i = 0; i < wb_json_len(annotations); i++) {
        const wb_json *a = wb_json_at(annotations, i);
        const char *text = wb_json_str_or(a, "text", "");
        WB_AUTO_FREE char *why = wb_strf("excluded by an annotation%s%s", *text ? ": " : "", text);
        if (!is_type(a, "excluded"))
            continue;
        for (size_t k = 0; k < wb_json_len(summaries); k++)
            if (is_about(a, wb_json_str_or(wb_json_at(summaries, k), "id", "")))
                wb_json_set_str(wb_json_at(summaries, k), "excluded", why);
    }
}

bool wb_remark_is_of_host(const wb_json *annotation, const wb_json *summary)
{
    const wb_json *host = wb_json_get(summary, "host");

    return is_about(annotation, wb_json_str_or(host, "name", "")) ||
           is_about(annotation, wb_json_str_or(host, "class", ""));
}

const wb_json *wb_remark_between(const wb_json *annotations, const wb_json *a, const wb_json *b)
{
    const char *x = wb_json_str_or(a, "started_at", ""), *y = wb_json_str_or(b, "started_at", "");
    const wb_json *later = strcmp(x, y) < 0 ? b : a;
    const char *from = later == b ? x : y, *to = later == b ? y : x;

    for (size_t i = 0; i < wb_json_len(annotations); i++) {
        const wb_json *e = wb_json_at(annotations, i);
        const char *at = wb_json_str_or(e, "at", "");
        if (!is_type(e, "environment") || strcmp(at, from) <= 0 || strcmp(at, to) > 0)
            continue;
        if (wb_remark_is_of_host(e, a) || wb_remark_is_of_host(e, b) ||
            is_about(e, wb_json_str_or(later, "id", "")) ||
            is_about(e, wb_json_str_or(later, "campaign", "")))
            return e;
    }
    return NULL;
}

wb_json *wb_remarks_on(const wb_json *annotations, const char *campaign)
{
    wb_json *list = wb_json_array();

    for (size_t i = 0; i < wb_json_len(annotations); i++) {
        const wb_json *a = wb_json_at(annotations, i);
        const char *text = wb_json_str_or(a, "text", "");
        if (!is_about(a, campaign))
            continue;
        wb_analysis_warn(list, "annotation", "%s by %s%s%s", wb_json_str_or(a, "type", "note"),
                         wb_json_str_or(a, "who", "?"), *text ? ": " : "", text);
    }
    return list;
}
