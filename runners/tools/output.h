/*
 * Reading figures from what a foreign load program wrote, by rules that a study declares.
 *
 * The text is hostile: it may have any bytes and length, lines without end, half a document, the
 * same block twice. What cannot be read as declared is an error, never a guess.
 *
 * Lines end with \n or \r (progress on a terminal's line). Regular expressions are POSIX extended
 * ones and see one line at a time, at most 16 KiB of it.
 */
#ifndef WB_TOOLS_OUTPUT_H
#define WB_TOOLS_OUTPUT_H

#include "runners/tools/figures.h"
#include "server/base/mem.h"

enum wb_tool_reader { WB_READ_REGEX, WB_READ_JSON, WB_READ_HDR };

struct wb_tool_rule {
    enum wb_tool_reader reader;
    /* REGEX: the expression. JSON: a pointer (RFC 6901). HDR: the tag of the lines of an HDR
     * interval log that count, "" for lines without one. */
    char *text;
    /* REGEX: one figure per group, "-" for a group that is not wanted. JSON: one figure.
     * HDR: service_UNIT or response_UNIT, the unit of the histograms. */
    struct wb_strv names;
    bool last;     /* REGEX: of several matches the last one; else a second match is an error */
    bool optional; /* that it is not found is no error */
};

struct wb_tool_output {
    char *from;          /* "stdout", "stderr" or "file" ({file} in the command) */
    char *after, *until; /* REGEX: the final block, from the only line that matches `after` to the
                            first one from there that matches `until`; NULL: from the beginning,
                            to the end */
    struct wb_tool_rule *rules;
    size_t nrules, cap;
};
void wb_tool_output_release(struct wb_tool_output *o);

/* Expressions, pointers and names; the error names the rule. */
int wb_tool_output_check(const struct wb_tool_output *o, struct wb_err *err) WB_MUST_CHECK;
/* One expression alone: `groups` as it must have, -1 any number. */
int wb_tool_regex_check(const char *regex, int groups, struct wb_err *err) WB_MUST_CHECK;

/* Fills f from the text. WB_PROTOCOL says what is missing or wrong. */
int wb_tool_output_read(const struct wb_tool_output *o, const char *text, size_t n,
                        struct wb_figures *f, struct wb_err *err) WB_MUST_CHECK;
/* The first group of the first line that matches; caller frees; NULL when none does. */
char *wb_tool_regex_first(const char *regex, const char *text, size_t n);

#endif
