/* The description of the interface, made from the tables that route and check requests. */
#include <stdlib.h>
#include <string.h>

#include "server/http/service.h"

static const struct wb_shape fault_rows[] = {
    {"pointer", WB_S_TEXT, WB_S_NULL, .help = "Where in the body (RFC 6901)"},
    {"parameter", WB_S_TEXT, .help = "Which query value"},
    {"file", WB_S_TEXT, .flags = WB_S_NULL},
    {"line", WB_S_INT, WB_S_NULL, .help = "Of a study that was sent as text"},
    {"code", WB_S_TEXT, .flags = WB_S_NEED},
    {"message", WB_S_TEXT, .flags = WB_S_NEED},
    {0},
};
static const struct wb_form fault = {.name = "Fault", .rows = fault_rows};
static const struct wb_shape problem_rows[] = {
    {"type", WB_S_TEXT, .flags = WB_S_NEED},
    {"title", WB_S_TEXT, .flags = WB_S_NEED},
    {"status", WB_S_INT, .flags = WB_S_NEED},
    {"detail", WB_S_TEXT, .flags = WB_S_NEED},
    {"instance", .type = WB_S_TEXT},
    {"request_id", WB_S_TEXT, .flags = WB_S_NEED},
    {"errors", WB_S_OBJECT, WB_S_LIST, .of = &fault},
    {0},
};
static const struct wb_form problem = {
    .name = "Problem",
    .rows = problem_rows,
    .example = "{\"type\": \"/problems/not-found\", \"title\": \"There is no such thing\", "
               "\"status\": 404, \"detail\": \"there is no run 'run_01'\", \"request_id\": "
               "\"01JX8AB003CDEFGHJKMNPQRSTV\"}"};

/* ---- schemas ---- */

/* References within a schema that was made to stand alone lead through its place here. */
static void move_refs(wb_json *j, const char *name)
{
    const char *ref;

    for (size_t i = 0; wb_json_type(j) == WB_JSON_ARRAY && i < wb_json_len(j); i++)
        move_refs(wb_json_at(j, i), name);
    if (wb_json_type(j) != WB_JSON_OBJECT)
        return;
    ref = wb_json_str_or(j, "$ref", "");
    if (!strncmp(ref, "#/$defs/", 8)) {
        WB_AUTO_FREE char *moved = wb_strf("#/components/schemas/%s%s", name, ref + 1);

        wb_json_set_str(j, "$ref", moved);
    }
    for (void *it = wb_json_first(j); it; it = wb_json_next(j, it))
        move_refs(wb_json_iter_value(it), name);
}

static void add_form(wb_json *schemas, const struct wb_form *f)
{
    wb_json *made;

    if (!f || wb_json_get(schemas, f->name))
        return;
    made = wb_form_schema(f);
    if (f->make)
        move_refs(made, f->name);
    wb_json_set(schemas, f->name, made);
    for (const struct wb_shape *r = f->rows; r && r->key; r++)
        add_form(schemas, r->type == WB_S_OBJECT ? r->of : NULL);
}

static wb_json *list_schema(const struct wb_form *item)
{
    wb_json *o = wb_json_object(), *rows = wb_json_object(), *items = wb_json_object();
    wb_json *next = wb_json_object(), *types = wb_json_array(), *needed = wb_json_array();

    wb_json_set_str(items, "type", "array");
    wb_json_set(items, "items", wb_form_ref(item));
    wb_json_push(types, wb_json_str("string"));
    wb_json_push(types, wb_json_str("null"));
    wb_json_set(next, "type", types);
    wb_json_set_str(next, "description", "The cursor of the next page; null: this is the last");
    wb_json_set(rows, "items", items);
    wb_json_set(rows, "next", next);
    wb_json_push(needed, wb_json_str("items"));
    wb_json_push(needed, wb_json_str("next"));
    wb_json_set_str(o, "type", "object");
    wb_json_set(o, "required", needed);
    wb_json_set_bool(o, "additionalProperties", false);
    wb_json_set(o, "properties", rows);
    return o;
}

