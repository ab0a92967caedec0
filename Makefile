# Targets a person uses: demo, test, test-spark, test-lowest, thorough, fuzz, quick, lint, format, docs, bench, clean. Each sets up .venv first (once, and again when pyproject.toml
# changes), so a fresh machine needs only make and a python3 of at least 3.11.

PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
WORKERS ?= 2
PYTEST  := $(BIN)/python -m pytest
# Each process starts with a run of neighbouring tests of its own, and takes from the others when it has none left.
SPREAD  := -n $(WORKERS) --dist worksteal
# However long a test takes.
AT_LEISURE := -o faulthandler_timeout=0

# Tests whose kernels are interpreted as well: all that is between rows and answers. What comes to the same kernels by another way (most
# statements of SQL, files, commands) is compiled only.
INTERPRETED := $(addprefix tests/,aggregates engine join maintain mixed paths recursion souffle_semantics storage streams threads trace triggers types \
	plan/test_witnesses.py sql/test_random.py sql/test_windows.py durable/test_histories.py test_api.py)
# Tests that lead kernels to the ends of arrays: pages, joins, traces, rounds, scans and folds, threads.
BOUNDS := $(addprefix tests/,storage triggers streams join trace recursion aggregates paths threads mixed engine/test_programs.py engine/test_scans.py \
	engine/test_stored_scans.py engine/test_delta.py engine/test_transactions.py engine/test_undefined.py engine/test_small_commits.py)
