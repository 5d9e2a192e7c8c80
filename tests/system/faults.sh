#!/bin/bash
# The engine under fire: killed in each phase, cancelled, databases and load workers that die or
# lie. After `clean` nothing may be left, and every attempt has a record with the right outcome.
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
# shellcheck source=tests/support/lib.sh
. tests/support/lib.sh
export WB_STATE=$build/test/state WB_RECIPES=recipes
store=$tmp/store.git
short=(-f workload.phases.max.warm_up=300ms -f workload.phases.max.for=2s
    -f workload.data.rows=2000 -f copies=1)
forms=(recipes/redis/studies/forms.yaml --profile small -f workload.phases.latency.warm_up=200ms
    -f workload.phases.latency.for=1s -f workload.phases.latency.rate=2k/s)

# The words of the newest run: outcome and teardown.
newest() {
    "$wb" list --json --store "$store" | json items.0 | tee "$tmp/newest" |
        perl -MJSON::PP -e 'my $d = decode_json(join "", <STDIN>); print "$d->{outcome} $d->{teardown}\n"'
}
runs() { "$wb" list --json --store "$store" | json items.n; }

# start NAME ARGS...: a campaign in the background; its pid is in $pid, its words in $tmp/NAME.
start() {
    local name=$1
    shift
    "$wb" run "$@" --store "$store" >"$tmp/$name.out" 2>"$tmp/$name" &
    pid=$!
}
says() { grep -q -- "$2" "$tmp/$1"; }

"$wb" run recipes/redis/studies/aa.yaml "${short[@]}" --rounds 1 -f workload.phases.max.for=200ms \
    --store "$store" >/dev/null 2>"$tmp/err"
before=$(snapshot)

# kill -9 of the engine once in each phase.
for form in native docker; do
    for phase in deploy ready probe load max latency collect teardown; do
        start kill "${forms[@]}" "${short[@]}" -f "factors.form=[$form x1]" --rounds 1
        within 180 says kill "^run 1/1 .*  $phase" ||
            bad "$form: phase $phase is reached" "$(tail -n 3 "$tmp/kill")"
        kill -9 "$pid"
        wait "$pid" 2>/dev/null
        had=$(runs)
        "$wb" clean --store "$store" >"$tmp/clean" 2>&1
        is "$form: clean after kill -9 in $phase" 0 $?
        is "$form: nothing is left after kill -9 in $phase" "$before" "$(snapshot)"
        is "$form: kill -9 in $phase leaves one record more" $((had + 1)) "$(runs)"
        is "$form: kill -9 in $phase is a harness-error" "harness-error clean" "$(newest)"
    done
done
is "no folder of a run is left" 0 "$(find "$WB_STATE"/campaigns/*/runs -mindepth 1 | wc -l)"
"$wb" clean --store "$store" >"$tmp/clean" 2>&1
check "a second clean finds nothing" grep -q '^0 interrupted campaigns closed, 0 attempts recorded, 0 things' "$tmp/clean"

# Ctrl-C.
start int recipes/redis/studies/aa.yaml "${short[@]}" --rounds 2
within 180 says int '  max'
kill -INT "$pid"
wait "$pid"
is "Ctrl-C ends with 130" 130 $?
is "Ctrl-C leaves a clean cancelled run" "cancelled clean" "$(newest)"
is "Ctrl-C leaves nothing" "$before" "$(snapshot)"

# One controller at a time on a host.
start first recipes/redis/studies/aa.yaml "${short[@]}" --rounds 1
within 180 says first '  max'
"$wb" run recipes/redis/studies/aa.yaml "${short[@]}" --rounds 1 --store "$store" >/dev/null 2>"$tmp/second"
is "a second run on a busy host is refused" 22 $?
check "and told who holds it" grep -q 'campaign cmp_' "$tmp/second"
wait "$pid"

# The database is killed under load.
start died recipes/redis/studies/aa.yaml "${short[@]}" --rounds 1
within 180 says died '  max'
victim=$(cat /sys/fs/cgroup/memory/weighbridge/*-db0/cgroup.procs /sys/fs/cgroup/weighbridge/*-db0/cgroup.procs 2>/dev/null | head -n 1)
kill -9 "$victim"
wait "$pid"
is "a killed database ends the study with 12" 12 $?
is "and its run is a sut-error" "sut-error clean" "$(newest)"
check "that says how it ended" grep -q 'signal 9' "$tmp/newest" || cat "$tmp/newest"

# Load workers that lie or die.
while read -r mode outcome exit_code words; do
    ln -sf "$PWD/tests/support/fake-load" "$tmp/fake-load.$mode"
    WB_LOAD=$tmp/fake-load.$mode "$wb" run recipes/redis/studies/aa.yaml "${short[@]}" --rounds 1 \
        --store "$store" >/dev/null 2>"$tmp/err"
    is "load worker '$mode': exit $exit_code" "$exit_code" $?
    is "load worker '$mode': $outcome" "$outcome clean" "$(newest)"
    check "load worker '$mode': the reason says '$words'" grep -q -- "$words" "$tmp/newest"
done <<'CASES'
silent harness-error 13 no result
nosummary harness-error 13 no result
kill harness-error 13 signal 9
status harness-error 13 status 5
short harness-error 13 measured for 0.10 s
sums inconsistent 13 1001 operations scheduled
noconn sut-error 12 took no connection
CASES

# Another version than asked for, an ignored setting: a recipe whose probe lies.
cp -R recipes "$tmp/recipes"
cat >"$tmp/recipes/redis/steps/probe" <<'STEP'
#!/bin/sh
cat "$WB_RECIPE_DIR/files/answer.json"
STEP
chmod +x "$tmp/recipes/redis/steps/probe"
while read -r words answer; do
    printf '%s\n' "$answer" >"$tmp/recipes/redis/files/answer.json"
    WB_RECIPES=$tmp/recipes "$wb" run "$tmp/recipes/redis/studies/aa.yaml" "${short[@]}" --rounds 1 \
        --store "$store" >/dev/null 2>"$tmp/err"
    is "probe says $answer: exit 13" 13 $?
    is "probe says $answer: inconsistent" "inconsistent clean" "$(newest)"
    check "probe says $answer: the reason names $words" grep -qF -- "$words" "$tmp/newest"
done <<'CASES'
7.0.150 {"version": "7.0.150", "settings": {}}
unknown {"version": null, "settings": {}}
maxmemory {"version": "7.0.15", "settings": {"maxmemory": "1"}}
CASES
is "nothing is left at the end" "$before" "$(snapshot)"
check "the store is whole" git --git-dir="$store" fsck --full --strict --no-progress
check "and verified" "$wb" verify --all --store "$store"
summary
