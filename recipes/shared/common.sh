# shellcheck shell=sh
# Sourced by the steps of all recipes: logging and JSON text. Everything a step is told comes in
# WB_* variables; stdout belongs to its one JSON object.

say() {
    printf '%s\n' "$*" >&2
}

# die CODE TEXT...: 1 failed, 69 an artifact is not to be had.
die() {
    code=$1
    shift
    say "$*"
    exit "$code"
}

# need NAME...: every named variable is set and not empty.
need() {
    for need_name in "$@"; do
        eval "need_value=\${$need_name:-}"
        # shellcheck disable=SC2154 # set by the eval above
        [ -n "$need_value" ] || die 1 "$need_name is not set"
    done
}

# json_text TEXT: as a JSON string with its quotes. Control characters become blanks.
json_text() {
    printf '"%s"' "$(printf '%s' "$1" | tr '\000-\037\177' ' ' | sed 's/\\/\\\\/g; s/"/\\"/g')"
}
