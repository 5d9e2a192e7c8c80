#!/bin/bash
# Every cause of a failed run, each with its outcome: databases and load workers that die, hang or
# lie, steps that hang, full disks, taken ports, missing images. After each of them nothing may be
# left, and every attempt has a record. Cancelling is in control.sh, killing the engine in fire.sh.
# shellcheck disable=SC2016 # the texts of spoilt steps expand their own variables
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

run_spoilt() { WB_RECIPES=$spoilt run "$spoilt/redis/studies/aa.yaml" "${short[@]}"; }

run "$aa" "${short[@]}"
run recipes/redis/studies/forms.yaml "${short[@]}" -f workload.phases.latency.for=200ms \
    -f workload.phases.latency.warm_up=0s
before=$(snapshot)
keep_prefixes

# --- the database ---

start died "$aa" "${short[@]}" -f workload.phases.max.for=5s
within 700 says died '  max'
kill -9 "$(group_pids db0 | head -n 1)"
wait "$pid"
rc=$?
outcome "a killed database" 12 "sut-error clean" 'signal 9'

for form in native docker; do
    run "$aa" "${short[@]}" -f "factors.form=[$form x1]" -f memory=64MiB -f workload.data.rows=100000
    rc=$?
    outcome "$form, too little memory" 12 "sut-error clean" 'killed for memory'
done

fresh_recipes
limit ready 1s
recipe_step ready <<<'exit 75'
run_spoilt
rc=$?
outcome "a database that does not get ready" 12 "sut-error clean" 'did not get ready within 1 s'

recipe_step probe <<'STEP'
cat "$WB_RECIPE_DIR/files/answer.json"
STEP
cp recipes/redis/steps/ready "$spoilt/redis/steps/ready"
while read -r words answer; do
    printf '%s\n' "$answer" >"$spoilt/redis/files/answer.json"
    run_spoilt
    rc=$?
    outcome "probe says $answer" 13 "inconsistent clean" "$words"
done <<'CASES'
7.0.150 {"version": "7.0.150", "settings": {}}
unknown {"version": null, "settings": {}}
maxmemory {"version": "7.0.15", "settings": {"maxmemory": "1"}}
CASES

# --- steps that hang, in each place ---

while read -r name rc_wanted words_wanted text; do
    fresh_recipes
    limit "$name" 1s
    recipe_step "$name" <<<'tail -f /dev/null'
    run_spoilt
    rc=$?
    outcome "a hung step $name" "$rc_wanted" "$words_wanted clean" "$text"
done <<'CASES'
configure 13 infra-error step configure
ready 12 sut-error did not get ready
probe 13 inconsistent unknown
measure 12 sut-error step measure
CASES
fresh_recipes
limit stop 1s
recipe_step stop <<<'tail -f /dev/null'
run_spoilt
rc=$?
check "a hung step stop does no harm, here exit $rc" [ $rc -eq 0 -o $rc -eq 14 ]
is "a hung step stop: ok" "ok clean" "$(newest)"
nothing_left "a hung step stop"

# Teardown steps that fail and hang: all are tried, the run keeps its outcome, the host is held back
# until a clean-up succeeds.
fresh_recipes
limit unmount 1s
recipe_step clean <<<'echo clean >>"$WB_DATA_DIR/../../tried"; echo "device busy" >&2; exit 1'
recipe_step unmount <<<'echo unmount >>"$WB_DATA_DIR/../../tried"; tail -f /dev/null'
recipe_step wipe <<<'echo wipe >>"$WB_DATA_DIR/../../tried"; echo "{}"'
run_spoilt
is "teardown that fails: exit 16" 16 $?
is "teardown that fails: the outcome stays" "ok incomplete" "$(newest)"
is "all steps of the teardown were tried" "clean unmount wipe" "$(cat "$WB_STATE"/campaigns/*/runs/*/tried | xargs)"
for words in 'clean: ' 'device busy' 'unmount: ' 'did not end within 1.0 s'; do
    check "the record says '$words'" grep -qF -- "$words" "$tmp/newest"
