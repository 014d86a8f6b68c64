# Two commands do all the set-up: make run, make test.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO ?= palace-home

.PHONY: run test check slow clean

$(VENV)/.ready: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

## Install, ingest the examples, show receipt, search and trends.
run: $(VENV)/.ready
	$(BIN)/palace --home $(DEMO) ingest examples/exports
	$(BIN)/palace --home $(DEMO) search "why did the deployment break" --limit 3
	$(BIN)/palace --home $(DEMO) search "数据库怎么选" --limit 3
	$(BIN)/palace --home $(DEMO) stats

## The tests that every change has to pass.
test: $(VENV)/.ready
	$(BIN)/python -m pytest

## Lint, types, import directions, definitions, then the tests.
check: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	DAGSTER_HOME= $(BIN)/dg check defs
	$(MAKE) --no-print-directory test

## What takes minutes: fuzzing, kills, large inputs.
slow: $(VENV)/.ready
	$(BIN)/python -m pytest -m slow

clean:
	rm -rf $(VENV) $(DEMO) .pytest_cache .ruff_cache .hypothesis .import_linter_cache
