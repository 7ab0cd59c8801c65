"""Selections from tables: several joined to one, rows sorted by a column, some of the columns, and the best values.

Tables are joined by runs and headings. A heading of two tables is one column if both show a score of the same task. If
a run has two different values in one column, either the run has a row for each table, or the heading a column for each.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Literal, NamedTuple, TypeVar

from workflow_scripts.columns import TABLE
from workflow_scripts.errors import DataError, advice
from workflow_scripts.reporting.cells import Row, number
from workflow_scripts.reporting.sheets import Sheet
from workflow_scripts.settings.suites import direction_of

T = TypeVar("T")
By = Literal["run", "heading"]
"""The unique names of a joined table: its runs (rows) or its headings (columns)."""

_CONTENT = ("task", "aggregation", "metric", "scale")
"""Keys that identify the quantity of a cell; suites of two studies may have different names."""
_VALUES = ("mean", "sd", "seeds", "n", "repeats", "values", "note")
_COMPARED = ("baseline", "difference", "p_value", "detectable")
_OTHER_BASELINES = "difference left out: the joined tables compare this run with different runs"


# Joining


class _Names(NamedTuple):
    """New names of the runs and headings of one table; unchanged names are left out."""

    runs: Mapping[str, str]
    headings: Mapping[str, str]

    def run(self, name: str) -> str:
        return self.runs.get(name, name)

    def heading(self, name: str) -> str:
        return self.headings.get(name, name)


def join(sheets: Mapping[str, Sheet], by: By) -> Sheet:
    """Return one table with all runs and all headings of several tables.

    Args:
        sheets: The tables, by a distinct text for each.
        by: Whether runs or headings stay unique if values differ.

    Returns:
        One table. Cells that no table has are empty.
    """
    tables = sheets.values()
    headings = _differing(map(_contents, tables), lambda left, right: not left & right)
    runs = set[str]()
    if by == "heading":
        of_runs = (_values(sheet, "run", "heading", headings) for sheet in tables)
        runs = _with_baselines(sheets, _differing(of_runs, _contradict))
    else:
        of_headings = (_values(sheet, "heading", "run") for sheet in tables)
        headings |= _differing(of_headings, _contradict)
    names = {
        label: _Names(
            {run: f"{run} ({label})" for run in runs},
            {heading: f"{heading} ({label})" for heading in headings},
        )
        for label in sheets
    }
    rows = _joined_rows(sheets, names)
    alike = _named_alike(sheets)
    shown = {
        new: f"{seen} ({label})" if new != old else seen
        for label, sheet in reversed([*sheets.items()])
        for old, new in _renamed(sheet, names[label])
        for seen in [old if old in alike else sheet.named(old)]
    }
    of_heading = {
        names[label].heading(heading): heading
        for heading in dict.fromkeys(heading for sheet in tables for heading in sheet.headings)
        for label, sheet in sheets.items()
        if heading in sheet.headings
    }
    alphas = [sheet.alpha for sheet in sheets.values() if sheet.alpha]
    return Sheet(
        name="_".join(dict.fromkeys(sheet.name for sheet in sheets.values())),
        title="; ".join(dict.fromkeys(sheet.title for sheet in sheets.values())),
        source="; ".join(dict.fromkeys(sheet.source for sheet in sheets.values())),
        alpha=min(alphas, default=0.0),
        settings=", ".join(dict.fromkeys(sheet.settings for sheet in sheets.values())),
        rows=rows,
        headings=[*of_heading],
        shown=shown,
        trained={
            names[label].run(run): text
            for label, sheet in sheets.items()
            for run, text in sheet.trained.items()
        },
        of_heading=of_heading,
    )


def _renamed(sheet: Sheet, names: _Names) -> Iterable[tuple[str, str]]:
    """Yield each run and heading of a table with its new name."""
    yield from ((run, names.run(run)) for run in dict.fromkeys(row["run"] for row in sheet.rows))
    yield from ((heading, names.heading(heading)) for heading in sheet.headings)


def _differing(facts: Iterable[Mapping[str, T]], differ: Callable[[T, T], bool]) -> set[str]:
    """Return the names whose facts differ between at least two tables."""
    return {
        name
        for left, right in combinations([*facts], 2)
        for name in left.keys() & right.keys()
        if differ(left[name], right[name])
    }


def _contents(sheet: Sheet) -> dict[str, set[str]]:
    """Return the quantities that each heading of a table shows."""
    contents = defaultdict[str, set[str]](set)
    for row in sheet.rows:
        contents[row["heading"]].add(repr([row[key] for key in _CONTENT]))
    return contents


def _values(sheet: Sheet, key: str, other: str, apart: Collection[str] = ()) -> dict[str, dict[str, str]]:
    """Return the values of each run by heading, or of each heading by run, without the headings of ``apart``.

    The run with which a run is compared is its value under an empty heading.
    """
    values = defaultdict[str, dict[str, str]](dict)
    for row in sheet.rows:
        if row["heading"] not in apart:
            values[row[key]][row[other]] = repr([row[column] for column in _VALUES])
        if key == "run" and row["baseline"]:
            values[row[key]][""] = row["baseline"]
    return values


def _contradict(left: Mapping[str, str], right: Mapping[str, str]) -> bool:
    """Return whether two tables have different values for the same key."""
    return any(left[key] != right[key] for key in left.keys() & right.keys())


def _with_baselines(sheets: Mapping[str, Sheet], runs: set[str]) -> set[str]:
    """Return runs, and all runs that are compared with them, directly or through others."""
    compared = {(row["run"], row["baseline"]) for sheet in sheets.values() for row in sheet.rows}
    linked = set(runs)
    while more := {run for run, baseline in compared if baseline in linked} - linked:
        linked |= more
    return linked


def _named_alike(sheets: Mapping[str, Sheet]) -> set[str]:
    """Return runs whose display name is that of another run; they keep their identifiers."""
    by_name = defaultdict[str, set[str]](set)
    for sheet in sheets.values():
        for row in sheet.rows:
            by_name[sheet.named(row["run"])].add(row["run"])
    return {run for runs in by_name.values() if len(runs) > 1 for run in runs}


def _joined_rows(sheets: Mapping[str, Sheet], names: Mapping[str, _Names]) -> list[Row]:
    """Return the cells of all tables under their new names; equal cells once, with what any of their tables says."""
    cells: dict[tuple[str, str], Row] = {}
    baselines = defaultdict[str, set[str]](set)
    for label, sheet in sheets.items():
        new = names[label]
        for row in sheet.rows:
            key = new.run(row["run"]), new.heading(row["heading"])
            baseline = row["baseline"] and new.run(row["baseline"])
            labels = {*row["labels"], *(cells[key]["labels"] if key in cells else ())}
            named = {"run": key[0], "heading": key[1], "baseline": baseline, "labels": sorted(labels)}
            known = {name: value for name, value in cells.get(key, {}).items() if value is not None}
            cells[key] = row | known | named
            baselines[key[0]] |= {baseline} if baseline else set()
    runs, headings = (dict.fromkeys(parts) for parts in zip(*cells, strict=True))
    empty: Row = dict.fromkeys(TABLE.names) | {"labels": []}
    rows = []
    for run, heading in product(runs, headings):
        cell = cells.get((run, heading), empty | {"run": run, "heading": heading})
        several, only = len(baselines[run]) > 1, min(baselines[run], default=None)
        rows.append(_without_difference(cell) if several else cell | {"baseline": only})
    return rows


def _without_difference(row: Row) -> Row:
    """Return a cell without its comparison; if it had one, with the reason in the note."""
    notes = [row["note"], _OTHER_BASELINES if row["difference"] is not None else None]
    return row | dict.fromkeys(_COMPARED) | {"note": "; ".join(filter(None, notes)) or None}


# Choosing


def with_columns(sheet: Sheet, wanted: Sequence[str]) -> Sheet:
    """Return a table with only the columns of ``wanted`` that it has, in that order, and the runs that have a cell."""
    names = column_names(sheet)
    kept = dict.fromkeys(heading for name in wanted for heading in names.get(name, ()))
    rows = [row for row in sheet.rows if row["heading"] in kept]
    having = {row["run"] for row in rows if row["seeds"] is not None}
    return replace(sheet, rows=[row for row in rows if row["run"] in having], headings=[*kept])


def in_order(sheet: Sheet, column: str, *, reverse: bool) -> Sheet:
    """Return a table with its best runs first, by one of its columns; runs without a value are last."""
    heading = column_names(sheet)[column][0]
    cells = {row["run"]: row for row in sheet.rows if row["heading"] == heading and row["mean"] is not None}
    sign = {run: -1 if (direction(row) >= 0) != reverse else 1 for run, row in cells.items()}
    ranked = sorted(cells, key=lambda run: sign[run] * cells[run]["mean"])
    others = [run for run in _runs(sheet) if run not in cells]
    return replace(sheet, rows=_run_by_run(sheet.rows, [*ranked, *others]))


def first(sheet: Sheet, count: int) -> Sheet:
    """Return a table with its first ``count`` runs, and the columns in which they have a cell."""
    rows = _run_by_run(sheet.rows, _runs(sheet)[:count])
    having = {row["heading"] for row in rows if row["seeds"] is not None}
    headings = [heading for heading in sheet.headings if heading in having]
    return replace(sheet, rows=[row for row in rows if row["heading"] in having], headings=headings)


def without_notes(sheet: Sheet) -> Sheet:
    """Return a table whose cells have no note and no label."""
    return replace(sheet, rows=[row | {"note": None, "labels": []} for row in sheet.rows])


def check_columns(sheets: Iterable[Sheet], wanted: Iterable[str], option: str) -> None:
    """Raise DataError unless each name is a column of at least one table.

    Raises:
        DataError: with the most similar name.
    """
    known = {name: None for sheet in sheets for name in column_names(sheet)}
    for name in wanted:
        if name not in known:
            raise DataError(f"{option} {name}: no such column. {advice(name, known)}")


def column_names(sheet: Sheet) -> dict[str, list[str]]:
    """Return the headings of each name of columns; several if joined tables have columns of one name."""
    headings = defaultdict[str, list[str]](list)
    for heading in sheet.headings:
        old = sheet.of_heading.get(heading, heading)
        for name in dict.fromkeys([sheet.named(old), old, sheet.named(heading), heading]):
            headings[name].append(heading)
    return headings


def _runs(sheet: Sheet) -> list[str]:
    return [*dict.fromkeys(row["run"] for row in sheet.rows)]


def _run_by_run(rows: Iterable[Row], runs: Iterable[str]) -> list[Row]:
    of_run = defaultdict[str, list[Row]](list)
    for row in rows:
        of_run[row["run"]].append(row)
    return [row for run in runs for row in of_run[run]]


# The best


def direction(row: Row) -> int:
    """Return 1 if higher values of a cell are better, -1 if lower ones are, and 0 if neither is."""
    return 0 if row["metric"] is None else direction_of(row["suite"], row["aggregation"], row["metric"])


def best(sheet: Sheet) -> frozenset[tuple[str, str]]:
    """Return the cells with the best value of their column, by run and heading; all cells that are printed alike.

    Cells are compared if they show the same score of the same number of texts. A cell without another to compare it
    with is not the best. Neither is a cell of a measure without a better end.
    """
    groups = defaultdict[tuple[object, ...], list[Row]](list)
    for row in sheet.rows:
        if row["mean"] is not None and direction(row):
            groups[row["heading"], *(row[key] for key in _CONTENT), row["n"]].append(row)
    cells = set[tuple[str, str]]()
    for rows in groups.values():
        top = _printed(max(rows, key=lambda row: direction(row) * row["mean"]))
        cells |= {(row["run"], row["heading"]) for row in rows if len(rows) > 1 and _printed(row) == top}
    return frozenset(cells)


def _printed(row: Row) -> str:
    return number(row["mean"], row["digits"])
