"""Settings of the report: the page, tests of differences, shared texts, and claims of papers.

The tables in ``config/claims`` say what each paper claims of its own numbers, and where a study can test it.
"""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from workflow_scripts.errors import ConfigError, Finding, refuse, unknown
from workflow_scripts.settings.base import Settings
from workflow_scripts.settings.names import Name


class Page(Settings):
    """Settings of the page."""

    shows: str | None = Field(description="What the study can show, for readers; null prints nothing.")
    cannot_show: str | None = Field(description="What it cannot show; null prints nothing.")


class Significance(Settings):
    """How differences are tested."""

    alpha: float = Field(gt=0, lt=1, description="Two-sided level of significance.")
    power: float = Field(
        gt=0, lt=1, description="Probability of detecting the minimum detectable difference."
    )
    resamples: int = Field(gt=0, description="Bootstrap samples of a task's pairs.")
    seed: int = Field(ge=0, description="Seed for drawing bootstrap samples.")

    def conflicts(self) -> Iterator[Finding]:
        """A test detects what is there more often than what is not."""
        if self.power <= self.alpha:
            yield Finding(
                "power",
                f"{self.power:g}, not above alpha {self.alpha:g}, which chance alone has",
                f"Give it more than {self.alpha:g}.",
            )


class Contamination(Settings):
    """Settings of the contamination table."""

    examples: int = Field(ge=0, description="Shared texts to list for each task and kind of match.")


# Claims

CLAIMS_FOLDER = "config/claims"
_NOTES = "notes"
"""The table of sentences that others name."""
Expects = Literal["higher", "lower", "same"]
Scale = Literal["paper", "base", "laboratory", "demo"]
_TEXTS, _NUMBERS = ("claim", "place", "says", "expects"), ("margin", "printed_ours", "printed_theirs")
_COMPARED = ("table", "ours", "heading", "theirs", "their_heading", "note")
COLUMNS = (*_TEXTS, *_NUMBERS, *(f"{scale}_{part}" for scale in get_args(Scale) for part in _COMPARED))
"""Columns of a paper's table. A table may leave out a column that is empty in all rows."""


class Claims(Settings):
    """Which claims a study is held to."""

    papers: list[Name] = Field(description="Tables in config/claims; none leaves claims out.")
    scale: Scale = Field(description="Which of the comparisons in these tables are this study's.")


class Comparison(Settings):
    """Two cells of one table that a claim is about."""

    table: Name = Field(description="Grid in config/experiments, or table of the extraction study.")
    ours: str = Field(description="Run, or row of a table of the extraction study.")
    heading: str = Field(description="Its column.")
    theirs: str
    their_heading: str
    note: str = Field(description="In what the comparison departs from the paper's; empty if in nothing.")

    @property
    def cells(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Run and heading of ours and of theirs."""
        return (self.ours, self.heading), (self.theirs, self.their_heading)


Reason = Annotated[str, Field(min_length=10, description="Why it cannot be tested at this scale.")]


class Claim(Settings):
    """One comparative claim, with what it is compared by at the scale of a study."""

    paper: Name
    claim: Name
    place: str = Field(min_length=1, description="Section, table or figure of the paper.")
    says: str = Field(min_length=1, description="What is claimed, in one sentence.")
    expects: Expects = Field(description="What is claimed of ours against theirs.")
    margin: float | None = Field(
        gt=0, description="Largest difference that still counts as the same, in the table's units."
    )
    printed_ours: float | None = Field(description="The paper's number; null where it prints none.")
    printed_theirs: float | None
    compared: Comparison | Reason

    def conflicts(self) -> Iterator[Finding]:
        """A margin is given where sameness is claimed, and nowhere else."""
        if (self.expects == "same") != (self.margin is not None):
            does = "needs" if self.expects == "same" else "reads no"
            yield Finding(
                "margin",
                f"a claim that expects {self.expects} {does} margin",
                "Give one to same, and to no other.",
            )


class Held(Settings):
    """The claims that a study is held to, in the order of their tables."""

    scale: Scale
    claims: list[Claim]


def papers_in(folder: Path) -> list[str]:
    """Papers whose claims have a table in a folder."""
    return sorted(file.stem for file in folder.glob("*.csv") if file.stem != _NOTES)


def claims_in(folder: Path, paper: str, scale: Scale) -> dict[str, dict[str, Any]]:
    """The rows of a paper's table by their places, as ``Claim`` reads them at one scale.

    Raises:
        ConfigError: if a table or a sentence that it names is not there, or a table has other columns.
    """
    notes = {row["note"]: row["text"] for row in _rows(folder / f"{_NOTES}.csv", ("note", "text")).values()}
    found: dict[str, dict[str, Any]] = {}
    for line, row in _rows(folder / f"{paper}.csv", COLUMNS).items():
        place = f"{line} ({row['claim']})"
        named = [name for name in row[f"{scale}_note"].split("; ") if name]
        refuse(unknown(named, notes, f"{place}: {scale}_note"))
        compared = {part: row[f"{scale}_{part}"] for part in _COMPARED}
        compared["theirs"] = compared["theirs"] or compared["ours"]
        compared["their_heading"] = compared["their_heading"] or compared["heading"]
        compared["note"] = "; ".join(notes[name] for name in named)
        said = {name: row[name] for name in _TEXTS} | {name: _value(row[name]) for name in _NUMBERS}
        found[place] = {
            "paper": paper,
            **said,
            "compared": compared if compared["table"] else compared["note"],
        }
    names = [row["claim"] for row in found.values()]
    refuse(
        f"{place}: a second claim of that name. Rename it."
        for place, row in found.items()
        if names.count(row["claim"]) > 1
    )
    return found


def _value(text: str) -> float | str | None:
    """A number, or the text itself if it is not a number, for the check to report."""
    try:
        return float(text) if text else None
    except ValueError:
        return text


def _rows(file: Path, columns: Sequence[str]) -> dict[str, dict[str, str]]:
    """The rows of a table by file and line."""
    place = f"{CLAIMS_FOLDER}/{file.name}"
    with file.open(encoding="utf-8-sig", newline="") as lines:
        reader = csv.DictReader(lines, restval="", strict=True)
        try:
            if not reader.fieldnames:
                raise ConfigError(f"{place}: empty. Write a header, and a row for each claim.")
            refuse(unknown(reader.fieldnames, columns, f"{place}: column"))
            rows = {f"{place}: line {reader.line_num}": row for row in reader}
        except (csv.Error, UnicodeDecodeError) as error:
            raise ConfigError(f"{place}: no CSV in UTF-8: {error}. Save it as one.") from error
    refuse(
        f"{at}: more cells than the header. Quote text with commas."
        for at, row in rows.items()
        if None in row
    )
    return {at: dict.fromkeys(columns, "") | row for at, row in rows.items()}
