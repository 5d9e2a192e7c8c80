#!/bin/bash
# The recipe redis, for real: its steps from fetch to wipe, with redis-server from the prefix on a
# free loopback port. Needs apt with a reachable mirror, dpkg-deb and jq.
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
recipe=$PWD/recipes/redis
passed=0
failed=0
server=
tmp=$(mktemp -d) || exit 2
finish() {
    if [ -n "$server" ]; then kill -KILL "$server" 2>/dev/null; fi
    rm -rf -- "$tmp"
}
trap finish EXIT
unset "${!WB_@}"

ok() {
    printf 'ok %s\n' "$1"
    passed=$((passed + 1))
}

bad() {
    printf 'FAIL %s\n' "$*"
    failed=$((failed + 1))
}

# same NAME HAVE WANT
same() {
    if [ "$2" = "$3" ]; then ok "$1"; else bad "$1" "has '$2', should be '$3'"; fi
}

# step NAME: runs a step; its object goes to $tmp/out, its log to $tmp/err, its exit to $rc.
step() {
    "$recipe/steps/$1" >"$tmp/out" 2>"$tmp/err"
    rc=$?
}

# good NAME STEP: exit 0 and exactly one JSON object.
good() {
    step "$2"
    if [ "$rc" -ne 0 ]; then
        bad "$1" "exit $rc: $(tail -n 1 "$tmp/err")"
    elif [ "$(jq -cs 'length == 1 and (.[0] | type == "object")' "$tmp/out" 2>&1)" != true ]; then
        bad "$1" "stdout is not one JSON object: $(head -c 200 "$tmp/out")"
    else
        ok "$1"
    fi
}

get() {
    jq -r "$1" "$tmp/out"
}

free_port() {
    local port
    for port in $(seq 17390 17590); do
        if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
            printf '%s' "$port"
            return
        fi
    done
}

export WB_RECIPE_DIR=$recipe WB_CACHE=$tmp/cache WB_PREFIX=$tmp/prefix
export WB_CONFIG_DIR=$tmp/db/config WB_DATA_DIR=$tmp/db/data WB_LOG_DIR=$tmp/db/log
export WB_IN_PREFIX=$WB_PREFIX WB_IN_CONFIG_DIR=$WB_CONFIG_DIR
export WB_IN_DATA_DIR=$WB_DATA_DIR WB_IN_LOG_DIR=$WB_LOG_DIR
export WB_HOST=127.0.0.1 WB_INSTANCE=0 WB_INSTANCES=1
WB_PORT=$(free_port)
export WB_PORT
# Version and packages as the recipe lists them.
WB_VERSION=$(sed -n 's/^ *- version: "\(.*\)"$/\1/p' "$recipe/recipe.yaml" | head -n 1)
WB_PACKAGES=$(sed -n '/^ *packages:$/,/^$/s/^ *- //p' "$recipe/recipe.yaml" | tr '\n' ' ')
export WB_VERSION WB_PACKAGES
mkdir -p "$WB_CONFIG_DIR" "$WB_DATA_DIR" "$WB_LOG_DIR"

printf '%s\n' "$WB_PACKAGES" | grep -q '^redis-server ' || bad packages "recipe lists: $WB_PACKAGES"

# Other versions are refused: neither a prefix of the version nor something longer is the version.
for other in 7.0 7.0.155 5:7.0.15-1; do
    WB_VERSION=$other step fetch
    same "version '$other' is not to be had: 69" "$rc" 69
    same "version '$other': named with the mirror settings" \
        "$(tail -n 1 "$tmp/err" | grep -c "upstream version $other is not offered.*sources.list")" 1
done
WB_VERSION='' step fetch
same 'no version: 1' "$rc" 1
step install
same 'install without artifacts fails' "$rc" 1

good fetch fetch
same 'fetch writes what it prints' "$(jq -cS . "$tmp/out")" "$(jq -cS . "$WB_CACHE/artifacts.json")"
same 'fetch gets every package' "$(get '.artifacts | length')" "$(printf '%s' "$WB_PACKAGES" | wc -w)"
same 'digests are those of the files' \
    "$(jq -r '.artifacts[] | .sha256 + "  " + .file' "$WB_CACHE/artifacts.json" |
        (cd "$WB_CACHE" && sha256sum -c --quiet - 2>&1))" ''
same 'the server has the upstream version' \
    "$(dpkg-deb -f "$WB_CACHE/$(get '.artifacts[0].file')" Version | sed 's/^[0-9]*://; s/-[^-]*$//')" \
    "$WB_VERSION"

