# shellcheck shell=bash
# What the system tests share: counting, waiting with a deadline, and looking at the host.
# Sourced from the root of the tree. B names the build folder (default: build).
build=${B:-build}
# shellcheck disable=SC2034 # used by the tests
wb=$build/weighbridge
passed=0
failed=0
tmp=$(mktemp -d) || exit 2
tmp=$(cd "$tmp" && pwd -P)
cleanup=()

finish() {
    local c
    for c in "${cleanup[@]}"; do $c; done
    rm -rf -- "$tmp"
}
trap finish EXIT

ok() {
    printf 'ok %s\n' "$1"
    passed=$((passed + 1))
}

# bad NAME WHY...: a result, with what helps to understand it.
bad() {
    local name=$1
    shift
    printf 'FAIL %s: %s\n' "$name" "$*"
    failed=$((failed + 1))
}

# check NAME COMMAND...: one result.
check() {
    local name=$1
    shift
    if "$@"; then
        ok "$name"
    else
        bad "$name" "$*"
        return 1
    fi
}

# is NAME WANTED GOT: one result.
is() {
    if [ "$2" = "$3" ]; then ok "$1"; else bad "$1" "wanted '$2', got '$3'"; fi
}

# within SECONDS COMMAND...: until the command succeeds, looked at 50 times a second.
within() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        read -rt 0.02 <> <(:)
    done
    return 0 # the loop's own status is that of its last pause
}

gone() { ! kill -0 "$1" 2>/dev/null; }

# The value at a jq-like dotted path of a JSON document on stdin: `json a.b.0`. Perl's core has
# a JSON reader on every Debian.
json() {
    perl -MJSON::PP -e '
        local $/; my $d = JSON::PP->new->allow_nonref->decode(<STDIN>);
        for my $k (split /\./, $ARGV[0]) {
            last unless defined $d;
            $d = ref $d eq "ARRAY" ? ($k eq "n" ? scalar @$d : $d->[$k]) : $d->{$k};
        }
        print defined $d ? (ref $d ? JSON::PP->new->canonical->encode($d) : $d) : "null", "\n"' "$1"
}

# Everything of ours on this host, a line each: control groups, marked processes, databases and
# load workers, containers with a mark. Compared before and after.
snapshot() {
    find /sys/fs/cgroup -type d -path '*weighbridge/*' 2>/dev/null | sed 's/^/group /'
    local p
    for p in /proc/[0-9]*; do
        if tr '\0' '\n' <"$p/environ" 2>/dev/null | grep -q '^WB_MARK='; then
            echo "process $(tr '\0' ' ' <"$p/cmdline" 2>/dev/null)"
        fi
    done 2>/dev/null
    if [ -S "${WB_DOCKER_SOCKET:-}" ]; then
        curl -s --unix-socket "$WB_DOCKER_SOCKET" \
            'http://engine/containers/json?all=1' | grep -o '"Names":\["[^"]*"' | sed 's/^/container /'
    fi
    grep -E ' (/[^ ]*)?/campaigns/' /proc/self/mounts | sed 's/^/mount /'
    true
}

summary() {
    printf '%s passed, %s failed\n' "$passed" "$failed"
    [ "$failed" -eq 0 ]
}
