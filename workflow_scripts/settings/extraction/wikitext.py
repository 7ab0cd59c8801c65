"""Section ``extraction.wikitext``."""

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.names import Sentences


class Wikitext(Settings):
    """The general corpus, which is not one of the tasks."""

    dataset: Sentences = Field(description="Dataset of the form sentences.")
    max_sentences: int | None = Field(gt=1, description="Use the first so many sentences; null for all.")
    max_tokens: int = Field(gt=2, description="Longer sentences are truncated; [CLS] and [SEP] count.")
    label: str | None = Field(
        description="Substitution to print, where the dataset stands in for Wikitext-2."
    )