# Of these folders, what is the same in all three modes: what Python decides, failures injected into it, counts of operations, formulae,
# messages, what is read from files.
COMPILED_ONLY := $(wildcard tests/*/test_*failures.py) $(addprefix tests/,$(addsuffix .py,recursion/test_explained recursion/test_key_orders recursion/test_stops \
	trace/test_promise triggers/test_calculus triggers/test_computable triggers/test_m3f triggers/test_normalise engine/test_one_by_one engine/test_term_sets \
	$(addprefix streams/test_,arguments attached drawing messages names nexmark sources text_rows windows_arguments windows_cost work) \
	$(addprefix types/test_,feeds_and_parameters round_trip surfaces) $(addprefix threads/test_,forks surface)))

# What reads rows of others, or prints and parses by what others wrote.
LOWEST := $(addprefix tests/,io types results values language test_api.py streams/test_sources.py sql/test_syntax_errors.py sql/test_tables.py \
	$(addprefix cli/test_,check_explain.py completion.py query.py refusals.py))

.PHONY: demo test test-jit test-nojit test-bounds test-lowest test-spark test-spark-slow thorough fuzz quick lint format types docs bench bench-micro report wheel clean
.DEFAULT_GOAL := test

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "lftj needs Python 3.11 or newer; run: make PYTHON=/path/to/python3" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

# One stamp per set of extras: `make demo` installs only what a user gets.
$(VENV)/.core: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e .
	@touch $@

$(VENV)/.bench: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[bench]'
	@touch $@ $(VENV)/.core

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[dev]'
	@touch $@ $(VENV)/.core $(VENV)/.bench

demo: $(VENV)/.core
	@$(BIN)/lftj demo

# Spark waits as long as it computes, so the other modes run meanwhile; what it says is shown when all have ended.
test: test-jit
	@said=$$(mktemp); $(MAKE) --no-print-directory test-spark > "$$said" 2>&1 & spark=$$!; \
	$(MAKE) --no-print-directory test-nojit && $(MAKE) --no-print-directory test-bounds; code=$$?; \
	wait $$spark || code=$$?; cat "$$said"; rm -f "$$said"; exit $$code

# Kernels are kept in .pytest_cache/lftj, by the hash of their sources and the mode: what one of these compiles the next takes from there.
test-jit: $(VENV)/.dev
	@echo "== suite, compiled ==" && $(PYTEST) $(SPREAD) -m "not spark"

test-nojit: $(VENV)/.dev
	@echo "== kernels interpreted (NUMBA_DISABLE_JIT=1), tiny inputs ==" && \
	NUMBA_DISABLE_JIT=1 $(PYTEST) $(SPREAD) -m "not jit_only and not spark" $(INTERPRETED) $(addprefix --ignore=,$(COMPILED_ONLY))

test-bounds: $(VENV)/.dev
	@echo "== kernels bounds-checked (NUMBA_BOUNDSCHECK=1) ==" && \
	NUMBA_BOUNDSCHECK=1 $(PYTEST) $(SPREAD) -m "not spark" $(BOUNDS) $(addprefix --ignore=,$(COMPILED_ONLY))

# With the oldest versions that pyproject.toml admits. What these warn of is their own.
test-lowest: $(VENV)-lowest/.stamp
	@echo "== oldest versions of what others wrote, kernels interpreted ==" && \
	NUMBA_DISABLE_JIT=1 $(VENV)-lowest/bin/python -W ignore -m pytest -W ignore $(SPREAD) -m "not jit_only and not spark" $(LOWEST)

$(VENV)-lowest/.stamp: pyproject.toml
	$(PYTHON) -m venv --clear $(VENV)-lowest
	$(VENV)-lowest/bin/python -m tests.least_versions > $(VENV)-lowest/constraints.txt
	$(VENV)-lowest/bin/python -m pip install --quiet -c $(VENV)-lowest/constraints.txt -e '.[bench,lsp,sql]' pytest pytest-xdist hypothesis fsspec
	@touch $@

# Ten times the random cases, and failures injected at every call instead of every call site. An hour or two; before a release.
thorough: $(VENV)/.dev
	HYPOTHESIS_PROFILE=thorough $(PYTEST) $(SPREAD) $(AT_LEISURE) -m "not spark"
	HYPOTHESIS_PROFILE=thorough NUMBA_BOUNDSCHECK=1 $(PYTEST) $(SPREAD) $(AT_LEISURE) -m "not spark" $(BOUNDS)

# Random programs with random histories under all strategies; seeds are printed, and failing cases reduced.
MINUTES ?= 5
fuzz: $(VENV)/.dev
	$(BIN)/python -m tests.fuzz --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

# One session for all, so one process; where Java is missing one line says so.
test-spark: $(VENV)/.dev
	@what=$$($(BIN)/python -c 'from spark_bridge.preflight import missing; import sys; sys.stdout.write(missing())'); \
	if [ -n "$$what" ]; then echo "== Spark tests skipped: $$what =="; else \
	echo "== on Spark ==" && $(PYTEST) -m "spark and not slow" tests/spark; fi

# Clusters of processes, spark-submit, the command line and the example: ten minutes more.
test-spark-slow: $(VENV)/.dev
	$(PYTEST) -m "spark and slow" tests/spark

# While working: compiled, warm cache (.pytest_cache), no slow tests.
quick: $(VENV)/.dev
	@$(PYTEST) -q -m "not slow and not spark"

lint: $(VENV)/.dev types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The pages of docs/ as a site in site/; a warning is an error. Needs no network.
docs: $(VENV)/.dev
	$(BIN)/python -m mkdocs build --quiet --strict

bench: $(VENV)/.bench
	$(BIN)/python -m bench.run

# Single steps, about a minute: saved in .benchmarks, and compared with the last that was saved.
bench-micro: $(VENV)/.dev
	$(BIN)/python -m pytest -q -p no:xdist bench/micro --benchmark-autosave --benchmark-timer=time.process_time \
		--benchmark-max-time=0.5 --benchmark-warmup=off --benchmark-disable-gc --benchmark-sort=name \
		--benchmark-columns=min,median,iqr,rounds $(if $(wildcard .benchmarks/*/*.json),--benchmark-compare)

report: $(VENV)/.bench
	$(BIN)/python -m bench.report

wheel: $(VENV)/.dev
	rm -rf dist
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

clean:
	rm -rf $(VENV) $(VENV)-lowest build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
