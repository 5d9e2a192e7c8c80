#include "server/study/recipe.h"

#include <string.h>

#define VALUE_MAX 1024

static int check_text(const struct wb_param *p, const char *text, char **canonical,
                      struct wb_err *err)
{
    if (strlen(text) > VALUE_MAX)
        return wb_fail(err, WB_INVALID, "%s is longer than %d bytes", p->name, VALUE_MAX);
    for (const char *c = text; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return wb_fail(err, WB_INVALID, "%s has a line break or control character in it",
                           p->name);
    }
    *canonical = wb_strdup(text);
    return 0;
}

static int check_word(const struct wb_param *p, const char *text, char **canonical,
                      struct wb_err *err)
{
    WB_AUTO_FREE char *guess = NULL;
    WB_AUTO_FREE char *list = NULL;

    for (size_t i = 0; i < p->words.n; i++) {
        if (strcmp(p->words.v[i], text) == 0) {
            *canonical = wb_strdup(text);
            return 0;
        }
    }
    guess = wb_did_you_mean(text, (const char *const *)p->words.v);
    list = wb_word_list((const char *const *)p->words.v);
    return wb_fail(err, WB_INVALID, "%s cannot be '%.100s'%s; allowed: %s", p->name, text, guess,
                   list);
}

static int check_bool(const struct wb_param *p, const char *text, char **canonical,
                      struct wb_err *err)
{
    static const char *const yes[] = {"yes", "true", "on"}, *const no[] = {"no", "false", "off"};

    for (size_t i = 0; i < WB_LEN(yes); i++) {
        if (strcmp(text, yes[i]) != 0 && strcmp(text, no[i]) != 0)
            continue;
        *canonical = wb_strdup(strcmp(text, yes[i]) == 0 ? "yes" : "no");
        return 0;
    }
    return wb_fail(err, WB_INVALID, "%s cannot be '%.100s'; allowed: yes or no", p->name, text);
}

int wb_param_check(const struct wb_param *p, const char *text, char **canonical, struct wb_err *err)
{
    int64_t v = 0;
    int rc;

    if (p->type == WB_PARAM_TEXT)
        return check_text(p, text, canonical, err);
    if (p->type == WB_PARAM_WORD)
        return check_word(p, text, canonical, err);
    if (p->type == WB_PARAM_BOOL)
        return check_bool(p, text, canonical, err);
    if (strlen(text) > VALUE_MAX)
        return wb_fail(err, WB_INVALID, "%s is longer than %d bytes", p->name, VALUE_MAX);
    if (p->type == WB_PARAM_INT)
        rc = wb_parse_int(text, p->min, p->max, &v, err);
    else
        rc = wb_parse_bytes(text, p->min, p->max, &v, err);
    if (rc < 0)
        return wb_wrap(err, "%s", p->name);
    *canonical = wb_strf("%lld", (long long)v);
    return 0;
}

char *wb_param_show(const struct wb_param *p, const char *canonical)
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    int64_t v = 0;
    size_t u = 0;

    if (!*canonical)
        return wb_strdup("empty");
    if (p->type != WB_PARAM_BYTES || wb_parse_int(canonical, 0, INT64_MAX, &v, NULL) < 0)
        return wb_strdup(canonical);
    while (v > 0 && v % 1024 == 0 && u + 1 < WB_LEN(units)) {
        v /= 1024;
        u++;
    }
    return wb_strf("%lld%s", (long long)v, units[u]);
}
