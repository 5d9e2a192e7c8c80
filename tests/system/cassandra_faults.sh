#!/bin/bash
# What goes wrong with real nodes, each cause with its outcome and reason, and nothing left after it:
# nodes that die, do not join, lie about themselves or fill their disk, operations that fail, engines
# that are killed. The jars come through Maven; without it nothing of this can be tried.
# shellcheck disable=SC2016 # the texts of spoilt steps expand their own variables
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
# shellcheck source=tests/support/lib.sh
. tests/support/lib.sh
export WB_STATE=$build/test/state WB_RECIPES=recipes
if [ "$(id -u)" -ne 0 ] || [ "$(nproc)" -lt 2 ]; then
    echo "skipped: nodes need root and 2 CPUs"
    summary
    exit
elif ! "$wb" artifacts fetch cassandra --version 5.0.9 >"$tmp/out" 2>"$tmp/said"; then
    echo "skipped: the jars are not to be had here: $(tail -n 1 "$tmp/said")"
    summary
    exit
fi
alone
store=$tmp/store.git

# Two small nodes that start fast and never get quick.
cat >"$tmp/faults.yaml" <<'STUDY'
study: cassandra-faults
recipe: {name: cassandra, version: "5.0.9"}
hosts: {pool: local, database: 1, load: 1}
factors:
  form: [native x2]
  setting.jit: [quick]
  setting.pretouch: ["no"]
  setting.ring_delay_ms: [5000]
topology: cluster
share: instance
memory: 1GiB
workload:
  data: {rows: 200, key: 16B, value: {size: 64B}}
  phases:
    - {name: load, op: insert, order: sequential, connections: 2}
    - {name: read, op: get, keys: uniform, connections: 2, depth: 2, rate: max, warm_up: 0s, for: 4s}
rounds: 1
validity: {accept: [valid, noisy]}
STUDY
faults=("$tmp/faults.yaml" --wait-for-host 1800)

# well NAME: the run came through; what a busy host says of its figures does not matter here.
well() {
    check "$1: ends with 0 or 14, here $rc" [ "$rc" -eq 0 -o "$rc" -eq 14 ] || tail -n 3 "$tmp/err"
    is "$1: ok" "ok clean" "$(newest)"
    nothing_left "$1"
}
run_spoilt() { WB_RECIPES=$spoilt run "${faults[@]}" "$@"; }
spoilt_one=cassandra

run "${faults[@]}" -f 'form=native x2, docker x1'
rc=$?
check "two nodes natively, one in a container: ends with 0 or 14, here $rc" [ $rc -eq 0 -o $rc -eq 14 ] || tail -n 3 "$tmp/err"
keep_prefixes
before=$(snapshot)

# --- nodes ---

start died "${faults[@]}" -f workload.phases.read.for=30s
within 1800 says died '  read'
kill -9 "$(group_pids db1 | head -n 1)"
wait "$pid"
rc=$?
outcome "a node killed under load" 12 "sut-error clean" 'instance 1 was ended by signal 9'

# The heap is there from the start and does not fit: the kernel ends the node.
for form in native docker; do
    run "${faults[@]}" -f "form=$form x1" -f setting.pretouch=yes -f setting.heap=984MiB
    rc=$?
    outcome "$form, killed for memory" 12 "sut-error clean" 'was killed for memory (limit 1073741824 bytes)'
done

# The second node calls its cluster by another name: both serve, and never become one ring.
fresh_recipes
limit ready 3m
sed -i 's/FILL_CLUSTER=weighbridge/FILL_CLUSTER="weighbridge$WB_INSTANCE"/' "$spoilt/cassandra/steps/configure"
run_spoilt
rc=$?
outcome "a node that does not join" 12 "sut-error clean" 'instance 1 did not get ready within 180 s: 127.0.0.1 is UJ'

