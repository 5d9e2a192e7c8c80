#!/bin/bash
# The service over REST with real campaigns on a real Redis: the walk of the README, kill -9 of
# server and engine, cancel, tokens and sessions, hostile clients, two hundred event streams.
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
# shellcheck source=tests/support/lib.sh
. tests/support/lib.sh
alone
export WB_STATE=$tmp/state WB_RECIPES=$PWD/recipes WB_WEB=$PWD/web
store=$tmp/store.git
things() { snapshot | grep -v '^image '; }
before=$(things)
server=

# A server; its address is in $url, without the scheme in $at.
serve() {
    "$wb" serve --store "$store" --port 0 >"$tmp/serve" 2>"$tmp/serve.err" 8>&- &
    server=$!
    cleanup+=("kill -9 $server")
    within 30 grep -q '^listening' "$tmp/serve" || bad "the server starts" "$(cat "$tmp/serve.err")"
    url=$(sed -n 's/^listening on //p' "$tmp/serve")
    at=${url#http://}
}
api() { # METHOD PATH ARGS...: the answer is in $tmp/answer, its status in $status
    local method=$1 path=$2
    shift 2
    status=$(curl -s -m 60 -X "$method" -H "$auth" -o "$tmp/answer" -w '%{http_code}' "$url$path" "$@")
}
answer() { json "$1" <"$tmp/answer"; }
# conforms OPERATION: the last answer is of the API document.
conforms() {
    is "$1 $status is of the API document" "ok $1 $status" \
        "$(tests/support/http-conform answer "$url" "$1" "$status" "$tmp/answer")"
}
state_of() {
    api GET "/api/v1/campaigns/$1"
    answer state
}
is_in() { [ "$(state_of "$1")" = "$2" ]; }
over() { [[ $(state_of "$1") =~ ^(finished|failed|cancelled|incomplete|interrupted)$ ]]; }

# A study of two arms and one round that takes some seconds.
study() { # ROUNDS FOR
    perl -MJSON::PP -e 'local $/; open my $f, "<", "recipes/redis/studies/aa.yaml"; print JSON::PP->new->canonical->encode({study_text => <$f>,
        rounds => 0 + $ARGV[0], overrides => {"workload.phases.max.for" => $ARGV[1],
        "workload.phases.max.warm_up" => "100ms", "workload.data.rows" => "1000"}})' "$1" "$2"
}
json_type=(-H 'Content-Type: application/json')
submit() { # ROUNDS FOR CURL-ARGS...: the campaign is in $campaign
    study "$1" "$2" >"$tmp/study.json"
    shift 2
    api POST /api/v1/campaigns "${json_type[@]}" -d @"$tmp/study.json" "$@"
    campaign=$(answer id)
}

serve
token=$(sed -n 's/^token of the admin.*: //p' "$tmp/serve")
auth="Authorization: Bearer $token"
check "the first start shows a token" test "${#token}" = 63

# ---- the walk of the README ----
sed -n '/^    export T=/,/^$/p' README.md | sed -e '/^$/d' -e 's/^    //' -e "s|wb_\.\.\.|$token|" \
    -e "s|http://127.0.0.1:8420|$url|" -e "s|recipes/redis/studies/forms.yaml|$tmp/walk.yaml|" \
    -e "s|study\.json|$tmp/walk.json|g" -e 's|, profile: "small"|, rounds: 1|' >"$tmp/walk"
