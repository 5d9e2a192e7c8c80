/* Columns of the service's database as members of JSON objects. */
#ifndef WB_QUEUE_ROWS_H
#define WB_QUEUE_ROWS_H

#include "server/base/db.h"
#include "server/base/json.h"

/* A column of Unix ms as an RFC 3339 text, null for null. */
void wb_row_set_time(wb_json *o, const char *key, const struct wb_stmt *s, int col);
/* A column with the text of a JSON array, an empty one when it cannot be read. */
void wb_row_set_array(wb_json *o, const char *key, const struct wb_stmt *s, int col);

#endif
