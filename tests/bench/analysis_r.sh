#!/bin/bash
# The answers of `stats` to 500 random sets with ties and zeros against R: wilcox.test, p.adjust,
# nls. Which tolerance holds where, and why, stands at the head of analysis_r.R. Needs r-base-core.
set -eu
cd -- "$(dirname -- "$0")/../.."
build=${B:-build}
if ! command -v Rscript >/dev/null; then
    echo "analysis_r: Rscript is not there; apt-get install -y --no-install-recommends r-base-core" >&2
    exit 1
fi
make --no-print-directory B="$build" "$build/bench/analysis_sets" >/dev/null
"$build/bench/analysis_sets" >"$build/bench/analysis_sets.R"
Rscript --vanilla tests/bench/analysis_r.R "$build/bench/analysis_sets.R"
