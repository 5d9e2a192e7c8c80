#include "server/analysis/topics.h"

#include <string.h>

#include "server/analysis/compare.h"
#include "server/analysis/csv.h"
#include "server/base/mem.h"
#include "server/base/problems.h"

#define TOPICS_MAX 40

/* The list of values of one file: a list, or the only list (or the named one) of an object or CSV.
 * Owned. */
static int one_list(const wb_json *doc, const char *path, const char *column, wb_json **out,
                    struct wb_err *err)
{
    const wb_json *found = NULL;
    size_t lists = 0;

    if (wb_json_type(doc) == WB_JSON_ARRAY) {
        *out = wb_json_ref(doc);
        return 0;
    }
    for (void *it = wb_json_first(doc); it != NULL; it = wb_json_next(doc, it)) {
        bool named = column != NULL && strcmp(column, wb_json_iter_key(it)) == 0;
        if (wb_json_type(wb_json_iter_value(it)) != WB_JSON_ARRAY || (column != NULL && !named))
            continue;
        lists++;
        found = wb_json_iter_value(it);
    }
    if (lists == 0 && column != NULL)
        return wb_fail(err, WB_INVALID, "%s has no column '%s'", path, column);
    if (lists != 1)
        return wb_fail(err, WB_INVALID, "%s has %zu columns: name the one to take with --column",
                       path, lists);
    *out = wb_json_ref(found);
    return 0;
}

/* One file: the question itself. Two: base and new. */
static int read_compare(const struct wb_topic_file *files, size_t n, const char *column,
                        wb_json **out, struct wb_err *err)
{
    static const char *const sides[] = {"base", "new"};
    WB_AUTO_JSON wb_json *doc = wb_json_object();
    bool columns;

    if (n == 1) {
        WB_AUTO_JSON wb_json *in = NULL;
        if (wb_topic_parse(&files[0], &in, &columns, err) < 0)
            return -err->code;
        *out = columns ? wb_csv_compare(in) : wb_json_ref(in);
        return 0;
    }
    for (size_t i = 0; i < WB_LEN(sides); i++) {
        WB_AUTO_JSON wb_json *in = NULL;
        wb_json *list = NULL;
        if (wb_topic_parse(&files[i], &in, &columns, err) < 0)
            return wb_wrap(err, "%s", files[i].path);
        if (one_list(in, files[i].path, column, &list, err) < 0)
            return -err->code;
        wb_json_set(doc, sides[i], list);
    }
    *out = WB_STEAL(doc);
    return 0;
}

const struct wb_topic wb_topics[] = {
    {.name = "compare",
     .summary = "two sets of runs: which is better, by how much, how sure",
     .input = "{\"base\":[..], \"new\":[..], \"better\":\"higher\"|\"lower\",\n"
              "\"threshold_percent\"?}; rounds_base and rounds_new for pairs; several in\n"
              "{\"rows\":[{\"name\", ..}]}; or two files, base and new",
     .options = WB_TO_COLUMN | WB_TO_BETTER | WB_TO_THRESHOLD,
     .files = 2,
     .read = read_compare,
     .answer = wb_stats_compare,
     .print = wb_stats_compare_print},
    {.name = "adjust",
     .summary = "the false discovery rate of several tests",
     .input = "{\"p\":[..]}",
     .files = 1,
     .answer = wb_stats_adjust,
     .print = wb_stats_adjust_print},
    {NULL},
};

const struct wb_topic *wb_topic_find(const char *name)
{
    for (const struct wb_topic *t = wb_topics; t->name != NULL; t++)
        if (strcmp(t->name, name) == 0)
            return t;
    return NULL;
}

int wb_topic_unknown(const char *name, struct wb_err *err)
{
    const char *names[TOPICS_MAX + 1] = {NULL};
    WB_AUTO_FREE char *hint = NULL;
    WB_AUTO_FREE char *list = NULL;

    for (size_t i = 0; i < TOPICS_MAX && wb_topics[i].name != NULL; i++)
        names[i] = wb_topics[i].name;
    hint = wb_did_you_mean(name, names);
    list = wb_word_list(names);
    return wb_fail(err, WB_INVALID, "there is no topic '%s'%s; allowed is %s", name, hint, list);
}

int wb_topic_parse(const struct wb_topic_file *file, wb_json **doc, bool *columns,
                   struct wb_err *err)
{
    size_t at = strspn(file->text, " \t\r\n");

    *columns = file->n > 0 && file->text[at] != '{' && file->text[at] != '[';
    return *columns ? wb_csv_columns(file->text, file->n, doc, err)
                    : wb_json_parse(file->text, file->n, doc, err);
}

int wb_topic_read(const struct wb_topic *t, const struct wb_topic_file *files, size_t n,
                  const char *column, wb_json **doc, struct wb_err *err)
{
    bool columns;

    if (t->files > 0 && n > t->files)
        return wb_fail(err, WB_INVALID, "%s takes at most %zu file%s, not %zu", t->name, t->files,
                       t->files == 1 ? "" : "s", n);
    return t->read != NULL ? t->read(files, n, column, doc, err)
                           : wb_topic_parse(&files[0], doc, &columns, err);
}
