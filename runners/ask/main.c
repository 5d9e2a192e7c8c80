/*
 * wb-ask: a few CQL queries to one node, answers as lines of text. For the steps of recipes: it
 * costs milliseconds where the database's own tools cost seconds of CPU.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runners/ask/rows.h"
#include "runners/load/protocols/cql_session.h"
#include "server/base/clock.h"
#include "server/base/mem.h"
#include "server/base/units.h"

#define EXIT_ANSWERED 0
#define EXIT_FAILED 1
#define EXIT_USAGE 2
#define EXIT_NOT_YET 75
#define LIMIT_NS (10 * WB_SEC)
#define ANSWER_MAX (64u << 20)
#define CONSISTENCY_ONE 1
#define VERSION 4 /* of the protocol: every server that is asked speaks it */

static const char usage[] =
    "usage: wb-ask [--limit TIME] ADDRESS PORT [QUERY...]\n"
    "Asks a node that speaks CQL. Each row is a line: the query's number from 1 and the values,\n"
    "with tabs between. Without a query it only asks whether the node serves.\n"
    "Exit: 0 answered, 1 the server refused, 2 usage, 75 no answer (yet).\n";

static int open_session(struct wb_cql_session *s, const char *address, int port, int64_t end_ns,
                        bool queries, struct wb_err *err)
{
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    bool v4 = inet_pton(AF_INET, address, &four.sin_addr) == 1;
    WB_AUTO_FREE char *name = wb_strf("%s:%d", address, port);
    struct wb_cql_where at = {.name = name,
                              .addr = v4 ? (struct sockaddr *)&four : (struct sockaddr *)&six,
                              .len = v4 ? sizeof(four) : sizeof(six),
                              .end_ns = end_ns};
    struct wb_cql_hello hello = {.version = VERSION};
    int rc;

    if (!v4 && inet_pton(AF_INET6, address, &six.sin6_addr) != 1)
        return wb_fail(err, WB_INVALID, "'%.100s' is no numeric address", address);
    rc = wb_cql_session_open(s, &at, &hello, false, err);
    if (rc >= 0 || !s->answered || s->answer.opcode != WB_CQL_AUTHENTICATE)
        return rc;
    return queries ? wb_fail(err, WB_IO, "the server wants a password, and wb-ask has none")
                   : 0; /* who asks for a password serves */
}

static int ask_all(struct wb_cql_session *s, char **queries, int n, struct wb_err *err)
{
    struct wb_buf out = WB_BUF_INIT(ANSWER_MAX);
    int rc = 0;

    for (int i = 0; rc == 0 && i < n; i++) {
        wb_cql_put_query(&s->request, VERSION, 0, queries[i], CONSISTENCY_ONE);
        rc = wb_cql_ask(s, err);
        if (rc == 0)
            rc = wb_ask_rows(&s->answer, i + 1, &out, err);
        if (rc < 0)
            (void)wb_wrap(err, "query %d", i + 1);
    }
    if (rc == 0 && (fwrite(wb_buf_str(&out), 1, out.len, stdout) != out.len || fflush(stdout) != 0))
        rc = wb_fail_sys(err, errno, "writing the answer");
    wb_buf_release(&out);
    return rc;
}

int main(int argc, char **argv)
{
    struct wb_cql_session s = WB_CQL_SESSION_INIT;
    struct wb_err err = WB_ERR_INIT;
    char text[2 * WB_ERR_TEXT_MAX];
    int64_t limit = LIMIT_NS, port = 0;
    int at = 1, rc = 0;

    if (argc > 2 && strcmp(argv[1], "--limit") == 0) {
        rc = wb_parse_duration(argv[2], WB_MS, 3600 * WB_SEC, &limit, &err);
        at = 3;
    }
    if (rc == 0 && argc - at < 2) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    if (rc == 0)
        rc = wb_parse_int(argv[at + 1], 1, 65535, &port, &err);
    if (rc == 0)
        rc = open_session(&s, argv[at], (int)port, wb_now_ns(NULL) + limit, argc - at > 2, &err);
    if (rc == 0)
        rc = ask_all(&s, argv + at + 2, argc - at - 2, &err);
    wb_cql_session_close(&s);
    if (rc == 0)
        return EXIT_ANSWERED;
    fprintf(stderr, "wb-ask: %s\n", wb_err_text(&err, text, sizeof(text)));
    return rc == -WB_INVALID                            ? EXIT_USAGE
           : rc == -WB_UNAVAILABLE || rc == -WB_TIMEOUT ? EXIT_NOT_YET
                                                        : EXIT_FAILED;
}
