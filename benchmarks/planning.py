"""Planning the paper scale without any results: milliseconds per job of a dry run."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.harness import Measured, Timing
from workflow_scripts.provenance.closure import ROOT

CODE = ("Snakefile", "rules", "config", "workflow_scripts/graph", "workflow_scripts/provenance")


def measure(timing: Timing) -> Iterator[Measured]:
    """Yield milliseconds per job of dry runs; the first round only writes the notes about code that the others read."""
    jobs: list[int] = []
    seconds = timing.interleaved({"dry run": lambda: jobs.append(_dry_run(small=timing.small))})
    milliseconds = [1000 * taken / jobs[-1] for taken in seconds["dry run"]]
    yield Measured("plan_job", milliseconds, "milliseconds-a-job", f"dry-run-of-{jobs[-1]}-jobs")


def _dry_run(*, small: bool) -> int:
    """Return the number of jobs that a run of a study would execute without a network."""
    study = "config/demo.yaml" if small else "config/config.yaml"
    words = ("-n", "--quiet", "host", "reason", "--forceall", "--configfile", study)
    printed = subprocess.run(
        [sys.executable, "-m", "snakemake", *words],
        cwd=ROOT,
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ).stdout
    return int(re.findall(r"^total +(\d+)$", printed, re.MULTILINE)[-1])
