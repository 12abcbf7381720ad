# Each target installs what it lacks where it is allowed to, asks nothing, and can be run again.

.DEFAULT_GOAL := help
.PHONY: help run install test lint fmt contract bench soak conformance

# Where rustup puts cargo, for shells that have not read its environment yet.
export PATH := $(PATH):$(HOME)/.cargo/bin

RELEASE := $(or $(CARGO_TARGET_DIR),target)/release

# Where `make install` puts programs: below DESTDIR and PREFIX where one is given, else where `cargo install` does. INSTALL_FLAGS=--debug
# takes less time.
PREFIX ?= $(if $(DESTDIR),/usr/local)
ROOT := $(if $(PREFIX),$(DESTDIR)$(PREFIX),$(or $(CARGO_INSTALL_ROOT),$(CARGO_HOME),$(HOME)/.cargo))

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST)

run: ## build agtmux and show the agents of this machine, or a demo where no tmux server runs
	@scripts/ensure-tools tmux cc cargo
	cargo build --release --locked --package agtmux
	$(RELEASE)/agtmux welcome

install: ## put agtmux, agtmuxd and the helpers of Pi's package where cargo puts programs, or below PREFIX and DESTDIR
	@scripts/ensure-tools cc cargo
	cargo install --locked --path crates/agtmux --root "$(ROOT)" $(if $(PREFIX),--no-track --force) $(INSTALL_FLAGS)
	@for name in pi-tmux-task-run pi-tmux-session-name; do ln -sf agtmux "$(ROOT)/bin/$$name"; done

test: lint ## lint, then run every test; fails if anything does
	@scripts/ensure-tools tmux browser fuzzer sshd shells
	scripts/test

lint: ## check formatting, clippy without warnings, licences and sources of dependencies
	@scripts/ensure-tools cc cargo rustfmt clippy cargo-deny
	scripts/lint

fmt: ## format the code
	@scripts/ensure-tools cargo rustfmt
	cargo fmt --all

contract: ## write the committed OpenAPI document and JSON schemas anew, after a change of the wire types
	@scripts/ensure-tools cc cargo
	AGTMUX_WRITE_CONTRACT=1 cargo test --locked --package agtmux-api --test schemas --package agtmux-daemon --test contract

bench: ## measure agtmux beside tmux itself, a naive poller and a plain store, and write docs/benchmarks*.md
	@scripts/ensure-tools tmux sshd cc cargo
	cargo bench --locked --package agtmux --bench spine
	cargo bench --locked --package agtmux --bench load
	cargo bench --locked --package agtmux --bench agents
	cargo bench --locked --package agtmux --bench send
	cargo bench --locked --package agtmux --bench bridge
	cargo bench --locked --package agtmux --bench tasks
	cargo bench --locked --package agtmux --bench ssh

soak: ## run the tests in their long forms, for hours
	@scripts/ensure-tools tmux sshd shells cc cargo fuzzer
	AGTMUX_SOAK=1 scripts/test --release

conformance: ## lead the real agents through every scene and write docs/conformance.md; AGENTS=latest takes the newest, AGENTS=claude@VERSION that one
	@scripts/ensure-tools tmux cc cargo
	scripts/conformance $(if $(filter latest,$(AGENTS)),--latest,$(if $(AGENTS),--agents $(AGENTS),))
