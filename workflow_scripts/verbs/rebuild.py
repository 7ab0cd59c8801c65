"""Make an artefact again in a temporary folder, and compare it with the one that exists.

Runs its job on the inputs below results/, which do not change. The default configuration is the one with which the file
was made in this folder. If records differ although the contents agree, this is reported, but is not a fault.

Exit code 1 if the contents of a rebuilt artefact differ.

  python -m workflow_scripts rebuild results/demo/tables/demo.parquet
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from workflow_scripts.errors import DataError
from workflow_scripts.graph.code_lists import FOLDER as CODE
from workflow_scripts.graph.notes import Call
from workflow_scripts.provenance.artefacts import RECORD_FILE, read_trailer
from workflow_scripts.verbs.plan import CONFIGURATION, PlannedJob, given_call, planned, writer
from workflow_scripts.verbs.printing import Answer, PrintedTable, argument, rows_of
from workflow_scripts.verbs.records import artefact_at, compare_artefacts, is_intact, job_name

# Sums of floats depend on the number of threads. Snakemake gives a job the threads of its rule: one, except for
# training, which sets the number itself.
_THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def rebuild(path: Path, call: Call) -> list[dict[str, Any]]:
    """Run the job that wrote ``path`` again, and return a comparison of each of its artefacts with the existing one.

    Raises:
        DataError: if ``path`` is not an artefact, no job writes it, or the job fails.
        ConfigError: if no rule of the configuration makes such a file.
    """
    name, record = artefact_at(path)
    job = writer({file: job for job in planned([str(name)], call) for file in job.outputs}, record)
    if job is None:
        raise DataError(
            f"{name}: no job of this configuration writes it. Add the right configuration: --configfile FILE."
        )
    with tempfile.TemporaryDirectory() as temporary:
        _run(job, Path(temporary))
        return [_compared(Path(output), Path(temporary, output), job) for output in record.outputs]


def _run(job: PlannedJob, folder: Path) -> None:
    """Run a job in ``folder`` without a cache, on links to its inputs and to the list of its code."""
    for given in {CODE.as_posix(), *(path.removesuffix(f"/{RECORD_FILE}") for path in job.inputs)}:
        if Path(given).exists() and not (folder / given).exists():
            (folder / given).parent.mkdir(parents=True, exist_ok=True)
            (folder / given).symlink_to(Path(given).absolute())
    python = Path(sys.executable).parent  # jobs call python or torchrun without a path
    more = {**_THREADS, "PYTHONPATH": str(Path.cwd()), "PATH": f"{python}:{os.environ['PATH']}"}
    call = json.loads(job.call)
    workplace = call["files"]["operational"]["workplace"]
    workplace["cache"] = None
    if Path(workplace["answer_store"]).exists():  # sends, and pays, no request again
        workplace["answer_store"] = str(Path(workplace["answer_store"]).absolute())
    ended = subprocess.run(
        [sys.executable, "-m", "workflow_scripts.jobs", job.rule],
        cwd=folder,
        env=os.environ | more,
        input=json.dumps(call),
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode != 0:
        last = (ended.stderr.strip() or ended.stdout.strip() or "nothing printed").splitlines()[-1]
        failed = f"{job_name(job.rule, job.wildcards)}: the rebuild failed"
        raise DataError(f"{failed} with exit code {ended.returncode}: {last}")


def _compared(first: Path, again: Path, job: PlannedJob) -> dict[str, Any]:
    identical, (equal, changes) = read_trailer(first) == read_trailer(again), compare_artefacts(first, again)
    keys = ", ".join(f"{change.section} {change.key}".strip() for change in changes)
    as_written = is_intact(first)
    record = "identical" if identical else f"differs: {keys}"
    return {
        "path": first.as_posix(),
        "by": job_name(job.rule, job.wildcards),
        "contents": "equal" if equal and as_written else "differ",
        "record": record if as_written else "its file was changed since it was written",
        "changes": rows_of(changes),
    }


ARGUMENTS = (
    argument("path", type=Path, metavar="PATH", help="artefact, or a file in a model folder"),
    *CONFIGURATION,
)


def answer(path: Path, configfile: list[str], config: list[str]) -> Answer:
    """Return a row for each rebuilt artefact: whether contents and record equal those of the existing one."""
    name = artefact_at(path)[0]
    study = name.parts[1] if name.parts[0] == "results" else None
    rebuilt = rebuild(path, given_call(configfile, config, study, name.as_posix()))
    changes = [{"path": row["path"]} | change for row in rebuilt for change in row.pop("changes")]
    differing = sum(row["contents"] == "differ" for row in rebuilt)
    identical = sum(row["record"] == "identical" for row in rebuilt)
    said = f"{len(rebuilt)} rebuilt: {identical} identical byte for byte, {differing} with different contents"
    return Answer(
        said, not differing, [PrintedTable("rebuilt", rebuilt), PrintedTable("changes", changes, shown=())]
    )
