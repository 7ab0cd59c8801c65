"""Types of names that users of the configuration choose, and of values that several sections have."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from workflow_scripts.errors import ConfigError, ErrorDetails
from workflow_scripts.settings.base import Settings

Name = Annotated[str, Field(pattern="^[a-z0-9_]+$")]


def _not_blank(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("blank", "must be a text that is not blank")
    return text


Printed = Annotated[str, AfterValidator(_not_blank)]
"""A text that tables or figures print; it must not be blank."""
Defined = str | Annotated[list[str], Field(min_length=1)]
"""The name of a block of the configuration."""
Seed = Annotated[int, Field(ge=0, lt=2**32)]
MaxTokens = Annotated[
    int,
    Field(
        gt=2,
        description="Maximum length of a sentence or text, in tokens with [CLS] and [SEP]; longer ones are "
        "truncated.",
    ),
]
FirstN = Annotated[int | None, Field(gt=0, description="Use the first N sentences or rows; null: all.")]
Substitution = Annotated[
    str | None,
    Field(description="Label printed with every number if this replaces something of a paper; null: none."),
]
SoftmaxTemperature = Annotated[
    float, Field(gt=0, le=1, description="Temperature of the softmax over cosines; 0.05 in the papers.")
]
Setting = Annotated[str, Field(pattern=r"^(method|training)(\.[a-z_]+)+$")]
Place = Annotated[str, Field(pattern=r"^(method|training|exemplars)(\.[a-z_]+)+$")]


@dataclass(frozen=True)
class Refers:
    """Mark of names that refer to blocks of a section; the graph checks these references."""

    section: str
    """Dotted path; ``grid`` is the grid around the name, ``resources`` the folder, ``{}`` the key of a mapping."""
    forms: tuple[str, ...] = ()
    """Accepted forms of the block (``graph.checks``); empty if every form is."""


AnyDataset = Annotated[str, Refers("datasets")]
Pairs = Annotated[str, Refers("datasets", ("pairs",))]
Labelled = Annotated[str, Refers("datasets", ("labelled",))]
Sentences = Annotated[str, Refers("datasets", ("sentences",))]
Texts = Annotated[str, Refers("datasets", ("sentences", "pairs"))]
"""A dataset of which only the texts are read."""
CorpusName = Annotated[Name, Refers("corpora", ("sentences", "round trips"))]
EncoderName = Annotated[Name, Refers("encoders", ("single encoders",))]
Heading = Annotated[str, Refers("grid.headings")]
"""Heading of a column that shows no times."""
Scored = Annotated[str, Refers("grid.scores")]
"""Heading of a column of scores."""
Repeatable = Annotated[str, Refers("grid.scores and means")]
LlmName = Annotated[Name, Refers("llms")]
Measured = Annotated[str, Refers("extraction.measures")]
Represented = Annotated[str, Refers("extraction.representations")]
Weighted = Annotated[str, Refers("extraction.weightings")]
Postprocessed = Annotated[str, Refers("extraction.postprocessings")]
ModelName = Annotated[str, Refers("extraction.models")]


Precision = Annotated[
    Literal["auto", "float32", "bfloat16"],
    Field(
        description="Precision of the encoder's matrix products; auto is bfloat16 on GPUs that support it, else "
        "float32."
    ),
]

SENTENCE = "[X]"
MASK = "[MASK]"


class Template(Settings):
    """One prompt, with the place of the sentence and masks."""

    text: str = Field(description="Exact text of the prompt: [X] once, [MASK] any number of times.")
    add_period: bool = Field(
        description="Whether a full stop is added to sentences without closing punctuation (PromptBERT)."
    )

    def value_errors(self) -> Iterator[ErrorDetails]:
        """Require exactly one place of the sentence."""
        if (times := self.text.count(SENTENCE)) != 1:
            yield ErrorDetails(
                "text", f"the place of the sentence, {SENTENCE}, occurs {times} times", "Write it once."
            )

    @property
    def masks(self) -> int:
        """Return the number of masks."""
        return self.text.count(MASK)

    @property
    def mask_counts(self) -> tuple[int, int]:
        """Return the numbers of masks before and after the sentence."""
        before, after = self.text.split(SENTENCE)
        return before.count(MASK), after.count(MASK)

    def sides(self, mask_token: str | None) -> tuple[str, str]:
        """Return the text before and after the sentence, with the tokeniser's own mask.

        Raises:
            ConfigError: if the template has masks and the tokeniser has none.
        """
        if self.masks and mask_token is None:
            raise ConfigError("templates: the tokeniser has no mask. Choose a template without one.")
        before, after = (part.replace(MASK, mask_token or "") for part in self.text.split(SENTENCE))
        return before, after
