"""Settings that methods which contrast dropout views share."""

from collections.abc import Iterator
from typing import Annotated, ClassVar

from pydantic import Field

from workflow_scripts.settings.methods import TrainingMethod
from workflow_scripts.settings.start import Start


class Contrasting(TrainingMethod):
    """Settings of a method that contrasts views, of one encoder or of several."""

    temperature: float = Field(gt=0, le=1, description="Softmax temperature; 0.05 in the paper.")
    matryoshka: tuple[Annotated[int, Field(gt=0)], ...] = Field(
        default=(),
        description="Widths: so many first entries of a vector are contrasted too, beside all of them.",
    )

    @property
    def keeps_contrasted(self) -> bool:
        """Whether what is contrasted is what is read at test."""
        return True

    def conflicts(self) -> Iterator[str]:
        """Each width counts once, and first entries are those of an embedding."""
        yield from super().conflicts()
        if len({*self.matryoshka}) < len(self.matryoshka):
            yield f"matryoshka: {[*self.matryoshka]}. Give each width once."
        if self.matryoshka and not self.keeps_contrasted:
            found = "given; what orders the entries, a head, is dropped at test"
            yield f"matryoshka: {found}. Set head_at_test: true, or take a readout without a head."

    def misfits(self, start: Start) -> Iterator[str]:
        """Two views of a sentence differ; what a run's model drops is what it was trained with."""
        yield from super().misfits(start)
        if (
            self.dropout is None
            and start.members is None
            and any(size.drops is False for size in start.sizes)
        ):
            yield f"method.dropout: null; {start.encoder} drops nothing of its own. Give a number."
        for width in start.widths[:1]:
            if max(self.matryoshka, default=0) > width:
                found = f"{max(self.matryoshka)}; {start.encoder} is {width} wide"
                yield f"method.matryoshka: {found}. Lower it."


class Contrastive(Contrasting):
    """Settings of a contrastive method of one encoder."""

    reducible: ClassVar[bool] = True

    head_at_test: bool = Field(description="Whether the MLP head is part of the embedding at test.")

    @property
    def keeps_contrasted(self) -> bool:
        """Without a head, or with one that stays."""
        return self.head_at_test or not self.readout.has_head
