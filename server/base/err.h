/*
 * The one error convention.
 *
 * A function that can fail returns 0 or a negative `enum wb_code` and takes `struct wb_err *err`
 * as its last parameter. On failure err holds a root text (what went wrong, with the object it
 * went wrong with) and context put in front by the callers. On success err is untouched; outputs
 * are untouched on failure. err may be NULL where the caller
 * asks only whether it failed: a failure that was wrapped on the way then comes back as WB_IO, so
 * who compares the code passes an err (tests/style looks for those who do not).
 *
 * The struct lives on the caller's stack: nothing to free, nothing allocated on the error path.
 * Library code never logs; the edge (CLI, engine event log, HTTP) reports once.
 */
#ifndef WB_BASE_ERR_H
#define WB_BASE_ERR_H

#define WB_MUST_CHECK __attribute__((warn_unused_result))
/* A failure that is deliberately not acted on; say why beside it. */
#define WB_IGNORE(call)   \
    do {                  \
        if ((call) < 0) { \
        }                 \
    } while (0)
#define WB_PRINTF(f, a) __attribute__((format(printf, f, a)))

enum wb_code {
    WB_OK = 0,
    WB_INVALID = 1,     /* bad input: text for the user, names the thing and the allowed values */
    WB_NOT_FOUND = 2,   /* the named thing does not exist */
    WB_CONFLICT = 3,    /* it exists already, is held by another, or is in the wrong state */
    WB_IO = 4,          /* the environment failed: errno kept in sys */
    WB_TIMEOUT = 5,     /* a deadline passed */
    WB_CANCELLED = 6,   /* the cancel token was set */
    WB_PROTOCOL = 7,    /* a peer or tool sent what its contract does not allow */
    WB_LIMIT = 8,       /* a bound was passed (length, depth, count) */
    WB_UNAVAILABLE = 9, /* a peer is not there: refused, gone, no such socket */
    WB_CORRUPT = 10,    /* stored data does not match its digest or schema */
    WB_UNSUPPORTED = 11 /* this host or build cannot do it */
};

#define WB_ERR_TEXT_MAX 768

struct wb_err {
    int code;                      /* a positive enum wb_code, or 0 */
    int sys;                       /* errno, or 0 */
    char root[WB_ERR_TEXT_MAX];    /* what went wrong; never replaced by context */
    char context[WB_ERR_TEXT_MAX]; /* "outer: inner", may be cut, ends without colon */
};

#define WB_ERR_INIT \
    {               \
        0           \
    }

/* Sets code and root text (overwriting an earlier error), clears context. Returns -code. */
int wb_fail(struct wb_err *err, enum wb_code code, const char *fmt, ...) WB_PRINTF(3, 4);

/* As wb_fail with code WB_IO (WB_NOT_FOUND for ENOENT, WB_UNAVAILABLE for ECONNREFUSED), keeping
 * `sys` and adding ": <text of errno>" to the root text. Returns the negative code. */
int wb_fail_sys(struct wb_err *err, int sys, const char *fmt, ...) WB_PRINTF(3, 4);

/* Puts "fmt: " in front of the context of an error that is set. Returns the negative code. */
int wb_wrap(struct wb_err *err, const char *fmt, ...) WB_PRINTF(2, 3);

/* Writes "context: root" to out, always terminated; returns out. n should be 2*WB_ERR_TEXT_MAX. */
const char *wb_err_text(const struct wb_err *err, char *out, unsigned long n);

/* A word for a code: "invalid", "not-found", "io", ... Static text. */
const char *wb_code_name(int code);

#endif
