# A fresh machine needs Python 3.11 or newer and make. Everything else is set up below, in .venv and .venv-vllm.
PYTHON ?= python3
BIN := .venv/bin
VLLM := .venv-vllm/bin/python
# Extra arguments for one run: make test ARGS="-k hermes -x"
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo test serve test-vllm load lint types bench suite bench-vllm catalogue picture browser clean

help:  ## what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 14

demo: $(BIN)/.demo  ## real model output, streamed through the parser in colour (no network at run time)
	@$(BIN)/respzoo demo $(ARGS)

test: $(BIN)/.test  ## all tests but those of the vLLM adapter and of grammars
	$(BIN)/python -m pytest --ignore=tests/vllm --ignore=tests/grammars -n auto --dist worksteal $(ARGS)

serve: .venv-vllm  ## real vLLM on this CPU with our flags, a tiny checkpoint, one streamed chat
	$(VLLM) tools/vllm_cpu/serve.py $(ARGS)

test-vllm: .venv-vllm  ## the vLLM adapter: live servers, other releases' Python files; grammars in xgrammar
	$(VLLM) -m pytest tests/vllm tests/grammars -n 2 --dist loadgroup $(ARGS)

load: .venv-vllm  ## 64 clients on a live vLLM for five minutes: no error, no wrong byte, no growing memory
	$(VLLM) tools/vllm_cpu/load.py $(ARGS)

lint: $(BIN)/.dev  ## ruff: lint and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(BIN)/.dev  ## pyright, strict
	$(BIN)/pyright --pythonpath $(BIN)/python

bench: $(BIN)/.dev  ## speed beside the reference, and of the start; writes the README's tables and plot
	$(BIN)/python tools/bench/events.py --write README.md $(ARGS)
	$(BIN)/python tools/bench/start.py --write README.md

suite: $(BIN)/.test  ## canitoolcall's fixtures through the parser; writes the README's table
	$(BIN)/python tools/suite.py --write README.md $(ARGS)

bench-vllm: .venv-vllm  ## cost of a streamed token in vLLM beside its stock parsers; writes the README's table and plot
	$(VLLM) tools/bench/vllm_delta.py --write README.md $(ARGS)

catalogue: $(BIN)/.demo  ## rewrite the README's table of families
	$(BIN)/python tools/catalogue.py

picture: $(BIN)/.demo browser  ## the README's picture of respzoo explain
	$(BIN)/python tools/explain_shot.py

# A browser that is there already is taken, whatever it is called (tools/browser.py).
browser:  ## Chromium, in which a test opens explain's page (installs Debian's, as root)
	@$(PYTHON) tools/browser.py || { apt-get update -q && apt-get install -y -q --no-install-recommends chromium; }

clean:  ## forget the environments and caches
	rm -rf .venv .venv-vllm .cache .pytest_cache .ruff_cache .hypothesis

# One environment, three amounts of it; each stamp is redone when pyproject.toml changes.
$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "respzoo needs Python 3.11 or newer, this is " + sys.version.split()[0] + ": make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv .venv

$(BIN)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(BIN)/.test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[test]"
	@touch $@ $(BIN)/.demo

$(BIN)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@ $(BIN)/.test $(BIN)/.demo

# The script keeps its own stamp, and returns at once when there is nothing to do.
.PHONY: .venv-vllm
.venv-vllm:
	$(PYTHON) tools/vllm_cpu/setup.py .venv-vllm
