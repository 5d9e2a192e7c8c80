# shellcheck shell=sh
# Sourced by the steps: logging, JSON text, redis-cli of the prefix.
# Everything a step is told comes in WB_* variables; stdout belongs to its one JSON object.

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

# cli SECONDS ARGS...: redis-cli of the prefix with the prefix's libraries, on the instance's port.
cli() {
    cli_limit=$1
    shift
    cli_libs=
    for cli_dir in "$WB_PREFIX"/usr/lib/*-linux-gnu "$WB_PREFIX"/lib/*-linux-gnu; do
        if [ -d "$cli_dir" ]; then cli_libs=${cli_libs:+$cli_libs:}$cli_dir; fi
    done
    timeout "$cli_limit" env LD_LIBRARY_PATH="$cli_libs" "$WB_PREFIX/usr/bin/redis-cli" \
        -h "${WB_HOST:-127.0.0.1}" -p "$WB_PORT" "$@" 2>&1
}
