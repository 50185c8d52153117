# Sourced by the other scripts: a virtual environment in .venv, made once, renewed when
# pyproject.toml changes. Knows nothing of the machine beyond a Python of at least 3.11.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
VENV=${FILEIPC_VENV:-.venv}

find_python() {
    local candidate
    for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "fileipc needs Python 3.11 or newer; set PYTHON to one" >&2
    return 1
}

# ensure_venv STAMP ARGUMENTS...: install once per state of pyproject.toml
ensure_venv() {
    local stamp="$VENV/.installed-$1" wanted
    shift
    if [ ! -x "$VENV/bin/python" ]; then
        echo "making $VENV" >&2
        "$(find_python)" -m venv "$VENV"
    fi
    wanted=$(cksum pyproject.toml)
    if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
        echo "installing into $VENV" >&2
        "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
        "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
        echo "$wanted" >"$stamp"
    fi
}
