# shellcheck shell=bash
# What the examples of docs/POSTGRES.md and docs/OUTBOX.md need: psycopg for Python, pg for Node.js; kept under the target folder.

ensure_languages() {
    local tools=${CARGO_TARGET_DIR:-target}/tools
    mkdir -p "$tools/node"
    tools=$(cd "$tools" && pwd)
    need python3 "install Python 3.9 or later; on Debian: apt-get install python3-venv"
    need npm "install Node.js 18 or later with npm; on Debian: apt-get install nodejs npm"
    if ! "$tools/python/bin/python" -c 'import psycopg' 2>/dev/null; then
        say "preparing Python"
        python3 -m venv "$tools/python" || {
            echo "error: python3 can't make a venv; on Debian: apt-get install python3-venv" >&2
            exit 2
        }
        "$tools/python/bin/pip" install --quiet --disable-pip-version-check 'psycopg[binary]>=3.1,<4'
    fi
    if [ ! -d "$tools/node/node_modules/pg" ]; then
        say "preparing Node.js"
        npm install --silent --no-audit --no-fund --prefix "$tools/node" 'pg@^8'
    fi
    export ACTA_TEST_PYTHON=$tools/python/bin/python ACTA_TEST_NODE=$tools/node
}
