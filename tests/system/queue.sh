#!/bin/bash
# Queue and leases over REST with real campaigns: several hosts at once or none, hosts that are not
# clean, hosts out of service, rounds that are added, campaigns that go on, stored studies and price
# books, all with kill -9 of the server in between.
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
cat >"$tmp/pools.yaml" <<'END'
pools:
  lab: {source: fake, class: big, hosts: [h1, h2]}
  one: {source: fake, class: big, hosts: [H1]}
  other: {source: fake, class: big, count: 2}
END
port=0
serve() {
    "$wb" serve --store "$store" --pools "$tmp/pools.yaml" --port "$port" >"$tmp/serve" 2>"$tmp/serve.err" 8>&- &
    server=$!
    cleanup+=("kill -9 $server")
    within 30 grep -q '^listening' "$tmp/serve" || bad "the server starts" "$(cat "$tmp/serve.err")"
    WB_SERVER=$(sed -n 's/^listening on //p' "$tmp/serve")
    export WB_SERVER
    port=${WB_SERVER##*:}
}
killed() {
    kill -9 "$server"
    wait "$server" 2>/dev/null
    serve
}
# api METHOD PATH ARGS...: the answer is in $tmp/answer, the exit code in $rc.
api() {
    "$wb" api "$@" >"$tmp/answer" 2>"$tmp/err" 8>&-
    rc=$?
}
answer() { json "$1" <"$tmp/answer"; }
state_of() {
    api GET "/api/v1/campaigns/$1"
    answer state
}
is_in() { [ "$(state_of "$1")" = "$2" ]; }
host_is() {
    api GET "/api/v1/hosts/$1"
    [ "$(answer state)" = "$2" ]
}
# submit POOL DATABASE LOAD FOR ARGS...: the campaign is in $campaign.
submit() {
    local pool=$1 database=$2 load=$3 for=$4
    shift 4
    campaign=$("$wb" run recipes/redis/studies/aa.yaml --rounds 1 -f "workload.phases.max.for=$for" \
        -f workload.phases.max.warm_up=100ms -f workload.data.rows=1000 -f "hosts.pool=$pool" \
        -f "hosts.database=$database" -f "hosts.load=$load" "$@" 2>"$tmp/err" 8>&-)
}

# listen: what is said about the queue goes to $tmp/events. told CAMPAIGN STATE.
listen() {
    : >"$tmp/events"
    curl -sN -H "Authorization: Bearer $WB_TOKEN" "$WB_SERVER/api/v1/events?topic=queue" >>"$tmp/events" 8>&- &
    cleanup+=("kill $!")
    within 30 grep -q '^retry' "$tmp/events" || bad "listening"
}
told() { grep -qF "data: {\"campaign\":\"$1\",\"state\":\"$2\"}" "$tmp/events"; }

printf 'pools: {lab: {source: fak, count: 1}}\n' >"$tmp/wrong.yaml"
"$wb" serve --store "$store" --pools "$tmp/wrong.yaml" --port 0 >/dev/null 2>"$tmp/err" 8>&-
is "wrong pools end the start" 2 "$?"
check "with their line" grep -q "wrong.yaml:1: /pools/lab/source: .*did you mean 'fake'" "$tmp/err"
serve
WB_TOKEN=$(sed -n 's/^token of the admin.*: //p' "$tmp/serve")
export WB_TOKEN

# ---- all or nothing ----
submit lab 1 1 8s
long=$campaign
submit one 1 1 1s
check "more hosts than there are of one class are refused" grep -q 'the pool one has 1 of one class' "$tmp/err"
submit nowhere 1 1 1s
check "so is a pool that is not there" grep -q 'allowed: local, lab, one or other' "$tmp/err"
check "the first begins" within 30 is_in "$long" running
listen
submit lab 1 1 1s --label nightly --priority 5
waits=$campaign
check "what is sent is told to who listens" within 10 told "$waits" queued
submit other 1 1 1s
beside=$campaign
check "one on other hosts begins beside it" within 30 is_in "$beside" running
api GET /api/v1/queue
is "one waits" 1 "$(answer items.n)"
check "for its hosts, which is said" grep -q "h1 (held by $long), h2 (held by $long); it gets 2 hosts" "$tmp/answer"
check "with a forecast of its start" test "$(answer items.0.expected_start)" != null
check "and of its end" test "$(answer items.0.expected_end)" != null
is "both hosts of the first are named" '["h1","h2"]' "$(json running <"$tmp/answer" | json 1.hosts_held)"
api GET /api/v1/hosts/h1
is "one machine under two names is one host" '["h1","H1"] leased' "$(answer names) $(answer state)"
: >"$tmp/events"
api PATCH "/api/v1/campaigns/$waits" -d '{"priority": -3, "labels": ["a", "b"]}'
is "what waits may get another priority" '-3 ["a","b"]' "$(answer priority) $(answer labels)"
check "which is told, too" within 10 told "$waits" queued
api GET "/api/v1/operations/$long"
is "it is an operation, too" "running /api/v1/campaigns/$long" "$(answer state) $(answer result_url)"

# ---- a lease ends only when its host was seen clean ----
mkdir -p "$WB_STATE/service/hosts"
echo -n 'a container of somebody' >"$WB_STATE/service/hosts/h2"
api POST "/api/v1/campaigns/$long/cancel"
check "the first ends" within 90 is_in "$long" cancelled
check "a host that is clean is free" within 60 host_is h1 free
check "one that is not is not" within 60 host_is h2 dirty
is "and it is said why" 'a container of somebody' "$(answer reason)"
is "so nothing begins there" queued "$(state_of "$waits")"
killed
check "nor after a kill of the server" host_is h2 dirty
rm "$WB_STATE/service/hosts/h2"
api PATCH /api/v1/hosts/h1 -d '{"out_of_service": true}'
is "taking a host out needs a reason" 2 "$rc"
api PATCH /api/v1/hosts/h1 -d '{"out_of_service": true, "reason": "new disk"}'
is "which is kept" "out new disk" "$(answer state) $(answer reason)"
check "once it is clean it is free" within 60 host_is h2 free
is "and what needs two hosts still waits" queued "$(state_of "$waits")"
api GET /api/v1/queue
check "for the one that is out" grep -q 'h1 (out of service: new disk)' "$tmp/answer"
is "which nobody can forecast" null "$(answer items.0.expected_start)"
api PATCH /api/v1/hosts/h1 -d '{"out_of_service": false}'
check "and begins when that is back" within 30 is_in "$waits" running
check "and ends" within 180 is_in "$waits" finished
check "and gives its hosts back" within 60 host_is h2 free
api GET /api/v1/hosts/nothing
is "there are no other hosts" 21 "$rc"

# ---- an engine that was killed: its hosts are looked at before another one uses them ----
submit other 1 1 1s
engine_of() { sed -nE 's/.*"pid": *([0-9]+).*/\1/p' "$WB_STATE/service/engines/$campaign/status.json" 2>/dev/null; }
has_engine() { [ -n "$(engine_of)" ]; }
starts() {
    api GET "/api/v1/campaigns/$campaign"
    answer starts
}
started_twice() { [ "$(starts)" = 2 ]; }
has_reason() {
    api GET /api/v1/hosts/other-1
    [ "$(answer reason)" = "$1" ]
}
check "one more begins" within 60 has_engine
echo -n 'half a database' >"$WB_STATE/service/hosts/other-1"
kill -9 "$(engine_of)"
check "its host is looked at" within 60 has_reason 'half a database'
is "and no engine is started on it" "1 running" "$(starts) $(state_of "$campaign")"
rm "$WB_STATE/service/hosts/other-1"
check "until it is clean" within 60 started_twice
check "which is all that is said of it then" has_reason null
"$wb" cancel "$campaign" >/dev/null 2>"$tmp/err" 8>&-
is "it is cancelled" cancelled "$(state_of "$campaign")"

# ---- more rounds; going on ----
submit local 1 1 3s
campaign_more=$campaign
check "a campaign runs" within 60 is_in "$campaign_more" running
listen
api POST "/api/v1/campaigns/$campaign_more/extend" -d '{"rounds": 1}' --key more-1
is "it gets a round more" "2 1" "$(answer rounds) $(answer rounds_to_add)"
check "and that is told" within 10 told "$campaign_more" running
api POST "/api/v1/campaigns/$campaign_more/extend" -d '{"rounds": 1}' --key more-1
is "once, however often that is sent" 2 "$(answer rounds)"
api POST "/api/v1/campaigns/$campaign_more/extend" -d '{"rounds": 2}' --key more-1
is "and not two with the same key" 2 "$rc"
killed
check "it ends" within 180 is_in "$campaign_more" finished
is "with the runs of both rounds" 4 "$(answer progress.recorded)"
is "none is to be added any more" 0 "$(answer rounds_to_add)"
"$wb" extend "$campaign_more" --rounds 1 >/dev/null 2>"$tmp/err"
is "what is over gets no more" 22 "$?"
submit local 1 1 20s
check "the next runs" within 60 is_in "$campaign" running
running_run() { [ -e "$(echo "$WB_STATE/campaigns/$campaign"/runs/run_*/run.json)" ]; }
within 120 running_run
"$wb" cancel "$campaign" >/dev/null 2>"$tmp/err" 8>&-
is "until it is cancelled" cancelled "$(state_of "$campaign")"
"$wb" resume "$campaign" >/dev/null 2>"$tmp/err" 8>&-
is "it may go on" 0 "$?"
check "and does" within 60 is_in "$campaign" running
"$wb" cancel "$campaign" >/dev/null 2>"$tmp/err" 8>&-
"$wb" resume "$campaign_more" >/dev/null 2>"$tmp/err" 8>&-
is "one that is finished does not" 22 "$?"

# ---- stored studies ----
perl -MJSON::PP -e 'local $/; print encode_json({study_text => <STDIN>})' <recipes/redis/studies/aa.yaml >"$tmp/study.json"
api PUT /api/v1/studies/nightly -d @"$tmp/study.json"
is "a study is stored" "0 1" "$rc $(answer version)"
api PUT /api/v1/studies/nightly -d @"$tmp/study.json"
is "and replaced only by who knows it" 22 "$rc"
api PUT /api/v1/studies/nightly -d @"$tmp/study.json" --if-match '"v7"'
is "as it is" 22 "$rc"
api PUT /api/v1/studies/nightly -d @"$tmp/study.json" --if-match '"v1"'
is "it has a second version" 2 "$(answer version)"
api PUT /api/v1/studies/nightly -d '{"study_text": "study: x"}' --if-match '"v2"'
is "a wrong one is not stored" 2 "$rc"
api PUT /api/v1/studies/Night%20ly -d @"$tmp/study.json"
is "nor one with such a name" 2 "$rc"
killed
api GET '/api/v1/studies/nightly?version=1'
is "versions are kept" 1 "$(answer version)"
api GET /api/v1/studies/nightly/versions
is "and listed" 2 "$(answer items.n)"
api POST /api/v1/campaigns -d '{"study_name": "nightly", "rounds": 1}'
is "a campaign names the version it runs" 2 "$(answer study_version)"
api POST "/api/v1/campaigns/$(answer id)/cancel"
api POST /api/v1/campaigns -d '{"study_name": "nightly", "study_version": 1, "rounds": 1}'
is "or that it was asked for" 1 "$(answer study_version)"
api POST "/api/v1/campaigns/$(answer id)/cancel"
api POST /api/v1/campaigns -d '{"study_name": "nothing"}'
is "what is not stored is not run" 2 "$rc"
api DELETE /api/v1/studies/nightly
is "removing needs the version, too" 22 "$rc"
api DELETE /api/v1/studies/nightly --if-match '"v2"'
is "and then is done" 0 "$rc"
api GET /api/v1/studies/nightly
is "it is gone" 21 "$rc"
api GET '/api/v1/studies/nightly?version=2'
is "what campaigns ran is not" 0 "$rc"

# ---- price books ----
cat >"$tmp/book.yaml" <<'END'
book: lab-2026
date: 2026-11-01
currency: EUR
source: invoices
hosts:
  - {class: "any*", per_hour: 1.20}
END
perl -MJSON::PP -e 'local $/; print encode_json({book_text => <STDIN>})' <"$tmp/book.yaml" >"$tmp/book.json"
api PUT /api/v1/price-books/lab-2026 -d @"$tmp/book.json"
is "a price book is stored" 1 "$(answer version)"
api PUT /api/v1/price-books/lab-2026 -d '{"book_text": "book: x"}' --if-match '"v1"'
is "a wrong one is not" 2 "$rc"
api GET /api/v1/price-books
is "they are listed" lab-2026 "$(answer items.0.name)"
reader=$("$wb" token make reader 2>/dev/null)
curl -sNZ --parallel-immediate --parallel-max 280 -H "Authorization: Bearer $reader" "$WB_SERVER/api/v1/events?topic=t[1-251]" >"$tmp/many" 2>/dev/null 8>&- &
streams=$!
cleanup+=("kill $streams")
check "one token has no more than its share of streams" within 30 grep -q 'too many event streams of this token' "$tmp/many"
check "the others go on" kill -0 "$streams"
WB_TOKEN=$reader api PUT /api/v1/studies/x -d @"$tmp/study.json"
is "a reader stores nothing" 20 "$rc"
WB_TOKEN=$reader api PATCH /api/v1/hosts/h1 -d '{"out_of_service": false}'
is "nor takes hosts" 20 "$rc"
api DELETE "/api/v1/tokens/$(printf %s "$reader" | cut -d_ -f2)"
is "the reader's token is taken back" 0 "$rc"
ended() { ! kill -0 "$streams" 2>/dev/null; }
check "and its streams end with it" within 40 ended
api GET /api/v1/audit
check "writes are in the audit log" grep -q '"path":"/api/v1/studies/nightly"' "$tmp/answer"

idle() {
    api GET /api/v1/queue
    [ "$(answer running.n)$(answer items.n)" = 00 ]
}
check "all of it ends" within 120 idle
kill -TERM "$server"
wait "$server"
is "the server ends when told to" 0 "$?"
is "nothing is left on the host" "$before" "$(things)"
summary
