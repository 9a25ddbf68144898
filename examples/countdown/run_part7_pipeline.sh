#!/usr/bin/env bash
# Part 7: a watched run with bounded memory, a look at the store, retention.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
python=python3
[ -x .venv/bin/python ] && python=.venv/bin/python
export COUNTDOWN_LIMIT=${COUNTDOWN_LIMIT:-6}

step() {
    echo "[part7] $1"
    "$python" "examples/countdown/$2"
}

step "a watched run of $COUNTDOWN_LIMIT puzzles" run_part7_ops.py
echo "[part7] done"