done
run "$aa" "${short[@]}"
is "a host in quarantine is refused" 22 $?
check "and the way out is told" grep -qF "weighbridge clean --store $store" "$tmp/err"
check "with what is left" grep -qF 'device busy' "$tmp/err"
"$wb" run "$aa" "${short[@]}" --store "$tmp/other.git" >/dev/null 2>"$tmp/err"
is "another controller is refused as well" 22 $?
clean
is "a clean that fails says so" 16 $?
check "and names the steps" grep -q 'step unmount of instance 0' "$tmp/clean"
run "$aa" "${short[@]}"
is "and the host stays in quarantine" 22 $?
recipe_step clean <<<'echo "{}"'
recipe_step unmount <<<'echo "{}"'
clean
is "a clean that succeeds gives the host free" 0 $?
nothing_left "after the quarantine"
run "$aa" "${short[@]}"
rc=$?
check "and it is used again, here exit $rc" [ $rc -eq 0 -o $rc -eq 14 ]
# The same after a failed deploy.
fresh_recipes
recipe_step configure <<<'exit 1'
recipe_step clean <<<'exit 3'
run_spoilt
is "teardown after a failed deploy: exit 16" 16 $?
is "teardown after a failed deploy is judged apart" "infra-error incomplete" "$(newest)"
recipe_step clean <<<'echo "{}"'
clean
is "and cleaned up" 0 $?

# --- the infrastructure ---

taken() { # FROM TO: something listens on every port between
    perl -MIO::Socket::INET -e '
        my @s = map { IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => $_, Listen => 1, ReuseAddr => 1) } $ARGV[0] .. $ARGV[1];
        $| = 1; print "up\n"; sleep 600' "$1" "$2" >"$tmp/taken" 8>&- &
    holder=$!
    within 10 grep -q up "$tmp/taken"
}
fresh_recipes
recipe_step configure <<<'echo "$WB_PORT" >"$WB_RECIPE_DIR/../../port"; exit 1'
run_spoilt
port=$(cat "$tmp/port")
taken "$port" $((port + 400))
run "$aa" "${short[@]}"
rc=$?
kill "$holder"
wait "$holder" 2>/dev/null
outcome "all ports taken" 13 "infra-error clean" 'no free port'
# Taken between the look and the start.
fresh_recipes
{
    cat recipes/redis/steps/configure
    cat <<'STEP'
env -u WB_MARK perl -MIO::Socket::INET -MPOSIX -e '
    my $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => $ARGV[0], Listen => 1,
        ReuseAddr => 1) or exit 1;
    exit if fork; setsid; chdir "/"; open STDOUT, ">/dev/null"; open STDERR, ">/dev/null";
    open my $f, ">", $ARGV[1]; print $f $$; close $f; sleep 600' "$WB_PORT" "$WB_RECIPE_DIR/../../holder"
STEP
} >"$spoilt/redis/steps/configure"
run_spoilt
rc=$?
outcome "a port taken meanwhile" 13 "infra-error clean" 'was taken by another program'
check "and the stranger who took it lives on" kill "$(cat "$tmp/holder")"

# The image goes between two runs of a campaign.
start image recipes/redis/studies/forms.yaml "${short[@]}" --rounds 6 -f 'factors.form=[docker x1]' \
    -f workload.phases.latency.for=200ms -f workload.phases.latency.warm_up=0s
within 700 says image 'run 1/6 .*  teardown'
while read -r id; do
    curl -s -X DELETE --unix-socket "$WB_DOCKER_SOCKET" "http://engine/images/$id?force=1" >/dev/null
done < <(engine_get '/images/json?filters=%7B%22label%22:%5B%22wb.image.content%22%5D%7D' | grep -o 'sha256:[0-9a-f]*","Labels' | cut -d'"' -f1)
wait "$pid"
rc=$?
is "a missing image: exit 13" 13 $rc
is "a missing image: infra-error" "infra-error clean" "$(newest)"
check "a missing image is named" grep -qi 'no such image' "$tmp/newest" || reasons
run recipes/redis/studies/forms.yaml "${short[@]}" -f 'factors.form=[docker x1]' \
    -f workload.phases.latency.for=200ms -f workload.phases.latency.warm_up=0s
