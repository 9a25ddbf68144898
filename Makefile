# The commands of this repository. On a machine with Python 3.11+, make and git:
#
#   make demo       install, then a first run without a key or the internet
#   make test       install what the tests need, then lint, types and every test
#
#   make install    only install, into .venv            make check     lint and types
#   make bench      the measurements of benchmarks/     make docs      the generated pages of docs/reference
#   make shape      how large the house is, and how much of it an evaluate, a row, a turn, a page and a comparison walk through
#   make test-all   make test on each Python found      make lock      the locks of requirements/ (UPGRADE=1: newer)
#   make clean      remove what these made; runs in .cache are yours and stay
#
# What is installed is remembered in .make under a hash of the lock and of pyproject.toml: a second call does nothing.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := demo
# Without byte code every start of the command line would compile everything again.
unexport PYTHONDONTWRITEBYTECODE

VENV ?= .venv
BIN := $(VENV)/bin
# One more than there are cores: many tests wait for processes of theirs.
JOBS ?= $(shell echo $$(($$(nproc 2>/dev/null || echo 2) + 1)))
# The order of the tests; a failure is repeated with the seed that its header shows.
SEED ?= $(shell date +%s)
VERSIONS := 3.11 3.12 3.13

KEY := $(shell cat requirements/run.txt requirements/dev.txt pyproject.toml scripts/install.sh | sha256sum | cut -c 1-16)
STAMPS := .make/stamps/$(VENV)
RUN := $(STAMPS)/run-$(KEY)
DEV := $(STAMPS)/dev-$(KEY)

.PHONY: install demo test check bench docs shape test-all lock clean components

install: $(RUN)

demo: $(RUN)
	$(BIN)/themis demo

test: check components
	$(BIN)/python -m pytest -n $(JOBS) --shuffle=$(SEED)

check: $(DEV)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy -p themis

components: $(DEV)
	@scripts/components.sh $(VENV)

bench: $(DEV)
	@scripts/benchmarks.sh $(VENV)

docs: $(DEV)
	$(BIN)/python scripts/cli_reference.py
	$(BIN)/python scripts/completion_table.py
	$(BIN)/python scripts/fault_table.py
	$(BIN)/python scripts/lm_eval_table.py
	$(BIN)/python scripts/python_reference.py

shape: $(DEV)
	$(BIN)/python scripts/shape.py

test-all:
	@for version in $(VERSIONS); do \
		python=$$(scripts/find-python.sh $$version) || continue; \
		echo "== Python $$version: $$python"; \
		$(MAKE) --no-print-directory test VENV=.venv-$$version PYTHON="$$python" SEED=$(SEED); \
	done

lock:
	scripts/lock.sh

clean:
	rm -rf .venv .venv-3.* .make build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find benchmarks examples scripts tests themis -name __pycache__ -type d -prune -exec rm -rf {} +

# A new environment has nothing in it, whatever was installed into an older one of the name.
$(RUN) $(DEV): $(VENV)/pyvenv.cfg

$(VENV)/pyvenv.cfg:
	@rm -rf $(STAMPS)

$(RUN):
	scripts/install.sh $(VENV) requirements/run.txt
	@$(call remember,$(RUN))

# The larger lock has the same versions of what the smaller one has.
$(DEV):
	scripts/install.sh $(VENV) requirements/dev.txt
	@$(call remember,$(RUN) $(DEV))

# Stamps of another state of the locks are void: what they stand for has been installed over.
remember = mkdir -p $(STAMPS) && find $(STAMPS) -type f ! -name '*-$(KEY)' -delete && touch $(1)
