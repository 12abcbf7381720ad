# Each target installs missing tools if it may, asks nothing, and can be run again.

.DEFAULT_GOAL := help
.PHONY: help run web install test lint fmt contract bench soak conformance

# rustup installs cargo here; a new shell may not have it on its PATH yet.
export PATH := $(PATH):$(HOME)/.cargo/bin

# Where `cargo build --profile source` puts programs.
BUILT := $(or $(CARGO_TARGET_DIR),target)/source

# Where `make install` puts programs: below DESTDIR and PREFIX if one is set, else where `cargo install` does. INSTALL_FLAGS=--debug
# builds faster.
PREFIX ?= $(if $(DESTDIR),/usr/local)
ROOT := $(if $(PREFIX),$(DESTDIR)$(PREFIX),$(or $(CARGO_INSTALL_ROOT),$(CARGO_HOME),$(HOME)/.cargo))

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST)

run: ## build agtmux and list the agents of this machine; offers a demo if no tmux server runs
	@scripts/ensure-tools tmux cc cargo
	cargo build --profile source --locked --package agtmux
	$(BUILT)/agtmux welcome

web: ## build the web dashboard into web/dist; needs node 20 or newer. The next build of agtmux contains it
	@scripts/web build

install: ## install agtmux and its other names (agtmuxd, pi-tmux-task-run, pi-tmux-session-name); PREFIX and DESTDIR change where
	@scripts/ensure-tools cc cargo
	@scripts/web build || echo "make install: agtmux gets the plain status page instead of the dashboard" >&2
	cargo install --locked --path crates/agtmux --root "$(ROOT)" $(if $(PREFIX),--no-track --force) $(INSTALL_FLAGS)
	@for name in agtmuxd pi-tmux-task-run pi-tmux-session-name; do ln -sf agtmux "$(ROOT)/bin/$$name"; done

test: lint ## lint, then run every test
	@scripts/ensure-tools tmux browser fuzzer sshd shells typescript dbus web
	scripts/test

lint: ## check formatting, clippy, and the licences and sources of dependencies
	@scripts/ensure-tools cc cargo rustfmt clippy cargo-deny web
	scripts/lint

fmt: ## format the code
	@scripts/ensure-tools cargo rustfmt
	cargo fmt --all

contract: ## regenerate the OpenAPI document and the JSON schemas after a change of the wire types
	@scripts/ensure-tools cc cargo
	AGTMUX_WRITE_CONTRACT=1 cargo test --locked --package agtmux-api --package agtmux-daemon --test it

bench: ## run the benchmarks against their baselines and write docs/benchmarks*.md
	@scripts/ensure-tools tmux sshd cc cargo
	cargo bench --locked --package agtmux --bench all

soak: ## run the long forms of the tests; takes hours
	@scripts/ensure-tools tmux browser sshd shells cc cargo fuzzer typescript dbus web
	AGTMUX_SOAK=1 scripts/test --release

conformance: ## test the real agents in every scenario and write docs/conformance.md; AGENTS=latest or AGENTS=claude@VERSION
	@scripts/ensure-tools tmux cc cargo
	scripts/conformance $(if $(filter latest,$(AGENTS)),--latest,$(if $(AGENTS),--agents $(AGENTS),))
