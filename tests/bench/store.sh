#!/bin/bash
# What a store of records costs at SIZES (default "100 10000 100000") records: filling it (git
# fast-import of what the real code makes), making the index, lists, show, compare, and a commit
# against git itself doing the same in a store of the same size. Bars: commit p95 at most twice
# git's and flat, questions p95 at most 50 ms, start at most 1 s, 100,000 records indexed in 60 s,
# at most 50 MB of anonymous memory, also while the index is made.
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
build=${B:-build}
tmp=$(mktemp -d "${BENCH_TMP:-${TMPDIR:-/tmp}}/store-bench-XXXXXX") || exit 2
trap 'rm -rf -- "$tmp"' EXIT
export GIT_CONFIG_GLOBAL=/dev/null
make -s "B=$build" "$build/bench/store_seed" "$build/bench/store_ask" "$build/weighbridge" || exit 2
failed=0

ms() { echo $((${EPOCHREALTIME/./} / 1000)); }
# bar WHAT VALUE LIMIT UNIT: tells and counts what is over.
bar() {
    if awk -v v="$2" -v l="$3" 'BEGIN { exit !(v <= l) }'; then
        printf '  ok   %-16s %10.2f %s (bar %s)\n' "$1" "$2" "$4" "$3"
    else
        printf '  FAIL %-16s %10.2f %s (bar %s)\n' "$1" "$2" "$4" "$3"
        failed=1
    fi
}

for n in ${SIZES:-100 10000 100000}; do
    store=$tmp/$n.git
    echo "== $n records"
    from=$(ms)
    "$build/bench/store_seed" "$store" 1 >"$tmp/first" || exit 2 # makes the store
    "$build/bench/store_seed" "$store" "$n" |
        git --git-dir="$store" -c core.compression=1 fast-import --quiet --force || exit 2
    bar filled $((($(ms) - from) / 1000)) 300 s
    "$build/bench/store_ask" "$store" "${TIMES:-200}" >"$tmp/asked" || exit 2
    while read -r what p50 p95; do
        case $what in
        reindex) bar reindex "$(awk -v v="$p95" 'BEGIN { print v / 1000 }')" 60 s ;;
        start) bar "start p95" "$p95" 1000 ms ;;
        memory*) bar "$what" "$p50" 50 MB ;;
        *) bar "$what p95" "$p95" 50 "ms, p50 $p50" ;;
        esac
    done <"$tmp/asked"
    from=$(ms)
    for _ in 1 2 3 4 5; do "$build/weighbridge" list --limit 20 --store "$store" >"$tmp/listed" 2>"$tmp/said"; done
    bar "list command" $((($(ms) - from) / 5)) 1000 ms
    COUNT=${COUNT:-100} SEED=$store TMPDIR=$tmp tests/bench/commit.sh | sed 's/^/  /' || failed=1
    printf '       index %d bytes a run, packed records %d bytes a run\n' \
        "$(($(stat -c %s "$store/weighbridge.index") / n))" "$(($(du -sb "$store/objects" | cut -f1) / n))"
    rm -rf "$store"
done
exit $failed
