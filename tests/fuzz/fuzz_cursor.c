/*
 * Any text as a cursor or a time of a question to the index: it is taken or refused as wrong, and
 * never an error of anything else. The first byte chooses the question.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/file.h"
#include "server/record/query.h"
#include "tests/support/sample_record.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct wb_store *store;
static char *folder;

static void remove_folder(void)
{
    wb_store_close(store);
    WB_IGNORE(wb_remove_tree(folder, NULL));
    free(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    char *path;
    char commit[41];

    (void)argc;
    (void)argv;
    folder = mkdtemp(wb_strdup("/tmp/weighbridge-fuzz.XXXXXX"));
    if (!folder)
        abort();
    path = wb_strf("%s/store.git", folder);
    if (wb_store_open(path, true, "fuzz", &store, NULL) < 0)
        abort();
    free(path);
    for (int i = 0; i < 6; i++) {
        struct wb_record r = sample_record(i);

        if (wb_store_commit(store, &r, commit, NULL) < 0)
            abort();
        wb_record_release(&r);
    }
    return atexit(remove_folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wb_err err = WB_ERR_INIT;
    wb_json *items = NULL;
    char *next = NULL, *text;
    struct wb_query q = {.limit = 2};
    int rc;

    if (size < 1)
        return 0;
    text = wb_strndup((const char *)data + 1, size - 1);
    q.order = (enum wb_order)(data[0] % 3);
    q.ascending = data[0] & 4;
    if ((data[0] & 24) == 24)
        q.since = text;
    else if ((data[0] & 24) == 16)
        q.until = text;
    else
        q.cursor = text;
    rc = data[0] & 32   ? wb_store_runs(store, &q, &items, &next, &err)
         : data[0] & 64 ? wb_store_series(store, &q, &items, &next, &err)
                        : wb_store_campaigns(store, &q, &items, &next, &err);
    if (rc < 0 ? rc != -WB_INVALID || items || next : wb_json_len(items) > 2)
        abort();
    wb_json_free(items);
    free(next);
    free(text);
    return 0;
}
