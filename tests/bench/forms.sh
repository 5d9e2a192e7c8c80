#!/bin/bash
# How long starting, getting ready, stopping and removing take for 1, 2 and 4 instances of each
# form, from the events of real runs: seconds, of the whole arm, medians over the rounds. Instances
# are started, stopped and removed one after the other; getting ready is the time from the start of
# the last one until all have answered.
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
build=${B:-build}
rounds=${ROUNDS:-5}
if [ -z "${WB_DOCKER_SOCKET:-}" ]; then
    exec provisioners/with-docker "$0" "$@"
fi
tmp=$(mktemp -d) || exit 2
trap 'rm -rf -- "$tmp"' EXIT
export WB_STATE=$build/test/state WB_RECIPES=recipes

"$build/weighbridge" run recipes/redis/studies/forms.yaml --profile counts --rounds "$rounds" \
    -f workload.data.rows=1000 -f "workload.phases=[{name: load, op: insert, order: sequential,
    connections: 8}, {name: max, op: get, connections: 8, warm_up: 0s, for: 100ms}]" \
    --wait-for-host 3600 --store "$tmp/store.git" --controller bench >"$tmp/out" 2>"$tmp/err"
rc=$?
if [ "$rc" -ne 0 ] && [ "$rc" -ne 14 ]; then # 14: too short to be believed, and nobody does
    tail -n 20 "$tmp/err"
    exit 1
fi
git --git-dir="$tmp/store.git" ls-tree -r --name-only HEAD | grep '/events\.json$' |
    sed 's/^/HEAD:/' | git --git-dir="$tmp/store.git" cat-file --batch='%(objectname)' |
    perl -MJSON::PP -e '
        my (%all, @lines);
        while (<STDIN>) {
            next unless /^\[/;
            my $form;
            for my $e (@{decode_json($_)}) {
                next unless $e->{type} eq "run.instances";
                my ($n, %t) = (scalar @{$e->{instances}}, start => 0, ready => 0, stop => 0, remove => 0);
                my ($started, $ready) = (0, 0);
                for my $i (@{$e->{instances}}) {
                    $t{$_} += $i->{"${_}_s"} for qw(start stop remove);
                    my $at = $i->{started_at_s};
                    $started = $at if $at > $started;
                    $ready = $at + $i->{ready_s} if $at + $i->{ready_s} > $ready;
                }
                $t{ready} = $ready - $started;
                push @{$all{"$e->{form} x$n"}{$_}}, $t{$_} for keys %t;
            }
        }
        sub median { my @v = sort { $a <=> $b } @_; my $n = @v;
            $n % 2 ? $v[$n / 2] : ($v[$n / 2 - 1] + $v[$n / 2]) / 2 }
        printf "%-10s %4s %9s %9s %9s %9s\n", "arm", "n", qw(start ready stop remove);
        for my $arm ("native x1", "native x2", "native x4", "docker x1", "docker x2", "docker x4") {
            my $r = $all{$arm} or die "no run of $arm\n";
            printf "%-10s %4d %9.3f %9.3f %9.3f %9.3f\n", $arm, scalar @{$r->{start}},
                map { median(@{$r->{$_}}) } qw(start ready stop remove);
        }'