# One node of two says that it is another version; one runs with another setting than its file had.
fresh_recipes
sed -i 's/printf "{\\"version\\":%s/if (ENVIRON["WB_INSTANCE"] == 1) version = "5.0.8"; &/' "$spoilt/cassandra/steps/probe"
run_spoilt
rc=$?
outcome "another version on one node" 13 "inconsistent clean" 'node 2 runs 5.0.8'
fresh_recipes
sed -i 's/^concurrent_writes: .*/concurrent_writes: 48/' "$spoilt/cassandra/files/cassandra.yaml"
run_spoilt -f 'form=native x1'
rc=$?
outcome "a setting that the node did not take" 13 "inconsistent clean" "setting concurrent_writes: asked '32', found '48'"
fresh_recipes
sed -i "s/'rows_per_partition': '\$rows'/'rows_per_partition': 'NONE'/" "$spoilt/cassandra/steps/ready"
run_spoilt -f 'form=native x1' -f setting.row_cache_size=16MiB
rc=$?
outcome "a row cache that the table does not use" 13 "inconsistent clean" 'but the table does not use it'

# --- operations ---

# with_ops LIST [FOR]: $tmp/ops.yaml, the same study with operations in a longer phase.
with_ops() { sed -E "s/for: 4s\}/for: ${2:-40s}, during: [$1]}/; s/^study: .*/study: cassandra-ops/" "$tmp/faults.yaml" >"$tmp/ops.yaml"; }
operate() { # STUDY-ARGS...
    run "$tmp/ops.yaml" --wait-for-host 1800 "$@"
}
operate_spoilt() { WB_RECIPES=$spoilt operate "$@"; }
with_ops '{at: 1s, do: flush}, {at: 2s, do: restart}'
operate -f 'form=native x1'
rc=$?
well "flush and restart under load"
"$wb" show "$(json id <"$tmp/newest")" --store "$store" --json >"$tmp/run"
is "both are in the record" "flush restart" "$(perl -MJSON::PP -e '
    local $/; my ($p) = grep { $_->{name} eq "read" } @{decode_json(<STDIN>)->{phases}};
    print join " ", map { $_->{do} } grep { $_->{seconds} > 0 && $_->{during}{intervals} > 0 } @{$p->{during}}' <"$tmp/run")"
# The ring grows and shrinks again; a busy host takes its time for it.
with_ops '{at: 1s, do: add}, {at: 2s, do: cleanup, instance: first}, {at: 3s, do: repair}, {at: 4s, do: decommission}' 240s
operate
rc=$?
well "a node joins and leaves under load"
"$wb" show "$(json id <"$tmp/newest")" --store "$store" --json >"$tmp/run"
is "no row was lost on the way" 0 "$(perl -MJSON::PP -e '
    local $/; my ($p) = grep { $_->{name} eq "read" } @{decode_json(<STDIN>)->{phases}}; print $p->{load}{misses}' <"$tmp/run")"
with_ops '{at: 1s, do: restart}'
operate -f 'form=docker x1'
rc=$?
well "a container restarted under load"

fresh_recipes
recipe_step flush <<<'echo "the node said no" >&2; exit 3'
with_ops '{at: 1s, do: flush}'
operate_spoilt -f 'form=native x1'
rc=$?
outcome "an operation that fails" 12 "sut-error clean" 'phase read: flush on instance 0 failed (status 3): the node said no'
fresh_recipes
sed -i -E 's/(name: flush, kind: work, limit:) 5m/\1 2s/' "$spoilt/cassandra/recipe.yaml"
recipe_step flush <<<'tail -f /dev/null'
operate_spoilt -f 'form=native x1'
rc=$?
outcome "an operation over its limit" 12 "sut-error clean" 'phase read: flush on instance 0 was not done within 2 s: its step still ran'
# A node that says it has left and has not: the others know better.
fresh_recipes
sed -i -E 's/(name: decommission, kind: leave, limit:) 10m/\1 15s/' "$spoilt/cassandra/recipe.yaml"
recipe_step decommission <<<'echo "{}"'
with_ops '{at: 1s, do: decommission}'
operate_spoilt
rc=$?
outcome "a ring that is not as it should be" 12 "sut-error clean" '127.0.0.2 is UX'
fresh_recipes
rm "$spoilt/cassandra/steps/flush"
with_ops '{at: 1s, do: flush}'
operate_spoilt -f 'form=native x1'
is "an operation without its step: exit 2" 2 $?

