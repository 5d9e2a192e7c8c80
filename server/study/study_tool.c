/* Load programs of a study: what it declares of foreign ones, and which of its phases they run. */
#include "server/study/parts.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/fields.h"

#define TOOLS_MAX 32
#define RULES_MAX 64
#define TIME_MAX 86400e9

struct raw_tool {
    const struct wb_node *command, *env, *version, *parse;
    int errors;
    int64_t limit, silence, startup;
};
struct raw_version {
    const struct wb_node *command;
    char *regex, *is;
};
struct raw_parse {
    char *from, *after, *until;
    const struct wb_node *rules;
};
struct raw_rule {
    char *regex, *json, *hdr;
    const struct wb_node *names;
    int take;
    bool optional;
};

static const char *const error_words[] = {"counted", "fatal", NULL};
static const char *const take_words[] = {"only", "last", NULL};

#define AT(m) offsetof(struct raw_tool, m)
static const struct wb_field tool_fields[] = {
    {"command", WB_F_NODE, true, AT(command), 0, 0, NULL, "a list of words; {port} is filled in"},
    {"env", WB_F_NODE, false, AT(env), 0, 0, NULL, "a list of NAME=value"},
    {"version", WB_F_NODE, false, AT(version), 0, 0, NULL, "{command, regex, is}"},
    {"errors", WB_F_WORD, false, AT(errors), 0, 0, error_words,
     "failed operations are counted in its result, or fatal: it ends with a status at the first"},
    {"limit", WB_F_DURATION, false, AT(limit), 1e6, TIME_MAX, NULL, "its time limit"},
    {"silence", WB_F_DURATION, false, AT(silence), 1e6, TIME_MAX, NULL,
     "longest time without output"},
    {"startup", WB_F_DURATION, false, AT(startup), 0, TIME_MAX, NULL,
     "most that it takes beside its measured window"},
    {"parse", WB_F_NODE, true, AT(parse), 0, 0, NULL, "{from, after, until, rules}"},
};
#undef AT
#define AT(m) offsetof(struct raw_version, m)
static const struct wb_field version_fields[] = {
    {"command", WB_F_NODE, true, AT(command), 0, 0, NULL, "a list of words"},
    {"regex", WB_F_TEXT, true, AT(regex), 0, 0, NULL, "its first group is the version"},
    {"is", WB_F_TEXT, false, AT(is), 0, 0, NULL, "the only version that is taken"},
};
#undef AT
#define AT(m) offsetof(struct raw_parse, m)
static const struct wb_field parse_fields[] = {
    {"from", WB_F_TEXT, false, AT(from), 0, 0, NULL, "stdout, stderr or file"},
    {"after", WB_F_TEXT, false, AT(after), 0, 0, NULL, "first line of the final block"},
    {"until", WB_F_TEXT, false, AT(until), 0, 0, NULL, "its last line"},
    {"rules", WB_F_NODE, true, AT(rules), 0, 0, NULL, "a list of rules"},
};
#undef AT
#define AT(m) offsetof(struct raw_rule, m)
static const struct wb_field rule_fields[] = {
    {"regex", WB_F_TEXT, false, AT(regex), 0, 0, NULL, "POSIX extended, seen line by line"},
    {"json", WB_F_TEXT, false, AT(json), 0, 0, NULL, "a JSON pointer such as /totals/ops"},
    {"hdr", WB_F_TEXT, false, AT(hdr), 0, 0, NULL, "a tag of an HDR interval log"},
    {"names", WB_F_NODE, true, AT(names), 0, 0, NULL, "figures, one per group"},
    {"take", WB_F_WORD, false, AT(take), 0, 0, take_words, "of several matches"},
    {"optional", WB_F_BOOL, false, AT(optional), 0, 0, NULL, "may be missing"},
};
#undef AT

/* A list of texts, or one text. */
static void read_words(const struct wb_node *n, const char *what, struct wb_strv *out,
                       struct wb_problems *p)
{
    if (n->text) {
        wb_strv_add(out, n->text);
        return;
    }
    if (n->kind != WB_NODE_LIST)
        wb_problem(p, n, "wrong-type", "%s must be a list of words", what);
    for (size_t i = 0; n->kind == WB_NODE_LIST && i < n->n; i++) {
        if (n->items[i]->text)
            wb_strv_add(out, n->items[i]->text);
        else
            wb_problem(p, n->items[i], "wrong-type", "a word of %s must be text", what);
    }
}

static void read_version(struct wb_tool_command *c, const struct wb_node *n, struct wb_problems *p)
{
    struct raw_version raw = {0};

    (void)wb_fields_read(n, "version", version_fields, WB_LEN(version_fields), &raw, p);
    if (raw.command)
        read_words(raw.command, "version: command", &c->version_argv, p);
    c->version_regex = raw.regex;
    c->version = raw.is;
}