before=$(snapshot) # the image is another one

# A disk that the database fills, and one that somebody else fills. State and store are on it.
disk=$tmp/disk
mkdir "$disk"
truncate -s 900M "$tmp/disk.img"
mkfs.ext4 -q -m 0 "$tmp/disk.img"
mount -o loop "$tmp/disk.img" "$disk"
cleanup+=("umount -l $disk")
mkdir "$disk/state"
cp -R "$WB_STATE/cache" "$disk/state/"
on_disk() { WB_STATE=$disk/state "$wb" "$@" --store "$disk/store.git" 8>&-; }
on_disk run "$aa" "${short[@]}" -f 'factors.setting.appendonly=yes' -f memory=2GiB -f workload.data.rows=250000 \
    >"$tmp/out" 2>"$tmp/err"
is "a disk filled by the database: exit 13" 13 $?
on_disk list --json | json items.0 >"$tmp/newest"
is "a disk filled by the database: infra-error" infra-error "$(json outcome <"$tmp/newest")"
check "a disk filled by the database: says so" grep -q 'the disk is full' "$tmp/newest" || reasons
on_disk run "$aa" "${short[@]}" -f workload.phases.max.for=4s >"$tmp/out" 2>"$tmp/full" &
pid=$!
within 60 says full '  max'
cat /dev/zero >"$disk/hog" 2>/dev/null
wait "$pid"
is "a disk filled by others: exit 13" 13 $?
check "a disk filled by others: the error says so" grep -q 'No space left' "$tmp/full" || cat "$tmp/full"
rm -f "$disk/hog"
on_disk clean >"$tmp/clean" 2>&1
is "a disk filled by others: clean once there is room" 0 $?
on_disk list --json | json items.0 >"$tmp/newest"
is "a disk filled by others: the attempt is an infra-error" infra-error "$(json outcome <"$tmp/newest")"
check "a disk filled by others: the store is whole" git --git-dir="$disk/store.git" fsck --full --strict --no-progress
on_disk verify --all >/dev/null
is "a disk filled by others: and verified" 0 $?
nothing_left "full disks"

# --- the load worker ---

with_load() { # MODE ARGS...
    local mode=$1
    shift
    ln -sf "$PWD/tests/support/fake-load" "$tmp/fake-load.$mode"
    WB_LOAD=$tmp/fake-load.$mode run "$aa" "${short[@]}" "$@"
}
while read -r mode wanted exit_code words; do
    with_load "$mode"
    rc=$?
    outcome "load worker '$mode'" "$exit_code" "$wanted clean" "$words"
done <<'CASES'
silent harness-error 13 no result
nosummary harness-error 13 no result
zero sut-error 12 no operation succeeded
kill harness-error 13 signal 9
status harness-error 13 status 5
fail harness-error 13 status 1
short harness-error 13 measured for 0.10 s
sums inconsistent 13 1001 operations scheduled
noconn sut-error 12 took no connection
hang harness-error 13 over its time
CASES
is "no figure is kept of a load worker without a result" '{}' "$(json metrics <"$tmp/newest")"

# A tree of processes behind the load worker: none of it outlives a cancel, or a killed engine.
ln -sf "$PWD/tests/support/fake-load" "$tmp/fake-load.tree"
for how in INT KILL; do
    WB_LOAD=$tmp/fake-load.tree start tree "$aa" "${short[@]}" -f workload.phases.max.for=60s
    within 60 says tree '  max'
    within 10 pgrep -f 'tail -f /dev/null' >/dev/null
    kill "-$how" "$pid"
    began=$SECONDS
    wait "$pid" 2>/dev/null
    [ "$how" = KILL ] && clean
    check "SIG$how: the tree is gone within 15 s" [ $((SECONDS - began)) -le 15 ]
    nothing_left "a tree of processes and SIG$how"
done

is "nothing is left at the end" "$before" "$(snapshot)"
check "the store is whole" git --git-dir="$store" fsck --full --strict --no-progress
check "and verified" "$wb" verify --all --store "$store"
summary
