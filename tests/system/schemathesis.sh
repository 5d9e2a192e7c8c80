#!/bin/bash
# A foreign judge of the API: schemathesis, made up requests from the API document and checks of each
# answer. It comes from PyPI into a folder below build/; without a way there this is skipped aloud.
# Left out: the event stream, which does not end, and the check that every request that fits the
# document is taken: cursors, ids and studies have rules that no schema can say.
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
# shellcheck source=tests/support/lib.sh
. tests/support/lib.sh
export WB_STATE=$tmp/state WB_RECIPES=$PWD/recipes WB_WEB=$PWD/web GIT_CONFIG_GLOBAL=/dev/null
export HYPOTHESIS_STORAGE_DIRECTORY=$tmp/hypothesis # else it leaves a folder in the tree
venv=build/schemathesis
if ! "$venv/bin/schemathesis" --version >"$tmp/version" 2>&1; then
    rm -rf "$venv"
    if ! python3 -m venv "$venv" >"$tmp/venv" 2>&1 ||
        ! "$venv/bin/pip" install -q --disable-pip-version-check --retries 1 --timeout 20 \
            schemathesis==4.1.4 hypothesis==6.138.15 hypothesis-jsonschema==0.23.1 >>"$tmp/venv" 2>&1; then
        echo "SKIPPED schemathesis: it could not be had from PyPI: $(tail -n 1 "$tmp/venv")"
        rm -rf "$venv"
        ok "skipped, for it could not be had"
        summary
        exit
    fi
fi
"$build/system/make_records" "$tmp/store.git" 0 5 >"$tmp/made"
"$wb" serve --store "$tmp/store.git" --port 0 --requests-per-minute 0 >"$tmp/serve" 2>"$tmp/serve.err" &
server=$!
cleanup+=("kill -9 $server")
check "the server starts" within 30 grep -q '^listening' "$tmp/serve"
url=$(sed -n 's/^listening on //p' "$tmp/serve")
token=$(sed -n 's/^token of the admin.*: //p' "$tmp/serve")
timeout 300 "$venv/bin/schemathesis" run "$url/api/v1/openapi.json" -H "Authorization: Bearer $token" \
    --phases examples,fuzzing --checks all --exclude-checks positive_data_acceptance \
    --exclude-operation-id events --max-examples 6 --seed 1 --no-color --suppress-health-check all \
    --request-timeout 30 >"$tmp/judged" 2>&1
is "schemathesis finds nothing" 0 "$?"
grep -nE '^(_+ .* _+|- .*|    \[[0-9]+\].*|    curl .*)$' "$tmp/judged" | cut -c1-300
sed -n '/generated/p' "$tmp/judged"
check "and has looked" grep -qE '[0-9]+ passed' "$tmp/judged"
kill -TERM "$server"
wait "$server"
is "the server ends when told to" 0 "$?"
summary
