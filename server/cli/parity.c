/* The parity report of a run, for people. */
#include "server/base/table.h"
#include "server/cli/records.h"

static const char *value_or_none(const wb_json *d, const char *key)
{
    return wb_json_str_or(d, key, "none");
}

static void print_differences(const wb_json *list, int width, struct wb_buf *out)
{
    struct wb_table *t = wb_table_new();

    wb_table_column(t, "differs", WB_LEFT);
    wb_table_column(t, "allowed", WB_LEFT);
    wb_table_column(t, "here", WB_LEFT);
    wb_table_column(t, "there", WB_LEFT);
    for (size_t i = 0; i < wb_json_len(list); i++) {
        const wb_json *d = wb_json_at(list, i);
        const char *here = value_or_none(d, "here"), *there = value_or_none(d, "there");

        wb_table_row(t);
        if (wb_json_get(d, "instance"))
            wb_table_cell(t, "%s of instance %lld", wb_json_str_or(d, "field", "?"),
                          (long long)wb_json_int_or(d, "instance", 0));
        else
            wb_table_cell(t, "%s", wb_json_str_or(d, "field", "?"));
        wb_table_cell(t, "%s", wb_json_bool_or(d, "allowed", false) ? "yes" : "NO");
        wb_table_cell(t, "%s", *here ? here : "''");
        wb_table_cell(t, "%s", *there ? there : "''");
    }
    wb_table_print(t, width, out);
    wb_table_free(t);
}

void wb_cli_parity(const wb_json *parity, int width, struct wb_buf *out)
{
    const wb_json *against = wb_json_get(parity, "against");
    const wb_json *differences = wb_json_get(parity, "differences");

    if (!parity)
        return;
    if (wb_json_type(against) != WB_JSON_OBJECT) {
        wb_buf_addf(out, "%-10s  %s\n", "parity", wb_json_str_or(parity, "against_reason", "?"));
        return;
    }
    wb_buf_addf(out, "%-10s  %zu differences from %s (%s)%s\n", "parity", wb_json_len(differences),
                wb_json_str_or(against, "arm", "?"), wb_json_str_or(against, "run", "?"),
                wb_json_len(differences) ? ":" : "");
    if (wb_json_len(differences)) {
        wb_buf_addc(out, '\n');
        print_differences(differences, width, out);
    }
}
