#!/bin/bash
# wb-load against servers that behave in known ways: does it tell the truth about pauses, rates,
# errors, overload and lost connections? The server's own counts are the reference.
# B names the build folder (default: build).
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
# shellcheck source=tests/support/lib.sh
. tests/support/lib.sh
load=$build/wb-load
last_cpu=$(($(nproc) - 1))
for program in "$load" "$build/support/responder"; do
    if [ ! -x "$program" ]; then
        bad "$program" "is not built"
        summary
        exit 1
    fi
done
server_pid=
other_pid=
cleanup=(stop_server stop_other)

# serve OPTION...: starts the responder on the last CPU; sets $port.
serve() {
    rm -f "$tmp/served"
    : >"$tmp/port"
    taskset -c "$last_cpu" "$build/support/responder" --report "$tmp/served" "$@" >"$tmp/port" &
    server_pid=$!
    within 5 grep -q '^port ' "$tmp/port" || bad "responder $*" "does not listen"
    port=$(sed -n 's/^port //p' "$tmp/port")
}

# Ends it; its report is in $tmp/served.
stop_server() {
    [ -n "$server_pid" ] || return 0
    kill "$server_pid" 2>/dev/null
    wait "$server_pid" 2>/dev/null
    server_pid=
}

stop_other() {
    [ -n "$other_pid" ] || return 0
    kill -KILL "$other_pid" 2>/dev/null
    wait "$other_pid" 2>/dev/null
    other_pid=
}

# run OPTION...: wb-load on the first CPU; sets $code, the result is in $tmp/result.
run() {
    rm -f "$tmp/result"
    "$load" --cpus 0 --quiet -o "$tmp/result" "$@" 2>"$tmp/messages"
    code=$?
}

# Of a document that is not there the value is a word that equals nothing else.
result() { if [ -s "$tmp/result" ]; then json "$1" <"$tmp/result"; else echo no-result; fi; }
served() { if [ -s "$tmp/served" ]; then json "$1" <"$tmp/served"; else echo not-served; fi; }
# error CLASS: how many, 0 when the class is not there.
error() { result "errors.$1" | sed 's/null/0/'; }
# holds EXPRESSION: a comparison of numbers.
holds() { awk "BEGIN { exit !($1) }"; }

sums() {
    holds "$(result scheduled) == $(result ok) + $(result failed) + $(result dropped) + $(result censored)"
}

# On a host that is busy with other things the client itself is late and says so; then the
# measurement is repeated.
disturbed() {
    result reasons | grep -qE '"code":"(run-queue|schedule-lag|steal|client-cpu)"'
}

# quantile NAME KEY SHARE: of a pause of D s in T s of arrivals is D - (1 - SHARE) * T.
quantile_is_right() {
    local want got
    want=$(awk "BEGIN { print $(served pause_ms) - (1 - $2) * 10000 }")
    got=$(result "operations.all.response.$1")
    holds "$got - $want < 30 + 0.05 * $want && $want - $got < 30 + 0.05 * $want"
}

test_pause() {
    local try
    for try in 1 2 3; do
        serve --pause-at 4000 --pause-for 1000
        run "resp://127.0.0.1:$port" --rate 2000 --for 10s --connections 50
        stop_server
        if quantile_is_right p95_ms 0.95 && quantile_is_right p99_ms 0.99 &&
            quantile_is_right p99_9_ms 0.999; then
            break
        fi
        disturbed || break
        echo "pause: try $try was disturbed"
    done
    check "pause: p95 within 5 % + 30 ms" quantile_is_right p95_ms 0.95
    check "pause: p99 within 5 % + 30 ms" quantile_is_right p99_ms 0.99
    check "pause: p99.9 within 5 % + 30 ms" quantile_is_right p99_9_ms 0.999
    is "pause: nothing is lost" 20000 "$(served requests)"
    is "pause: all succeed" 20000 "$(result ok)"
}

