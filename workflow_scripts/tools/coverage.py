"""Print how many of the papers' numbers have a run or a reason, and how many the laboratory has measured. Runs nothing.

Numbers that have neither end it with table, row and column of each.

  python -m workflow_scripts coverage --short
"""

import csv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from workflow_scripts.audit.printing import Answer, Row, Rows, argument
from workflow_scripts.graph.runs import paper_of
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.reporting import coverage
from workflow_scripts.reporting.coverage import Coverage, Line, Target
from workflow_scripts.reporting.published import Printed, read_printed

PUBLISHED = ROOT / "resources/published"
LEDGER = ROOT / "resources/ledger"
LABORATORY = ROOT / "resources/laboratory"


def cells() -> list[Printed]:
    """Every number that the papers print."""
    files = sorted(PUBLISHED.glob("*.csv"))
    found = [cell for file in files for cell in read_printed(file.read_bytes(), file.as_posix())]
    return [cell for cell in found if paper_of(cell.table) in coverage.PAPERS]


def ledgers() -> dict[str, Coverage]:
    """Reasons and panels of each paper."""
    files = {paper: LEDGER / f"{paper}.yaml" for paper in coverage.PAPERS}
    return {paper: coverage.read_ledger(file.read_text("utf-8"), str(file)) for paper, file in files.items()}


def in_laboratory() -> set[Target]:
    """Cells with a value in the committed tables of the laboratory."""
    return {target for file in sorted(LABORATORY.glob("*.csv")) for target in _in_csv(file)}


def _in_csv(file: Path) -> Iterator[Target]:
    """In the CSV, text that a spreadsheet would evaluate starts with an apostrophe."""
    with file.open(encoding="utf-8", newline="") as opened:
        for row in csv.DictReader(opened):
            shown = {key: value.removeprefix("'") for key, value in row.items()}
            yield from coverage.targets_in([shown], row["experiment"])


def overview(lines: Iterable[Line], titles: Mapping[str, str], *, whole: bool) -> list[Row]:
    """A row a table; without ``whole``, one for each paper and its figures."""
    return [
        {
            "paper": titles[line.paper],
            "table": line.name,
            "printed": line.printed,
            "with a run": line.mapped,
            "%": round(100 * line.mapped / line.printed, 1) if line.printed else None,
            "laboratory": line.measured,
            "reasons": ", ".join(f"{kind} {count}" for kind, count in sorted(line.reasons.items())),
        }
        for line in lines
        if whole or line.name in ("all", "panels of figures")
    ]


ARGUMENTS = (argument("--short", action="store_true", help="only what each paper has in all"),)


def answer(short: bool) -> Answer:
    """The ledger, in which every number has a counterpart or a reason."""
    lines = coverage.lines(cells(), ledgers(), in_laboratory())
    rows = overview(lines, coverage.PAPERS, whole=not short)
    return Answer("Every printed number has a run or a reason.", parts=[Rows("printed numbers", rows)])
