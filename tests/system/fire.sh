#!/bin/bash
# The engine under fire: kill -9 of the engine, the load worker, the database, its supervisor and the
# container engine at every phase and at FIRE_TIMES random moments (50), which FIRE_SEED repeats.
# After `clean` or `resume` nothing may be left of processes, containers, images, mounts, folders,
# ports, control groups and marks, no half record, and every attempt has one.
#
# The container engine that is killed is this test's own, in a folder of its own.
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
# shellcheck source=tests/support/lib.sh
. tests/support/lib.sh
alone
export WB_STATE=$build/test/state WB_RECIPES=recipes
store=$tmp/store.git
times=${FIRE_TIMES:-50}
seed=${FIRE_SEED:-$RANDOM}
RANDOM=$seed
echo "FIRE_SEED=$seed"
# A campaign with every phase: data load, closed loop, calibrated open loop.
study=(recipes/redis/studies/forms.yaml --profile small -f workload.phases.max.warm_up=100ms
    -f workload.phases.max.for=700ms -f workload.data.rows=1000
    -f workload.phases.latency.warm_up=100ms -f workload.phases.latency.for=500ms
    -f workload.phases.latency.rate=2k/s --rounds 1 --wait-for-host 600)

# Processes of this test's runs: of their database or their load, natively or in a container.
in_group() { # db0|load
    local id
    group_pids "$1"
    [ "$1" = load ] && return
    engine_get /containers/json | grep -o '"Id":"[0-9a-f]*"' | cut -d'"' -f4 | while read -r id; do
        cat /sys/fs/cgroup/memory/docker/"$id"/cgroup.procs /sys/fs/cgroup/docker/"$id"/cgroup.procs 2>/dev/null
    done
}
is_there() { in_group "$1" | grep -q .; }
supervisor() {
    local p
    for p in /proc/[0-9]*; do
        [ "$(cat "$p/comm" 2>/dev/null)" = wb-job ] && [ "$(readlink "$p/exe")" = "$build/weighbridge" ] &&
            echo "${p#/proc/}" && return
    done
}

recorded() { "$wb" list --json --store "$store" | grep -o '"id": "run_[0-9A-Z]*"' | cut -d'"' -f4 | sort; }
# balanced NAME: keeps what tells why when it is not so.
balanced() {
    attempts >"$tmp/attempts"
    recorded >"$tmp/recorded"
    check "$1: attempts are the records" cmp -s "$tmp/attempts" "$tmp/recorded" && return
    diff "$tmp/attempts" "$tmp/recorded"
    local keep=$build/test/fire-evidence.$$
    mkdir -p "$keep"
    cp -a "$WB_STATE/campaigns" "$store" "$tmp"/{kill,clean,random,newest} "$keep" 2>/dev/null
    echo "kept in $keep"
}
# told NAME PHASE: what the newest record says after the engine was killed in a phase. A kill that
# came after the commit of the run, which only one sent in collect or later can, finds a whole run.
told() {
    local got where=deploy
    got=$(newest)
    case $2 in
    collect | teardown)
        if [ "$got" = "ok clean" ] && grep -q '"interrupted"' "$tmp/newest"; then got="ok but interrupted"; fi
        [ "$got" = "ok clean" ] && check "$1: over before, and whole" whole && return
        where="($2|teardown)"
        ;;
    *) where="(deploy|ready|probe|load|max|latency|collect|teardown)" ;;
    esac
    is "$1: a harness-error" "harness-error clean" "$got"
    check "$1: the record says where" grep -qE "the last phase that began was $where" "$tmp/newest" || reasons
}
whole() {
    [ "$(json metrics.max.throughput.value <"$tmp/newest")" != null ] ||
        [ "$(perl -MJSON::PP -e 'print scalar keys %{decode_json(join "", <STDIN>)->{metrics}}' <"$tmp/newest")" -gt 0 ]
}

run "${study[@]}"
rc=$?
check "the study itself works, here exit $rc" [ $rc -eq 0 -o $rc -eq 14 ] || tail -n 5 "$tmp/err"
before=$(snapshot)

# --- the engine, once in each phase ---

