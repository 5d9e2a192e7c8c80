#!/bin/bash
# The whole line on a real Redis, natively and in a real container: from the study file to a
# verdict in git. Needs root, and a Docker Engine at $WB_DOCKER_SOCKET.
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
# shellcheck source=tests/support/lib.sh
. tests/support/lib.sh
alone
export WB_STATE=$build/test/state WB_RECIPES=recipes
store=$tmp/store.git
study=recipes/redis/studies/forms.yaml
short=(-f workload.phases.max.warm_up=300ms -f workload.phases.max.for=1s
    -f workload.phases.latency.warm_up=300ms -f workload.phases.latency.for=1s
    -f workload.data.rows=2000 -f "form=native x1, docker x1")

# Images stay as a cache between campaigns and are no leftover.
things() { snapshot | grep -v '^image '; }
before=$(things)
"$wb" run "$study" --profile small "${short[@]}" --rounds 2 --store "$store" --controller lab \
    >"$tmp/out" 2>"$tmp/err"
rc=$?
# 14: every run was noisy, which says something of this host and nothing of the program.
check "run ends with 0 or 14, here $rc" [ $rc -eq 0 -o $rc -eq 14 ]
[ "$failed" -eq 0 ] || tail -n 20 "$tmp/err"
is "nothing is left on the host" "$before" "$(things)"
is "no line is wider than 80 columns" "" "$(grep -E '^.{81}' "$tmp/out" | grep -v -- ' --store ')"
check "one line per phase change without a terminal" \
    grep -q '^run 1/4  round 1/2  .*  latency' "$tmp/err"

campaign=$(sed -nE 's/^campaign (cmp_[0-9A-Z]+):.*/\1/p' "$tmp/err")
"$wb" list --json --store "$store" >"$tmp/list" 2>&1
is "four runs are recorded" 4 "$(json items.n <"$tmp/list")"
# A host that others use may miss even a low rate: that is a result, not a fault of the program.
is "all of them ok" 4 "$(grep -cE '"outcome": "(ok|target-missed)"' "$tmp/list")"
is "all of them cleaned up" 4 "$(grep -c '"teardown": "clean"' "$tmp/list")"
is "two of each arm" "2 docker x1 2 native x1" \
    "$(sed -nE 's/^ *"arm": "(.*)",$/\1/p' "$tmp/list" | sort | uniq -c | xargs)"
is "no run was missed by the log of git" 4 \
    "$(git --git-dir="$store" log --oneline refs/heads/records/lab | grep -c run_)"
check "git fsck is clean" git --git-dir="$store" fsck --full --strict --no-progress
check "verify finds no damage" "$wb" verify --all --store "$store"
check "compare reads the campaign again" "$wb" compare "$campaign" --store "$store"
check "show tells of the campaign" "$wb" show "$campaign" --store "$store"

doc() { # ARM DOCUMENT FILE: of one run of an arm
    local id path
    id=$(perl -MJSON::PP -e 'my $d = decode_json(join "", <STDIN>);
        print +(grep { $_->{arm} eq $ARGV[0] } @{$d->{items}})[0]{id}' "$1" <"$tmp/list")
    path=$(git --git-dir="$store" ls-tree -r --name-only HEAD | grep -- "$id/$2.json")
    git --git-dir="$store" show "HEAD:$path" >"$3"
}
check "a record of a native run is there" doc 'native x1' environment "$tmp/native"
check "a record of a container run is there" doc 'docker x1' environment "$tmp/docker"
is "the same bits in both forms" "$(json bits <"$tmp/native")" "$(json bits <"$tmp/docker")"
is "the same version in both forms" "7.0.15 7.0.15" \
    "$(json probes.0.version <"$tmp/native") $(json probes.0.version <"$tmp/docker")"
is "the same settings in both forms" "$(json probes.0.settings <"$tmp/native")" \
    "$(json probes.0.settings <"$tmp/docker")"
for key in cpus memory_bytes affinity; do
    is "the kernel says the same $key in both forms" "$(json placement.0.$key <"$tmp/native")" \
        "$(json placement.0.$key <"$tmp/docker")"
done
# The files of the recipe are the same objects in every record.
size=$(git --git-dir="$store" ls-tree -rl HEAD | awk '!seen[$3]++ {s += $4} END {print int(s / 4)}')
check "a record takes at most 64 KB, here $size" [ "$size" -le 65536 ]
check "the database's CPUs are not the load's" \
    [ "$(json placement.0.cpus <"$tmp/native")" != "$(json placement.1.cpus <"$tmp/native")" ]

# What else is made of it.
check "report writes a page" "$wb" report "$campaign" -O "$tmp/page.html" --store "$store"
is "the page has no figure that is none" 0 "$(grep -ciE '>[^<]*\bnan\b' "$tmp/page.html")"
is "the page needs nothing else" 0 "$(grep -cE '<script|https?:|src=|url\(' "$tmp/page.html")"
old=$(json items.0.id <"$tmp/list")
folder=$(git --git-dir="$store" ls-tree -r --name-only HEAD | sed -nE "s|^(.*/$old)/summary.json|\1|p")
{
    echo '{'
    for d in summary study plan environment result events; do
        [ $d = summary ] || echo ,
        echo "\"$d\":"
        git --git-dir="$store" show "HEAD:$folder/$d.json"
    done
    echo '}'
} >"$tmp/record.json"
"$wb" schema record >"$tmp/schema.json"
is "a real record is of its schema" "ok $tmp/record.json" \
    "$(tests/support/schema-check "$tmp/schema.json" "$tmp/record.json" 2>&1 | tail -n 1)"
"$wb" replay "$old" -q --json --store "$store" >"$tmp/out" 2>"$tmp/err"
rc=$?
check "replay ends with 0 or 14, here $rc" [ $rc -eq 0 -o $rc -eq 14 ]
is "replay: the run that was run again" "$old" "$(json replayed <"$tmp/out")"
is "replay: the same arm" "$(json items.0.arm <"$tmp/list")" "$(json run.factors.form <"$tmp/out")"
is "replay: the same series" "$(json items.0.series_key <"$tmp/list")" "$(json run.series_key <"$tmp/out")"
is "replay: time is not the same" time "$(json not_the_same.0.input <"$tmp/out")"
is "replay: its recipe is the recorded one" "$(json items.0.recipe.digest <"$tmp/list")" \
    "$(json run.recipe.digest <"$tmp/out")"
is "replay: nothing is left on the host" "$before" "$(things)"
is "replay: nor the copy of the recipe" "" "$(ls "$WB_STATE/replay")"

# Refused before anything is started.
"$wb" run "$study" --profile nosuch --store "$store" >"$tmp/out" 2>"$tmp/err"
is "an unknown profile is refused" 2 $?
check "and named with what there is" grep -q 'small' "$tmp/err"
WB_DOCKER_SOCKET=$tmp/nothing.sock "$wb" run "$study" --profile small --store "$store" \
    >"$tmp/out" 2>"$tmp/err"
is "without a container engine the study does not begin" 13 $?
check "and the error names the socket" grep -q 'nothing.sock' "$tmp/err"
is "nothing was left by that" "$before" "$(things)"
summary
