#!/bin/bash
# with-docker and the docker form against real Docker Engines. Needs root and docker.io.
# B names the build folder that has system/docker_form (default: build).
# shellcheck disable=SC2016 # the commands given to with-docker expand their own variables
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
build=${B:-build}
passed=0
failed=0
tmp=$(mktemp -d) || exit 2
trap 'rm -rf -- "$tmp"' EXIT
given=${WB_DOCKER_SOCKET:-}
unset DOCKER_HOST WB_DOCKER_SOCKET

ok() {
    printf 'ok %s\n' "$1"
    passed=$((passed + 1))
}

bad() {
    printf 'FAIL %s\n' "$*"
    failed=$((failed + 1))
}

# check NAME CONDITION...: one result.
check() {
    local name=$1
    shift
    if "$@"; then ok "$name"; else bad "$name" "$*"; fi
}

# No living process of the engine below $WB_DOCKER_DIR names it.
no_process() {
    local dir
    for dir in /proc/[0-9]*; do
        case $(tr '\0' ' ' 2>/dev/null <"$dir/cmdline") in
        *dockerd*"$WB_DOCKER_DIR"* | *containerd*"$WB_DOCKER_DIR"*)
            return 1
            ;;
        esac
    done
}

# Nothing of that engine: no process, no mount below its folder.
nothing_left() {
    no_process && ! grep -qF -- " $WB_DOCKER_DIR" /proc/self/mounts
}

not_running() {
    ! grep -q '^State:.*[RSD] ' "/proc/$1/status" 2>/dev/null
}

# until_true SECONDS CONDITION...
until_true() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$deadline" ] || return 1
        read -r -t 0.1 <>"$tmp/never" || :
    done
}
mkfifo "$tmp/never" || exit 2

if [ -S /var/run/docker.sock ]; then
    printf 'an engine runs here: with-docker uses it, its own engines are not tested\n' >&2
else
    export WB_DOCKER_DIR=$tmp/engine
    with=provisioners/with-docker

    out=$(printf 'in\n' | $with sh -c 'cat; [ -S "$WB_DOCKER_SOCKET" ]; echo "$?"; exit 7' 2>"$tmp/err")
    check with-docker-status test "$?:$out" = "7:in
0"
    check with-docker-nothing-left nothing_left

    $with "$PWD/$with" sh -c 'kill -9 $$' 2>"$tmp/err"
    check with-docker-nested test "$?" = 137
    check with-docker-nested-left nothing_left

    # A signal to the script reaches the command, whose status comes back.
    $with bash -c 'trap "exit 5" TERM; trap "exit 6" INT; : >"$1"; while :; do read -r -t 0.1 <>"$2"; done' \
        - "$tmp/up" "$tmp/never" 2>"$tmp/err" &
    pid=$!
    until_true 60 test -e "$tmp/up"
    kill -TERM "$pid"
    wait "$pid"
    check with-docker-term test "$?" = 5
    check with-docker-term-left nothing_left

    # A killed script takes its engine with it; the next one is not disturbed.
    rm -f "$tmp/up"
    $with sh -c ': >"$1"; exec sleep 2' - "$tmp/up" 2>"$tmp/err" &
    pid=$!
    until_true 60 test -e "$tmp/up"
    kill -KILL "$pid"
    wait "$pid" 2>/dev/null
    check with-docker-killed until_true 40 no_process
    $with true 2>"$tmp/err"
    check with-docker-after-kill test "$?" = 0
    check with-docker-after-kill-left nothing_left

    # An engine that dies is told, with its log.
    $with sh -c 'pid=$(cat "$WB_DOCKER_DIR/dockerd.pid"); kill -KILL "$pid"
        while grep -q "^State:.*[RSD] " "/proc/$pid/status" 2>/dev/null; do :; done; exit 3' 2>"$tmp/err"
    check with-docker-dies test "$?" = 3
    check with-docker-dies-said grep -q 'ended while the command ran' "$tmp/err"
    check with-docker-dies-left nothing_left

    # One that ends before it answers as well.
    mkdir "$tmp/bin"
    printf '#!/bin/sh\necho this is why\nexit 1\n' >"$tmp/bin/dockerd"
    chmod +x "$tmp/bin/dockerd"
    PATH=$tmp/bin:$PATH $with true 2>"$tmp/err"
    check with-docker-no-start test "$?" = 125
    check with-docker-no-start-said grep -q 'this is why' "$tmp/err"
    check with-docker-no-start-left nothing_left

    # Two do not share a folder: the second waits, for a time.
    WB_DOCKER_WAIT=1 flock "$WB_DOCKER_DIR/lock" $with true 2>"$tmp/err"
    check with-docker-locked test "$?" = 125
    check with-docker-locked-said grep -q 'waiting for with-docker true' "$tmp/err"
    check with-docker-locked-left nothing_left
    unset WB_DOCKER_DIR
fi

# The form, on the engine that was given or on one of its own. The base image is kept in build.
[ -z "$given" ] || export WB_DOCKER_SOCKET=$given
while read -r line; do
    case $line in
    'ok '*) ok "${line#ok }" ;;
    'FAIL '*) bad "${line#FAIL }" ;;
    *' passed, '*) seen=$line ;;
    *) printf '%s\n' "$line" ;;
    esac
done < <(provisioners/with-docker "$build/system/docker_form" "$PWD/build/docker/cache" 2>&1)
[ -n "${seen:-}" ] || bad docker-form "it did not come to its end"

# An engine that is killed leaves its containers behind: with-docker ends them too.
base=$(find build/docker/cache -name 'rootfs-*.tar' 2>/dev/null | head -n 1)
if [ ! -S /var/run/docker.sock ] && [ -n "$base" ] && command -v docker >/dev/null; then
    export WB_DOCKER_DIR=$tmp/killed
    unset WB_DOCKER_SOCKET
    provisioners/with-docker sh -c 'd="docker -H unix://$WB_DOCKER_SOCKET"
        $d import "$1" base >/dev/null && id=$($d run -d --network host base sleep 1000) || exit 4
        $d inspect -f "{{.State.Pid}}" "$id" >"$2"
        kill -KILL "$(cat "$WB_DOCKER_DIR/dockerd.pid")"' - "$base" "$tmp/pid" 2>"$tmp/err"
    check with-docker-container-ran grep -qx '[1-9][0-9]*' "$tmp/pid"
    pid=$(cat "$tmp/pid")
    check with-docker-container-ended until_true 5 not_running "$pid"
    check with-docker-killed-left nothing_left
fi

printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
