"""Section ``extraction.averages``."""

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.names import Sentences
from workflow_scripts.settings.precision import Precision


class Averages(Settings):
    """The corpus that is averaged over, and how it is batched."""

    dataset: Sentences = Field(description="Dataset of the form sentences.")
    max_sentences: int | None = Field(gt=0, description="Use the first so many sentences; null for all.")
    max_tokens: int = Field(gt=2, description="Longer sentences are truncated; [CLS] and [SEP] count.")
    block: int = Field(gt=0, description="Sentences that are batched together by length.")
    precision: Precision
    label: str | None = Field(
        description="Substitution to print, where the corpus stands in for Wikitext-103."
    )
