#!/usr/bin/env bash
# Installs the OpenSSL lines that sslsweep is tested on into .cache/lines/<name>/, and writes
# .cache/lines/lines.json, the list that the tests and the command read.
#
#   ci/lines.sh            all of them
#   ci/lines.sh 1.0.2 3.0  these
#
# Every download is held to the checksum written here. A line is built in a folder of its own and
# renamed into place once it has loaded and answered with its version, so an interrupted run leaves
# nothing half done; a line that is there already costs nothing. Programs needed: ci/packages.sh.
#
# SSLSWEEP_LINES_DIR puts the lines elsewhere; SSLSWEEP_JOBS sets the jobs of a build (all cores).
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly ALL=(1.0.2 1.1.1 3.0 hidden 3.6 4.0 aws-lc)
mkdir -p "${SSLSWEEP_LINES_DIR:-.cache/lines}"
lines=$(cd "${SSLSWEEP_LINES_DIR:-.cache/lines}" && pwd)
jobs=${SSLSWEEP_JOBS:-$(nproc)}
work=

say() { printf 'lines: %s\n' "$*"; }
die() {
    printf 'lines: %s\n' "$*" >&2
    exit 1
}

# quietly COMMAND...: runs it without output, which is shown if it fails.
quietly() {
    if ! "$@" >"$work/log" 2>&1; then
        tail -n 40 "$work/log" >&2
        die "failed: $*"
    fi
}

# wheel PACKAGE VERSION SHA256 PYTHON ABI PLATFORM: unpacks a PyPI wheel into $work/wheel.
wheel() {
    printf '%s==%s --hash=sha256:%s\n' "$1" "$2" "$3" >"$work/requirements.txt"
    quietly python3 -m pip download --disable-pip-version-check --require-hashes --no-deps \
        --only-binary=:all: --python-version "$4" --implementation cp --abi "$5" --platform "$6" \
        --requirement "$work/requirements.txt" --dest "$work/download"
    quietly unzip -q "$work/download/*.whl" -d "$work/wheel"
}

# crate NAME VERSION SHA256: unpacks the source of a crate into $work/NAME-VERSION.
# cargo fetches it for a manifest that is thrown away; nothing of the crate is compiled or run.
crate() {
    local archive
    archive=$(cached_crate "$1-$2")
    if [[ -z $archive ]]; then
        mkdir -p "$work/manifest"
        : >"$work/manifest/lib.rs"
        printf '[package]\nname = "fetch"\nedition = "2021"\n[lib]\npath = "lib.rs"\n[workspace]\n[dependencies]\n%s = { version = "=%s", default-features = false }\n' \
            "$1" "$2" >"$work/manifest/Cargo.toml"
        quietly cargo fetch --manifest-path "$work/manifest/Cargo.toml"
        archive=$(cached_crate "$1-$2")
    fi
    [[ -n $archive ]] || die "cargo fetched $1 $2, and yet it is not in ${CARGO_HOME:-$HOME/.cargo}/registry/cache"
    printf '%s  %s\n' "$3" "$archive" | sha256sum --check --status ||
        die "$archive does not have the checksum that ci/lines.sh pins; remove it and try again"
    tar -xzf "$archive" -C "$work"
}

