#!/bin/bash
# What a service costs with RECORDS (default 100000) records: its start, lists and comparisons over
# HTTP, its anonymous memory. Bars: start at most 1 s, every list and comparison p95 at most 50 ms,
# at most 50 MB of anonymous memory. STORE names a store that is there already.
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
build=${B:-build}
tmp=$(mktemp -d "${BENCH_TMP:-${TMPDIR:-/tmp}}/service-bench-XXXXXX") || exit 2
server=
# shellcheck disable=SC2317 # called by trap
cleanup() {
    [ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null
    rm -rf -- "$tmp"
}
trap cleanup EXIT
export GIT_CONFIG_GLOBAL=/dev/null
make -s "B=$build" "$build/bench/store_seed" "$build/weighbridge" || exit 2
failed=0

ms() { echo $((${EPOCHREALTIME/./} / 1000)); }
# bar WHAT VALUE LIMIT UNIT: tells and counts what is over.
bar() {
    if awk -v v="$2" -v l="$3" 'BEGIN { exit !(v <= l) }'; then
        printf '  ok   %-18s %10.2f %s (bar %s)\n' "$1" "$2" "$4" "$3"
    else
        printf '  FAIL %-18s %10.2f %s (bar %s)\n' "$1" "$2" "$4" "$3"
        failed=1
    fi
}

n=${RECORDS:-100000}
store=${STORE:-$tmp/store.git}
if [ ! -d "$store" ]; then
    "$build/bench/store_seed" "$store" 1 >"$tmp/first" || exit 2 # makes the store
    "$build/bench/store_seed" "$store" "$n" |
        git --git-dir="$store" -c core.compression=1 fast-import --quiet --force || exit 2
fi
[ -e "$store/weighbridge.index" ] || "$build/weighbridge" reindex --store "$store" >"$tmp/indexed" || exit 2

# start_server: its address is in $url; how long it took until it could be asked is in $took.
start_server() {
    local from
    : >"$tmp/serve"
    from=$(ms)
    WB_STATE=$tmp/state WB_RECIPES=$PWD/recipes WB_WEB=$PWD/web "$build/weighbridge" serve \
        --store "$store" --port 0 --requests-per-minute 0 >"$tmp/serve" 2>"$tmp/serve.err" &
    server=$!
    until grep -q '^listening' "$tmp/serve"; do
        kill -0 "$server" 2>/dev/null || {
            cat "$tmp/serve.err"
            exit 1
        }
        read -rt 0.005 <> <(:)
    done
    url=$(sed -n 's/^listening on //p' "$tmp/serve")
    curl -sf "$url/healthz" >"$tmp/health" || exit 1
    took=$(($(ms) - from))
}

echo "== $n records"
start_server
token=$(sed -n 's/^token of the admin.*: //p' "$tmp/serve")
bar "first start" "$took" 1000 ms
kill "$server" && wait "$server"
start_server
bar start "$took" 1000 ms
tests/bench/service-ask "$url" "$token" "${TIMES:-200}" >"$tmp/asked" || exit 1
while read -r what p50 p95 bytes; do
    bar "$what p95" "$p95" 50 "ms, p50 $p50, $bytes bytes"
done <"$tmp/asked"
awk '/^RssAnon/ { print $2 / 1024 }' "/proc/$server/status" >"$tmp/anon"
bar memory "$(cat "$tmp/anon")" 50 "MB anonymous"
exit $failed
