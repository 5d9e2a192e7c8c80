/* The judgement in the forms that build systems read. */
#include <math.h>
#include <string.h>

#include "server/analysis/gate.h"
#include "server/base/mem.h"

#define MARKDOWN_MAX 60000
#define ANNOTATIONS_MAX 10

static bool has_status(const wb_json *c, const char *status)
{
    return strcmp(wb_json_str_or(c, "status", ""), status) == 0;
}

/* ---- JUnit ---- */

/* Text for XML: what has a meaning there is escaped, what must not be there becomes '?'. */
static void add_xml(struct wb_buf *out, const char *s)
{
    for (; *s != '\0'; s++) {
        unsigned char c = (unsigned char)*s;
        switch (c) {
        case '&':
            wb_buf_adds(out, "&amp;");
            break;
        case '<':
            wb_buf_adds(out, "&lt;");
            break;
        case '>':
            wb_buf_adds(out, "&gt;");
            break;
        case '"':
            wb_buf_adds(out, "&quot;");
            break;
        default:
            wb_buf_addc(out, c < 0x20 && c != '\n' && c != '\t' ? '?' : (char)c);
        }
    }
}

static void add_attribute(struct wb_buf *out, const char *name, const char *value)
{
    wb_buf_addf(out, " %s=\"", name);
    add_xml(out, value);
    wb_buf_addc(out, '"');
}

static void add_property(struct wb_buf *out, const wb_json *c, const char *key)
{
    const wb_json *v = wb_json_get(c, key);

    if (wb_json_is_number(v))
        wb_buf_addf(out, "        <property name=\"%s\" value=\"%.10g\"/>\n", key,
                    wb_json_number(v, 0));
}

/* "host.class, workload": what was passed over by force; empty without. */
static void list_forced(const wb_json *gate, struct wb_buf *out)
{
    const wb_json *forced = wb_json_get(gate, "forced");

    for (size_t i = 0; i < wb_json_len(forced); i++)
        wb_buf_addf(out, "%s%s", i > 0 ? ", " : "",
                    wb_json_string(wb_json_at(forced, i)) ? wb_json_string(wb_json_at(forced, i))
                                                          : "?");
}

static void add_case(struct wb_buf *out, const wb_json *c, const char *forced)
{
    static const char *const keys[] = {"value", "base", "ratio", "lo", "hi", "threshold_percent",
                                       "p",     "q"};
    WB_AUTO_FREE char *name = wb_strf("%s against %s", wb_json_str_or(c, "metric", "?"),
                                      wb_json_str_or(c, "against", "?"));
    const char *element = has_status(c, "failed")    ? "failure"
                          : has_status(c, "skipped") ? "skipped"
                          : has_status(c, "error")   ? "error"
                                                     : NULL;

    /* What stands beside the contrasts that decide is told, but fails nothing. */
    if (element != NULL && !wb_json_bool_or(c, "decides", false))
        element = "skipped";
    wb_buf_adds(out, "    <testcase");
    add_attribute(out, "classname", wb_json_str_or(c, "arm", "?"));
    add_attribute(out, "name", name);
    wb_buf_adds(out, ">\n      <properties>\n");
    for (size_t i = 0; i < WB_LEN(keys); i++)
        add_property(out, c, keys[i]);
    if (*forced != '\0') {
        wb_buf_adds(out, "        <property name=\"forced\"");
        add_attribute(out, "value", forced);
        wb_buf_adds(out, "/>\n");
    }
    wb_buf_adds(out, "        <property name=\"verdict\"");
    add_attribute(out, "value", wb_json_str_or(c, "verdict", ""));
    wb_buf_adds(out, "/>\n      </properties>\n");
    if (element != NULL) {
        wb_buf_addf(out, "      <%s", element);
        add_attribute(out, "message", wb_json_str_or(c, "text", ""));
        wb_buf_adds(out, "/>\n");
    }
    wb_buf_adds(out, "    </testcase>\n");
}

