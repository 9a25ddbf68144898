#!/usr/bin/env bash
# benchmarks.sh VENV: runs every measurement in benchmarks/ and prints what it found; writes nothing but the figure that
# benchmarks/memory_window.py draws for docs/reference.
set -euo pipefail
cd "$(dirname "$0")/.."

for script in benchmarks/*.py; do
    grep -q '__name__ == "__main__"' "$script" || continue
    printf '\n## %s\n\n' "$script"
    "$1/bin/python" "$script"
done
