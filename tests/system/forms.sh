#!/bin/bash
# Several instances on one host, natively and in containers, on a real Redis: every key on the right
# instance, every instance where the plan says by the kernel's word, and nothing left. Needs root,
# redis-server, and a Docker Engine at $WB_DOCKER_SOCKET.
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
# shellcheck source=tests/support/lib.sh
. tests/support/lib.sh
export WB_STATE=$build/test/state WB_RECIPES=recipes
store=$tmp/store.git
study=recipes/redis/studies/forms.yaml
port=27100
servers=()

end_servers() {
    local pid
    for pid in "${servers[@]}"; do kill "$pid" 2>/dev/null; done
    for pid in "${servers[@]}"; do within 10 gone "$pid"; done
    servers=()
}
cleanup+=(end_servers)

# ---- wb-load alone: which instance has which key ----

pong() { [ "$(redis-cli -p "$1" ping 2>/dev/null)" = PONG ]; }

start_servers() { # N
    local i
    for ((i = 0; i < $1; i++)); do
        redis-server --port $((port + i)) --bind 127.0.0.1 --save '' --appendonly no \
            --dir "$tmp" --logfile "$tmp/redis-$i.log" >/dev/null &
        servers+=($!)
    done
    for ((i = 0; i < $1; i++)); do within 20 pong $((port + i)) || return 1; done
}

target() { # N
    local i list=
    for ((i = 0; i < $1; i++)); do list=$list,127.0.0.1:$((port + i)); done
    echo "resp://${list#,}"
}

stat_of() { redis-cli -p "$1" info stats | tr -d '\r' | sed -n "s/^$2://p"; }

for n in 2 3; do
    check "$n servers start" start_servers "$n"
    for threads in 1 2; do
        for ((i = 0; i < n; i++)); do redis-cli -p $((port + i)) flushall >/dev/null; done
        "$build/wb-load" "$(target "$n")" --split keys --load-only --keys 1000 --value 64B \
            --threads "$threads" --connections $((n * threads)) --depth 7 --quiet
        is "x$n, $threads threads: loading succeeds" 0 $?
        for ((i = 0; i < n; i++)); do
            awk -v n="$n" -v t="$i" 'BEGIN { for (k = t; k < 1000; k += n) printf "k%015d\n", k }' \
                >"$tmp/right"
            redis-cli -p $((port + i)) keys '*' | sort >"$tmp/keys"
            check "x$n, $threads threads: instance $i has its keys and no other" \
                cmp -s "$tmp/right" "$tmp/keys"
        done
        for how in '' '--rate 5k/s --arrivals poisson' '--key-choice zipf' '--ops 5000'; do
            # shellcheck disable=SC2086 # words
            "$build/wb-load" "$(target "$n")" --split keys --keys 1000 --value 64B \
                --threads "$threads" --connections $((n * threads)) --depth 4 \
                --mix get=80,set=20 --for 500ms $how --verify 10% -o - --quiet >"$tmp/result" 2>"$tmp/err"
            is "x$n, $threads threads, ${how:-closed}: nothing fails" 0 "$(json failed <"$tmp/result")"
            check "x$n, $threads threads, ${how:-closed}: something was done" \
                [ "$(json ok <"$tmp/result")" -gt 100 ]
        done
        for ((i = 0; i < n; i++)); do
            is "x$n, $threads threads: no key was looked for on the wrong instance $i" 0 \
                "$(stat_of $((port + i)) keyspace_misses)"
            is "x$n, $threads threads: no key was written to the wrong instance $i" \
                $(((1000 + n - 1 - i) / n)) "$(redis-cli -p $((port + i)) dbsize)"
        done
    done
    "$build/wb-load" "$(target "$n")" --split keys --keys 1000 --connections 8 --key-choice absent:50% \
        --for 300ms --quiet -o - >"$tmp/result"
    misses=$(json misses <"$tmp/result")
    ok=$(json ok <"$tmp/result")
    check "x$n: half of the keys are absent, here $misses of $ok" \
        [ "$misses" -gt $((ok * 45 / 100)) -a "$misses" -lt $((ok * 55 / 100)) ]
    "$build/wb-load" "$(target "$n")" --split keys --keys 1000 --connections $((n - 1)) --for 1s \
        >/dev/null 2>"$tmp/err"
    is "x$n: too few connections are refused" 2 $?
    check "x$n: with the number that is needed" grep -q "address: $n or more" "$tmp/err"
    end_servers
