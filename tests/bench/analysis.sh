#!/bin/bash
# What the analysis costs, and how often it errs: see tests/bench/analysis.c. About three minutes.
set -eu
cd -- "$(dirname -- "$0")/../.."
build=${B:-build}
make --no-print-directory B="$build" "$build/bench/analysis" >/dev/null
"$build/bench/analysis" "$@"
