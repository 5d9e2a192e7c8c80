#include "runners/tools/command.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/base/problems.h"

#define WORD_MAX (64u << 10)

enum placeholder {
    P_PREFIX,
    P_HOST,
    P_PORT,
    P_TARGETS,
    P_CONNECTIONS,
    P_THREADS,
    P_DEPTH,
    P_OPERATIONS,
    P_SECONDS,
    P_WARM_UP,
    P_RATE,
    P_ROWS,
    P_LAST_ROW,
    P_KEY_BYTES,
    P_VALUE_BYTES,
    P_GET_PERCENT,
    P_SET_PERCENT,
    P_TIMEOUT_MS,
    P_SEED,
    P_FILE
};

static const char *const names[] = {
    [P_PREFIX] = "prefix",
    [P_HOST] = "host",
    [P_PORT] = "port",
    [P_TARGETS] = "targets",
    [P_CONNECTIONS] = "connections",
    [P_THREADS] = "threads",
    [P_DEPTH] = "depth",
    [P_OPERATIONS] = "operations",
    [P_SECONDS] = "seconds",
    [P_WARM_UP] = "warm_up_seconds",
    [P_RATE] = "rate",
    [P_ROWS] = "rows",
    [P_LAST_ROW] = "last_row",
    [P_KEY_BYTES] = "key_bytes",
    [P_VALUE_BYTES] = "value_bytes",
    [P_GET_PERCENT] = "get_percent",
    [P_SET_PERCENT] = "set_percent",
    [P_TIMEOUT_MS] = "timeout_ms",
    [P_SEED] = "seed",
    [P_FILE] = "file",
    NULL,
};

/* The name of the placeholder that begins at '{': its length, 0 when none does. */
static size_t name_at(const char *p)
{
    size_t n = 1;

    while (islower((unsigned char)p[n]) || p[n] == '_')
        n++;
    return n > 1 && p[n] == '}' ? n - 1 : 0;
}

static int find(const char *name, size_t n)
{
    for (int i = 0; names[i]; i++)
        if (strlen(names[i]) == n && !strncmp(names[i], name, n))
            return i;
    return -1;
}

int wb_tool_word_check(const char *word, struct wb_err *err)
{
    for (const char *p = word; *p; p++) {
        size_t n;

        if (p[0] == '{' && p[1] == '{') {
            p++;
            continue;
        }
        n = *p == '{' ? name_at(p) : 0;
        if (n && find(p + 1, n) < 0) {
            WB_AUTO_FREE char *name = wb_strndup(p + 1, n);
            WB_AUTO_FREE char *guess = wb_did_you_mean(name, names);
            WB_AUTO_FREE char *list = wb_word_list(names);

            return wb_fail(err, WB_INVALID,
                           "'{%.40s}' is no placeholder%s; allowed: %s; {{ is a brace", name, guess,
                           list);
        }
    }
    return 0;
}

static bool word_has(const char *word, const char *placeholder)
{
    for (const char *p = word; *p; p++) {
        size_t n;

        if (p[0] == '{' && p[1] == '{') {
            p++;
            continue;
        }
        n = *p == '{' ? name_at(p) : 0;
        if (n == strlen(placeholder) && n && !strncmp(p + 1, placeholder, n))
            return true;
    }
    return false;
}

bool wb_tool_command_uses(const struct wb_tool_command *c, const char *placeholder)
{
    for (size_t i = 0; i < c->argv.n; i++)
        if (word_has(c->argv.v[i], placeholder))
            return true;
    for (size_t i = 0; i < c->env.n; i++)
        if (word_has(c->env.v[i], placeholder))
            return true;
    return false;
}

static void add_targets(const struct wb_tool_task *t, struct wb_buf *out)
{
    for (size_t i = 0; i < t->npeers; i++)
        wb_buf_addf(out, "%s%s:%d", i ? "," : "", t->peers[i].host, t->peers[i].port);
}

static void add_value(const struct wb_tool_task *t, int which, struct wb_buf *out)
{
    switch ((enum placeholder)which) {
    case P_PREFIX:
        wb_buf_adds(out, t->prefix ? t->prefix : "");
        break;
    case P_HOST:
        wb_buf_adds(out, t->npeers ? t->peers[0].host : "");
        break;
    case P_PORT:
        wb_buf_addf(out, "%d", t->npeers ? t->peers[0].port : 0);
        break;
    case P_TARGETS:
        add_targets(t, out);
        break;
    case P_CONNECTIONS:
        wb_buf_addf(out, "%lld", (long long)t->connections);
        break;
    case P_THREADS:
        wb_buf_addf(out, "%lld", (long long)t->threads);
        break;
    case P_DEPTH:
        wb_buf_addf(out, "%lld", (long long)t->depth);
        break;
    case P_OPERATIONS:
        wb_buf_addf(out, "%lld", (long long)t->operations);
        break;
    case P_SECONDS:
        wb_buf_addf(out, "%.9g", (double)t->for_ns / (double)WB_SEC);
        break;
    case P_WARM_UP:
        wb_buf_addf(out, "%.9g", (double)t->warm_up_ns / (double)WB_SEC);
        break;
    case P_RATE:
        wb_buf_addf(out, "%.9g", t->rate_per_s);
        break;
    case P_ROWS:
        wb_buf_addf(out, "%lld", (long long)t->rows);
        break;
    case P_LAST_ROW:
        wb_buf_addf(out, "%lld", (long long)t->rows - 1);
        break;
    case P_KEY_BYTES:
        wb_buf_addf(out, "%lld", (long long)t->key_bytes);
        break;
    case P_VALUE_BYTES:
        wb_buf_addf(out, "%lld", (long long)t->value_bytes);
        break;
    case P_GET_PERCENT:
        wb_buf_addf(out, "%.9g", t->get_percent);
        break;
    case P_SET_PERCENT:
        wb_buf_addf(out, "%.9g", 100 - t->get_percent);
        break;
    case P_TIMEOUT_MS:
        wb_buf_addf(out, "%lld", (long long)(t->timeout_ns / WB_MS));
        break;
    case P_SEED:
        wb_buf_addf(out, "%lld", (long long)t->seed);
        break;
    case P_FILE:
        wb_buf_addf(out, "%s.out", t->base);
        break;
    }
}

char *wb_tool_fill(const struct wb_tool_task *t, const char *word)
{
    struct wb_buf b = WB_BUF_INIT(WORD_MAX);

    for (const char *p = word; *p;) {
        size_t n = *p == '{' ? name_at(p) : 0;
        int which = n ? find(p + 1, n) : -1;

        if (p[0] == '{' && p[1] == '{') {
            wb_buf_addc(&b, '{');
            p += 2;
        } else if (which >= 0) {
            add_value(t, which, &b);
            p += n + 2;
        } else {
            wb_buf_addc(&b, *p++);
        }
    }
    return b.len ? wb_buf_take(&b) : wb_strdup("");
}
