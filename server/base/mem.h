/*
 * Allocation that cannot fail: out of memory prints one line to stderr and aborts the process.
 * Inputs are bounded everywhere, each campaign is a process of its own, and a half-done
 * allocation failure path that nobody can test is worse than a clean death.
 */
#ifndef WB_BASE_MEM_H
#define WB_BASE_MEM_H

#include <stdarg.h>
#include <stddef.h>

/* n * size zeroed bytes; aborts on overflow or lack of memory. n == 0 gives a valid pointer. */
void *wb_calloc(size_t n, size_t size) __attribute__((returns_nonnull));

/* Resizes an array to n elements of `size`; new elements are NOT zeroed. */
void *wb_realloc(void *p, size_t n, size_t size) __attribute__((returns_nonnull));

/* Grows *p (elements of `size`) so that it holds at least `need`; doubles. */
void wb_grow(void *p_to_pointer, size_t *cap, size_t need, size_t size);

char *wb_strdup(const char *s); /* NULL gives NULL; caller frees */
char *wb_strndup(const char *s, size_t n) __attribute__((returns_nonnull));

/* printf into a new string; caller frees. Longer than 1 MiB aborts (a bug). */
char *wb_strf(const char *fmt, ...) __attribute__((format(printf, 1, 2), returns_nonnull));
char *wb_vstrf(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0), returns_nonnull));

/* Clean-up attributes for locals: `WB_AUTO_FREE char *path = ...`. WB_STEAL hands out the value
 * and leaves NULL behind. */
void wb_auto_free(void *p_to_pointer);
void wb_auto_close(const int *fd);
#define WB_AUTO_FREE __attribute__((cleanup(wb_auto_free)))
#define WB_AUTO_CLOSE __attribute__((cleanup(wb_auto_close)))
#define WB_STEAL(p)                  \
    ({                               \
        __typeof__(p) stolen_ = (p); \
        (p) = NULL;                  \
        stolen_;                     \
    })

/* NULL-terminated list of strings. */
struct wb_strv {
    char **v; /* v[n] is NULL once anything was added */
    size_t n, cap;
};
void wb_strv_add(struct wb_strv *l, const char *s); /* copies */
void wb_strv_addf(struct wb_strv *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void wb_strv_release(struct wb_strv *l);

#define WB_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
