#include "server/base/problems.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/base/mem.h"

#define PROBLEMS_MAX 200
#define MESSAGE_MAX 2000

/* Takes pointer and message. */
static void add(struct wb_problems *p, int line, char *pointer, const char *code, char *message)
{
    if (p->n >= PROBLEMS_MAX) {
        p->dropped++;
        free(pointer);
        free(message);
        return;
    }
    wb_grow(&p->v, &p->cap, p->n + 1, sizeof *p->v);
    p->v[p->n++] = (struct wb_problem){.file = wb_strdup(p->file),
                                       .line = line,
                                       .pointer = pointer,
                                       .code = code,
                                       .message = message};
}

/* Text of any length, cut with dots where it passes the bound. */
static char *message_text(const char *fmt, va_list ap) WB_PRINTF(1, 0);
static char *message_text(const char *fmt, va_list ap)
{
    struct wb_buf b = WB_BUF_INIT(4 * WB_NODE_TEXT_MAX);

    wb_buf_addv(&b, fmt, ap);
    if (!b.data) {
        wb_buf_release(&b);
        return wb_strdup("message too long");
    }
    if (b.len > MESSAGE_MAX) {
        size_t n = MESSAGE_MAX;

        while (n > 0 && ((unsigned char)b.data[n] & 0xc0) == 0x80) /* not inside a character */
            n--;
        memcpy(b.data + n, "...", 4);
    }
    return wb_buf_take(&b);
}

void wb_problem(struct wb_problems *p, const struct wb_node *at, const char *code, const char *fmt,
                ...)
{
    va_list ap;

    va_start(ap, fmt);
    add(p, at ? at->line : 0, wb_node_pointer(at), code, message_text(fmt, ap));
    va_end(ap);
}

void wb_problem_key(struct wb_problems *p, const struct wb_node *map, const char *key,
                    const char *code, const char *fmt, ...)
{
    struct wb_node *missing = wb_node_new(WB_NODE_NULL, NULL, 0);
    struct wb_node parent = {.kind = WB_NODE_MAP};
    va_list ap;
    WB_AUTO_FREE char *below = NULL;
    WB_AUTO_FREE char *outer = wb_node_pointer(map);

    wb_node_add(&parent, key, missing);
    below = wb_node_pointer(missing);
    va_start(ap, fmt);
    add(p, map ? map->line : 0, wb_strf("%s%s", outer, below), code, message_text(fmt, ap));
    va_end(ap);
    wb_node_free(missing);
    free(parent.items);
}

wb_json *wb_problems_json(const struct wb_problems *p)
{
    wb_json *o = wb_json_object(), *errors = wb_json_array();

    for (size_t i = 0; i < p->n; i++) {
        wb_json *e = wb_json_object();

        wb_json_set_str(e, "file", p->v[i].file);
        if (p->v[i].line > 0)
            wb_json_set_int(e, "line", p->v[i].line);
        else
            wb_json_set(e, "line", wb_json_null());
        wb_json_set_str(e, "pointer", p->v[i].pointer);
        wb_json_set_str(e, "code", p->v[i].code);
        wb_json_set_str(e, "message", p->v[i].message);
        wb_json_push(errors, e);
    }
    wb_json_set_bool(o, "ok", p->n == 0);
    wb_json_set(o, "errors", errors);
    if (p->dropped > 0)
        wb_json_set_int(o, "more_errors", (int64_t)p->dropped);
    return o;
}

void wb_problems_text(const struct wb_problems *p, struct wb_buf *out)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct wb_problem *e = &p->v[i];

        if (e->file)
            wb_buf_adds(out, e->file);
        if (e->line > 0)
            wb_buf_addf(out, "%s%d", e->file ? ":" : "line ", e->line);
        if (e->file || e->line > 0)
            wb_buf_adds(out, ": ");
        if (*e->pointer)
            wb_buf_addf(out, "%s: ", e->pointer);
        wb_buf_addf(out, "%s\n", e->message);
    }
    if (p->dropped > 0)
        wb_buf_addf(out, "and %zu more\n", p->dropped);
}

static bool same_file(const struct wb_problem *a, const struct wb_problem *b)
{
    return a->file == b->file || (a->file && b->file && strcmp(a->file, b->file) == 0);
}

static bool has(const struct wb_problems *p, const struct wb_problem *one)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct wb_problem *e = &p->v[i];

        if (same_file(e, one) && e->line == one->line && strcmp(e->pointer, one->pointer) == 0 &&
            strcmp(e->message, one->message) == 0)
            return true;
    }
    return false;
}

