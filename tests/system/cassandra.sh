#!/bin/bash
# The recipe cassandra, for real: where artifacts come from and what goes wrong there, all studies
# checked and planned, and one round of nodes natively and in containers under load. The jars come
# through Maven; without it, or without a network, that part says so and the rest is still done.
cd "$(dirname "$0")/../.." || exit 2
# shellcheck source=tests/support/lib.sh
. tests/support/lib.sh
export WB_STATE=$tmp/state WB_RECIPES=$PWD/recipes
store=$tmp/store.git
recipe=$PWD/recipes/cassandra
before=

# ---- studies ----

for study in "$recipe"/studies/*.yaml; do
    for profile in full small; do
        args=()
        [ "$profile" = small ] && args=(--profile small)
        name="$(basename "$study" .yaml), $profile"
        check "validate $name" "$wb" validate "$study" "${args[@]}" >"$tmp/said" 2>&1 || cat "$tmp/said"
        # The plan needs CPUs for both sides, which the smallest machine lacks.
        [ "$(nproc)" -lt 2 ] || check "plan $name" "$wb" plan "$study" "${args[@]}" --json >"$tmp/plan" 2>"$tmp/said" || cat "$tmp/said"
    done
done
is 'a setting out of range is refused' 1 "$("$wb" validate "$recipe/studies/forms.yaml" -f setting.concurrent_reads=1 2>&1 | grep -c "concurrent_reads: '1' is out of range, allowed is 2 to 4096")"
is 'a consistency that does not exist is refused' 1 "$("$wb" validate "$recipe/studies/forms.yaml" -f consistency=most 2>&1 | grep -c "consistency cannot be 'most'")"

# ---- artifacts, from a mirror and a folder of this test ----

# A small lock, so that every fault is one file away; the Java comes from the folder, too.
spoilt=$tmp/recipes
mkdir -p "$spoilt" "$tmp/www/org/toy/toy/1" "$tmp/folder" "$tmp/deb/DEBIAN"
cp -R recipes/cassandra recipes/shared "$spoilt/"
printf 'a jar\n' >"$tmp/www/org/toy/toy/1/toy-1.jar"
printf '%s  org.toy:toy:1\n' "$(sha256sum <"$tmp/www/org/toy/toy/1/toy-1.jar" | cut -d' ' -f1)" >"$spoilt/cassandra/versions/toy.lock"
printf 'Package: toy-java\nVersion: 17-1\nArchitecture: all\nMaintainer: nobody <nobody@example.invalid>\nDescription: toy\n' >"$tmp/deb/DEBIAN/control"
dpkg-deb -b "$tmp/deb" "$tmp/folder/toy-java_17-1_all.deb" >/dev/null 2>&1
recipe_with() { # VERSION-ENTRY
    awk -v entry="$1" '/^versions:/ {print; print entry; skip = 1; next} /^start:/ {skip = 0; print ""} !skip' recipes/cassandra/recipe.yaml >"$spoilt/cassandra/recipe.yaml"
}
maven='  - {version: "5.0.9", source: maven, lock: versions/toy.lock, packages: [toy-java]}'
# fetch ENV...: from nothing; what was said last is in $tmp/said, the exit status in $rc.
fetch() {
    rm -rf "$tmp/state/cache/artifacts"
    env WB_RECIPES="$spoilt" WB_ARTIFACTS_FOLDER="$tmp/folder" "$@" "$wb" artifacts fetch cassandra >"$tmp/out" 2>"$tmp/said"
    rc=$?
}
says_so() { # NAME STATUS TEXT: the fetch failed so, and says the text
    if [ "$rc" -eq "$2" ] && grep -q -- "$3" "$tmp/said"; then ok "$1"; else bad "$1" "status $rc: $(tail -n 2 "$tmp/said")"; fi
}

# serve MODE: whole, short (half of the body), 404; the port is in $port, the process in $server.
serve() {
    perl -MIO::Socket::INET -e '
        my ($mode, $root, $out) = @ARGV;
        my $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1", Listen => 5, ReuseAddr => 1) or die;
        open my $f, ">", "$out.new" or die; print $f $s->sockport; close $f; rename "$out.new", $out;
        $SIG{ALRM} = sub { exit }; alarm 120;
        while (my $c = $s->accept) {
            my $line = <$c>; while (my $h = <$c>) { last if $h =~ /^\r?$/ }
            my ($path) = $line =~ m{^GET (/[^ ]*)}; my $body;
            if (open my $b, "<", "$root$path") { local $/; $body = <$b> }
            if ($mode eq "404" || !defined $body) { print $c "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" }
            else { printf $c "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", length $body,
                       $mode eq "short" ? substr($body, 0, length($body) / 2) : $body }
            close $c;
        }' "$1" "$tmp/www" "$tmp/port" &
    server=$!
    within 10 test -s "$tmp/port"
    port=$(cat "$tmp/port")
    rm -f "$tmp/port"
}
stop_server() {
    kill "$server" 2>/dev/null
    wait "$server" 2>/dev/null
    server=
}
server=
end_server() { [ -z "$server" ] || stop_server; }
cleanup+=(end_server)

recipe_with "$maven"
serve whole
fetch WB_ARTIFACTS_MIRROR="http://127.0.0.1:$port"
is 'fetch from a mirror' 0 "$rc"
check 'what was fetched is verified' env WB_RECIPES="$spoilt" "$wb" artifacts verify cassandra >/dev/null
stop_server
check 'once fetched no mirror is needed' env WB_RECIPES="$spoilt" WB_ARTIFACTS_MIRROR="http://127.0.0.1:$port" "$wb" artifacts fetch cassandra >/dev/null 2>&1
printf 'x' >>"$tmp/state/cache/artifacts/cassandra/5.0.9/toy-1.jar"
env WB_RECIPES="$spoilt" "$wb" artifacts verify cassandra >"$tmp/out" 2>"$tmp/said"
rc=$?
says_so 'a jar that was changed in the cache is found' 15 'toy-1.jar is damaged'

fetch WB_ARTIFACTS_MIRROR="http://127.0.0.1:$port"
says_so 'a mirror that is down' 13 'toy-1.jar: no answer from http://127.0.0.1:.*WB_ARTIFACTS_MIRROR'
serve 404
fetch WB_ARTIFACTS_MIRROR="http://127.0.0.1:$port"
says_so 'a jar that the mirror lacks' 13 'toy-1.jar is not at http://127.0.0.1:.*404.*WB_ARTIFACTS_MIRROR'
stop_server
serve short
fetch WB_ARTIFACTS_MIRROR="http://127.0.0.1:$port"
says_so 'a download that is cut off' 13 'toy-1.jar: the download from http://127.0.0.1:.* broke off'
stop_server
printf 'another jar\n' >"$tmp/folder/toy-1.jar"
fetch
says_so 'another file under the name of a jar' 13 'toy-1.jar (12 bytes from .*) has sha256 .* wanted .*: it is cut off, damaged or another file'
cp "$tmp/www/org/toy/toy/1/toy-1.jar" "$tmp/folder/"
fetch
is 'fetch from a folder' 0 "$rc"
fetch WB_ARTIFACTS_FOLDER="$tmp/nowhere"
says_so 'a folder that is not there' 13 'nowhere is not a folder'

# The project's archive, by its SHA-512.
mkdir -p "$tmp/apache-cassandra-5.0.9/lib" "$tmp/apache-cassandra-5.0.9/tools/lib"
printf 'jar\n' >"$tmp/apache-cassandra-5.0.9/lib/apache-cassandra-5.0.9.jar"
printf 'jar\n' >"$tmp/apache-cassandra-5.0.9/lib/jamm-0.4.0.jar"
printf 'jar\n' >"$tmp/apache-cassandra-5.0.9/tools/lib/stress.jar"
tar -czf "$tmp/www/apache-cassandra-5.0.9-bin.tar.gz" -C "$tmp" apache-cassandra-5.0.9
sum=$(sha512sum <"$tmp/www/apache-cassandra-5.0.9-bin.tar.gz" | cut -d' ' -f1)
release() { printf '  - {version: "5.0.9", source: release, url: "file://%s/www/apache-cassandra-5.0.9-bin.tar.gz", sha512: "%s", packages: [toy-java]}' "$tmp" "$1"; }
recipe_with "$(release "$sum")"
fetch
is 'the archive by its address' 0 "$rc"
cache=$tmp/state/cache/artifacts/cassandra/5.0.9
WB_RECIPE_DIR=$spoilt/cassandra WB_CACHE=$cache WB_PREFIX=$tmp/prefix "$spoilt/cassandra/steps/install" >/dev/null 2>"$tmp/said"
is 'only the jars of its lib are taken' 'apache-cassandra-5.0.9.jar jamm-0.4.0.jar' "$(cd "$tmp/prefix/cassandra/lib" && echo *.jar)"
recipe_with "$(release "${sum//[0-9]/0}")"
fetch
says_so 'an archive with another digest' 13 'apache-cassandra-5.0.9-bin.tar.gz .* has sha512'

# ---- settings and tokens, without a node ----

# configure INSTANCE OF NAME=VALUE...: the step, with the recipe's defaults.
configure() {
    local i=$1 n=$2 peers='' k
    shift 2
    for ((k = 1; k <= n; k++)); do peers="$peers 127.0.0.$k:19042"; done
    mapfile -t defaults < <("$wb" plan "$recipe/studies/forms.yaml" --json 2>/dev/null | perl -MJSON::PP -e '
        local $/; my $s = JSON::PP->new->decode(<STDIN>)->{arms}[0]{settings};
        for (sort keys %$s) { (my $n = uc) =~ s/[^A-Z0-9]/_/g; print "WB_SETTING_$n=$s->{$_}\n" }')
    env "${defaults[@]}" WB_RECIPE_DIR="$recipe" WB_CONFIG_DIR="$tmp/config" WB_DATA_DIR="$tmp/data" \
        WB_IN_CONFIG_DIR=/c WB_IN_DATA_DIR=/d WB_IN_LOG_DIR=/l WB_IN_PREFIX=/p WB_PORT=19042 \
        WB_PORT_STORAGE=17000 WB_PORT_JMX=17199 WB_INSTANCE="$i" WB_INSTANCES="$n" WB_TOPOLOGY=cluster \
        WB_IN_HOST="127.0.0.$((i + 1))" WB_MEMORY_BYTES=1258291200 WB_PEERS="${peers# }" "$@" \
        "$recipe/steps/configure" >"$tmp/out" 2>"$tmp/said"
}
tokens() { sed -n 's/^initial_token: //p' "$tmp/config/cassandra.yaml"; }

if [ "$(nproc)" -ge 2 ]; then
    check 'configure' configure 0 1
    is 'every value has its place' '' "$(grep -o '@[A-Za-z_]*@' "$tmp/config/cassandra.yaml" "$tmp/config/logback.xml")"
    is 'heap from the memory share' '{"heap_bytes":427819008}' "$(cat "$tmp/out")"
    # 2^64 / 2 apart, half a step from either end.
    for i in 0 1; do configure "$i" 2 WB_SETTING_NUM_TOKENS=1 && tokens; done >"$tmp/tokens"
    is 'tokens of two nodes with one each' '-4611686018427387904 4611686018427387904' "$(paste -sd' ' "$tmp/tokens")"
    for i in 0 1 2; do configure "$i" 3 WB_SETTING_NUM_TOKENS=2 && tokens; done | tr , '\n' | sort -n >"$tmp/tokens"
    is 'tokens of three nodes are evenly spread' 3074457345618258602 "$(perl -Mbigint -ne 'chomp; push @t, $_; END { my %d; $d{$t[$_] - $t[$_ - 1]} = 1 for 1 .. $#t; print join " ", keys %d }' "$tmp/tokens")"
    refused() { # NAME TEXT INSTANCE OF NAME=VALUE...
        local name=$1 text=$2
        shift 2
        if configure "$@"; then bad "$name" 'was taken'; else is "$name" 1 "$(grep -c -- "$text" "$tmp/said")"; fi
    }
    refused 'more copies than nodes' 'replication_factor 3 needs as many nodes; this arm has 2' 0 2 WB_SETTING_REPLICATION_FACTOR=3
    refused 'a cache that is no whole number of MiB' 'ROW_CACHE_SIZE: 1000 bytes are not a whole number of MiB' 0 1 WB_SETTING_ROW_CACHE_SIZE=1000
    refused 'a heap that the JVM would round' 'heap: 513 MiB are not a multiple of 4 MiB' 0 1 WB_SETTING_HEAP=537919488
    refused 'a heap that does not fit' 'do not fit into the memory share of 1200 MiB' 0 1 WB_SETTING_HEAP=4294967296
    refused 'a memory share too small' 'too small for Cassandra' 0 1 WB_MEMORY_BYTES=524288000
    refused 'chunks that are no power of two' 'chunk_length: 3000 is not a power of two' 0 1 WB_SETTING_CHUNK_LENGTH=3000
    refused 'a cluster behind published ports' 'take network: host' 0 2 WB_NETWORK=published
fi

# ---- real nodes ----

unset WB_ARTIFACTS_MIRROR
if [ "$(id -u)" -ne 0 ] || [ "$(nproc)" -lt 2 ]; then
    echo "nodes: skipped, they need root and 2 CPUs"
elif ! command -v mvn >/dev/null || ! "$wb" artifacts fetch cassandra --version 5.0.9 >"$tmp/out" 2>"$tmp/said"; then
    echo "nodes: skipped, the jars are not to be had here: $(tail -n 1 "$tmp/said" 2>/dev/null)"
else
    alone
    # Images stay as a cache between campaigns and are no leftover.
    things() { snapshot | grep -v '^image '; }
    before=$(things)
    few=(--store "$store" --rounds 1 --wait-for-host 900 -f setting.jit=quick -f workload.data.rows=500
        -f workload.phases.select.warm_up=1s -f workload.phases.select.for=3s
        -f workload.phases.mixed.warm_up=0s -f workload.phases.mixed.for=3s -f workload.phases.latency.for=3s
        -f "workload.phases.latency.rate=50/s")
    run_forms() { "$wb" run recipes/cassandra/studies/forms.yaml --profile small "${few[@]}" "$@" >"$tmp/out" 2>"$tmp/err" 8>&-; }
    run_forms -f "form=native x1, docker x1"
    rc=$?
    # 14: every run was noisy, which says something of this host and nothing of the program.
    check "one round, native and docker: the campaign ends with 0 or 14, here $rc" [ $rc -eq 0 -o $rc -eq 14 ]
    for run in $("$wb" list --json --store "$store" | perl -MJSON::PP -e 'local $/; print "$_->{id}\n" for @{decode_json(<STDIN>)->{items}}'); do
        "$wb" show "$run" --json --store "$store" >"$tmp/run"
        form=$(json arm <"$tmp/run")
        is "$form: outcome" ok "$(json outcome <"$tmp/run")"
        is "$form: teardown" clean "$(json teardown <"$tmp/run")"
        perl -MJSON::PP -e '
            local $/; my $r = decode_json(<STDIN>);
            my ($p) = grep { $_->{name} eq "select" } @{$r->{phases}};
            my $h = $p->{server}{histograms}{coordinator_read};
            print join(" ", $h->{count} > 0, $h->{p99_ms} > 0, $p->{server}{units}{select} // "none"), "\n"' <"$tmp/run" >"$tmp/server"
        is "$form: the server saw the reads, in the client's unit" '1 1 ok' "$(cat "$tmp/server")"
    done
    # A node that answers another version stops before any load.
    fresh_recipes
    sed -i 's/printf "{\\"version\\":%s/version = "5.0.90"; &/' "$spoilt/cassandra/steps/probe"
    WB_RECIPES=$spoilt run_forms -f 'form=native x1'
    "$wb" list --json --store "$store" | json items.0 >"$tmp/newest"
    is 'another version: outcome' inconsistent "$(json outcome <"$tmp/newest")"
    is 'another version: reason' 1 "$(json reasons <"$tmp/newest" | grep -c '5.0.90, which is not 5.0.9')"
    # A setting that the node was not given stops it, too.
    fresh_recipes
    sed -i 's/^concurrent_reads: .*/concurrent_reads: 16/' "$spoilt/cassandra/files/cassandra.yaml"
    WB_RECIPES=$spoilt run_forms -f 'form=native x1'
    "$wb" list --json --store "$store" | json items.0 >"$tmp/newest"
    is 'a setting that did not take: outcome' inconsistent "$(json outcome <"$tmp/newest")"
    is 'a setting that did not take: reason' 1 "$(json reasons <"$tmp/newest" | grep -c "setting concurrent_reads: asked '32', found '16'")"
    is 'cassandra: nothing is left' "$before" "$(things)"
fi
summary