# The server's count of what was issued against rate x time.
test_rates() {
    local rate want issued try
    for rate in 1000 10000 100000; do
        want=$((rate * 3))
        for try in 1 2 3; do
            serve --value 3
            run "resp://127.0.0.1:$port" --rate "$rate" --for 3s --connections 20
            stop_server
            issued=$(served requests)
            holds "$issued >= $want - 1 - $want / 1000 && $issued <= $want + 1 + $want / 1000" && break
            disturbed || break
            echo "rate $rate: try $try was disturbed"
        done
        check "rate $rate/s: issued within 1 + 0.1 %" \
            holds "$issued >= $want - 1 - $want / 1000 && $issued <= $want + 1 + $want / 1000"
        is "rate $rate/s: scheduled exactly" "$want" "$(result scheduled)"
        check "rate $rate/s: the sums hold" sums
    done
    serve --value 3
    run "resp://127.0.0.1:$port" --rate 5000 --arrivals poisson --for 3s --connections 20 --seed 3
    stop_server
    check "poisson: about rate x time" holds "$(served requests) > 14500 && $(served requests) < 15500"
    is "poisson: what was scheduled was issued" "$(result scheduled)" "$(served requests)"
}

test_errors() {
    serve --error-every 10
    run "resp://127.0.0.1:$port" --ops 20000 --depth 4 --connections 5 --mix get=1,set=1
    stop_server
    is "errors: as many as the server planted" "$(served errors)" "$(error server)"
    is "errors: all of one class" 2000 "$(result failed)"
    check "errors: the sums hold" sums
    is "errors: the text is kept" "ERR planted" "$(result error_samples.0.text)"
    is "errors: too many fail the run" failed "$(result verdict)"
    is "errors: exit 4" 4 "$code"

    serve --silent-every 1500
    run "resp://127.0.0.1:$port" --ops 20000 --depth 4 --connections 5 --timeout 300ms
    stop_server
    is "time-outs: as many as the server swallowed" "$(served swallowed)" "$(error timeout)"
    check "time-outs: there were some" holds "$(error timeout) >= 13"
    is "time-outs: no other class" "$(error timeout)" "$(result failed)"
    check "time-outs: at full age" holds "$(result failed_replies.min_ms) == 300"
    check "time-outs: the sums hold" sums

    serve --silent-every 100
    run "resp://127.0.0.1:$port" --rate 500 --for 2s --connections 10 --timeout 200ms
    stop_server
    is "time-outs in open loop: as many as swallowed" "$(served swallowed)" "$(error timeout)"
    check "time-outs in open loop: in the response times" \
        holds "$(result operations.all.response.max_ms) >= 200 && $(result operations.all.response.count) == 1000"

    serve --close-every 1000
    run "resp://127.0.0.1:$port" --ops 20000 --connections 5
    stop_server
    is "closed: as many as the server closed" "$(served closed)" "$(error closed)"
    is "closed: 20" 20 "$(error closed)"
    check "closed: connected again" holds "$(served connections) >= 20"
    check "closed: the sums hold" sums

    serve --value 1024
    run "resp://127.0.0.1:$port" --ops 3000 --verify 1
    stop_server
    is "mismatch: every value is wrong" 3000 "$(error mismatch)"
    is "mismatch: nothing succeeded" no-success "$(result reasons.0.code)"
}

test_overload() {
    serve --rate 4000
    run "resp://127.0.0.1:$port" --rate 8000 --for 3s --connections 10 --depth 8 --timeout 10s
    stop_server
    is "overload: verdict" server-bound "$(result verdict)"
    is "overload: exit 4" 4 "$code"
    check "overload: serves what it can" \
        holds "$(result achieved_per_s) > 2500 && $(result achieved_per_s) < 4400"
    check "overload: what was never issued is censored" \
        holds "$(result censored) > 9000 && $(result censored) == $(result backlog_at_end)"
    check "overload: the response time grows without bound" \
        holds "$(result operations.all.response.max_ms) > 1200"
    check "overload: the sums hold" sums

    serve --rate 4000
    run "resp://127.0.0.1:$port" --rate 8000 --for 2s --connections 10 --depth 8 --catch-up drop
    stop_server
    check "drop: counted" holds "$(result dropped) > 6000"
    check "drop: times stay bounded" holds "$(result operations.all.response.p99_ms) < 500"
    check "drop: the sums hold" sums

    serve --pause-at 500 --pause-for 500
    run "resp://127.0.0.1:$port" --rate 2000 --for 3s --connections 2 --depth 1 --catch-up capped:1.5
    stop_server
    check "capped: late for longer than the pause" \
        holds "$(result operations.all.response.p90_ms) > 60 && $(result ok) + $(result censored) == 6000"
}

