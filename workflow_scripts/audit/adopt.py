"""Make Snakemake plan what the records say: for a study that was copied or restored, or whose .snakemake is gone.

Snakemake plans by notes of its own below .snakemake and, where it has none, by dates. This compares the records of all
artefacts with the present configuration and code, as `stale` does. What is up to date, Snakemake notes as such,
whatever its date; what is stale is taken away, so that the next run makes it again. It stays in .kept beside its place,
from where a job that would make the very same puts it back.

  python -m workflow_scripts adopt --configfile config/demo.yaml
"""

import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from workflow_scripts.audit.printing import Answer
from workflow_scripts.audit.records import artefact_record
from workflow_scripts.audit.stale import stale
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.planning.graph import CONFIGFILE, PlannedJob, planned
from workflow_scripts.provenance import kept
from workflow_scripts.provenance.artefacts import RECORD_FILE
from workflow_scripts.provenance.record import Record

_TARGETS_A_CALL = 1000  # a command line holds no more than two megabytes


@dataclass
class Adopted:
    """What was done."""

    noted: list[str]
    """Artefacts that Snakemake now takes for up to date."""
    taken_away: list[str]
    """Stale ones, which the next run makes again."""
    missing: list[str]
    """Files that it makes besides."""


def adopt(configfiles: list[str]) -> Adopted:
    """Have Snakemake note what is up to date, and take away what is not.

    Raises:
        ConfigError: if Snakemake does not accept the configuration, or is running in this folder.
        DataError: if something stale cannot be kept; nothing is taken away.
    """
    graph = planned([], configfiles)
    found = stale(graph)
    records = {name: artefact_record(Path(name)) for name in found.asked}
    for name in found.stale:
        job = graph.writer(records[name])
        assert job is not None  # else it would not be stale
        _keep(name, job, records[name])
    # Where something that the same job made is missing, the job has to run again.
    whole = [name for name in found.fresh if not set(records[name].outputs) & set(found.missing)]
    _note(configfiles, whole)
    for name in found.stale:
        shutil.rmtree(Path(name).parent) if Path(name).name == RECORD_FILE else Path(name).unlink()
    return Adopted(whole, sorted(found.stale), found.missing)


def _note(configfiles: list[str], files: list[str]) -> None:
    """Let Snakemake record the jobs behind ``files`` as done with what is there now."""
    chosen = ["--configfile", *configfiles] if configfiles else []
    command = [sys.executable, "-m", "snakemake", "--touch", "--forceall", "--cores", "1", "--quiet", "all"]
    for start in range(0, len(files), _TARGETS_A_CALL):
        targets = files[start : start + _TARGETS_A_CALL]
        touched = subprocess.run(
            [*command, *chosen, "--", *targets], capture_output=True, text=True, check=False
        )
        if touched.returncode != 0:
            last = (touched.stderr.strip() or touched.stdout.strip() or "nothing printed").splitlines()[-1]
            raise ConfigError(f"snakemake --touch failed: {last} Nothing was taken away.")


def _keep(name: str, job: PlannedJob, record: Record) -> None:
    """Keep what the job of a stale artefact made, if it is not kept already.

    Raises:
        DataError: if some of it is not there, damaged, or another job's.
    """
    paths = [Path(output) for output in record.outputs]
    artefacts = [path.parent if path.name == RECORD_FILE else path for path in paths]
    timings = [Path(path) for path in job.timings]
    if not kept.holds(artefacts, timings, record.key):
        kept.keep(artefacts, timings, record.key)
        if not kept.holds(artefacts, timings, record.key):
            of_job = ", ".join(map(str, (*artefacts, *timings)))
            raise DataError(
                f"{name}: stale, and cannot be kept: of {of_job}, one is missing, damaged or of another run. "
                f"Nothing was taken away. Restore it, or delete {name}, and adopt again."
            )


# The verb


ARGUMENTS = (CONFIGFILE,)


def answer(configfile: list[str]) -> Answer:
    """What was noted and what was taken away; exit code 0."""
    done = adopt(configfile)
    lines = [f"taken away: {name}" for name in done.taken_away]
    lines += [f"missing: {name}" for name in done.missing]
    counts = (
        f"{len(done.noted)} up to date, {len(done.taken_away)} taken away, {len(done.missing)} files missing"
    )
    return Answer(f"{counts}: the next run makes what is not there", parts=lines, data=asdict(done))
