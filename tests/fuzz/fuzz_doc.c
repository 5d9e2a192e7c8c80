/*
 * Documents that wb-load reads: a workload file, a job, what is kept of an interrupted data load.
 * The first byte chooses which. What is taken is checked as a job; a state that is kept, written
 * again, is the same.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runners/load/load_state.h"
#include "runners/load/workload.h"
#include "server/base/file.h"
#include "server/base/mem.h"
#include "server/base/node.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
    if (!ok)
        abort();
}

static void workload(struct wb_load_job *job, const char *text, size_t n)
{
    struct wb_node *root = NULL;
    struct wb_err err = WB_ERR_INIT;

    if (wb_yaml_parse(text, n, &root, &err) == 0) {
        job->target = wb_strdup("null://");
        if (wb_workload_apply(job, root, NULL, &err) == 0)
            (void)!wb_load_job_check(job, &err);
    }
    wb_node_free(root);
}

static void job_document(struct wb_load_job *job, const char *text, size_t n)
{
    wb_json *doc = NULL;

    if (wb_json_parse(text, n, &doc, NULL) == 0 && wb_load_job_read(job, doc, NULL) == 0 &&
        wb_load_job_check(job, NULL) == 0)
        wb_json_free(wb_load_job_json(job));
    wb_json_free(doc);
}

static void load_state(struct wb_load_job *job, const char *text, size_t n)
{
    static char path[64];
    uint64_t written[2] = {0, 0}, again[2] = {0, 0};

    if (!path[0]) {
        WB_AUTO_FREE char *name = wb_strf("/tmp/wb-fuzz-state-%d", (int)getpid());
        memcpy(path, name, strlen(name) + 1);
    }
    job->target = wb_strdup("null://");
    job->threads = 2;
    job->load = true;
    job->load_state = wb_strdup(path);
    require(wb_file_put(path, text, n, NULL) == 0);
    if (wb_load_job_check(job, NULL) == 0 && wb_load_state_read(job, written, NULL) == 0) {
        require(written[0] <= (uint64_t)job->keys && written[1] <= (uint64_t)job->keys);
        require(wb_load_state_write(job, written, NULL) == 0);
        require(wb_load_state_read(job, again, NULL) == 0);
        require(memcmp(written, again, sizeof(again)) == 0);
    }
    (void)unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(struct wb_load_job *, const char *,
                                   size_t) = {workload, job_document, load_state};
    struct wb_load_job job;

    if (size < 1 || size > 1 << 16)
        return 0;
    wb_load_job_init(&job);
    readers[data[0] % WB_LEN(readers)](&job, (const char *)data + 1, size - 1);
    wb_load_job_release(&job);
    return 0;
}