test_connection() {
    serve
    stop_server
    run "resp://127.0.0.1:$port" --for 1s
    is "no connection: exit 3" 3 "$code"
    is "no connection: verdict" failed "$(result verdict)"
    is "no connection: reason" no-connection "$(result reasons.0.code)"

    # The server dies in the middle and comes back on the same port.
    serve
    rm -f "$tmp/lines"
    "$load" "resp://127.0.0.1:$port" --cpus 0 --quiet -o "$tmp/result" --ndjson "$tmp/lines" \
        --rate 500 --for 4s --interval 200ms --connections 4 &
    other_pid=$!
    within 5 test -s "$tmp/lines" || bad "lost connection" "no interval line"
    kill -KILL "$server_pid"
    wait "$server_pid" 2>/dev/null
    server_pid=
    serve --port "$port"
    wait "$other_pid"
    code=$?
    other_pid=
    stop_server
    check "lost connection: connected again" holds "$(result client.reconnects) >= 4"
    check "lost connection: operations go on" holds "$(served requests) > 1000"
    check "lost connection: the sums hold" sums
    is "lost connection: none is down at the end" 0 \
        "$(result reasons | grep -c connection-lost)"
}

test_usage() {
    local args
    while IFS= read -r args; do
        # shellcheck disable=SC2086 # words
        run $args
        is "usage: $args" 2 "$code"
        check "usage: $args says why" test -s "$tmp/messages"
    done <<'EOF'

--rate
--depht 5 null://
--depth 0 null://
--depth x null://
--for 5 null://
--mix put=1 null://
--rate 0 null://
http://127.0.0.1:80
resp://127.0.0.1:99999
null:// null://
--job /nonexistent/job.json
EOF
    echo '{"target": "null://", "depht": 1}' | "$load" --job - >"$tmp/out" 2>&1
    is "usage: unknown key of a job" 2 $?
    check "usage: names it" grep -q "'depht'" "$tmp/out"
    "$load" --help >"$tmp/out"
    is "help: exit 0" 0 $?
    check "help: one screen" holds "$(wc -l <"$tmp/out") <= 42 && $(wc -L <"$tmp/out") <= 80"
}

# interrupt SIGNAL OPTION...
interrupt() {
    local signal=$1 name=$2
    shift 2
    rm -f "$tmp/result" "$tmp/lines"
    "$load" "resp://127.0.0.1:$port" --cpus 0 --quiet -o "$tmp/result" --ndjson "$tmp/lines" \
        --interval 100ms "$@" &
    other_pid=$!
    within 10 grep -q "\"phase\":\"$name\"" "$tmp/lines" 2>/dev/null ||
        bad "$signal in $name" "never got there"
    kill "-$signal" "$other_pid"
    within 3 gone "$other_pid" || bad "$signal in $name" "does not end"
    wait "$other_pid"
    is "$signal in $name: exit 130" 130 $?
    other_pid=
    check "$signal in $name: the sums hold" sums
    is "$signal in $name: says so" interrupted "$(result reasons.0.code)"
}

test_interrupt() {
    serve
    interrupt INT measure --rate 2000 --for 60s
    check "INT: what was done is there" holds "$(result ok) > 100 && $(result window.seconds) < 20"
    check "INT: steady rate until then" \
        holds "$(result achieved_per_s) > 1800 && $(result achieved_per_s) < 2200"
    interrupt TERM measure --for 60s
    interrupt INT warm-up --warm-up 60s --for 60s
    is "INT in warm-up: no window" null "$(result window)"
    interrupt INT load --load --keys 100M
    check "INT in load: rows so far" holds "$(result data.rows) > 0 && $(result data.rows) < 1e8"
    stop_server
}

