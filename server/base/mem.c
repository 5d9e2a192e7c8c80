#include "server/base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STRF_MAX (1u << 20)

static __attribute__((noreturn)) void out_of_memory(size_t bytes)
{
    (void)fprintf(stderr, "weighbridge: out of memory (%zu bytes asked for)\n", bytes);
    abort();
}

void *wb_calloc(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size ? size : 1);

    if (!p)
        out_of_memory(n * size);
    return p;
}

void *wb_realloc(void *p, size_t n, size_t size)
{
    size_t bytes;
    void *q;

    if (__builtin_mul_overflow(n, size, &bytes))
        out_of_memory(n);
    q = realloc(p, bytes ? bytes : 1);
    if (!q)
        out_of_memory(bytes);
    return q;
}

void wb_grow(void *p_to_pointer, size_t *cap, size_t need, size_t size)
{
    void *p;
    size_t want = *cap ? *cap : 8;

    if (need <= *cap)
        return;
    while (want < need)
        want *= 2;
    memcpy(&p, p_to_pointer, sizeof(p));
    p = wb_realloc(p, want, size);
    memcpy(p_to_pointer, &p, sizeof(p));
    *cap = want;
}

char *wb_strdup(const char *s)
{
    return s ? wb_strndup(s, strlen(s)) : NULL;
}

char *wb_strndup(const char *s, size_t n)
{
    size_t len = strnlen(s, n);
    char *p = wb_calloc(len + 1, 1);

    memcpy(p, s, len);
    return p;
}

char *wb_vstrf(const char *fmt, va_list ap)
{
    va_list again;
    int n;
    char *s;

    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0 || (size_t)n > STRF_MAX)
        abort();
    s = wb_calloc((size_t)n + 1, 1);
    (void)vsnprintf(s, (size_t)n + 1, fmt, ap);
    return s;
}

char *wb_strf(const char *fmt, ...)
{
    va_list ap;
    char *s;

    va_start(ap, fmt);
    s = wb_vstrf(fmt, ap);
    va_end(ap);
    return s;
}

void wb_auto_free(void *p_to_pointer)
{
    void *p;

    memcpy(&p, p_to_pointer, sizeof(p));
    free(p);
}

void wb_auto_close(const int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

static void strv_take(struct wb_strv *l, char *s)
{
    wb_grow(&l->v, &l->cap, l->n + 2, sizeof(*l->v));
    l->v[l->n++] = s;
    l->v[l->n] = NULL;
}

void wb_strv_add(struct wb_strv *l, const char *s)
{
    strv_take(l, wb_strdup(s));
}

void wb_strv_addf(struct wb_strv *l, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    strv_take(l, wb_vstrf(fmt, ap));
    va_end(ap);
}

void wb_strv_release(struct wb_strv *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->v[i]);
    free(l->v);
    *l = (struct wb_strv){0};
}
