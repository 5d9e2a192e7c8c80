#!/bin/bash
# What the orchestrator adds to one run: the same Redis, data and load by `weighbridge run` and by
# a shell script that does the same by hand (start, wait, load, measure, stop, remove), in turns.
# Bar: at most 2 s more. PAIRS (5) sets how often. Needs root.
set -eu
cd -- "$(dirname -- "$0")/../.."
build=${B:-build}
pairs=${PAIRS:-5}
export WB_STATE=$build/bench/state WB_RECIPES=recipes
make --no-print-directory B="$build" all >/dev/null
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
study=(recipes/redis/studies/aa.yaml -f copies=1 -f workload.phases.max.warm_up=500ms
    -f workload.phases.max.for=2s -f workload.data.rows=5000)
now() { date +%s%N; }

"$build/weighbridge" artifacts fetch redis >/dev/null
"$build/weighbridge" run "${study[@]}" --rounds 1 --store "$tmp/store.git" >/dev/null 2>&1 || true
prefix=$(find "$WB_STATE/prefix" -mindepth 1 -maxdepth 1 -type d -name 'redis-*' | head -n 1)
libs=$(find "$prefix/usr/lib" -maxdepth 1 -name '*-linux-gnu')

by_hand() {
    mkdir "$tmp/data"
    printf '%s\n' "dir $tmp/data" 'port 26379' 'bind 127.0.0.1' 'save ""' 'appendonly no' >"$tmp/redis.conf"
    LD_LIBRARY_PATH=$libs taskset -c 1 "$prefix/usr/bin/redis-server" "$tmp/redis.conf" >/dev/null &
    until LD_LIBRARY_PATH=$libs "$prefix/usr/bin/redis-cli" -p 26379 ping >/dev/null 2>&1; do
        read -rt 0.01 <> <(:) || true
    done
    taskset -c 0 "$build/wb-load" resp://127.0.0.1:26379 --load-only --keys 5000 --value 4KiB \
        --connections 8 --depth 16 >/dev/null 2>&1
    taskset -c 0 "$build/wb-load" resp://127.0.0.1:26379 --connections 32 --depth 16 --keys 5000 \
        --mix get=100 --value 4KiB --warm-up 500ms --for 2s -o "$tmp/result.json" >/dev/null 2>&1
    LD_LIBRARY_PATH=$libs "$prefix/usr/bin/redis-cli" -p 26379 shutdown nosave >/dev/null 2>&1 || true
    wait
    rm -rf "$tmp/data"
}

for i in $(seq "$pairs"); do
    a=$(now)
    by_hand
    b=$(now)
    "$build/weighbridge" run "${study[@]}" --rounds 1 --store "$tmp/store.git" >/dev/null 2>&1 || true
    c=$(now)
    run=$("$build/weighbridge" list --limit 1 --json --store "$tmp/store.git" |
        sed -nE 's/^ *"seconds": ([0-9.]+),?$/\1/p' | head -n 1)
    [ -n "$run" ] || { echo "overhead: the run left no record" >&2; exit 1; }
    awk -v i="$i" -v h=$((b - a)) -v w=$((c - b)) -v r="$run" 'BEGIN {
        printf "pair %d: by hand %.2f s, one run %.2f s (adds %.2f s), whole command %.2f s (adds %.2f s)\n",
            i, h / 1e9, r, r - h / 1e9, w / 1e9, (w - h) / 1e9 }'
done | tee "$tmp/pairs"
sed -E 's/.*run [0-9.]+ s \(adds ([-0-9.]+) s\).*\(adds ([-0-9.]+) s\)/\1 \2/' "$tmp/pairs" | awk '
    { a[NR] = $1; b[NR] = $2 }
    function median(v, n,   i, j, t) {
        for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++) if (v[j] < v[i]) { t = v[i]; v[i] = v[j]; v[j] = t }
        return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
    }
    END { printf "median: one run adds %.2f s, the whole command %.2f s (bar: a run adds <= 2 s)\n", median(a, NR), median(b, NR) }'
