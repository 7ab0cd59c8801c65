"""The ledger of printed numbers: each has a run of ours that stands for it, or a written reason why none does.

The numbers are the rows of ``resources/published/*.csv``. A row says where its counterpart is by ``grid``, ``run`` and
``heading``: a cell of the grid's table; ``figure: <name>`` as the heading, a point of one of its figures; ``setting:
<name>``, a setting of the run. ``resources/ledger/<paper>.yaml`` has the reasons of the other rows, and the panels of
figures with theirs.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import yaml
from pydantic import Field, model_validator

from workflow_scripts.config import Settings
from workflow_scripts.data.printed import Printed
from workflow_scripts.errors import DataError
from workflow_scripts.settings.grids import paper_of

FIGURE = "figure: "
"""Beginning of a heading that is a figure, and no column of a table."""

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
        names = ("table", "group", "row", "column")
        return all(getattr(self, name) in (None, getattr(cell, name)) for name in names)


class Panel(Settings):
    """One panel of a printed figure: the figure of a grid that shows the same, or the reason why none does."""

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


class Coverage(Settings):
    """Contents of ``resources/ledger/<paper>.yaml``."""

    reasons: list[Reason]
    panels: list[Panel]


class Line(NamedTuple):
    """One line of the overview: how many numbers a table prints, and what has become of them."""

    paper: str
    name: str
    printed: int
    mapped: int
    """With a counterpart."""
    measured: int
    """Whose counterpart has a value."""
    reasons: Mapping[str, int]
    """Without a counterpart, by the kind of reason."""


def read_ledger(content: str, place: str) -> Coverage:
    """The reasons and panels of one paper.

    Raises:
        ConfigError: if a block is malformed.
    """
    return Coverage.parse(yaml.safe_load(content), place)


def reasons_of(cells: Iterable[Printed], reasons: Sequence[Reason]) -> dict[Printed, Reason]:
    """The reason of each cell that has no counterpart.

    Raises:
        DataError: at the first cell with neither or with both, or the first reason that no cell needs.
    """
    given = {cell: [reason for reason in reasons if reason.covers(cell)] for cell in cells}
    for cell, some in given.items():
        if bool(some) == bool(cell.target):
            both, neither = "a run and a reason, {!r}. Remove", "neither a run nor a reason. Name"
            found = both.format(some[0].reason) if some else neither
            raise DataError(f"{cell}: has {found} one in the table or the ledger.")
    needed = {cell: some[0] for cell, some in given.items() if some}
    for reason in reasons:
        if reason not in needed.values():
            unneeded = f"no cell without a run needs {reason.reason!r}"
            raise DataError(f"ledger: {reason.table}: {unneeded}. Remove it.")
    return needed


def lines(
    cells: Sequence[Printed], ledgers: Mapping[str, Coverage], measured: Collection[Target]
) -> list[Line]:
    """The overview: a line for each table of each paper, one for its figures, and one for all of its tables.

    Args:
        cells: Printed numbers; those of other files than the papers' are left out.
        ledgers: Reasons and panels of each paper.
        measured: The counterparts that have a value. That of a panel has an empty run.

    Raises:
        DataError: as ``reasons_of``, or at a table whose name does not say its number.
    """
    outcomes: dict[tuple[str, str], list[tuple[Kind | None, Target]]] = defaultdict(list)
    for paper, ledger in ledgers.items():
        ours = [cell for cell in cells if paper_of(cell.table) == paper]
        kinds = {cell: reason.kind for cell, reason in reasons_of(ours, ledger.reasons).items()}
        for cell in sorted(ours, key=_place):
            kind, number = _place(cell)
            name = f"Table {number}" if kind == "table" else f"text of Figure {number}"
            outcomes[paper, name].append((kinds.get(cell), _shown(cell)))
        outcomes[paper, "panels of figures"] = [
            (panel.kind, (str(panel.grid), "", str(panel.drawn))) for panel in ledger.panels
        ]
        outcomes[paper, "all"] = [(kinds.get(cell), _shown(cell)) for cell in ours]
    return [
        Line(
            paper,
            name,
            printed=len(found),
            mapped=sum(kind is None for kind, _ in found),
            measured=sum(target in measured for _, target in found),
            reasons=Counter(kind for kind, _ in found if kind),
        )
        for (paper, name), found in outcomes.items()
    ]


def _place(cell: Printed) -> tuple[str, int]:
    """Whether a number is in a table or in the text of a figure, and the number of that."""
    named = re.fullmatch(r".+_(table|figure)(\d+)", cell.table)
    if not named:
        raise DataError(
            f"{cell.table}.csv: its name does not end in _table or _figure and a number. Rename it."
        )
    return named[1], int(named[2])


def _shown(cell: Printed) -> Target:
    """The cell, or the whole figure, without which a number is not measured."""
    run = "" if cell.heading.startswith(FIGURE) else cell.run
    return cell.grid, run, cell.heading.removeprefix(FIGURE)


def targets_in(rows: Iterable[Mapping[str, object]], grid: str) -> set[Target]:
    """The cells of a table that have a value (rows with at least run, heading and mean)."""
    return {(grid, str(row["run"]), str(row["heading"])) for row in rows if row["mean"] not in (None, "")}