done

# ---- the engine ----

# What is on this host of ours, networks of containers and bridges too.
ours() {
    local b
    snapshot
    engine_get /networks | grep -o '"Name":"wb-[^"]*"' | grep -vFf "$tmp/others" | sed 's/^/network /'
    for b in /sys/class/net/br-*; do
        if [ -e "$b" ]; then echo "bridge ${b##*/}"; fi
    done
}

short=(--profile counts --rounds 1 -f workload.data.rows=2000
    -f "workload.phases=[{name: load, op: insert, order: sequential, connections: 8, depth: 16},
    {name: max, op: get, connections: 8, depth: 16, warm_up: 200ms, for: 1s}]")

# run NAME ARGS...: one round; its runs are in $tmp/NAME.list.
run() {
    local name=$1
    shift
    "$wb" run "$study" "${short[@]}" "$@" --wait-for-host 900 --store "$store" >"$tmp/out" \
        2>"$tmp/$name.err" 8>&-
    rc=$?
    # 14: too short or too noisy to be believed, which says nothing of the forms.
    check "$name: runs" [ $rc -eq 0 -o $rc -eq 14 ] || tail -n 5 "$tmp/$name.err"
    "$wb" list --json --store "$store" 2>/dev/null | perl -MJSON::PP -e 'local $/;
        my $d = decode_json(<STDIN>);
        print join("", map { "$_->{arm}\t$_->{id}\n" } grep { $_->{campaign} eq $ARGV[0] } @{$d->{items}})' \
        "$(campaign_of "$name.err")" >"$tmp/$name.list"
}

