#!/bin/bash
# wb-load against its peers and against the truth, in one run: what it costs and whether it is honest.
# A row a claim: what was measured, the bar, ok or MISSED. A peer that is not there is skipped aloud.
#
#     PARTS     which parts, default "cpu cql node pause rates poisson delay overload errors"
#     PAIRS     of the comparison with peers, in the order A B B A (default 7)
#     DEPTHS    of the comparison (default "1 16 64")
#     MEMTIER   a memtier_benchmark built from its public source, outside of this tree
#     LATTE, GOYCSB  the same of latte (cargo install latte-cli) and go-ycsb
#     NODE_SECONDS   of load that warm the Cassandra node before it is measured on (default 60)
#     PRIORITY  what the programs of the parts on truth are started with, default "chrt -f 1" where
#             that is allowed: what else runs on the host then delays neither client nor server
#     B         the build folder
#
# The server has the last CPU, the client the first. Client CPU per operation is user and system time
# of the client's process over operations that the server counted. On a host that is busy with other
# things ratios hold; where the client says itself that it was disturbed, a part is tried again.
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
build=${B:-build}
parts=" ${PARTS:-cpu cql node pause rates poisson delay overload errors} "
pairs=${PAIRS:-7}
depths=" ${DEPTHS:-1 16 64} "
memtier=${MEMTIER:-$(command -v memtier_benchmark)}
latte=${LATTE:-$(command -v latte)}
goycsb=${GOYCSB:-$(command -v go-ycsb)}
load=$build/wb-load
priority=()
client_cpu=0
server_cpu=$(($(nproc) - 1))
port=$((21000 + $$ % 10000))
tmp=$(mktemp -d) || exit 2
server=
missed=0 skipped=0
trap 'stop_server; rm -rf -- "$tmp"' EXIT

[ "$(nproc)" -ge 2 ] || {
    echo "$0: needs two CPUs, one for the server" >&2
    exit 2
}
for program in "$load" "$build/support/responder" "$build/support/cql_responder" "$build/bench/load_ks"; do
    [ -x "$program" ] || ${MAKE:-make} --no-print-directory DEVELOPER=1 "$program" || exit 2
done

if [ -n "${PRIORITY+set}" ]; then
    read -ra priority <<<"$PRIORITY"
elif chrt -f 1 true 2>/dev/null; then
    priority=(chrt -f 1)
fi

# ---- rows ----

row() { printf '%-52s %-40s %-20s %s\n' "$@"; }
# judge WHAT MEASURED BAR EXPRESSION
judge() {
    if holds "$4"; then
        row "$1" "$2" "$3" ok
    else
        row "$1" "$2" "$3" MISSED
        missed=$((missed + 1))
    fi
}
skip() {
    row "$1" "$2" "$3" skipped
    skipped=$((skipped + 1))
}
holds() { awk "BEGIN { exit !($1) }" 2>/dev/null; }
calc() { awk "BEGIN { printf \"%.${2:-0}f\", $1 }"; }
# value FILE PATH: at a dotted path of a JSON document.
value() {
    perl -MJSON::PP -e 'local $/; my $d = JSON::PP->new->allow_nonref->decode(<STDIN>);
        for (split /\./, $ARGV[0]) { $d = ref $d eq "ARRAY" ? $d->[$_] : ref $d ? $d->{$_} : undef }
        print defined $d ? (ref $d ? JSON::PP->new->encode($d) : $d) : "null"' "$2" <"$1"
}
result() { value "$tmp/result" "$1"; }
served() { value "$tmp/served" "$1"; }
error() { result "errors.$1" | sed 's/null/0/'; }

# ---- servers ----

stop_server() {
    [ -n "$server" ] || return 0
    kill "$server" 2>/dev/null
    wait "$server" 2>/dev/null
    server=
}

# until_there COMMAND...
until_there() {
    local end=$((SECONDS + 10))
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || {
            echo "$0: the server does not start" >&2
            exit 2
        }
        read -rt 0.05 <> <(:)
    done
}
listening() { (exec 9<>"/dev/tcp/127.0.0.1/$port"); }

start_server() { # COMMAND...
    taskset -c "$server_cpu" "$@" >"$tmp/server.out" 2>&1 &
    server=$!
    until_there listening
}

# respond PROTOCOL OPTION...: our responder; afterwards its counts are in $tmp/served.
respond() {
    local protocol=$1
    shift
    rm -f "$tmp/served"
    start_server "${priority[@]}" "$build/support/responder" --protocol "$protocol" --port "$port" \
        --report "$tmp/served" "$@"
}