sed -e 's/for: 2s/for: 1s/' recipes/redis/studies/aa.yaml >"$tmp/walk.yaml"
is "the README has five lines to walk" 5 "$(wc -l <"$tmp/walk")"
timeout 300 bash "$tmp/walk" >"$tmp/walk.out" 2>"$tmp/walk.err" 8>&-
check "its campaign is followed to the end" grep -q '^event: campaign.end' "$tmp/walk.out"
check "and its phases were told" grep -q '^event: run.phase' "$tmp/walk.out"
check "and the report says something" grep -qiE 'insufficient|inconclusive|better|worse' "$tmp/walk.out"
api GET '/api/v1/campaigns?limit=1'
campaign=$(answer items.0.id)
check "it is over in the list, too" within 30 is_in "$campaign" finished
api GET "/api/v1/runs?campaign=$campaign&limit=1"
run=$(answer items.0.id)
next=$(answer next)
api GET "/api/v1/runs?campaign=$campaign&limit=1&cursor=$next"
check "the next page has the other run" test "$(answer items.0.id)" != "$run"
is "and is the last" null "$(answer next)"
api GET "/api/v1/runs?limit=1&cursor=$next"
is "a cursor is of its own list alone" 400 "$status"
api GET "/api/v1/runs/$run"
is "a run has its record's commit" 40 "$(answer record.commit | tr -d '\n' | wc -c)"
api GET "/api/v1/runs/$run/environment"
is "and its documents" 200 "$status"
api GET "/api/v1/runs/$run/artifacts/load-max.ndjson" -H 'Range: bytes=0-9'
is "raw files come by range" "206 10" "$status $(wc -c <"$tmp/answer")"
api GET "/api/v1/runs/$run/artifacts/load-max.ndjson" -H 'Range: bytes=99999999-'
is "what lies behind the end is told" 416 "$status"
api GET "/api/v1/runs/$run/timeline?signals=max.throughput,max.database_cores&width=100"
is "what was measured over the time comes from raw data" "200 2 1/s" "$status $(answer series.n) $(answer series.0.unit)"
check "as points" test "$(answer series.0.raw_points)" -ge 1
conforms getTimeline
api GET "/api/v1/runs/$run/artifacts/..%2f..%2fetc%2fpasswd"
is "names cannot climb" 400 "$status"

# ---- keys, cancel, queue ----
submit 1 1s -H 'Idempotency-Key: one'
first=$campaign
conforms startCampaign
submit 1 1s -H 'Idempotency-Key: one'
is "the same key and request is the same campaign" "$first" "$campaign"
submit 2 1s -H 'Idempotency-Key: one'
is "another request under it is refused" "422 /problems/idempotency-mismatch" "$status $(answer type)"
submit 3 30s
long=$campaign
submit 1 1s
waits=$campaign
api GET /api/v1/queue
check "what waits is listed with its reason" grep -q '"waiting_for":"[^"]*cmp_' "$tmp/answer"
api POST "/api/v1/campaigns/$waits/cancel"
is "a waiting campaign is cancelled at once" "202 cancelled" "$status $(answer state)"
conforms cancelCampaign
api POST "/api/v1/campaigns/$waits/cancel"
is "twice is a conflict" 409 "$status"
conforms cancelCampaign
running_run() { [ -e "$(echo "$WB_STATE/campaigns/$long"/runs/run_*/run.json)" ]; }
check "the long one gets to its first run" within 120 running_run
api POST "/api/v1/campaigns/$long/cancel"
is "a running campaign may be cancelled" 202 "$status"
check "and ends so" within 60 is_in "$long" cancelled

# ---- kill -9 of the server, then of an engine ----
submit 2 2s
check "a campaign begins" within 60 is_in "$campaign" running
kill -9 "$server"
wait "$server" 2>/dev/null
stray=$WB_STATE/campaigns/cmp_00000000000000000000000000
cp -R "$WB_STATE/campaigns/$waits" "$stray" # as one that was killed while it took a study
is "a cancelled campaign keeps the folder of one that waits" queued "$(json state <"$stray/state.json")"
serve
check "a folder that no queue knows is removed" test ! -e "$stray"
check "and one that it knows is not" test -e "$WB_STATE/campaigns/$waits"
is "a second start shows no token" "" "$(sed -n 's/^token.*: //p' "$tmp/serve")"
check "the campaign goes on and ends" within 120 is_in "$campaign" finished
api GET "/api/v1/campaigns/$campaign"
is "its engine was started once" 1 "$(answer starts)"
is "and every run is recorded once" 4 "$(answer progress.recorded)"

