/*
 * make_records STORE FROM TO [BYTES]: commits the invented records FROM to TO-1 into a store (made
 * when absent, controller "lab"), so that the commands which look at records can be tried without a
 * database. BYTES: each has a raw file big.bin of so many, which do not repeat.
 */
#include "server/base/units.h"
#include "tests/support/sample_record.h"

static void add_big(struct wb_record *r, size_t bytes)
{
    char *data = wb_calloc(bytes, 1);
    uint32_t x = 1;

    for (size_t i = 0; i < bytes; i++) {
        x = x * 1664525 + 1013904223;
        data[i] = (char)(i % 16 ? 'a' + (x >> 28) : '\n');
    }
    r->raw = wb_realloc(r->raw, r->nraw + 1, sizeof(*r->raw));
    r->raw[r->nraw++] =
        (struct wb_raw_file){.name = wb_strdup("big.bin"), .data = data, .n = bytes};
}

static int commit(struct wb_store *s, int n, size_t bytes, struct wb_err *err)
{
    struct wb_record r = sample_record(n);
    char hex[41];
    int rc;

    if (bytes)
        add_big(&r, bytes);
    rc = wb_store_commit(s, &r, hex, err);
    if (rc == 0)
        (void)printf("%s %s\n", r.run, hex);
    wb_record_release(&r);
    return rc;
}

int main(int argc, char **argv)
{
    struct wb_err err = WB_ERR_INIT;
    struct wb_store *s = NULL;
    int64_t from = 0, to = 0, bytes = 0;
    char text[2 * WB_ERR_TEXT_MAX];
    int rc;

    if (argc < 4 || argc > 5 || wb_parse_int(argv[2], 0, 999, &from, &err) < 0 ||
        wb_parse_int(argv[3], 0, 999, &to, &err) < 0 ||
        (argc == 5 && wb_parse_int(argv[4], 1, 1 << 30, &bytes, &err) < 0)) {
        (void)fprintf(stderr, "usage: make_records STORE FROM TO [BYTES]\n");
        return 2;
    }
    rc = wb_store_open(argv[1], true, "lab", &s, &err);
    for (int64_t n = from; rc == 0 && n < to; n++)
        rc = commit(s, (int)n, (size_t)bytes, &err);
    if (rc < 0)
        (void)fprintf(stderr, "make_records: %s\n", wb_err_text(&err, text, sizeof(text)));
    wb_store_close(s);
    return rc < 0;
}
