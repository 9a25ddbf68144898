#!/usr/bin/env bash
# install.sh VENV LOCK: makes the virtual environment if it is not there and installs the lock and this package into it.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1 lock=$2
python=${PYTHON:-}
[ -n "$python" ] || python=$(scripts/find-python.sh)

if ! [ -x "$venv/bin/python" ] || ! "$venv/bin/python" -c 'import pip' 2>/dev/null; then
    # Debian splits the part of Python that puts pip into an environment off into a package of its own.
    if ! "$python" -c 'import ensurepip' 2>/dev/null; then
        if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
            version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
            apt-get update -qq && apt-get install -y -qq --no-install-recommends "python$version-venv"
        else
            echo "$python cannot make a virtual environment with pip in it: apt-get install python3-venv" >&2
            exit 1
        fi
    fi
    "$python" -m venv --clear "$venv"
fi

export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
pip() { "$venv/bin/python" -m pip "$@"; }
# As constraints too: older versions of pip do not see the pin of a package that another one requires with an extra.
pip install --quiet --require-hashes --requirement "$lock" --constraint "$lock"
pip install --quiet --no-deps --no-build-isolation --editable .
