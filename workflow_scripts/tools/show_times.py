"""Print the time that stages and trainings took: python -m workflow_scripts.tools.show_times benchmarks/demo."""

import argparse
import csv
from pathlib import Path

from rich.table import Table

from workflow_scripts.audit.printing import console
from workflow_scripts.errors import DataError, one_line_errors
from workflow_scripts.provenance.closure import PACKAGE
from workflow_scripts.provenance.line import apart

_PIPE_WIDTH = 160  # characters per line if the output is not a terminal
_READ = ("s", "max_rss", "cpu_time")
"""Columns of Snakemake's files: seconds, largest resident memory in MB, seconds of processors."""


def stage_times(folder: Path) -> list[tuple[str, int, float, float, float]]:
    """Rule, jobs, total seconds, those of processors, largest resident memory in MB, from Snakemake's files."""
    stages = []
    for rule in sorted(path for path in folder.iterdir() if path.is_dir()):
        rows = [row for file in _last_runs(rule) for row in _rows(file)]
        seconds, processors = (sum(_numbers(rows, column)) for column in ("s", "cpu_time"))
        memory = max(_numbers(rows, "max_rss"), default=0.0)
        stages.append((rule.name, len(rows), seconds, processors, memory))
    return stages


def check_folder(folder: Path) -> None:
    """Check that ``folder`` has times of jobs.

    Raises:
        DataError: if it has none, or is not there.
    """
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder. Give that of a study that has run, benchmarks/<study>.")
    rules = [path.stem for path in (PACKAGE / "jobs").glob("*.py")]
    if not any(True for rule in rules for _file in folder.glob(f"{rule}/**/*.tsv")):
        raise DataError(
            f"{folder}: no times of jobs. Give the folder of a study that has run, benchmarks/<study>."
        )


def training_times(folder: Path) -> list[tuple[str, int, float, float]]:
    """Run, seeds, total seconds and total seconds of processors, from the same files.

    What a job put back, for it had been made before, was done in seconds; the page has what its steps had taken.
    """
    trained: list[tuple[str, int, float, float]] = []
    for run in sorted(path for path in folder.glob("train_encoder/*") if path.is_dir()):
        files = _last_runs(run)
        rows = [row for file in files for row in _rows(file)[-1:]]
        seeds = {seed for file in files for seed in apart(file.stem)}
        trained.append((run.name, len(seeds), sum(_numbers(rows, "s")), sum(_numbers(rows, "cpu_time"))))
    return trained


def _last_runs(folder: Path) -> list[Path]:
    """Files of times below a folder, without those whose seeds have all run again, alone or side by side."""
    kept: list[Path] = []
    seen: set[Path] = set()
    for file in sorted(folder.rglob("*.tsv"), key=lambda file: (file.stat().st_mtime_ns, file), reverse=True):
        seeds = {file.with_name(seed) for seed in apart(file.stem)}
        if not seeds <= seen:
            kept.append(file)
        seen |= seeds
    return sorted(kept)


def _numbers(rows: list[dict[str, float]], column: str) -> list[float]:
    return [row[column] for row in rows if column in row]


def _rows(file: Path) -> list[dict[str, float]]:
    """What was measured; Snakemake writes - or NA where it could not.

    Raises:
        DataError: if the file is none of Snakemake's.
    """
    try:
        with file.open(newline="") as lines:
            return [
                {name: float(row[name]) for name in _READ if row.get(name) not in (None, "-", "NA")}
                for row in csv.DictReader(lines, delimiter="\t")
            ]
    except ValueError as error:
        raise DataError(f"{file}: no times of a job: {error}. Delete it.") from error


def main() -> None:
    """Read the benchmark files, print one line per rule and one per run."""
    parser = argparse.ArgumentParser(prog="python -m workflow_scripts.tools.show_times", description=__doc__)
    parser.add_argument("folder", type=Path, help="benchmarks/<study>")
    folder, out = parser.parse_args().folder, console(_PIPE_WIDTH)
    check_folder(folder)
    columns = ("rule", "jobs", "seconds in all", "of processors", "largest memory, MB")
    stages = _table("Time and memory by stage (of the jobs' last runs)", columns)
    times = stage_times(folder)
    for rule, jobs, seconds, processors, memory in times:
        stages.add_row(rule, str(jobs), f"{seconds:.1f}", f"{processors:.1f}", f"{memory:.0f}")
    _rules, jobs_of, seconds_of, processors_of, _memory = zip(*times, strict=True)
    hours = (f"{sum(found) / 3600:.2f} hours" for found in (seconds_of, processors_of))
    stages.caption = f"{sum(jobs_of)} jobs: {' in all, '.join(hours)} of processors"
    out.print(stages)
    headings = ("run", "seeds", "seconds in all", "of processors")
    runs = _table("Time of trainings (of the jobs' last runs)", headings)
    for run, seeds, seconds, processors in training_times(folder):
        runs.add_row(run, str(seeds), f"{seconds:.1f}", f"{processors:.1f}")
    if runs.row_count:
        out.print(runs)


def _table(title: str, headings: tuple[str, ...]) -> Table:
    table = Table(title=title)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place else "left", overflow="fold")
    return table


if __name__ == "__main__":
    with one_line_errors():
        main()
