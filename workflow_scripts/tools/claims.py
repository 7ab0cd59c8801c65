"""Print what the papers claim and what a study says of it: python -m workflow_scripts.tools.claims jtcse.

With --study, the verdicts of a finished study, its results being in a folder such as results/demo, as Markdown with
--markdown; without, the claims themselves, the paper's numbers and the scales at which each can be tested.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from workflow_scripts.audit.printing import console, write
from workflow_scripts.columns.claims import CLAIMS, NOT_RUN
from workflow_scripts.errors import ConfigError, DataError, one_line_errors
from workflow_scripts.graph.claim_checks import FOLDER
from workflow_scripts.graph.findings import advice
from workflow_scripts.graph.yaml_files import read_yaml
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.reporting.claim_file import ClaimFile, Comparison
from workflow_scripts.reporting.claim_text import p_text, printed_sides
from workflow_scripts.reporting.coverage import PAPERS
from workflow_scripts.reporting.verdicts import number

Row = dict[str, Any]
_COLOURS = {"supported": "green", "contradicted": "red", "undecided": "yellow", NOT_RUN: "dim"}


def read_claims(papers: Sequence[str]) -> dict[str, ClaimFile]:
    """The claims of some papers, or of all.

    Raises:
        ConfigError: if a paper has no file of claims, or its file is not one.
    """
    known = {file.stem: file for file in sorted((ROOT / FOLDER).glob("*.yaml"))}
    for paper in papers:
        if paper not in known and Path(paper).is_dir():
            raise ConfigError(f"{paper}: a folder, no paper. Its verdicts: --study {paper}.")
        if paper not in known:
            raise ConfigError(f"{paper}: no file {paper}.yaml in {FOLDER}. {advice(paper, known)}")
    return {
        paper: ClaimFile.parse(read_yaml(file), f"claims/{file.name}")
        for paper, file in known.items()
        if not papers or paper in papers
    }


def listed(files: dict[str, ClaimFile]) -> Table:
    """Claims with the paper's numbers and the table that each is compared in at each scale."""
    table = Table(title="What the papers claim", box=SIMPLE_HEAD)
    for heading in ("paper", "place", "claim", "expects", "printed", "paper scale", "laboratory", "demo"):
        table.add_column(heading, overflow="fold")
    for paper, file in files.items():
        for claim in file.claims.values():
            printed = {"printed_ours": claim.printed.ours, "printed_theirs": claim.printed.theirs}
            tested = [claim.tested.paper, claim.tested.laboratory, claim.tested.demo]
            tables = [one.table if isinstance(one, Comparison) else "-" for one in tested]
            expects = claim.expects if claim.margin is None else f"same, within {claim.margin:g}"
            table.add_row(
                PAPERS.get(paper, paper), claim.where, claim.says, expects, printed_sides(printed), *tables
            )
        table.add_section()
    return table


def verdicts(study: Path, papers: Sequence[str]) -> list[Row]:
    """The verdicts of a study on the claims of some papers, or of all.

    Raises:
        ConfigError: if it is held to no claim of a paper that was asked for.
        DataError: if the folder has no table of claims, or a damaged one.
    """
    file = study / "claims.parquet"
    if not file.is_file():
        raise DataError(
            f"--study {study}: no file {file}. Give the folder of a finished study, results/<study>."
        )
    rows = read_table(file, CLAIMS).to_pylist()
    for paper in papers:
        if not any(row["paper"] == paper for row in rows):
            raise ConfigError(
                f"{paper}: {study} is held to no claim of it. claims.papers of its configuration names others."
            )
    return [row for row in rows if not papers or row["paper"] in papers]


def judged(study: Path, rows: Sequence[Row]) -> list[Table]:
    """The verdicts of a study, why other claims were not compared, and how many there are of each."""
    compared, left = _compared_and_not(rows)
    shown = [_compared(study, compared)] if compared else []
    return [*shown, *([_left_out(left)] if left else []), _counts(rows)]