# run PROTOCOL OPTION...
run() {
    local protocol=$1
    shift
    rm -f "$tmp/result"
    "${priority[@]}" "$load" "$protocol://127.0.0.1:$port" --cpus $client_cpu --quiet \
        -o "$tmp/result" "$@"
}
disturbed() { result reasons | grep -qE '"code":"(run-queue|schedule-lag|steal|client-cpu)"'; }
# The responder's own CPU time: above 85 % it is the limit, not wb-load.
server_cpu_note() { calc "$(served cpu_percent)"; }

# ---- client CPU per operation ----

TIMEFORMAT='%3U %3S'
cpu() {
    { time taskset -c $client_cpu "$@" >"$tmp/out" 2>&1; } 2>&1 | awk '{ print $1 + $2 }'
}

# Operations that the server has counted so far.
calls_resp() { redis-cli -p "$port" info commandstats | sed -n 's/^cmdstat_get:calls=\([0-9]*\),.*/\1/p'; }
calls_memcached() {
    exec 9<>"/dev/tcp/127.0.0.1/$port"
    printf 'stats\r\nquit\r\n' >&9
    tr -d '\r' <&9 | awk '$2 == "cmd_get" { print $3 }'
    exec 9>&-
}

ours() { # PROTOCOL DEPTH N
    cpu "$load" "$1://127.0.0.1:$port" --cpus $client_cpu --connections 50 --depth "$2" \
        --keys 100000 --key-bytes 16 --value 3 --ops "$3" --quiet
}
redis_benchmark() {
    cpu redis-benchmark -p "$port" -c 50 -P "$2" -r 100000 -d 3 -n "$3" -t get -q
}
memtier_keys=(--key-prefix=k000000000 --key-minimum=1 --key-maximum=100000 --data-size=3
    --hide-histogram)
memtier() {
    local protocol=redis
    [ "$1" = memcached ] && protocol=memcache_text
    cpu "$memtier" -P $protocol -s 127.0.0.1 -p "$port" -t 1 -c 50 --pipeline="$2" \
        -n $(($3 / 50)) --ratio=0:1 --key-pattern=R:R "${memtier_keys[@]}"
}

# per_op CLIENT PROTOCOL DEPTH N: us of client CPU per operation that the server counted.
per_op() {
    local before after seconds
    before=$("calls_$2")
    seconds=$("$1" "$2" "$3" "$4")
    after=$("calls_$2")
    if [ $((after - ${before:-0})) -lt $(($4 * 99 / 100)) ]; then
        echo "$0: $1 made $((after - ${before:-0})) of $4 operations:" >&2
        tail -n 3 "$tmp/out" >&2
        echo nan
        return
    fi
    calc "1e6 * $seconds / ($after - ${before:-0})" 4
}

# Median of lines, and the 95 % interval of its bootstrap: "median low high".
summary() {
    perl -e 'srand 1; my @v = map { $_ + 0 } <STDIN>;
        sub med { my @s = sort { $a <=> $b } @_; my $n = @s;
            $n % 2 ? $s[$n / 2] : ($s[$n / 2 - 1] + $s[$n / 2]) / 2 }
        my @b = sort { $a <=> $b } map { med(map { $v[rand @v] } @v) } 1 .. 2000;
        printf "%.3f %.3f %.3f\n", med(@v), $b[50], $b[1949]'
}

# versus PEER PROTOCOL DEPTH N BAR: a bar of "-" is only told.
versus() {
    local peer=$1 protocol=$2 depth=$3 n=$4 bar=$5 i a b ratio low high
    : >"$tmp/ratio"
    : >"$tmp/a"
    : >"$tmp/b"
    for ((i = 0; i < pairs; i++)); do
        if ((i % 2 == 0)); then
            a=$(per_op ours "$protocol" "$depth" "$n")
            b=$(per_op "$peer" "$protocol" "$depth" "$n")
        else
            b=$(per_op "$peer" "$protocol" "$depth" "$n")
            a=$(per_op ours "$protocol" "$depth" "$n")
        fi
        [[ $a == nan || $b == nan ]] && continue
        calc "$a / $b" 5 >>"$tmp/ratio"
        echo >>"$tmp/ratio"
        echo "$a" >>"$tmp/a"
        echo "$b" >>"$tmp/b"
    done
    read -r ratio low high < <(summary <"$tmp/ratio")
    local what="CPU per operation, $protocol, depth $depth, ${peer/_/-}"
    local figures
    figures="$ratio [$low, $high]  $(summary <"$tmp/a" | cut -d' ' -f1)/$(summary <"$tmp/b" | cut -d' ' -f1) us"
    if [ "$bar" = - ]; then
        row "$what" "$figures" "-" told
    else
        judge "$what" "$figures" "<= $bar" "$(wc -l <"$tmp/ratio") == $pairs && $ratio <= $bar"
    fi
}

