/* The description of the interface, made from the table that routes requests. */
#include <stdlib.h>
#include <string.h>

#include "server/http/service.h"

static const char schemas[] =
    "{\"Problem\":{\"type\":\"object\",\"required\":[\"type\",\"title\",\"status\"],\"properties\":"
    "{\"type\":{\"type\":\"string\"},\"title\":{\"type\":\"string\"},\"status\":{\"type\":"
    "\"integer\"},\"detail\":{\"type\":\"string\"},\"instance\":{\"type\":\"string\"},"
    "\"request_id\":{\"type\":\"string\"},\"errors\":{\"type\":\"array\",\"items\":{\"type\":"
    "\"object\",\"properties\":{\"pointer\":{\"type\":\"string\"},\"code\":{\"type\":\"string\"},"
    "\"message\":{\"type\":\"string\"}}}}}},"
    "\"Submission\":{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
    "\"study\":{\"type\":\"object\",\"description\":\"The study as an object; versions are "
    "strings\"},\"study_text\":{\"type\":\"string\",\"description\":\"The study as YAML\"},"
    "\"profile\":{\"type\":\"string\"},\"overrides\":{\"type\":\"object\"},\"rounds\":{\"type\":"
    "\"integer\",\"minimum\":1,\"maximum\":1000},\"priority\":{\"type\":\"integer\",\"minimum\":"
    "-100,\"maximum\":100},\"labels\":{\"type\":\"array\",\"maxItems\":20,\"items\":{\"type\":"
    "\"string\",\"minLength\":1,\"maxLength\":60}},\"reason\":{\"type\":\"string\",\"maxLength\":"
    "500}},\"oneOf\":[{\"required\":[\"study\"]},{\"required\":[\"study_text\"]}],\"examples\":["
    "{\"study_text\":\"study: redis-forms\\nrecipe: {name: redis, version: \\\"7.0.15\\\"}\\n...\","
    "\"profile\":\"small\",\"labels\":[\"nightly\"]}]},"
    "\"Again\":{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"priority\":{"
    "\"type\":\"integer\",\"minimum\":-100,\"maximum\":100},\"labels\":{\"type\":\"array\","
    "\"maxItems\":20,\"items\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":60}},"
    "\"reason\":{\"type\":\"string\",\"maxLength\":500}}},"
    "\"Empty\":{\"type\":\"object\"},"
    "\"Session\":{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"token\"],"
    "\"properties\":{\"token\":{\"type\":\"string\"}}},"
    "\"NewToken\":{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"name\","
    "\"scopes\"],\"properties\":{\"name\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":100},"
    "\"scopes\":{\"type\":\"array\",\"minItems\":1,\"items\":{\"enum\":[\"read\",\"runs:write\","
    "\"annotate\",\"hosts:admin\",\"tokens:admin\"]}},\"days\":{\"type\":\"integer\",\"minimum\":1,"
    "\"maximum\":3650}}}}";

static wb_json *parameter(const char *name, const char *in, bool required, const char *type)
{
    wb_json *o = wb_json_object(), *schema = wb_json_object();

    wb_json_set_str(o, "name", name);
    wb_json_set_str(o, "in", in);
    if (required)
        wb_json_set_bool(o, "required", true);
    wb_json_set_str(schema, "type", type);
    if (!strcmp(name, "limit")) {
        wb_json_set_int(schema, "minimum", 1);
        wb_json_set_int(schema, "maximum", 500);
    }
    wb_json_set(o, "schema", schema);
    return o;
}

static wb_json *parameters(const struct wb_route *r)
{
    wb_json *list = wb_json_array();

    for (const char *p = strchr(r->path, '{'); p; p = strchr(p + 1, '{')) {
        WB_AUTO_FREE char *name = wb_strndup(p + 1, strcspn(p + 1, "}"));

        wb_json_push(list, parameter(name, "path", true, "string"));
    }
    for (size_t i = 0; r->query && r->query[i]; i++) {
        const char *name = r->query[i];

        wb_json_push(list, parameter(name, "query", false,
                                     !strcmp(name, "limit")     ? "integer"
                                     : !strcmp(name, "dry_run") ? "boolean"
                                                                : "string"));
    }
    if (r->status == 202)
        wb_json_push(list, parameter("Idempotency-Key", "header", false, "string"));
    return list;
}