static void read_rule(struct wb_tool_output *o, const struct wb_node *n, struct wb_problems *p)
{
    struct raw_rule raw = {0};
    struct wb_tool_rule *r;

    (void)wb_fields_read(n, "rule", rule_fields, WB_LEN(rule_fields), &raw, p);
    if (!!raw.regex + !!raw.json + !!raw.hdr != 1)
        wb_problem(p, n, "contradiction", "a rule has one of regex, json and hdr");
    if (raw.take && !raw.regex)
        wb_problem(p, wb_node_get(n, "take"), "contradiction", "take is for a regex");
    wb_grow(&o->rules, &o->cap, o->nrules + 1, sizeof *o->rules);
    r = &o->rules[o->nrules++];
    *r = (struct wb_tool_rule){.reader = raw.json  ? WB_READ_JSON
                                         : raw.hdr ? WB_READ_HDR
                                                   : WB_READ_REGEX,
                               .text = wb_strdup(raw.json  ? raw.json
                                                 : raw.hdr ? raw.hdr
                                                           : raw.regex),
                               .last = raw.take == 1,
                               .optional = raw.optional};
    if (raw.names)
        read_words(raw.names, "names", &r->names, p);
    free(raw.regex);
    free(raw.json);
    free(raw.hdr);
}

static void read_parse(struct wb_tool_output *o, const struct wb_node *n, struct wb_problems *p)
{
    struct raw_parse raw = {0};

    (void)wb_fields_read(n, "parse", parse_fields, WB_LEN(parse_fields), &raw, p);
    o->from = raw.from ? raw.from : wb_strdup("stdout");
    o->after = raw.after;
    o->until = raw.until;
    if (raw.rules && (raw.rules->kind != WB_NODE_LIST || raw.rules->n > RULES_MAX)) {
        wb_problem(p, raw.rules, "wrong-type", "rules must be a list of at most %d rules",
                   RULES_MAX);
        return;
    }
    for (size_t i = 0; raw.rules && i < raw.rules->n; i++)
        read_rule(o, raw.rules->items[i], p);
}

/* A declared program; owned by the caller. name NULL: its own. */
static struct wb_tool_command *read_tool(const struct wb_node *n, const char *name,
                                         struct wb_problems *p)
{
    struct raw_tool raw = {.startup = WB_TOOL_STARTUP_NS};
    struct wb_tool_command *c = wb_calloc(1, sizeof *c);
    size_t before = p->n + p->dropped;
    struct wb_err err = WB_ERR_INIT;
    char text[2 * WB_ERR_TEXT_MAX];
    const char *base;

    (void)wb_fields_read(n, "tool", tool_fields, WB_LEN(tool_fields), &raw, p);
    if (raw.command)
        read_words(raw.command, "command", &c->argv, p);
    if (raw.env)
        read_words(raw.env, "env", &c->env, p);
    if (raw.version)
        read_version(c, raw.version, p);
    if (raw.parse)
        read_parse(&c->output, raw.parse, p);
    c->errors_fatal = raw.errors == 1;
    c->limit_ns = raw.limit;
    c->silence_ns = raw.silence;
    c->startup_ns = raw.startup;
    base = c->argv.n ? strrchr(c->argv.v[0], '/') : NULL;
    c->name = wb_strdup(name ? name : base ? base + 1 : c->argv.n ? c->argv.v[0] : "");
    if (p->n + p->dropped == before && wb_tool_command_check(c, &err) < 0)
        wb_problem(p, n, "bad-value", "%s", wb_err_text(&err, text, sizeof text));
    return c;
}

static void add_tool(struct wb_setup *s, struct wb_tool_command *c)
{
    wb_grow(&s->tools, &s->tools_cap, s->ntools + 1, sizeof(*s->tools));
    s->tools[s->ntools++] = c;
}

void wb_study_tools(struct wb_setup *s, const struct wb_node *tools, struct wb_problems *p)
{
    if (tools->kind != WB_NODE_MAP || tools->n > TOOLS_MAX) {
        wb_problem(p, tools, "wrong-type", "tools must be a map of at most %d programs by name",
                   TOOLS_MAX);
        return;
    }
    for (size_t i = 0; i < tools->n; i++) {
        const char *name = tools->items[i]->key;

        if (!wb_is_name(name) || !strcmp(name, wb_tool_wb_load.name))
            wb_problem(p, tools->items[i], "bad-name",
                       "'%.60s' cannot be the name of a tool: lower-case letters, digits and ._- "
                       "make one, and wb-load is taken",
                       name);
        add_tool(s, read_tool(tools->items[i], name, p));
    }
}

void wb_tools_release(struct wb_setup *s)
{
    for (size_t i = 0; i < s->ntools; i++)
        wb_tool_command_free(s->tools[i]);
    free(s->tools);
}

