"""Make an artefact again in a temporary folder, and compare it with the one that exists.

Runs the job with the present configuration on the inputs below results/, or, with --from-scratch, everything from the
sources on. Nothing below results/ is changed. Exit code 1 if the contents of a rebuilt artefact differ; a record that
differs although the contents agree is reported, but is no failure.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from workflow_scripts.audit.diff import Change, changes, contents_equal
from workflow_scripts.audit.lookup import artefact_at, artefact_record, checksum_at, made_by, name_of
from workflow_scripts.audit.plan import Job, add_configfile, by_file, job_writing, plan
from workflow_scripts.audit.printing import console, print_json, table
from workflow_scripts.audit.verify import studies_of, unchecked
from workflow_scripts.errors import DataError, how_to_make
from workflow_scripts.graph.code import FOLDER as CODE
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

    def as_data(self) -> dict[str, object]:
        """The comparison as data for JSON."""
        return {**self._asdict(), "changes": [change._asdict() for change in self.changes]}


def rebuild(path: Path, root: Path, configfiles: list[str], *, cores: int | None) -> list[Rebuilt]:
    """Run the job that wrote ``path`` again or, if ``cores`` is given, every job up to it.

    Raises:
        DataError: if ``path`` is not an artefact, no job writes it, or the job fails.
    """
    root = root.resolve()
    name = artefact_at(name_of(path, root), root)
    record = artefact_record(root / name)
    with tempfile.TemporaryDirectory() as folder:
        if cores is None:
            _run_job(_job_of(record, name, root, configfiles), record, root, Path(folder))
            names = [Path(output).as_posix() for output in record.outputs]
        else:
            target = f"{name}/{RECORD_FILE}" if (root / name).is_dir() else name
            _run_everything(target, root, Path(folder), configfiles, cores)
            names = list(unchecked(Path(folder), studies_of(Path(folder), [])).records)
        return [_compare(artefact_at(made, Path(folder)), root, Path(folder)) for made in names]


def _job_of(record: Record, name: str, root: Path, configfiles: list[str]) -> Job:
    job = job_writing(record, by_file(plan(root, configfiles)))
    if job is None:
        raise DataError(
            f"{name}: no job of this configuration writes it. Give the right configuration with --configfile."
        )
    return job


def _run_job(job: Job, record: Record, root: Path, folder: Path) -> None:
    """Run one job in ``folder``, with links to its inputs and the list of its code in ``root``.

    Speeds are copied: the job that measures them writes them over.
    """
    (folder / CODE).parent.mkdir(parents=True)
    (folder / CODE).symlink_to(root / CODE)
    for path in sorted({value for values in job.arguments.values() for value in values} - {*record.outputs}):
        artefact = artefact_at(path, root)
        if (root / artefact).exists() and not (folder / artefact).exists():
            (folder / artefact).parent.mkdir(parents=True, exist_ok=True)
            if Path(artefact).parts[0] == "benchmarks":
                shutil.copyfile(root / artefact, folder / artefact)
            else:
                (folder / artefact).symlink_to(root / artefact)
    _run(job.command, folder, root, made_by(record))


def _run_everything(target: str, root: Path, folder: Path, configfiles: list[str], cores: int) -> None:
    """Run Snakemake up to ``target`` in ``folder``, with links to everything in ``root`` that runs did not make."""
    for path in root.iterdir():
        if path.name not in _MADE_BY_RUNS:
            (folder / path.name).symlink_to(path)
    chosen = ["--configfile", *configfiles] if configfiles else []
    command = ["-m", "snakemake", "--cores", str(cores), "--quiet", "all", *chosen, "--", target]
    _run([sys.executable, *command], folder, folder, "snakemake")


def _run(command: list[str], folder: Path, code: Path, what: str) -> None:
    path = (
        f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # jobs call python or torchrun without a path
    )
    environment = {**os.environ, **_THREADS, "PYTHONPATH": str(code), "PATH": path}
    job = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if job.returncode != 0:
        last = (job.stderr.strip() or job.stdout.strip() or "nothing printed").splitlines()[-1]
        raise DataError(f"{what}: the rebuild failed with exit code {job.returncode}: {last}")


def _compare(name: str, root: Path, folder: Path) -> Rebuilt:
    record = artefact_record(folder / name)
    if not (root / name).exists():
        raise DataError(f"{name}: does not exist, so there is nothing to compare with. {how_to_make(name)}")
    identical = checksum_at(root / name) == checksum_at(folder / name)
    equal = identical or contents_equal(root / name, folder / name)
    return Rebuilt(name, made_by(record), identical, equal, changes(artefact_record(root / name), record))


# The command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what ``audit rebuild`` takes."""
    parser.add_argument("path", type=Path, help="artefact, or a file in a model folder")
    add_configfile(parser)
    parser.add_argument(
        "--from-scratch", action="store_true", help="also rebuild everything that it was made from"
    )
    parser.add_argument(
        "--cores", type=int, default=os.cpu_count() or 1, help="cores for --from-scratch; default: all"
    )


def run(args: argparse.Namespace) -> int:
    """Rebuild, compare and print; exit code 1 if contents differ."""
    cores = args.cores if args.from_scratch else None
    found = rebuild(args.path, args.root, args.configfile, cores=cores)
    if args.json:
        print_json(
            {"green": all(one.contents_equal for one in found), "rebuilt": [one.as_data() for one in found]}
        )
    else:
        show(found, console())
    return 0 if all(one.contents_equal for one in found) else 1


def show(found: list[Rebuilt], out: Console) -> None:
    """Print the comparison as a table."""
    shown = table("rebuilt", "by", "contents", "record")
    for one in found:
        keys = ", ".join(f"{change.section} {change.key}".strip() for change in one.changes)
        contents = "equal" if one.contents_equal else "differ"
        shown.add_row(
            one.path, one.job, contents, "identical" if one.identical else f"differs: {keys or 'inputs'}"
        )
    out.print(shown)
    differing = sum(not one.contents_equal for one in found)
    identical = sum(one.identical for one in found)
    out.print(
        f"{len(found)} rebuilt: {identical} identical byte for byte, {differing} with different contents",
        style="red" if differing else "green",
    )
