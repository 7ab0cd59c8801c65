# The commands that people and other tools rely on. Everything runs in .venv, installed from requirements.lock.

VENV := .venv
READY := $(VENV)/installed
# Looked up before .venv/bin is on the path, since .venv may be what another Python left.
PYTHON := $(shell command -v python3)
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export TOKENIZERS_PARALLELISM := false
SNAKEMAKE := python -m snakemake --cores all --quiet host reason

.PHONY: environment demo headline test test-all bench fetch gpu-test slurm-test slurm-short check
.DEFAULT_GOAL := demo

# PyPI has no build of PyTorch without CUDA; `make LOCK=requirements-gpu.lock ...` asks for the one with CUDA.
# .venv is made anew where $(READY), which names the installed lock, is missing (an installation failed) or names
# another lock: pip takes torch==2 for 2+cpu.
INSTALLED := $(shell cat $(READY) 2>/dev/null)
ifneq ($(or $(LOCK),$(INSTALLED),none),$(INSTALLED))
.PHONY: $(READY)
ANEW := --clear
endif
define CHECK_PYTHON
import sys
if not (3, 11, 5) <= sys.version_info < (3, 13):
    found = "{} is Python {}.{}.{}".format(sys.executable, *sys.version_info)
    sys.exit(found + ", and Semblance needs 3.11.5 to 3.12. Name another: make PYTHON=python3.12 $(MAKECMDGOALS)")
endef
export CHECK_PYTHON
$(READY): requirements.lock requirements-gpu.lock
	@$(PYTHON) -c "$$CHECK_PYTHON"
	$(PYTHON) -m venv $(ANEW) $(VENV)
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

headline: $(READY)  ## the main comparison of each paper, on a GPU, after make fetch CONFIG=config/headline.yaml (docs/one_gpu.md)
	$(SNAKEMAKE) rules --configfile config/headline.yaml
	@python -m workflow_scripts show results/headline
	@echo "Report: $(CURDIR)/results/headline/report.html"

# The pipeline first: while one worker makes the run that whole studies share, the others plan. Three workers on two cores:
# a third of the time of a test is spent waiting for processes that it has started or killed.
# Hundreds of processes load the same modules, which are compiled once whatever the environment says.
PYTEST := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= python -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder
TESTS := tests/pipeline tests/messages tests/contract tests/numbers tests/rooms

test: $(READY)  ## the tests of every guarantee, in minutes
	$(PYTEST) -m "not slow" $(TESTS)

test-all: $(READY)  ## these and what is slow or outside: every key singly, mounts, a browser, pages followed
	$(PYTEST) $(TESTS)

# Without the fixtures of tests/conftest.py, so that the same command runs where only PyTorch and a few packages are.
gpu-test: $(READY)  ## on a GPU: what the CPU computes, the same bytes, no wait, hardly idle; some five minutes
	python -m pytest -rs --durations 5 --confcutdir tests/gpu tests/gpu

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
