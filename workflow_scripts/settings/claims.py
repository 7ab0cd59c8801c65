"""The files in ``config/claims``: what a paper says of its own numbers, and where a study can test it."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.names import Name

Expects = Literal["higher", "lower", "same"]
Scale = Literal["paper", "laboratory", "demo"]


class Config(Settings):
    """Which claims a study is held to."""

    papers: list[Name] = Field(description="Files in config/claims; none leaves claims out.")
    scale: Scale = Field(description="Which of the comparisons in these files are this study's.")


class CellName(Settings):
    """One cell of a table, as its rows and columns name it."""

    run: str = Field(description="Run, or row of a table of the extraction study.")
    heading: str = Field(description="Column.")


class Comparison(Settings):
    """Two cells of one table that a claim is about."""

    table: Name = Field(description="Grid in config/experiments, or table of the extraction study.")
    ours: CellName
    theirs: CellName
    differs: str | None = Field(
        default=None, description="In what the comparison departs from the paper's, if it does."
    )


class Printed(Settings):
    """The paper's two numbers; null where it draws or describes one and does not print it."""

    ours: float | None
    theirs: float | None


Reason = Annotated[str, Field(min_length=10, description="Why it cannot be tested at this scale.")]


class Tested(Settings):
    """Where a claim can be tested, or why not, at each scale."""

    paper: Comparison | Reason
    laboratory: Comparison | Reason
    demo: Comparison | Reason


class Statement(Settings):
    """What is claimed, and the numbers that the paper gives for it."""

    where: str = Field(description="Section, table or figure of the paper.")
    says: str = Field(description="What is claimed, in one sentence.")
    expects: Expects = Field(description="What is claimed of ours against theirs.")
    margin: float | None = Field(
        default=None,
        gt=0,
        description="Largest difference that still counts as the same, in the table's units.",
    )
    printed: Printed

    def conflicts(self) -> Iterator[str]:
        """A margin is given where sameness is claimed, and nowhere else."""
        if (self.expects == "same") != (self.margin is not None):
            does = "needs" if self.expects == "same" else "reads no"
            yield f"margin: a claim that expects {self.expects} {does} margin. Correct it."


class Claim(Statement):
    """One comparative claim."""

    tested: Tested


class HeldClaim(Statement):
    """A claim as a study of one scale is held to it."""

    paper: Name
    name: Name
    compared: Comparison | Reason


class Held(Settings):
    """The claims that a study is held to, in the order of their files."""

    scale: Scale
    claims: list[HeldClaim]


class ClaimFile(Settings):
    """The claims of one paper, by name."""

    claims: dict[Name, Claim] = Field(min_length=1)
