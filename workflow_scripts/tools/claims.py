"""Print what the papers claim and what a study says of it: python -m workflow_scripts.tools.claims jtcse.

With --study, the verdicts of a finished study, its results being in a folder such as results/demo; without, the claims
themselves, the paper's numbers and the scales at which each can be tested.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from workflow_scripts.audit.printing import console
from workflow_scripts.columns.claims import CLAIMS, NOT_RUN
from workflow_scripts.errors import ConfigError, one_line_errors
from workflow_scripts.graph.claim_checks import FOLDER
from workflow_scripts.graph.findings import advice
from workflow_scripts.graph.yaml_files import read_yaml
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.reporting.claim_file import ClaimFile, Comparison
from workflow_scripts.reporting.claim_text import p_text, printed_sides
from workflow_scripts.reporting.coverage import PAPERS

_COLOURS = {"supported": "green", "contradicted": "red", "undecided": "yellow", NOT_RUN: "dim"}


def read_claims(papers: Sequence[str]) -> dict[str, ClaimFile]:
    """The claims of some papers, or of all.

    Raises:
        ConfigError: if a paper has no file of claims, or its file is not one.
    """
    known = {file.stem: file for file in sorted((ROOT / FOLDER).glob("*.yaml"))}
    for paper in papers:
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
        table.add_column(heading)
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


def judged(study: Path, papers: Sequence[str]) -> list[Table | Text]:
    """The verdicts of a study, why other claims were not compared, and how many there are of each.

    Raises:
        DataError: if the study has no table of claims.
    """
    rows = read_table(study / "claims.parquet", CLAIMS).to_pylist()
    rows = [row for row in rows if not papers or row["paper"] in papers]
    counts = Counter(row["verdict"] for row in rows)
    shown = [_compared(study, [row for row in rows if row["verdict"] != NOT_RUN])] if len(counts) > 1 else []
    left = [_left_out([row for row in rows if row["verdict"] == NOT_RUN])] if counts[NOT_RUN] else []
    return [*shown, *left, Text(", ".join(f"{counts[verdict]} {verdict}" for verdict in _COLOURS))]


def _compared(study: Path, rows: Sequence[dict[str, Any]]) -> Table:
    table = Table(title=f"What the papers claim, and what {study} says", box=SIMPLE_HEAD)
    for heading in ("paper", "claim", "printed", "verdict", "here"):
        table.add_column(heading)
    for heading in ("p", "corrected"):
        table.add_column(heading, justify="right")
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


def _left_out(rows: Sequence[dict[str, Any]]) -> Table:
    """Claims that were not compared, by the reason."""
    table = Table(title="Not run", box=SIMPLE_HEAD)
    table.add_column("reason")
    table.add_column("claims")
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
    arguments = parser.parse_args()
    files, out = read_claims(arguments.papers), console()
    for part in judged(arguments.study, arguments.papers) if arguments.study else [listed(files)]:
        out.print(part)


if __name__ == "__main__":
    with one_line_errors():
        main()
