#!/bin/bash
# wb-load against a real Redis cluster of three nodes and a replica: it finds the nodes from one of
# them, follows slots that move while load goes on, and the replica that takes the place of a master.
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
# shellcheck source=tests/support/lib.sh
. tests/support/lib.sh
load=$build/wb-load
pids=()
base=$((12000 + $$ % 1000 * 4)) # the port of the bus, 10000 above, is none that the kernel gives away
cleanup=(stop_all)

stop_all() {
    local pid
    for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null; done
    wait 2>/dev/null
}
if ! command -v redis-server >/dev/null || ! command -v redis-cli >/dev/null; then
    echo "skipped: no redis-server"
    summary
    exit 0
fi

# start N: node N.
start() {
    mkdir -p "$tmp/node$1"
    redis-server --port $((base + $1)) --cluster-enabled yes --cluster-config-file nodes.conf \
        --cluster-node-timeout 1500 --save '' --appendonly no --repl-diskless-sync-delay 0 \
        --dir "$tmp/node$1" >"$tmp/node$1/log" 2>&1 &
    pids[$1]=$!
}
node() { redis-cli -p $((base + $1)) "${@:2}"; }
answers() { node "$1" ping >/dev/null; }
run() {
    rm -f "$tmp/result"
    timeout 90 "$load" "resp://127.0.0.1:$((base + 1))" --quiet -o "$tmp/result" \
        --keys 3000 --value 64 --connections 6 "$@" 2>"$tmp/messages"
    code=$?
}
result() { if [ -s "$tmp/result" ]; then json "$1" <"$tmp/result"; else echo no-result; fi; }
error() { result "errors.$1" | sed 's/null/0/'; }
holds() { awk "BEGIN { exit !($1) }"; }
# Slots from one node to another.
reshard() {
    redis-cli --cluster reshard "127.0.0.1:$((base + 1))" --cluster-from "$(node "$1" cluster myid)" \
        --cluster-to "$(node "$2" cluster myid)" --cluster-slots "$3" --cluster-yes >"$tmp/said" 2>&1
}
complete() { node 1 cluster info | grep -q '^cluster_state:ok'; }
linked() { node 4 info replication | grep -q 'master_link_status:up'; }

for n in 1 2 3 4; do start $n; done
for n in 1 2 3 4; do within 10 answers $n || bad "node $n" "does not start"; done

# A node that knows of no cluster, one whose cluster has no slots yet.
run --split cluster --for 1s
is "no slots yet: exit 3" 3 "$code"
check "no slots yet: says so" grep -q 'not complete' "$tmp/messages"

redis-cli --cluster create "127.0.0.1:$((base + 1))" "127.0.0.1:$((base + 2))" \
    "127.0.0.1:$((base + 3))" --cluster-yes >"$tmp/said" 2>&1 || bad "a cluster" "$(tail -n 1 "$tmp/said")"
within 60 complete || bad "the cluster" "does not become complete"

run --split cluster --load --verify 1 --depth 8 --ops 20000 --mix get=50,set=50
is "found from one node: operations" "20000 0" "$(result ok) $(result failed)"
is "found from one node: rows" "3000 0" "$(result data.rows) $(result data.mismatched)"
is "found from one node: nothing was sent on" 0 "$(result redirects)"
is "keys are on all three" "$(($(node 1 dbsize) + $(node 2 dbsize) + $(node 3 dbsize)))" 3000
run --split cluster --connections 2 --for 1s
is "too few connections for the nodes: exit 2" 2 "$code"
run --ops 300
check "a node alone sends others away" holds "$(error redirected) > 50 && $(result ok) > 50"
run --split cluster --transactions 'login=get,5..9&get@derived' --rate 200 --for 2s
is "transactions over nodes" "400 0" "$(result transactions.ok) $(result failed)"

# Slots move under load: nothing fails, keys are what they were.
run --split cluster --verify 1 --rate 2000 --for 5s --mix get=50,set=50 &
runner=$!
read -rt 1 <> <(:)
reshard 1 2 1500 || bad "slots move" "$(tail -n 1 "$tmp/said")"
wait $runner
is "slots move: operations" "10000 0 0" "$(result ok) $(result failed) $(result censored)"
check "slots move: some were sent on" holds "$(result redirects) > 0"
run --split cluster --verify 1 --depth 8 --for 3s &
runner=$!
read -rt 0.7 <> <(:)
reshard 2 1 700 || bad "slots move back" "$(tail -n 1 "$tmp/said")"
wait $runner
is "slots move in a closed loop: failed" 0 "$(result failed)"
check "slots move in a closed loop: some were sent on" holds "$(result redirects) > 0"

# A master dies: its replica takes its place, and its operations.
redis-cli --cluster add-node "127.0.0.1:$((base + 4))" "127.0.0.1:$((base + 1))" --cluster-slave \
    --cluster-master-id "$(node 2 cluster myid)" >"$tmp/said" 2>&1
within 60 linked || bad "a replica" "does not follow"
rm -f "$tmp/result"
"$load" "resp://127.0.0.1:$((base + 1))" --quiet -o "$tmp/result" --keys 3000 --value 64 --connections 6 \
    --split cluster --verify 1 --rate 1000 --for 80s --timeout 1s --mix get=50,set=50 2>"$tmp/messages" &
pids[5]=$!
read -rt 1 <> <(:)
kill -KILL "${pids[2]}"
# How soon the replica is promoted is Redis's own time. A master's stream has no reads: those are of
# the load.
follows() { node 4 info commandstats | grep -q '^cmdstat_get:'; }
check "a master dies: the load goes on at its replica" within 70 follows
kill -INT "${pids[5]}"
wait "${pids[5]}"
is "a master dies: sum" "$(result scheduled)" \
    "$(($(result ok) + $(result failed) + $(result dropped) + $(result censored)))"
check "a master dies: the others serve" holds "$(result ok) > 500"
check "a master dies: nothing wrong was read" [ "$(error mismatch)" -eq 0 ]
run --split cluster --ops 3000
is "afterwards all is well" "3000 0" "$(result ok) $(result failed)"

summary
