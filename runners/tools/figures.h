/*
 * What the output of a foreign load program can say, by name, and the result that is made of it:
 * the keys of wb-load's own result, null with a reason where the program does not tell.
 *
 * Names: achieved_per_s, offered_per_s; ok, failed, misses (operations); window_UNIT (length of
 * the measured window); FAMILY_FIGURE_UNIT, where FAMILY is service (from written to answered) or
 * response (from the intended start), FIGURE is min, mean, p50, p90, p95, p99, p99_9, p99_99 or
 * max, and UNIT is ns, us, ms or s.
 */
#ifndef WB_TOOLS_FIGURES_H
#define WB_TOOLS_FIGURES_H

#include "server/base/hist.h"
#include "server/base/json.h"

enum wb_figure_id {
    WB_FIGURE_ACHIEVED,
    WB_FIGURE_OFFERED,
    WB_FIGURE_OK,
    WB_FIGURE_FAILED,
    WB_FIGURE_MISSES,
    WB_FIGURE_WINDOW,  /* s */
    WB_FIGURE_SERVICE, /* the first of its times, ms */
    WB_FIGURE_SERVICE_LAST = WB_FIGURE_SERVICE + 8,
    WB_FIGURE_RESPONSE,
    WB_FIGURE_RESPONSE_LAST = WB_FIGURE_RESPONSE + 8,
    WB_FIGURE_COUNT
};

struct wb_figure_name {
    int id;
    double scale; /* what the program says times this is s for the window, ms for other times */
};
/* WB_INVALID names the word and what is allowed. */
int wb_figure_parse(const char *name, struct wb_figure_name *out, struct wb_err *err) WB_MUST_CHECK;

enum wb_figure_state { WB_FIGURE_ABSENT, WB_FIGURE_GIVEN, WB_FIGURE_NO_NUMBER };
struct wb_figures {
    struct {
        enum wb_figure_state state;
        double value;
        char said[24]; /* NO_NUMBER: the program's own word */
    } f[WB_FIGURE_COUNT];
    struct wb_hist *hist[2]; /* service and response in ns, from an HDR log; NULL: none. Owned */
};
void wb_figures_release(struct wb_figures *f);

/* Takes a text as the program wrote it. "nan", "-nan", "inf" in any case and the largest 64-bit
 * integer are no numbers: they are kept as such. Everything else that is not a number that the
 * figure can have is WB_PROTOCOL, also a figure that is given a second time. */
int wb_figures_put(struct wb_figures *f, const struct wb_figure_name *name, const char *text,
                   struct wb_err *err) WB_MUST_CHECK;
/* Whether a word stands for "there is none" in what programs print. */
bool wb_figure_is_none(const char *text);
/* Adds a histogram (ns) to a family, 0 service or 1 response. */
void wb_figures_add(struct wb_figures *f, int family, const struct wb_hist *h);

/* What the engine knows of the program's run. */
struct wb_figures_run {
    const char *tool, *version; /* version NULL: unknown */
    bool open;                  /* a rate was asked for */
    double rate_per_s;          /* open */
    int64_t operations;         /* asked for; 0: by time */
    bool errors_fatal;          /* a failed operation would have ended it with a status */
    int64_t started_ms;         /* Unix */
    double wall_s;              /* from its start to its end */
    int64_t cpu_ns;             /* of its control group; -1 unknown */
};
/* The result document, owned by the caller. WB_PROTOCOL when what was said does not make one:
 * neither a rate nor a count, no word on failures, nothing done. */
int wb_figures_result(const struct wb_figures *f, const struct wb_figures_run *run, wb_json **out,
                      struct wb_err *err) WB_MUST_CHECK;

#endif
