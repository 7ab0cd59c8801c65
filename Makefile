# The commands that people and other tools rely on. Everything runs in .venv, installed from requirements.lock.

VENV := .venv
READY := $(VENV)/installed
CRATES := .venv-crates
CRATES_READY := $(CRATES)/installed
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export TOKENIZERS_PARALLELISM := false
SNAKEMAKE := python -m snakemake --quiet host reason --cores all

.PHONY: help environment demo demo-lock lab lab-lock test faults audit-test slurm-test plan preflight fetch coverage check bench rulegraph screenshot clean
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

# Validators of RO-Crates want older packages than the pipeline, so they have an environment of their own.
$(CRATES_READY): tests/crates/requirements.lock
	python3 -m venv $(CRATES)
	$(CRATES)/bin/pip install --quiet --disable-pip-version-check --requirement tests/crates/requirements.lock
	touch $@

help:  ## these lines
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-13s%s\n", $$1, $$2}' Makefile

environment: $(READY)  ## .venv alone; LOCK=requirements-gpu.lock for PyTorch's build with CUDA

demo: $(READY)  ## the whole graph on the embedded default: raw text to report, in minutes
	$(SNAKEMAKE) --configfile config/demo.yaml
	@python -m workflow_scripts.tools.show_times benchmarks/demo
	@python -m workflow_scripts.tools.show_table results/demo/tables/*.parquet
	@# Exit code 1: some artefacts differ from the committed lock, as on another processor, and it says which and why.
	@python -m workflow_scripts.audit lock --check config/demo.lock.json results/demo || test $$? = 1
	@echo "Report: $(CURDIR)/results/demo/report.html"

demo-lock: $(READY)  ## config/demo.lock.json, after a change that moves the demo's numbers: commit both together
	python -m workflow_scripts.audit lock results/demo --to config/demo.lock.json

lab: $(READY)  ## small encoders on the real benchmarks under SEMBLANCE_DATA
	$(SNAKEMAKE) --configfile config/minilm.yaml
	@python -m workflow_scripts.tools.show_times benchmarks/minilm
	@python -m workflow_scripts.tools.show_table results/minilm/tables/*.parquet
	@python -m workflow_scripts.tools.claims --study results/minilm
	@python -m workflow_scripts.audit lock --check resources/laboratory/lab.lock.json results/minilm || test $$? = 1
	@echo "Report: $(CURDIR)/results/minilm/report.html"

lab-lock: $(READY)  ## resources/laboratory: tables, claims and lock of what is below results/minilm, to be committed together
	verdicts=$$(python -m workflow_scripts.tools.claims --study results/minilm --markdown) && \
		printf '%s\n' "$$verdicts" >resources/laboratory/claims.md
	for table in results/minilm/tables/*.parquet; do python -m workflow_scripts.tools.show_table $$table \
		--csv resources/laboratory/$$(basename $$table .parquet).csv || exit; done
	python -m workflow_scripts.audit lock results/minilm --to resources/laboratory/lab.lock.json

# Plans first: while one worker is at the longest file of them, the other makes the run that end-to-end tests share.
test: $(READY) $(CRATES_READY)  ## all tests, the long ones first
	@# Hundreds of processes load the same modules, which are compiled once whatever the environment says.
	OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder \
		tests/dag tests/e2e tests/faults tests/unit

faults: $(READY) $(CRATES_READY)  ## the fault matrix of tests/faults/README.md: table, tries, losses
	python -m tests.faults

audit-test: $(READY)  ## change everything that can be changed: what the planner gets right, too much, too little
	python -m tests.dag

slurm-test: $(READY)  ## a real one-node SLURM: the demo's graph, faults, a stranger's path; needs root, Debian's packages
	SEMBLANCE_SLURM_TEST=1 OMP_NUM_THREADS=1 python -m pytest -rs --durations 0 tests/slurm

plan: $(READY)  ## what the paper scale would take: jobs, GPU hours, storage, requests; runs nothing
	@python -m workflow_scripts.tools.plan_study

preflight: $(READY)  ## can it run here to its end? make preflight TARGET=jtcse CONFIG="config/minilm.yaml mine.yaml" PROFILE=slurm
	@python -m workflow_scripts.tools.preflight $(TARGET) $(if $(CONFIG),--configfile $(CONFIG)) $(if $(PROFILE),--profile $(PROFILE))

fetch: $(READY)  ## what TARGET needs of the Internet, into HF_HOME and results/: make fetch TARGET=jtcse, on a login node
	$(SNAKEMAKE) $(if $(CONFIG),--configfile $(CONFIG)) --until fetch_encoder fetch_tasks read_dataset -- $(TARGET)

coverage: $(READY)  ## the papers' printed numbers: with a run, measured, or with a reason why not; runs nothing
	@python -m workflow_scripts.tools.coverage

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

rulegraph: $(READY)  ## docs/rulegraph.svg: which rule feeds which; needs Graphviz
	graph=$$(python -m snakemake --quiet host --rulegraph dot --configfile config/demo.yaml) && \
		printf '%s\n' "$$graph" | python -m workflow_scripts.tools.draw_rulegraph docs/rulegraph.svg

screenshot: demo  ## docs/report.png: the top of the demo's report; needs Chromium
	profile=$$(mktemp -d) && chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
		--disable-background-networking --disable-component-update --disable-sync --hide-scrollbars \
		--user-data-dir=$$profile --window-size=1180,2420 --screenshot=docs/report.png \
		file://$(CURDIR)/results/demo/report.html && rm -r $$profile

clean:  ## remove what runs made; .venv stays
	rm -rf results logs .snakemake benchmarks/*/
