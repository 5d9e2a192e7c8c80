/*
 * make_records STORE FROM TO: commits the invented records FROM to TO-1 into a store (made when
 * absent, controller "lab"), so that the commands which look at records can be tried without a
 * database.
 */
#include "server/base/units.h"
#include "tests/support/sample_record.h"

static int commit(struct wb_store *s, int n, struct wb_err *err)
{
    struct wb_record r = sample_record(n);
    char hex[41];
    int rc = wb_store_commit(s, &r, hex, err);

    if (rc == 0)
        (void)printf("%s %s\n", r.run, hex);
    wb_record_release(&r);
    return rc;
}

int main(int argc, char **argv)
{
    struct wb_err err = WB_ERR_INIT;
    struct wb_store *s = NULL;
    int64_t from = 0, to = 0;
    char text[2 * WB_ERR_TEXT_MAX];
    int rc;

    if (argc != 4 || wb_parse_int(argv[2], 0, 999, &from, &err) < 0 ||
        wb_parse_int(argv[3], 0, 999, &to, &err) < 0) {
        (void)fprintf(stderr, "usage: make_records STORE FROM TO\n");
        return 2;
    }
    rc = wb_store_open(argv[1], true, "lab", &s, &err);
    for (int64_t n = from; rc == 0 && n < to; n++)
        rc = commit(s, (int)n, &err);
    if (rc < 0)
        (void)fprintf(stderr, "make_records: %s\n", wb_err_text(&err, text, sizeof(text)));
    wb_store_close(s);
    return rc < 0;
}
