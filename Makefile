# Everything here works from a bare clone with only make and a python3 of 3.11 or later.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# What the environment's JAX is pinned to; empty for the newest that the interpreter takes.
JAX ?=
# What is installed beside the package for the checks; with tpu, tests of targets have a compiler for TPUs.
EXTRAS ?= dev,pictures
SAMPLE ?= fsdp_tp:grad
# What is mutated, the tests that are to catch it, and how many mutants.
PLACES ?= inspector parsers
TESTS ?= tests
COUNT ?= 200

WITH_NEWEST := python=$$(tools/newest-python) && $(MAKE) VENV=.venv-newest PYTHON="$$python" EXTRAS=dev

.PHONY: demo check lint types test approve newest thorough compat faults mutate bench grammars schema rules picture clean

demo: $(VENV)/.installed
	$(BIN)/shardscope run $(SAMPLE)

check: lint types test

lint: $(VENV)/.checks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# mypy does not follow setuptools' import hooks: this tree shows it the package as a wheel lays it out.
types: $(VENV)/.checks
	rm -rf build/types
	mkdir -p build/types/shardscope
	ln -s $(CURDIR)/inspector $(CURDIR)/parsers $(CURDIR)/samples $(CURDIR)/tui $(CURDIR)/shardscope/* build/types/shardscope
	$(BIN)/python -m mypy

test: $(VENV)/.checks
	$(BIN)/python -m pytest -q -n 2 --dist loadgroup $(SELECTED)

# The reports of kept captures and the pictures of the screen, as they are: look at what changes before you commit it.
approve: $(VENV)/.checks
	THOROUGH=1 $(BIN)/python -m pytest -q tests/command/test_approved.py tests/inspector/test_kept_links.py tests/inspector/test_complete_reports.py \
	  tests/trace_errors/test_recorded.py tests/tui/test_columns.py tests/tui/test_looks.py --snapshot-update

# The suite once more, with the newest of all dependencies, where the machine has an interpreter for it; but for tests that
# no JAX changes, and those that try again what others try of it.
newest:
	@$(WITH_NEWEST) test SELECTED='-m "not once"' \
	  || { test $$? -eq 3 && echo "no Python >= 3.12 here: skipped"; }

# The suite with all cases of its sweeps, of which `make check` tries a sample: in about half an hour.
thorough:
	THOROUGH=1 $(MAKE) test

# The suite with the oldest of all dependencies, and the oldest Python, that are supported.
compat:
	$(MAKE) test VENV=.venv-compat PYTHON=python3.11 EXTRAS=dev \
	  JAX="jax==0.7.1 jaxlib==0.7.1 lark==1.2.1 msgspec==0.19.0 rich==14.2.0 textual==8.2.5"

# Calls of the system that fail one by one, and signals, in every command: a table, in about an hour.
faults: $(VENV)/.checks
	$(BIN)/python -m tools.faults

# Small faults in the product that its tests must catch: make mutate PLACES=inspector/check TESTS=tests/inspector/test_check.py
# It needs Python 3.12, for `sys.monitoring`, and the right to mount, for a namespace in which mutants do no harm.
mutate:
	@$(WITH_NEWEST) .venv-newest/.checks
	nice -n 15 .venv-newest/bin/python -m tools.mutate $(PLACES) --tests $(TESTS) --count $(COUNT)

bench: $(VENV)/.checks
	for script in benchmarks/*.py; do $(BIN)/python $$script || exit 1; done

# The parsers' tables, from the grammars.
grammars: $(VENV)/.checks
	$(BIN)/python tools/grammars.py

# The JSON Schemas of `--format json`, from the types that write it.
schema: $(VENV)/.checks
	$(BIN)/python -c "import json; from shardscope.inspector.render.json import json_schema; print(json.dumps(json_schema(), indent=2))" > docs/report.schema.json
	$(BIN)/python -c "import json; from shardscope.inspector.render.json.diff import diff_json_schema; print(json.dumps(diff_json_schema(), indent=2))" > docs/diff.schema.json
	$(BIN)/python -c "import json; from shardscope.inspector.render.json.diff import check_json_schema; print(json.dumps(check_json_schema(), indent=2))" > docs/check.schema.json
	$(BIN)/python -c "import json; from shardscope.inspector.render.json.trace import trace_json_schema; print(json.dumps(trace_json_schema(), indent=2))" > docs/trace.schema.json
	$(BIN)/python -c "import json; from shardscope.inspector.render.json.trace import ranks_json_schema; print(json.dumps(ranks_json_schema(), indent=2))" > docs/ranks.schema.json
	$(BIN)/python -c "import json; from shardscope.inspector.render.json.suggestions import suggestions_json_schema; print(json.dumps(suggestions_json_schema(), indent=2))" > docs/suggestions.schema.json
	$(BIN)/python -c "import json; from shardscope.inspector.render.json.links import links_json_schema; print(json.dumps(links_json_schema(), indent=2))" > docs/links.schema.json

# The page of the rules, from their own words.
rules: $(VENV)/.checks
	$(BIN)/shardscope rules --markdown > docs/rules.md

# The picture in the README.
picture: $(VENV)/.checks
	$(BIN)/python tools/picture.py docs/screen.svg

# The environments: made once, remade when pyproject.toml changes.
define install
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=24"
	$(BIN)/python -m pip install --quiet --editable
endef

$(VENV)/.installed: pyproject.toml
	$(install) ".[jax]" $(JAX)
	touch $@

# Most modules of what is installed here are never imported: those that are, are compiled then.
$(VENV)/.checks: pyproject.toml
	$(install) ".[$(EXTRAS)]" --no-compile $(JAX)
	touch $(VENV)/.installed $@

clean:
	rm -rf build dist .venv .venv-newest .venv-compat *.egg-info
