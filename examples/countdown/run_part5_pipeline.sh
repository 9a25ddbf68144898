#!/usr/bin/env bash
# Part 5: baseline, candidate, reproducibility check, quality gate, research bundle; stops at the first that fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
python=python3
[ -x .venv/bin/python ] && python=.venv/bin/python

step() {
    echo "[part5] $1"
    "$python" "examples/countdown/$2"
}

step "baseline" run_countdown_baseline.py
step "candidate" run_countdown_candidate.py
step "reproducibility" verify_reproducibility.py
step "quality gate" gate_candidate.py
step "research bundle" build_research_bundle.py
echo "[part5] done"
