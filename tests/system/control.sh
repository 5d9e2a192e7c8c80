#!/bin/bash
# Who may do what on a host, and when: cancelling at every moment, two controllers, strangers.
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
# shellcheck source=tests/support/lib.sh
. tests/support/lib.sh
alone
export WB_STATE=$build/test/state WB_RECIPES=recipes
store=$tmp/store.git
aa=recipes/redis/studies/aa.yaml
short=(-f workload.phases.max.warm_up=100ms -f workload.phases.max.for=500ms
    -f workload.data.rows=1000 -f copies=1 --rounds 1 --wait-for-host 600)

run "$aa" "${short[@]}"
before=$(snapshot)

# --- cancelling ---

for sig in INT TERM HUP; do
    start int "$aa" "${short[@]}" -f workload.phases.max.for=10s
    within 700 says int '  max'
    kill "-$sig" "$pid"
    wait "$pid"
    is "SIG$sig ends with 130" 130 $?
    is "SIG$sig leaves a clean cancelled run" "cancelled clean" "$(newest)"
    nothing_left "SIG$sig"
done
# By command, at every moment; again while it is ending.
for phase in deploy ready load max collect teardown; do
    start moment "$aa" "${short[@]}" --rounds 50
    within 700 says moment "^run 1/50 .*  $phase"
    id=$(campaign_of moment)
    "$wb" cancel "$id" --store "$store" >"$tmp/cancel1" 2>&1 8>&- &
    first=$!
    "$wb" cancel "$id" --store "$store" >"$tmp/cancel" 2>&1
    rc=$?
    wait "$first"
    is "cancel in $phase, twice: exit" "0 0" "$? $rc"
    wait "$pid"
    is "cancel in $phase: the engine ends with 130" 130 $?
    check "cancel in $phase: it says so" grep -q "campaign $id: cancelled" "$tmp/cancel"
    nothing_left "cancel in $phase"
done
"$wb" cancel "$id" --store "$store" >"$tmp/cancel" 2>&1
is "cancel of a cancelled campaign is no error" 0 $?
"$wb" cancel cmp_NONE --store "$store" >"$tmp/cancel" 2>&1
is "cancel of no campaign" 21 $?
start over "$aa" "${short[@]}"
wait "$pid"
"$wb" cancel "$(campaign_of over)" --store "$store" >"$tmp/cancel" 2>&1
is "cancel of a finished campaign" 22 $?
# Cancel of one whose engine was killed.
start dead "$aa" "${short[@]}" -f workload.phases.max.for=10s
within 700 says dead '  max'
kill -9 "$pid"
wait "$pid" 2>/dev/null
"$wb" cancel "$(campaign_of dead)" --store "$store" >"$tmp/cancel" 2>&1
check "cancel of a dead campaign: exit $?" grep -q 'cancelled' "$tmp/cancel"
is "cancel of a dead campaign records its attempt" "harness-error clean" "$(newest)"
nothing_left "cancel of a dead campaign"
# While the artifacts are fetched: nothing was begun, nothing is recorded.
fresh_recipes
recipe_step fetch <<<'tail -f /dev/null'
had=$(runs)
WB_STATE=$tmp/fresh WB_RECIPES=$spoilt "$wb" run "$spoilt/redis/studies/aa.yaml" "${short[@]}" \
    --store "$store" >/dev/null 2>"$tmp/fetch" 8>&- &
pid=$!
within 60 says fetch '^fetching'
kill -TERM "$pid"
wait "$pid"
is "cancel while fetching: 130" 130 $?
is "cancel while fetching records nothing" "$had" "$(runs)"
nothing_left "cancel while fetching"
# Nobody reads what is said; nobody even has an ear.
# (The recipe has a program outside of its steps, which verify below must not take for damage.)
fresh_recipes
mkdir "$spoilt/redis/tools"
printf '#!/bin/sh\n' >"$spoilt/redis/tools/helper"
chmod +x "$spoilt/redis/tools/helper"
{ WB_RECIPES=$spoilt "$wb" run "$spoilt/redis/studies/aa.yaml" "${short[@]}" --store "$store" 8>&-; echo $? >"$tmp/rc"; } 2>&1 | true
check "a closed pipe ends nothing" [ "$(cat "$tmp/rc")" -eq 0 -o "$(cat "$tmp/rc")" -eq 14 ]
"$wb" run "$aa" "${short[@]}" --store "$store" 0<&- >&- 2>&- 8>&-
rc=$?
check "closed descriptors end nothing" [ $rc -eq 0 -o $rc -eq 14 ]
check "and nothing is written into files of ours" "$wb" verify --all --store "$store"
nothing_left "closed outputs"