/* Cases of an arm with a status that JUnit counts; NULL: all. */
static size_t count(const wb_json *cases, const char *arm, const char *status)
{
    size_t n = 0;

    for (size_t i = 0; i < wb_json_len(cases); i++) {
        const wb_json *c = wb_json_at(cases, i);
        bool decides = wb_json_bool_or(c, "decides", false);
        const char *is = wb_json_str_or(c, "status", "");
        if (!decides && strcmp(is, "passed") != 0)
            is = "skipped";
        n += (arm == NULL || strcmp(wb_json_str_or(c, "arm", ""), arm) == 0) &&
             (status == NULL || strcmp(is, status) == 0);
    }
    return n;
}

static void add_counts(struct wb_buf *out, const wb_json *cases, const char *arm)
{
    wb_buf_addf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\"",
                count(cases, arm, NULL), count(cases, arm, "failed"), count(cases, arm, "error"),
                count(cases, arm, "skipped"));
}

static bool seen_before(const wb_json *cases, size_t i)
{
    const char *arm = wb_json_str_or(wb_json_at(cases, i), "arm", "");

    for (size_t k = 0; k < i; k++)
        if (strcmp(wb_json_str_or(wb_json_at(cases, k), "arm", ""), arm) == 0)
            return true;
    return false;
}

