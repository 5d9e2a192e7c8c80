# shellcheck shell=bash disable=SC2154 # $store and $before are the tests'
# What the system tests share: counting, waiting with a deadline, and looking at the host.
# Sourced from the root of the tree. B names the build folder (default: build).
build=$(cd -- "${B:-build}" && pwd -P) || exit 2
# shellcheck disable=SC2034 # used by the tests
wb=$build/weighbridge
passed=0
failed=0
tmp=$(mktemp -d "${TMPDIR:-/tmp}/weighbridge-test.XXXXXX") || exit 2
tmp=$(cd "$tmp" && pwd -P)
echo "$$" >"$tmp/pid"
# What the user of this machine has set is none of a test's business.
export WB_CONFIG=/dev/null XDG_CONFIG_HOME=$tmp/settings
cleanup=()
# pause SECONDS: a wait without a process: what nobody writes to is read. (A process for each of
# thousands of waits makes bash mistake one whose number comes again for another.)
exec {never}<> <(:)
pause() { read -rt "$1" <&"$never"; }

# Whatever way a test ends, the host is free afterwards: what its campaigns left is removed first,
# while its container engine is still there.
finish() {
    local c p
    # Campaigns that this test began and that still wait or run are cancelled, and end by themselves.
    for p in $(jobs -p); do
        if [ "$(readlink "/proc/$p/exe")" = "$build/weighbridge" ]; then kill "$p" && wait "$p"; fi
    done
    leave_host
    for c in "${cleanup[@]}"; do $c 2>/dev/null; done
    rm -rf -- "$tmp"
}
trap finish EXIT

# Notes about runs on this host, and quarantines, of stores below a folder.
notes_below() { grep -lF "\"store\": \"$1/" /run/weighbridge/{runs,quarantine}/*.json 2>/dev/null; }
# Cleans up for every store below a folder that still has a note; a note whose container engine is
# gone for good is removed as the message of `run` says.
sweep() {
    local note store left
    while read -r note; do
        [ -e "$note" ] || continue
        store=$(sed -nE 's/^ *"store": "(.*)",?$/\1/p' "$note")
        left=$(sed -nE 's/^ *"owner": "(.*)",?$/\1/p' "$note")
        if [ -d "$store" ]; then
            timeout 60 "$wb" clean --store "$store" --wait-for-host 30 >/dev/null 2>&1 8>&-
        else
            timeout 60 "$wb" clean --owner "$left" --store "$store" --wait-for-host 30 >/dev/null 2>&1 8>&-
        fi || rm -f -- "$note"
    done < <(notes_below "$1")
}
leave_host() { [ -z "$(notes_below "$tmp")" ] || sweep "$tmp"; }

ok() {
    printf 'ok %s\n' "$1"
    passed=$((passed + 1))
}

# bad NAME WHY...: a result, with what helps to understand it.
bad() {
    local name=$1
    shift
    printf 'FAIL %s: %s\n' "$name" "$*"
    failed=$((failed + 1))
}

# check NAME COMMAND...: one result.
check() {
    local name=$1
    shift
    if "$@"; then
        ok "$name"
    else
        bad "$name" "$*"
        return 1
    fi
}

# is NAME WANTED GOT: one result.
is() {
    if [ "$2" = "$3" ]; then ok "$1"; else bad "$1" "wanted '$2', got '$3'"; fi
}

# within SECONDS COMMAND...: until the command succeeds, looked at 50 times a second.
within() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        pause 0.02
    done
    return 0 # the loop's own status is that of its last pause
}

gone() { ! kill -0 "$1" 2>/dev/null; }

# The value at a dotted path of a JSON document on stdin: `json a.b.0`, `json a.n` for the length of
# a list. Keys may have dots themselves: the longest one that is there wins. Perl's core has a JSON
# reader on every Debian.
json() {
    perl -MJSON::PP -e '
        local $/; my $d = JSON::PP->new->allow_nonref->decode(<STDIN>);
        my @k = split /\./, $ARGV[0];
        while (@k && defined $d) {
            if (ref $d eq "ARRAY") { my $k = shift @k; $d = $k eq "n" ? scalar @$d : $d->[$k]; next }
            my $n = @k;
            $n-- while $n > 1 && !exists $d->{join ".", @k[0 .. $n - 1]};
            $d = $d->{join ".", splice @k, 0, $n};
        }
        print defined $d ? (ref $d ? JSON::PP->new->canonical->encode($d) : $d) : "null", "\n"' "$1"
}

# Tests that look at the whole host go one after the other, also those of other trees on it. What
# they start in the background does not keep the turn: it is given 8>&-.
alone() {
    exec 8>>"${TMPDIR:-/tmp}/weighbridge-host-tests.lock"
    flock -w 3000 8 || {
        echo "another test has used this host for 50 minutes" >&2
        exit 2
    }
    # A test before this one that was killed has left its folder, and maybe more.
    local dead
    for dead in "${TMPDIR:-/tmp}"/weighbridge-test.*; do
        if [ ! -s "$dead/pid" ] || [ -d "/proc/$(cat "$dead/pid")" ]; then continue; fi
        sweep "$dead"
        umount -l "$dead"/disk 2>/dev/null
        rm -rf -- "$dead"
    done
}

engine_get() { curl -s --unix-socket "$WB_DOCKER_SOCKET" "http://engine$1"; }

# Runs of stores that are not this test's: other users of the host are none of its business.
others() {
    grep -LF "\"store\": \"$tmp/" /run/weighbridge/runs/*.json 2>/dev/null |
        sed -E 's|.*/(run_[0-9A-Z]+).json|\1|'
    echo "-none-" # grep -f wants at least one pattern
}

