/*
 * The parity report within a campaign. The first native run of an arm is the reference of the same
 * arm in all other forms. Where one of those would come before it, the native arm is deployed first
 * in an uncounted pass, so that it is always the other form that a difference stops. State: parity
 * {files: {FORM: digest}, references: {KEY: {run, arm, form, uncounted, facts: [per instance]}},
 * without: {KEY: why}}.
 */
#include <stdlib.h>
#include <string.h>

#include "server/engine/parity.h"
#include "server/engine/run.h"
#include "server/engine/tree.h"

/* What two arms have in common that are to be the same but for their form. */
static void key_of(const struct wb_arm *a, char out[17])
{
    WB_AUTO_JSON wb_json *j = wb_json_array();
    struct wb_buf text = WB_BUF_INIT(1u << 20);
    char hex[WB_SHA256_HEX];

    wb_json_push(j, wb_json_int(a->form.count));
    wb_json_push(j, wb_json_bool(a->setup->limits == WB_LIMITS_SAME));
    for (int i = 0; i < a->form.count; i++) {
        wb_json_push(j, wb_json_str(a->parts[i].cpus));
        wb_json_push(j, wb_json_str(a->parts[i].mems));
        wb_json_push(j, wb_json_int(a->parts[i].memory_bytes));
        wb_json_push(j, wb_json_real(a->parts[i].cpu_quota));
    }
    for (size_t i = 0; i < a->nsettings; i++) {
        wb_json_push(j, wb_json_str(a->settings[i].name));
        wb_json_push(j, wb_json_str(a->settings[i].value));
    }
    wb_json_canonical(j, &text);
    wb_sha256_of(wb_buf_str(&text), text.len, hex);
    memcpy(out, hex, 16);
    out[16] = '\0';
    wb_buf_release(&text);
}

/* A member that is an object, made when it is not there. Borrowed. */
static wb_json *member(wb_json *o, const char *key)
{
    if (wb_json_type(wb_json_get(o, key)) != WB_JSON_OBJECT)
        wb_json_set(o, key, wb_json_object());
    return wb_json_get(o, key);
}

/* Digest of the prefix as an instance sees it; once for each form, because all of its instances
 * have the same bits. Borrowed from the state; NULL when it could not be read. */
static const char *files_of(struct wb_run *r, const struct wb_instance *in, wb_json *state)
{
    wb_json *files = member(state, "files");
    const char *form = r->form->ops->name;
    WB_AUTO_FREE char *root = wb_strf("/proc/%d/root%s", (int)in->status.pid, in->paths.prefix);
    char hex[WB_SHA256_HEX];

    if (!wb_json_get(files, form) && wb_tree_digest(root, hex, NULL) == 0)
        wb_json_set_str(files, form, hex);
    return wb_json_str_or(files, form, NULL);
}

static wb_json *facts_of(struct wb_run *r, const struct wb_instance *in, const char *files)
{
    struct wb_limits_seen limits = {0};
    bool known = wb_cgroup_limits(r->e->cgroups, in->status.cgroup, &limits, NULL) == 0;
    struct wb_parity_source s = {.proc = "/proc",
                                 .sys = "/sys",
                                 .pid = in->status.pid,
                                 .paths = &in->paths,
                                 .port = in->port,
                                 .probe = in->probe,
                                 .limits = known ? &limits : NULL,
                                 .files = files,
                                 .env = r->e->study->recipe->start_env.v};
    wb_json *facts = wb_parity_facts(&s);

    wb_limits_seen_release(&limits);
    return facts;
}

/* Compares two lists of facts, instance by instance. */
static wb_json *compare(const struct wb_run *r, const wb_json *here, const wb_json *there)
{
    /* A network of its own is what the study asked for where it is not the host's. */
    const char *const asked[] = {r->arm->setup->network != WB_NETWORK_HOST ? "network" : NULL,
                                 NULL};
    wb_json *all = wb_json_array();

    for (size_t i = 0; i < wb_json_len(here); i++) {
        WB_AUTO_JSON wb_json *some =
            wb_parity_compare(wb_json_at(here, i), wb_json_at(there, i),
                              r->e->study->recipe->allowed_differences.v, asked);

        for (size_t k = 0; k < wb_json_len(some); k++) {
            wb_json *d = wb_json_ref(wb_json_at(some, k));

            if (i > 0)
                wb_json_set_int(d, "instance", (int64_t)i);
            wb_json_push(all, d);
        }
    }
    return all;
}

