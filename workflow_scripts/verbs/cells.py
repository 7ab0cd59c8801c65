"""Rows of a table, and what in it and in its record says which files they come from.

A table of an experiment names a run, a baseline and a heading, whose suite and task its settings hold; one of the
extraction study names a model, whose representation its settings hold. Any other table is taken at its word: an input
agrees with a row where its wildcards are the values of the columns of the same name.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from workflow_scripts.columns.scores import SCORES
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import identity
from workflow_scripts.settings.grids import scored_columns

_NEXT_COLUMN = re.compile(r",(?=\s*\w+\s*=)")
Row = Mapping[str, Any]
Agrees = Callable[[Mapping[str, str]], bool | None]
"""Whether wildcards agree with the selected rows; None where the rows have no such columns."""


def parse_cell(texts: Iterable[str]) -> dict[str, str]:
    """Read ``column=value`` pairs, separated by commas; a comma that no column follows is part of a value.

    Raises:
        DataError: if one is not a pair, or two are of one column.
    """
    found: dict[str, str] = {}
    for pair in (pair for text in texts for pair in _NEXT_COLUMN.split(text)):
        column, equals, value = pair.partition("=")
        if not equals:
            raise DataError(f"--cell {pair}: no '='. Write column=value, such as run=simcse,task=STS12.")
        if column.strip() in found:
            raise DataError(f"--cell {pair}: a second {column.strip()}. Ask for one value of a column.")
        found[column.strip()] = value.strip()
    return found


def rows_of(path: Path, cell: Mapping[str, str]) -> pa.Table:
    """The rows of a table in which every column of ``cell`` has the wanted value; an empty value means null.

    Raises:
        DataError: if the file is not a table or damaged, a column does not exist, or no row agrees.
    """
    if path.suffix != ".parquet":
        raise DataError(f"{path}: not a table, so it has no cells. Name a .parquet file, or omit --cell.")
    identity(path)
    rows = pq.read_table(path)
    for column, wanted in cell.items():
        if column not in rows.column_names:
            raise DataError(f"{path}: no column {column!r}; it has {rows.column_names}. Correct --cell.")
        present = ["" if value is None else str(value) for value in rows[column].to_pylist()]
        rows = rows.filter(pa.array([value == wanted for value in present]))
        if not rows.num_rows:
            values = ", ".join(sorted(set(present))[:10])
            raise DataError(f"{path}: no row with {column}={wanted}; it has {values}. Correct --cell.")
    return rows


def agreement(rows: Sequence[Row], settings: Mapping[str, Any]) -> Agrees:
    """A test of whether wildcards are those of a file that ``rows`` come from; nulls match anything.

    Args:
        rows: Selected rows of a table.
        settings: Those in the table's record.
    """
    wanted = [
        {key: str(value) for key, value in source.items() if value is not None}
        for row in rows
        for source in _sources(row, settings)
    ]
    names = {name for source in wanted for name in source} | {name for row in rows for name in row}

    def agrees(wildcards: Mapping[str, str]) -> bool | None:
        if not names & wildcards.keys():
            return None
        return any(
            all(wildcards.get(key, value) == value for key, value in source.items()) for source in wanted
        )

    return agrees


def _sources(row: Row, settings: Mapping[str, Any]) -> Iterator[Row]:
    """Wildcards of the files that a row comes from."""
    if "experiment" in settings:
        for run, column in product(_runs(row), _columns(row, settings)):
            # A path of a metric has none.
            scored = {key: column[key] for key in ("suite", "task") if key in column}
            yield {"run": run, **scored}
    elif "names" in settings and "heading" in row:
        representation = _representation(row, settings)
        for task in row["task"].split(", "):
            yield {"representation": representation, "kind": row["suite"], "task": task}
    elif "run" in row:
        yield from ({**row, "run": run} for run in _runs(row))
    else:
        yield row


def _runs(row: Row) -> list[str]:
    """The run of a row, and the one that its difference is to."""
    return [run for run in (row["run"], row.get("baseline")) if run is not None]


def runs_of(rows: Iterable[Row]) -> list[str]:
    """The runs of some rows and of their baselines."""
    return list(dict.fromkeys(run for row in rows if "run" in row for run in _runs(row)))


def _columns(row: Row, settings: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The columns behind a row's heading: several where it is a mean, a ratio or a gain of others."""
    return scored_columns(settings["experiment"]["columns"], row["heading"])


def _representation(row: Row, settings: Mapping[str, Any]) -> str | None:
    """Representation of the model that a cell of the extraction study names as its column, or in its row."""
    models = settings["names"]["models"]
    named = [row["heading"], row["run"], row["run"].rpartition(": ")[2]]
    return next((models[name]["representation"] for name in named if name in models), None)


def scores_behind(
    rows: Sequence[Row], settings: Mapping[str, Any], files: Iterable[str]
) -> list[dict[str, Any]]:
    """Every seed's score that the rows of an experiment's table were computed from, the baseline's last.

    A score is as the table counts it, times the column's scale. A gain is computed from those of the baseline too.

    Args:
        rows: Selected rows of the table.
        settings: Those in the table's record; of other tables there is nothing to tell.
        files: The score files that the rows come from.

    Raises:
        DataError: if one of the files is damaged.
    """
    if "experiment" not in settings:
        return []
    scores = [score for file in files if file.endswith(".parquet") for score in _scores_in(Path(file))]
    found = {
        (run != row["run"], column["heading"], run, score["seed"], _scaled(score, column))
        for row in rows
        for run, column in product(_runs(row), _columns(row, settings))
        for score in scores
        if score["run"] == run
        and all(score[key] == column.get(key) for key in ("suite", "task", "aggregation", "metric"))
    }
    return [
        {
            "heading": heading,
            "of run": run,
            "seed": seed,
            "score": score,
            "whose": "the baseline's" if is_baseline else "the row's own",
        }
        for is_baseline, heading, run, seed, score in sorted(found, key=lambda one: one[:4])
    ]


def _scores_in(file: Path) -> list[dict[str, Any]]:
    """The rows of a table of scores, none of any other."""
    identity(file)
    table = pq.read_table(file)
    return table.to_pylist() if table.column_names == SCORES.names else []


def _scaled(score: Row, column: Mapping[str, Any]) -> float | str:
    return "gap" if score["value"] is None else score["value"] * column["scale"]