void wb_gate_junit(const wb_json *gate, struct wb_buf *out)
{
    const wb_json *cases = wb_json_get(gate, "cases");
    struct wb_buf forced = WB_BUF_INIT(65536);

    list_forced(gate, &forced);
    wb_buf_adds(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites");
    add_attribute(out, "name", wb_json_str_or(gate, "study", "weighbridge"));
    add_counts(out, cases, NULL);
    wb_buf_adds(out, ">\n");
    for (size_t i = 0; i < wb_json_len(cases); i++) {
        const char *arm = wb_json_str_or(wb_json_at(cases, i), "arm", "");
        if (seen_before(cases, i))
            continue;
        wb_buf_adds(out, "  <testsuite");
        add_attribute(out, "name", arm);
        add_counts(out, cases, arm);
        wb_buf_adds(out, ">\n");
        for (size_t k = i; k < wb_json_len(cases); k++)
            if (strcmp(wb_json_str_or(wb_json_at(cases, k), "arm", ""), arm) == 0)
                add_case(out, wb_json_at(cases, k), wb_buf_str(&forced));
        wb_buf_adds(out, "  </testsuite>\n");
    }
    wb_buf_adds(out, "</testsuites>\n");
    wb_buf_release(&forced);
}

/* ---- Markdown ---- */

/* Text for a cell: nothing of it makes markup, ends the cell or the line. */
static void add_md(struct wb_buf *out, const char *s)
{
    for (; *s != '\0'; s++) {
        if (strchr("\\`*_{}[]<>|#!&@", *s) != NULL)
            wb_buf_addf(out, "&#%d;", *s);
        else
            wb_buf_addc(out, (unsigned char)*s < 0x20 ? ' ' : *s);
    }
}

static void add_row(struct wb_buf *out, const wb_json *c)
{
    static const char *const keys[] = {"arm", "against", "metric"};
    double ratio = wb_json_real_or(c, "ratio", NAN), lo = wb_json_real_or(c, "lo", NAN);
    double hi = wb_json_real_or(c, "hi", NAN);

    for (size_t i = 0; i < WB_LEN(keys); i++) {
        wb_buf_adds(out, "| ");
        add_md(out, wb_json_str_or(c, keys[i], ""));
        wb_buf_addc(out, ' ');
    }
    if (isnan(ratio))
        wb_buf_adds(out, "| - ");
    else
        wb_buf_addf(out, "| %.3f ", ratio);
    if (isnan(lo) || isnan(hi))
        wb_buf_adds(out, "| - ");
    else
        wb_buf_addf(out, "| %.3f to %.3f ", lo, hi);
    wb_buf_addf(out, "| %s | ", wb_json_str_or(c, "verdict", ""));
    add_md(out, wb_json_str_or(c, "text", ""));
    wb_buf_adds(out, " |\n");
}

/* The cases that are (or are not) failed ones that decide, as long as there is room. */
static void add_rows(struct wb_buf *out, const wb_json *cases, bool failed)
{
    size_t left = 0;

    wb_buf_adds(out, "| arm | against | metric | ratio | interval | verdict | |\n"
                     "| --- | --- | --- | --: | --: | --- | --- |\n");
    for (size_t i = 0; i < wb_json_len(cases); i++) {
        const wb_json *c = wb_json_at(cases, i);
        bool is = has_status(c, "failed") && wb_json_bool_or(c, "decides", false);
        struct wb_buf row = WB_BUF_INIT(65536);
        if (is != failed)
            continue;
        add_row(&row, c);
        if (!row.failed && out->len + row.len < MARKDOWN_MAX - 500)
            wb_buf_add(out, wb_buf_str(&row), row.len);
        else
            left++;
        wb_buf_release(&row);
    }
    if (left > 0)
        wb_buf_addf(out, "\n%zu more are not shown.\n", left);
}

void wb_gate_markdown(const wb_json *gate, struct wb_buf *out)
{
    const wb_json *cases = wb_json_get(gate, "cases");
    const char *result = wb_json_str_or(gate, "result", "");
    struct wb_buf forced = WB_BUF_INIT(4096);
    size_t failed = 0, open = 0;

    list_forced(gate, &forced);
    for (size_t i = 0; i < wb_json_len(cases); i++) {
        bool decides = wb_json_bool_or(wb_json_at(cases, i), "decides", false);
        failed += decides && has_status(wb_json_at(cases, i), "failed");
        open += decides && has_status(wb_json_at(cases, i), "skipped");
    }
    wb_buf_adds(out, "**");
    add_md(out, wb_json_str_or(gate, "sentence", ""));
    wb_buf_addf(out, "** %s\n\n<!-- weighbridge gate -->\n\n",
                strcmp(result, "pass") == 0
                    ? open > 0 ? "More rounds would decide the rest." : "No action is needed."
                : strcmp(result, "worse") == 0 ? "Please look at this before it goes on."
                                               : "Please measure again.");
    if (failed > 0)
        add_rows(out, cases, true);
    if (wb_json_len(cases) > failed) {
        wb_buf_addf(out, "\n<details><summary>%zu other contrast%s</summary>\n\n",
                    wb_json_len(cases) - failed, wb_json_len(cases) - failed == 1 ? "" : "s");
        add_rows(out, cases, false);
        wb_buf_adds(out, "\n</details>\n");
    }
    wb_buf_adds(out, "\nCampaign ");
    add_md(out, wb_json_str_or(gate, "campaign", "?"));
    wb_buf_addf(out, ", changes below %.3g %% do not matter.\n",
                wb_json_real_or(gate, "threshold_percent", 2));
    if (forced.len > 0) {
        wb_buf_adds(out, "\nJudged by force, although these differ: ");
        add_md(out, wb_buf_str(&forced));
        wb_buf_adds(out, ".\n");
    }
    wb_buf_release(&forced);
}

/* ---- GitHub's log ---- */

static void add_command_text(struct wb_buf *out, const char *s)
{
    for (; *s != '\0'; s++) {
        if (*s == '%' || *s == '\r' || *s == '\n')
            wb_buf_addf(out, "%%%02X", *s);
        else
            wb_buf_addc(out, *s);
    }
    wb_buf_addc(out, '\n');
}

void wb_gate_github(const wb_json *gate, struct wb_buf *out)
{
    const wb_json *cases = wb_json_get(gate, "cases");
    size_t shown = 0;

    for (size_t i = 0; i < wb_json_len(cases) && shown < ANNOTATIONS_MAX; i++) {
        const wb_json *c = wb_json_at(cases, i);
        WB_AUTO_FREE char *text = NULL;
        if (has_status(c, "passed") || !wb_json_bool_or(c, "decides", false))
            continue;
        text = wb_strf("%s of %s against %s: %s", wb_json_str_or(c, "metric", "?"),
                       wb_json_str_or(c, "arm", "?"), wb_json_str_or(c, "against", "?"),
                       wb_json_str_or(c, "text", ""));
        wb_buf_addf(out, "::%s::", has_status(c, "failed") ? "error" : "warning");
        add_command_text(out, text);
        shown++;
    }
}