for form in native docker; do
    for phase in deploy ready probe load max latency collect teardown; do
        had=$(runs)
        start kill "${study[@]}" -f "factors.form=[$form x1]"
        within 700 says kill "^run 1/1 .*  $phase" || bad "$form: $phase is reached" "$(tail -n 3 "$tmp/kill")"
        kill -9 "$pid"
        wait "$pid" 2>/dev/null
        clean
        is "$form: clean after kill -9 in $phase" 0 $?
        nothing_left "$form: kill -9 in $phase"
        is "$form: kill -9 in $phase leaves one record more" $((had + 1)) "$(runs)"
        told "$form: kill -9 in $phase" "$phase"
        balanced "$form: kill -9 in $phase"
    done
done
clean
check "a second clean finds nothing" grep -q '^0 interrupted campaigns closed, 0 attempts recorded, 0 things' "$tmp/clean"

# Without a clean: the next run does it, and says so.
start kill "${study[@]}" -f 'factors.form=[native x1]'
within 700 says kill '^run 1/1 .*  max'
kill -9 "$pid"
wait "$pid" 2>/dev/null
run "${study[@]}" -f 'factors.form=[native x1]'
check "the next run cleans up first" grep -q '^cleaned up after an engine that was killed: 1 campaigns closed, 1 attempts' "$tmp/err"
nothing_left "the next run"

# Resume: the interrupted round again, the finished ones not.
start resume "${study[@]}" --rounds 3
within 700 says resume '^run 4/6 .*  max'
kill -9 "$pid"
wait "$pid" 2>/dev/null
id=$(campaign_of resume)
"$wb" resume "$id" --store "$store" --wait-for-host 600 >"$tmp/out" 2>"$tmp/err" 8>&-
rc=$?
check "resume comes to the end, here exit $rc" [ $rc -eq 0 -o $rc -eq 14 ]
check "and says what it repeats" grep -q '^round 2 was interrupted: it is repeated whole as attempt 2' "$tmp/err"
"$wb" list --json --store "$store" >"$tmp/list"
is "both attempts of round 2 are kept, round 1 and 3 have one" "1.1 1.1 2.1 2.1 2.2 2.2 3.1 3.1" \
    "$(perl -MJSON::PP -e 'my $d = decode_json(join "", <STDIN>);
        print join " ", sort map { "$_->{round}.$_->{attempt}" } grep { $_->{campaign} eq $ARGV[0] } @{$d->{items}}' "$id" <"$tmp/list")"
"$wb" resume "$id" --store "$store" --wait-for-host 600 >"$tmp/out" 2>"$tmp/err" 8>&-
is "a finished campaign is not resumed" 22 $?
nothing_left "resume"
# Twice interrupted in the same round: given up, the others go on.
start twice "${study[@]}" -f 'factors.form=[native x1]' --rounds 2
within 700 says twice '^run 1/2 .*  max'
kill -9 "$pid"
wait "$pid" 2>/dev/null
id=$(campaign_of twice)
: >"$tmp/twice2"
"$wb" resume "$id" --store "$store" --wait-for-host 600 >/dev/null 2>"$tmp/twice2" 8>&- &
pid=$!
within 700 says twice2 '^run 1/2 .*  max'
kill -9 "$pid"
wait "$pid" 2>/dev/null
"$wb" resume "$id" --store "$store" --wait-for-host 600 >/dev/null 2>"$tmp/err" 8>&-
check "a round that was interrupted twice is given up" grep -q '^round 1 was interrupted in 2 attempts: it is given up' "$tmp/err"
check "and the next one is run" grep -q '^run 2/2 ' "$tmp/err"
nothing_left "a round given up"
# Another recipe than before is refused.
fresh_recipes
start other "${study[@]}" -f 'factors.form=[native x1]'
wait "$pid"
: >"$tmp/changed"
WB_RECIPES=$spoilt "$wb" run "$spoilt/${study[0]#recipes/}" "${study[@]:1}" -f 'factors.form=[native x1]' --store "$store" >/dev/null 2>"$tmp/changed" 8>&- &
pid=$!
within 700 says changed '^run 1/1 .*  max'
kill -9 "$pid"
wait "$pid" 2>/dev/null
echo '# changed' >>"$spoilt/redis/files/redis.conf"
"$wb" resume "$(campaign_of changed)" --store "$store" --wait-for-host 600 >/dev/null 2>"$tmp/err" 8>&-
is "a changed recipe is not resumed" 22 $?
check "and named" grep -q 'the recipe redis in .* was changed' "$tmp/err"
clean
nothing_left "a changed recipe"

# --- database, load worker and supervisor in each phase ---