test_outputs() {
    serve
    run "resp://127.0.0.1:$port" --rate 3000 --warm-up 300ms --for 1s --interval 250ms --threads 2 \
        --connections 6 --mix get=1,set=1 --ndjson "$tmp/lines" --hdr "$tmp/hdr"
    stop_server
    is "lines: all operations are in them" "$(served requests)" \
        "$(sed 's/.*"ok":\([0-9]*\).*/\1/' "$tmp/lines" | awk '{ n += $1 } END { print n }')"
    is "lines: warm-up and window" "4 2" \
        "$(grep -c '"phase":"measure"' "$tmp/lines") $(grep -c '"phase":"warm-up"' "$tmp/lines")"
    is "warm-up: apart from the window" "900 3000" \
        "$(result warm_up.all.count) $(result operations.all.count)"
    check "HDR log: format" grep -q '^#\[Histogram log format version 1.3\]' "$tmp/hdr"
    is "HDR log: tags" "get.lag get.response get.service set.lag set.response set.service" \
        "$(sed -n 's/^Tag=\([^,]*\),.*/\1/p' "$tmp/hdr" | sort -u | paste -sd' ')"
    "$load" null:// --for 20ms --quiet -o "$tmp/none/result" 2>"$tmp/messages"
    is "a result that cannot be written: exit 5" 5 $?
    check "a result that cannot be written: says where" grep -q "$tmp/none" "$tmp/messages"
}

test_redis() {
    command -v redis-server >/dev/null || return 0
    local p=$((20000 + $$ % 10000))
    taskset -c "$last_cpu" redis-server --port "$p" --save '' --appendonly no >/dev/null &
    other_pid=$!
    within 10 redis-cli -p "$p" ping >/dev/null 2>&1 || bad redis "does not start"
    run "resp://127.0.0.1:$p" --load-only --keys 20_000 --value 100B --depth 8 --threads 2
    is "redis: loading ends well" 0 "$code"
    is "redis: rows" "20000 20000" "$(redis-cli -p "$p" dbsize) $(result data.rows)"
    is "redis: all checked are right" "1000 0" "$(result data.checked) $(result data.mismatched)"
    run "resp://127.0.0.1:$p" --keys 20_000 --value 100B --mix get=3,set=1 --verify 100% --ops 50000
    is "redis: values stay right" "0 0 50000" "$(result failed) $(result misses) $(result ok)"
    redis-cli -p "$p" set k000000000000077 wrong >/dev/null
    redis-cli -p "$p" del k000000000000078 >/dev/null
    run "resp://127.0.0.1:$p" --keys 20_000 --value 100B --key-choice sequential --verify 100% --ops 20000
    is "redis: one wrong and one missing are found" 2 "$(error mismatch)"
    run "resp://127.0.0.1:$p" --keys 20_000 --value 100B --key-choice sequential --ops 20000
    is "redis: a miss is no error without --verify" "1 0" "$(result misses) $(result failed)"
    redis-cli -p "$p" config set maxmemory 1 >/dev/null
    run "resp://127.0.0.1:$p" --load-only --keys 500 --value 100B
    is "redis: loading that fails, exit 4" 4 "$code"
    is "redis: loading that fails says so" load-incomplete "$(result reasons.0.code)"
    check "redis: and keeps the server's words" grep -q OOM "$tmp/result"
    stop_other
}

# What a server sends may come in any pieces, end anywhere and claim any length.
test_hostile() {
    local protocol
    for protocol in resp memcached; do
        serve --protocol "$protocol" --trickle 1
        run "$protocol://127.0.0.1:$port" --ops 2000 --connections 3 --depth 4 --mix get=1,set=1 \
            --timeout 10s
        stop_server
        is "$protocol: byte by byte" "2000 2000 0" \
            "$(result ok) $(served answered) $(result failed)"

        serve --protocol "$protocol" --cut-every 500
        run "$protocol://127.0.0.1:$port" --ops 20000 --connections 5 --mix get=1,set=1
        stop_server
        is "$protocol: closed in the middle of a reply" "40 40" "$(error closed) $(served cut)"
        is "$protocol: and nothing else fails" 40 "$(result failed)"
        check "$protocol: cut: the sums hold" sums

        serve --protocol "$protocol" --huge-every 500
        run "$protocol://127.0.0.1:$port" --ops 20000 --connections 5
        stop_server
        is "$protocol: lengths that cannot be" "40 40" "$(error protocol) $(served huge)"
        check "$protocol: huge: the sums hold" sums

        serve --protocol "$protocol" --silent-every 1
        run "$protocol://127.0.0.1:$port" --for 500ms --connections 4 --depth 2 --timeout 100ms
        stop_server
        is "$protocol: never answers: exit 4" 4 "$code"
        is "$protocol: never answers: says so" no-success "$(result reasons.0.code)"
        is "$protocol: never answers: all time out" "$(result failed)" "$(error timeout)"
        check "$protocol: never answers: the sums hold" sums
    done
}

