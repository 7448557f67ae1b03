#!/usr/bin/env bash
# Installs the Debian packages that building and testing need and this machine lacks.
#
# What is there in another way (a pip of pyenv, say) is left alone, and so are the versions of
# packages that are there. When nothing is missing nothing is asked of apt, and no root is needed.
set -euo pipefail
shopt -s inherit_errexit

die() {
    printf 'packages: %s\n' "$*" >&2
    exit 1
}

installed() { [[ $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null || true) == installed ]]; }

missing=()
# need PACKAGE COMMAND...: COMMAND says whether the machine has what PACKAGE brings.
need() {
    local package=$1
    shift
    if ! "$@" >/dev/null 2>&1 && ! installed "$package"; then
        missing+=("$package")
    fi
}

need ca-certificates test -e /etc/ssl/certs/ca-certificates.crt # pip
need gcc command -v gcc                      # linker of Rust programs; OpenSSL 3.6 and 4.0, AWS-LC
need libc6-dev test -e /usr/include/stdio.h  # the same
need g++ command -v g++                      # the libssl of AWS-LC
need make command -v make                    # OpenSSL 3.6 and 4.0
need cmake command -v cmake                  # AWS-LC
need perl perl -MFindBin -MIPC::Cmd -MPod::Usage -MGetopt::Long -e 1 # configures OpenSSL 3.6 and 4.0
need python3 /usr/bin/python3 -c 'import ssl' # ci/lines/check.py; tests: a program that uses the system's OpenSSL
need python3-pip python3 -c 'import pip'     # downloads the wheels that bring 1.0.2, 1.1.1 and the hidden one
need unzip command -v unzip                  # unpacks them
need libssl3 installed libssl3               # line 3.0
need libssl-dev test -e /usr/include/openssl/ssl.h # tests: the openssl crate, which links line 3.0; libcrypto.a
need pkg-config command -v pkg-config        # the same
need default-jdk-headless javac --release 17 -version # java/: Java 17 or later
need maven command -v mvn                    # java/
need libtcnative-1 installed libtcnative-1   # tests: the genuine tcnative
need libtomcat9-java installed libtomcat9-java # tests: Debian's Tomcat 9; has no service
need tomcat10-common installed tomcat10-common # tests: Debian's Tomcat 10; has no service (see ci/java.sh)
need strace command -v strace                # tests: a clean task makes no system call
need valgrind command -v valgrind            # tests: the drop-in without errors and leaks
need shellcheck command -v shellcheck        # make lint

((${#missing[@]})) || exit 0

command -v apt-get >/dev/null ||
    die "this is not a Debian system: install what these Debian packages bring, then try again: ${missing[*]}"
as_root=()
if ((EUID != 0)); then
    as_root=(sudo)
    command -v sudo >/dev/null ||
        die "packages are missing; as root, type: apt-get update && apt-get install ${missing[*]}"
fi

printf 'packages: installing %s\n' "${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@" \
        >"$log" 2>&1 || {
        tail -n 20 "$log" >&2
        die "apt-get $* failed"
    }
}
apt update
apt install --yes --no-install-recommends "${missing[@]}"
