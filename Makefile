# make run     plan mountain car with the true dynamics, print the result, draw the picture
# make test    lint, types, architecture, tests
# make bench   measure us and the peers, write benchmarks/results.json and benchmarks/README.md
# make install .venv with everything

PYTHON ?= python3.11
BIN := .venv/bin

.PHONY: install run test bench

install: .venv/installed

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=24"
	$(BIN)/python -m pip install --quiet --editable ".[all]"
	touch $@

run: install
	mkdir -p out
	$(BIN)/optimist plan mountain-car --plot out/mountain-car.png

test: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n 2

bench: install
	$(BIN)/python -m benchmarks
