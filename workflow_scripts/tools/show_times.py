"""Print the time that each stage of a study took: python -m workflow_scripts.tools.show_times benchmarks/demo."""

import argparse
import csv
from pathlib import Path

from rich.console import Console
from rich.table import Table


def stage_times(folder: Path) -> list[tuple[str, int, float, float]]:
    """Rule, number of jobs, total seconds and largest resident memory in MB, from Snakemake's benchmark files."""
    stages = []
    for rule in sorted(path for path in folder.iterdir() if path.is_dir()):
        rows = [row for file in sorted(rule.rglob("*.tsv")) for row in _rows(file)]
        seconds = sum(float(row["s"]) for row in rows)
        memory = max(
            (float(row["max_rss"]) for row in rows if row["max_rss"] not in ("-", "NA")), default=0.0
        )
        stages.append((rule.name, len(rows), seconds, memory))
    return stages


def _rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t"))


def main() -> None:
    """Read the benchmark files, print one line per rule."""
    parser = argparse.ArgumentParser(prog="python -m workflow_scripts.tools.show_times", description=__doc__)
    parser.add_argument("folder", type=Path, help="benchmarks/<study>")
    table = Table(title="Time and memory by stage (of the jobs' last runs)")
    for heading in ("rule", "jobs", "seconds in all", "largest memory, MB"):
        table.add_column(heading, justify="left" if heading == "rule" else "right")
    for rule, jobs, seconds, memory in stage_times(parser.parse_args().folder):
        table.add_row(rule, str(jobs), f"{seconds:.1f}", f"{memory:.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
