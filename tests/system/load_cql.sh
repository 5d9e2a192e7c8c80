#!/bin/bash
# wb-load against CQL servers that behave in known ways: versions and compression, logging in, classes
# of errors, forgotten statements, routing in a cluster, a server that dies and comes back. The
# servers' own counts are the reference. B names the build folder (default: build).
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
# shellcheck source=tests/support/lib.sh
. tests/support/lib.sh
load=$build/wb-load
server=$build/support/cql_responder
for program in "$load" "$server"; do
    if [ ! -x "$program" ]; then
        bad "$program" "is not built"
        summary
        exit 1
    fi
done
pids=()
port=0
cleanup=(stop_all)

# serve N OPTION...: starts server N of a test; sets $port when it was 0.
serve() {
    local n=$1
    shift
    : >"$tmp/port.$n"
    rm -f "$tmp/served.$n"
    "$server" --port "$port" --report "$tmp/served.$n" "$@" >"$tmp/port.$n" &
    pids[n]=$!
    within 10 grep -q '^port ' "$tmp/port.$n" || bad "cql_responder $*" "does not listen"
    port=$(sed -n 's/^port //p' "$tmp/port.$n")
}

# stop N [SIGNAL]: its report is in $tmp/served.N after TERM.
stop() {
    [ -n "${pids[$1]:-}" ] || return 0
    kill "-${2:-TERM}" "${pids[$1]}" 2>/dev/null
    wait "${pids[$1]}" 2>/dev/null
    pids[$1]=
}
stop_all() {
    local n
    for n in "${!pids[@]}"; do stop "$n"; done
    port=0
}

run() {
    rm -f "$tmp/result"
    timeout 120 "$load" "cql://127.0.0.1:$port" --quiet -o "$tmp/result" "$@" 2>"$tmp/messages"
    code=$?
}
result() { if [ -s "$tmp/result" ]; then json "$1" <"$tmp/result"; else echo no-result; fi; }
served() { json "$2" <"$tmp/served.$1"; }
error() { result "errors.$1" | sed 's/null/0/'; }
holds() { awk "BEGIN { exit !($1) }"; }

# Every version and compression loads, checks and verifies; the server counts the same.
for version in 4 5; do
    for pack in none lz4; do
        name="version $version, compression $pack"
        serve 1
        run --native-protocol $version --compression $pack --load --keys 2000 --value 300:letters \
            --mix select=60,insert=20,update=10,batch=10 --verify 100% --ops 5000 --connections 3 --depth 7
        is "$name: operations" 5000 "$(result ok)"
        is "$name: failed" 0 "$(result failed)"
        is "$name: wrong rows" 0 "$(result data.mismatched)"
        is "$name: protocol" "$version" "$(result protocol.native_protocol)"
        stop 1
        is "$name: the server's count" 8000 "$(served 1 ops)"
        is "$name: rows kept" 2000 "$(served 1 stored)"
        port=0
    done
done

# Values longer than a segment.
for pack in none lz4; do
    serve 1
    run --compression $pack --load --keys 20 --value 300000 --verify 100% --mix get=50,set=50 --ops 200 \
        --connections 2 --depth 3 --timeout 20s
    is "long values, compression $pack" "200 0" "$(result ok) $(result failed)"
    stop_all
done

# An older server is spoken to in its version, unless a newer one is asked for.
serve 1 --version 4 --value 10
run --ops 100
is "an older server: version" "4 100" "$(result protocol.native_protocol) $(result ok)"
run --ops 100 --native-protocol 5
check "an older server: newer version asked" [ "$code" -ne 0 ]
check "an older server: message" grep -q 'does not speak version 5' "$tmp/messages"
stop_all

# Logging in.
serve 1 --user someone:secret --value 10
run --ops 100
is "log in: no user" 3 "$code"
check "log in: message" grep -q 'wants a user and password' "$tmp/messages"
printf 'wrong\n' >"$tmp/password"
run --ops 100 --user someone --password-file "$tmp/password"
is "log in: wrong password" 3 "$code"
check "log in: the server's words" grep -q 'password are incorrect' "$tmp/messages"
printf 'secret\n' >"$tmp/password"
run --ops 100 --user someone --password-file "$tmp/password"
is "log in: right password" 100 "$(result ok)"
stop_all

# TLS: what asks before the load and the load itself; certificates are checked, the host in them too.
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=wb -addext subjectAltName=IP:127.0.0.1 \
    -keyout "$tmp/key" -out "$tmp/cert" 2>/dev/null