test_memcached() {
    serve --protocol memcached --error-every 10
    run "memcached://127.0.0.1:$port" --ops 20000 --depth 4 --connections 5 \
        --mix get=1,mg=1,set=1,add=1,delete=1
    stop_server
    is "memcached errors: as many as planted" "$(served errors) 2000" \
        "$(error server) $(result failed)"
    is "memcached errors: the text is kept" "SERVER_ERROR planted" \
        "$(result error_samples.0.text)"
    command -v memcached >/dev/null || {
        echo "memcached is not installed: a real one was not tried"
        return 0
    }
    local p=$((31000 + $$ % 10000)) address
    address=memcached://127.0.0.1:$p
    taskset -c "$last_cpu" memcached -u nobody -l 127.0.0.1 -p "$p" -m 128 &
    other_pid=$!
    within 10 nc_says "$p" || bad memcached "does not start"
    run "$address" --load-only --keys 20_000 --value 100B --depth 8 --threads 2
    is "memcached: loading" "0 20000 1000 0" \
        "$code $(result data.rows) $(result data.checked) $(result data.mismatched)"
    is "memcached: has them all" 20000 "$(memcached_stat "$p" curr_items)"
    run "$address" --keys 20_000 --value 100B --mix get=3,set=1 --verify 100% --depth 16 --ops 50000
    is "memcached: values stay right" "0 0 50000" \
        "$(result failed) $(result misses) $(result ok)"
    run "$address" --keys 20_000 --value 100B --mix mg=1,add=1 --ops 20000
    is "memcached: mg and add" "0 0 20000" "$(result failed) $(result misses) $(result ok)"
    run "$address" --keys 20_000 --mix delete=1 --key-choice sequential --ops 20000
    is "memcached: all deleted" "0 0" "$(result failed) $(memcached_stat "$p" curr_items)"
    run "$address" --keys 20_000 --mix get=1,mg=1 --ops 20000
    is "memcached: all missed" "0 20000" "$(result failed) $(result misses)"
    run "$address" --load-only --keys 20 --value 2MiB
    is "memcached: too large values, exit 4" 4 "$code"
    check "memcached: and keeps the server's words" grep -q 'object too large' "$tmp/result"
    stop_other
}

