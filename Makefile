# make run     learn mountain car from nothing, print the learning curve, draw what was learned
# make test    lint, types, architecture, tests
# make bench   measure us and the peers, write benchmarks/results.json and benchmarks/README.md
# make torture damage runs, forge files, kill processes, fill disks (half an hour; see docs/reliability.md)
# make docs    the documentation site, out/docs/index.html; fails on a link that leads nowhere
# make audit   known vulnerabilities in what is installed
# make install .venv with everything

PYTHON ?= python3.11
BIN := .venv/bin

.PHONY: install run test checks tests bench docs audit torture

install: .venv/installed

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=24"
	$(BIN)/python -m pip install --quiet --editable ".[all]"
	touch $@

run: install
	rm -rf out/mountain-car
	mkdir -p out
	$(BIN)/optimist learn mountain-car --run out/mountain-car --plot out/mountain-car.png

# Side by side: types take a minute of one core where nothing is remembered of them.
test: install
	$(MAKE) --jobs 2 checks tests

checks: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Hundreds of processes are started: what Python has read once is kept, wherever it is told not to.
tests: install
	OPTIMIST_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder

bench: install
	$(BIN)/python -m benchmarks

# Everything it warns of fails it. Nothing is remembered: every run says all there is to say.
docs: install
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --fresh-env -c docs/site -d out/doctrees . out/docs
	@echo "out/docs/index.html"

torture: install
	$(BIN)/python -m tests.torture.damage
	$(BIN)/python -m tests.torture.hostile --cases 400 --seed 0
	$(BIN)/python -m tests.torture.writers
	$(BIN)/python -m tests.torture.crashes
	$(BIN)/python -m tests.torture.systems

# pip-audit has dependencies of its own, and stays out of the way. It fails where it cannot ask anybody.
audit: install
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/python -m pip install --quiet pip-audit
	.venv-audit/bin/pip-audit --strict --skip-editable \
		--path $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
