# Everything a person or CI types. `make setup` runs first in each of them and costs nothing when
# there is nothing to install.

CARGO ?= cargo
target := $(or $(CARGO_TARGET_DIR),target)
maven := mvn --file java/pom.xml -Dsslsweep.native.folder=$(abspath $(target))/release \
	-Dsslsweep.dropin.folder=$(abspath $(target))/dropin-checked
scripts := ci/*.sh cli/tests/*.sh .ci/run

.PHONY: help setup demo dropin dropin-checked jar servers natives test bench bench-dropin lint

help:
	@echo 'make setup   install what is missing: Debian packages, rustfmt and clippy, the OpenSSL lines, Java 25'
	@echo 'make demo    the large-after-small regression on real libraries; report in report/'
	@echo 'make dropin  target/dropin/libtcnative-2.so, in place of tomcat-native'
	@echo 'make jar     java/sslsweep/target/sslsweep-VERSION.jar, with the native library inside'
	@echo 'make servers the Tomcats that `sslsweep regress --server` starts'
	@echo 'make test    all tests'
	@echo 'make bench   what hygiene costs on each library, held to its bounds, and the benchmarks'
	@echo 'make bench-dropin  our libtcnative-2.so beside the C library: CPU time of a Tomcat on each'
	@echo 'make lint    formatting, clippy, shellcheck, documentation'

setup:
	@ci/packages.sh
	@ci/rust.sh
	@ci/lines.sh
	@ci/java.sh

demo: setup
	$(CARGO) build --release --locked --package sslsweep-cli
	$(target)/release/sslsweep regress --out report

# What the jar and the tests of java/ carry.
natives: setup
	$(CARGO) build --release --locked --package sslsweep --package sslsweep-leaver

dropin: setup
	$(CARGO) build --release --locked --package sslsweep-tcnative
	install -D $(target)/release/libtcnative_2.so $(target)/dropin/libtcnative-2.so

# For tests: ends the process where a native leaves the error queue dirty.
dropin-checked: setup
	$(CARGO) build --release --locked --package sslsweep-tcnative --features queue-check --target-dir $(target)/queue-check
	install -D $(target)/queue-check/release/libtcnative_2.so $(target)/dropin-checked/libtcnative-2.so

jar: natives
	$(maven) --projects sslsweep -Dmaven.test.skip package

servers: natives
	$(maven) --projects tomcat-server-9,tomcat-server-10 --also-make -Dmaven.test.skip package

test: servers dropin-checked
	$(CARGO) test --workspace --all-features --locked
	$(maven) verify

bench: natives
	$(CARGO) build --release --locked --package sslsweep-cli
	$(target)/release/sslsweep cost --check
	$(CARGO) bench --workspace --all-features --locked
	$(maven) --projects benchmarks --also-make -Dmaven.test.skip package
	java --class-path "java/benchmarks/target/classes:$$(cat java/benchmarks/target/classpath)" \
		org.sslsweep.benchmarks.Check

# Writes target/bench/dropin.json.
bench-dropin: servers dropin
	$(CARGO) build --release --locked --package sslsweep-cli
	$(maven) --projects benchmarks --also-make -Dmaven.test.skip package
	java --class-path "java/benchmarks/target/classes:$$(cat java/benchmarks/target/classpath)" \
		org.sslsweep.benchmarks.Natives $(target)/dropin /usr/lib/x86_64-linux-gnu $(target)/bench/natives.json
	$(target)/release/sslsweep dropin-cost --dropin $(target)/dropin --natives $(target)/bench/natives.json \
		--out $(target)/bench/dropin.json --check

lint: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --all-features --locked -- -D warnings
	shellcheck $(scripts)
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --all-features --no-deps --locked
