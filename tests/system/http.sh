#!/bin/bash
# The service alone, over a store of invented records: each answer against its own API document,
# lists and pages while records are added, compressed and conditional answers, limits, hostile
# clients. No campaign is started and nothing of the host is touched.
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
# shellcheck source=tests/support/lib.sh
. tests/support/lib.sh
export WB_STATE=$tmp/state WB_RECIPES=$PWD/recipes WB_WEB=$PWD/web GIT_CONFIG_GLOBAL=/dev/null
store=$tmp/store.git
make -s "B=$build" "$build/bench/store_seed" "$build/system/make_records" || exit 2
"$build/bench/store_seed" "$store" 1 >"$tmp/first"
"$build/bench/store_seed" "$store" 200 | git --git-dir="$store" fast-import --quiet --force
"$build/system/make_records" "$store" 0 5 >"$tmp/made"
server=

# serve ARGS...: a server; its address is in $url.
serve() {
    "$wb" serve --store "$store" --port 0 "$@" >"$tmp/serve" 2>"$tmp/serve.err" &
    server=$!
    cleanup+=("kill -9 $server")
    within 30 grep -q '^listening' "$tmp/serve" || bad "the server starts" "$(cat "$tmp/serve.err")"
    url=$(sed -n 's/^listening on //p' "$tmp/serve")
}
stop() {
    kill -TERM "$server"
    wait "$server"
}
get() { # PATH ARGS...: the answer is in $tmp/answer, its headers in $tmp/headers, its status in $status
    local path=$1
    shift
    : >"$tmp/answer"
    status=$(curl -s -m 60 -H "$auth" -o "$tmp/answer" -D "$tmp/headers" -w '%{http_code}' "$url/api/v1$path" "$@")
}
answer() { json "$1" <"$tmp/answer"; }
header() { sed -n "s/^$1: //Ip" "$tmp/headers" | tr -d '\r'; }
# judged COMMAND...: its lines "ok NAME" and "FAIL NAME: why" are results.
judged() {
    local line some=
    while IFS= read -r line; do
        case $line in
        'ok '*) ok "${line#ok }" ;;
        'FAIL '*) bad "${line#FAIL }" "" ;;
        *) bad "$1 $2" "$line" ;;
        esac
        some=1
    done < <("$@" 2>&1)
    check "$1 $2 said something" test -n "$some"
}

serve --requests-per-minute 0
token=$(sed -n 's/^token of the admin.*: //p' "$tmp/serve")
auth="Authorization: Bearer $token"

# ---- the API document ----
judged tests/support/http-conform walk "$url" "$token"

# ---- lists ----
# all PATH: the ids of every page, a line each.
all() {
    local next=
    while get "$1${next:+&cursor=$next}"; do
        perl -MJSON::PP -e 'local $/; print "$_->{id}\n" for @{decode_json(<STDIN>)->{items}}' <"$tmp/answer"
        next=$(answer next)
        [ "$next" != null ] || break
    done
}
get '/runs?limit=500'
is "all runs are listed" 205 "$(answer items.n)"
is "by pages of seven they are the same" "$(all '/runs?limit=500')" "$(all '/runs?limit=7')"
is "no id twice" "" "$(all '/runs?limit=7' | sort | uniq -d)"
is "the other way round" "$(all '/runs?limit=500' | tac)" "$(all '/runs?limit=9&sort=started_at')"
is "by throughput" "$(all '/runs?limit=500&sort=-throughput')" "$(all '/runs?limit=11&sort=-throughput')"
is "one campaign" 20 "$(all '/runs?limit=6&campaign=cmp_01S0000000000000000003' | wc -l)"
is "failed ones" 6 "$(all '/runs?limit=500&outcome=sut-error' | wc -l)"
is "an arm of one study" 4 "$(all '/runs?study=study-01&arm=docker%20x1' | wc -l)"
is "of one day" 100 "$(all '/runs?limit=500&since=2026-11-28T15:00:00Z&until=2026-11-29T15:00:00Z' | wc -l)"
get '/runs?limit=1&fields=arm,recipe.version,nothing'
is "only what is asked for" '["arm","id","recipe"] {"version":"7.0.15"}' \
    "$(perl -MJSON::PP -e 'local $/; my $i = decode_json(<STDIN>)->{items}[0]; print JSON::PP->new->canonical->encode([sort keys %$i]), " ", JSON::PP->new->canonical->encode($i->{recipe})' <"$tmp/answer")"
