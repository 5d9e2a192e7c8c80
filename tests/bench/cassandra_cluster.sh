#!/bin/bash
# Four Cassandra nodes on this host: how long until they are one complete cluster, and whether each
# of them then serves requests and holds the part of the data that replication says, by its own
# counters. Until the load starts the nodes have all CPUs for themselves; NODES (4) and COPIES (2)
# are how many. Exits 1 when a node served nothing or holds another share than its own.
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
build=${B:-build}
nodes=${NODES:-4} copies=${COPIES:-2}
tmp=$(mktemp -d) || exit 2
trap 'rm -rf -- "$tmp"' EXIT
export WB_STATE=${WB_STATE:-$build/test/state} WB_RECIPES=recipes
cat >"$tmp/cluster.yaml" <<STUDY
study: cassandra-cluster
recipe: {name: cassandra, version: "5.0.9"}
hosts: {pool: local, database: 1, load: 1}
factors: {form: [native x$nodes], setting.replication_factor: [$copies]}
topology: cluster
share: instance
memory: 1200MiB
placement: shared
workload:
  data: {rows: 4000, key: 16B, value: {size: 64B}}
  phases:
    - {name: load, op: insert, order: sequential, connections: $nodes, depth: 4}
    - {name: mixed, mix: {get: 50%, set: 50%}, keys: uniform, connections: 16, depth: 2, rate: max, warm_up: 5s, for: 10s}
rounds: 1
validity: {accept: [valid, noisy]}
STUDY
"$build/weighbridge" run "$tmp/cluster.yaml" --wait-for-host 7200 --store "$tmp/store.git" --controller bench >"$tmp/out" 2>"$tmp/err"
rc=$?
if [ "$rc" -ne 0 ] && [ "$rc" -ne 14 ]; then # 14: nobody needs its figures
    tail -n 20 "$tmp/err"
    exit 1
fi
git --git-dir="$tmp/store.git" ls-tree -r --name-only HEAD | grep -E '/(result|events)\.json$' | sed 's/^/HEAD:/' |
    git --git-dir="$tmp/store.git" cat-file --batch='%(objectname)' |
    perl -MJSON::PP -e '
        my ($copies, $rows) = @ARGV;
        my ($result, $events, $bad);
        while (<STDIN>) {
            next unless /^[\[{]/;
            my $j = decode_json($_);
            ref $j eq "ARRAY" ? ($events = $j) : ($result = $j);
        }
        my ($e) = grep { $_->{type} eq "run.instances" } @$events;
        my $complete = 0;
        for (@{$e->{instances}}) { my $t = $_->{started_at_s} + $_->{ready_s}; $complete = $t if $t > $complete }
        my @m = map { $_->{metrics} } @{$result->{server}};
        my (%sum);
        for my $m (@m) { $sum{$_} += $m->{$_} for qw(local_writes local_reads coordinator_writes coordinator_reads) }
        printf "%d nodes, %d copies: complete after %.1f s\n", scalar @m, $copies, $complete;
        printf "%-5s %10s %18s %18s %13s %13s\n", "node", "requests", "coordinated reads", "coordinated writes", "own writes", "share";
        for my $i (0 .. $#m) {
            my $share = 100 * $m[$i]{local_writes} / $sum{local_writes};
            printf "%-5d %10d %18d %18d %13d %12.1f%%\n", $i, @{$m[$i]}{qw(requests coordinator_reads coordinator_writes local_writes)}, $share;
            $bad .= "node $i served nothing\n" unless $m[$i]{coordinator_reads} > 0 && $m[$i]{coordinator_writes} > 0;
            # A share of 4,000 and more random keys is within 3 of a hundred for sure.
            $bad .= sprintf "node %d holds %.1f %% of the data, not %.1f\n", $i, $share, 100 / @m if abs($share - 100 / @m) > 3;
        }
        my $each = $sum{local_writes} / $sum{coordinator_writes};
        printf "each write is on %.3f nodes\n", $each;
        # What was under way when the counters were read, and hints, are a few of many thousand.
        $bad .= "each write should be on $copies nodes\n" if abs($each - $copies) > 0.02 * $copies;
        $bad .= "fewer writes than rows\n" if $sum{coordinator_writes} < $rows;
        if ($bad) { print $bad; exit 1 }' "$copies" 4000