submit 2 3s
long=$campaign
check "the next gets to its first run" within 120 running_run
engine=$(json pid <"$WB_STATE/service/engines/$campaign/status.json")
kill -9 "$engine"
check "a killed engine is started again" within 180 is_in "$campaign" finished
api GET "/api/v1/campaigns/$campaign"
is "that was its second start" 2 "$(answer starts)"
api GET "/api/v1/campaigns/$campaign/report"
is "both rounds are complete" 200 "$status"

# ---- who may ----
api POST /api/v1/tokens "${json_type[@]}" -d '{"name":"reader","scopes":["read"],"days":1}'
reader=$(answer token)
id=${reader:3:16}
admin=$auth
auth="Authorization: Bearer $reader"
api GET /api/v1/runs
is "a reader reads" 200 "$status"
api POST "/api/v1/campaigns/$long/cancel"
is "and does not write" "403 /problems/scope-missing" "$status $(answer type)"
api GET /api/v1/tokens
is "nor sees tokens" 403 "$status"
auth=$admin
api DELETE "/api/v1/tokens/$id"
is "tokens are taken back" 204 "$status"
auth="Authorization: Bearer $reader"
api GET /api/v1/runs
is "and are worth nothing then" 401 "$status"
auth='X-None: 1'
api GET /api/v1/runs
is "nobody is told nothing" 401 "$status"
api POST /api/v1/session "${json_type[@]}" -d "{\"token\":\"$token\"}" -c "$tmp/jar"
is "a browser gets a cookie" 201 "$status"
check "that scripts cannot read" grep -q '#HttpOnly_' "$tmp/jar"
api GET /api/v1/whoami -b "$tmp/jar"
is "the cookie counts" "200 true" "$status $(answer session)"
api POST "/api/v1/campaigns/$long/rerun" -b "$tmp/jar"
is "but writes nothing from another site" "403 /problems/cross-site" "$status $(answer type)"
api POST "/api/v1/campaigns/$long/rerun" -b "$tmp/jar" -H "Origin: $url" -H 'X-WB-CSRF: 1'
is "and does from its own" 202 "$status"
conforms rerunCampaign
again=$(answer id)
auth=$admin
api POST "/api/v1/campaigns/$again/cancel"
api GET /api/v1/audit
check "all that is in the audit log" grep -q "/rerun" "$tmp/answer"
check "what the reader was not allowed, too" \
    grep -qE "\"path\": ?\"/api/v1/campaigns/$long/cancel\",[^}]*\"status\": ?403" <(tr -d '\n' <"$tmp/answer")
check "which has no secret" test "$(grep -c "${token:20}" "$tmp/answer")" = 0
check "nor has the server's entry in the list of processes" \
    test "$(cat "/proc/$server/cmdline" "/proc/$server/environ" | grep -ac "${token:20:20}")" = 0
check "nor what it said after its first start" test "$(cat "$tmp/serve" "$tmp/serve.err" | grep -c "${token:20:20}")" = 0

# ---- studies ----
api POST /api/v1/validate "${json_type[@]}" -d '{"study":{"study":"x","recipe":{"name":"redis","version":7.0}}}'
is "a broken study is answered whole" "200 false" "$status $(answer ok)"
check "with a pointer for each problem" grep -q '"pointer":"/recipe/version"' "$tmp/answer"
api POST /api/v1/campaigns "${json_type[@]}" -d '{"study":{"study":"x"}}'
is "and is not accepted" "422 /problems/validation" "$status $(answer type)"
perl -MJSON::PP -e 'local $/; open my $f, "<", "recipes/redis/studies/generators.yaml"; print encode_json({study_text => <$f>})' >"$tmp/study.json"
api POST /api/v1/campaigns "${json_type[@]}" -d @"$tmp/study.json"
is "nor is one with programs of its own" 422 "$status"
api POST /api/v1/campaigns "${json_type[@]}" -d '{"study_text":"study: x\nrecipe: {name: /etc, version: \"1\"}"}'
is "nor one with a path" 422 "$status"
api POST /api/v1/campaigns "${json_type[@]}" -d '{"study_txt":""}'
check "unknown keys are named" grep -q "did you mean 'study_text'" "$tmp/answer"
api POST /api/v1/campaigns -H 'Content-Type: text/plain' -d 'x'
is "only JSON is read" 415 "$status"

