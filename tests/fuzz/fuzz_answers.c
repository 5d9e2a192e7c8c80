/*
 * Any bytes as what others say to the store: lines of a push, and messages of commits that came
 * from another store.
 */
#include <stdlib.h>
#include <string.h>

#include "server/record/files.h"
#include "server/record/gitrun.h"
#include "server/record/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void push_line(const char *text, size_t n)
{
    struct wb_push_answer a = {0};
    char *last = wb_last_line(text);

    if (!last)
        abort();
    free(last);
    if (wb_push_answer(text, n, &a)) {
        if (!*a.ref || a.refused != (a.reason != NULL) || (a.refused && a.same))
            abort();
    } else if (a.ref || a.reason) {
        abort();
    }
    free(a.ref);
    free(a.reason);
}

static void message(char *text)
{
    const struct wb_git_commit c = {.message = text};
    struct wb_added_list l;

    wb_commit_added(&c, &l);
    if (l.n == 0)
        abort();
    for (size_t i = 0; i < l.n; i++) {
        if (!l.v[i].id || (l.v[i].path && (!*l.v[i].id || !wb_safe_path(l.v[i].path))))
            abort();
        if (!wb_commit_adds(&c, l.v[i].id))
            abort();
        if (l.n > 1 && !l.v[i].path)
            abort();
    }
    wb_added_release(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = wb_calloc(size + 1, 1); /* a NUL inside it does not end it */

    memcpy(text, data, size);
    push_line(text, size);
    message(text);
    free(text);
    return 0;
}
