#!/bin/bash
# Foreign load programs through the engine: the real redis-benchmark on a real Redis, and programs
# that lie, hang, flood or die. Needs root.
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
# shellcheck source=tests/support/lib.sh
. tests/support/lib.sh
export WB_STATE=$build/test/state WB_RECIPES=recipes
store=$tmp/store.git

# study NAME COMMAND WORDS... : one arm, one phase of 1 s, by a tool that is declared as given.
study() {
    cat >"$tmp/$1.yaml" <<STUDY
study: tool-$1
recipe: {name: redis, version: "7.0.15"}
hosts: {pool: local, database: 1, load: 1}
memory: 256MiB
tools:
  fake:
    command: $2
    version: {command: ["$PWD/tests/support/fake-tool", version], regex: 'version ([0-9.]+)'${3:-}}
    ${4:-errors: counted}
    limit: ${5:-20s}
    startup: 1s
    parse: ${6:-$block}
workload:
  data: {rows: 1000, key: 16B, value: {size: 64B}}
  phases:
    - {name: load, op: insert, order: sequential}
    - {name: max, op: get, rate: max, warm_up: 0s, ${7:-for: 1s}, tool: fake}
rounds: 1
validity: {accept: [valid, noisy]}
STUDY
}
fake() { echo "[\"$PWD/tests/support/fake-tool\", $1, \"{seconds}\", \"{port}\"]"; }
block="{after: '^Results:', until: '^END\$', rules: [
      {regex: '^op rate : ([^ ]+) op/s', names: achieved_per_s},
      {regex: '^operations : (.+)', names: ok},
      {regex: '^errors : (.+)', names: failed},
      {regex: '^time : ([^ ]+) s', names: window_s},
      {regex: '^latency mean : ([^ ]+) ms', names: service_mean_ms},
      {regex: '^latency 99th : ([^ ]+) ms', names: service_p99_ms}]}"
document="{rules: [
      {json: /ALL/Count, names: ok},
      {json: /ALL/Ops~1sec, names: achieved_per_s},
      {json: /ALL/p99, names: service_p99_ms},
      {json: /ALL/ms, names: window_ms}]}"

run() { # NAME: its exit code; words of its only run in $tmp/newest, all of it in $tmp/show
    local rc id had=${newest_id:-none}
    "$wb" run "$tmp/$1.yaml" --store "$store" --wait-for-host 1200 >"$tmp/out" 2>"$tmp/err"
    rc=$?
    "$wb" list --json --store "$store" | json items.0 >"$tmp/newest"
    id=$(json id <"$tmp/newest")
    newest_id=$id
    [ "$id" != "$had" ] || bad "$1: it has a record" "$(tail -n 3 "$tmp/err")"
    "$wb" show "$id" --json --store "$store" >"$tmp/show"
    return $rc
}
words() { echo "$(json outcome <"$tmp/newest") $(json teardown <"$tmp/newest")"; }
load() { json "phases.1.load.$1" <"$tmp/show"; }

# Builds what is built once, so that the snapshot has it.
study good "$(fake good)"
run good
before=$(snapshot)
run good
rc=$?
check "a program that does all right ends with 0 or 14, here $rc" [ $rc -eq 0 -o $rc -eq 14 ] ||
    tail -n 5 "$tmp/err"
is "its run is ok" "ok clean" "$(words)"
is "its rate is read" 20000 "$(load achieved_per_s)"
is "so is the 99th percentile" 6.2 "$(load operations.all.service.p99_ms)"
is "and its window" 1 "$(load window.seconds)"
is "a percentile that it does not give is null" null "$(load operations.all.service.p50_ms)"
is "with a reason" "the program does not say it" "$(load operations.all.service.p50_ms_reason)"
is "its version was asked" 1.0.1 "$(load tool.version)"
check "its CPU time is from the kernel" [ "$(load client.cpu_s)" != null ]
check "so are its threads" [ "$(load client.threads.n)" -ge 1 ]
id=$(json id <"$tmp/newest")
check "what it wrote is kept" grep -q '^op rate' <("$wb" logs "$id" -s load-max.stdout --store "$store")

