"""Planning the paper scale, as if nothing had been made: milliseconds a job, and the verb ``plan`` in dry runs."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.harness import Measured, Timing, ratios
from workflow_scripts.provenance.closure import ROOT

CODE = (
    "Snakefile",
    "rules",
    "config",
    "workflow_scripts/graph",
    "workflow_scripts/planning",
    "workflow_scripts/provenance",
)


def measure(timing: Timing) -> Iterator[Measured]:
    """Run both commands; the first round leaves its notes about the code to those that count."""
    study = ["--configfile", "config/demo.yaml" if timing.small else "config/config.yaml"]
    jobs: list[int] = []

    def dry_run() -> None:
        printed = command("snakemake", "-n", "--quiet", "host", "reason", "--forceall", *study)
        jobs.append(int(re.findall(r"^total +(\d+)$", printed, re.MULTILINE)[-1]))

    seconds = timing.interleaved(
        {
            "dry run": dry_run,
            "plan_study": lambda: command("workflow_scripts", "plan", *study),
        }
    )
    milliseconds = [1000 * taken / jobs[-1] for taken in seconds["dry run"]]
    yield Measured("plan_job", milliseconds, "milliseconds-a-job", f"dry-run-of-{jobs[-1]}-jobs")
    yield Measured(
        "plan_study",
        ratios(seconds, "plan_study", "dry run"),
        "times-the-time",
        "plan_study-against-a-dry-run",
    )


def command(module: str, *arguments: str) -> str:
    """What a command prints, run in the repository's root without a network; fails if it does."""
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ).stdout
