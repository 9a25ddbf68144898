#!/usr/bin/env bash
# Part 9: two smoke runs, their manifests, the difference, the provenance gate; stops at the first that fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
python=python3
[ -x .venv/bin/python ] && python=.venv/bin/python

step() {
    echo "[part9] $1"
    "$python" "examples/countdown/$2"
}

step "two smoke runs" run_part9_smoke.py
step "manifest index" build_manifest_index.py
step "manifest diff" diff_manifests.py
step "provenance gate" gate_reproducibility.py
echo "[part9] done"
