# Everything a person or CI types. `make setup` runs first in each of them and costs nothing when
# there is nothing to install.

CARGO ?= cargo
target := $(or $(CARGO_TARGET_DIR),target)
scripts := ci/*.sh .ci/run

.PHONY: help setup demo test bench lint

help:
	@echo 'make setup   install what is missing: Debian packages, rustfmt and clippy, the OpenSSL lines'
	@echo 'make demo    the large-after-small regression on real libraries; report in report/'
	@echo 'make test    all tests'
	@echo 'make bench   what hygiene costs on each library, held to its bounds, and the benchmarks'
	@echo 'make lint    formatting, clippy, shellcheck, documentation'

setup:
	@ci/packages.sh
	@ci/rust.sh
	@ci/lines.sh

demo: setup
	$(CARGO) build --release --locked --package sslsweep-cli
	$(target)/release/sslsweep regress --out report

test: setup
	$(CARGO) test --workspace --all-features --locked

bench: setup
	$(CARGO) build --release --locked --package sslsweep-cli
	$(target)/release/sslsweep cost --check
	$(CARGO) bench --workspace --all-features --locked

lint: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --all-features --locked -- -D warnings
	shellcheck $(scripts)
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --all-features --no-deps --locked