get '/runs?limit=3&sort=-started_at'
next=$(answer next) first=$(answer items.0.id)
get "/runs?limit=3&sort=started_at&cursor=$next"
is "a cursor is of its own order" "400 /problems/cursor-invalid" "$status $(answer type)"
get "/runs?limit=3&sort=-started_at&cursor=${next}x"
is "and cannot be made up" 400 "$status"
"$build/system/make_records" "$store" 5 8 >>"$tmp/made"
get "/runs?limit=3&sort=-started_at&cursor=$next"
is "what comes in between shifts no page" "run_01JX8AB001CDEFGHJKMNPQRST" "$(answer items.0.id)"
get '/runs?limit=3'
check "and is at the top of a new one" test "$(answer items.0.id)" != "$first"
is "campaigns, too" 11 "$(all '/campaigns?limit=3' | sort -u | wc -l)"
is "campaigns of the records have a state of their own" 11 "$(all '/campaigns?limit=5&state=recorded' | wc -l)"
is "and none of the queue's" 0 "$(all '/campaigns?state=finished' | wc -l)"
is "campaigns of a study" 1 "$(all '/campaigns?study=study-04' | wc -l)"
get /campaigns/cmp_01S0000000000000000003
is "one of them" "200 20 5" "$status $(answer progress.recorded) $(answer plan.arms.n)"
get "/runs?limit=1"
is "the next page has a link" "<$(answer next)>" "<$(header Link | sed -E 's/.*cursor=([^>]*)>.*/\1/')>"

# ---- exports ----
for what in runs metrics; do
    for format in csv ndjson; do
        get "/exports?what=$what&format=$format&outcome=ok"
        "$wb" export "$what" --format "$format" --outcome ok --store "$store" >"$tmp/exported"
        check "$what as $format are those of the command" cmp -s "$tmp/answer" "$tmp/exported"
        is "as a file" "200 attachment; filename=\"$what.$format\"" "$status $(header Content-Disposition)"
    done
done
check "and many" test "$(wc -l <"$tmp/answer")" -gt 1000
get '/exports?what=all'
is "nothing else is exported" 400 "$status"
get /metrics-registry
check "figures have a unit and a direction" grep -qF '"name":"<phase>.throughput","unit":"ops/s"' "$tmp/answer"
check "those of recipes, too" grep -qF '"source":"recipe redis"' "$tmp/answer"