cached_crate() {
    local file
    for file in "${CARGO_HOME:-$HOME/.cargo}"/registry/cache/*/"$1.crate"; do
        if [[ -f $file ]]; then
            printf '%s\n' "$file"
            return
        fi
    done
}

# install NAME ORIGIN BUILDER ARGUMENT...: runs BUILDER, which fills $work/out, unless the line is
# there and neither its builder nor what that is called with has changed since.
install() {
    local name=$1 origin=$2 started=$SECONDS pin
    shift 2
    pin="$origin; $*; $(declare -f "$1" | sha256sum)"
    if [[ -f $lines/$name/pin && $(<"$lines/$name/pin") == "$pin" ]]; then
        return
    fi
    say "installing $name ($origin)"
    work=$(mktemp -d "$lines/.work.XXXXXX")
    mkdir "$work/out"
    "$@"
    printf '%s\n' "$pin" >"$work/out/pin"
    rm -rf "${lines:?}/$name"
    mv "$work/out" "$lines/$name"
    rm -rf "$work"
    work=
    publish
    say "installed $name in $((SECONDS - started)) s"
}

# check_version LIBCRYPTO LIBSSL PATTERN: loads the pair, notes its version beside it.
check_version() {
    local version
    version=$(python3 ci/lines/check.py "$1" "$2") || die "$1 does not load as it should"
    # shellcheck disable=SC2053  # the right side is a pattern
    [[ $version == $3 ]] || die "$1 says it is '$version', expected '$3'"
    printf '%s\n' "$version" >"$work/out/version"
}

# The genuine libraries that a psycopg2-binary wheel brings, with the siblings they need.
from_psycopg2() {
    wheel psycopg2-binary "$1" "$2" 3.6 cp36m manylinux1_x86_64
    find "$work/wheel" -path '*libs/*' -name '*.so*' -exec mv -t "$work/out" {} +
    check_version "$work"/out/libcrypto-*.so.* "$work"/out/libssl-*.so.* "$3"
}

# A shared library with an OpenSSL inside that exports nothing of it, for the blind-spot tests.
# It needs nothing but libc, so any process can load it.
from_confluent_kafka() {
    wheel confluent-kafka "$1" "$2" 3.11 cp311 manylinux_2_28_x86_64
    mv "$work"/wheel/confluent_kafka.libs/librdkafka-*.so.1 "$work/out/"
    python3 -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1])' "$work"/out/librdkafka-*.so.1
    printf '%s\n' "$3" >"$work/out/version"
}

# OpenSSL, shared, from the crate that carries its source. The crate leaves out util/mkdef.pl, which
# writes the version scripts; ci/lines/mkdef.pl stands in for it.
from_openssl_src() {
    crate openssl-src "$1" "$2"
    local source=$work/openssl-src-$1/openssl
    cp ci/lines/mkdef.pl "$source/util/mkdef.pl"
    pushd "$source" >/dev/null
    quietly ./Configure linux-x86_64 shared no-docs no-module no-tests no-apps
    quietly env -u MAKEFLAGS -u MFLAGS make -j"$jobs" build_generated
    # Not build_libs: that compiles everything once more for the static libraries.
    quietly env -u MAKEFLAGS -u MFLAGS make -j"$jobs" libcrypto.so libssl.so
    popd >/dev/null
    cp "$source"/libcrypto.so.[0-9] "$source"/libssl.so.[0-9] "$work/out/"
    check_version "$work"/out/libcrypto.so.[0-9] "$work"/out/libssl.so.[0-9] "OpenSSL $3"
}

# AWS-LC, shared, from the crate that carries its source (with its own symbol names: the crate's
# build script would prefix them).
from_aws_lc_sys() {
    crate aws-lc-sys "$1" "$2"
    local build=$work/build
    quietly cmake -S "$work/aws-lc-sys-$1/aws-lc" -B "$build" -DCMAKE_BUILD_TYPE=Release \
        -DBUILD_SHARED_LIBS=1 -DBUILD_TESTING=OFF -DBUILD_TOOL=OFF -DDISABLE_GO=ON -DDISABLE_PERL=ON \
        -DCMAKE_SKIP_RPATH=ON
    quietly env -u MAKEFLAGS -u MFLAGS cmake --build "$build" --parallel "$jobs" --target crypto ssl
    cp "$build/crypto/libcrypto.so" "$build/ssl/libssl.so" "$work/out/"
    check_version "$work/out/libcrypto.so" "$work/out/libssl.so" "AWS-LC $3"
}

# libcrypto.so.3 or libssl.so.3 of the system: where Debian's package says, else the linker's cache.
system_library() {
    local path
    path=$({ dpkg -L libssl3 2>/dev/null || true; } | sed -n "\|/$1\$|{p;q}")
    if [[ ! -e $path ]]; then
        path=$(PATH=$PATH:/usr/sbin:/sbin ldconfig -p | sed -n "s|^\t$1 (.*x86-64.*) => ||p;T;q")
    fi
    [[ -e $path ]] || die "$1 is not on this machine: install Debian's libssl3 (ci/packages.sh)"
    printf '%s\n' "$path"
}

# The system's own library is used where it is: only its version is noted. The third argument, its
# date and size, is there to have it looked at again when an upgrade has replaced the file.
from_system() {
    check_version "$1" "$2" 'OpenSSL 3.0.*'
    printf '%s\n' "$1" >"$work/out/libcrypto"
    printf '%s\n' "$2" >"$work/out/libssl"
}

line() {
    case $1 in
    1.0.2)
        install 1.0.2 'PyPI psycopg2-binary 2.7.5' from_psycopg2 2.7.5 \
            a6d32c37f714c3f34158f3fa659f3a8f2658d5f53c4297d45579b9677cc4d852 'OpenSSL 1.0.2o *'
        ;;
    1.1.1)
        install 1.1.1 'PyPI psycopg2-binary 2.8.6' from_psycopg2 2.8.6 \
            d5227b229005a696cc67676e24c214740efd90b148de5733419ac9aaba3773da 'OpenSSL 1.1.1g *'
        ;;
    3.0)
        local libcrypto libssl
        libcrypto=$(system_library libcrypto.so.3)
        libssl=$(system_library libssl.so.3)
        install 3.0 'Debian libssl3' from_system "$libcrypto" "$libssl" "$(stat -Lc '%y %s' "$libcrypto")"
        ;;
    3.6)
        install 3.6 'crate openssl-src 300.6.1+3.6.3' from_openssl_src 300.6.1+3.6.3 \
            46eb8fb9fb3b61ce1c0f8a026c4c1a0714d3a9e138e7fbde78753ce2babc3846 '3.6.3 *'
        ;;
    4.0)
        install 4.0 'crate openssl-src 400.0.2+4.0.3' from_openssl_src 400.0.2+4.0.3 \
            d2093956673b8dbda85c87fa4fb78e70698ce6c5978a2837d1613f661d3bef76 '4.0.3 *'
        ;;
    aws-lc)
        install aws-lc 'crate aws-lc-sys 0.47.0' from_aws_lc_sys 0.47.0 \
            8bfbe32ac36b3c428696ce315464181bc4029d689fd58e3f2a4e58c252242f52 '*'
        ;;
    hidden)
        install hidden 'PyPI confluent-kafka 2.6.1' from_confluent_kafka 2.6.1 \
            15af5ae70c9376aba62462f20dbc846364a41f6ae4071baac36a3adb44ec29bb \
            'librdkafka of confluent-kafka 2.6.1, OpenSSL 3.0.15'
        ;;
    *) die "no line is called $1; there are: ${ALL[*]}" ;;
    esac
}

# A JSON string. Versions and paths have no control characters.
json() {
    local text=${1//\\/\\\\}
    printf '"%s"' "${text//\"/\\\"}"
}

# the_one FILE...: the only file that a pattern has matched.
the_one() {
    [[ $# -eq 1 && -e $1 ]] || die "expected one file, found: $*; remove its folder and try again"
    printf '%s\n' "$1"
}

entry() {
    local name=$1 dir=$lines/$1 version libcrypto libssl
    version=$(<"$dir/version")
    case $name in
    hidden)
        printf '{"name":"hidden","version":%s,"object":%s}' \
            "$(json "$version")" "$(json "$(the_one "$dir"/librdkafka-*)")"
        return
        ;;
    3.0)
        libcrypto=$(<"$dir/libcrypto")
        libssl=$(<"$dir/libssl")
        ;;
    *)
        libcrypto=$(the_one "$dir"/libcrypto[-.]*)
        libssl=$(the_one "$dir"/libssl[-.]*)
        ;;
    esac
    # "OpenSSL 1.0.2o  27 Mar 2018" is version 1.0.2o.
    version=${version#* }
    printf '{"name":%s,"version":%s,"libcrypto":%s,"libssl":%s}' \
        "$(json "$name")" "$(json "${version%% *}")" "$(json "$libcrypto")" "$(json "$libssl")"
}

# Lists what is installed, whichever lines this run was asked for.
manifest() {
    local name separator='['
    for name in 1.0.2 1.1.1 3.0 3.6 4.0 aws-lc hidden; do
        [[ -f $lines/$name/pin ]] || continue
        printf '%s\n  ' "$separator"
        entry "$name"
        separator=','
    done
    printf '\n]\n'
}

publish() {
    manifest >"$lines/.lines.json"
    mv "$lines/.lines.json" "$lines/lines.json"
}

[[ $(uname -sm) == 'Linux x86_64' ]] ||
    die "the genuine 1.0.2 and 1.1.1 exist for Linux on x86-64 only; this is $(uname -sm)"

exec 9>"$lines/.lock"
flock 9
rm -rf "$lines"/.work.*
trap '[[ -z $work ]] || rm -rf "$work"' EXIT

for name in "${@:-${ALL[@]}}"; do
    line "$name"
done

# Also when nothing was installed: the folder may have been moved or copied.
publish