# Bars by depth: redis-benchmark, memtier.
bars=$'1 50000 0.65 0.65\n16 500000 0.60 -\n64 2000000 - 0.40'

cpu_resp() {
    if ! command -v redis-server >/dev/null || ! command -v redis-benchmark >/dev/null; then
        skip "CPU per operation, resp" "no redis-server, redis-benchmark" "-"
        return
    fi
    start_server redis-server --port "$port" --save '' --appendonly no
    "$load" "resp://127.0.0.1:$port" --load-only --keys 100000 --value 3 --depth 16 --quiet
    redis-benchmark -p "$port" -P 16 -r 100000 -d 3 -n 500000 -t set -q >/dev/null
    [ -n "$memtier" ] && "$memtier" -s 127.0.0.1 -p "$port" -t 1 -c 1 --pipeline=64 -n allkeys \
        --ratio=1:0 --key-pattern=P:P "${memtier_keys[@]}" >/dev/null 2>&1
    while read -r depth n redis_bar memtier_bar; do
        [[ $depths == *" $depth "* ]] || continue
        versus redis_benchmark resp "$depth" "$n" "$redis_bar"
        if [ -n "$memtier" ]; then
            versus memtier resp "$depth" "$n" "$memtier_bar"
        else
            skip "CPU per operation, resp, depth $depth, memtier" "not there: set MEMTIER" \
                "<= $memtier_bar"
        fi
    done <<<"$bars"
    stop_server
}

cpu_memcached() {
    if ! command -v memcached >/dev/null || [ -z "$memtier" ]; then
        skip "CPU per operation, memcached" "no memcached or no memtier (MEMTIER)" "-"
        return
    fi
    start_server memcached -u nobody -l 127.0.0.1 -p "$port" -m 256 -t 1
    "$load" "memcached://127.0.0.1:$port" --load-only --keys 100000 --value 3 --depth 16 --quiet
    "$memtier" -P memcache_text -s 127.0.0.1 -p "$port" -t 1 -c 1 --pipeline=64 -n allkeys \
        --ratio=1:0 --key-pattern=P:P "${memtier_keys[@]}" >/dev/null 2>&1
    while read -r depth n _ memtier_bar; do
        [[ $depths == *" $depth "* ]] && versus memtier memcached "$depth" "$n" "$memtier_bar"
    done <<<"$bars"
    stop_server
}

part_cpu() {
    cpu_resp
    cpu_memcached
}

# ---- CQL: the same 64 operations in flight, a canned server and a real one ----

# What a client says of itself: operations a second, p99 in ms.
told_ours() { echo "$(value "$tmp/own" achieved_per_s) $(value "$tmp/own" operations.all.service.p99_ms)"; }
told_latte() {
    echo "$(value "$tmp/latte.json" result.cycle_throughput.value) $(value "$tmp/latte.json" result.cycle_latency.percentiles.11.value)"
}
told_goycsb() {
    sed -n 's/^\(READ\|UPDATE\) .*OPS: \([0-9.]*\),.* 99th(us): \([0-9]*\),.*/\2 \3/p' "$tmp/out" |
        awk 'END { printf "%s %.3f\n", $1, $2 / 1000 }'
}

# CLIENT read|write N: one run, its CPU seconds.
cql_ours() {
    local op=get connections=$cql_connections
    [ "$1" = write ] && op="set"
    cpu "$load" "cql://127.0.0.1:$port" --cpus $client_cpu --native-protocol 4 --connections "$connections" \
        --depth $((64 / connections)) --keys 100000 --key-bytes 16 --value 100 --mix $op=1 --ops "$2" \
        --timeout 20s --quiet -o "$tmp/own"
}
cql_latte() {
    rm -f "$tmp/latte.json"
    cpu "$latte" --log-dir "$tmp" run -q -d "$2" -w 1 -p 64 -f "$1" -o "$tmp/latte.json" \
        tests/bench/latte_kv.rn "127.0.0.1:$port"
}
cql_goycsb() {
    local reads=1 updates=0
    [ "$1" = write ] && reads=0 updates=1
    cpu "$goycsb" run cassandra -p workload=core -p recordcount=100000 -p "operationcount=$2" -p fieldcount=1 \
        -p fieldlength=100 -p readproportion=$reads -p updateproportion=$updates -p insertproportion=0 \
        -p scanproportion=0 -p requestdistribution=uniform -p threadcount=64 -p cassandra.connections=2 \
        -p cassandra.keyspace=wb -p "cassandra.cluster=127.0.0.1:$port"
}

