#include "provisioners/forms/form.h"

#include "provisioners/forms/docker_image.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/buf.h"
#include "server/base/problems.h"
#include "server/base/units.h"

const struct wb_form_ops *const wb_forms[] = {&wb_form_native, &wb_form_docker, NULL};

const char *const wb_network_names[] = {"host", "published", "routed", NULL};

const struct wb_form_ops *wb_form_find(const char *name)
{
    for (size_t i = 0; wb_forms[i]; i++)
        if (strcmp(wb_forms[i]->name, name) == 0)
            return wb_forms[i];
    return NULL;
}

static int unknown_form(const char *text, const char *name, struct wb_err *err)
{
    const char *names[WB_LEN(wb_forms)] = {NULL};

    for (size_t i = 0; wb_forms[i]; i++)
        names[i] = wb_forms[i]->name;
    WB_AUTO_FREE char *words = wb_word_list(names);
    WB_AUTO_FREE char *hint = wb_did_you_mean(name, names);
    return wb_fail(err, WB_INVALID, "form '%.80s': '%.40s' is not a form%s; allowed: %s", text,
                   name, hint, words);
}

/* The count after " x": plain digits, no sign, no leading zero, so that one form has one text. */
static int parse_count(const char *digits, int64_t *count)
{
    if (strspn(digits, "0123456789") != strlen(digits) || digits[0] == '0')
        return -WB_INVALID;
    return wb_parse_int(digits, 1, WB_FORM_COUNT_MAX, count, NULL);
}

int wb_form_parse(const char *text, struct wb_form_ref *out, struct wb_err *err)
{
    const char *space = strchr(text, ' ');
    size_t len = space ? (size_t)(space - text) : strlen(text);
    WB_AUTO_FREE char *name = wb_strndup(text, len < 64 ? len : 64);
    const struct wb_form_ops *ops = wb_form_find(name);
    int64_t count = 0;

    if (!ops)
        return unknown_form(text, name, err);
    if (!space || space[1] != 'x' || parse_count(space + 2, &count) < 0)
        return wb_fail(err, WB_INVALID,
                       "form '%.80s': after '%s' goes the number of instances per host, as in "
                       "'%s x1' (x1 to x%d)",
                       text, name, name, WB_FORM_COUNT_MAX);
    *out = (struct wb_form_ref){.ops = ops, .count = (int)count};
    return 0;
}

void wb_paths_release(struct wb_paths *p)
{
    free(p->prefix);
    free(p->config);
    free(p->data);
    free(p->log);
    *p = (struct wb_paths){0};
}

void wb_owned_add(struct wb_owned_list *l, const char *kind, const char *id, const char *owner,
                  const char *campaign, const char *run)
{
    wb_grow(&l->v, &l->cap, l->n + 1, sizeof *l->v);
    l->v[l->n++] = (struct wb_owned){.kind = wb_strdup(kind),
                                     .id = wb_strdup(id),
                                     .owner = wb_strdup(owner),
                                     .campaign = wb_strdup(campaign),
                                     .run = wb_strdup(run)};
}

void wb_owned_release(struct wb_owned_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->v[i].kind);
        free(l->v[i].id);
        free(l->v[i].run);
        free(l->v[i].campaign);
        free(l->v[i].owner);
    }
    free(l->v);
    *l = (struct wb_owned_list){0};
}

int wb_forms_prune(const struct wb_form_env *env, wb_form_pruned_fn fn, void *arg,
                   struct wb_err *err)
{
    WB_AUTO_ENGINE struct wb_engine *e = NULL;
    int rc = wb_engine_open(env->docker_socket, &e, err);

    return rc < 0 ? rc : wb_docker_images_prune(e, env->owner, fn, arg, err);
}
