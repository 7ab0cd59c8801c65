"""Make an artefact again in a temporary folder, and compare it with the one that exists.

Runs the job with the present configuration on the inputs below results/, or, with --from-scratch, everything from the
sources on. Nothing below results/ is changed. Exit code 1 if the contents of a rebuilt artefact differ; a record that
differs although the contents agree is reported, but is no failure.

  python -m workflow_scripts rebuild results/demo/tables/demo.parquet --configfile config/demo.yaml
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from workflow_scripts.audit.compare import Change, compare, facts
from workflow_scripts.audit.diff import contents_equal
from workflow_scripts.audit.lookup import artefact_at, artefact_record, checksum_at, made_by, name_of
from workflow_scripts.audit.printing import Answer, Rows, rows_of
from workflow_scripts.audit.verify import studies_of, unchecked
from workflow_scripts.errors import DataError, how_to_make
from workflow_scripts.graph.code import FOLDER as CODE
from workflow_scripts.planning.graph import Job, add_configfile, planned
from workflow_scripts.provenance.artefacts import RECORD_FILE
from workflow_scripts.provenance.record import Record

_MADE_BY_RUNS = {"results", "logs", "benchmarks", ".snakemake"}
# Sums of floats depend on the number of threads. Snakemake gives a job the threads of its rule: one, except for
# training, which sets the number itself.
_THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Rebuilt(NamedTuple):
    """One artefact that was made again, compared with the first."""

    path: str
    job: str
    identical: bool
    contents_equal: bool
    changes: list[Change]


def rebuild(path: Path, configfiles: list[str], *, cores: int | None) -> list[Rebuilt]:
    """Run the job that wrote ``path`` again or, if ``cores`` is given, every job up to it.

    Raises:
        DataError: if ``path`` is not an artefact, no job writes it, or the job fails.
    """
    here = Path.cwd()
    name = artefact_at(name_of(path))
    record = artefact_record(Path(name))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if cores is None:
            _run_job(_job_of(record, name, configfiles), record, here, folder)
            names = [Path(output).as_posix() for output in record.outputs]
        else:
            target = f"{name}/{RECORD_FILE}" if Path(name).is_dir() else name
            _run_everything(target, here, folder, configfiles, cores)
            names = list(unchecked(studies_of([], folder), folder).records)
        return [_compared(artefact_at(made, folder), folder) for made in names]


def _job_of(record: Record, name: str, configfiles: list[str]) -> Job:
    job = planned([], configfiles).writer(record)
    if job is None:
        raise DataError(
            f"{name}: no job of this configuration writes it. Give the right configuration with --configfile."
        )
    return job


def _run_job(job: Job, record: Record, here: Path, folder: Path) -> None:
    """Run one job in ``folder``, with links to its inputs and the list of its code in ``here``.

    Speeds are copied: a page shows those of trainings, and the job that measures them writes them over.
    """
    (folder / CODE).parent.mkdir(parents=True)
    (folder / CODE).symlink_to(here / CODE)
    for artefact in sorted({artefact_at(path) for path in job.inputs}):
        if (here / artefact).exists() and not (folder / artefact).exists():
            (folder / artefact).parent.mkdir(parents=True, exist_ok=True)
            (folder / artefact).symlink_to(here / artefact)
    for speed in Path("benchmarks").rglob("*.speed.parquet"):
        (folder / speed).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(speed, folder / speed)
    _run([sys.executable, "-m", "workflow_scripts.jobs", job.rule], folder, here, made_by(record), job.call)


def _run_everything(target: str, here: Path, folder: Path, configfiles: list[str], cores: int) -> None:
    """Run Snakemake up to ``target`` in ``folder``, with links to everything in ``here`` that runs did not make."""
    for path in here.iterdir():
        if path.name not in _MADE_BY_RUNS:
            (folder / path.name).symlink_to(path)
    chosen = ["--configfile", *configfiles] if configfiles else []
    command = ["-m", "snakemake", "--cores", str(cores), "--quiet", "all", *chosen, "--", target]
    _run([sys.executable, *command], folder, folder, "snakemake")


def _run(command: list[str], folder: Path, code: Path, what: str, given: str = "") -> None:
    python = Path(sys.executable).parent  # jobs call python or torchrun without a path
    more = {**_THREADS, "PYTHONPATH": str(code), "PATH": f"{python}:{os.environ['PATH']}"}
    job = subprocess.run(
        command, cwd=folder, env=os.environ | more, input=given, capture_output=True, text=True, check=False
    )
    if job.returncode != 0:
        last = (job.stderr.strip() or job.stdout.strip() or "nothing printed").splitlines()[-1]
        raise DataError(f"{what}: the rebuild failed with exit code {job.returncode}: {last}")


def _compared(name: str, folder: Path) -> Rebuilt:
    record, first = artefact_record(folder / name), Path(name)
    if not first.exists():
        raise DataError(f"{name}: does not exist, so there is nothing to compare with. {how_to_make(name)}")
    identical = checksum_at(first) == checksum_at(folder / name)
    equal = identical or contents_equal(first, folder / name)
    changes = compare(facts(artefact_record(first)), facts(record))
    return Rebuilt(name, made_by(record), identical, equal, changes)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what rebuild takes."""
    parser.add_argument("path", type=Path, help="artefact, or a file in a model folder")
    add_configfile(parser)
    parser.add_argument(
        "--from-scratch", action="store_true", help="also rebuild everything that it was made from"
    )
    parser.add_argument(
        "--cores", type=int, default=os.cpu_count() or 1, help="cores for --from-scratch; default: all"
    )


def answer(args: argparse.Namespace) -> Answer:
    """Each artefact that was made again: whether contents and record are those of the first."""
    found = rebuild(args.path, args.configfile, cores=args.cores if args.from_scratch else None)
    rows = [
        {
            "path": one.path,
            "by": one.job,
            "contents": "equal" if one.contents_equal else "differ",
            "record": "identical" if one.identical else f"differs: {_keys(one.changes)}",
        }
        for one in found
    ]
    differing = sum(not one.contents_equal for one in found)
    identical = sum(one.identical for one in found)
    said = f"{len(found)} rebuilt: {identical} identical byte for byte, {differing} with different contents"
    changes = {one.path: rows_of(one.changes) for one in found}
    return Answer(said, not differing, [Rows("rebuilt", rows)], {"changes": changes})


def _keys(changes: list[Change]) -> str:
    return ", ".join(f"{change.section} {change.key}".strip() for change in changes)
