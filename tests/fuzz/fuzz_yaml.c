/*
 * Any bytes as a study: the YAML reader, then the whole check with a profile and overrides that
 * reach into the document. What is accepted must give a plan, and must read the same again from
 * its own JSON.
 *
 *     clang -fsanitize=fuzzer,address,undefined ...; run from the root of the tree with
 *     tests/data/studies as corpus
 */
#include <stdlib.h>
#include <string.h>

#include "server/study/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void plan_it(const struct wb_study *s)
{
    static const int cpus[] = {0, 1};
    int copy[] = {cpus[0], cpus[1]};
    char mems[] = "0", class[] = "fuzz";
    const struct wb_host_facts host = {
        .cpus = copy, .ncpus = 2, .mems = mems, .memory_bytes = 1LL << 40, .host_class = class};
    struct wb_problems p = {0};
    struct wb_plan *plan = wb_plan_make(s, &host, 1, &p);
    struct wb_buf out = WB_BUF_INIT(16 << 20);

    if (plan) {
        wb_json_free(wb_plan_json(plan));
        wb_plan_print(plan, 80, &out);
    }
    wb_buf_release(&out);
    wb_plan_free(plan);
    wb_problems_release(&p);
}

static void read_again(const wb_json *resolved, const struct wb_study_options *o)
{
    struct wb_problems p = {0};
    struct wb_node *n = NULL;
    struct wb_study *s;

    if (wb_node_from_json(resolved, &n, NULL) < 0)
        abort();
    s = wb_study_check(n, NULL, o, &p);
    if (!s)
        abort();
    wb_study_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char length[] = "workload.phases.max.for=2s", levels[] = "setting.hz=1,2";
    char *overrides[] = {length, levels, NULL};
    const struct wb_study_options plain = {.recipes_dir = "tests/data/recipes"};
    const struct wb_study_options changed = {.recipes_dir = "tests/data/recipes",
                                             .profile = size % 2 ? "small" : NULL,
                                             .overrides = overrides,
                                             .rounds = 3};
    const struct wb_study_options *const ways[] = {&plain, &changed};

    for (size_t i = 0; i < WB_LEN(ways); i++) {
        struct wb_problems p = {.file = "fuzz"};
        struct wb_node *tree = wb_yaml_check((const char *)data, size, &p);
        struct wb_buf text = WB_BUF_INIT(16 << 20);
        struct wb_study *s = tree ? wb_study_check(tree, "fuzz", ways[i], &p) : NULL;

        if (!s == (p.n == 0))
            abort();
        wb_problems_text(&p, &text);
        wb_json_free(wb_problems_json(&p));
        if (s) {
            plan_it(s);
            read_again(s->resolved, &plain);
        }
        wb_study_free(s);
        wb_buf_release(&text);
        wb_problems_release(&p);
    }
    return 0;
}
