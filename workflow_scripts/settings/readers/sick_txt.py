"""Options of reader sick_txt."""

from typing import ClassVar, Literal

from pydantic import Field

from workflow_scripts.settings.readers import PARTS, ReaderConfig


class Config(ReaderConfig):
    """SICK as released: tab-separated pairs of sentences with a relatedness score and an entailment judgement."""

    forms: ClassVar[tuple[str, ...]] = ("pairs", "labelled")
    roles: ClassVar[tuple[str, ...]] = PARTS
    all_roles: ClassVar[bool] = False

    target: Literal["relatedness", "graded", "entailment"] = Field(
        description="relatedness returns scored pairs (1 to 5), graded the same score as a label, "
        "entailment the judgement as a label."
    )
