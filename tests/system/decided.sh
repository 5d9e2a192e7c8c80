#!/bin/bash
# A campaign that ends when it is decided: looks at the planned rounds only, and goes on as planned
# after a crash in between. A tenth of a core against a whole one is a difference that any host
# shows, and the limits of validity are so wide that a busy host does not stop it.
set -u
cd -- "$(dirname -- "$0")/../.." || exit 2
# shellcheck source=tests/support/lib.sh
. tests/support/lib.sh
alone
export WB_STATE=$build/test/state WB_RECIPES=recipes
store=$tmp/store.git
study=recipes/redis/studies/slowdown.yaml
args=(-f "cpu_quota=none, 0.1" -f "rounds={at_least: 8, at_most: 12, until: decided}"
    -f workload.phases.max.warm_up=50ms -f workload.phases.max.for=300ms -f workload.data.rows=200
    -f "validity.limits.foreign_cpu={noisy: 100, invalid: 200}")
for limit in steal canary; do
    args+=(-f "validity.limits.$limit={noisy: 99%, invalid: 100%}")
done

"$wb" plan "$study" "${args[@]}" >"$tmp/plan" 2>&1
check "plan tells the looks" grep -q '^looks  *after round 8, 10, 12:' "$tmp/plan"
run "$study" "${args[@]}" -f "rounds=1" --wait-for-host 600
before=$(snapshot)
start run "$study" "${args[@]}" --wait-for-host 600
within 900 says run '^run 7/24 '
kill -KILL "$pid"
wait "$pid"
id=$(campaign_of run)
"$wb" resume "$id" --wait-for-host 600 --store "$store" >"$tmp/out" 2>"$tmp/err"
rc=$?
check "resume goes on to the end, here $rc" [ $rc -eq 0 ]
[ $rc -eq 0 ] || tail -n 20 "$tmp/err"
check "the look is told" grep -q 'look 1 of 3, after round 8 of at most 12: 1 of 1' "$tmp/err"
"$wb" compare "$id" --store "$store" --json >"$tmp/compare"
is "one contrast, decided" "1 1" "$(json looks.contrasts <"$tmp/compare") \
$(json looks.decided <"$tmp/compare")"
is "by the first look" "1 8" "$(json contrasts.0.look.number <"$tmp/compare") \
$(json contrasts.0.look.rounds <"$tmp/compare")"
is "as worse" worse "$(json contrasts.0.verdict <"$tmp/compare")"
is "after which nothing was run" 8 "$(json contrasts.0.all_rounds.n <"$tmp/compare")"
"$wb" compare "$id" --store "$store" >"$tmp/text"
check "compare says which look decided" grep -q '^Worse, after 8 rounds: ' "$tmp/text"
nothing_left "the campaign"
summary
