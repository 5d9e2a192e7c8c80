#include "runners/load/password.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/file.h"
#include "server/base/mem.h"

#define PASSWORD_MAX 4096

int wb_load_password(const char *file, char **out, struct wb_err *err)
{
    char *text = NULL;
    size_t n = 0;
    int rc = 0;

    if (file)
        rc = wb_file_read(file, PASSWORD_MAX, &text, &n, err);
    else
        text = wb_strdup(getenv("WB_LOAD_PASSWORD"));
    if (rc < 0)
        return wb_wrap(err, "password-file");
    while (file && n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
        text[--n] = 0;
    if (file && strlen(text) != n) {
        free(text);
        return wb_fail(err, WB_INVALID, "password-file: %s holds a NUL byte", file);
    }
    *out = text;
    return 0;
}
