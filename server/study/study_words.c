#include "server/study/parts.h"

#include <stdlib.h>
#include <string.h>

int wb_word_now(const struct wb_node *n, const char *key, const char *text, const char *const *now,
                const char *const *later, struct wb_problems *p)
{
    WB_AUTO_FREE char *list = wb_word_list(now);
    WB_AUTO_FREE char *guess = NULL;

    for (int i = 0; now[i]; i++) {
        if (strcmp(now[i], text) == 0)
            return i;
    }
    for (int i = 0; later && later[i]; i++) {
        if (strcmp(later[i], text) == 0) {
            wb_problem(p, n, "unsupported", "%s '%s' is not supported yet; allowed now: %s", key,
                       text, list);
            return -1;
        }
    }
    guess = wb_did_you_mean(text, now);
    wb_problem(p, n, "unknown-value", "%s cannot be '%.100s'%s; allowed: %s", key, text, guess,
               list);
    return -1;
}

char *wb_number_text(double v)
{
    for (int digits = 15;; digits++) {
        char *s = wb_strf("%.*g", digits, v);

        if (digits == 17 || strtod(s, NULL) == v)
            return s;
        free(s);
    }
}
