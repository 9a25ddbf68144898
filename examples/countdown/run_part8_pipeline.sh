#!/usr/bin/env bash
# Part 8: repeated runs, tests, an interval, disagreements.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
python=python3
[ -x .venv/bin/python ] && python=.venv/bin/python
export COUNTDOWN_LIMIT=${COUNTDOWN_LIMIT:-4} COUNTDOWN_REPEATS=${COUNTDOWN_REPEATS:-1}

step() {
    echo "[part8] $1"
    "$python" "examples/countdown/$2"
}

step "$COUNTDOWN_REPEATS x 2 runs of $COUNTDOWN_LIMIT puzzles, compared" run_part8_analysis.py
echo "[part8] done"