def as_markdown(rows: Sequence[Row]) -> str:
    """How many verdicts there are of each, and what was compared, as two tables of Markdown."""
    counted = _markdown(
        ["paper", *_COLOURS], [[paper, *map(str, numbers)] for paper, numbers in _counted(rows).items()]
    )
    compared, _left = _compared_and_not(rows)
    cells = [
        [
            f"{PAPERS.get(row['paper'], row['paper'])}, {row['place']}",
            row["says"],
            printed_sides(row),
            _here(row),
            " / ".join("" if row[p] is None else p_text(row[p]) for p in ("p_value", "corrected_p")),
            row["verdict"],
        ]
        for row in compared
    ]
    headings = ["paper", "claim", "printed", "here: difference (95%)", "p / corrected", "verdict"]
    return f"{counted}\n{_markdown(headings, cells)}"


def _markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _here(row: Row) -> str:
    """What was measured, in a cell."""
    sides = f"{number(row['ours'])} against {number(row['theirs'])}"
    if row["low"] is None or row["high"] is None:
        return f"{sides}; nothing repeated"
    interval = f"{number(row['low'])} to {number(row['high'])}"
    return f"{sides}: {number(row['difference'])} ({interval}), {row['n']:,} {row['over']}"


def _compared_and_not(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    compared = [row for row in rows if row["verdict"] != NOT_RUN]
    return compared, [row for row in rows if row["verdict"] == NOT_RUN]


def _counted(rows: Sequence[Row]) -> dict[str, list[int]]:
    """Verdicts of each kind, by paper and of all."""
    of_paper = {paper: Counter(row["verdict"] for row in rows if row["paper"] == paper) for paper in PAPERS}
    counts = {PAPERS[paper]: found for paper, found in of_paper.items() if found}
    counts |= {"all": Counter(row["verdict"] for row in rows)} if len(counts) > 1 else {}
    return {paper: [found[verdict] for verdict in _COLOURS] for paper, found in counts.items()}


def _counts(rows: Sequence[Row]) -> Table:
    table = Table(title="Verdicts", box=SIMPLE_HEAD)
    table.add_column("paper", overflow="fold")
    for verdict, colour in _COLOURS.items():
        table.add_column(verdict, justify="right", style=colour, overflow="fold")
    for paper, numbers in _counted(rows).items():
        table.add_row(paper, *map(str, numbers))
    return table


def _compared(study: Path, rows: Sequence[Row]) -> Table:
    table = Table(title=f"What the papers claim, and what {study} says", box=SIMPLE_HEAD)
    for heading in ("paper", "claim", "printed", "verdict", "here"):
        table.add_column(heading, overflow="fold")
    for heading in ("p", "corrected"):
        table.add_column(heading, justify="right", overflow="fold")
    for row in rows:
        table.add_row(
            f"{PAPERS.get(row['paper'], row['paper'])}, {row['place']}",
            row["says"],
            printed_sides(row),
            Text(row["verdict"], style=_COLOURS[row["verdict"]]),
            row["reason"],
            *("" if row[p] is None else p_text(row[p]) for p in ("p_value", "corrected_p")),
        )
    return table


def _left_out(rows: Sequence[Row]) -> Table:
    """Claims that were not compared, by the reason."""
    table = Table(title="Not run", box=SIMPLE_HEAD)
    table.add_column("reason", overflow="fold")
    table.add_column("claims", overflow="fold")
    by_reason: dict[str, list[str]] = {}
    for row in rows:
        by_reason.setdefault(row["reason"], []).append(f"{row['paper']}.{row['claim']}")
    for why, claims in by_reason.items():
        table.add_row(why, ", ".join(claims))
    return table


def main() -> None:
    """Print the claims, or a study's verdicts on them."""
    parser = argparse.ArgumentParser(
        prog="python -m workflow_scripts.tools.claims",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "papers", nargs="*", metavar="PAPER", help=f"files in {FOLDER}, such as jtcse; all if left out"
    )
    parser.add_argument("--study", type=Path, help="folder of a study's results, such as results/demo")
    parser.add_argument("--markdown", action="store_true", help="print verdicts as tables of Markdown")
    arguments = parser.parse_args()
    if arguments.markdown and not arguments.study:
        raise ConfigError("--markdown: verdicts alone are printed so. Give --study results/<study>.")
    files, out = read_claims(arguments.papers), console()
    rows = verdicts(arguments.study, arguments.papers) if arguments.study else []
    if arguments.markdown:
        write(as_markdown(rows))
        return
    for part in judged(arguments.study, rows) if arguments.study else [listed(files)]:
        out.print(part)


if __name__ == "__main__":
    with one_line_errors():
        main()