for form in native docker; do
    while read -r victim group phase wanted; do
        had=$(runs)
        start kill "${study[@]}" -f "factors.form=[$form x1]" -f workload.data.rows=60000
        within 700 says kill "^run 1/1 .*  $phase"
        within 5 is_there "$group"
        # shellcheck disable=SC2046 # a list of pids
        kill -9 $(in_group "$group") 2>/dev/null
        wait "$pid"
        got=$(newest)
        check "$form: kill -9 of the $victim in $phase: $got" grep -qE "^($wanted) clean\$" <<<"$got" || reasons
        nothing_left "$form: kill -9 of the $victim in $phase"
    done <<'CASES'
database db0 ready sut-error
database db0 load sut-error
database db0 max sut-error
database db0 latency sut-error
load load load harness-error
load load max harness-error
CASES
done
# Near the end nobody can tell: a database that is killed while it is being stopped did stop.
for phase in collect teardown; do
    start kill "${study[@]}" -f 'factors.form=[native x1]'
    within 700 says kill "^run 1/1 .*  $phase"
    # shellcheck disable=SC2046 # a list of pids
    kill -9 $(in_group db0) 2>/dev/null
    wait "$pid"
    check "kill -9 of the database in $phase: one word, $(newest)" grep -qE '^(ok|sut-error) clean$' <<<"$(newest)"
    nothing_left "kill -9 of the database in $phase"
done
start kill "${study[@]}" -f 'factors.form=[native x1]'
within 700 says kill '^run 1/1 .*  probe'
kill -9 "$(supervisor)"
wait "$pid"
check "kill -9 of a supervisor: one word, $(newest)" grep -qE '^(ok|infra-error) clean$' <<<"$(newest)"
nothing_left "kill -9 of a supervisor"

# --- random moments ---

# How long a run of both forms takes from its start to its end, measured here and now.
began=${EPOCHREALTIME/./}
run "${study[@]}"
span=$(((${EPOCHREALTIME/./} - began) / 1000)) # ms
for ((i = 1; i <= times; i++)); do
    had=$(runs)
    victims=(engine engine engine db0 load supervisor)
    victim=${victims[RANDOM % 6]}
    start random "${study[@]}"
    at=$((RANDOM * span / 32768))
    pause "$((at / 1000)).$(printf %03d $((at % 1000)))"
    case $victim in
    engine) pids=$pid ;;
    supervisor) pids=$(supervisor) ;;
    *) pids=$(in_group "$victim") ;;
    esac
    # shellcheck disable=SC2086 # a list of pids
    [ -n "$pids" ] && kill -9 $pids 2>/dev/null
    [ "$victim" = engine ] || wait "$pid"
    wait "$pid" 2>/dev/null
    id=$(campaign_of random)
    if [ $((RANDOM % 2)) = 0 ] && [ -n "$id" ] && [ "$victim" = engine ]; then
        "$wb" resume "$id" --store "$store" --wait-for-host 600 >/dev/null 2>"$tmp/err" 8>&-
        rc=$?
        check "random $i: $victim at $at ms, resume: exit $rc" grep -qx "$rc" <<<$'0\n14\n22'
    else
        # A clean may be killed as well.
        "$wb" clean --store "$store" >/dev/null 2>&1 8>&- &
        cleaner=$!
        pause "0.0$((RANDOM % 10))"
        kill -9 "$cleaner" 2>/dev/null
        wait "$cleaner" 2>/dev/null
        clean
        is "random $i: $victim at $at ms, clean" 0 $?
    fi
    nothing_left "random $i: $victim at $at ms"
    balanced "random $i: $victim at $at ms"
done
check "the store is whole" git --git-dir="$store" fsck --full --strict --no-progress
check "and verified" "$wb" verify --all --store "$store"

# --- the container engine, its own ---

