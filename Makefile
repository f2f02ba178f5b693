# Korak. `make` alone lists what there is.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# The first Python on the path that is new enough; `make setup PYTHON=...` names another.
PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11 python; do \
	"$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$name" && break; done)

# More flags for the command behind a target: `make test ARGS="tests/unit -x"`.
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup run test check bench lock

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## Make .venv and install what the lock names (done only when the lock has changed)

# What the shop's workflow needs: examples/shop/README.md says what each is.
SHOP := KORAK_WEBHOOK__ALLOW=127.0.0.1:8090 KORAK_SECRETS__ENVIRONMENT=SHOP_ SHOP_PAYMENT_KEY=test-key PYTHONPATH=examples

# Modules with chains, beside the shop's graph.
CHAINS := pipeline.report,agents.research,agents.review,agents.publication

run: $(STAMP) ## Run Korak with the examples on this machine; needs nothing but Python
	$(SHOP) $(BIN)/korak dev --publish examples --steps shop.steps --with shop.provider --chains $(CHAINS) $(ARGS)

test: $(STAMP) ## Run all tests, on the servers that are there or on an embedded Postgres
	$(BIN)/python -m pytest $(ARGS)

check: $(STAMP) ## Check format, lint, types and the arrows between modules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pyright --verifytypes korak --ignoreexternal
	$(BIN)/lint-imports --no-logo

bench: $(STAMP) ## Measure steps a second, CPU and latency (docs/performance.md)
	$(BIN)/python -m bench.workload $(ARGS)

lock: $(STAMP) ## Write requirements.lock anew from pyproject.toml
	$(BIN)/python -m pip install --quiet 'uv>=0.9'
	$(BIN)/uv pip compile pyproject.toml --quiet --universal --generate-hashes --no-annotate \
		--extra dev --group build --group test --group lint \
		--custom-compile-command 'make lock' --no-emit-index-url --no-emit-find-links \
		--output-file requirements.lock $(ARGS)

$(STAMP): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Korak needs Python 3.11 or newer on the path, or make PYTHON=/path/to/python3"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $(STAMP)
