# Two commands for everyone: `make demo` and `make test`. Each makes its own environment once and keeps it.
PYTHON ?= python3
USER_ENV := .venv
DEV_ENV := .venv-dev
BIN := $(DEV_ENV)/bin
# Tests run on every core; PYTEST_ARGS narrows or widens a run, for example PYTEST_ARGS="-x tests/families".
PYTEST_ARGS ?=
WORKERS ?= $(shell nproc 2>/dev/null || echo 2)

.PHONY: demo test slow check format docs bench clean

demo: $(USER_ENV)/.installed
	$(USER_ENV)/bin/cumulant demo --output demo-output

test: $(DEV_ENV)/.installed
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

slow: $(DEV_ENV)/.installed
	$(BIN)/python -m pytest -m slow $(PYTEST_ARGS)

check: $(DEV_ENV)/.installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

format: $(DEV_ENV)/.installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(DEV_ENV)/.installed
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

bench: $(DEV_ENV)/.peers
	$(BIN)/python -m benchmarks $(BENCHMARKS)

$(USER_ENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(USER_ENV)
	$(USER_ENV)/bin/python -m pip install --quiet --disable-pip-version-check -e ".[plot]"
	touch $@

$(DEV_ENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(DEV_ENV)
	$(DEV_ENV)/bin/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $@

$(DEV_ENV)/.peers: $(DEV_ENV)/.installed
	$(DEV_ENV)/bin/python -m pip install --quiet --disable-pip-version-check -e ".[bench]"
	touch $@

clean:
	rm -rf $(USER_ENV) $(DEV_ENV) docs/_build demo-output reproduced bench-output
