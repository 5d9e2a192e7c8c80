#include "server/record/csv.h"

#include <string.h>

/* Bytes of the blank or invisible character that a text begins with, 0 when it begins with none:
 * space, no-break space, those of U+2000 to U+200F, U+2028 to U+202F, U+205F to U+206F, ideographic
 * space, byte order mark. Tab and carriage return are told by the caller. */
static size_t blank(const char *s)
{
    const unsigned char *u = (const unsigned char *)s;

    if (u[0] == ' ' || u[0] == '\v' || u[0] == '\f' || u[0] == '\n')
        return 1;
    if (u[0] == 0xc2 && (u[1] == 0xa0 || u[1] == 0xad))
        return 2;
    if (u[0] == 0xe2 && u[1] == 0x80 &&
        ((u[2] >= 0x80 && u[2] <= 0x8f) || (u[2] >= 0xa8 && u[2] <= 0xaf)))
        return 3;
    if (u[0] == 0xe2 && u[1] == 0x81 && u[2] >= 0x9f && u[2] <= 0xaf)
        return 3;
    if ((u[0] == 0xe3 && u[1] == 0x80 && u[2] == 0x80) ||
        (u[0] == 0xef && u[1] == 0xbb && u[2] == 0xbf))
        return 3;
    return 0;
}

static bool is_formula(const char *text)
{
    for (size_t n = blank(text); n > 0; n = blank(text))
        text += n;
    /* The full-width forms of the four signs are taken for them by some programs. */
    return (*text && strchr("=+-@\t\r", *text)) || !strncmp(text, "\xef\xbc\x9d", 3) ||
           !strncmp(text, "\xef\xbc\x8b", 3) || !strncmp(text, "\xef\xbc\x8d", 3) ||
           !strncmp(text, "\xef\xbc\xa0", 3);
}

void wb_csv_text(const char *text, struct wb_buf *out)
{
    bool quoted =
        strpbrk(text, ",\"\r\n\t") || *text == ' ' || (*text && text[strlen(text) - 1] == ' ');

    if (quoted)
        wb_buf_addc(out, '"');
    if (is_formula(text))
        wb_buf_addc(out, '\'');
    for (; *text; text++) {
        if (*text == '"')
            wb_buf_addc(out, '"');
        wb_buf_addc(out, *text);
    }
    if (quoted)
        wb_buf_addc(out, '"');
}

void wb_csv_cell(const wb_json *value, struct wb_buf *out)
{
    switch (wb_json_type(value)) {
    case WB_JSON_STRING:
        wb_csv_text(wb_json_string(value), out);
        break;
    case WB_JSON_INT:
    case WB_JSON_REAL:
    case WB_JSON_BOOL:
        wb_json_line(value, out);
        break;
    case WB_JSON_NULL:
    case WB_JSON_ARRAY:
    case WB_JSON_OBJECT:
        break;
    }
}
