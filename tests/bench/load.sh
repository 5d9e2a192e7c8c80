#!/bin/bash
# Client CPU per operation of wb-load against redis-benchmark: the same server, keys, values,
# connections and depth, each on one CPU of its own. Pairs in the order A B B A; the median of the
# ratios is compared with the bars. PAIRS (default 7), DEPTHS (default "1 16 64"), OPERATION get or
# set, B the build folder.
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
build=${B:-build}
pairs=${PAIRS:-7}
op=${OPERATION:-get}
depths=" ${DEPTHS:-1 16 64} "
server_cpu=1
client_cpu=0
port=$((21000 + $$ % 10000))
tmp=$(mktemp -d) || exit 2
server=
trap '[ -n "$server" ] && kill "$server" 2>/dev/null; rm -rf -- "$tmp"' EXIT

for need in redis-server redis-benchmark redis-cli; do
    command -v "$need" >/dev/null || {
        echo "$0: needs $need (packages redis-server and redis-tools)" >&2
        exit 2
    }
done
[ "$(nproc)" -ge 2 ] || {
    echo "$0: needs two CPUs, one for the server" >&2
    exit 2
}

taskset -c $server_cpu redis-server --port "$port" --save '' --appendonly no >/dev/null &
server=$!
end=$((SECONDS + 10))
until redis-cli -p "$port" ping >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || {
        echo "$0: redis-server does not start" >&2
        exit 2
    }
done

# cpu COMMAND...: its CPU seconds, user and system.
TIMEFORMAT='%3U %3S'
cpu() {
    { time taskset -c $client_cpu "$@" >"$tmp/out" 2>&1; } 2>&1 | awk '{ print $1 + $2 }'
}

ours() {
    cpu "$build/wb-load" "resp://127.0.0.1:$port" --cpus $client_cpu --connections 50 --depth "$1" \
        --keys 100000 --key-bytes 16 --value 3 --mix "$op=1" --ops "$2" --quiet
}

theirs() {
    cpu redis-benchmark -p "$port" -c 50 -P "$1" -r 100000 -d 3 -n "$2" -t "$op" -q
}

median() { sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

"$build/wb-load" "resp://127.0.0.1:$port" --load-only --keys 100000 --value 3 --depth 16 --quiet
redis-benchmark -p "$port" -P 16 -r 100000 -d 3 -n 500000 -t set -q >/dev/null

printf '%-6s %14s %22s %8s %6s\n' depth 'wb-load us/op' 'redis-benchmark us/op' ratio bar
status=0
while read -r depth n bar; do
    [[ $depths == *" $depth "* ]] || continue
    : >"$tmp/ratios"
    : >"$tmp/ours"
    : >"$tmp/theirs"
    for ((i = 0; i < pairs; i++)); do
        if ((i % 2 == 0)); then
            a=$(ours "$depth" "$n")
            b=$(theirs "$depth" "$n")
        else
            b=$(theirs "$depth" "$n")
            a=$(ours "$depth" "$n")
        fi
        awk "BEGIN { print $a / $b }" >>"$tmp/ratios"
        awk "BEGIN { print 1e6 * $a / $n }" >>"$tmp/ours"
        awk "BEGIN { print 1e6 * $b / $n }" >>"$tmp/theirs"
    done
    ratio=$(median <"$tmp/ratios")
    printf '%-6s %14.3f %22.3f %8.3f %6s' "$depth" "$(median <"$tmp/ours")" \
        "$(median <"$tmp/theirs")" "$ratio" "$bar"
    if awk "BEGIN { exit !($ratio <= $bar) }"; then
        echo ' ok'
    else
        echo ' MISSED'
        status=1
    fi
done <<EOF
1 100000 0.65
16 1000000 0.60
64 2000000 0.60
EOF
exit $status
