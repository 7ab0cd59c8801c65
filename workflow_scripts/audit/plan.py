"""The jobs that the present configuration and code would run, from a dry run of Snakemake.

The command that Snakemake prints of a job contains everything (``graph.call``): its entry script, its slice of the
configuration, its wildcards and its files. A dry run of everything does not need Snakemake's own records.
"""

import argparse
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.errors import ConfigError
from workflow_scripts.graph.call import CALLS
from workflow_scripts.graph.findings import first_error, refuse
from workflow_scripts.graph.yaml_files import reading_findings
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.provenance.record import Record

_HEADING = re.compile(r"^Shell command: (?!None$)", re.MULTILINE)  # a rule without a command has None


class Job(NamedTuple):
    """One job that a run of everything would execute."""

    rule: str
    settings: dict[str, Any]
    arguments: dict[str, list[str]]
    """Wildcards and files, by their name or role."""
    meaning: dict[str, str]
    """Files of its code and the hashes of their meaning."""
    packages: dict[str, str]
    command: list[str]
    """The command without the redirection to its log."""

    def writes(self, record: Record) -> bool:
        """Whether this job would write the artefact that ``record`` belongs to."""
        if self.rule != record.rule:
            return False
        return {value for values in self.arguments.values() for value in values}.issuperset(record.outputs)


def by_file(jobs: Iterable[Job]) -> dict[str, list[Job]]:
    """The jobs that read or write a file, by file: whoever looks for makers need not search all jobs for each."""
    found = defaultdict(list)
    for job in jobs:
        for file in {value for values in job.arguments.values() for value in values}:
            found[file].append(job)
    return dict(found)


def job_writing(record: Record, jobs: Mapping[str, list[Job]]) -> Job | None:
    """The job among those of ``by_file`` that would write the artefact of ``record``; None where none would."""
    return next((job for job in jobs.get(record.outputs[0], []) if job.writes(record)), None)


def add_configfile(parser: argparse.ArgumentParser) -> None:
    """Declare the argument that selects the configuration."""
    parser.add_argument(
        "--configfile",
        nargs="+",
        default=[],
        metavar="FILE",
        help="as for snakemake, such as config/demo.yaml; default: the base configuration alone",
    )


def plan(configfiles: list[str]) -> list[Job]:
    """Every job that a run of everything would execute.

    Args:
        configfiles: As for snakemake's --configfile.

    Raises:
        ConfigError: if a file cannot be read, or Snakemake does not accept the configuration.
    """
    refuse(finding for file in configfiles for finding in reading_findings(Path(file)))
    chosen = ["--configfile", *configfiles] if configfiles else []
    chosen += [] if Path("Snakefile").is_file() else ["--snakefile", str(ROOT / "Snakefile")]
    options = ["--dry-run", "--forceall", "--printshellcmds", "--quiet", "host", "reason"]
    dry_run = subprocess.run(
        [sys.executable, "-m", "snakemake", *options, *chosen],
        capture_output=True,
        text=True,
        check=False,
    )
    printed = dry_run.stdout + dry_run.stderr
    if dry_run.returncode != 0:
        reason = first_error(printed.splitlines())
        raise ConfigError(f"snakemake's dry run failed: {reason} Run snakemake --dry-run.")
    commands = CALLS.findall(printed)
    assert len(commands) == len(_HEADING.findall(printed)), (
        "a rule whose command does not call an entry script"
    )
    return [_job(*command) for command in commands]


def _job(rule: str, text: str) -> Job:
    call = json.loads(text)
    files = call["files"]
    roles = files["wildcards"] | files["inputs"] | files["outputs"]
    meaning = json.loads(Path(roles.pop("code")).read_text("utf-8"))
    return Job(
        rule,
        call["settings"],
        {name: [value] if isinstance(value, str) else value for name, value in roles.items()},
        meaning,
        call["packages"],
        ["python", "-m", "workflow_scripts.jobs", rule, text],
    )
