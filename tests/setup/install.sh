# shellcheck shell=bash
# Installs packages of Debian's or Ubuntu's, where that may be done; starts no service, and leaves alone what is there.

# Whether this process may install packages.
may_install() {
    command -v apt-get >/dev/null 2>&1 && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }
}

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }

install_quietly() {
    local refuser=/usr/sbin/policy-rc.d clusters=/etc/postgresql-common/createcluster.conf made=() status=0
    # Debian asks this program before it starts a service.
    if [ ! -e "$refuser" ]; then
        printf '#!/bin/sh\nexit 101\n' | as_root tee "$refuser" >/dev/null && as_root chmod 755 "$refuser"
        made+=("$refuser")
    fi
    # A server's package makes a cluster of its own unless it is told not to.
    if [ ! -e "$clusters" ]; then
        as_root mkdir -p "$(dirname "$clusters")"
        echo 'create_main_cluster = false' | as_root tee "$clusters" >/dev/null
    fi
    as_root apt-get update -qq || true
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        -o Dpkg::Options::=--force-confold "$@" >/dev/null || status=$?
    [ ${#made[@]} -eq 0 ] || as_root rm -f "${made[@]}"
    return "$status"
}

# Demands a program, or installs the packages that bring it: `require "<what>" "<packages>" <command that succeeds with it>`.
require() {
    local what=$1 packages=$2
    shift 2
    "$@" >/dev/null 2>&1 && return
    if may_install; then
        say "installing $what"
        # shellcheck disable=SC2086
        install_quietly $packages && "$@" >/dev/null 2>&1 && return
    fi
    echo "error: no $what; on Debian or Ubuntu: apt-get install $packages" >&2
    exit 2
}
