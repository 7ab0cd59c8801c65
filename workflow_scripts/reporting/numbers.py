"""Numbers as text: signs, digits, deviations and p-values, for tables, claims and the page."""

from collections.abc import Mapping, Sequence
from typing import Any

GAP = "gap"
MINUS = "\N{MINUS SIGN}"


def number(value: float, digits: int, *, signed: bool = False) -> str:
    """A number with a true minus sign; zero has no sign."""
    rounded = round(value, digits) + 0.0  # -0.0 becomes 0.0
    sign = MINUS if rounded < 0 else "+" if signed and rounded else ""
    return f"{sign}{abs(rounded):.{digits}f}"


def score_text(mean: float | None, sd: float | None, digits: int) -> str:
    """Mean and standard deviation; the word gap if there is no mean."""
    if mean is None:
        return GAP
    return number(mean, digits) if sd is None else f"{number(mean, digits)} ± {number(sd, digits)}"


def p_text(p: float | None) -> str:
    """A p-value of a claim with two significant digits, or as <.001; empty where nothing was tested."""
    if p is None:
        return ""
    return "<.001" if p < 0.001 else f"{p:.2g}".replace("0.", ".", 1)


def p_equation(p: float) -> str:
    """A p-value of a table in the usual notation, with = or <."""
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".", 1)


def brief(value: float) -> str:
    """A number with two decimals, or with two significant digits where it is small."""
    return f"{value:.2f}" if abs(value) >= 0.1 or value == 0 else f"{value:.2g}"


def between(values: Sequence[float]) -> str:
    """The lowest and the highest of some whole numbers: 150 to 1,650; empty where there is none."""
    ends = (f"{end:,.0f}" for end in (min(values), max(values))) if values else ()
    return " to ".join(dict.fromkeys(ends))


def printed_sides(row: Mapping[str, Any]) -> str:
    """A paper's two numbers, of a row of ``columns.claims.CLAIMS``: 78.5 against 76.21."""
    sides = [row["printed_ours"], row["printed_theirs"]]
    if sides == [None, None]:
        return ""
    return " against ".join("not printed" if side is None else f"{side:g}" for side in sides)
