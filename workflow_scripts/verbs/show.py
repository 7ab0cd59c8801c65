"""Print tables or scores: of a study, results/<study>, all tables, or the files that are named.

--csv has the numbers of tables, rounded and without times, or of scores as they are; --markdown and --latex have a
table's cells as they are printed; LaTeX needs booktabs. --beside puts the published scores of a model beside those of
mteb's tasks, where mteb's results are on this machine. Of the laboratory's kept tables (resources/laboratory),
systems are shown beside their baselines, with gains and 95% intervals.

  python -m workflow_scripts show results/demo/tables/demo.parquet --markdown
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import RenderableType

from workflow_scripts.columns.scores import SCORES
from workflow_scripts.columns.tables import TABLE
from workflow_scripts.errors import DataError
from workflow_scripts.evaluation.significance import detectable_difference, half_width
from workflow_scripts.graph.configuration import read_yaml
from workflow_scripts.provenance.artefacts import (
    CHECKSUMMED_SUFFIXES,
    read_seal,
    read_table,
)
from workflow_scripts.reporting.records import record_of
from workflow_scripts.reporting.sheets import (
    Sheet,
    footnotes,
    latex,
    markdown_rows,
    scores_csv,
    scores_shown,
    sheet_of,
    to_csv,
)
from workflow_scripts.verbs.printing import Answer, Row, Rows, argument, markdown_of
from workflow_scripts.verbs.records import study_folder

SYSTEMS = "systems.yaml"
"""In a folder of kept tables: name of a system to its table, run and cost."""
_WHAT = "Give a study, or files of its tables or scores."


def times_of(path: Path) -> Path | None:
    """Where the measured columns of the table at results/<study>/tables/<name>.parquet are; None if it has none."""
    study = path.absolute().parent.parent
    times = study.parent.parent / "benchmarks" / study.name / "tabulate_times" / path.name
    return times if times.exists() else None


def files_of(paths: Iterable[Path]) -> list[Path]:
    """The files that are named; of a study its tables.

    Raises:
        DataError: if a folder has no tables.
    """
    found: list[Path] = []
    for path in paths:
        tables = sorted(path.glob("tables/*.parquet"))
        if path.is_dir() and not tables:
            raise DataError(f"{path}: a folder without tables. {_WHAT}")
        found += tables or [path]
    return found


def holds_scores(path: Path) -> bool:
    """Whether a file holds scores, as one of results/<study>/scores does, and not a table.

    Raises:
        DataError: if it is neither, or damaged.
    """
    if not path.exists():
        raise DataError(f"{path}: no such file or study. Make it: snakemake --cores all --configfile CONFIG.")
    if path.suffix not in CHECKSUMMED_SUFFIXES or read_seal(path) is None:
        raise DataError(f"{path}: cut off, or not written by this pipeline. {_WHAT}")
    found = pq.read_schema(path).remove_metadata() if path.suffix == ".parquet" else None
    if found not in (TABLE, SCORES):
        raise DataError(f"{path}: made by {record_of(path).rule}, neither a table nor scores. {_WHAT}")
    return bool(found == SCORES)


def as_csv(tables: Sequence[Sheet], scores: Sequence[Path]) -> str:
    """All tables, or all scores, as one CSV.

    Raises:
        DataError: if there are both, whose columns differ.
    """
    if tables and scores:
        raise DataError(f"--csv: {scores[0]} holds scores and the others are tables. Ask for one at a time.")
    if scores:
        return scores_csv([read_table(path, SCORES) for path in scores])
    return to_csv(tables)


def systems(folder: Path) -> list[Row]:
    """The systems that a folder of kept tables lists, each with its gain over its own baseline."""
    listed = read_yaml(folder / SYSTEMS)
    tables = {one["table"] for one in listed.values()}
    cells = pd.concat({table: pd.read_csv(folder / f"{table}.csv") for table in tables})
    means = cells[cells["heading"] == "mean"].droplevel(1).set_index("run", append=True)
    names = {one["run"]: name for name, one in listed.items()}
    return [
        {"system": name, **_gain(means.loc[(one["table"], one["run"])], names), "cost": one["cost"]}
        for name, one in listed.items()
    ]


def _gain(row: "pd.Series[Any]", names: Mapping[str, str]) -> Row:
    """A mean over seeds, and its difference to the baseline, paired by seed and not corrected."""
    mean = f"{row['mean']:.2f}" + ("" if pd.isna(row["sd"]) else f" ± {row['sd']:.2f}")
    if pd.isna(row["sd"]) or pd.isna(row["baseline"]):
        return {"mean": mean, "gain (95%)": "", "over": ""}
    # The detectable difference is a multiple of the spread of differences between seeds, which the table has not.
    seeds, difference = int(row["seeds"]), row["difference"]
    spread = row["detectable"] / detectable_difference(1.0, seeds, alpha=0.05, power=0.8)
    reach = half_width(spread, seeds, alpha=0.05)
    gain = f"{difference:+.2f} ({difference - reach:.1f} to {difference + reach:.1f})"
    return {"mean": mean, "gain (95%)": gain, "over": names[row["baseline"]]}


ARGUMENTS = (
    argument("paths", nargs="+", type=study_folder, metavar="PATH", help="results/<study>, tables or scores"),
    *(
        argument(f"--{form}", dest="form", action="store_const", const=form, help=f"print as {form} instead")
        for form in ("csv", "markdown", "latex")
    ),
    argument(
        "--beside",
        action="append",
        default=[],
        metavar="MODEL",
        help="of mteb, as org/model; repeat for more",
    ),
)


def answer(paths: list[Path], form: str | None, beside: list[str]) -> Answer:
    """Every file, one below the other."""
    if len(paths) == 1 and (paths[0] / SYSTEMS).is_file():
        rows = systems(paths[0])
        return Answer(parts=[markdown_of(rows).rstrip() if form == "markdown" else Rows("systems", rows)])
    files = files_of(paths)
    scores = [path for path in files if holds_scores(path)]
    found = [path for path in files if path not in scores]
    tables = [sheet_of(path) for path in found]
    if form == "csv":
        return Answer(parts=[as_csv(tables, scores).rstrip("\n")])
    if form and scores:
        raise DataError(f"{scores[0]}: scores have no cells. Use --csv.")
    if beside and not scores:
        raise DataError(f"{paths[0]}: --beside needs a file of scores of mteb. Name one.")
    data = {one.name: list(one.rows) for one in tables}
    data |= {path.as_posix(): read_table(path, SCORES).to_pylist() for path in scores}
    sheets = [sheet_of(path, times_of(path)) for path in found]
    if form == "markdown":
        documents = [
            "\n- ".join([f"{markdown_of(markdown_rows(sheet))}\n", *footnotes(sheet)]) for sheet in sheets
        ]
        return Answer(parts=documents, data=data)
    if form == "latex":
        calls = [f"python -m workflow_scripts show {quote(str(path))} --latex" for path in found]
        return Answer(parts=list(map(latex, sheets, calls)), data=data)
    parts: list[RenderableType] = [*sheets]
    parts += _scores(scores) if scores else []
    return Answer(parts=[*parts, *([published_scores(scores, beside)] if beside else [])], data=data)


def published_scores(files: Sequence[Path], models: Sequence[str]) -> Rows | str:
    """Main scores of mteb's tasks, and those that models have there; a line where mteb has none at hand."""
    from workflow_scripts.evaluation.benchmarks import published  # imports mteb

    rows = pa.concat_tables([read_table(file, SCORES) for file in files]).to_pylist()
    main = [row for row in rows if row["metric"] == "main_score" and row["value"] is not None]
    parts = {(row["task"], *row["aggregation"].split(":", 1)) for row in main if ":" in row["aggregation"]}
    if not (theirs := published(models, parts)):
        return (
            f"No published scores of {', '.join(models)} on these tasks are in mteb's cache; "
            "python -c 'import mteb; mteb.ResultCache().download_from_remote()' brings them."
        )
    return Rows(
        "published scores",
        [
            {name: row[name] for name in ("task", "run", "seed")}
            | {"ours": row["value"]}
            | {model: theirs.get((model, row["task"])) for model in models}
            for row in main
            if row["aggregation"] == "mean" and row["task"] in {task for task, *_ in parts}
        ],
    )


def _scores(files: Sequence[Path]) -> list[RenderableType]:
    """The scores of all files below each other, and their labels."""
    scores = pa.concat_tables([read_table(path, SCORES) for path in files])
    return scores_shown(scores, [label for path in files for label in record_of(path).labels])