/* ---- parameters ---- */

static wb_json *parameter(const char *name, const char *in, bool required, const char *help,
                          wb_json *schema)
{
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "name", name);
    wb_json_set_str(o, "in", in);
    if (required)
        wb_json_set_bool(o, "required", true);
    if (help)
        wb_json_set_str(o, "description", help);
    wb_json_set(o, "schema", schema);
    return o;
}

static wb_json *text_schema(int64_t min, int64_t max)
{
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "type", "string");
    wb_json_set_int(o, "minLength", min);
    wb_json_set_int(o, "maxLength", max);
    return o;
}

static wb_json *parameters(const struct wb_route *r)
{
    wb_json *list = wb_json_array();

    for (const char *p = strchr(r->path, '{'); p; p = strchr(p + 1, '{')) {
        WB_AUTO_FREE char *name = wb_strndup(p + 1, strcspn(p + 1, "}"));

        wb_json_push(list, parameter(name, "path", true, NULL, text_schema(1, 128)));
    }
    for (const struct wb_shape *row = r->query; row && row->key; row++)
        wb_json_push(list, parameter(row->key, "query", row->flags & WB_S_NEED, row->help,
                                     wb_shape_schema(row, true)));
    if (r->flags & WB_ROUTE_KEY)
        wb_json_push(list, parameter("Idempotency-Key", "header", false,
                                     "The same key and request again is the same campaign",
                                     text_schema(1, 200)));
    if (r->flags & WB_ROUTE_MATCH)
        wb_json_push(list, parameter("If-Match", "header", true,
                                     "The ETag of what is to be changed", text_schema(1, 200)));
    return list;
}

/* ---- answers ---- */

static wb_json *content(const char *type, wb_json *schema)
{
    wb_json *o = wb_json_object(), *media = wb_json_object();

    wb_json_set(media, "schema", schema);
    wb_json_set(o, type, media);
    return o;
}

static void add_response(wb_json *list, int status, const char *text, wb_json *body)
{
    WB_AUTO_FREE char *key = status ? wb_strf("%d", status) : wb_strdup("default");
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "description", text);
    if (body)
        wb_json_set(o, "content", body);
    wb_json_set(list, key, o);
}

static wb_json *success(const struct wb_route *r)
{
    if (r->type)
        return content(r->type, wb_json_object());
    if (!r->answer)
        return NULL;
    return content("application/json",
                   r->flags & WB_ROUTE_LIST ? list_schema(r->answer) : wb_form_ref(r->answer));
}

/* Statuses of problems that follow from the row. */
static bool has_status(const struct wb_route *r, int status)
{
    bool open = r->flags & WB_ROUTE_OPEN, body = r->body != NULL;

    for (size_t i = 0; i < WB_LEN(r->also); i++)
        if (r->also[i] == status)
            return true;
    switch (status) {
    case 400:
        return body || r->query || (r->flags & WB_ROUTE_WRITE);
    case 401:
    case 403:
        return !open && (status == 401 || r->scope);
    case 404:
        return strchr(r->path, '{');
    case 412:
    case 428:
        return r->flags & WB_ROUTE_MATCH;
    case 413:
    case 415:
    case 422:
        return body;
    case 416:
        return r->flags & WB_ROUTE_RANGE;
    default:
        return false;
    }
}

