"""The ledger of printed numbers: each has a run of ours that stands for it, or a written reason why none does.

The numbers are the rows of ``resources/published/*.csv``. A row says where its counterpart is by ``grid``, ``run`` and
``heading``: a cell of the grid's table; ``figure: <name>`` as the heading, a point of one of its figures; ``setting:
<name>``, a setting of the run. ``resources/ledger/<paper>.yaml`` has the reasons of the other rows, and the panels of
figures with theirs.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import yaml
from pydantic import Field, model_validator

from workflow_scripts.config import Settings
from workflow_scripts.errors import DataError
from workflow_scripts.graph.runs import paper_of
from workflow_scripts.reporting.published import Printed

FIGURE = "figure: "
SETTING = "setting: "
"""Beginnings of headings that are no columns of a table."""

PAPERS = {
    "s2sent": "S2Sent",
    "layerattpooler": "LayerAttPooler",
    "three_r": "3R",
    "jtcse": "JTCSE",
    "extraction": "Extracting Sentence Embeddings",
}
"""Names of the five papers' files, and the papers."""

Kind = Literal["no weights", "not built", "not described", "not legible", "no result"]
"""Why a number has no run. ``no weights``: a model that only its authors have; ``not built``: what it takes is known,
and this project lacks it; ``not described``: the text does not say what was done; ``not legible``: the text at hand
does not tell which cell a number belongs to; ``no result``: nothing that a run could give, as a judgement of people."""

Target = tuple[str, str, str]
"""Grid, run and heading."""


class Reason(Settings):
    """Why some cells of one table have no run: those that have all the names that are given."""

    table: str
    group: str | None = Field(default=None, description="null for any.")
    row: str | None = Field(default=None, description="null for any.")
    column: str | None = Field(default=None, description="null for any.")
    kind: Kind
    reason: str = Field(min_length=10, description="One sentence.")

    def covers(self, cell: Printed) -> bool:
        """Whether the reason is one for this cell."""
        wanted = {name: getattr(self, name) for name in ("table", "group", "row", "column")}
        return all(value in (None, getattr(cell, name)) for name, value in wanted.items())


class Panel(Settings):
    """One panel of a printed figure: the figure of a grid that shows the same, or why there is none."""

    figure: str = Field(description="As the paper numbers it.")
    panel: str = Field(description="What it shows.")
    grid: str | None = Field(default=None, description="Or extraction.")
    drawn: str | None = Field(default=None, description="Name of the grid's figure; table for its table.")
    kind: Kind | None = None
    reason: str | None = None

    @model_validator(mode="after")
    def _is_drawn_or_has_a_reason(self) -> "Panel":
        if [bool(self.grid), bool(self.drawn)] != [not (self.kind and self.reason)] * 2:
            raise ValueError(f"{self.figure}, {self.panel}: give grid and drawn, or kind and reason")
        return self


class Ledger(Settings):
    """What ``resources/ledger/<paper>.yaml`` holds."""

    reasons: list[Reason]
    panels: list[Panel]


class Line(NamedTuple):
    """One line of the overview: how many numbers a table prints, and what has become of them."""

    paper: str
    name: str
    printed: int
    mapped: int
    """With a counterpart."""
    measured: tuple[int, ...]
    """Whose counterpart has a value, for each of some studies."""
    reasons: Mapping[str, int]
    """Without a counterpart, by the kind of reason."""


def read_ledger(content: str, place: str) -> Ledger:
    """The reasons and panels of one paper.

    Raises:
        ConfigError: if a block is malformed.
    """
    return Ledger.parse(yaml.safe_load(content), place)