cat "$tmp/cert" "$tmp/key" >"$tmp/both"
serve 1
tests/support/tls-front "$tmp/both" "$port" >"$tmp/port.front" &
pids[9]=$!
within 10 grep -q '^port ' "$tmp/port.front" || bad "TLS" "no server"
port=$(sed -n 's/^port //p' "$tmp/port.front")
for version in 4 5; do
    run --tls "$tmp/cert" --native-protocol $version --nodes given --load --keys 200 --ops 2000 \
        --connections 3 --depth 5
    is "TLS, version $version" "2000 0 0" "$(result ok) $(result failed) $(result data.mismatched)"
done
run --tls system --nodes given --ops 100
is "TLS: an unknown certificate: exit 3" 3 "$code"
check "TLS: says why" grep -q 'certificate is not accepted' "$tmp/messages"
run --nodes given --ops 100
is "TLS: not spoken: exit 3" 3 "$code"
stop_all

# 10 % errors, 1 % never answered: classes exact, nothing lost.
serve 1 --value 64 --error-every 10 --silent-every 100
run --rate 1000 --for 3s --timeout 500ms --connections 4 --mix get=50,set=50
stop 1
is "errors: scheduled" 3000 "$(result scheduled)"
is "errors: the server's count" "$(served 1 ops)" "$(($(result scheduled) - $(result censored)))"
is "errors: overloaded" "$(served 1 errors)" "$(error overloaded)"
is "errors: timeout" "$(served 1 swallowed)" "$(error timeout)"
is "errors: sum" 3000 "$(($(result ok) + $(result failed) + $(result dropped) + $(result censored)))"
port=0
for pair in 4096:unavailable 4352:write-timeout 4608:read-timeout 8704:invalid 4098:bootstrapping; do
    serve 1 --value 64 --error-every 2 --error-code "${pair%:*}"
    run --ops 200 --connections 2
    is "error ${pair#*:}" 100 "$(error "${pair#*:}")"
    stop_all
done

# Forgotten statements are prepared again; no operation fails for it.
serve 1 --value 64 --forget-every 500
run --ops 5000 --connections 3 --depth 9 --mix get=50,set=50
stop 1
is "forgotten statements: operations" "5000 0" "$(result ok) $(result failed)"
check "forgotten statements: the server's count" [ "$(served 1 unprepared)" -ge 9 ]
port=0

# Lost connections are made again; what was in flight is counted.
serve 1 --value 64 --close-every 500
run --ops 5000 --connections 3 --depth 4
stop 1
is "lost connections: sum" 5000 "$(($(result ok) + $(result failed)))"
check "lost connections: closed" holds "$(error closed) >= 9 && $(error closed) <= 120"
port=0

# A cluster is found from one address; by token no operation goes to a server that has not its key.
cluster=127.0.0.1,127.0.0.2,127.0.0.3
start_cluster() {
    local n
    for n in 1 2 3; do serve $n --address "127.0.0.$n" --cluster "$cluster" --value 64; done
}
start_cluster
run --ops 9000 --connections 6 --depth 4 --mix get=50,set=50
stop 1 && stop 2 && stop 3
is "cluster, token: operations" "9000 0" "$(result ok) $(result failed)"
is "cluster, token: servers" 3 "$(result protocol.servers | grep -o ':[0-9]' | wc -l)"
is "cluster, token: astray" "0 0 0" "$(served 1 strays) $(served 2 strays) $(served 3 strays)"
# A third, but for what is drawn ahead for a server that others are faster than.
check "cluster, token: share of a server" holds "$(served 2 ops) > 1800 && $(served 2 ops) < 4200"
port=0
start_cluster
run --ops 9000 --connections 6 --depth 4 --routing round-robin
stop 1 && stop 2 && stop 3
check "cluster, round robin: astray" holds "$(served 1 strays) + $(served 2 strays) + $(served 3 strays) > 4000"
port=0

# A server dies and comes back: others take its operations, then it gets its own again.
start_cluster
run --rate 1000 --for 6s --timeout 1s --connections 6 --mix get=50,set=50 &
runner=$!
within 10 test -s "$tmp/port.3"
read -rt 1.5 <> <(:)
stop 2 KILL
read -rt 1 <> <(:)
serve 2 --address 127.0.0.2 --cluster "$cluster" --value 64
wait $runner
stop 1 && stop 2 && stop 3
is "a server dies: scheduled" 6000 "$(result scheduled)"
is "a server dies: sum" 6000 "$(($(result ok) + $(result failed) + $(result dropped) + $(result censored)))"
is "a server dies: only what was in flight failed" "$(result failed)" "$(($(error closed) + $(error timeout)))"
check "a server dies: few failed" holds "$(result failed) < 600"
check "a server dies: it is back" holds "$(served 2 ops) > 0"
check "a server dies: others had its keys" holds "$(served 1 strays) + $(served 3 strays) > 0"
port=0

summary
