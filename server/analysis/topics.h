/*
 * The topics of `weighbridge stats`: one row each, from which dispatch, help and suggestions come.
 * A topic is a pure function from one JSON document to another, with the keys that other programs
 * rely on.
 */
#ifndef WB_ANALYSIS_TOPICS_H
#define WB_ANALYSIS_TOPICS_H

#include "server/base/json.h"

/* One file as it was read; all borrowed. */
struct wb_topic_file {
    const char *path; /* "-" for standard input */
    const char *text; /* text[n] is '\0' */
    size_t n;
};

/* Options that a topic can take (bits), each a key of the document. */
enum {
    WB_TO_COLUMN = 1,       /* of a file with several; not a key */
    WB_TO_BETTER = 2,       /* better: "higher" or "lower" */
    WB_TO_THRESHOLD = 4,    /* threshold_percent */
    WB_TO_TAG = 8,          /* tag */
    WB_TO_WINDOW = 16,      /* from_s, to_s */
    WB_TO_PERCENTILES = 32, /* percentiles: [50, 99] */
    WB_TO_WARM_UP = 64,     /* warm_up_s */
    WB_TO_FOR = 128         /* measured_s */
};

struct wb_topic {
    const char *name, *summary;
    const char *input; /* the document in short, lines of at most 76 columns */
    unsigned options;  /* WB_TO_* */
    size_t files;      /* most FILEs; 0: any number */
    /* Makes the document from 1 or more files. NULL: JSON, or CSV whose columns are the keys. The
     * errors of its caller name the file where there is one file. *doc is owned. */
    int (*read)(const struct wb_topic_file *files, size_t n, const char *column, wb_json **doc,
                struct wb_err *err);
    /* WB_INVALID on bad input: the message begins with a JSON pointer, or "line N". The answer has
     * n, method, analysis_version and warnings; what cannot be given is null with KEY_reason. */
    int (*answer)(const wb_json *in, wb_json **out, struct wb_err *err);
    void (*print)(const wb_json *answer, int width, struct wb_buf *out);
};

/* Ends with a row whose name is NULL. */
extern const struct wb_topic wb_topics[];

/* NULL when there is none. */
const struct wb_topic *wb_topic_find(const char *name);
/* The document of a topic from its files. *doc is owned. */
int wb_topic_read(const struct wb_topic *t, const struct wb_topic_file *files, size_t n,
                  const char *column, wb_json **doc, struct wb_err *err) WB_MUST_CHECK;
/* WB_INVALID with " (did you mean ...)" and the list of topics. */
int wb_topic_unknown(const char *name, struct wb_err *err);

/* JSON, or CSV as {column: [values]} (*columns true), told by the content. *doc is owned. */
int wb_topic_parse(const struct wb_topic_file *file, wb_json **doc, bool *columns,
                   struct wb_err *err) WB_MUST_CHECK;

#endif
