#!/bin/bash
# Faults that users of such programs reported, each from its file in tests/data/cases: load workers
# without a result (001), names and ports that are taken (042), a teardown that fails and hangs
# (046), two runs on one host (048). Needs root, and a Docker Engine at $WB_DOCKER_SOCKET.
# Elsewhere: 010 in tests/unit/collect, 015 and 044 in tools.sh, 036 in faults.sh.
# shellcheck disable=SC2016 # the texts of spoilt steps expand their own variables
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
# shellcheck source=tests/support/lib.sh
. tests/support/lib.sh
alone
export WB_STATE=$build/test/state WB_RECIPES=recipes
store=$tmp/store.git
cases=tests/data/cases
aa=recipes/redis/studies/aa.yaml
short=(-f workload.phases.max.warm_up=100ms -f workload.phases.max.for=500ms
    -f workload.data.rows=1000 -f copies=1 --rounds 1 --wait-for-host 600)
docker=(recipes/redis/studies/forms.yaml --profile small -f workload.phases.max.warm_up=0s
    -f workload.phases.max.for=300ms -f workload.phases.latency.warm_up=0s
    -f workload.phases.latency.for=300ms -f workload.phases.latency.rate=2k/s
    -f workload.data.rows=1000 --rounds 1 --wait-for-host 600)

run "$aa" "${short[@]}"
run "${docker[@]}" -f 'factors.form=[docker x1]'
before=$(snapshot)
keep_prefixes

# --- 001: each worker of the file by itself; a run is as good as its worker's result ---

declare -A mode=([ok]=good [silent]=silent [nosummary]=nosummary [zeroops]=zero [fail]=fail)
while read -r what expect; do
    [ -n "${mode[$what]:-}" ] || bad "001: mode $what of the file is known" ""
    ln -sf "$PWD/tests/support/fake-load" "$tmp/fake-load.${mode[$what]}"
    WB_LOAD=$tmp/fake-load.${mode[$what]} run "$aa" "${short[@]}"
    rc=$?
    got=$(newest)
    if [ "$expect" = result ]; then
        is "001: a worker that is $what: ok" "ok clean" "$got"
        check "001: a worker that is $what: its figure stands" [ "$(json metrics.max.throughput.value <"$tmp/newest")" != null ]
    else
        check "001: a worker that is $what: failed, here exit $rc, $got" \
            grep -qE '^1[23] (harness|sut)-error clean$' <<<"$rc $got"
        # What it said stays with its record; a run that failed is no side of a comparison, see below.
        case $what in
        silent | nosummary)
            check "001: a worker that is $what: named so" grep -q 'no result' "$tmp/newest"
            is "001: a worker that is $what: no figure" '{}' "$(json metrics <"$tmp/newest")"
            ;;
        esac
        "$wb" compare "$(json campaign <"$tmp/newest")" --json --store "$store" >"$tmp/compare" 2>&1
        check "001: a worker that is $what: no verdict, and its arm has no run" \
            eval '! grep -qE "\"verdict\": \"(better|worse|equivalent|negligible)\"|\"n\": [1-9]" "$tmp/compare"' || head -c 600 "$tmp/compare"
    fi
    nothing_left "001: a worker that is $what"
