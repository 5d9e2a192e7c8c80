/*
 * Any bytes as a settings file. Problems and values go together with what was asked: what is taken
 * has a value that can be used as it stands, and what is refused says where and why.
 */
#include <stdlib.h>
#include <string.h>

#include "server/cli/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_value(const struct wb_config *c, enum wb_setting s)
{
    const char *value = wb_config_get(c, s), *from = wb_config_from(c, s);

    if (!value != !from)
        abort();
    if (!value)
        return;
    if (!*value || strncmp(from, "/fuzz/weighbridge.yaml:", 23) != 0)
        abort();
    for (const char *p = value; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            abort();
    if (s != WB_SET_SERVER && s != WB_SET_PUSH_REMOTE && s != WB_SET_WIDTH && s != WB_SET_COLOR &&
        *value != '/') /* paths count from the file's folder */
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = wb_calloc(size + 1, 1); /* a NUL inside it does not end it */
    struct wb_problems p = {.file = "/fuzz/weighbridge.yaml"};
    struct wb_config *c = NULL;
    struct wb_buf said = WB_BUF_INIT(16 << 20);

    memcpy(text, data, size);
    if (wb_config_parse(text, size, "/fuzz/weighbridge.yaml", &c, &p) != (int)(p.n + p.dropped))
        abort();
    for (size_t i = 0; i < p.n; i++)
        if (!*p.v[i].message || !*p.v[i].code)
            abort();
    for (int s = 0; s < WB_SET_N; s++)
        check_value(c, (enum wb_setting)s);
    wb_problems_text(&p, &said);
    wb_buf_release(&said);
    wb_config_free(c);
    wb_problems_release(&p);
    free(text);
    return 0;
}
