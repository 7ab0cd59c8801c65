"""Whether what the ledger of printed numbers names is there: cells of tables, points of figures, settings of runs."""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

from workflow_scripts.extraction.blocks import names
from workflow_scripts.graph.figures import Figures
from workflow_scripts.graph.study import Study
from workflow_scripts.reporting.coverage import FIGURE, SETTING, Ledger, PrintedCell
from workflow_scripts.reporting.extraction_tables import places
from workflow_scripts.settings.extraction.cells import Names
from workflow_scripts.settings.extraction.statistics import DIGITS, Statistics
from workflow_scripts.settings.extraction.tables import ExtractionTable


def ledger_findings(cells: Iterable[PrintedCell], ledgers: Iterable[Ledger], study: Study) -> Iterator[str]:
    """A line for each printed number and panel whose counterpart is not what it says."""
    figures = Figures(study)
    tables = {**_tables_of_grids(study), **_tables_of_extraction(study.config)}
    for cell in cells:
        if cell.target is None:
            continue
        if cell.heading.startswith(FIGURE):
            yield from _of_figure(cell.grid, cell.heading.removeprefix(FIGURE), figures, str(cell))
        elif cell.heading.startswith(SETTING):
            yield from _of_setting(cell, study)
        elif (cell.run, cell.heading) not in tables.get(cell.grid, ()):
            yield f"{cell}: {cell.grid} has no run {cell.run} or no heading {cell.heading}. Correct the row."
    for ledger in ledgers:
        for panel in ledger.panels:
            if panel.grid and panel.drawn != "table":
                yield from _of_figure(panel.grid, str(panel.drawn), figures, f"{panel.figure}, {panel.panel}")


def _tables_of_grids(study: Study) -> dict[str, set[tuple[str, str]]]:
    """Run and heading of every cell of every grid."""
    return {
        name: {(run, column["heading"]) for run in study.runs_of(name) for column in grid["columns"]}
        for name, grid in study.grids.items()
    }


def _tables_of_extraction(config: dict[str, Any]) -> dict[str, set[tuple[str, str]]]:
    """Run and heading of every cell of the extraction study's tables."""
    found, extraction = {}, config["extraction"]
    for name, block in extraction["tables"].items():
        table = ExtractionTable.parse(block, name)
        shown = places(table, Names.parse(names(config, block), name))
        several = len({place.group for place in shown}) > 1
        found[name] = {
            (f"{place.group}: {place.row}" if several else place.row, place.column) for place in shown
        }
    for name, block in extraction["statistics"].items():
        rows = Statistics.parse(block, name).rows
        runs = [", ".join(filter(None, (row.name, row.split))) for row in rows]
        found[name] = {(run, heading) for run in runs for heading in DIGITS}
    return found


def _of_figure(grid: str, figure: str, figures: Figures, place: str) -> Iterator[str]:
    if grid not in figures.experiments or figure not in figures.of(grid):
        known = ", ".join(figures.of(grid)) if grid in figures.experiments else "no such grid"
        yield f"{place}: {grid} has no figure {figure}; has {known}. Correct the ledger."


def _of_setting(cell: PrintedCell, study: Study) -> Iterator[str]:
    """Whether the run has the printed value."""
    if cell.grid not in study.grids or cell.run not in study.runs_of(cell.grid):
        yield f"{cell}: {cell.grid} has no run {cell.run}. Correct the row."
        return
    value: Any = study.settings(cell.run)
    for key in cell.heading.removeprefix(SETTING).split("."):
        value = value[key]
    if Fraction(str(value)) != Fraction(cell.value):
        yield f"{cell}: {cell.run} has {cell.heading.removeprefix(SETTING)} {value}. Correct the run or the row."
