# shellcheck shell=bash
# One MariaDB server for all test binaries, to throw away.

# The path of one of the server's programs.
mariadb_program() { PATH=$PATH:/usr/sbin:/usr/libexec:/usr/local/sbin command -v "$1"; }

has_mariadb() { mariadb_program mariadbd && mariadb_program mariadb-install-db; }

ensure_mariadb() { require "MariaDB server, version 10.6 or later" mariadb-server has_mariadb; }

# MariaDB refuses to run as root.
as_mysql() {
    if [ "$(id -u)" = 0 ]; then
        setpriv --reuid="$(id -u mysql 2>/dev/null || id -u nobody)" --clear-groups -- "$@"
    else
        "$@"
    fi
}

# Starts the server, in memory if there is room, and exports ACTA_TEST_MYSQL; `stop_mariadb` stops it.
start_mariadb() {
    local place=${TMPDIR:-/tmp} port attempt waited pid
    if [ "$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)" -gt 2000000 ] 2>/dev/null; then
        place=/dev/shm
    fi
    mariadb=$(mktemp -d "$place/acta-test-XXXXXX")
    chmod 755 "$mariadb"
    [ "$(id -u)" != 0 ] || chown "$(id -u mysql 2>/dev/null || id -u nobody)" "$mariadb"
    # Other servers that start just now have their own.
    TMPDIR=$mariadb as_mysql "$(mariadb_program mariadb-install-db)" --no-defaults --auth-root-authentication-method=normal --skip-test-db \
        --datadir="$mariadb/data" >"$mariadb/install.log" 2>&1
    watch_mariadb
    for attempt in 1 2 3 4 5; do
        port=$((20000 + RANDOM % 12000))
        # The pipe that is watched is not the server's to hold.
        TMPDIR=$mariadb as_mysql "$(mariadb_program mariadbd)" --no-defaults --datadir="$mariadb/data" --port=$port --bind-address=127.0.0.1 \
            --socket="$mariadb/socket" --pid-file="$mariadb/pid" --log-error="$mariadb/log.err" --skip-name-resolve \
            --performance-schema=OFF --innodb-buffer-pool-size=64M --innodb-flush-log-at-trx-commit=2 \
            --max-connections=300 --skip-log-bin </dev/null >/dev/null 2>&1 {watched_mariadb}>&- &
        pid=$!
        for waited in $(seq 600); do
            # Somebody may have that port; then the server ends, and it is tried with another.
            kill -0 "$pid" 2>/dev/null || break
            if [ -S "$mariadb/socket" ] && grep -q "ready for connections" "$mariadb/log.err" 2>/dev/null; then
                export ACTA_TEST_MYSQL=mysql://root@127.0.0.1:$port/mysql
                return
            fi
            sleep 0.1
        done
        echo "port $port, attempt $attempt: the server did not start" >&2
    done
    tail -n 20 "$mariadb/log.err" >&2
    exit 2
}

# Stops the server also if this shell is killed: a pipe that it holds is closed then. The server must not have inherited it.
watch_mariadb() {
    exec {watched_mariadb}> >(
        trap '' INT TERM HUP
        exec >/dev/null 2>&1
        cat
        stop_mariadb
    )
}

stop_mariadb() {
    local pid
    [ -n "${mariadb:-}" ] || return 0
    pid=$(cat "$mariadb/pid" 2>/dev/null || true)
    if [ -n "$pid" ]; then
        kill -KILL "$pid" 2>/dev/null || true
        while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
    fi
    rm -rf "$mariadb"
}