# Programs that lie, hang or die: never ok, and never a figure.
while read -r mode outcome code words; do
    study "$mode" "$(fake "$mode")"
    sed -i 's/limit: 20s/limit: 3s/' "$tmp/$mode.yaml"
    if [ "$mode" = hang ]; then sed -i 's/limit: 3s/limit: 60s\n    silence: 1s/' "$tmp/hang.yaml"; fi
    run "$mode"
    is "$mode: exit $code" "$code" $?
    is "$mode: $outcome" "$outcome clean" "$(words)"
    check "$mode: the reason says '$words'" grep -q -- "$words" "$tmp/newest" || cat "$tmp/newest"
    is "$mode: no figure stands" null "$(json metrics.max.throughput <"$tmp/newest")"
    took=$(json seconds <"$tmp/newest")
    check "$mode: over within 20 s, here $took" [ "${took%.*}" -lt 20 ]
    is "$mode: nothing is left" "$before" "$(snapshot)"
done <<'CASES'
silent harness-error 13 no result: nothing was written
nosummary harness-error 13 no final block
status harness-error 13 ended with status 1
zero harness-error 13 no operation succeeded
nan harness-error 13 'nan' operations succeeded
hang harness-error 13 said nothing for longer
chatty harness-error 13 over its time and was killed
killed harness-error 13 signal 9
short harness-error 13 measured for 0.3
liar inconsistent 13 it ran for only
twice harness-error 13 there are two final blocks
CASES

study slow "$(fake slow)"
run slow
is "slow: rate and latency contradict each other: inconsistent" "inconsistent clean" "$(words)"

study tree "$(fake tree)"
run tree
is "tree: ok" "ok clean" "$(words)"
is "tree: a 99th percentile of -nan is null" null "$(load operations.all.service.p99_ms)"
is "tree: with its word" "the program said '-nan'" "$(load operations.all.service.p99_ms_reason)"
is "tree: what it left behind is gone" "$before" "$(snapshot)"

study json "$(fake json)" "" "errors: fatal" 20s "$document"
run json
is "json after warnings: ok" "ok clean" "$(words)"
is "json after warnings: its rate is read" 20000.5 "$(load achieved_per_s)"
is "json after warnings: -nan is null" null "$(load operations.all.service.p99_ms)"
study cut "$(fake cut)" "" "errors: fatal" 20s "$document"
run cut
is "json without an end: harness-error" "harness-error clean" "$(words)"
check "json without an end: named" grep -q 'has no end' "$tmp/newest"

