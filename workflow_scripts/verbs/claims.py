"""Print a study's verdicts on the papers' claims, with the numbers of both.

The claims are the tables of config/claims. --markdown prints tables of Markdown.

  python -m workflow_scripts claims jtcse --study results/demo
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from workflow_scripts.columns import CLAIMS, NOT_RUN
from workflow_scripts.errors import DataError, advice, refuse
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.reporting.cells import brief, level_text, p_text, printed_sides
from workflow_scripts.reporting.records import record_of
from workflow_scripts.settings.grids import PAPERS
from workflow_scripts.settings.report import CLAIMS_FOLDER
from workflow_scripts.verbs.printing import Answer, PrintedTable, Row, argument, markdown_table
from workflow_scripts.verbs.records import missing_study, study_folder

_FILE = "claims.parquet"
VERDICTS = ("supported", "contradicted", "undecided", NOT_RUN)


def verdicts(study: Path, papers: Sequence[str]) -> list[Row]:
    """Return the verdicts of a study on the claims of the given papers, or of all papers.

    Raises:
        ConfigError: if the study compares no claim of a given paper.
        DataError: if the folder has no table of claims, or a damaged one.
    """
    if not study.is_dir():
        raise missing_study(study)
    file = study / _FILE
    if not file.is_file():
        problem = f"no file {file}; the study is unfinished, or claims.papers of its configuration is empty"
        raise DataError(f"--study {study}: {problem}. Give the folder of a finished study, results/<study>.")
    rows = read_table(file, CLAIMS).to_pylist()
    compared = sorted({row["paper"] for row in rows})
    refuse(
        f"{paper}: {study} compares none of its claims. {advice(paper, compared)}"
        for paper in papers
        if paper not in compared
    )
    return [row for row in rows if not papers or row["paper"] in papers]


def counted(rows: Sequence[Row]) -> list[Row]:
    """Return the number of verdicts of each kind, for each paper and in total."""
    names = PAPERS | {row["paper"]: row["paper"] for row in rows if row["paper"] not in PAPERS}
    groups = {name: [row for row in rows if row["paper"] == paper] for paper, name in names.items()}
    groups = {name: group for name, group in groups.items() if group}
    if len(groups) > 1:
        groups["all"] = [*rows]
    counts = {name: Counter(row["verdict"] for row in group) for name, group in groups.items()}
    return [
        {"paper": paper} | {kind: of_paper[kind] for kind in VERDICTS} for paper, of_paper in counts.items()
    ]


def compared(rows: Sequence[Row], alpha: float) -> list[Row]:
    """Return rows with the paper's numbers next to those of the study, and their interval of level 1 - ``alpha``."""
    return [
        {
            "paper": f"{PAPERS.get(row['paper'], row['paper'])}, {row['place']}",
            "claim": row["says"],
            "printed": printed_sides(row),
            f"here: difference ({level_text(alpha)})": _here(row),
            "p / corrected": " / ".join(p_text(row[p]) for p in ("p_value", "corrected_p")),
            "verdict": row["verdict"],
        }
        for row in rows
        if row["verdict"] != NOT_RUN
    ]


def _here(row: Row) -> str:
    """Return the study's measurement as the text of a cell."""
    sides = f"{brief(row['ours'])} against {brief(row['theirs'])}"
    if row["low"] is None or row["high"] is None:
        repeated = f"{row['n']} {row['over']}, too few for an interval" if row["over"] else "nothing repeated"
        return f"{sides}; {repeated}"
    interval = f"{brief(row['low'])} to {brief(row['high'])}"
    return f"{sides}: {brief(row['difference'])} ({interval}), {row['n']:,} {row['over']}"


def left_out(rows: Sequence[Row]) -> list[Row]:
    """Return rows of the claims that were not compared, one for each reason."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if row["verdict"] == NOT_RUN:
            by_reason[row["reason"]].append(f"{row['paper']}.{row['claim']}")
    return [{"reason": why, "claims": ", ".join(claims)} for why, claims in by_reason.items()]


ARGUMENTS = (
    argument(
        "papers",
        nargs="*",
        metavar="PAPER",
        help=f"tables in {CLAIMS_FOLDER}, such as jtcse; default: all",
    ),
    argument(
        "--study", type=study_folder, required=True, help="folder of a study's results, such as results/demo"
    ),
    argument("--markdown", action="store_true", help="print tables of Markdown"),
)


def answer(papers: list[str], study: Path, markdown: bool) -> Answer:
    """Return a study's verdicts on the papers' claims."""
    rows = verdicts(study, papers)
    alpha = record_of(study / _FILE).settings["significance"]["alpha"]
    counts, here = counted(rows), compared(rows, alpha)
    if markdown:
        return Answer(parts=["\n".join(map(markdown_table, (counts, here))).rstrip()])
    return Answer(
        parts=[
            PrintedTable("claims", rows, shown=here),
            PrintedTable("not run", [], shown=left_out(rows)),
            PrintedTable("verdicts", counts),
        ]
    )
