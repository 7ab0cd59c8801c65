"""Cells of claims as text, for the page and the terminal."""

from collections.abc import Mapping
from typing import Any

UNPRINTED = "not printed"


def printed_sides(row: Mapping[str, Any]) -> str:
    """A paper's two numbers, of a row of ``columns.claims.CLAIMS``: 78.5 against 76.21."""
    sides = [row["printed_ours"], row["printed_theirs"]]
    if sides == [None, None]:
        return ""
    return " against ".join(UNPRINTED if side is None else f"{side:g}" for side in sides)


def p_text(p: float) -> str:
    """A p-value with two digits that count, or as below a thousandth."""
    return "<.001" if p < 0.001 else f"{p:.2g}".replace("0.", ".", 1)
