"""Settings that methods which contrast dropout views share."""

from collections.abc import Iterator
from typing import ClassVar

from pydantic import Field

from workflow_scripts.settings.methods import TrainingMethod
from workflow_scripts.settings.start import Start


class Contrasting(TrainingMethod):
    """Settings of a method that contrasts views, of one encoder or of several."""

    temperature: float = Field(gt=0, le=1, description="Softmax temperature; 0.05 in the paper.")

    def misfits(self, start: Start) -> Iterator[str]:
        """Two views of a sentence differ; what a run's model drops is what it was trained with."""
        yield from super().misfits(start)
        if (
            self.dropout is None
            and start.members is None
            and any(size.drops is False for size in start.sizes)
        ):
            yield f"method.dropout: null; {start.encoder} drops nothing of its own. Give a number."


class Contrastive(Contrasting):
    """Settings of a contrastive method of one encoder."""

    reducible: ClassVar[bool] = True

    head_at_test: bool = Field(description="Whether the MLP head is part of the embedding at test.")
