#!/usr/bin/env bash
# Prints a Python of the wanted version (3.11, 3.12, ...), or of any that we support; fails where there is none.
# A name in PATH is tried by running it: pyenv's shims are there for versions that are not.
set -euo pipefail

wanted=("$@")
[ ${#wanted[@]} -gt 0 ] || wanted=(3.11 3.12 3.13)

runs_as() { [ "$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" = "$2" ]; }

for version in "${wanted[@]}"; do
    for candidate in "python$version" python3 python "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python; do
        if runs_as "$candidate" "$version"; then
            command -v "$candidate"
            exit 0
        fi
    done
done
echo "no Python ${wanted[*]} found; on Debian: apt-get install python3 python3-venv" >&2
exit 1
