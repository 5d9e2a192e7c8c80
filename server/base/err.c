#include "server/base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const code_names[] = {
    [WB_OK] = "ok",
    [WB_INVALID] = "invalid",
    [WB_NOT_FOUND] = "not-found",
    [WB_CONFLICT] = "conflict",
    [WB_IO] = "io",
    [WB_TIMEOUT] = "timeout",
    [WB_CANCELLED] = "cancelled",
    [WB_PROTOCOL] = "protocol",
    [WB_LIMIT] = "limit",
    [WB_UNAVAILABLE] = "unavailable",
    [WB_CORRUPT] = "corrupt",
    [WB_UNSUPPORTED] = "unsupported",
};

const char *wb_code_name(int code)
{
    if (code < 0)
        code = -code;
    if ((size_t)code >= sizeof(code_names) / sizeof(code_names[0]))
        return "unknown";
    return code_names[code];
}

int wb_fail(struct wb_err *err, enum wb_code code, const char *fmt, ...)
{
    if (err) {
        va_list ap;

        err->code = (int)code;
        err->sys = 0;
        err->context[0] = '\0';
        va_start(ap, fmt);
        (void)vsnprintf(err->root, sizeof(err->root), fmt, ap);
        va_end(ap);
    }
    return -(int)code;
}

static enum wb_code code_of_errno(int sys)
{
    switch (sys) {
    case ENOENT:
        return WB_NOT_FOUND;
    case ECONNREFUSED:
        return WB_UNAVAILABLE;
    default:
        return WB_IO;
    }
}

int wb_fail_sys(struct wb_err *err, int sys, const char *fmt, ...)
{
    enum wb_code code = code_of_errno(sys);

    if (err) {
        va_list ap;
        char text[128];
        size_t n;

        err->code = (int)code;
        err->sys = sys;
        err->context[0] = '\0';
        va_start(ap, fmt);
        (void)vsnprintf(err->root, sizeof(err->root), fmt, ap);
        va_end(ap);
        n = strlen(err->root);
        /* GNU strerror_r: may return a static string instead of filling text. */
        (void)snprintf(err->root + n, sizeof(err->root) - n, ": %s",
                       strerror_r(sys, text, sizeof(text)));
    }
    return -(int)code;
}

int wb_wrap(struct wb_err *err, const char *fmt, ...)
{
    char before[WB_ERR_TEXT_MAX];
    char joined[2 * WB_ERR_TEXT_MAX + 4];
    va_list ap;

    if (!err)
        return -(int)WB_IO;
    va_start(ap, fmt);
    (void)vsnprintf(before, sizeof(before), fmt, ap);
    va_end(ap);
    if (err->context[0])
        (void)snprintf(joined, sizeof(joined), "%s: %s", before, err->context);
    else
        (void)snprintf(joined, sizeof(joined), "%s", before);
    joined[sizeof(err->context) - 1] = '\0';
    memcpy(err->context, joined, strlen(joined) + 1);
    return err->code ? -err->code : -(int)WB_IO;
}

const char *wb_err_text(const struct wb_err *err, char *out, unsigned long n)
{
    if (err->context[0])
        (void)snprintf(out, n, "%s: %s", err->context, err->root);
    else
        (void)snprintf(out, n, "%s", err->root);
    return out;
}
