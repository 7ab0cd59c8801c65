"""Settings that methods which contrast dropout views share."""

from collections.abc import Iterator
from typing import ClassVar

from pydantic import Field

from workflow_scripts.settings.methods import ReadingMethod
from workflow_scripts.settings.start import Start


class Contrastive(ReadingMethod):
    """Settings of a contrastive method."""

    columns: ClassVar[tuple[str, ...]] = ("anchor",)
    reducible: ClassVar[bool] = True

    head_at_test: bool = Field(description="Whether the MLP head is part of the embedding at test.")
    temperature: float = Field(gt=0, le=1, description="Softmax temperature; 0.05 in the paper.")
    dropout: float | None = Field(
        ge=0, lt=1, description="Dropout of hidden states and attention; null keeps the model's."
    )

    def misfits(self, start: Start) -> Iterator[str]:
        """Two views of a sentence differ; what a run's model drops is what it was trained with."""
        yield from super().misfits(start)
        if (
            self.dropout is None
            and start.members is None
            and any(size.drops is False for size in start.sizes)
        ):
            yield f"method.dropout: null; {start.encoder} drops nothing of its own. Give a number."
