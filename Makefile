# The commands that people and other tools rely on. Everything runs in .venv, installed from requirements.lock.

VENV := .venv
READY := $(VENV)/installed
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export TOKENIZERS_PARALLELISM := false
SNAKEMAKE := python -m snakemake --cores all --quiet host reason

.PHONY: environment demo test test-all bench fetch slurm-test slurm-short check
.DEFAULT_GOAL := demo

# PyPI has no build of PyTorch without CUDA; `make LOCK=requirements-gpu.lock ...` asks for the one with CUDA.
# Another lock than the one that was installed, which $(READY) names, makes .venv anew: pip takes torch==2 for 2+cpu.
ifneq ($(LOCK),)
ifneq ($(LOCK),$(shell cat $(READY) 2>/dev/null))
.PHONY: $(READY)
ANEW := --clear
endif
endif
$(READY): requirements.lock requirements-gpu.lock
	python3 -m venv $(ANEW) $(VENV)
	lock=$(LOCK); if [ -z "$$lock" ]; then lock=requirements.lock; \
		pip install --quiet --dry-run --no-deps "$$(grep -o '^torch==[^ ]*' $$lock)" >/dev/null 2>&1 || { \
			lock=requirements-gpu.lock; \
			echo "pip finds no PyTorch without CUDA: installing the build with CUDA, which runs without a GPU as well"; \
			echo "(5 GB more; with PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu pip finds the other)"; }; fi; \
	pip install --quiet --disable-pip-version-check --require-hashes --requirement $$lock && \
	echo $$lock >$@

environment: $(READY)  ## .venv alone; LOCK=requirements-gpu.lock for PyTorch's build with CUDA

demo: $(READY)  ## the whole graph on the embedded default: raw text to report, in minutes
	$(SNAKEMAKE) rules --configfile config/demo.yaml
	@python -m workflow_scripts show results/demo
	@# Exit code 1: some artefacts differ from the committed lock, as on another machine.
	@python -m workflow_scripts lock results/demo --check config/demo.lock.json --short || test $$? = 1
	@echo "Report: $(CURDIR)/results/demo/report.html"

# The pipeline first: while one worker is at the longest plans, the other makes the run that whole studies share.
# Hundreds of processes load the same modules, which are compiled once whatever the environment says.
PYTEST := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder
TESTS := tests/pipeline tests/messages tests/contract tests/numbers tests/rooms

test: $(READY)  ## the tests of every guarantee, in minutes
	$(PYTEST) -m "not slow" $(TESTS)

test-all: $(READY)  ## these and what is slow or outside: every key singly, mounts, a browser, pages followed
	$(PYTEST) $(TESTS)

slurm-test: $(READY)  ## a real one-node SLURM: the demo's graph, faults, a stranger's path; needs root, Debian's packages
	SEMBLANCE_SLURM_TEST=1 OMP_NUM_THREADS=1 python -m pytest -rs --durations 0 tests/slurm

slurm-short: $(READY)  ## its smallest part: requests, one fault, a stranger's path to one score; in minutes
	SEMBLANCE_SLURM_TEST=1 OMP_NUM_THREADS=1 python -m pytest -rs --durations 0 tests/slurm -k "requests or cancelled or stranger"

fetch: $(READY)  ## what TARGET needs of the Internet, into HF_HOME and results/: make fetch TARGET=jtcse, on a login node
	$(SNAKEMAKE) $(if $(CONFIG),--configfile $(CONFIG)) --until fetch_encoder fetch_tasks read_dataset -- $(TARGET)

check: $(READY)  ## linters, types, formats
	ruff format --check .
	ruff check .
	mypy
	snakefmt --check Snakefile rules
	# One environment serves all rules, so the lint that asks for one a rule is left out.
	said=$$(python -m snakemake --lint --configfile config/demo.yaml 2>&1); \
	printf '%s\n' "$$said" | grep -q '^Lints for rule' || { printf '%s\n' "$$said"; exit 1; }; \
	! printf '%s\n' "$$said" | grep '^    \*' | grep -v 'conda environment'

bench: $(READY)  ## speed and memory against peers, in turns: half an hour, quiet machine; into benchmarks/results.csv and docs
	python -m benchmarks