# --- two controllers ---

start first "$aa" "${short[@]}" -f workload.phases.max.for=8s
within 700 says first '  max'
"$wb" run "$aa" "${short[@]:0:8}" --rounds 1 --store "$store" >/dev/null 2>"$tmp/second"
is "a second run on a busy host is refused" 22 $?
check "and told who holds it" grep -q "campaign $(campaign_of first)" "$tmp/second"
"$wb" run "$aa" "${short[@]:0:8}" --rounds 1 --store "$tmp/b.git" >/dev/null 2>"$tmp/second"
is "so is another controller" 22 $?
check "and told whose it is" grep -q "of the store $store" "$tmp/second"
"$wb" clean --store "$tmp/b.git" >/dev/null 2>"$tmp/second"
is "and its clean" 22 $?
wait "$pid"
# Six at once, of two controllers, all of them waiting: one after the other.
pids=()
for i in 1 2 3 4 5 6; do
    "$wb" run "$aa" "${short[@]}" --store "$tmp/race$((i % 2)).git" \
        >/dev/null 2>"$tmp/race$i" 8>&- &
    pids+=($!)
done
for i in "${!pids[@]}"; do
    wait "${pids[$i]}"
    rc=$?
    check "of six that race, number $i comes to its end, here exit $rc" [ $rc -eq 0 -o $rc -eq 14 ]
done
check "and waited for one another" grep -q 'waiting for this host.*campaign cmp_' "$tmp"/race?
is "all of them are recorded" "3 3" "$("$wb" list --json --store "$tmp/race0.git" | json items.n) $("$wb" list --json --store "$tmp/race1.git" | json items.n)"
nothing_left "a race"

# Two controllers that begin at once, each with a store of its own; whichever got the host is killed
# at a random moment. The other then has the host, or is told whose living things are on it and what
# to type; the two never measure at the same time, and each attempt is in its own store.
RANDOM=${CONTROL_SEED:-7}
for i in 1 2 3 4 5 6; do
    pids=()
    for side in a b; do
        : >"$tmp/side.$side"
        "$wb" run "$aa" "${short[@]}" -f workload.phases.max.for=1500ms --store "$tmp/side-$side.git" \
            >/dev/null 2>"$tmp/side.$side" 8>&- &
        pids+=($!)
    done
    first_seen() { grep -l '^run 1/1 .*  deploy' "$tmp"/side.[ab] >"$tmp/first"; }
    within 700 first_seen || bad "race $i: one of the two begins"
    pause "$((RANDOM % 3)).$((RANDOM % 10))"
    if grep -q 'side\.a$' "$tmp/first"; then first=a other=b at=0; else first=b other=a at=1; fi
    kill -9 "${pids[at]}" 2>/dev/null
    wait "${pids[at]}" 2>/dev/null
    wait "${pids[1 - at]}"
    rc=$?
    if [ $rc -eq 22 ]; then
        check "race $i: the other one is told whose things are there" \
            grep -q "weighbridge clean --store $tmp/side-$first.git" "$tmp/side.$other" || tail -n 3 "$tmp/side.$other"
    else
        check "race $i: the other one comes to its end, here exit $rc" [ $rc -eq 0 -o $rc -eq 14 ] || tail -n 3 "$tmp/side.$other"
    fi
    "$wb" clean --store "$tmp/side-$first.git" --wait-for-host 600 >"$tmp/clean" 2>&1
    is "race $i: the killed one is cleaned up" 0 $?
    for side in a b; do
        "$wb" clean --store "$tmp/side-$side.git" --wait-for-host 600 >/dev/null 2>&1
        "$wb" list --json --store "$tmp/side-$side.git" >"$tmp/list.$side" 2>/dev/null || echo '{"items": []}' >"$tmp/list.$side"
    done
    is "race $i: the two were never at it at once" "" "$(perl -MJSON::PP -e '
        my @r;
        for (@ARGV) { open my $f, "<", $_; push @r, @{decode_json(join "", <$f>)->{items}} }
        @r = sort { $a->{started_at} cmp $b->{started_at} } grep { !$_->{interrupted} } @r;
        for my $i (1 .. $#r) { print "$r[$i-1]{id} $r[$i]{id}" if $r[$i]{started_at} lt $r[$i-1]{ended_at} }' \
        "$tmp/list.a" "$tmp/list.b")"
    nothing_left "race $i"