# Everything of ours on this host, a line each: control groups, processes (by mark, by program, by
# folder), containers with a mark, images, mounts, marks of runs, folders of runs. Compared before
# and after.
snapshot() {
    local p exe line
    others >"$tmp/others"
    [ -e "$tmp/ports" ] || listening >"$tmp/ports"
    {
        find /sys/fs/cgroup -type d -path '*weighbridge/*' 2>/dev/null | sed 's/^/group /'
        for p in /proc/[0-9]*; do
            exe=$(readlink "$p/exe" 2>/dev/null) || continue
            line=$(tr '\0' ' ' 2>/dev/null <"$p/cmdline")
            case "$exe $(readlink "$p/cwd" 2>/dev/null)/" in
            "$build"/* | "$tmp"/* | *" $build/test"/* | *" $tmp"/*) echo "process $exe $line" ;;
            *) tr '\0' '\n' 2>/dev/null <"$p/environ" | grep -q "^WB_MARK=wb.owner=$(owner);" && echo "process $line" ;;
            esac
        done
        if [ -S "${WB_DOCKER_SOCKET:-}" ]; then
            engine_get '/containers/json?all=1' | grep -o '"Names":\["[^"]*"' | sed 's/^/container /'
            engine_get '/images/json?all=1' | grep -o '"Id":"[^"]*"' | sed 's/^/image /' | sort
        fi
        grep -F " $build/test/" /proc/self/mounts | sed 's/^/mount /'
        find /run/weighbridge -mindepth 2 -name '*.json' 2>/dev/null | sed 's/^/note /'
        # Ports that runs get and nobody had at first, while no run of others can have them.
        [ "$(cat "$tmp/others")" != -none- ] || listening | grep -vxFf "$tmp/ports" |
            awk '$1 >= 16379 && $1 < 16780 { print "port " $1 }'
        find "$WB_STATE"/campaigns/*/runs -mindepth 1 -maxdepth 1 2>/dev/null | sed 's/^/folder /'
    } >"$tmp/seen"
    others >>"$tmp/others" # one that began meanwhile
    [ "$(sort -u "$tmp/others")" = -none- ] || sed -i '/^port /d' "$tmp/seen"
    grep -vFf "$tmp/others" "$tmp/seen"
    true
}
listening() {
    perl -ne 'print hex($1), "\n" if /^ *\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F:]+ 0A /' /proc/net/tcp /proc/net/tcp6 | sort -nu
}
owner() { git --git-dir="$store" symbolic-ref HEAD 2>/dev/null | sed 's|.*/||'; }

# What $before is of. A test of which something may stay, as images do, has its own.
things() { snapshot; }

# Whether the host looks as it did; what others do meanwhile gets a second and a third look.
nothing_left() {
    local now i
    for i in 1 2 3; do
        now=$(things)
        [ "$before" = "$now" ] && break
        [ "$i" -eq 3 ] || pause 0.5
    done
    is "$1: nothing is left" "$before" "$now"
}