# Operations that the node has executed so far.
node_ops() {
    "$build/wb-ask" --limit 20s 127.0.0.1 "$port" \
        "SELECT value FROM system_views.cql_metrics WHERE name = 'prepared_statements_executed'" |
        awk '{ printf "%d", $2 }'
}

# cql_per_op CLIENT read|write N: "us of client CPU per operation that the server counted, operations a
# second, p99 ms".
cql_per_op() {
    local seconds ops before=0
    if [ "$cql_server" = canned ]; then
        start_server "$build/support/cql_responder" --port "$port" --version 4 --value 100 --report "$tmp/served"
    else
        before=$(node_ops)
    fi
    seconds=$("cql_$1" "$2" "$3")
    if [ "$cql_server" = canned ]; then
        stop_server
        ops=$(served ops)
    else
        ops=$(($(node_ops) - before))
    fi
    if [ "$ops" -lt $(($3 * 99 / 100)) ]; then
        echo "$0: $1 made $ops of $3 operations: $(tail -n 2 "$tmp/out" | tr '\n' ' ')" >&2
        echo nan
        return
    fi
    echo "$(calc "1e6 * $seconds / $ops" 4) $("told_$1")"
}

# cql_versus PEER read|write N BAR
cql_versus() {
    local peer=$1 op=$2 n=$3 bar=$4 i a b ratio low high what
    : >"$tmp/ratio"
    : >"$tmp/a"
    : >"$tmp/b"
    for ((i = 0; i < pairs; i++)); do
        if ((i % 2 == 0)); then
            a=$(cql_per_op ours "$op" "$n")
            b=$(cql_per_op "$peer" "$op" "$((n / cql_less))")
        else
            b=$(cql_per_op "$peer" "$op" "$((n / cql_less))")
            a=$(cql_per_op ours "$op" "$n")
        fi
        [[ $a == nan || $b == nan ]] && continue
        echo "${a%% *} ${b%% *}" | awk '{ printf "%.5f\n", $1 / $2 }' >>"$tmp/ratio"
        echo "$a" >>"$tmp/a"
        echo "$b" >>"$tmp/b"
    done
    read -r ratio low high < <(summary <"$tmp/ratio")
    what="CPU per operation, cql, $cql_server, $op, $peer"
    judge "$what" "$ratio [$low, $high]  $(column 1 a)/$(column 1 b) us" "<= $bar" \
        "$(wc -l <"$tmp/ratio") == $pairs && $ratio <= $bar"
    row "  operations a second; p99" \
        "$(calc "$(column 2 a)")/$(calc "$(column 2 b)"); $(column 3 a)/$(column 3 b) ms" - told
}
# column N FILE: the median of a column of the runs.
column() { cut -d' ' -f"$1" "$tmp/$2" | summary | cut -d' ' -f1; }

cql_rows() { # N: operations of a run
    local op
    for op in read write; do
        if [ -n "$latte" ]; then
            cql_connections=1 cql_less=1
            cql_versus latte $op "$1" 0.5
        else
            skip "CPU per operation, cql, $cql_server, $op, latte" "not there: set LATTE" "<= 0.5"
        fi
        if [ -n "$goycsb" ]; then
            cql_connections=2 cql_less=3
            cql_versus goycsb $op "$1" 0.2
        else
            skip "CPU per operation, cql, $cql_server, $op, go-ycsb" "not there: set GOYCSB" "<= 0.2"
        fi
    done
}

part_cql() {
    cql_server=canned
    cql_rows 300000
}