static wb_json *entry_of(const struct wb_run *r, wb_json *facts)
{
    wb_json *e = wb_json_object();

    wb_json_set_str(e, "run", r->id);
    wb_json_set_str(e, "arm", r->arm->label);
    wb_json_set_str(e, "form", r->form->ops->name);
    wb_json_set_bool(e, "uncounted", r->calibrating);
    wb_json_set(e, "facts", facts);
    return e;
}

/* Puts the comparison with another run into the report, and into the run when it must not go on. */
static int judge(struct wb_run *r, const wb_json *other, wb_json *differences)
{
    wb_json *reference = wb_json_object();
    struct wb_err err = WB_ERR_INIT;
    int rc = wb_parity_check(differences, r->form->ops->name,
                             wb_json_str_or(other, "form", "native"), &err);

    wb_json_set_str(reference, "run", wb_json_str_or(other, "run", NULL));
    wb_json_set_str(reference, "arm", wb_json_str_or(other, "arm", NULL));
    wb_json_set_str(reference, "form", wb_json_str_or(other, "form", NULL));
    wb_json_set_bool(reference, "uncounted", wb_json_bool_or(other, "uncounted", false));
    wb_json_del(r->parity, "against_reason");
    wb_json_set(r->parity, "against", reference);
    wb_json_set(r->parity, "differences", differences);
    if (rc == 0)
        return 0;
    (void)wb_wrap(&err, "parity");
    return wb_run_fail(r, WB_OUTCOME_INCONSISTENT, &err);
}

/* A native run: the first one is the reference from now on. Takes entry. */
static void be_reference(struct wb_run *r, wb_json *state, const char *key, wb_json *entry)
{
    wb_json *references = member(state, "references");

    if (wb_json_get(references, key)) {
        wb_json_free(entry);
        wb_json_set_reason(r->parity, "against", "a run of the form that others are compared with");
        return;
    }
    wb_json_set_reason(r->parity, "against", "the run that others are compared with");
    wb_json_set(references, key, entry);
}

static const struct wb_arm *native_twin(const struct wb_plan *plan, const char *key)
{
    char other[17];

    for (size_t i = 0; i < plan->narms; i++) {
        key_of(&plan->arms[i], other);
        if (plan->arms[i].form.ops == &wb_form_native && !strcmp(other, key))
            return &plan->arms[i];
    }
    return NULL;
}

static wb_json *parity_state(const struct wb_engine *e)
{
    return member(wb_campaign_state(e->dir), "parity");
}

const struct wb_arm *wb_parity_needs(const struct wb_engine *e, const struct wb_arm *arm)
{
    wb_json *state = parity_state(e);
    char key[17];

    if (arm->form.ops == &wb_form_native)
        return NULL;
    key_of(arm, key);
    if (wb_json_get(member(state, "references"), key) || wb_json_get(member(state, "without"), key))
        return NULL;
    return native_twin(e->plan, key);
}

void wb_parity_without(struct wb_engine *e, const struct wb_arm *native, const char *why)
{
    char key[17];

    key_of(native, key);
    wb_json_set_str(member(parity_state(e), "without"), key, why);
}

/* A run of another form. Takes entry. */
static int meet_reference(struct wb_run *r, wb_json *state, const char *key, wb_json *entry)
{
    const wb_json *reference = wb_json_get(member(state, "references"), key);
    const char *without = wb_json_str_or(member(state, "without"), key, NULL);
    int rc = 0;

    if (reference)
        rc = judge(r, reference,
                   compare(r, wb_json_get(entry, "facts"), wb_json_get(reference, "facts")));
    else if (without)
        wb_json_set_reason(r->parity, "against", without);
    else
        wb_json_set_reason(r->parity, "against",
                           "no native arm of the study has the same settings and parts");
    wb_json_free(entry);
    return rc;
}

int wb_run_parity(struct wb_run *r)
{
    wb_json *state = parity_state(r->e);
    wb_json *facts = wb_json_array(), *entry;
    const char *files = files_of(r, &r->instances[0], state);
    struct wb_err err = WB_ERR_INIT;
    char key[17];
    int rc = 0;

    for (int i = 0; i < r->ninstances; i++)
        if (r->instances[i].started)
            wb_json_push(facts, facts_of(r, &r->instances[i], files));
    key_of(r->arm, key);
    entry = entry_of(r, facts);
    r->parity = wb_json_object();
    wb_json_set(r->parity, "facts", wb_json_ref(wb_json_at(facts, 0)));
    if (r->form->ops == &wb_form_native)
        be_reference(r, state, key, entry);
    else
        rc = meet_reference(r, state, key, entry);
    if (wb_campaign_save_state(r->e->dir, &err) < 0 && rc == 0)
        rc = wb_run_fail(r, WB_OUTCOME_INFRA_ERROR, &err);
    return rc;
}