static wb_json *responses(const struct wb_route *r)
{
    static const struct {
        int status;
        const char *text;
    } problems[] = {{400, "The request is malformed"},
                    {401, "No token, or none that is known"},
                    {403, "The token lacks a scope, or the page is another site's"},
                    {404, "There is no such thing"},
                    {409, "It is in another state"},
                    {410, "It was there and is pruned"},
                    {412, "It was changed since If-Match was read"},
                    {413, "The request is too large"},
                    {415, "The body is not JSON"},
                    {416, "There is no such part"},
                    {422, "What was sent is not valid"},
                    {428, "If-Match is missing"},
                    {503, "Not now"}};
    wb_json *list = wb_json_object();

    add_response(list, r->status, "Done", success(r));
    if (!strcmp(r->id, "startCampaign"))
        add_response(list, 200, "What would be done (dry_run)",
                     content("application/json", wb_json_object()));
    if (!strcmp(r->method, "GET") && !r->flags && r->answer)
        add_response(list, 304, "Nothing changed (If-None-Match)", NULL);
    if (r->flags & WB_ROUTE_RANGE)
        add_response(list, 206, "A part", success(r));
    for (size_t i = 0; i < WB_LEN(problems); i++)
        if (has_status(r, problems[i].status))
            add_response(list, problems[i].status, problems[i].text,
                         problems[i].status == 503
                             ? success(r) /* a state that is told, as that of readiness */
                             : content("application/problem+json", wb_form_ref(&problem)));
    add_response(list, 0, "What any request may meet: too many, too large, malformed, not now",
                 content("application/problem+json", wb_form_ref(&problem)));
    return list;
}

static wb_json *operation(const struct wb_route *r)
{
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "operationId", r->id);
    wb_json_set_str(o, "summary", r->summary);
    wb_json_set(o, "parameters", parameters(r));
    if (r->body) {
        wb_json *body = wb_json_object();

        wb_json_set_bool(body, "required", !(r->flags & WB_ROUTE_NO_BODY));
        wb_json_set(body, "content", content("application/json", wb_form_ref(r->body)));
        wb_json_set(o, "requestBody", body);
    }
    wb_json_set(o, "responses", responses(r));
    if (r->flags & WB_ROUTE_OPEN) {
        wb_json_set(o, "security", wb_json_array());
    } else if (r->scope) {
        WB_AUTO_FREE char *text = wb_strf("Needs the scope %s.", wb_scope_name(r->scope));

        wb_json_set_str(o, "description", text);
    }
    return o;
}

static void add_route(const struct wb_route *r, wb_json *paths, wb_json *schemas)
{
    WB_AUTO_FREE char *method = wb_strdup(r->method);
    wb_json *path = wb_json_get(paths, r->path);

    for (char *m = method; *m; m++)
        *m = (char)(*m | 0x20);
    if (!path) {
        path = wb_json_object();
        wb_json_set(paths, r->path, path);
    }
    wb_json_set(path, method, operation(r));
    add_form(schemas, r->body);
    add_form(schemas, r->answer);
}

static void openapi(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    wb_json *o = wb_json_object(), *info = wb_json_object(), *paths = wb_json_object();
    wb_json *components = wb_json_object(), *schemas = wb_json_object(), *schemes = NULL;
    wb_json *security = NULL;
    static const char scheme_text[] = "{\"token\":{\"type\":\"http\",\"scheme\":\"bearer\"}}";
    static const char need_text[] = "[{\"token\":[]}]";

    (void)c;
    wb_json_set_str(info, "title", "Weighbridge");
    wb_json_set_str(info, "version", WB_VERSION);
    wb_json_set_str(o, "openapi", "3.1.0");
    wb_json_set(o, "info", info);
    for (const struct wb_route *const *t = wb_route_tables; *t; t++)
        for (const struct wb_route *r = *t; r->method; r++)
            add_route(r, paths, schemas);
    add_form(schemas, &problem);
    wb_json_set(o, "paths", paths);
    wb_json_set(components, "schemas", schemas);
    if (wb_json_parse(scheme_text, sizeof(scheme_text) - 1, &schemes, NULL) == 0)
        wb_json_set(components, "securitySchemes", schemes);
    wb_json_set(o, "components", components);
    if (wb_json_parse(need_text, sizeof(need_text) - 1, &security, NULL) == 0)
        wb_json_set(o, "security", security);
    wb_answer_json(q, a, 200, o);
}

static const struct wb_form document = {.name = "OpenApi", .open = true};

const struct wb_route wb_routes_openapi[] = {
    {"GET", "/api/v1/openapi.json", WB_SCOPE_NONE, WB_ROUTE_OPEN, openapi, "openapi",
     "This document", .answer = &document, .status = 200},
    {0},
};