# field NAME ARM DOCUMENT EXPRESSION: perl of the document ($d) of the run of an arm.
field() {
    local id path
    id=$(awk -F '\t' -v arm="$2" '$1 == arm { print $2; exit }' "$tmp/$1.list")
    path=$(git --git-dir="$store" ls-tree -r --name-only HEAD | grep -- "$id/$3.json")
    git --git-dir="$store" show "HEAD:$path" |
        perl -MJSON::PP -e 'local $/; my $d = decode_json(<STDIN>);
            my @v = eval $ARGV[0]; die $@ if $@; print join(" ", map { $_ // "null" } @v), "\n"' "$4"
}
# Values of the placement of all instances in the phase max, instance by instance.
placed() {
    # shellcheck disable=SC2016 # perl's variables
    field "$1" "$2" environment 'map { $_->{'"$3"'} } sort { $a->{instance} <=> $b->{instance} }
        grep { $_->{role} eq "database" && ($_->{phase} // "") eq "max" } @{$d->{placement}}'
}

# The base image and the packages are there before anything is compared.
run first -f 'form=docker x1'
before=$(ours)
cpus=$(placed first 'docker x1' cpus)

run shared -f 'form=native x2, docker x2'
for arm in 'native x2' 'docker x2'; do
    # shellcheck disable=SC2016
    is "$arm: its run is ok" ok "$(field shared "$arm" summary '$d->{outcome}')"
    is "$arm: both instances on the database's CPUs" "$cpus $cpus" "$(placed shared "$arm" cpus)"
    is "$arm: both processes, too" "$cpus $cpus" "$(placed shared "$arm" affinity)"
    is "$arm: together they have the memory of native x1" "536870912 536870912" \
        "$(placed shared "$arm" memory_bytes)"
    check "$arm: in a group each" \
        [ "$(placed shared "$arm" group | tr ' ' '\n' | sort -u | wc -l)" -eq 2 ]
    # shellcheck disable=SC2016
    is "$arm: half of the rows each" "1000 1000" \
        "$(field shared "$arm" result 'map { $_->{metrics}{keys} } @{$d->{server}}')"
    # shellcheck disable=SC2016
    is "$arm: every key was where it was looked for" "0 0" \
        "$(field shared "$arm" result 'map { $_->{metrics}{misses} } @{$d->{server}}')"
    # shellcheck disable=SC2016
    is "$arm: both are of the right version" "7.0.15 7.0.15" \
        "$(field shared "$arm" environment 'map { $_->{version} } @{$d->{probes}}')"
    # shellcheck disable=SC2016
    is "$arm: its start and end are told" 2 \
        "$(field shared "$arm" events 'map { scalar @{$_->{instances}} } grep { $_->{type} eq "run.instances" } @$d')"
done
is "nothing is left of two instances" "$before" "$(ours)"

run instance -f 'form=docker x2' -f share=instance -f memory=256MiB
is "share: instance gives each the whole" "268435456 268435456" \
    "$(placed instance 'docker x2' memory_bytes)"
run none -f 'form=native x2, docker x2' -f limits=none
for arm in 'native x2' 'docker x2'; do
    is "limits: none, $arm: no limit of memory" "null null" "$(placed none "$arm" memory_bytes)"
    is "limits: none, $arm: the CPUs hold all the same" "$cpus $cpus" "$(placed none "$arm" cpus)"
done
run quota -f 'form=native x2, docker x2' -f cpu_quota=0.8
for arm in 'native x2' 'docker x2'; do
    is "a quota of 0.8 is 0.4 each for $arm" "0.4 0.4" "$(placed quota "$arm" cpu_quota)"
done
if [ "$(nproc)" -ge 2 ]; then
    run disjoint -f 'form=native x2, docker x2' -f cpus=disjoint -f placement=shared
    for arm in 'native x2' 'docker x2'; do
        check "disjoint CPUs, $arm: $(placed disjoint "$arm" cpus)" \
            [ "$(placed disjoint "$arm" cpus | tr ' ' '\n' | sort -u | wc -l)" -eq 2 ]
        is "disjoint CPUs, $arm: the processes are on them" "$(placed disjoint "$arm" cpus)" \
            "$(placed disjoint "$arm" affinity)"
    done
fi
is "nothing is left of any of them" "$before" "$(ours)"

# A cluster: the database itself knows which instance has a key, and would refuse it elsewhere.
run cluster -f 'form=native x3, docker x2' -f topology=cluster -f workload.phases.load.connections=9 \
    -f 'workload.phases.max.mix={get: 50%, set: 50%}' -f workload.phases.max.op=~
for arm in 'native x3' 'docker x2'; do
    # shellcheck disable=SC2016
    is "cluster, $arm: the run is ok" ok "$(field cluster "$arm" summary '$d->{outcome}')"
    # shellcheck disable=SC2016
    is "cluster, $arm: every instance is of the cluster" cluster \
        "$(field cluster "$arm" environment 'map { $_->{facts}{redis_mode} } @{$d->{probes}}' | xargs -n 1 | sort -u)"
    # shellcheck disable=SC2016
    is "cluster, $arm: all rows are there" 2000 \
        "$(field cluster "$arm" result 'my $n = 0; $n += $_->{metrics}{keys} for @{$d->{server}}; $n')"
    # shellcheck disable=SC2016
    check "cluster, $arm: on each about as many" \
        [ "$(field cluster "$arm" result 'sort { $a <=> $b } map { $_->{metrics}{keys} } @{$d->{server}}' | cut -d ' ' -f 1)" -gt 500 ]
    # shellcheck disable=SC2016
    is "cluster, $arm: no instance sent a key away" 0 \
        "$(field cluster "$arm" result 'my $n = 0; $n += $_->{metrics}{error_replies} for @{$d->{server}}; $n')"
    # shellcheck disable=SC2016
    is "cluster, $arm: no operation failed" 0 \
        "$(field cluster "$arm" result 'map { $_->{load}{failed} } grep { $_->{name} eq "max" } @{$d->{phases}}')"
done
is "nothing is left of a cluster" "$before" "$(ours)"

# Containers that are not on the host's network.
for network in published routed; do
    run $network -f 'form=docker x2' -f network=$network
    # shellcheck disable=SC2016
    is "$network: the run is ok" ok "$(field $network 'docker x2' summary '$d->{outcome}')"
    # shellcheck disable=SC2016
    is "$network: half of the rows each" "1000 1000" \
        "$(field $network 'docker x2' result 'map { $_->{metrics}{keys} } @{$d->{server}}')"
    # shellcheck disable=SC2016
    is "$network: it is in the plan" $network "$(field $network 'docker x2' plan '$d->{arms}[0]{network}')"
    is "nothing is left of network $network" "$before" "$(ours)"
done
# shellcheck disable=SC2016
proxies=$(field published 'docker x2' environment 'map { $_->{helper}{cpus} // "none" }
    grep { $_->{role} eq "database" && ($_->{phase} // "") eq "max" } @{$d->{placement}}')
case $proxies in
"none none") ok "published: the kernel forwards the ports" ;;
*) is "published: the port proxies are on the database's CPUs" "$cpus $cpus" "$proxies" ;;
esac

# The engine is killed with two containers on a network of their run: clean finds all of it, and
# for the container whose id it has, whatever else belongs to it.
for network in published routed; do
    : >"$tmp/killed.err" # not the words of the one before
    "$wb" run "$study" "${short[@]}" -f 'form=docker x2' -f network=$network \
        -f workload.phases.max.for=20s --wait-for-host 900 --store "$store" \
        >"$tmp/out" 2>"$tmp/killed.err" &
    pid=$!
    within 300 grep -q '^run .*  max' "$tmp/killed.err"
    kill -9 "$pid"
    wait "$pid" 2>/dev/null
    check "$network: a killed engine leaves something" [ "$(ours)" != "$before" ]
    "$wb" clean --store "$store" --wait-for-host 600 >"$tmp/out" 2>&1
    is "$network: clean ends well" 0 $?
    is "$network: and leaves nothing" "$before" "$(ours)"
done

# Steps of rates: phases of their own, in an order that changes from round to round.
run steps --rounds 4 -f 'form=native x1' -f "workload.phases=[
    {name: load, op: insert, order: sequential}, {name: mixed, mix: {get: 90%, set: 10%},
    rate: [500/s, 1k/s, 2k/s], warm_up: 0s, for: 200ms}]"
# shellcheck disable=SC2016
is "steps stand in the study's order in the result" "load mixed@500 mixed@1k mixed@2k" \
    "$(field steps 'native x1' result 'map { $_->{name} } @{$d->{phases}}')"
# shellcheck disable=SC2016
is "their metrics are named so" "mixed@1k.p99_ms mixed@2k.p99_ms mixed@500.p99_ms" \
    "$(field steps 'native x1' summary 'sort grep { /p99_ms/ } keys %{$d->{metrics}}')"
orders=$(grep '^run ' "$tmp/steps.err" | grep -o 'mixed@[0-9k]*' | paste -d ' ' - - - | sort -u | wc -l)
check "their order is not the same in all rounds" [ "$orders" -gt 1 ]

# Refused before anything is started, with the way out.
refused() { # NAME WORDS ARGS...
    local name=$1 words=$2
    shift 2
    "$wb" plan "$study" --profile counts "$@" >"$tmp/out" 2>&1
    check "$name: refused, not $?" [ $? -ne 0 ]
    check "$name: says '$words'" grep -qF -- "$words" "$tmp/out"
}
refused "two instances of topology single" 'write topology: sharded' -f topology=single \
    -f 'form=native x2'
refused "too few connections" 'needs one to each instance: 16 or more' -f 'form=docker x16'
refused "memory for 32 instances" 'memory of 1.0 GiB is too little for 32 instances' \
    -f 'form=docker x32' -f connections=64 -f workload.phases.load.connections=64
refused "more memory than there is" 'but this host has' -f share=instance -f memory=1TiB
if [ "$(nproc)" -eq 2 ]; then
    refused "disjoint parts of one CPU" 'cannot cut the 1 CPU of the database into 2 equal parts' \
        -f cpus=disjoint -f 'form=native x2'
fi
refused "a cluster behind published ports" 'take network: host or routed' -f topology=cluster \
    -f network=published -f 'form=docker x2'
refused "a quota of no limits" 'cpu_quota 0.5 is a limit' -f limits=none -f cpu_quota=0.5
is "nothing is left at the end" "$before" "$(ours)"
summary