static void problem_release(struct wb_problem *e)
{
    free(e->file);
    free(e->pointer);
    free(e->message);
}

void wb_problems_merge(struct wb_problems *p, struct wb_problems *from)
{
    for (size_t i = 0; i < from->n; i++) {
        if (has(p, &from->v[i])) {
            problem_release(&from->v[i]);
        } else if (p->n >= PROBLEMS_MAX) {
            problem_release(&from->v[i]);
            p->dropped++;
        } else {
            wb_grow(&p->v, &p->cap, p->n + 1, sizeof *p->v);
            p->v[p->n++] = from->v[i];
        }
    }
    p->dropped += from->dropped;
    free(from->v);
    *from = (struct wb_problems){.file = from->file};
}

void wb_problems_sort(struct wb_problems *p, size_t from)
{
    /* At most PROBLEMS_MAX, so that plain insertion is enough: each goes behind the last one of its
     * file that is not behind it, or stays where it is when its file is new. */
    for (size_t i = from; i < p->n; i++) {
        struct wb_problem moved = p->v[i];
        size_t to = i, k = i;

        while (k > from) {
            k--;
            if (!same_file(&p->v[k], &moved))
                continue;
            if (p->v[k].line <= moved.line) {
                to = k + 1;
                break;
            }
            to = k;
        }
        memmove(&p->v[to + 1], &p->v[to], (i - to) * sizeof moved);
        p->v[to] = moved;
    }
}

void wb_problems_release(struct wb_problems *p)
{
    for (size_t i = 0; i < p->n; i++)
        problem_release(&p->v[i]);
    free(p->v);
    *p = (struct wb_problems){.file = p->file};
}

#define WORD_MAX 64

static int least(int a, int b, int c)
{
    int m = a < b ? a : b;

    return m < c ? m : c;
}

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
}

/* Edit distance with swaps of neighbours, without regard to case; both at most WORD_MAX long. */
static int distance(const char *a, const char *b)
{
    int d[3][WORD_MAX + 1];
    int la = (int)strlen(a), lb = (int)strlen(b);

    for (int j = 0; j <= lb; j++)
        d[0][j] = j;
    for (int i = 1; i <= la; i++) {
        int *row = d[i % 3], *above = d[(i + 2) % 3], *above2 = d[(i + 1) % 3];

        row[0] = i;
        for (int j = 1; j <= lb; j++) {
            int differs = lower(a[i - 1]) != lower(b[j - 1]);

            row[j] = least(above[j] + 1, row[j - 1] + 1, above[j - 1] + differs);
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1]) && above2[j - 2] + 1 < row[j])
                row[j] = above2[j - 2] + 1;
        }
    }
    return d[la % 3][lb];
}

/* Whether one of two words of some length is the start of the other: "memory", "memory_min". */
static bool is_start(const char *a, const char *b)
{
    size_t n = strlen(a) < strlen(b) ? strlen(a) : strlen(b);

    return n >= 3 && strncasecmp(a, b, n) == 0;
}

char *wb_did_you_mean(const char *word, const char *const *words)
{
    const char *best = NULL;
    int best_d = WORD_MAX;

    if (strlen(word) > WORD_MAX)
        return wb_strdup("");
    for (; *words; words++) {
        int longer = (int)strlen(*words), d;

        if (longer > WORD_MAX)
            continue;
        if (longer < (int)strlen(word))
            longer = (int)strlen(word);
        d = distance(word, *words);
        if (is_start(word, *words) && d > longer / 3)
            d = longer / 3;
        /* A third of the letters may differ, so that three-letter words do not match at random. */
        if (d <= (longer + 1) / 3 && d < longer && d < best_d) {
            best = *words;
            best_d = d;
        }
    }
    return best ? wb_strf(" (did you mean '%s'?)", best) : wb_strdup("");
}

char *wb_word_list(const char *const *words)
{
    struct wb_buf b = WB_BUF_INIT(MESSAGE_MAX);
    size_t n = 0;

    while (words[n])
        n++;
    for (size_t i = 0; i < n; i++)
        wb_buf_addf(&b, "%s%s", i == 0 ? "" : (i + 1 == n ? " or " : ", "), words[i]);
    if (!b.data)
        return wb_strdup("");
    return wb_buf_take(&b);
}
