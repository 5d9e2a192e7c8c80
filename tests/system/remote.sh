#!/bin/bash
# The command line as client of a server: the same commands, progress and exit codes as here, over
# lost answers, a server that is killed and comes back, Ctrl-C, and servers that are none.
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
# shellcheck source=tests/support/lib.sh
. tests/support/lib.sh
alone
export WB_STATE=$tmp/state WB_RECIPES=$PWD/recipes WB_WEB=$PWD/web
unset WB_TOKEN WB_TOKEN_FILE WB_SERVER
store=$tmp/store.git
things() { snapshot | grep -v '^image '; }
before=$(things)
port=0

serve() {
    "$wb" serve --store "$store" --port "$port" >"$tmp/serve" 2>"$tmp/serve.err" 8>&- &
    server=$!
    cleanup+=("kill -9 $server")
    within 30 grep -q '^listening' "$tmp/serve" || bad "the server starts" "$(cat "$tmp/serve.err")"
    url=$(sed -n 's/^listening on //p' "$tmp/serve")
    port=${url##*:}
}
# there ARGS...: a command with the server; its words are in $tmp/out and $tmp/err, its code in $rc.
there() {
    "$wb" "$@" --server "$url" >"$tmp/out" 2>"$tmp/err" 8>&-
    rc=$?
}
aa=recipes/redis/studies/aa.yaml
small=(-f workload.phases.max.for=1s -f workload.phases.max.warm_up=100ms -f workload.data.rows=1000)
longer=(-f workload.phases.max.for=4s -f workload.phases.max.warm_up=100ms -f workload.data.rows=1000)

serve
(umask 077 && sed -n 's/^token of the admin.*: //p' "$tmp/serve" >"$tmp/token")

# ---- who asks ----
there list
is "without a token nothing is answered" 20 "$rc"
WB_TOKEN=wb_0000000000000000_0000000000000000000000000000000000000000000 there list
is "nor with one that is not known" 20 "$rc"
chmod 644 "$tmp/token"
there list --token-file "$tmp/token"
is "a token that others may read is not used" 2 "$rc"
check "and that is said with the way out" grep -q 'chmod 600' "$tmp/err"
chmod 600 "$tmp/token"
export WB_TOKEN_FILE=$tmp/token
there list
is "a private file is" 0 "$rc"
there token make reader --json
is "a token is made" 0 "$rc"
reader=$(json token <"$tmp/out")
WB_TOKEN=$reader there run "$aa" --rounds 1
is "a reader starts nothing" 20 "$rc"
check "the missing scope is named" grep -q 'runs:write' "$tmp/err"
check "no secret is said" test "$(cat "$tmp/out" "$tmp/err" | grep -c "${reader:20}")" = 0
there token list
check "the list has both" grep -q reader "$tmp/out"
there token revoke "${reader:3:16}"
is "it is taken back" 0 "$rc"
WB_TOKEN=$reader there list
is "and is worth nothing then" 20 "$rc"
there token revoke nosuchtoken00000
is "what is not there is not found" 21 "$rc"

# ---- what cannot be done there ----
there verify --all
is "a store of this machine is not on a server" 2 "$rc"
check "the command says so by its name" grep -q '^weighbridge: verify ' "$tmp/err"
there doctor
check "so does one about this machine" grep -q '^weighbridge: doctor works on this machine' "$tmp/err"
"$wb" queue >/dev/null 2>"$tmp/err"
is "and one that needs a server" 2 "$?"
there list --store "$store"
is "a server and a store are one too many" 2 "$rc"
WB_SERVER=http://127.0.0.1:1 "$wb" list --store "$tmp/other.git" >/dev/null 2>"$tmp/err"
is "a store that is named rules over the environment" 21 "$?"

# ---- problems of a study ----
sed -e 's/rounds: .*/rounds: 0/' "$aa" >"$tmp/wrong.yaml"
there run "$tmp/wrong.yaml"
is "a wrong study is refused" 2 "$rc"
line=$(grep -n 'rounds: 0' "$tmp/wrong.yaml" | cut -d: -f1)
check "with the line of the file that was sent" grep -q "^$tmp/wrong.yaml:$line: /rounds: " "$tmp/err"

# ---- run, followed ----
there run "$aa" --rounds 1 "${small[@]}" --wait --label nightly --reason "a test"
# (14: where others use this host, no run may be valid.)
check "a campaign is followed to its end" test "$rc" = 0 -o "$rc" = 14
check "with its progress" grep -q '^run 1/2' "$tmp/err"
check "and its report" grep -qiE 'insufficient|inconclusive|better|worse|negligible|equivalent' "$tmp/out"
id=$(sed -nE 's/^campaign (cmp_[0-9A-Z]+):.*/\1/p' "$tmp/err" | head -n 1)
there show "$id"
check "it is shown as one of a store is" grep -q 'runs .*2 in 1 rounds' "$tmp/out"
there show "$id" --json
is "with its reason" "a test" "$(json reason <"$tmp/out")"
there list --json
is "its runs are listed" 2 "$(json items.n <"$tmp/out")"
run=$(json items.0.id <"$tmp/out")
there show "${run:0:28}"
is "a run is found by the beginning of its id" 0 "$rc"
there list campaigns
check "so is the campaign" grep -q "$id .*finished" "$tmp/out"
there compare "$id"
is "its arms are compared" 0 "$rc"
"$wb" compare "$id" --store "$store" >"$tmp/here" 2>/dev/null
check "with the words that are said here" cmp -s "$tmp/here" "$tmp/out"
there logs "$run" --stream load-max.ndjson
check "raw data comes as it is" cmp -s "$tmp/out" <("$wb" logs "$run" --stream load-max.ndjson --store "$store")
there logs "$run"
is "and all logs one after the other" 0 "$rc"

# ---- an answer that is lost ----
cat >"$tmp/lossy" <<'END'
use strict; use IO::Socket::INET;
my ($to, $lose) = @ARGV; $SIG{CHLD} = 'IGNORE';
my $l = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1', ReuseAddr => 1) or die;
$| = 1; print $l->sockport, "\n";
while (my $c = $l->accept) {
    my $s = IO::Socket::INET->new(PeerAddr => $to) or next;
    my $lost = $lose-- > 0;
    next if fork;
    my $v = ''; vec($v, fileno $c, 1) = 1; vec($v, fileno $s, 1) = 1;
    while (select(my $r = $v, undef, undef, 60)) {
        if (vec $r, fileno $c, 1) { sysread($c, my $d, 65536) or last; syswrite $s, $d }
        if (vec $r, fileno $s, 1) { sysread($s, my $d, 65536) or last; last if $lost; syswrite $c, $d }
    }
    exit;
}
END
perl "$tmp/lossy" "127.0.0.1:$port" 2 >"$tmp/lossy.port" 8>&- &
cleanup+=("kill $!")
within 10 test -s "$tmp/lossy.port"
honest=$url
url=http://127.0.0.1:$(cat "$tmp/lossy.port")
there list campaigns --json # takes one loss
n=$(json items.n <"$tmp/out")
is "a lost answer of a question is asked for again" 1 "$n"
there run "$aa" --rounds 1 "${small[@]}"
is "a study whose answer was lost is sent again" 0 "$rc"
id=$(cat "$tmp/out")
url=$honest
there list campaigns --json
is "and is there once" 2 "$(json items.n <"$tmp/out")"
there cancel "$id"
check "it is cancelled, or was over" test "$rc" = 0 -o "$rc" = 22
there cancel "$id"
is "twice is a conflict" 22 "$rc"

# ---- Ctrl-C, a server that is killed ----
"$wb" run "$aa" --rounds 2 "${longer[@]}" --wait --server "$url" >"$tmp/wait.out" 2>"$tmp/wait" 8>&- &
pid=$!
check "the next one begins" within 120 grep -q 'max' "$tmp/wait"
kill -INT "$pid"
wait "$pid"
is "Ctrl-C detaches" 130 "$?"
id=$(sed -nE 's/^campaign (cmp_[0-9A-Z]+):.*/\1/p' "$tmp/wait" | head -n 1)
check "and says how to come back" grep -q "weighbridge watch $id --server $url" "$tmp/wait"
there api GET "/api/v1/campaigns/$id"
is "the campaign goes on" running "$(json state <"$tmp/out")"
"$wb" watch --server "$url" --ndjson >"$tmp/watched" 2>"$tmp/watch.err" 8>&- &
pid=$!
check "it is watched" within 60 grep -q run.phase "$tmp/watched"
live=$(basename "$(echo "$WB_STATE/campaigns/$id"/runs/run_*)")
"$wb" logs "$live" -f --stream db0.redis.log --server "$url" >"$tmp/followed" 2>"$tmp/follow.err" 8>&- &
follower=$!
check "a log is followed, too" within 60 test -s "$tmp/followed"
kill -9 "$server"
wait "$server" 2>/dev/null
serve
check "over a server that was killed, to the end" within 180 gone "$pid"
wait "$pid"
is "which is no failure" 0 "$?"
grep -v '"type":"run.sample"' "$tmp/watched" >"$tmp/told"
wait "$follower"
is "the log ends with its run" 0 "$?"
"$wb" logs "$live" --stream db0.redis.log --store "$store" >"$tmp/kept"
check "no byte of it is lost or doubled" cmp -s "$tmp/followed" "$tmp/kept"
check "no event is lost or told twice" cmp -s "$tmp/told" "$WB_STATE/campaigns/$id/events.ndjson"
there rerun "$id" --reason again
is "it is run again" 0 "$rc"
again=$(cat "$tmp/out")
there queue
check "that is in the queue" grep -q "$again" "$tmp/out"
there cancel "$again"
is "until it is cancelled" 0 "$rc"
there cancel "$again"
is "and then is over" 22 "$rc"

# ---- api ----
there api GET /api/v1/runs/run_nothing
is "what is not there" 21 "$rc"
there api POST /api/v1/validate -d '{"study_text": "study: x"}'
is "an answer is printed as it came" false "$(json ok <"$tmp/out")"
echo '{"study_text": 1}' | "$wb" api POST /api/v1/campaigns -d @- --server "$url" >"$tmp/out" 2>"$tmp/err"
is "a body from standard input" 2 "$?"
there api DELETE / --json
is "a problem is one document" /problems/method-not-allowed "$(json type <"$tmp/out")"
there api BREW /tea
is "unknown methods are not sent" 2 "$rc"
there api POST /api/v1/runs/"$run"/annotations -d '{"type": "note", "text": "seen"}'
is "a run is annotated" admin "$(json who <"$tmp/out")"
there show "$run"
check "and that is shown" grep -q seen "$tmp/out"
there list annotations --json
note=$(json items.0.annotation <"$tmp/out")
there list annotations --ndjson
is "annotations as lines" "$note" "$(json annotation <"$tmp/out")"
there list hosts
check "hosts of a server" grep -q '^local ' "$tmp/out"
there list hosts --ndjson
is "hosts as lines" local "$(json id <"$tmp/out")"
there list --since nonsense
check "a time that is none is told as it was typed" grep -q ' --since: .nonsense' "$tmp/err"
there api DELETE "/api/v1/annotations/$note"
is "it is withdrawn" 0 "$rc"
there api DELETE "/api/v1/annotations/$note"
is "once" 22 "$rc"

# ---- servers that are none ----
url=http://127.0.0.1:1
there list
is "nobody there" 23 "$rc"
url=http://user:pw@127.0.0.1:1
there list
is "no passwords in addresses" 2 "$rc"
# hostile TEXT: a server that answers everything with it; $url is its address.
hostile() {
    rm -f "$tmp/hostile"
    perl -MIO::Socket::INET -e '
        my $l = IO::Socket::INET->new(Listen => 5, LocalAddr => "127.0.0.1", ReuseAddr => 1) or die;
        $| = 1; print $l->sockport, "\n"; $SIG{PIPE} = "IGNORE"; my $n = 0;
        while (my $c = $l->accept) {
            my $in = ""; while ($in !~ /\r\n\r\n/) { sysread($c, my $d, 65536) or last; $in .= $d }
            open my $f, ">>", $ARGV[1]; print $f $in; close $f;
            my $t = $ARGV[0]; $t =~ s/\\r/\r/g; $t =~ s/\\n/\n/g; syswrite $c, $t; close $c;
        }' "$1" "$tmp/seen.by" >"$tmp/hostile" 8>&- &
    cleanup+=("kill $!")
    : >"$tmp/seen.by"
    within 10 test -s "$tmp/hostile"
    url=http://127.0.0.1:$(cat "$tmp/hostile")
}
hostile "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:$port/api/v1/runs\r\nContent-Length: 0\r\n\r\n"
there list
is "another address is not followed" 13 "$rc"
check "and that is said" grep -q 'not followed' "$tmp/err"
hostile 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n<html'
there list
is "an answer that is no JSON" 13 "$rc"
hostile 'HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{"items": {}} '
there list
is "one that is no list" 13 "$rc"
hostile 'HTTP/1.1 429 Too Many\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n'
there list
is "one that wants too much patience" 25 "$rc"
hostile 'HTTP/1.1 503 Not now\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n'
there api POST /api/v1/runs/run_x/annotations -d '{"type": "note", "text": "once"}'
is "a write that may have been done is not sent again" "23 1" "$rc $(grep -c '^POST' "$tmp/seen.by")"
hostile 'HTTP/1.1 404 No\r\nContent-Type: application/problem+json\r\nContent-Length: 15\r\n\r\n{"detail": "\x"'
there list
is "a problem that is none" 21 "$rc"
hostile 'nonsense\r\n\r\n'
there list
check "no HTTP at all" test "$rc" = 13 -o "$rc" = 23
url=$honest

kill -TERM "$server"
wait "$server"
is "the server ends when told to" 0 "$?"
is "nothing is left on the host" "$before" "$(things)"
summary
