#!/bin/bash
# Every study of the recipe cassandra for real, one after the other, with its small profile:
#
#   tests/bench/cassandra_studies.sh [STUDY...]
#
# Each leaves a folder below $OUT (build/studies): its comparison, every run in full, and how long
# each phase of a run took in each form. Resumable: what is finished is not run again, what was
# interrupted goes on. ROUNDS (1) rounds each; MORE has further arguments of `weighbridge run`.
# Exits 1 when a study did not end or a run of it did not come through.
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
build=$(cd -- "${B:-build}" && pwd -P) || exit 2
out=${OUT:-$build/studies}
mkdir -p -- "$out" && out=$(cd -- "$out" && pwd -P) || exit 2
wb=$build/weighbridge
recipes=$PWD/recipes
store=$out/store.git
export WB_STATE=${WB_STATE:-$out/state} WB_RECIPES=$recipes
all=(forms scale-out row-cache routing mix payload login clients concurrent-reads scale-up ring-ops)
[ $# -gt 0 ] || set -- "${all[@]}"

# How long the phases of each run took, medians over the runs of an arm: seconds.
times() { # CAMPAIGN
    "$wb" show "$1" --json --store "$store" | perl -MJSON::PP -e '
        local $/; my $c = decode_json(<STDIN>); print "$_->{id}\n" for @{$c->{items}}' |
        while read -r run; do
            path=$("$wb" show "$run" --json --store "$store" | perl -MJSON::PP -e 'local $/; print decode_json(<STDIN>)->{record}{path}')
            git --git-dir="$store" show "HEAD:$path/summary.json"
            echo
            git --git-dir="$store" show "HEAD:$path/events.json"
            echo
        done | perl -MJSON::PP -MTime::Local -e '
        my (%t, @order, %seen, @arms, $arm);
        sub stamp { my @p = $_[0] =~ /^(\d+)-(\d+)-(\d+)T(\d+):(\d+):([\d.]+)/ or return 0;
            timegm(0, $p[4], $p[3], $p[2], $p[1] - 1, $p[0]) + $p[5] }
        while (<STDIN>) {
            next unless /\S/;
            my $j = decode_json($_);
            if (ref $j eq "HASH") { $arm = $j->{arm}; push @arms, $arm unless $t{$arm}; $t{$arm} ||= {}; next }
            my ($phase, $since);
            for my $e (@$j) {
                next unless $e->{type} eq "run.phase";
                my $at = stamp($e->{t});
                push @{$t{$arm}{$phase}}, $at - $since if defined $phase;
                ($phase, $since) = ($e->{phase}, $at);
                push @order, $phase unless $seen{$phase}++;
            }
            my ($e) = grep { $_->{type} eq "run.instances" } @$j;
            push @{$t{$arm}{"(stop)"}}, eval { my $s = 0; $s += $_->{stop_s} for @{$e->{instances}}; $s } // 0;
        }
        push @order, "(stop)";
        printf "%-28s", "seconds"; printf " %10.10s", $_ for @order; print "\n";
        for my $a (@arms) {
            printf "%-28s", $a;
            for my $p (@order) {
                my @v = sort { $a <=> $b } @{$t{$a}{$p} || []};
                @v ? printf(" %10.2f", $v[$#v / 2]) : printf(" %10s", "-");
            }
            print "\n";
        }'
}

# run NAME: begun, or gone on with; 0 and 14 (all noisy or too short) are an end.
run() {
    local dir=$out/$1 rc campaign=
    local with=()
    [ -e "$dir/done" ] && return 0
    mkdir -p "$dir"
    grep -q docker "$recipes/cassandra/studies/$1.yaml" && with=(provisioners/with-docker)
    campaign=$(sed -nE 's/^campaign (cmp_[0-9A-Z]+).*/\1/p' "$dir/log" 2>/dev/null | head -n 1)
    if [ -n "$campaign" ]; then
        "${with[@]}" "$wb" resume "$campaign" --store "$store" --wait-for-host 7200 >"$dir/out" 2>>"$dir/log"
    else
        # shellcheck disable=SC2086 # MORE is several words
        "${with[@]}" "$wb" run "$recipes/cassandra/studies/$1.yaml" --profile small --rounds "${ROUNDS:-1}" \
            --store "$store" --wait-for-host 7200 ${MORE:-} >"$dir/out" 2>"$dir/log"
    fi
    rc=$?
    campaign=$(sed -nE 's/^campaign (cmp_[0-9A-Z]+).*/\1/p' "$dir/log" | head -n 1)
    echo "$rc" >"$dir/status"
    [ -n "$campaign" ] || { tail -n 5 "$dir/log"; return 1; }
    "$wb" show "$campaign" --store "$store" >"$dir/campaign.txt" 2>&1
    "$wb" compare "$campaign" --store "$store" >"$dir/table.txt" 2>&1
    times "$campaign" >"$dir/times.txt" 2>&1
    "$wb" show "$campaign" --json --store "$store" 2>/dev/null |
        perl -MJSON::PP -e 'local $/; print "$_->{id}\n" for @{decode_json(<STDIN>)->{items}}' |
        while read -r id; do "$wb" show "$id" --store "$store"; done >"$dir/runs.txt" 2>&1
    if [ "$rc" -ne 0 ] && [ "$rc" -ne 14 ]; then
        tail -n 5 "$dir/log"
        mv -- "$dir/log" "$dir/log.failed.$(date +%s)" # the next time begins anew
        return 1
    fi
    touch "$dir/done"
}

failed=0
for name in "$@"; do
    echo "== $name"
    run "$name" || failed=1
    cat "$out/$name"/{campaign,table,times}.txt 2>/dev/null
done
exit "$failed"