def reasons_of(cells: Iterable[Printed], reasons: Sequence[Reason]) -> dict[Printed, Reason]:
    """The reason of each cell that has no counterpart.

    Raises:
        DataError: at the first cell with neither or with both, or the first reason that no cell needs.
    """
    found: dict[Printed, Reason] = {}
    for cell in cells:
        given = [reason for reason in reasons if reason.covers(cell)]
        if cell.target is None and not given:
            raise DataError(f"{cell}: has neither a run nor a reason. Name one in the table or the ledger.")
        if cell.target and given:
            raise DataError(f"{cell}: has a run and a reason, {given[0].reason!r}. Remove one.")
        if given:
            found[cell] = given[0]
    for reason in reasons:
        if reason not in found.values():
            raise DataError(
                f"ledger: {reason.table}: no cell without a run needs {reason.reason!r}. Remove it."
            )
    return found


def lines(
    cells: Sequence[Printed], ledgers: Mapping[str, Ledger], measured: Sequence[set[Target]]
) -> list[Line]:
    """The overview: a line for each table of each paper, one for its figures, and one for all of it.

    Args:
        cells: Printed numbers; those of other files than the papers' are left out.
        ledgers: Reasons and panels of each paper.
        measured: For each study that is asked for, the counterparts that have a value there. That of a panel has an
            empty run.

    Raises:
        DataError: as ``reasons_of``, or at a table whose name does not say its number.
    """
    found = []
    for paper in PAPERS:
        ours = [cell for cell in cells if paper_of(cell.table) == paper]
        reasons = reasons_of(ours, ledgers[paper].reasons)
        tables = sorted({cell.table for cell in ours}, key=_number)
        of_paper = [
            _of_cells(paper, table, [cell for cell in ours if cell.table == table], reasons, measured)
            for table in tables
        ]
        of_paper.append(_of_panels(paper, ledgers[paper].panels, measured))
        found += [*of_paper, total(of_paper[:-1], paper)]
    return found


def total(parts: Sequence[Line], paper: str) -> Line:
    """The sum of some lines; figures are counted apart, since their panels are no numbers."""
    reasons = sum((Counter(part.reasons) for part in parts), Counter[str]())
    measured = tuple(map(sum, zip(*(part.measured for part in parts), strict=True)))
    return Line(
        paper,
        "all",
        sum(part.printed for part in parts),
        sum(part.mapped for part in parts),
        measured,
        reasons,
    )


def _number(table: str) -> tuple[str, int]:
    named = re.fullmatch(r".+_(table|figure)(\d+)", table)
    if not named:
        raise DataError(f"{table}.csv: its name does not end in _table or _figure and a number. Rename it.")
    return named[1], int(named[2])


def _of_cells(
    paper: str,
    table: str,
    cells: Sequence[Printed],
    reasons: Mapping[Printed, Reason],
    measured: Sequence[set[Target]],
) -> Line:
    kind, number = _number(table)
    targets = [cell.target for cell in cells if cell.target]
    return Line(
        paper,
        f"{'Table' if kind == 'table' else 'text of Figure'} {number}",
        len(cells),
        len(targets),
        tuple(sum(_shown(target) in values for target in targets) for values in measured),
        Counter(reasons[cell].kind for cell in cells if cell in reasons),
    )


def _shown(target: Target) -> Target:
    """What has to be there for a number to be measured: a cell, or the whole figure that shows it."""
    grid, _, heading = target
    return (grid, "", heading.removeprefix(FIGURE)) if heading.startswith(FIGURE) else target


def _of_panels(paper: str, panels: Sequence[Panel], measured: Sequence[set[Target]]) -> Line:
    drawn = [(panel.grid, "", panel.drawn) for panel in panels if panel.grid and panel.drawn]
    return Line(
        paper,
        "panels of figures",
        len(panels),
        len(drawn),
        tuple(sum(target in values for target in drawn) for values in measured),
        Counter(panel.kind for panel in panels if panel.kind),
    )


def targets_in(rows: Iterable[Mapping[str, object]], grid: str) -> Iterator[Target]:
    """The cells of a table that have a value (rows with at least run, heading and mean)."""
    for row in rows:
        if row["mean"] not in (None, ""):
            yield grid, str(row["run"]), str(row["heading"])