done
for side in a b; do
    is "race: attempts of side $side are its records" "$(store=$tmp/side-$side.git attempts | wc -l)" "$(json items.n <"$tmp/list.$side")"
    check "race: store $side is whole" "$wb" verify --all --store "$tmp/side-$side.git"
done

# --- an owner whose store is no more ---

store=$tmp/lost.git start lost "$aa" "${short[@]}" -f workload.phases.max.for=10s
within 700 says lost '  max'
kill -9 "$pid"
wait "$pid" 2>/dev/null
lost=$(git --git-dir="$tmp/lost.git" symbolic-ref HEAD)
rm -rf "$tmp/lost.git"
run "$aa" "${short[@]}"
is "living things of an owner without a store: refused" 22 $?
check "with a way out that needs none" grep -q "weighbridge clean --owner ${lost##*/}" "$tmp/err" || tail -n 2 "$tmp/err"
"$wb" clean --owner "${lost##*/}" --store "$tmp/none.git" --wait-for-host 600 >"$tmp/clean" 2>&1
is "it needs no store" 0 $?
check "it says what it removed" grep -qE '^0 interrupted campaigns closed, 0 attempts recorded, [1-9]' "$tmp/clean" || cat "$tmp/clean"
check "and makes none" [ ! -e "$tmp/none.git" ]
"$wb" clean --store "$tmp/none.git" >"$tmp/clean" 2>&1
is "without --owner a store is needed" 21 $?
"$wb" clean --owner ../x --store "$tmp/none.git" >"$tmp/clean" 2>&1
check "an owner that cannot be one is refused, here $?" grep -q 'not the id of an owner' "$tmp/clean"
# Its unfinished campaign is nobody's any more.
rm -rf "$WB_STATE/campaigns/$(campaign_of lost)"
nothing_left "an owner without a store"

# --- strangers ---

# A process called like ours, a container without marks, a group of somebody else with a process
# in it: none is touched by anything.
mkdir -p "$tmp/stranger"
cp "$(command -v tail)" "$tmp/stranger/redis-server"
"$tmp/stranger/redis-server" -f /dev/null 8>&- &
stranger=$!
end_stranger() {
    [ -n "$stranger" ] && kill "$stranger" && wait "$stranger" 2>/dev/null
    stranger=
}
cleanup+=(end_stranger)
with_strangers=$(snapshot)
start with "$aa" "${short[@]}" -f workload.phases.max.for=5s
within 700 says with '  max'
kill -9 "$pid"
wait "$pid" 2>/dev/null
clean
is "a stranger's process lives on" "$with_strangers" "$(snapshot)"
check "it does" kill -0 "$stranger"
# What another owner's dead engine left: refused, and never cleaned up by us.
start other "$aa" "${short[@]}" -f workload.phases.max.for=300s # longer than all of this takes
within 700 says other '  max'
kill -9 "$pid"
wait "$pid" 2>/dev/null
"$wb" run "$aa" "${short[@]}" --store "$tmp/b.git" >/dev/null 2>"$tmp/second"
is "living leftovers of another owner: refused" 22 $?
check "with the way out" grep -q "weighbridge clean --store $store" "$tmp/second"
left=$(snapshot)
"$wb" clean --store "$tmp/b.git" >"$tmp/clean" 2>&1
is "another owner's clean touches nothing of it" "$left" "$(snapshot)"
owner=$(git --git-dir="$store" symbolic-ref HEAD)
"$wb" clean --store "$tmp/b.git" --owner "${owner##*/}" >"$tmp/clean" 2>&1
is "unless it is told whose things to remove" 0 $?
check "then no group is left" [ -z "$(find /sys/fs/cgroup -type d -path '*weighbridge/*' | grep -vFf "$tmp/others")" ]
clean
is "and the attempt is recorded by its own store" "harness-error clean" "$(newest)"
is "strangers still live on" "$with_strangers" "$(snapshot)"
end_stranger

is "nothing is left at the end" "$before" "$(snapshot)"
check "the store is whole" git --git-dir="$store" fsck --full --strict --no-progress
check "and verified" "$wb" verify --all --store "$store"
summary