# 800 MB of output: the block at its end is read, the log is capped, nobody eats memory.
study flood "$(fake flood)"
sed -i 's/limit: 20s/limit: 120s/; s/startup: 1s/startup: 120s/' "$tmp/flood.yaml"
run flood
is "flood: ok" "ok clean" "$(words)"
is "flood: the block at the end is read" 20000 "$(load achieved_per_s)"
bytes=$(perl -MJSON::PP -e 'my $d = decode_json(join "", <STDIN>);
    print $d->{raw}{"load-max.stdout"}{bytes}' <"$tmp/newest")
check "flood: at most 1.5 MB of it are kept, here $bytes" [ "$bytes" -le 1500000 ]
id=$(json id <"$tmp/newest")
check "flood: and the gap is told" \
    grep -qa 'bytes are left out here' <("$wb" logs "$id" -s load-max.stdout --store "$store")

# What must be known before it starts.
study version "$(fake good)" ", is: 9.9"
run version
is "another version than asked: exit 13" 13 $?
is "another version than asked: inconsistent" "inconsistent clean" "$(words)"
check "another version than asked: both are named" grep -q 'has version 1.0.1, asked 9.9' "$tmp/newest"
study absent '["/no/such/program", "{port}", "{seconds}"]'
run absent
is "no such program: infra-error" "infra-error clean" "$(words)"
check "no such program: named" grep -q '/no/such/program' "$tmp/newest"

# The database dies under a program that notices nothing.
study dies "$(fake good)" "" "errors: counted" 60s "$block" "for: 8s"
"$wb" run "$tmp/dies.yaml" --store "$store" --wait-for-host 1200 >"$tmp/out" 2>"$tmp/err" &
pid=$!
within 120 grep -q '  max' "$tmp/err"
victim=$(cat /sys/fs/cgroup/memory/weighbridge/*-db0/cgroup.procs \
    /sys/fs/cgroup/weighbridge/*-db0/cgroup.procs 2>/dev/null | head -n 1)
kill -9 "$victim"
wait "$pid"
is "the database dies: exit 12" 12 $?
"$wb" list --json --store "$store" | json items.0 >"$tmp/newest"
is "the database dies: sut-error, whatever the program says" "sut-error clean" "$(words)"
is "the database dies: nothing is left" "$before" "$(snapshot)"

# The real one. Against a port where nothing is it prints an error and never ends.
study gone "[\"$(command -v redis-benchmark)\", -p, \"1\", -n, \"{operations}\", --csv, ping, \"{port}\"]" \
    "" "errors: fatal" 2s "{rules: [{regex: '^\"ping.*\",\"([0-9.]+)\"', names: achieved_per_s}]}" \
    "ops: 1000"
run gone
is "redis-benchmark on a dead port: harness-error" "harness-error clean" "$(words)"
check "redis-benchmark on a dead port: over its time" \
    grep -Eq 'over its time|ended with status 1' "$tmp/newest"
is "redis-benchmark on a dead port: nothing is left" "$before" "$(snapshot)"

"$wb" run recipes/redis/studies/generators.yaml --rounds 1 -f workload.phases.max.ops=100000 \
    --store "$store" --wait-for-host 1200 >"$tmp/out" 2>"$tmp/err"
rc=$?
check "generators: ends with 0 or 14, here $rc" [ $rc -eq 0 -o $rc -eq 14 ] || tail -n 5 "$tmp/err"
"$wb" list --json --store "$store" >"$tmp/list"
for at in 0 1; do
    json items.$at <"$tmp/list" >"$tmp/newest"
    arm=$(json arm <"$tmp/newest")
    is "generators, $arm: ok" "ok clean" "$(words)"
    id=$(json id <"$tmp/newest")
    "$wb" show "$id" --json --store "$store" >"$tmp/show"
    is "generators, $arm: all operations were done" 100000 "$(json phases.1.load.ok <"$tmp/show")"
    check "generators, $arm: CPU time per operation is known" \
        grep -Eq '"max.client_cpu_ms":\{"better":"lower","unit":"ms","value":0\.[0-9]+\}' "$tmp/newest"
    check "generators, $arm: Little's law is checked" grep -q '"little-ratio"' "$tmp/show"
    path=$(git --git-dir="$store" ls-tree -r --name-only HEAD | grep -- "$id/result.json")
    git --git-dir="$store" show "HEAD:$path" >"$tmp/result"
    is "generators, $arm: the server saw no miss" 0 "$(json server.0.metrics.misses <"$tmp/result")"
    hits=$(json server.0.metrics.hits <"$tmp/result")
    check "generators, $arm: and a hit for each operation" [ "$hits" -ge 100000 ]
done
is "one arm of each" "redis-benchmark wb-load" \
    "$(sed -nE 's/^ *"arm": "(redis-benchmark|wb-load)",$/\1/p' "$tmp/list" | sort | xargs)"
check "every record is verified" "$wb" verify --all --store "$store"
is "nothing is left at the end" "$before" "$(snapshot)"
summary
