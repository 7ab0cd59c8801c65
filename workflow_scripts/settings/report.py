"""Settings of the report: the page, tests of differences, shared texts, and claims of papers.

The tables in ``config/claims`` list the claims of each paper about its own numbers, and the cells by which a study
tests them.
"""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from workflow_scripts.errors import ConfigError, ErrorDetails, refuse, unknown
from workflow_scripts.settings.base import Settings
from workflow_scripts.settings.names import Name


class Page(Settings):
    """Settings of the report's page."""

    can_show: str | None = Field(
        description="Text on the page: conclusions that the study allows; null: none."
    )
    cannot_show: str | None = Field(
        description="Text on the page: conclusions that it does not allow; null: none."
    )


class Significance(Settings):
    """Settings of the tests of differences."""

    alpha: float = Field(gt=0, lt=1, description="Two-sided level of significance.")
    power: float = Field(
        gt=0, lt=1, description="Probability of detecting the minimum detectable difference."
    )
    resamples: int = Field(gt=0, description="Number of bootstrap samples of a task's pairs.")
    seed: int = Field(ge=0, description="Seed for drawing bootstrap samples.")

    def value_errors(self) -> Iterator[ErrorDetails]:
        """Require a power above alpha."""
        if self.power <= self.alpha:
            yield ErrorDetails(
                "power",
                f"{self.power:g}, but a test has at least the power alpha, {self.alpha:g}, by chance",
                f"Set it above {self.alpha:g}; 0.8 is usual.",
            )


class Contamination(Settings):
    """Settings of the contamination table."""

    examples: int = Field(
        ge=0, description="Maximum number of shared texts to list for each task and kind of match."
    )


# Claims

CLAIM_FIGURES = "claims"
"""Name in the paths of the figures of claims, where those of a grid have the grid's; so no grid may have it."""
CLAIMS_FOLDER = "config/claims"
_NOTES = "notes"
"""Name of the table of notes, to which the other tables refer."""
Expects = Literal["higher", "lower", "same"]
Scale = Literal["paper", "base", "laboratory", "demo"]
_TEXTS, _NUMBERS = ("claim", "place", "says", "expects"), ("margin", "printed_ours", "printed_theirs")
_COMPARED = ("table", "ours", "heading", "theirs", "their_heading", "note")
COLUMNS = (*_TEXTS, *_NUMBERS, *(f"{scale}_{part}" for scale in get_args(Scale) for part in _COMPARED))
"""Columns of a paper's table. A table may leave out a column that is empty in all rows."""


class Claims(Settings):
    """The claims that a study tests."""

    papers: list[Name] = Field(
        description="Tables in config/claims, without suffix; an empty list tests no claims."
    )
    scale: Scale = Field(description="Scale of the study, which selects the comparisons in these tables.")


class ClaimComparison(Settings):
    """The two cells of one table that a claim compares."""

    table: Name = Field(description="Grid in config/experiments, or table of the extraction study.")
    ours: str = Field(description="Run, or row of a table of the extraction study.")
    heading: str = Field(description="Column of `ours`.")
    theirs: str
    their_heading: str
    note: str = Field(
        description="Difference between this comparison and the paper's; empty if there is none."
    )

    @property
    def cells(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Return run and heading of ours and of theirs."""
        return (self.ours, self.heading), (self.theirs, self.their_heading)


Reason = Annotated[
    str, Field(min_length=10, description="Reason why the claim cannot be tested at this scale.")
]


class Claim(Settings):
    """One comparative claim, with the comparison that tests it at a study's scale."""

    paper: Name
    claim: Name
    place: str = Field(min_length=1, description="Section, table or figure of the paper.")
    says: str = Field(min_length=1, description="The claim in one sentence.")
    expects: Expects = Field(description="Claimed relation of ours to theirs.")
    margin: float | None = Field(
        gt=0, description="Maximum difference that counts as the same, in the table's units."
    )
    printed_ours: float | None = Field(description="The paper's number; null if it prints none.")
    printed_theirs: float | None
    compared: ClaimComparison | Reason

    def value_errors(self) -> Iterator[ErrorDetails]:
        """Require a margin if sameness is claimed, and none otherwise."""
        if (self.expects == "same") != (self.margin is not None):
            does = "needs" if self.expects == "same" else "reads no"
            yield ErrorDetails(
                "margin",
                f"a claim that expects {self.expects} {does} margin",
                "Write a margin above 0." if self.expects == "same" else "Leave the cell empty.",
            )


class StudyClaims(Settings):
    """The claims that a study tests, in the order of their tables."""

    scale: Scale
    claims: list[Claim]


def papers_in(folder: Path) -> list[str]:
    """Return the papers with a table of claims in a folder."""
    return sorted(file.stem for file in folder.glob("*.csv") if file.stem != _NOTES)


def claims_in(folder: Path, paper: str, scale: Scale) -> dict[str, dict[str, Any]]:
    """Return the rows of a paper's table by position, in the form that ``Claim`` reads, for one scale.

    Raises:
        ConfigError: if a table has unknown columns, or refers to an unknown note.
    """
    notes = {row["note"]: row["text"] for row in _rows(folder / f"{_NOTES}.csv", ("note", "text")).values()}
    claims: dict[str, dict[str, Any]] = {}
    for line, row in _rows(folder / f"{paper}.csv", COLUMNS).items():
        position = f"{line} ({row['claim']})"
        named = [name for name in row[f"{scale}_note"].split("; ") if name]
        refuse(unknown(named, notes, f"{position}: {scale}_note"))
        compared = {part: row[f"{scale}_{part}"] for part in _COMPARED}
        compared["theirs"] = compared["theirs"] or compared["ours"]
        compared["their_heading"] = compared["their_heading"] or compared["heading"]
        compared["note"] = "; ".join(notes[name] for name in named)
        said = {name: row[name] for name in _TEXTS} | {name: _value(row[name]) for name in _NUMBERS}
        claims[position] = {
            "paper": paper,
            **said,
            "compared": compared if compared["table"] else compared["note"],
        }
    names = [row["claim"] for row in claims.values()]
    refuse(
        f"{position}: a second claim of that name. Rename it."
        for position, row in claims.items()
        if names.count(row["claim"]) > 1
    )
    return claims


def _value(text: str) -> float | str | None:
    """Return a number, None for an empty text, or the text itself if it is no number, for the check to report."""
    try:
        return float(text) if text else None
    except ValueError:
        return text


def _rows(file: Path, columns: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the rows of a table by file and line."""
    path = f"{CLAIMS_FOLDER}/{file.name}"
    with file.open(encoding="utf-8-sig", newline="") as lines:
        reader = csv.DictReader(lines, restval="", strict=True)
        try:
            if not reader.fieldnames:
                raise ConfigError(f"{path}: empty. Write a header, and a row for each claim.")
            refuse(unknown(reader.fieldnames, columns, f"{path}: column"))
            rows = {f"{path}: line {reader.line_num}": row for row in reader}
        except (csv.Error, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: not CSV in UTF-8: {error}. Save it in this format.") from error
    refuse(
        f"{at}: more cells than the header. Put text with commas into quotation marks."
        for at, row in rows.items()
        if None in row
    )
    return {at: dict.fromkeys(columns, "") | row for at, row in rows.items()}
