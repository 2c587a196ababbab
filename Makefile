# From a fresh clone, every target needs only make and Python 3.11 or newer. The virtual
# environment is made on first use, and again when pyproject.toml changes.

ADDR ?= 127.0.0.1:6754
DATA ?= data
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

.DEFAULT_GOAL := help
.PHONY: help serve test check format bench fuzz docs clean

help:
	@echo 'make serve    run a broker on $(ADDR) with its database in $(DATA)/'
	@echo 'make test     run the tests'
	@echo 'make check    formatting, lint, types, import rules'
	@echo 'make format   let ruff format and fix what it can'
	@echo 'make bench    run the benchmarks'
	@echo 'make fuzz     throw a million mutated filters at the filter language'
	@echo 'make docs     build the documentation into site/'

serve: $(READY)
	@mkdir -p $(DATA)
	@echo 'another address: make serve ADDR=127.0.0.1:6755'
	@MQLITE_DB=file:$(DATA)/mq.db exec $(BIN)/mqlite serve --addr $(ADDR)

test: $(READY)
	-@sh tools/get_prometheus.sh
	$(BIN)/pytest -n 2 -q

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY)
	$(BIN)/python -m bench

fuzz: $(READY)
	$(BIN)/python tests/expr/fuzz.py --inputs 1000000

docs: $(VENV)/docs
	$(BIN)/python tools/check_docs.py
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --fresh-env docs site
	@echo 'site/index.html'

clean:
	rm -rf $(VENV) site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

$(READY): pyproject.toml tools/find_python.sh
	python=$$(sh tools/find_python.sh) && "$$python" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[broker,client,mcp]' --group dev
	@touch $@

$(VENV)/docs: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group docs
	@touch $@
