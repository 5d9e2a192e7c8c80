#!/bin/bash
# The JSON Schemas, judged by a validator that is not ours: what is shipped validates, what is broken
# does not, as far as a schema can say it (files that it must take carry "#schema takes it").
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
# shellcheck source=tests/support/lib.sh
. tests/support/lib.sh
judge=tests/support/schema-check
store=$tmp/store.git

for s in study recipe record; do
    check "schema $s" "$wb" schema "$s" >"$tmp/$s.json.ok"
    "$wb" schema "$s" >"$tmp/$s.json"
    is "schema $s is one, and speaks of every key" "" "$("$judge" "$tmp/$s.json" schema 2>&1 | tail -n 1)"
done
"$wb" schema studdy >"$tmp/out" 2>"$tmp/err"
is "another schema" 2 $?
check "another schema: did you mean" grep -qF "did you mean 'study'" "$tmp/err"

# takes SCHEMA FILE, refuses SCHEMA FILE
takes() {
    local got
    got=$("$judge" "$tmp/$1.json" "$2" 2>&1 | tail -n 1)
    if [[ $got == "ok "* ]]; then ok "$1 takes $2"; else bad "$1 takes $2" "$got"; fi
}
refuses() {
    local got
    got=$("$judge" "$tmp/$1.json" "$2" 2>&1 | tail -n 1)
    # What is no YAML at all, the reader refuses.
    if [[ $got != "ok "* ]]; then ok "$1 refuses $2"; else bad "$1 refuses $2" "$got"; fi
}
for f in recipes/*/studies/*.yaml tests/data/studies/good-*.yaml; do takes study "$f"; done
for f in recipes/*/recipe.yaml tests/data/recipes/*/recipe.yaml; do takes recipe "$f"; done
judged() { # SCHEMA FILES...
    local schema=$1 f
    shift
    for f in "$@"; do
        grep -q '^#! ' "$f" || continue
        grep -qE '^#(-f|profile|rounds) ' "$f" && continue # the fault is not in the text
        if grep -qx '#schema takes it' "$f"; then takes "$schema" "$f"; else refuses "$schema" "$f"; fi
    done
}
judged study tests/data/studies/*.yaml
judged recipe tests/data/broken-recipes/*.yaml

# The same in JSON: numbers are numbers, but a version is text.
perl -pe 's/"3\.9"/3.9/; s/(rows|rounds): ([0-9_]+)/$1: $2/' >"$tmp/json.json" <<'JSON'
{"study": "s", "recipe": {"name": "toy", "version": "3.9"}, "rounds": 6, "copies": 2,
 "factors": {"form": ["native x1", "docker x2"], "cpu_quota": [0.5, "none"], "setting.hz": [10, 20]},
 "workload": {"data": {"rows": 1000, "key": 16, "value": {"size": "64B"}},
  "phases": [{"name": "load", "op": "insert", "order": "sequential"},
             {"name": "max", "mix": {"get": 80, "set": "20%"}, "rate": [1000, "2k/s"], "for": "10s"}]}}
JSON
refuses study "$tmp/json.json"
sed -i 's/: 3\.9/: "3.9"/' "$tmp/json.json"
takes study "$tmp/json.json"

# A record out of git, as its documents.
"$build/system/make_records" "$store" 3 4 >"$tmp/made" || bad "a record is made" "$(cat "$tmp/made")"
folder=runs/2026/11/30/run_01JX8AB003CDEFGHJKMNPQRST
{
    echo '{'
    for d in summary plan environment result events; do
        printf '"%s": ' "$d"
        git -c 'safe.directory=*' "--git-dir=$store" show "HEAD:$folder/$d.json"
        echo ','
    done
    printf '"study": '
    cat "$tmp/json.json"
    echo '}'
} >"$tmp/run.json"
takes record "$tmp/run.json"
sed 's/"outcome":"ok"/"outcome":"great"/' "$tmp/run.json" >"$tmp/word.json"
refuses record "$tmp/word.json"
sed 's/"validity":"valid"/"validity":1/' "$tmp/run.json" >"$tmp/type.json"
refuses record "$tmp/type.json"
summary