done < <(perl -MJSON::PP -e 'my $d = decode_json(join "", <STDIN>);
    my %m = map { $_->{fakeload_mode} => $_->{expect} } @{$d->{workers}};
    for my $t (@{$d->{also_try}}) { $m{$t->{$_}} //= "no result" for grep { /^w\d/ } keys %$t }
    print "$_ $m{$_}\n" for sort keys %m' <$cases/001-three-workers.json)

# --- 042: a container with the name of an earlier run of ours, a stranger's, a port that is taken ---

image=$(engine_get '/images/json?filters=%7B%22label%22:%5B%22wb.image.content%22%5D%7D' | grep -o '"Id":"sha256:[0-9a-f]*"' | head -n 1 | cut -d'"' -f4)
container() { # NAME LABELS: makes one of our image; its id
    curl -s --unix-socket "$WB_DOCKER_SOCKET" -H 'Content-Type: application/json' \
        -d "{\"Image\":\"$image\",\"Cmd\":[\"/bin/sh\",\"-c\",\"read x\"],\"OpenStdin\":true,\"Labels\":$2,\"HostConfig\":{\"NetworkMode\":\"host\"}}" \
        "http://engine/containers/create?name=$1" | grep -o '"Id":"[0-9a-f]*"' | cut -d'"' -f4
}
alive() { engine_get "/containers/$1/json" | grep -q "\"Id\":\"$1\""; }
remove() { curl -s -X DELETE --unix-socket "$WB_DOCKER_SOCKET" "http://engine/containers/$1?force=1" >/dev/null; }
mine=$(owner)
stale=$(container wb-run_01AAAAAAAAAAAAAAAAAAAAAAAA-db0 "{\"wb.owner\":\"$mine\",\"wb.run\":\"run_01AAAAAAAAAAAAAAAAAAAAAAAA\",\"wb.campaign\":\"cmp_old\"}")
foreign=$(container wb-run_01BBBBBBBBBBBBBBBBBBBBBBBB-db0 '{}')
check "042: both containers are there" [ -n "$stale" -a -n "$foreign" ]
remove_foreign() { remove "$foreign"; }
cleanup+=(remove_foreign)
curl -s -X POST --unix-socket "$WB_DOCKER_SOCKET" "http://engine/containers/$foreign/start" >/dev/null
: >"$tmp/holder"
perl -MIO::Socket::INET -e '
    my @s = map { IO::Socket::INET->new(LocalAddr => "0.0.0.0", LocalPort => $_, Listen => 1, ReuseAddr => 1) } 16379, 16381;
    $| = 1; print "up\n"; sleep 600' >"$tmp/holder" 8>&- &
holder=$!
within 10 grep -q up "$tmp/holder"
run "${docker[@]}" -f 'factors.form=[docker x4]' -f topology=sharded
rc=$?
check "042: four containers beside a stale one, a stranger's and taken ports, here exit $rc" [ $rc -eq 0 -o $rc -eq 14 ] || tail -n 4 "$tmp/err"
check "042: what is stale was removed, and that is said" grep -q '^cleaned up after an engine' "$tmp/err"
check "042: the stale one is gone" eval '! alive "$stale"'
check "042: the stranger's lives" alive "$foreign"
check "042: so does who had the ports" kill -0 "$holder"
"$wb" show "$(json id < <("$wb" list --json --store "$store" | json items.0))" --json --store "$store" >"$tmp/show"
ports=$(grep -oE '"port": [0-9]+' "$tmp/show" | sort -u | wc -l)
check "042: no port is given twice or to a taken one, here $ports" eval '! grep -qE "\"port\": (16379|16381)\b" "$tmp/show"'
kill "$holder"
wait "$holder" 2>/dev/null
remove "$foreign"
nothing_left "042: names and ports"
pids=()
for i in 1 2 3 4; do
    "$wb" run "${docker[@]}" -f 'factors.form=[docker x4]' -f topology=sharded --store "$store" >/dev/null 2>"$tmp/parallel.$i" 8>&- &
    pids+=($!)
done
for i in 0 1 2 3; do
    wait "${pids[i]}"
    rc=$?
    check "042: of four at once, number $i comes to its end, here exit $rc" [ $rc -eq 0 -o $rc -eq 14 ] || tail -n 3 "$tmp/parallel.$((i + 1))"
done
nothing_left "042: four at once"

# --- 046: the steps of the file as a recipe's, after a good run, a failed deploy and a cancel ---

teardown() { # I FIELD
    json "teardown.$1.$2" <$cases/046-teardown.json
}
spoil() {
    local i=0 step
    fresh_recipes
    for step in stop clean unmount wipe; do
        recipe_step "$step" <<<"echo $step >>\"\$WB_DATA_DIR/../../tried\"; $(teardown $i run); echo '{}'"
        if [ "$(teardown $i limit_s)" != null ]; then limit "$step" "$(teardown $i limit_s)s"; fi
        i=$((i + 1))
    done
}
tried() { xargs <"$(find "$WB_STATE"/campaigns/*/runs/ -name tried | tail -n 1)"; }
put_right() {
    recipe_step clean <<<'echo "{}"'
    recipe_step unmount <<<'echo "{}"'
    clean
    is "046: $1: a clean-up that succeeds gives the host free" 0 $?
    nothing_left "046: $1"
}
held_back() {
    check "046: $1: incomplete, with the step that failed" grep -q 'device busy' "$tmp/newest" || reasons
    check "046: $1: and the one that was over its time" grep -q 'unmount: .*did not end within 5.0 s' "$tmp/newest" || reasons
    "$wb" show "$(json id <"$tmp/newest")" --store "$store" >"$tmp/show"
    check "046: $1: show does not say clean" grep -q 'incomplete' "$tmp/show"
    run "$aa" "${short[@]}"
    is "046: $1: the host is held back" 22 $?
}
spoil
WB_RECIPES=$spoilt run "$spoilt/redis/studies/aa.yaml" "${short[@]}"
is "046: a good run: exit 16" 16 $?
is "046: a good run: its verdict stays" "ok incomplete" "$(newest)"
is "046: a good run: all steps are tried, in order" "stop clean unmount wipe" "$(tried)"
held_back "a good run"
put_right "a good run"
spoil
recipe_step ready <<<'exit 1'
WB_RECIPES=$spoilt run "$spoilt/redis/studies/aa.yaml" "${short[@]}"
is "046: a failed deploy: exit 16" 16 $?
is "046: a failed deploy: its verdict stays" "sut-error incomplete" "$(newest)"
is "046: a failed deploy: all steps are tried, in order" "stop clean unmount wipe" "$(tried)"
held_back "a failed deploy"
put_right "a failed deploy"
spoil
: >"$tmp/cut"
WB_RECIPES=$spoilt "$wb" run "$spoilt/redis/studies/aa.yaml" "${short[@]}" -f workload.phases.max.for=30s --store "$store" >/dev/null 2>"$tmp/cut" 8>&- &
pid=$!
within 700 says cut '^run 1/1 .*  max'
kill -INT "$pid"
within 60 says cut '^run 1/1 .*  teardown'
kill -INT "$pid" # again, while it cleans up
wait "$pid"
is "046: cancelled twice: exit 16" 16 $?
is "046: cancelled twice: its verdict stays" "cancelled incomplete" "$(newest)"
is "046: cancelled twice: all steps are tried, in order" "stop clean unmount wipe" "$(tried)"
held_back "cancelled twice"
put_right "cancelled twice"

# --- 048: those runs of the file that want its first host: one after the other ---

host=$(json runs.0.hosts.0 <$cases/048-two-runs.json)
n=$(perl -MJSON::PP -e 'my $d = decode_json(join "", <STDIN>);
    print scalar grep { grep { $_ eq $ARGV[0] } @{$_->{hosts}} } @{$d->{runs}}' "$host" <$cases/048-two-runs.json)
mkdir "$tmp/stranger"
cp "$(command -v tail)" "$tmp/stranger/redis-server"
"$tmp/stranger/redis-server" -f /dev/null 8>&- &
stranger=$!
pids=()
for ((i = 0; i < n; i++)); do
    "$wb" run "$aa" "${short[@]}" -f workload.phases.max.for=3s --store "$tmp/of$i.git" >/dev/null 2>"$tmp/run.$i" 8>&- &
    pids+=($!)
    within 700 says "run.$i" '^run 1/1\|^waiting for this host' || bad "048: run $i begins or waits" "$(cat "$tmp/run.$i")"
done
check "048: the second waits, and names who holds the host" grep -q "waiting for this host: .*$(campaign_of run.0)" "$tmp/run.1" || cat "$tmp/run.1"
for ((i = 0; i < n; i++)); do
    wait "${pids[i]}"
    rc=$?
    check "048: run $i comes to its end, here exit $rc" [ $rc -eq 0 -o $rc -eq 14 ]
done
check "048: a process called like our database lives on" kill "$stranger"
wait "$stranger" 2>/dev/null
ends=$("$wb" list --json --store "$tmp/of0.git" | json items.0.ended_at)
starts=$("$wb" list --json --store "$tmp/of1.git" | json items.0.started_at)
check "048: the second begins after the first, $starts against $ends" [ "$ends" \< "$starts" ]
nothing_left "048: two runs"

# --- caches: what a campaign that can be resumed was begun with stays, the rest goes and comes back ---

mkdir -p "$tmp/state"
cp -R "$WB_STATE/cache" "$tmp/state/"
state=$WB_STATE
export WB_STATE=$tmp/state
caches() { "$wb" clean --caches --store "$tmp/caches.git" --wait-for-host 600 >"$tmp/clean" 2>&1; }
prefixes() { find "$WB_STATE/prefix" -mindepth 1 -maxdepth 1 -type d | wc -l; }
store=$tmp/caches.git start broken "$aa" "${short[@]}" -f workload.phases.max.for=10s
within 700 says broken '^run 1/1 .*  max'
kill -9 "$pid"
wait "$pid" 2>/dev/null
caches
is "caches: clean after a kill" 0 $?
is "caches: the bits of what can be resumed stay" 1 "$(prefixes)"
check "caches: and that is said" grep -q "was kept: campaign $(campaign_of broken) can be resumed" "$tmp/clean" || cat "$tmp/clean"
"$wb" resume "$(campaign_of broken)" --store "$tmp/caches.git" --wait-for-host 600 >/dev/null 2>"$tmp/err" 8>&-
rc=$?
check "caches: it is resumed, here exit $rc" [ $rc -eq 0 -o $rc -eq 14 ] || tail -n 3 "$tmp/err"
caches
is "caches: clean after it" 0 $?
is "caches: then they go" 0 "$(prefixes)"
check "caches: artifacts stay" [ -s "$WB_STATE/cache/artifacts/redis/7.0.15/artifacts.json" ]
store=$tmp/caches.git run "$aa" "${short[@]}"
rc=$?
check "caches: the next run makes them again, here exit $rc" [ $rc -eq 0 -o $rc -eq 14 ]
is "caches: once" 1 "$(prefixes)"
export WB_STATE=$state
nothing_left "caches"

check "the store is whole" git --git-dir="$store" fsck --full --strict --no-progress
check "and verified" "$wb" verify --all --store "$store"
summary
