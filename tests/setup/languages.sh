# shellcheck shell=bash
# What the examples of docs/POSTGRES.md and docs/OUTBOX.md need: psycopg for Python, pg for Node.js; kept under the target folder.

has_node() { npm --version && node -e 'process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)'; }

ensure_languages() {
    local tools=${CARGO_TARGET_DIR:-target}/tools
    mkdir -p "$tools/node"
    tools=$(cd "$tools" && pwd)
    if ! "$tools/python/bin/python" -c 'import psycopg' 2>/dev/null; then
        require "Python, version 3.9 or later" python3-venv \
            python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 9))'
        say "preparing Python"
        # Anew, should an older one have lost its Python.
        python3 -m venv --clear "$tools/python"
        "$tools/python/bin/pip" install --quiet --disable-pip-version-check 'psycopg[binary]>=3.1,<4'
    fi
    require "Node.js, version 18 or later, with npm" "nodejs npm" has_node
    if [ ! -d "$tools/node/node_modules/pg" ]; then
        say "preparing Node.js"
        npm install --silent --no-audit --no-fund --prefix "$tools/node" 'pg@^8'
    fi
    export ACTA_TEST_PYTHON=$tools/python/bin/python ACTA_TEST_NODE=$tools/node
}
