/* The files of web/: names are checked, nothing outside the folder is read. */
#include <stdlib.h>
#include <string.h>

#include "server/base/file.h"
#include "server/base/digest.h"
#include "server/http/service.h"

#define FILE_MAX (4u << 20)

static const char *type_of(const char *name)
{
    static const struct {
        const char *end, *type;
    } rows[] = {
        {".html", "text/html; charset=utf-8"}, {".js", "text/javascript; charset=utf-8"},
        {".css", "text/css; charset=utf-8"},   {".svg", "image/svg+xml"},
        {".txt", "text/plain; charset=utf-8"},
    };
    const char *dot = strrchr(name, '.');

    for (size_t i = 0; dot && i < WB_LEN(rows); i++)
        if (!strcmp(dot, rows[i].end))
            return rows[i].type;
    return NULL;
}

/* folder is a fixed text, name comes from the address. */
static void answer_file(struct wb_context *c, const struct wb_request *q, struct wb_answer *a,
                        const char *folder, const char *name)
{
    const char *type = type_of(name);
    WB_AUTO_FREE char *path = wb_strf("%s/%s%s", c->service->web_dir, folder, name);
    WB_AUTO_FREE char *text = NULL;
    WB_AUTO_FREE char *tag = NULL;
    char hex[WB_SHA256_HEX];
    size_t n = 0;

    if (!type || !wb_safe_name(name) || wb_file_read(path, FILE_MAX, &text, &n, NULL) < 0) {
        wb_answer_problem(q, a, 404, "not-found", "there is no such file", NULL);
        return;
    }
    wb_sha256_of(text, n, hex);
    tag = wb_strf("\"%.32s\"", hex);
    a->status = 200;
    a->type = type;
    if (wb_answer_tag(q, a, tag))
        return;
    a->body = (struct wb_buf)WB_BUF_INIT(FILE_MAX);
    wb_buf_add(&a->body, text, n);
}

static void page(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    answer_file(c, q, a, "", "index.html");
}

static void app(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    answer_file(c, q, a, "app/", q->args[0]);
}

static void css(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    answer_file(c, q, a, "css/", q->args[0]);
}

const struct wb_route wb_routes_static[] = {
    {"GET", "/", WB_SCOPE_NONE, WB_ROUTE_OPEN, page, "page", "A page that lists runs",
     .type = "text/html", .status = 200},
    {"GET", "/app/{file}", WB_SCOPE_NONE, WB_ROUTE_OPEN, app, "appFile", "A script of the page",
     .type = "text/javascript", .status = 200},
    {"GET", "/css/{file}", WB_SCOPE_NONE, WB_ROUTE_OPEN, css, "styleFile", "A style of the page",
     .type = "text/css", .status = 200},
    {0},
};
