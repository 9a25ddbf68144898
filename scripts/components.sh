#!/usr/bin/env bash
# components.sh VENV: sees to what the tests need beside Python packages: Chromium, PostgreSQL, bubblewrap, the embedded model.
# What cannot be had is said here; the tests that need it then name themselves in the summary.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1

debian_install() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    echo "installing Debian's $*"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"; } >&2
}

have_chromium() { command -v chromium || command -v chromium-browser || command -v google-chrome; }
if ! have_chromium >/dev/null; then
    debian_install chromium || echo "no Chromium, and it cannot be installed from here: apt-get install chromium"
fi

have_postgres() { command -v initdb || ls /usr/lib/postgresql/*/bin/initdb .make/pgserver/pgserver/pginstall/bin/initdb; }
if [ -z "${THEMIS_TEST_POSTGRES_URL:-}" ] && ! have_postgres >/dev/null 2>&1; then
    # The wheel holds PostgreSQL's own programs; it has none for the newest Pythons, but any Python can unpack it.
    debian_install postgresql ||
        "$venv/bin/python" -m pip install --quiet --no-deps --require-hashes --only-binary :all: --python-version 3.12 \
            --target .make/pgserver --requirement requirements/pgserver.txt ||
        echo "no PostgreSQL, and it cannot be installed from here: apt-get install postgresql"
fi

if ! command -v bwrap >/dev/null; then
    debian_install bubblewrap || echo "no bubblewrap, and it cannot be installed from here: apt-get install bubblewrap"
fi

"$venv/bin/themis" models install smollm2 >/dev/null ||
    echo "no embedded model; its tests will not run"