# ---- Prometheus ----
curl -s -H "$auth" "$url/metrics" >"$tmp/prometheus"
is "every series has its help and type, counters end with _total, none stands twice" "" "$(awk '
    /^# HELP / { if (help[$3]++) print "twice: " $0; next }
    /^# TYPE / { if (!help[$3] || type[$3]) print "out of order: " $0; type[$3] = $4
        if ($4 == "counter" != ($3 ~ /_total$/)) print "name: " $0
        if ($4 !~ /^(counter|gauge)$/) print "type: " $0; next }
    { name = $1; sub(/[{].*/, "", name)
        if (!type[name]) print "untyped: " $0
        if (seen[$1]++) print "twice: " $0
        if (NF != 2 || $2 !~ /^-?[0-9.]+$/ || name !~ /^weighbridge_[a-z0-9_]+$/) print "form: " $0 }' "$tmp/prometheus")"
check "and there are some" test "$(wc -l <"$tmp/prometheus")" -gt 20

# ---- raw files ----
"$build/system/make_records" "$store" 20 21 100000000 >>"$tmp/made"
run=$(sed -n '$s/ .*//p' "$tmp/made")
get "/runs/$run/artifacts"
is "a large raw file" "big.bin 100000000" "$(answer items.0.name) $(answer items.0.bytes)"
sha=$(answer items.0.sha256)
get "/runs/$run/artifacts/big.bin"
is "comes whole" "200 $sha" "$status $(sha256sum <"$tmp/answer" | cut -d' ' -f1)"
cp "$tmp/answer" "$tmp/big"
tag=$(header ETag)
wget -qO "$tmp/wgot" --header "$auth" "$url/api/v1/runs/$run/artifacts/big.bin"
check "also by another program" cmp -s "$tmp/big" "$tmp/wgot"
get "/runs/$run/artifacts/big.bin" -H 'Range: bytes=99999990-'
is "a part of it" "206 bytes 99999990-99999999/100000000" "$status $(header Content-Range)"
check "is that part" cmp -s "$tmp/answer" <(tail -c 10 "$tmp/big")
get "/runs/$run/artifacts/big.bin" -H 'Range: bytes=-7'
check "so are the last bytes" cmp -s "$tmp/answer" <(tail -c 7 "$tmp/big")
get "/runs/$run/artifacts/big.bin" -H 'Range: bytes=1-2' -H "If-Range: $tag"
is "a part of what the client has begun" 206 "$status"
get "/runs/$run/artifacts/big.bin" -H 'Range: bytes=1-2' -H 'If-Range: "other"'
is "and all of what was changed since" "200 100000000" "$status $(wc -c <"$tmp/answer")"
get "/runs/$run/artifacts/big.bin" -H "If-None-Match: $tag"
is "and nothing when it is known" "304 0" "$status $(wc -c <"$tmp/answer")"
get "/runs/$run/log?stream=big.bin&from=99999990"
check "a log of it from any byte on" cmp -s "$tmp/answer" <(tail -c 10 "$tmp/big")
get "/runs/$run/log?stream=other"
is "a log that is none" 404 "$status"
check "it was taken out of git once" test "$(find "$WB_STATE/service/raw" -size +90M | wc -l)" = 1
check "and held in no memory" test "$(awk '/^RssAnon/ { print $2 }' "/proc/$server/status")" -lt 250000
get "/runs/$run/timeline"
is "a timeline of nothing" "200 false 0" "$status $(answer pruned) $(answer series.n)"
while read -r ref; do git -c 'safe.directory=*' --git-dir="$store" update-ref -d "$ref"; done < \
    <(git -c 'safe.directory=*' --git-dir="$store" for-each-ref --format='%(refname)' refs/raw)
first=$(head -n 1 "$tmp/made" | cut -d' ' -f1)
get "/runs/$first/artifacts/db0.log"
is "what was pruned is said so" "410 /problems/raw-pruned" "$status $(answer type)"
get "/runs/$first/timeline"
is "in a timeline, too" "200 true" "$status $(answer pruned)"

# ---- conditions of reads and writes ----
perl -MJSON::PP -e 'print encode_json({book_text => "book: lab\ndate: 2026-11-01\ncurrency: EUR\nsource: invoices\nhosts:\n  - {class: \"*\", per_hour: 1.2}\n"})' >"$tmp/book"
put=(-X PUT -H 'Content-Type: application/json' -d "@$tmp/book")
get /price-books/lab "${put[@]}" -H 'If-None-Match: *'
is "a book that is not there yet is stored" 201 "$status"
get /price-books/lab -H 'Accept-Encoding: gzip'
is "it has one tag" '200 "v1" 1' "$status $(header ETag) $(grep -ci '^etag:' "$tmp/headers")"
get /price-books/lab -H 'If-None-Match: "v1"'
is "by which it is known" 304 "$status"
get /price-books/lab "${put[@]}" -H 'If-None-Match: *' -H 'If-Match: "v1"'
is "one that is there is not stored over" 412 "$status"
get /price-books/lab "${put[@]}" -H 'If-None-Match: "v7"' -H 'If-Match: "v1"'
is "a write is answered by what came of it" '200 "v2"' "$status $(header ETag)"
get /price-books/lab -X DELETE -H 'If-None-Match: *' -H 'If-Match: "v2"'
is "a condition that nothing looks at is refused" 400 "$status"
get /price-books/lab
is "before anything is done" '200 "v2"' "$status $(header ETag)"

# ---- forms of an answer ----
get '/runs?limit=50' -H 'Accept-Encoding: gzip'
is "an answer is compressed" "200 gzip Accept-Encoding" "$status $(header Content-Encoding) $(header Vary)"
tag=$(header ETag)
cp "$tmp/answer" "$tmp/packed.gz"
get '/runs?limit=50'
is "or not" "" "$(header Content-Encoding)"
check "it is the same" cmp -s "$tmp/answer" <(gzip -dc "$tmp/packed.gz")
check "under another tag" test "$(header ETag)" != "$tag"
get '/runs?limit=50' -H 'Accept-Encoding: gzip' -H "If-None-Match: $tag"
is "a tag is known again" "304 0 $tag" "$status $(wc -c <"$tmp/answer") $(header ETag)"
"$build/system/make_records" "$store" 8 9 >>"$tmp/made"
get '/runs?limit=50' -H 'Accept-Encoding: gzip' -H "If-None-Match: $tag"
is "and no longer when something came" 200 "$status"
get '/events' -H 'Accept: application/json'
is "a stream is no document" 406 "$status"

# ---- hostile clients ----
judged tests/support/http-hostile "$url" "$token" "$server"
stop
is "the server ends when told to" 0 "$?"

# ---- limits ----
serve --requests-per-minute 30
for i in $(seq 40); do get /whoami; done
is "too many requests are refused" "429 /problems/quota-exceeded" "$status $(answer type)"
check "with the time to wait" test "$(header Retry-After)" -ge 1
is "and the policy" '"default";q=30;w=60' "$(header RateLimit-Policy)"
admin=$auth
auth="X-None: 1"
for i in $(seq 35); do get /openapi.json; done
is "without a token, too" 429 "$status"
auth="Authorization: Bearer wb_none"
for i in $(seq 25); do get /whoami; done
is "so are failed logins" "429 /problems/quota-exceeded" "$status $(answer type)"
auth=$admin
get /whoami
check "who is known from there is let in" test "$status" != 401
stop
summary
