# shellcheck shell=bash
# One PostgreSQL server for all test binaries, to throw away.

oldest=14

# The folder of the newest server's programs that will do.
postgres_binaries() {
    local folder version
    for folder in $(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -t/ -k5 -n -r) $(tr ':' ' ' <<<"$PATH"); do
        [ -x "$folder/initdb" ] && [ -x "$folder/postgres" ] || continue
        version=$("$folder/postgres" --version 2>/dev/null | grep -o '[0-9]*' | head -n 1)
        [ "${version:-0}" -lt "$oldest" ] || { echo "$folder" && return; }
    done
    return 1
}

ensure_postgres() { require "PostgreSQL server, version $oldest or later" postgresql postgres_binaries; }

# PgBouncer, if it can be had; one test goes through it.
ensure_pgbouncer() {
    local found
    if ! PATH=$PATH:/usr/sbin command -v pgbouncer >/dev/null && may_install; then
        say "installing PgBouncer"
        install_quietly pgbouncer || true
    fi
    if found=$(PATH=$PATH:/usr/sbin command -v pgbouncer); then
        export ACTA_TEST_PGBOUNCER=$found
    else
        say "skipped: the ledger through PgBouncer; on Debian or Ubuntu: apt-get install pgbouncer"
    fi
}

# PostgreSQL refuses to run as root.
as_postgres() {
    if [ "$(id -u)" = 0 ]; then
        setpriv --reuid="$(id -u postgres 2>/dev/null || id -u nobody)" --clear-groups -- "$@"
    else
        "$@"
    fi
}

# Starts the server, in memory if there is room, and exports ACTA_TEST_POSTGRES; `stop_postgres` stops it.
start_postgres() {
    local binaries place=${TMPDIR:-/tmp} port attempt
    binaries=$(postgres_binaries)
    if [ "$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)" -gt 2000000 ] 2>/dev/null; then
        place=/dev/shm
    fi
    server=$(mktemp -d "$place/acta-test-XXXXXX")
    chmod 755 "$server"
    [ "$(id -u)" != 0 ] || chown "$(id -u postgres 2>/dev/null || id -u nobody)" "$server"
    as_postgres "$binaries/initdb" --auth=trust --username=postgres --encoding=UTF8 --locale=C --no-sync \
        -D "$server/data" >"$server/initdb.log"
    for attempt in 1 2 3 4 5; do
        port=$((20000 + RANDOM % 12000))
        # Somebody may have that port; then it is tried with another.
        if as_postgres "$binaries/pg_ctl" -D "$server/data" -l "$server/data/log" -w -s start -o "-p $port \
            -c listen_addresses=127.0.0.1 -c unix_socket_directories=$server -c max_connections=300" </dev/null; then
            export ACTA_TEST_POSTGRES=postgres://postgres@127.0.0.1:$port/postgres
            watch_postgres
            return
        fi
        echo "port $port, attempt $attempt: the server did not start" >&2
    done
    tail -n 20 "$server/data/log" >&2
    exit 2
}

# Stops the server also if this shell is killed: a pipe that it holds is closed then. The server must not have inherited it.
watch_postgres() {
    exec {watched}> >(
        trap '' INT TERM HUP
        exec >/dev/null 2>&1
        cat
        stop_postgres
    )
}

stop_postgres() {
    local pid
    [ -n "${server:-}" ] || return 0
    pid=$(head -n 1 "$server/data/postmaster.pid" 2>/dev/null || true)
    if [ -n "$pid" ]; then
        kill -QUIT "$pid" 2>/dev/null || true
        while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
    fi
    rm -rf "$server"
}
