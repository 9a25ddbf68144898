#!/usr/bin/env bash
# Writes the locks: names, versions and hashes only, for every platform and every Python we support.
#   run.txt       what `make demo` needs
#   dev.txt       what `make test` needs: the same versions and more
#   pgserver.txt  PostgreSQL's programs as a wheel, for machines that have none and cannot install Debian's
# Pins that still fit are kept; `make lock UPGRADE=1` looks for newer ones.
set -euo pipefail
cd "$(dirname "$0")/.."

[ -x .make/uv/bin/uv ] || { "${PYTHON:-python3}" -m venv .make/uv && .make/uv/bin/python -m pip install --quiet uv; }
upgrade=${UPGRADE:+--upgrade}

compile() {
    .make/uv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-emit-find-links --no-header ${upgrade} "$@" >/dev/null
}

compile pyproject.toml --group build --extra dev --output-file requirements/dev.txt
compile pyproject.toml --group build --extra local --extra server --extra math --extra nlp \
    --constraint requirements/dev.txt --output-file requirements/run.txt
echo pgserver | compile - --no-deps --output-file requirements/pgserver.txt

if grep -nE '://|^(-i|--index|--extra-index|--find-links)|(^|[ "])/' requirements/*.txt; then
    echo "a lock holds an address or a path (above); names, versions and hashes only" >&2
    exit 1
fi
