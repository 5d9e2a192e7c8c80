#!/bin/bash
# The service under mixed load while server and engines are killed at random: SOAK_FOR seconds (1200)
# of studies that are sent, cancelled and run again, lists, event streams and annotations. At the
# end every campaign that was accepted is there once, with exactly its runs, nothing is left on the
# host, and the server's memory is what it was.
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
# shellcheck source=tests/support/lib.sh
. tests/support/lib.sh
alone
soak_for=${SOAK_FOR:-1200}
rss_bound_kb=${SOAK_RSS_KB:-8192} # more anonymous memory than after the warm-up: a leak
RANDOM=${SOAK_SEED:-$$}
echo "seed ${SOAK_SEED:-$$}, $soak_for s"
export WB_STATE=$tmp/state WB_RECIPES=$PWD/recipes WB_WEB=$PWD/web
unset WB_TOKEN WB_TOKEN_FILE WB_SERVER
store=$tmp/store.git
things() { snapshot | grep -v '^image '; }
before=$(things)
printf 'pools:\n  lab: {source: fake, count: 3}\n  two: {source: fake, hosts: [lab-1, lab-2]}\n' >"$tmp/pools.yaml"
port=0
serve() {
    rm -f "$tmp/serve"
    "$wb" serve --store "$store" --pools "$tmp/pools.yaml" --port "$port" --requests-per-minute 0 >"$tmp/serve" 2>>"$tmp/serve.err" 8>&- &
    server=$!
    echo "$server" >"$tmp/server.pid"
    within 60 grep -q '^listening' "$tmp/serve" || bad "the server starts" "$(tail -n 3 "$tmp/serve.err")"
    url=$(sed -n 's/^listening on //p' "$tmp/serve")
    port=${url##*:}
}
stop_server() { kill -9 "$(cat "$tmp/server.pid")"; }
cleanup+=(stop_server)
serve
admin=$(sed -n 's/^token of the admin.*: //p' "$tmp/serve")
users=()
for u in ann bob cem; do
    users+=("$(WB_TOKEN=$admin "$wb" token make $u --scope read --scope runs:write --scope annotate --server "$url" 2>/dev/null)")
done

# ---- the load: each worker runs until $tmp/stop is there ----
going() { [ ! -e "$tmp/stop" ]; }
nap() { pause "0.$((RANDOM % 9 + 1))"; }
# ask TOKEN METHOD PATH CURL-ARGS...: the answer in $answer, its status in $status (000: none).
ask() {
    local token=$1 method=$2 path=$3
    shift 3
    answer=$(curl -s -m 30 -X "$method" -H "Authorization: Bearer $token" -w '\n%{http_code}' "$url$path" "$@")
    status=${answer##*$'\n'}
    answer=${answer%$'\n'*}
}
field() { json "$1" <<<"$answer" 2>/dev/null; }
# The same request until it is answered: what was accepted is known then.
insist() {
    while :; do
        ask "$@"
        [[ $status =~ ^(000|503|429)$ ]] || return
        pause 0.3
    done
}
accept() { # KEY: what was accepted is written down
    [ "$status" = 202 ] && printf '%s %s\n' "$1" "$(field id)" >>"$tmp/accepted.$2"
}
a_campaign() { cat "$tmp"/accepted.* 2>/dev/null | shuf -n 1 | cut -d' ' -f2; }
body() {
    perl -MJSON::PP -e 'local $/; open my $f, "<", "recipes/redis/studies/aa.yaml"; my ($pool, $d, $for, $p) = @ARGV;
        print JSON::PP->new->canonical->encode({study_text => <$f>, rounds => 1, priority => 0 + $p, overrides => {"workload.phases.max.for" => $for,
        "workload.phases.max.warm_up" => "100ms", "workload.data.rows" => "500", "hosts.pool" => $pool, "hosts.database" => $d}})' "$@"
}
submitter() {
    local n=0 pool database key user=${users[$1 % 3]}
    RANDOM=$((RANDOM + $1 * 7919))
    while going; do
        case $((RANDOM % 4)) in
        0) pool=lab database=2 ;;
        1) pool=lab database=1 ;;
        2) pool=two database=1 ;;
        *) pool=local database=1 ;;
        esac
        key=s$1-$((n++))
        body $pool $database "$((RANDOM % 900 + 100))ms" $((RANDOM % 5 - 2)) >"$tmp/body.$1"
        insist "$user" POST /api/v1/campaigns -H 'Content-Type: application/json' -H "Idempotency-Key: $key" -d @"$tmp/body.$1"
        accept "$key" "$1"
        if [ $((RANDOM % 3)) = 0 ]; then # as one whose answer was lost
            insist "$user" POST /api/v1/campaigns -H 'Content-Type: application/json' -H "Idempotency-Key: $key" -d @"$tmp/body.$1"
            accept "$key" "$1"
        fi
        pause $((RANDOM % 4 + 1))
    done
}
canceller() {
    while going; do
        nap
        [ $((RANDOM % 3)) = 0 ] && ask "$admin" POST "/api/v1/campaigns/$(a_campaign)/cancel"
        pause 1
    done
}
rerunner() {
    local n=0 id
    while going; do
        pause 5
        id=$(a_campaign)
        [ -n "$id" ] || continue
        key=r-$((n++))
        insist "${users[0]}" POST "/api/v1/campaigns/$id/rerun" -H "Idempotency-Key: $key"
        accept "$key" r
        ask "${users[0]}" POST "/api/v1/campaigns/$id/extend" -H 'Content-Type: application/json' -H "Idempotency-Key: x-$n" -d '{"rounds": 1}'
    done
}
reader() {
    local paths=(/api/v1/campaigns '/api/v1/runs?limit=20' /api/v1/queue /api/v1/hosts /metrics /readyz /api/v1/openapi.json
        /api/v1/recipes /api/v1/audit /api/v1/annotations)
    while going; do
        ask "$admin" GET "${paths[RANDOM % ${#paths[@]}]}"
        [[ $status =~ ^(000|200|503)$ ]] || printf '%s %s\n' "$status" "$answer" >>"$tmp/odd"
        ask "$admin" GET "/api/v1/campaigns/$(a_campaign)"
        nap
    done
}
listener() {
    while going; do
        curl -sN -m $((RANDOM % 20 + 1)) -H "Authorization: Bearer $admin" "$url/api/v1/events" >/dev/null
        pause 0.2
    done
}
annotator() {
    local n=0
    while going; do
        pause 3
        ask "$admin" GET '/api/v1/runs?limit=1'
        run=$(field items.0.id)
        [[ $run == run_* ]] || continue
        ask "${users[1]}" POST "/api/v1/runs/$run/annotations" -H 'Content-Type: application/json' -d "{\"type\": \"note\", \"text\": \"n$((n++))\"}"
        [ "$status" = 201 ] && field annotation >>"$tmp/noted"
    done
}
kill_engine() {
    local pid
    pid=$(sed -nE 's/.*"pid": *([0-9]+).*/\1/p' "$WB_STATE"/service/engines/*/status.json 2>/dev/null | shuf -n 1)
    [ -n "$pid" ] && [ "$(readlink "/proc/$pid/exe")" = "$build/weighbridge" ] && kill -9 "$pid" && echo engine >>"$tmp/kills"
}
kill_server() {
    kill -9 "$server"
    wait "$server" 2>/dev/null
    echo server >>"$tmp/kills"
    serve
}
anonymous_kb() { awk '/^RssAnon/ { print $2 }' "/proc/$server/status"; }

workers=()
for w in "submitter 1" "submitter 2" "submitter 3" canceller rerunner reader reader listener listener annotator; do
    $w 8>&- &
    workers+=($!)
done
# First both are killed, then only engines: memory is looked at then.
end=$((SECONDS + soak_for * 6 / 10))
while [ "$SECONDS" -lt "$end" ]; do
    pause $((RANDOM % 12 + 3))
    if [ $((RANDOM % 2)) = 0 ]; then kill_server; else kill_engine; fi
done
kill_server
pause $((soak_for / 20 + 2))
warm=$(anonymous_kb)
end=$((SECONDS + soak_for * 4 / 10 - soak_for / 20))
while [ "$SECONDS" -lt "$end" ]; do
    pause $((RANDOM % 12 + 3))
    kill_engine
done
late=$(anonymous_kb)
touch "$tmp/stop"
wait "${workers[@]}"

# ---- what came of it ----
# Whatever still waits or runs is ended, by the same means.
ended() {
    local id
    ask "$admin" GET '/api/v1/queue'
    grep -oE '"id":"cmp_[0-9A-Z]+"' <<<"$answer" | cut -d'"' -f4 >"$tmp/open"
    while read -r id; do ask "$admin" POST "/api/v1/campaigns/$id/cancel"; done <"$tmp/open"
    ask "$admin" GET '/api/v1/queue'
    [ "$(field running.n)$(field items.n)" = 00 ]
}
check "all campaigns come to an end" within 600 ended
hosts_free() {
    ask "$admin" GET /api/v1/hosts
    ! grep -qE '"state":"(leased|dirty|out)"' <<<"$answer"
}
check "every host is free" within 120 hosts_free
sort -u "$tmp"/accepted.* >"$tmp/accepted"
accepted=$(wc -l <"$tmp/accepted")
echo "$accepted campaigns, $(grep -c server "$tmp/kills") kills of the server, $(grep -c engine "$tmp/kills") of engines, $(sort "$tmp/noted" 2>/dev/null | wc -l) annotations"
check "there were campaigns and kills" test "$accepted" -gt 5 -a "$(wc -l <"$tmp/kills")" -gt 3
is "a key made one campaign, whatever was repeated" "$(cut -d' ' -f1 "$tmp/accepted" | sort -u | wc -l)" "$accepted"
# All campaigns of the server, page by page: "id state runs".
cursor=
: >"$tmp/known"
while :; do
    ask "$admin" GET "/api/v1/campaigns?limit=200${cursor:+&cursor=$cursor}"
    perl -MJSON::PP -ne 'next unless /\S/; print "$_->{id} $_->{state} $_->{runs}\n" for @{decode_json($_)->{items}}' <<<"$answer" >>"$tmp/known"
    cursor=$(field next)
    [ "$cursor" != null ] || break
done
is "those accepted are there, and no others" "$(cut -d' ' -f2 "$tmp/accepted" | sort)" "$(cut -d' ' -f1 "$tmp/known" | sort)"
states=$(cut -d' ' -f2 "$tmp/known" | sort | uniq -c | tr -s ' \n' ' ')
echo "states:$states"
check "each is over" test "$(grep -cE ' (queued|running) ' "$tmp/known")" = 0
# A finished one has every arm of every round once, in the round's last attempt.
while read -r id state runs; do
    [ "$state" = finished ] || continue
    "$wb" list --json -c "$id" -n 1000 --store "$store" | perl -MJSON::PP -e '
        local $/; my (%last, %n); my @r = @{decode_json(<STDIN>)->{items}}; my ($id, $want) = @ARGV;
        for (@r) { my $a = $_->{attempt} // 1; $last{$_->{round}} = $a if $a > ($last{$_->{round}} // 0) }
        for (@r) { $n{"$_->{round} $_->{arm}"}++ if ($_->{attempt} // 1) == $last{$_->{round}} }
        print "$id: ", scalar(keys %n), " of $want\n" if keys %n != $want;
        print "$id: $_ $n{$_} times\n" for grep { $n{$_} != 1 } keys %n;' "$id" "$runs"
done <"$tmp/known" >"$tmp/half"
is "finished campaigns have exactly their runs" "" "$(cat "$tmp/half")"
"$wb" list --ndjson --store "$store" | sed -nE 's/^\{"schema":[^,]*,"id":"(run_[0-9A-Z]+)".*/\1/p' | sort >"$tmp/recorded"
[ -s "$tmp/recorded" ] || "$wb" list --ndjson --store "$store" | perl -MJSON::PP -ne 'print decode_json($_)->{id}, "\n"' | sort >"$tmp/recorded"
is "each attempt that began has its record, once" "$(attempts)" "$(cat "$tmp/recorded")"
is "no ledger has anything open" "" "$(grep -L '"clean": *true' "$WB_STATE"/campaigns/*/state.json 2>/dev/null)"
is "no run has left its folder" "" "$(find "$WB_STATE"/campaigns/*/runs -mindepth 1 -maxdepth 1 2>/dev/null)"
"$wb" list annotations --ndjson --store "$store" | perl -MJSON::PP -ne 'print decode_json($_)->{annotation}, "\n"' | sort >"$tmp/notes"
is "every annotation that was taken is there" "" "$(sort "$tmp/noted" 2>/dev/null | comm -23 - "$tmp/notes")"
is "no answer was odd" "" "$(sort "$tmp/odd" 2>/dev/null | cut -c 1-300 | uniq | head -n 5)"
ask "$admin" GET /readyz
is "the server is well" "200 ready" "$status $(field status)"
echo "anonymous memory: $warm KB after the warm-up, $late KB at the end"
check "memory is flat" test "$late" -lt $((warm + rss_bound_kb))
check "and small" test "$late" -lt 51200
kill -TERM "$server"
wait "$server"
is "the server ends when told to" 0 "$?"
is "after it all: nothing is left but what images keep" "$before" "$(things)"
check "the records are whole" "$wb" verify --all --store "$store"
summary
