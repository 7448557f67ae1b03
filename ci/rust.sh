#!/usr/bin/env bash
# Says what is missing of Rust, and adds rustfmt and clippy where rustup can.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "${BASH_SOURCE[0]}")/.."

command -v cargo >/dev/null || {
    echo 'rust: cargo is not on the PATH: install a Rust toolchain first' >&2
    exit 1
}

wanted=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
found=$(rustc --version | cut -d ' ' -f 2)
if [[ $(printf '%s\n' "$wanted" "${found%%-*}" | sort -V | head -n 1) != "$wanted" ]]; then
    echo "rust: rustc $found is too old, $wanted is needed" >&2
    exit 1
fi

# component NAME CARGO_COMMAND: only `make lint` needs these, so a machine that cannot have them
# still builds, tests and shows the demo.
component() {
    if cargo "$2" --version >/dev/null 2>&1; then
        return
    fi
    echo "rust: adding $1"
    rustup component add "$1" >/dev/null 2>&1 ||
        echo "rust: $1 is missing and could not be added; make lint will fail until 'cargo $2' works" >&2
}
component rustfmt fmt
component clippy clippy