# A node by the recipe's steps, with the tables of all clients, warmed by their own load.
part_node() {
    local words
    cql_server=node
    "$(dirname -- "$0")/cassandra-node" "$tmp/node" >"$tmp/node.said" &
    server=$!
    for ((i = 0; i < 1200; i++)); do
        [ -s "$tmp/node.said" ] && break
        kill -0 $server 2>/dev/null || break
        read -rt 0.5 <> <(:)
    done
    read -ra words <"$tmp/node.said" || words=("it said nothing")
    if [ "${words[0]}" != ready ]; then
        skip "CPU per operation, cql, a Cassandra node" "${words[*]}" -
        stop_server
        return
    fi
    local kept=$port
    port=${words[2]}
    "$build/wb-ask" --limit 60s 127.0.0.1 "$port" "CREATE TABLE IF NOT EXISTS wb.usertable (YCSB_KEY VARCHAR PRIMARY KEY, FIELD0 VARCHAR)"
    "$load" "cql://127.0.0.1:$port" --load-only --keys 100000 --key-bytes 16 --value 100 --depth 32 --timeout 20s --quiet
    [ -n "$latte" ] && {
        "$latte" --log-dir "$tmp" schema tests/bench/latte_kv.rn "127.0.0.1:$port"
        cql_latte write 100000
    } >/dev/null 2>&1
    [ -n "$goycsb" ] && "$goycsb" load cassandra -p workload=core -p recordcount=100000 -p fieldcount=1 -p fieldlength=100 \
        -p threadcount=64 -p cassandra.keyspace=wb -p "cassandra.cluster=127.0.0.1:$port" >/dev/null 2>&1
    "$load" "cql://127.0.0.1:$port" --keys 100000 --key-bytes 16 --value 100 --depth 32 --mix get=50,set=50 \
        --for "${NODE_SECONDS:-60}s" --timeout 20s --quiet >/dev/null
    cql_rows 100000
    stop_server
    port=$kept
}

# ---- truth ----

# One stop of 1 s in 10 s at 2,000/s: the response time at share q is D - (1 - q) T.
part_pause() {
    local protocol=$1 q key want got worst
    for _ in 1 2 3; do
        respond "$protocol" --pause-at 4000 --pause-for 1000
        run "$protocol" --rate 2000/s --for 10s --connections 50
        stop_server
        worst=ok
        for q in 0.95 0.99 0.999; do
            key=p$(calc "100 * $q" 1 | sed 's/\.0$//; s/\./_/')_ms
            want=$(calc "$(served pause_ms) - (1 - $q) * 10000" 1)
            got=$(result "operations.all.response.$key")
            holds "$got - $want <= 30 + 0.05 * $want && $want - $got <= 30 + 0.05 * $want" || worst=off
        done
        [ $worst = ok ] && break
        disturbed || break
    done
    for q in 0.95 0.99 0.999; do
        key=p$(calc "100 * $q" 1 | sed 's/\.0$//; s/\./_/')_ms
        want=$(calc "$(served pause_ms) - (1 - $q) * 10000" 1)
        got=$(result "operations.all.response.$key")
        judge "stop of 1 s, $protocol: response p$(calc "100 * $q" 1)" \
            "$(calc "$got" 1) ms, truth $want ms" "5 % + 30 ms" \
            "$got - $want <= 30 + 0.05 * $want && $want - $got <= 30 + 0.05 * $want"
    done
}

part_rates() {
    local protocol=$1 rate seconds want issued
    while read -r rate seconds; do
        want=$((rate * seconds))
        for _ in 1 2 3; do
            respond "$protocol" --value 3
            run "$protocol" --rate "$rate/s" --for "${seconds}s" --connections 20
            stop_server
            issued=$(served requests)
            holds "($issued - $want)^2 <= (1 + 0.001 * $want)^2" && break
            disturbed || break
        done
        judge "issued at $rate/s for $seconds s, $protocol" \
            "$issued of $want, server CPU $(server_cpu_note) %" "1 + 0.1 %" \
            "($issued - $want)^2 <= (1 + 0.001 * $want)^2"
    done <<<$'1 10\n7 10\n1000 5\n10000 5\n100000 5\n300000 5'
}

part_poisson() {
    local protocol=$1 what n d limit
    respond "$protocol" --arrivals "$tmp/arrivals"
    run "$protocol" --rate 1000/s --arrivals poisson --for 10s --connections 50 --seed 7
    stop_server
    while read -r what n d limit; do
        if [ "$what" = intended ]; then
            judge "Poisson, intended times: KS distance, n $n" "$d" "<= $limit" "$d <= $limit"
        else
            judge "Poisson at 1k/s, seen by the $protocol server: n $n" "$d" "<= 0.08" "$d <= 0.08"
        fi
    done < <("$build/bench/load_ks" 1000/s 100000 7 "$tmp/arrivals")
}

