/* The subject of a study: the build that is measured, where that is more than a version's name. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "server/base/clock.h"
#include "server/base/digest.h"
#include "server/base/fields.h"
#include "server/base/file.h"
#include "server/study/parts.h"

#define TEXT_MAX 100
#define SHA256_MARK "sha256:"

#define AT(m) offsetof(struct wb_subject, m)
static const struct wb_field fields[] = {
    {"commit", WB_F_TEXT, false, AT(commit), 0, 0, NULL,
     "of the source it was built from, one word"},
    {"built", WB_F_TEXT, false, AT(built), 0, 0, NULL,
     "when, as 2026-11-30T01:00:00Z; builds of one history are put in this order"},
    {"version", WB_F_TEXT, false, AT(version), 0, 0, NULL,
     "that the build reports, where it is not the recipe's"},
    {"artifact", WB_F_TEXT, false, AT(artifact), 0, 0, NULL,
     "its file: a path, or sha256: and 64 hex digits"},
};
#undef AT

void wb_subject_release(struct wb_subject *s)
{
    wb_fields_release(fields, WB_LEN(fields), s);
    free(s->artifact_sha256);
    *s = (struct wb_subject){0};
}

/* A text of one word, as references (series:KEY@COMMIT) can name it. */
static bool is_word(const char *s)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+~:-";
    size_t n = strlen(s);

    return n > 0 && n <= TEXT_MAX && strspn(s, allowed) == n && s[0] != '-' && s[0] != '.';
}

static void check_word(const struct wb_node *n, const char *key, const char *text,
                       struct wb_problems *p)
{
    if (!text)
        return;
    if (!is_word(text))
        wb_problem(p, wb_node_get(n, key), "bad-value",
                   "%s must be one word of 1 to %d letters, digits and . _ + ~ : -, not '%.100s'",
                   key, TEXT_MAX, text);
    else if (strcmp(text, "last") == 0)
        wb_problem(p, wb_node_get(n, key), "bad-value",
                   "%s cannot be 'last': series:KEY@last is the newest build", key);
}

/* The time in the one form that stands in records. */
static void read_built(struct wb_subject *s, const struct wb_node *at, struct wb_problems *p)
{
    struct wb_err err = WB_ERR_INIT;
    struct wb_buf text = WB_BUF_INIT(64);
    int64_t ms;

    if (!s->built)
        return;
    if (wb_parse_time(s->built, &ms, &err) < 0) {
        wb_problem(p, at, "bad-value", "built: %s", err.root);
        return;
    }
    wb_format_time(ms, &text);
    free(s->built);
    s->built = wb_buf_take(&text);
}

/* A file is known by its digest from here on: what lies at its path may change. */
static void read_file(struct wb_subject *s, const struct wb_node *at, bool paths,
                      struct wb_problems *p)
{
    struct wb_err err = WB_ERR_INIT;
    char hex[WB_SHA256_HEX];
    char *path = NULL;
    struct stat st;
    int rc;

    if (!paths) {
        wb_problem(p, at, "not-offered",
                   "artifact: a study that is sent over REST names no files of this machine; give "
                   "the file's digest, " SHA256_MARK " and 64 hex digits");
        return;
    }
    rc = wb_path_absolute(s->artifact, &path, &err);
    if (rc == 0 && stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        rc = wb_fail(&err, WB_INVALID, "%s is no plain file", path);
    if (rc == 0)
        rc = wb_sha256_file(path, hex, &err);
    if (rc < 0) {
        wb_problem(p, at, rc == -WB_NOT_FOUND ? "not-found" : "unreadable", "artifact: %s",
                   err.root);
        free(path);
        return;
    }
    free(s->artifact);
    s->artifact = path;
    s->artifact_sha256 = wb_strdup(hex);
}

static void read_artifact(struct wb_subject *s, const struct wb_node *at, bool paths,
                          struct wb_problems *p)
{
    const char *digest = s->artifact;
    size_t mark = strlen(SHA256_MARK);

    if (!s->artifact)
        return;
    if (strncmp(digest, SHA256_MARK, mark) != 0) {
        read_file(s, at, paths, p);
        return;
    }
    digest += mark;
    if (strlen(digest) != WB_SHA256_HEX - 1 ||
        strspn(digest, "0123456789abcdef") != WB_SHA256_HEX - 1) {
        wb_problem(p, at, "bad-value",
                   "artifact: behind " SHA256_MARK " stand 64 lower-case hex digits");
        return;
    }
    s->artifact_sha256 = wb_strdup(digest);
    free(s->artifact);
    s->artifact = NULL;
}

void wb_study_subject(struct wb_study *s, const struct wb_node *n, bool paths,
                      struct wb_problems *p)
{
    struct wb_subject *subject = &s->subject;

    if (!n || wb_fields_read(n, "subject", fields, WB_LEN(fields), subject, p) > 0)
        return;
    if (n->n == 0)
        wb_problem(p, n, "missing",
                   "subject is empty: give commit, built, version or artifact, or leave it out");
    check_word(n, "commit", subject->commit, p);
    check_word(n, "version", subject->version, p);
    read_built(subject, wb_node_get(n, "built"), p);
    read_artifact(subject, wb_node_get(n, "artifact"), paths, p);
    if (s->version && subject->artifact_sha256) {
        s->own_version = *s->version;
        s->own_version.artifact = subject->artifact;
        s->own_version.artifact_sha256 = subject->artifact_sha256;
        s->version = &s->own_version;
    }
}

bool wb_subject_given(const struct wb_subject *s)
{
    return s->commit || s->built || s->version || s->artifact_sha256;
}

wb_json *wb_subject_json(const struct wb_study *study)
{
    const struct wb_subject *s = &study->subject;
    wb_json *o = wb_json_object();

    wb_json_set_str(o, "version", s->version ? s->version : study->version->version);
    if (s->commit)
        wb_json_set_str(o, "commit", s->commit);
    if (s->built)
        wb_json_set_str(o, "built", s->built);
    if (s->artifact_sha256)
        wb_json_set_str(o, "artifact", s->artifact_sha256);
    return o;
}

void wb_subject_resolve(const struct wb_study *study, wb_json *resolved)
{
    wb_json *o = wb_json_get(resolved, "subject");

    if (study->subject.built)
        wb_json_set_str(o, "built", study->subject.built);
    if (study->subject.artifact_sha256) {
        WB_AUTO_FREE char *text = wb_strf(SHA256_MARK "%s", study->subject.artifact_sha256);

        wb_json_set_str(o, "artifact", text);
    }
}

wb_json *wb_subject_schema(void)
{
    static const char word[] = "^(?!last$)[A-Za-z0-9_+~:][A-Za-z0-9._+~:-]{0,99}$";
    wb_json *map = wb_schema_map(fields, WB_LEN(fields));

    wb_schema_set(map, "commit", wb_schema_pattern(word));
    wb_schema_set(map, "version", wb_schema_pattern(word));
    wb_schema_set(map, "built",
                  wb_schema_pattern("^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}"
                                    "([.][0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$"));
    wb_schema_set(map, "artifact",
                  wb_schema_pattern("^(" SHA256_MARK "[0-9a-f]{64}|(?!" SHA256_MARK ").+)$"));
    wb_json_set_int(map, "minProperties", 1);
    return map;
}