# ---- for tests of campaigns: $store is theirs, $before what the host looked like ----

# The words of the newest run: outcome and teardown; all of it is in $tmp/newest.
newest() {
    "$wb" list --json --store "$store" | json items.0 >"$tmp/newest"
    perl -MJSON::PP -e 'my $d = decode_json(join "", <STDIN>); print "$d->{outcome} $d->{teardown}\n"' <"$tmp/newest"
}
runs() { "$wb" list --json --store "$store" | json items.n; }
run() { "$wb" run "$@" --store "$store" >"$tmp/out" 2>"$tmp/err" 8>&-; }
# start NAME ARGS...: a campaign in the background; its pid is in $pid, its words in $tmp/NAME.
start() {
    local name=$1
    shift
    : >"$tmp/$name"
    "$wb" run "$@" --store "$store" >"$tmp/$name.out" 2>"$tmp/$name" 8>&- &
    pid=$!
}
says() { grep -q -- "$2" "$tmp/$1"; }
campaign_of() { sed -nE 's/^campaign (cmp_[0-9A-Z]+):.*/\1/p' "$tmp/$1"; }
# outcome NAME EXIT "OUTCOME TEARDOWN" WORDS: of the run that has just ended with $rc.
outcome() {
    is "$1: exit $2" "$2" "$rc"
    is "$1: $3" "$3" "$(newest)"
    check "$1: the reason says '$4'" grep -qF -- "$4" "$tmp/newest" || reasons
    nothing_left "$1"
}
# group_pids PART: the processes of a part (db0, load) of the runs that go on, natively.
group_pids() {
    local dir
    for dir in "$WB_STATE"/campaigns/*/runs/run_*; do
        cat /sys/fs/cgroup/memory/weighbridge/"${dir##*/}-$1"/cgroup.procs \
            /sys/fs/cgroup/weighbridge/"${dir##*/}-$1"/cgroup.procs 2>/dev/null
    done
}
clean() { "$wb" clean --store "$store" --wait-for-host 600 >"$tmp/clean" 2>&1; }
reasons() { json reasons <"$tmp/newest"; }

# The attempts that began in $store, by the events of its campaigns: each of them has a record,
# and nothing else has one. Passes that do not count (calibration) are left out.
attempts() {
    perl -MJSON::PP -e '
        my ($store, @began) = shift;
        for my $dir (@ARGV) {
            open my $f, "<", "$dir/state.json" or next;
            my $state = eval { decode_json(join "", <$f>) } or next;
            next unless ($state->{store} // "") eq $store;
            open $f, "<", "$dir/events.ndjson" or next;
            while (<$f>) {
                my $e = eval { decode_json($_) } or next;
                push @began, $e->{run} if $e->{type} eq "run.start" && !$e->{calibrating};
            }
        }
        my %seen; print "$_\n" for sort grep { !$seen{$_}++ } @began' "$store" "$WB_STATE"/campaigns/*
}

# A copy of the recipes in $spoilt, to be spoilt.
spoilt=$tmp/recipes
fresh_recipes() {
    rm -rf "$spoilt"
    cp -R recipes "$spoilt"
}
# keep_prefixes: each spoilt recipe installs a prefix of its own; what comes from now on goes in the
# end.
keep_prefixes() {
    had_prefixes=$(ls "$WB_STATE/prefix" 2>/dev/null)
    cleanup+=(drop_prefixes)
}
drop_prefixes() {
    local p
    for p in "$WB_STATE"/prefix/*; do
        grep -qxF "${p##*/}" <<<"$had_prefixes" || rm -rf "$p"
    done
}
# The one of them that is.
spoilt_one=redis
# recipe_step NAME < SCRIPT: in the copy.
recipe_step() {
    { echo '#!/bin/sh' && cat; } >"$spoilt/$spoilt_one/steps/$1"
    chmod +x "$spoilt/$spoilt_one/steps/$1"
}
# limit STEP TIME: in the copy.
limit() {
    sed -i -E "/^steps:/,/^\$/{/^  $1:/d}; s/^steps:/steps:\n  $1: $2/" "$spoilt/$spoilt_one/recipe.yaml"
}

summary() {
    printf '%s passed, %s failed\n' "$passed" "$failed"
    [ "$failed" -eq 0 ]
}