unset DOCKER_HOST
docker_dir=$build/test/fire-docker
docker_run=/tmp/wb-fire-$$
export WB_DOCKER_SOCKET=$docker_run/engine.sock
engine_start() {
    mkdir -p "$docker_dir" "$docker_run"
    setsid setpriv --pdeathsig KILL dockerd --data-root="$docker_dir" --exec-root="$docker_run/exec" \
        --pidfile="$docker_run/dockerd.pid" --host="unix://$WB_DOCKER_SOCKET" --group="$(id -g)" --bridge=none \
        --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false >>"$tmp/dockerd.log" 2>&1 </dev/null 8>&- &
    dockerd=$!
    within 60 answers || {
        tail -n 5 "$tmp/dockerd.log"
        return 1
    }
}
answers() { [ "$(engine_get /_ping 2>/dev/null)" = OK ]; }
# Its containerd dies with it, but where process 1 is slow to reap it counts as alive to the next
# engine, which then waits for it in vain.
engine_kill() {
    local file=$docker_run/exec/containerd/containerd.pid daemon
    daemon=$(cat "$file" 2>/dev/null)
    kill -9 "$dockerd"
    wait "$dockerd" 2>/dev/null
    [ -z "$daemon" ] || within 30 ended "$daemon" || echo "containerd $daemon outlives its engine"
    rm -f -- "$file"
}
ended() { ! grep -q '^State:[[:space:]]*[^[:space:]ZX]' "/proc/$1/status" 2>/dev/null; }
engine_stop() {
    kill -TERM "$dockerd" 2>/dev/null
    wait "$dockerd" 2>/dev/null
    awk -v a="$docker_dir/" -v b="$docker_run/" 'index($2, a) == 1 || index($2, b) == 1 { print $2 }' \
        /proc/self/mounts | sort -ru | xargs -r umount -l
    rm -rf -- "$docker_run"
}
cleanup+=(engine_stop)
docker_study=("${study[@]}" -f 'factors.form=[docker x1]')

engine_start || exit 2
run "${docker_study[@]}"
rc=$?
check "the study works on an engine of its own, here exit $rc" [ $rc -eq 0 -o $rc -eq 14 ] || tail -n 5 "$tmp/err"
before=$(snapshot)
for phase in deploy ready probe load max latency collect teardown; do
    had=$(runs)
    start gone "${docker_study[@]}"
    within 700 says gone "^run 1/1 .*  $phase"
    engine_kill
    wait "$pid"
    rc=$?
    got=$(newest)
    check "container engine killed in $phase: exit 16 and incomplete, or over before, here $rc, $got" \
        grep -qE '^16 (infra-error|ok|sut-error) incomplete$|^(0|14) ok clean$' <<<"$rc $got" || reasons
    if [ "$rc" -eq 16 ]; then
        run "${docker_study[@]}"
        is "container engine killed in $phase: the host is in quarantine" 22 $?
        run "${study[@]}" -f 'factors.form=[native x1]'
        is "container engine killed in $phase: for all forms" 22 $?
        clean
        is "container engine killed in $phase: no clean without the engine" 16 $?
    fi
    engine_start || exit 2
    clean
    is "container engine killed in $phase: clean once it is back" 0 $?
    nothing_left "container engine killed in $phase"
    run "${study[@]}" -f 'factors.form=[native x1]'
    rc=$?
    check "container engine killed in $phase: the host is used again, here exit $rc" [ $rc -eq 0 -o $rc -eq 14 ]
done
# Engine and container engine both, and a container engine that is there but does not answer.
start both "${docker_study[@]}"
within 700 says both '^run 1/1 .*  max'
kill -9 "$pid"
engine_kill
wait "$pid" 2>/dev/null
run "${study[@]}" -f 'factors.form=[native x1]'
is "both killed: the next run cannot clean up and is refused" 22 $?
engine_start || exit 2
clean
is "both killed: clean once it is back" 0 $?
is "both killed: the attempt is recorded" "harness-error incomplete" "$(newest)"
nothing_left "both killed"
balanced "both killed"

# Killed while the image is made.
engine_get '/images/json' | grep -o '"Id":"sha256:[0-9a-f]*' | cut -d'"' -f4 | while read -r image; do
    curl -s -X DELETE --unix-socket "$WB_DOCKER_SOCKET" "http://engine/images/$image?force=1" >/dev/null
done
had=$(runs)
start image "${docker_study[@]}"
within 60 says image '^importing the image'
kill -9 "$pid"
wait "$pid" 2>/dev/null
clean
is "killed while the image is made: clean" 0 $?
is "killed while the image is made: no record" "$had" "$(runs)"
run "${docker_study[@]}"
rc=$?
check "killed while the image is made: the next run makes it, here exit $rc" [ $rc -eq 0 -o $rc -eq 14 ]
is "and there is one image" 1 "$(engine_get '/images/json?all=1' | grep -o '"Id":"' | wc -l)"

check "the store is whole at the end" git --git-dir="$store" fsck --full --strict --no-progress
check "and verified at the end" "$wb" verify --all --store "$store"
summary