# --- data that is kept ---

# Loaded once, taken in the second round: by the files of the first, whole, with the page cache empty.
run "${faults[@]}" --rounds 2 -f reuse=data -f page_cache=dropped
rc=$?
well "data kept for the next round"
"$wb" list --json --store "$store" | perl -MJSON::PP -e '
    local $/; print "$_->{id}\n" for @{decode_json(<STDIN>)->{items}}[0, 1]' >"$tmp/two"
"$wb" show "$(sed -n 1p "$tmp/two")" --store "$store" --json >"$tmp/second"
"$wb" show "$(sed -n 2p "$tmp/two")" --store "$store" --json >"$tmp/first"
is "the first round loaded it" "false" "$(json data.reused <"$tmp/first" | sed 's/^0$/false/')"
is "the second took that of the first" "$(sed -n 2p "$tmp/two")" "$(json data.of_run <"$tmp/second")"
is "and loaded nothing" "read" "$(perl -MJSON::PP -e 'local $/; print join " ", map { $_->{name} } @{decode_json(<STDIN>)->{phases}}' <"$tmp/second")"
is "every row was there" 0 "$(perl -MJSON::PP -e '
    local $/; my ($p) = grep { $_->{name} eq "read" } @{decode_json(<STDIN>)->{phases}}; print $p->{load}{misses} // 0' <"$tmp/second")"

# --- the disk ---

disk=$tmp/disk
mkdir "$disk"
truncate -s 1200M "$tmp/disk.img"
mkfs.ext4 -q -m 0 "$tmp/disk.img"
mount -o loop "$tmp/disk.img" "$disk"
cleanup+=("umount -l $disk")
mkdir -p "$disk/state/cache/artifacts"
cp -R "$WB_STATE/cache/artifacts/cassandra" "$disk/state/cache/artifacts/"
on_disk() { WB_STATE=$disk/state "$wb" "$@" --store "$disk/store.git" 8>&-; }
on_disk run "${faults[@]}" -f 'form=native x1' -f workload.data.rows=60000 -f workload.data.value.size=16KiB \
    -f setting.compressor=none >"$tmp/out" 2>"$tmp/err"
is "a disk that the node fills: exit 13" 13 $? || tail -n 3 "$tmp/err"
on_disk list --json | json items.0 >"$tmp/newest"
is "a disk that the node fills: infra-error" infra-error "$(json outcome <"$tmp/newest")" || reasons
check "a disk that the node fills: says so" grep -q 'the disk is full' "$tmp/newest" || reasons
on_disk clean --wait-for-host 600 >"$tmp/clean" 2>&1
nothing_left "a disk that the node fills"

# --- the engine ---

for phase in deploy ready load read teardown; do
    for form in 'native x2' 'docker x1'; do
        start kill "${faults[@]}" -f "form=$form"
        within 1800 says kill "^run 1/1 .*  $phase" || bad "$form: $phase is reached" "$(tail -n 3 "$tmp/kill")"
        kill -9 "$pid"
        wait "$pid" 2>/dev/null
        clean
        is "$form: clean after kill -9 in $phase" 0 $?
        nothing_left "$form: kill -9 in $phase"
        is "$form: kill -9 in $phase, the record" "harness-error clean" "$(newest)"
    done
done
# In the middle of an operation.
with_ops '{at: 1s, do: restart}'
start kill "$tmp/ops.yaml" --wait-for-host 1800 -f 'form=native x1'
within 1800 says kill '  read'
within 60 grep -q '"run.operation"' "$WB_STATE/campaigns/$(campaign_of kill)/events.ndjson"
kill -9 "$pid"
wait "$pid" 2>/dev/null
clean
is "clean after kill -9 in an operation" 0 $?
nothing_left "kill -9 in an operation"

is "nothing is left at the end" "$before" "$(snapshot)"
check "the store is whole" git --git-dir="$store" fsck --full --strict --no-progress
"$wb" verify --all --store "$store" >"$tmp/out" 2>&1
is "and verified" 0 $?
summary