# 99 % after 1 ms, 1 % after 50 ms.
part_delay() {
    local protocol=$1 low high
    respond "$protocol" --delay-us 1000 --slow-every 100 --slow-us 50000
    run "$protocol" --rate 500/s --for 10s --connections 100 --depth 1 --hdr "$tmp/hdr"
    stop_server
    low=$(percentile 98)
    high=$(percentile 99.5)
    judge "two-point delay, $protocol: p98" "$low ms" "1 to 25 ms" "$low >= 1 && $low < 25"
    judge "two-point delay, $protocol: p99.5" "$high ms" "50 to 75 ms" "$high >= 50 && $high < 75"
}

# percentile P: of the response times in the HDR log, ms.
percentile() {
    "$build/weighbridge" stats histogram "$tmp/hdr" --tag get.response --percentiles "$1" --json \
        >"$tmp/percentiles" 2>/dev/null
    calc "$(value "$tmp/percentiles" percentiles | sed 's/.*:\([0-9.]*\)}/\1/') / 1e6" 2
}

# Resident memory of a process in KiB, 0 when it is gone.
resident() { sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\).*/\1/p' "/proc/$1/status" 2>/dev/null || echo 0; }

part_overload() {
    local protocol=$1 pid early=0 late=0 now began=$SECONDS
    respond "$protocol" --rate 50000 --value 3
    "${priority[@]}" "$load" "$protocol://127.0.0.1:$port" --cpus $client_cpu --quiet \
        -o "$tmp/result" --rate 100000/s --for 10s --connections 50 --depth 16 --timeout 20s &
    pid=$!
    while kill -0 $pid 2>/dev/null; do
        now=$(resident $pid)
        [ $((SECONDS - began)) -le 3 ] && early=${now:-0}
        [ "${now:-0}" -gt 0 ] && late=$now
        read -rt 0.2 <> <(:)
    done
    wait $pid
    stop_server
    judge "100k/s on 50k/s for 10 s, $protocol: largest response" \
        "$(calc "$(result operations.all.response.max_ms) / 1000" 2) s, server CPU $(server_cpu_note) %" \
        "4.5 to 5.5 s" "$(result operations.all.response.max_ms) > 4500 && $(result operations.all.response.max_ms) < 5500"
    judge "  never served" "$(result censored) censored" "450k to 550k" \
        "$(result censored) > 450000 && $(result censored) < 550000"
    judge "  verdict" "$(result verdict)" server-bound "\"$(result verdict)\" == \"server-bound\""
    judge "  memory" "$(calc "$early / 1024" 1) MiB at 3 s, $(calc "$late / 1024" 1) MiB at the end" \
        "grows <= 4 MiB" "$early > 0 && $late - $early <= 4096"
    judge "  sums" "$(result scheduled) scheduled" "= what became of it" "$(sums)"
}

sums() { echo "$(result scheduled) == $(result ok) + $(result failed) + $(result dropped) + $(result censored)"; }

# At depth 1 a connection that fell silent is found by its one time-out and made again.
part_errors() {
    local protocol=$1
    respond "$protocol" --error-every 10 --silent-every 100
    run "$protocol" --rate 1000/s --for 10s --connections 200 --depth 1 --timeout 500ms
    stop_server
    judge "10 % errors, 1 % dropped, $protocol: errors" "$(error server)" "= $(served errors) planted" \
        "$(error server) == $(served errors) && $(served errors) == 900"
    judge "  time-outs" "$(error timeout)" "= $(served swallowed) dropped" \
        "$(error timeout) == $(served swallowed) && $(served swallowed) == 100"
    judge "  no other class" "$(result failed) failed" "= the two" \
        "$(result failed) == $(error server) + $(error timeout)"
    judge "  age of the oldest failure" "$(result failed_replies.max_ms) ms" "= 500 ms" \
        "$(result failed_replies.max_ms) == 500"
    judge "  sums" "$(result scheduled) scheduled" "= what became of it" "$(sums)"
}

echo "parts on truth with: ${priority[*]:-the usual priority}; load average $(cut -d' ' -f1-3 /proc/loadavg)"
row what measured bar ''
[[ $parts == *" cpu "* ]] && part_cpu
[[ $parts == *" cql "* ]] && part_cql
[[ $parts == *" node "* ]] && part_node
for protocol in resp memcached; do
    for part in pause rates poisson delay overload errors; do
        [[ $parts == *" $part "* ]] && "part_$part" "$protocol"
    done
done
echo "$missed missed, $skipped skipped"
[ "$missed" -eq 0 ]
