"""Suites of scored pairs."""

from collections.abc import Callable, Sequence
from typing import ClassVar, Literal, Self

from pydantic import Field

from workflow_scripts.settings.suites import Cells, Suite, cells

SENTEVAL = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sick")
"""How the names of its sets begin."""
RELEASED = (
    "STS sentences as released, while the numbers beside them are of SentEval's, lower-cased and tokenised, "
    "which a cased tokeniser sees"
)


class Config(Suite):
    """A suite of scored pairs."""

    form: ClassVar[str] = "pairs"
    scores: ClassVar[Cells] = cells(("all", "wmean", "mean", "subset:*"), ("spearman", "pearson"))

    datasets: list[str] = Field(min_length=1, description="Datasets of the form pairs, one task each.")
    max_tokens: int = Field(
        gt=2, description="Longer sentences are truncated to this many tokens, including [CLS] and [SEP]."
    )
    text: Literal["release", "senteval"] = Field(
        default="release",
        description="Sentences as released, or tokenised and lower-cased as SentEval has them.",
    )

    def labels(self, pieces: Callable[[str], object]) -> Sequence[str]:
        """That a tokeniser sees other words of SentEval's sets than their published numbers are computed on.

        Args:
            pieces: Cuts a text into tokens.
        """
        cased = pieces("Town") != pieces("town")
        of_senteval = any(name.startswith(SENTEVAL) for name in self.datasets)
        return [RELEASED] if cased and of_senteval and self.text == "release" else []

    def of_task(self, task: str) -> Self:
        """What decides the scores of one task: all but the list of others."""
        return self.model_copy(update={"datasets": [task]})