# ---- hostile clients ----
raw() { # TEXT: the first line of the answer
    local fd
    exec {fd}<>"/dev/tcp/${at%:*}/${at##*:}" || return
    printf '%b' "$1" >&"$fd"
    IFS= read -r -t 20 line <&"$fd"
    exec {fd}>&-
    printf '%s' "${line%$'\r'}" | cut -d' ' -f2
}
host="Host: $at\r\n"
is "two hosts" 400 "$(raw "GET /healthz HTTP/1.1\r\n${host}Host: x\r\n\r\n")"
is "another host" 421 "$(raw 'GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n')"
is "no host" 400 "$(raw 'GET /healthz HTTP/1.1\r\n\r\n')"
is "two lengths of a body" 400 "$(raw "POST /api/v1/validate HTTP/1.1\r\n${host}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n")"
is "an unknown coding" 400 "$(raw "POST /api/v1/validate HTTP/1.1\r\n${host}Transfer-Encoding: gzip\r\n\r\n")"
is "a NUL in the address" 400 "$(raw "GET /healthz%00 HTTP/1.1\r\n${host}\r\n")"
is "a large body" 413 "$(raw "POST /api/v1/validate HTTP/1.1\r\n${host}Content-Length: 2000000\r\n\r\n")"
is "two tokens" 400 "$(raw "GET /api/v1/runs HTTP/1.1\r\n${host}Authorization: a\r\nAuthorization: b\r\n\r\n")"
api PUT /api/v1/runs
is "another method" 405 "$status"
api GET /api/v1/nothing
is "another address" 404 "$status"
head -c 3000000 /dev/zero | tr '\0' ' ' >"$tmp/large"
curl -s -m 30 -H "$auth" "${json_type[@]}" -H 'Transfer-Encoding: chunked' --data-binary @"$tmp/large" "$url/api/v1/validate" >/dev/null
check "an endless body ends the connection, not the server" curl -sf -m 10 "$url/healthz" -o /dev/null
api GET /healthz
is "all is well after that" 200 "$status"
api GET /readyz
is "and work is taken" "200 ready" "$status $(answer status)"

# ---- two hundred event streams, one of which reads nothing ----
fds=()
for _ in $(seq 200); do
    exec {fd}<>"/dev/tcp/${at%:*}/${at##*:}"
    printf 'GET /api/v1/events HTTP/1.1\r\n%b%s\r\n\r\n' "$host" "$auth" >&"$fd"
    fds+=("$fd")
done
listeners() {
    api GET /metrics
    grep -qx 'weighbridge_sse_clients 200' "$tmp/answer"
}
check "all of them listen" within 60 listeners
submit 1 1s
heard=0
for fd in "${fds[@]:1}"; do
    while IFS= read -r -t 60 line <&"$fd"; do
        if [[ $line == 'event: campaign.state'* ]]; then
            heard=$((heard + 1))
            break
        fi
    done
done
is "each hears that a campaign begins" 199 "$heard"
check "which ends" within 120 over "$campaign"
for fd in "${fds[@]}"; do exec {fd}>&-; done
api GET /api/v1/openapi.json
is "the interface describes itself" "3.1.0" "$(answer openapi)"

kill -TERM "$server"
wait "$server"
is "the server ends when told to" 0 "$?"
is "nothing is left on the host" "$before" "$(things)"
check "the records are whole" "$wb" verify --all --store "$store"
summary