# memcached_stat PORT NAME
memcached_stat() {
    local name value
    exec 9<>"/dev/tcp/127.0.0.1/$1"
    printf 'stats\r\n' >&9
    while read -r _ name value <&9 && [ -n "$name" ]; do
        [ "$name" = "$2" ] && echo "${value%$'\r'}"
    done
    exec 9>&-
}
nc_says() { (exec 9<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# Two processes make one load; together they are the one that one process makes.
test_merge() {
    local at h pids=()
    serve --value 3
    at=$(date -u -d '+3 seconds' +%FT%TZ)
    for h in 1 2; do
        "$load" "resp://127.0.0.1:$port" --cpus 0 --quiet -o "$tmp/part$h" --part "$h/2" \
            --rate 3000 --for 1s --connections 4 --mix get=3,set=1 --start-at "$at" &
        pids+=($!)
    done
    wait "${pids[@]}"
    stop_server
    "$load" merge "$tmp/part1" "$tmp/part2" -o "$tmp/result" >"$tmp/out"
    is "merge: all of the rate, once" "3000 3000 3000" \
        "$(result scheduled) $(result offered_per_s) $(served requests)"
    check "merge: the sums hold" sums
    is "merge: as many times as operations" "$(result ok)" "$(result operations.all.response.count)"
    check "merge: a summary" grep -q '^verdict' "$tmp/out"
    "$load" merge "$tmp/part1" "$tmp/part1" 2>"$tmp/messages"
    is "merge: one part twice, exit 2" 2 $?
    check "merge: says so" grep -q 'both part 1/2' "$tmp/messages"
}

# Names, passwords and version 3, on a real server; passwords never stand on the command line.
test_login() {
    command -v redis-server >/dev/null || return 0
    local p=$((22000 + $$ % 10000)) url three
    url=resp://127.0.0.1:$p
    taskset -c "$last_cpu" redis-server --port "$p" --save '' --requirepass first >/dev/null &
    other_pid=$!
    within 10 redis-cli -p "$p" ping >/dev/null 2>&1 || bad redis "does not start"
    REDISCLI_AUTH=first redis-cli -p "$p" acl setuser bob on '>zweitens' '~*' '+@all' >/dev/null
    echo zweitens >"$tmp/password"
    for three in 2 3; do
        WB_LOAD_PASSWORD=first run "$url" --resp "$three" --load --keys 500 --ops 2000 --verify 1
        is "login: password, version $three" "2000 0" "$(result ok) $(result failed)"
        run "$url" --resp "$three" --user bob --password-file "$tmp/password" --keys 500 \
            --key-choice absent:50% --ops 2000
        is "login: user and password, version $three" "2000 0" "$(result ok) $(result failed)"
        check "login: absent keys are misses, version $three" \
            holds "$(result misses) > 800 && $(result misses) < 1200"
        is "login: the password is not in the result, version $three" 0 \
            "$(grep -c zweitens "$tmp/result")"
        WB_LOAD_PASSWORD=wrong run "$url" --resp "$three" --ops 10
        is "login: refused, version $three: exit 3" 3 "$code"
        check "login: refused, version $three: the server's words" grep -q WRONGPASS "$tmp/result"
    done
    run "$url" --ops 100
    is "login: without: class" 100 "$(error unauthorized)"
    run "$url" --user bob --ops 100
    is "login: a user without password" 2 "$code"
    stop_other
    command -v memcached >/dev/null || return 0
    echo bob:zweitens >"$tmp/users"
    chmod 644 "$tmp/users"
    chmod 755 "$tmp"
    taskset -c "$last_cpu" memcached -u nobody -l 127.0.0.1 -p "$p" -Y "$tmp/users" &
    other_pid=$!
    within 10 nc_says "$p" || bad memcached "does not start"
    run "memcached://127.0.0.1:$p" --user bob --password-file "$tmp/password" --load --keys 500 \
        --ops 2000 --verify 1
    is "login: memcached" "2000 0" "$(result ok) $(result failed)"
    WB_LOAD_PASSWORD=wrong run "memcached://127.0.0.1:$p" --user bob --ops 100
    is "login: memcached refuses: exit 3" 3 "$code"
    stop_other
}

certificates() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=t \
        -addext subjectAltName=IP:127.0.0.1 -keyout "$tmp/key" -out "$tmp/cert" 2>/dev/null
    cat "$tmp/cert" "$tmp/key" >"$tmp/both"
    chmod 755 "$tmp"
    chmod 644 "$tmp/cert" "$tmp/key"
}

test_tls() {
    local p=$((23000 + $$ % 10000)) url
    certificates
    url=resp://127.0.0.1:$p
    if command -v redis-server >/dev/null; then
        taskset -c "$last_cpu" redis-server --port 0 --tls-port "$p" --save '' \
            --tls-cert-file "$tmp/cert" --tls-key-file "$tmp/key" --tls-ca-cert-file "$tmp/cert" \
            --tls-auth-clients optional >/dev/null &
        other_pid=$!
        within 10 nc_says "$p" || bad "redis with TLS" "does not start"
        run "$url" --tls "$tmp/cert" --load --keys 500 --value 64 --verify 1 --depth 16 --ops 5000
        is "tls: redis" "5000 0" "$(result ok) $(result failed)"
        run "$url" --tls unchecked --tls-cert "$tmp/both" --load --keys 20 --value 200KiB \
            --mix get=1,set=1 --verify 1 --depth 4 --ops 300 --resp 3 --timeout 20s
        is "tls: values longer than a record" "300 0 0" \
            "$(result ok) $(result failed) $(result data.mismatched)"
        run "$url" --tls "$tmp/cert" --rate 500 --for 1s
        is "tls: open loop" "500 0" "$(result ok) $(result failed)"
        run "$url" --tls system --for 1s
        is "tls: an unknown certificate: exit 3" 3 "$code"
        check "tls: says why" grep -q 'certificate is not accepted' "$tmp/result"
        run "${url/127.0.0.1/127.0.0.2}" --tls "$tmp/cert" --for 1s
        check "tls: of another host" grep -q 'IP address mismatch' "$tmp/result"
        stop_other
    fi
    if command -v memcached >/dev/null && memcached --help | grep -q enable-ssl; then
        taskset -c "$last_cpu" memcached -u nobody -l 127.0.0.1 -p "$p" -Z \
            -o "ssl_chain_cert=$tmp/cert,ssl_key=$tmp/key" &
        other_pid=$!
        within 10 nc_says "$p" || bad "memcached with TLS" "does not start"
        run "memcached://127.0.0.1:$p" --tls "$tmp/cert" --load --keys 500 --verify 1 --ops 5000
        is "tls: memcached" "5000 0" "$(result ok) $(result failed)"
        stop_other
    fi
    serve
    run "resp://127.0.0.1:$port" --tls "$tmp/cert" --for 1s
    stop_server
    is "tls: a server that has none: exit 3" 3 "$code"
    is "tls: no requests went out" 0 "$(served requests)"
    run null:// --tls "$tmp/cert" --for 1s
    is "tls: where there is none: exit 2" 2 "$code"
    run "resp://127.0.0.1:1" --tls "$tmp/nothing"
    check "tls: a file that is not there" grep -q "nothing.*No such file" "$tmp/messages"
    run "resp://127.0.0.1:1" --tls "$tmp/cert" --tls-cert "$tmp/cert"
    check "tls: a certificate without its key" grep -q 'certificate and its key' "$tmp/messages"
}

# Streams that are closed or full, extreme rates and counts, very many connections.
test_extremes() {
    "$load" null:// --for 100ms --hdr "$tmp/streams.hlog" >&- 2>&-
    is "stdout and stderr closed: exit 5" 5 $?
    check "stdout closed: the log is one" \
        grep -aq 'Histogram log' "$tmp/streams.hlog"
    is "stdout closed: no summary in another file" 0 "$(grep -ac verdict "$tmp/streams.hlog")"
    "$load" null:// --for 100ms >/dev/full 2>"$tmp/messages"
    is "stdout full: exit 5" 5 $?
    check "stdout full: says so" grep -q 'writing the summary: No space left' "$tmp/messages"
    "$load" null:// --for 100ms --quiet -o - >/dev/full 2>"$tmp/messages"
    is "result on a full stdout: exit 5" 5 $?
    run null:// --ops 1
    is "one operation" "1 1" "$(result scheduled) $(result ok)"
    check "one operation: shares of time" holds "$(result client.threads.0.run_queue_percent) <= 100"
    run null:// --rate 0.001/s --for 300ms
    is "one in 1000 s" "1 1" "$(result scheduled) $(result ok)"
    run null:// --rate 1M/s --for 500ms
    is "a million a second" 500000 "$(result scheduled)"
    run null:// --rate 1.1M/s
    is "more than that: exit 2" 2 "$code"
    run null:// --for 0s
    is "no time: exit 2" 2 "$code"
    local many=$(($(ulimit -n) > 6000 ? 2500 : $(ulimit -n) / 3))
    serve --value 20
    run "resp://127.0.0.1:$port" --connections $many --rate 2000/s --for 1s --timeout 10s
    stop_server
    is "$many connections" "2000 0" "$(result ok) $(result failed)"
    check "$many connections: memory" holds "$(result client.memory_peak_bytes) < 20000 * $many + 100e6"
}

test_usage
test_extremes
test_tls
test_login
test_merge
test_hostile
test_memcached
test_errors
test_outputs
test_interrupt
test_connection
test_redis
test_overload
test_rates
test_pause
summary