good install install
same 'nothing of the system service is installed' "$(find "$WB_PREFIX" -path '*systemd/system*' -o -path "$WB_PREFIX/etc")" ''
same 'licences stay' "$(test -f "$WB_PREFIX/usr/share/doc/redis-server/copyright" && echo yes)" yes
libs=$(printf '%s:' "$WB_PREFIX"/usr/lib/*-linux-gnu "$WB_PREFIX"/lib/*-linux-gnu)
same 'only the C library is the system'\''s' \
    "$(LD_LIBRARY_PATH=$libs ldd "$WB_PREFIX/usr/bin/redis-server" | awk '$3 ~ /^\// {print $3}' |
        grep -v "^$WB_PREFIX/" | xargs -r -n 1 basename | grep -v -x -e 'libc.so.6' -e 'libm.so.6')" ''

export WB_SETTING_MAXMEMORY=104857600 WB_SETTING_MAXMEMORY_POLICY=allkeys-lru
export WB_SETTING_APPENDONLY=no WB_SETTING_SAVE="3600 1 300 100" WB_SETTING_IO_THREADS=1
export WB_SETTING_HZ=25 WB_SETTING_LAZYFREE_LAZY_EVICTION=yes WB_SETTING_APPENDFSYNC=always
export WB_SETTING_TCP_BACKLOG=600 WB_SETTING_IO_THREADS_DO_READS=yes
listed=$(sed -n '/^parameters:/,/^steps:/p' "$recipe/recipe.yaml" |
    sed -n 's/^ *- {*name: \([a-z-]*\).*/\1/p' | sort | tr '\n' ' ')
same 'every parameter of the recipe is tried' \
    "$(env | sed -n 's/^WB_SETTING_\([A-Z_]*\)=.*/\1/p' | tr 'A-Z_' 'a-z-' | sort | tr '\n' ' ')" "$listed"
good configure configure
same 'settings counted' "$(get .settings)" 10
WB_SETTING_SAVE=$'a\nport 1' step configure
same 'a line break in a setting is refused' "$rc" 1
good 'configure again' configure

step ready
same 'not ready before the start: 75' "$rc" 75
LD_LIBRARY_PATH=$libs "$WB_PREFIX/usr/bin/redis-server" "$WB_CONFIG_DIR/redis.conf" >"$tmp/server" 2>&1 &
server=$!
for _ in $(seq 100); do
    step ready
    [ "$rc" -eq 75 ] || break
    sleep 0.05
done
same 'ready' "$rc" 0
[ "$rc" -eq 0 ] || cat "$tmp/server" "$WB_LOG_DIR/redis.log"

good probe probe
same 'version' "$(get .version)" "$WB_VERSION"
same 'build' "$(get '.build | length > 0')" true
same 'settings read back' "$(jq -cS .settings "$tmp/out")" \
    '{"appendfsync":"always","appendonly":"no","hz":"25","io-threads":"1","io-threads-do-reads":"yes","lazyfree-lazy-eviction":"yes","maxmemory":"104857600","maxmemory-policy":"allkeys-lru","save":"3600 1 300 100","tcp-backlog":"600"}'
same 'allocator' "$(get '.facts.allocator | startswith("jemalloc")')" true
WB_SETTING_NO_SUCH_THING=1 step probe
same 'an unknown setting is not reported' "$(get '.settings | has("no-such-thing")')" false

for i in 1 2 3; do
    printf 'SET key:%d value\r\n' "$i"
done | LD_LIBRARY_PATH=$libs "$WB_PREFIX/usr/bin/redis-cli" -p "$WB_PORT" >/dev/null
LD_LIBRARY_PATH=$libs "$WB_PREFIX/usr/bin/redis-cli" -p "$WB_PORT" GET key:1 >/dev/null
LD_LIBRARY_PATH=$libs "$WB_PREFIX/usr/bin/redis-cli" -p "$WB_PORT" GET none >/dev/null
good measure measure
same 'counters' "$(get '.metrics | [.calls_set, .calls_get, .hits, .misses, .keys] | tojson')" '[3,2,1,1,3]'
same 'metrics are numbers' "$(get '.metrics | map(type == "number") | all')" true
missing=$(sed -n '/^metrics:/,/^$/s/^ *- {name: \([a-z_]*\).*/\1/p' "$recipe/recipe.yaml" |
    while read -r name; do
        [ "$(get ".metrics | has(\"$name\")")" = true ] || printf '%s ' "$name"
    done)
same 'all metrics of the recipe are there' "$missing" ''

good stop stop
wait "$server"
same 'the server ended by itself' "$?" 0
server=
good 'stop again' stop
step probe
same 'probe of nothing fails' "$([ "$rc" -ne 0 ] && [ ! -s "$tmp/out" ] && echo yes)" yes
good wipe wipe
same 'data and logs are gone' "$(find "$WB_DATA_DIR" "$WB_LOG_DIR" -mindepth 1)" ''
good 'wipe again' wipe
# Harmless folders even if the guard were gone.
for folder in relative /no-such-folder-of-this-test; do
    WB_DATA_DIR=$folder step wipe
    same "wipe refuses $folder" "$rc" 1
done

printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
