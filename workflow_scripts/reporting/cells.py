"""Cells of all tables: rows of ``columns.TABLE``, and their numbers as text."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from types import MappingProxyType
from typing import Any, NamedTuple

from workflow_scripts.data.printed import Printed
from workflow_scripts.evaluation.significance import summarise
from workflow_scripts.provenance.record import Label

GAP = "gap"
MINUS = "\N{MINUS SIGN}"
Row = dict[str, Any]


class CellValues(NamedTuple):
    """Cell before it is summarised: a value per seed, or per draw, or notes on why it is empty."""

    by_seed: Mapping[int, float]
    n: int
    notes: tuple[str, ...]
    by_task: Mapping[str, float] = MappingProxyType({})
    """Values of the tasks behind a mean over tasks."""


def cell(
    run: str,
    heading: str,
    values: CellValues,
    shows: Mapping[str, Any],
    labels: Iterable[Label] = (),
    printed: Printed | None = None,
) -> Row:
    """Return the row of one cell.

    Args:
        run: The table's row.
        heading: The table's column.
        values: The cell's values.
        shows: Suite, task, aggregation, metric, scale and digits.
        labels: Substitutions that affect it.
        printed: The paper's number.
    """
    summary = summarise(list(values.by_seed.values())) if values.by_seed else None
    return {
        "run": run,
        "heading": heading,
        **shows,
        "mean": summary and summary.mean,
        "sd": summary and summary.sd,
        "seeds": len(values.by_seed),
        "n": values.n,
        "repeats": list(values.by_seed),
        "values": list(values.by_seed.values()),
        "of_tasks": list(values.by_task.values()),
        "published": printed and printed.value,
        "published_source": printed and printed.source,
        "note": "; ".join(values.notes) or None,
        "labels": sorted(map(str, labels)),
    }


def paired(sides: Sequence[Mapping[int, float]], fixed: Sequence[bool]) -> dict[int, tuple[float, float]]:
    """Return the values of two sides by seed; a fixed side has one value, which is compared with each seed's."""
    ours, theirs = sides
    if fixed[1]:
        return {seed: (value, fmean(theirs.values())) for seed, value in ours.items()}
    if fixed[0]:
        return {seed: (fmean(ours.values()), value) for seed, value in theirs.items()}
    return {seed: (ours[seed], theirs[seed]) for seed in ours if seed in theirs}


def text_of(row: Mapping[str, Any], alpha: float) -> Row:
    """Return the texts of one cell; a text without a value is empty.

    Args:
        row: The cell.
        alpha: Level below which a difference has a star.
    """
    digits, p = row["digits"], row["p_value"]
    plain = {"detectable_text": row["detectable"], "paper": row["published"]}
    return {name: "" if value is None else number(value, digits) for name, value in plain.items()} | {
        "score": score_text(row["mean"], row["sd"], digits),
        "difference_text": ""
        if row["difference"] is None
        else number(row["difference"], digits, signed=True),
        "p_text": "" if p is None else p_equation(p),
        "star": "*" if p is not None and p < alpha else "",
    }


def number(value: float, digits: int, *, signed: bool = False) -> str:
    """Return a number with a true minus sign; zero has no sign."""
    rounded = round(value, digits) + 0.0  # -0.0 becomes 0.0
    sign = MINUS if rounded < 0 else "+" if signed and rounded else ""
    return f"{sign}{abs(rounded):.{digits}f}"


def score_text(mean: float | None, sd: float | None, digits: int) -> str:
    """Return mean and standard deviation as text; "gap" without a mean."""
    if mean is None:
        return GAP
    return number(mean, digits) if sd is None else f"{number(mean, digits)} ± {number(sd, digits)}"


def p_text(p: float | None) -> str:
    """Return the p-value of a claim with two significant digits, or as <.001; empty without a test."""
    if p is None:
        return ""
    return "<.001" if p < 0.001 else f"{p:.2g}".replace("0.", ".", 1)


def p_equation(p: float) -> str:
    """Return a p-value of a table in the usual notation, with = or <."""
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".", 1)


def level_text(alpha: float) -> str:
    """Return the level of an interval, one less that of the test, as text: 95%."""
    return f"{100 * (1 - alpha):g}%"


def brief(value: float) -> str:
    """Return a number with two decimals or, if it is small, with two significant digits."""
    return f"{value:.2f}" if abs(value) >= 0.1 or value == 0 else f"{value:.2g}"


def between(values: Sequence[float]) -> str:
    """Return the minimum and maximum of whole numbers as text: 150 to 1,650; empty without numbers."""
    ends = (f"{end:,.0f}" for end in (min(values), max(values))) if values else ()
    return " to ".join(dict.fromkeys(ends))


def printed_sides(row: Mapping[str, Any]) -> str:
    """Return the paper's two numbers in a row of ``columns.CLAIMS`` as text: 78.5 against 76.21."""
    sides = [row["printed_ours"], row["printed_theirs"]]
    if sides == [None, None]:
        return ""
    return " against ".join("not printed" if side is None else f"{side:g}" for side in sides)
