#!/bin/bash
# What records say, over REST and on the command line, from one invented history: both give the same
# answers, kept ones too, and histories, builds and findings are named alike. No campaign is started
# and nothing of the host is touched.
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
# shellcheck source=tests/support/lib.sh
. tests/support/lib.sh
export WB_STATE=$tmp/state WB_RECIPES=$PWD/recipes WB_WEB=$PWD/web GIT_CONFIG_GLOBAL=/dev/null
store=$tmp/store.git
make -s "B=$build" "$build/system/make_history" || exit 2
"$build/system/make_history" "$store" || exit 2
say() { "$wb" "$@" --store "$store" --json 2>"$tmp/err"; }

"$wb" serve --store "$store" --port 0 --requests-per-minute 0 >"$tmp/serve" 2>"$tmp/serve.err" &
cleanup+=("kill -9 $!")
within 30 grep -q '^listening' "$tmp/serve" || bad "the server starts" "$(cat "$tmp/serve.err")"
url=$(sed -n 's/^listening on //p' "$tmp/serve")
token=$(sed -n 's/^token of the admin.*: //p' "$tmp/serve")
get() { curl -s -m 60 -G -H "Authorization: Bearer $token" "$url/api/v1$1" "${@:2}"; }

# ---- the API by its document, hostile questions, right answers ----
while IFS= read -r line; do
    case $line in
    'ok '*) ok "${line#ok }" ;;
    *) bad "${line#FAIL }" "" ;;
    esac
done < <(tests/support/http-analyses "$url" "$token" 2>&1)
check "that was something" test "$passed" -gt 150

# ---- the command line says the same ----
# plain: one JSON document with sorted keys, without what only one of the two has.
plain() {
    perl -MJSON::PP -e 'local $/; my $d = decode_json(<STDIN>); delete @$d{qw(ref others)}; print JSON::PP->new->canonical->encode($d)'
}
key=5e00000000000000
same() { # NAME PATH-AND-QUERY COMMAND...
    local name=$1 path=$2
    shift 2
    is "$name" "$(say "$@" | plain)" "$(get "$path" | plain)"
}
same "compare" '/comparisons?ref=cmp_23' compare cmp_23
same "compare of builds" "/comparisons?ref=series:$key@c0ffee13&other=series:$key@c0ffee14" \
    compare "series:$key@c0ffee13" "series:$key@c0ffee14"
same "scaling" /campaigns/cmp_23/scaling scaling cmp_23
same "explain" '/explain?a=cmp_13/native%20x1&b=cmp_14/native%20x1' explain 'cmp_13/native x1' 'cmp_14/native x1'
same "trend" "/series/$key/trend" trend "$key"
rm -rf "$WB_STATE/answers"
same "trend, kept answers thrown away" "/series/$key/trend" trend "$key"
is "findings" "$(say list findings | json items)" "$(get /findings | json items)"

# ---- builds by their commits ----
is "the newest build" cmp_23 "$(say compare "series:$key@last" cmp_00 | json campaign)"
"$wb" trend "$key" --store "$store" >"$tmp/trend"
check "a trend names the builds" grep -q 'after commit c0ffee13 (cmp_13) came c0ffee14' "$tmp/trend"
"$wb" gate --ref "series:$key@c0ffee13" --head "series:$key@c0ffee23" --store "$store" >"$tmp/gate"
check "a gate takes them" grep -q "c0ffee23" "$tmp/gate"
say compare "series:$key@c0ffee" cmp_00 >"$tmp/out"
check "one that is not clear is told" grep -q 'more than one' "$tmp/err"

# ---- what people say counts at once ----
finding=$(get /findings | json items.0.id)
"$wb" annotate "$finding" accepted meant --store "$store" >"$tmp/out" 2>&1
is "an accepted finding is so over REST" accepted "$(get /findings | json items.0.state)"

# ---- a report leaves out what people excluded, whoever asks ----
say compare cmp_23 | plain >"$tmp/before"
run=$(say list runs --campaign cmp_23 | json items.0.id)
"$wb" annotate "$run" excluded "the disk was being replaced" --store "$store" >"$tmp/out" 2>&1
same "the report of a campaign" /campaigns/cmp_23/report compare cmp_23
get /campaigns/cmp_23/report | plain >"$tmp/after"
check "without the excluded run" test "$(cat "$tmp/before")" != "$(cat "$tmp/after")"
summary
