#include "server/queue/rows.h"

#include <string.h>

#include "server/base/clock.h"

void wb_row_set_time(wb_json *o, const char *key, const struct wb_stmt *s, int col)
{
    struct wb_buf b = WB_BUF_INIT(64);

    if (!wb_stmt_is_null(s, col))
        wb_format_time(wb_stmt_int(s, col), &b);
    wb_json_set_str(o, key, b.len ? b.data : NULL);
    wb_buf_release(&b);
}

void wb_row_set_array(wb_json *o, const char *key, const struct wb_stmt *s, int col)
{
    const char *text = wb_stmt_text(s, col);
    wb_json *list = NULL;

    if (!text || wb_json_parse(text, strlen(text), &list, NULL) < 0)
        list = wb_json_array();
    wb_json_set(o, key, list);
}
