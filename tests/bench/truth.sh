#!/bin/bash
# Does the verdict tell the truth? Two identical arms (an alarm is false), and one arm with a CPU
# quota that makes it 15 % slower (no alarm is a miss), each judged on 1,000 random subsets of 8
# rounds. Bars: false alarms at most 5 %, the slowdown found `worse` in at least 90 %.
# About 15 minutes on a quiet machine; needs root. TRUTH_ROUNDS shortens it, TRUTH_FOR (2s) is the
# measured window of each run, TRUTH_FORM (native x1) another form; of several instances each holds
# a part of the keys.
set -eu
cd -- "$(dirname -- "$0")/../.."
build=${B:-build}
store=${TRUTH_STORE:-$build/bench/truth.git}
export WB_STATE=$build/bench/state WB_RECIPES=recipes
make --no-print-directory B="$build" all "$build/bench/truth_subsets" >/dev/null

campaign() { # STUDY: runs it, prints its id
    local log=$build/bench/truth.log
    "$build/weighbridge" run "$1" ${TRUTH_ROUNDS:+--rounds "$TRUTH_ROUNDS"} \
        ${TRUTH_FOR:+-f "workload.phases.max.for=$TRUTH_FOR"} \
        ${TRUTH_FORM:+-f "form=$TRUTH_FORM" -f topology=sharded} --store "$store" \
        >"$log.out" 2>"$log" || [ $? -eq 14 ] || { tail -n 5 "$log" >&2; exit 1; }
    sed -nE 's/^campaign (cmp_[0-9A-Z]+):.*/\1/p' "$log"
}
judge() { # CAMPAIGN ARM AGAINST
    "$build/weighbridge" list --campaign "$1" --json --store "$store" |
        "$build/bench/truth_subsets" max.throughput "$2" "$3" 8 1000
}

mkdir -p "$build/bench"
aa=$(campaign recipes/redis/studies/aa.yaml)
echo "A/A: campaign $aa (bar: alarm_percent <= 5)"
judge "$aa" b a
slow=$(campaign recipes/redis/studies/slowdown.yaml)
echo "15 % slowdown by CPU quota: campaign $slow (bar: worse_percent >= 90)"
judge "$slow" "${SLOW_ARM:-0.85}" "${FAST_ARM:-none}"
