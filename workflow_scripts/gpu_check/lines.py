"""A line of the check: what was asked of the card, what was found, and whether that is as it must be."""

from typing import Literal, NamedTuple

Verdict = Literal["holds", "fails", "measured", "not held here"]


class Line(NamedTuple):
    """One line of the table."""

    part: str
    what: str
    found: str
    wanted: str
    verdict: Verdict


def judged(part: str, what: str, found: float, most: float, unit: str = "") -> Line:
    """A line that holds where a number is at most ``most``; NaN fails."""
    verdict: Verdict = "holds" if found <= most else "fails"
    return Line(part, what, f"{found:.3g}{unit}", f"at most {most:g}{unit}", verdict)


def left_open(part: str, what: str, why: str) -> Line:
    """What this machine cannot show."""
    return Line(part, what, "", why, "not held here")