static wb_json *content(const char *type, const char *schema)
{
    wb_json *o = wb_json_object(), *media = wb_json_object(), *s = wb_json_object();
    WB_AUTO_FREE char *ref = schema ? wb_strf("#/components/schemas/%s", schema) : NULL;

    if (ref)
        wb_json_set_str(s, "$ref", ref);
    wb_json_set(media, "schema", s);
    wb_json_set(o, type, media);
    return o;
}

static void response(wb_json *list, int status, const char *text, wb_json *body)
{
    WB_AUTO_FREE char *key = wb_strf("%d", status);
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "description", text);
    if (body)
        wb_json_set(o, "content", body);
    wb_json_set(list, key, o);
}

static wb_json *responses(const struct wb_route *r)
{
    static const struct {
        int status;
        const char *text;
    } problems[] = {{400, "The request is malformed"},   {401, "No token, or none that is known"},
                    {403, "The token lacks a scope"},    {404, "There is no such thing"},
                    {409, "It is in another state"},     {413, "The request is too large"},
                    {415, "The body is not JSON"},       {416, "There is no such part"},
                    {422, "What was sent is not valid"}, {503, "Not now"}};
    bool open = r->flags & WB_ROUTE_OPEN;
    wb_json *list = wb_json_object();

    response(list, r->status, "Done", r->status == 204 ? NULL : content("*/*", NULL));
    if (r->query && !strcmp(r->id, "startCampaign"))
        response(list, 200, "What would be done (dry_run)", content("application/json", NULL));
    if (!strcmp(r->method, "GET"))
        response(list, 304, "Nothing changed (If-None-Match)", NULL);
    if (!strcmp(r->id, "getArtifact"))
        response(list, 206, "A part", content("*/*", NULL));
    for (size_t i = 0; i < WB_LEN(problems); i++) {
        int s = problems[i].status;

        if ((s == 403 && open) || (s == 401 && open && !r->body) || (s == 415 && !r->body) ||
            (s == 422 && !r->body) || (s == 416 && strcmp(r->id, "getArtifact") != 0))
            continue;
        response(list, s, problems[i].text, content("application/problem+json", "Problem"));
    }
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

        wb_json_set_bool(body, "required",
                         strcmp(r->body, "Empty") != 0 && strcmp(r->body, "Again") != 0);
        wb_json_set(body, "content", content("application/json", r->body));
        wb_json_set(o, "requestBody", body);
    }
    wb_json_set(o, "responses", responses(r));
    if (r->flags & WB_ROUTE_OPEN) {
        wb_json_set(o, "security", wb_json_array());
    } else {
        WB_AUTO_FREE char *text = wb_strf("Needs the scope %s.", wb_scope_name(r->scope));

        if (r->scope)
            wb_json_set_str(o, "description", text);
    }
    return o;
}

void wb_h_openapi(struct wb_context *c, struct wb_request *q, struct wb_answer *a)
{
    wb_json *o = wb_json_object(), *info = wb_json_object(), *paths = wb_json_object();
    wb_json *components = wb_json_object(), *s = NULL, *security = NULL;
    struct wb_err err = WB_ERR_INIT;
    static const char schemes[] = "{\"token\":{\"type\":\"http\",\"scheme\":\"bearer\"}}";
    static const char needs[] = "{\"l\":[{\"token\":[]}]}";

    (void)c;
    wb_json_set_str(info, "title", "Weighbridge");
    wb_json_set_str(info, "version", WB_VERSION);
    wb_json_set_str(o, "openapi", "3.1.0");
    wb_json_set(o, "info", info);
    for (const struct wb_route *r = wb_routes; r->method; r++) {
        WB_AUTO_FREE char *method = wb_strdup(r->method);
        wb_json *path = wb_json_get(paths, r->path);

        for (char *m = method; *m; m++)
            *m = (char)(*m | 0x20);
        if (!path) {
            path = wb_json_object();
            wb_json_set(paths, r->path, path);
        }
        wb_json_set(path, method, operation(r));
    }
    wb_json_set(o, "paths", paths);
    if (wb_json_parse(schemas, sizeof(schemas) - 1, &s, &err) == 0)
        wb_json_set(components, "schemas", s);
    if (wb_json_parse(schemes, sizeof(schemes) - 1, &s, &err) == 0)
        wb_json_set(components, "securitySchemes", s);
    wb_json_set(o, "components", components);
    if (wb_json_parse(needs, sizeof(needs) - 1, &security, &err) == 0)
        wb_json_set(o, "security", wb_json_ref(wb_json_get(security, "l")));
    wb_json_free(security);
    wb_answer_json(q, a, 200, o);
}
