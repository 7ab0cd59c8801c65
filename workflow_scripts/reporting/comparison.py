"""The main comparison of a table as a picture: a dot and an interval for each run, the baseline as a line.

The interval of a mean over seeds is Student's, at one less the level of the table's tests; one seed has none.
"""

from collections.abc import Sequence
from math import ceil, floor, log10
from typing import Any, NamedTuple

from workflow_scripts.evaluation.significance import half_width
from workflow_scripts.reporting.cells import Row
from workflow_scripts.reporting.layout import Sheet, number


class Axis(NamedTuple):
    """The numbers at the left and the right end of a picture."""

    low: float
    high: float

    @classmethod
    def over(cls, values: Sequence[float]) -> "Axis":
        """From the least of some values to the greatest, with some air at both ends."""
        low, high = min(values), max(values)
        air = (high - low or 1.0) / 20
        return cls(low - air, high + air)

    def place(self, value: float | None) -> float | None:
        """Where a value is, in percent of the axis from the left."""
        return None if value is None else round(100 * (value - self.low) / (self.high - self.low), 2)

    def ticks(self) -> list[tuple[float | None, str]]:
        """Places and numbers of three to six round values."""
        wanted = (self.high - self.low) / 6
        unit = 10.0 ** floor(log10(wanted))
        step = next(unit * by for by in (1, 2, 5, 10) if unit * by >= wanted)
        numbers = range(ceil(self.low / step), floor(self.high / step) + 1)
        digits = max(0, -floor(log10(step)))
        return [(self.place(count * step), number(count * step, digits)) for count in numbers]


def interval(row: Row, alpha: float) -> tuple[float, float] | None:
    """The ends of the interval of a cell's mean; None where one seed or none has a value."""
    if row["sd"] is None:
        return None
    half = half_width(row["sd"], row["seeds"], alpha)
    return row["mean"] - half, row["mean"] + half


def compare_runs(sheet: Sheet, rows: Sequence[Row]) -> dict[str, Any]:
    """The runs of a table by one of its columns, as the template draws them; empty where no run has a value.

    Args:
        sheet: The table.
        rows: Cells of the column (``columns.tables.TABLE``), a run each, in the order of the table.
    """
    intervals = [interval(row, sheet.alpha) or (row["mean"], row["mean"]) for row in rows]
    values = [value for ends in intervals for value in ends if value is not None]
    if not values:
        return {}
    axis = Axis.over(values + [row["published"] for row in rows if row["published"] is not None])
    column = next(place for place, head in enumerate(sheet.heads) if head.text == rows[0]["heading"])
    base = next((row["mean"] for row in rows if row["run"] == sheet.only_baseline), None)
    return {
        "head": sheet.heads[column],
        "level": f"{1 - sheet.alpha:.0%}",
        "base": axis.place(base),
        "ticks": axis.ticks(),
        "printed": any(row["published"] is not None for row in rows),
        "runs": [
            {
                "line": line,
                "cell": line.cells[column],
                "at": axis.place(row["mean"]),
                "ends": [axis.place(end) for end in ends],
                "printed_at": axis.place(row["published"]),
            }
            for line, row, ends in zip(sheet.lines, rows, intervals, strict=True)
        ],
    }
