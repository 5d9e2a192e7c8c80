#!/bin/bash
# The parity report on a real Redis, natively and in a real container: what is the same, what the
# recipe lets differ, and that anything else stops the run. Needs root, and a Docker Engine at
# $WB_DOCKER_SOCKET.
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
# shellcheck source=tests/support/lib.sh
. tests/support/lib.sh
export WB_STATE=$build/test/state WB_RECIPES=recipes
store=$tmp/store.git
forms=(recipes/redis/studies/forms.yaml --profile small -f 'factors.form=[native x1, docker x1]'
    -f workload.phases.max.warm_up=0s -f workload.phases.max.for=300ms
    -f workload.phases.latency.warm_up=0s -f workload.phases.latency.for=300ms
    -f workload.phases.latency.rate=2k/s -f workload.data.rows=1000)

campaign() { # ARGS: one; its runs in $tmp/list
    "$wb" run "${forms[@]}" "$@" --store "$store" --wait-for-host 1200 >"$tmp/out" 2>"$tmp/err"
    local rc=$?
    "$wb" list --json --store "$store" >"$tmp/list"
    return $rc
}
# The id of the newest run of an arm.
run_of() {
    perl -MJSON::PP -e 'my $d = decode_json(join "", <STDIN>);
        print +(grep { $_->{arm} eq $ARGV[0] } @{$d->{items}})[0]{id}' "$1" <"$tmp/list"
}
environment() { # ARM FILE
    local path
    path=$(git --git-dir="$store" ls-tree -r --name-only HEAD | grep -- "$(run_of "$1")/environment.json")
    git --git-dir="$store" show "HEAD:$path" >"$2"
}
# A fact of a file; names of facts have dots.
fact() {
    perl -MJSON::PP -e 'my $d = decode_json(join "", <STDIN>);
        my $v = $d->{parity}{facts}{$ARGV[0]}; print defined $v ? $v : "null"' "$1" <"$2"
}
# The fields that differ and are (1) or are not (0) allowed to.
differ() {
    perl -MJSON::PP -e 'my $d = decode_json(join "", <STDIN>);
        print join " ", sort map { $_->{field} } grep { $_->{allowed} == $ARGV[0] }
            @{$d->{parity}{differences}}' "$1" <"$2"
}

campaign --rounds 2
rc=$?
check "both forms run, exit 0 or 14, here $rc" [ $rc -eq 0 -o $rc -eq 14 ] || {
    tail -n 5 "$tmp/err"
    summary
    exit
}
environment 'native x1' "$tmp/native"
environment 'docker x1' "$tmp/docker"
for field in version build files allocator libc data_filesystem limits.cpus limits.memory \
    affinity.cpus kernel.thp kernel.somaxconn ulimit.nofile user.uid nice oom_score_adj umask \
    env.LD_LIBRARY_PATH setting.maxmemory; do
    value=$(fact $field "$tmp/native")
    check "$field is known" [ -n "$value" -a "$value" != null ]
    is "$field is the same" "$value" "$(fact $field "$tmp/docker")"
done
is "the digest is that of the prefix" "$(json bits <"$tmp/native")" "$(fact files "$tmp/docker")"
is "nothing differs that must not" "" "$(differ 0 "$tmp/docker")"
check "the filter of system calls is seen and allowed" \
    grep -q seccomp <(differ 1 "$tmp/docker")
"$wb" show "$(run_of 'docker x1')" --store "$store" >"$tmp/show"
check "show tells of it" grep -q '^parity .* differences from native x1' "$tmp/show"
check "with each difference" grep -Eq '^seccomp +yes +2 +0' "$tmp/show"

# What the recipe does not let differ stops the run before any load.
cp -R recipes "$tmp/recipes"
sed -i '/^  - seccomp/d' "$tmp/recipes/redis/recipe.yaml"
WB_RECIPES=$tmp/recipes campaign --rounds 2
rc=$?
is "a difference that is not allowed: exit 13" 13 $rc
perl -MJSON::PP -e 'my $d = decode_json(join "", <STDIN>);
    print encode_json([grep { $_->{outcome} eq "inconsistent" } @{$d->{items}}])' \
    <"$tmp/list" >"$tmp/bad"
check "it is inconsistent" [ "$(json n <"$tmp/bad")" -ge 1 ]
# Whichever came first in the rounds, it is the container that is stopped, from its first run on, and
# the native runs go on. (A campaign without a run that counts ends after its first round.)
arms() { # OUTCOMES: the arms of the newest campaign that ended so
    perl -MJSON::PP -e 'my $d = decode_json(join "", <STDIN>);
        my $c = $d->{items}[0]{campaign};
        my %arms = map { $_->{arm} => 1 } grep { $_->{campaign} eq $c && $_->{outcome} =~ /^($ARGV[0])$/ } @{$d->{items}};
        print join " ", sort keys %arms' \
        "$1" <"$tmp/list"
}
docker_first=
native_first=
for seed in 1 2 3 4 5 6 7 8 9 10 11 12; do
    "$wb" plan "${forms[@]}" --rounds 2 -f seed=$seed --json >"$tmp/plan"
    case $(json order.0.0 <"$tmp/plan") in
    docker*) docker_first=$seed ;;
    *) native_first=$seed ;;
    esac
done
for seed in "$docker_first" "$native_first"; do
    WB_RECIPES=$tmp/recipes campaign --rounds 2 -f "seed=$seed"
    check "seed $seed: the host was to be had" grep -q '^campaign cmp_' "$tmp/err" || continue
    is "seed $seed: the container is stopped" "docker x1" "$(arms inconsistent)"
    is "seed $seed: the native runs are not" "native x1" "$(arms 'ok|target-missed')"
    reference=$(grep -c '^parity reference  native x1  deploy' "$tmp/err")
    is "seed $seed: the native arm is deployed before a container that comes first" \
        "$([ "$seed" = "$docker_first" ] && echo 1 || echo 0)" "$reference"
done
check "and named, with both values" grep -Eq "parity: .* in seccomp \\('[02]' against '[02]'\\)" "$tmp/bad"
"$wb" show "$(json 0.id <"$tmp/bad")" --json --store "$store" >"$tmp/show"
is "no phase was run" 0 "$(json phases.n <"$tmp/show")"
is "it was cleaned up" clean "$(json 0.teardown <"$tmp/bad")"

# A network of its own is what the study asks for.
campaign --rounds 1 -f network=published
environment 'docker x1' "$tmp/docker"
is "behind published ports: its own network" own "$(fact network "$tmp/docker")"
bad_fields=$(grep -o 'parity: .*' "$tmp/out" | head -n 1)
is "behind published ports: that may differ" "" "$bad_fields"
summary