/* The program that a phase names; NULL also for wb-load. */
static const struct wb_tool_command *find_tool(const struct wb_setup *s, const struct wb_node *n,
                                               struct wb_problems *p)
{
    const char **names;

    if (!strcmp(n->text, wb_tool_wb_load.name))
        return NULL;
    for (size_t i = 0; i < s->ntools; i++)
        if (!strcmp(s->tools[i]->name, n->text))
            return s->tools[i];
    names = wb_calloc(s->ntools + 2, sizeof *names);
    names[0] = wb_tool_wb_load.name;
    for (size_t i = 0; i < s->ntools; i++)
        names[i + 1] = s->tools[i]->name;
    WB_AUTO_FREE char *guess = wb_did_you_mean(n->text, names);
    WB_AUTO_FREE char *list = wb_word_list(names);

    wb_problem(p, n, "unknown-value",
               "there is no tool '%.60s'%s; allowed: %s; others are "
               "declared under tools",
               n->text, guess, list);
    free(names);
    return NULL;
}

/* Whatever a phase says of the load must reach the program: nothing is ignored in silence. */
static void check_told(const struct wb_phase *ph, const struct wb_node *n, struct wb_problems *p)
{
    static const struct {
        const char *key, *placeholder;
    } keys[] = {{"connections", "connections"}, {"depth", "depth"},
                {"threads", "threads"},         {"for", "seconds"},
                {"ops", "operations"},          {"timeout", "timeout_ms"}};
    const struct wb_tool_command *c = ph->tool;
    const struct wb_node *rate = wb_node_get(n, "rate"), *warm = wb_node_get(n, "warm_up");

    for (size_t i = 0; i < WB_LEN(keys); i++) {
        const struct wb_node *at = wb_node_get(n, keys[i].key);

        if (at && !wb_tool_command_uses(c, keys[i].placeholder))
            wb_problem(p, at, "contradiction", "%s is not told to %s: its command has no {%s}",
                       keys[i].key, c->name, keys[i].placeholder);
    }
    if (ph->pace != WB_PACE_MAX && ph->pace != WB_PACE_SEARCH && !wb_tool_command_uses(c, "rate"))
        wb_problem(p, rate ? rate : n, "contradiction",
                   "the rate is not told to %s: its command has no {rate}", c->name);
    if (ph->pace == WB_PACE_SEARCH)
        wb_problem(p, rate, "contradiction", "%s cannot look for a rate: wb-load can", c->name);
    if (ph->transactions)
        wb_problem(p, wb_node_get(n, "transactions"), "contradiction",
                   "%s has no composite transactions: wb-load has", c->name);
    if (ph->pace == WB_PACE_MAX && wb_tool_command_gives(c, "response_"))
        wb_problem(p, n, "contradiction",
                   "%s gives response times, but at rate: max there is no intended start to count "
                   "them from: they are service times",
                   c->name);
    if (ph->warm_up_ns > 0 && !wb_tool_command_uses(c, "warm_up_seconds"))
        wb_problem(p, warm ? warm : n, "contradiction",
                   "%s cannot warm up by itself: its command has no {warm_up_seconds}; say "
                   "warm_up: 0s, and warm up in a phase before it",
                   c->name);
}

void wb_study_phase_tool(struct wb_setup *s, const struct wb_node *n, const struct wb_node *tool,
                         struct wb_phase *ph, struct wb_problems *p)
{
    if (!tool)
        return;
    if (tool->kind == WB_NODE_MAP) {
        struct wb_tool_command *c = read_tool(tool, NULL, p);

        add_tool(s, c);
        ph->tool = c;
    } else if (tool->text) {
        ph->tool = find_tool(s, tool, p);
    } else {
        wb_problem(p, tool, "wrong-type", "tool is the name of one, or a map that declares it");
    }
    if (ph->tool)
        check_told(ph, n, p);
}

wb_json *wb_tool_schema(void)
{
    wb_json *map = wb_schema_map(tool_fields, WB_LEN(tool_fields));
    wb_json *version = wb_schema_map(version_fields, WB_LEN(version_fields));
    wb_json *parse = wb_schema_map(parse_fields, WB_LEN(parse_fields));
    wb_json *rule = wb_schema_map(rule_fields, WB_LEN(rule_fields));

    wb_schema_set(rule, "names", wb_schema_ref("words"));
    wb_schema_set(version, "command", wb_schema_ref("words"));
    wb_schema_set(parse, "rules", wb_schema_list(rule, 0, RULES_MAX));
    wb_schema_set(map, "command", wb_schema_ref("words"));
    wb_schema_set(map, "env", wb_schema_ref("words"));
    wb_schema_set(map, "version", version);
    wb_schema_set(map, "parse", parse);
    return map;
}
