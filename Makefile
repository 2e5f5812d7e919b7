# Two commands matter: `make demo` and `make test`. Both install what they need into .venv and work from a bare machine
# with Python 3.11 or later and git.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
INSTALLED = $(VENV)/.installed
INSTALLED_DEV = $(VENV)/.installed-dev
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test soak fuzz lint bench eval dev clean

demo: $(INSTALLED)  ## sample fleet, from raw files to a page
	$(BIN)/shiftlog demo --out shiftlog-demo

test: $(INSTALLED_DEV)  ## layers and tests
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m pytest -n 2 --dist loadfile

soak: $(INSTALLED_DEV)  ## crashes, races, full disks and a thousand nights, at length
	SHIFTLOG_SOAK=1 $(BIN)/python -m pytest -n 2 tests/soak

fuzz: $(INSTALLED_DEV)  ## ten thousand files made wrong, through the door of the ingest; FUZZ="--seed 7 --only 1234" reads one again
	$(BIN)/python bench/fuzz.py $(FUZZ)

lint: $(INSTALLED_DEV)  ## style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(INSTALLED)  ## speed, memory and disk on this machine, as ratios within one run; BENCH="--large" adds ten million
	$(BIN)/python bench/bench.py $(BENCH)

eval: $(INSTALLED_DEV)  ## false and missed shifts, ranks of known causes, on real data beside the checkout; writes docs/evaluation.md
	$(BIN)/python bench/evaluate.py

dev: $(INSTALLED)  ## Dagster's UI on a filled instance
	$(BIN)/python -m pipelines.dev

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("shiftlog needs Python 3.11 or later" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	touch $@

$(INSTALLED_DEV): $(INSTALLED)
	$(PIP) --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) shiftlog-demo shiftlog-report
