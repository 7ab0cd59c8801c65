"""Settings of distillation."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field

from workflow_scripts.settings.methods import TrainingMethod
from workflow_scripts.settings.start import Start


class Config(TrainingMethod):
    """Settings of distillation."""

    has_teacher: ClassVar[bool] = True

    module: Literal["distil"]
    target: Literal["sum", "mean"] = Field(
        description="The teacher's vector, or that over its encoders' number."
    )

    def misfits(self, start: Start) -> Iterator[str]:
        """A teacher's vectors are as wide as the student's."""
        yield from super().misfits(start)
        widths = sorted({size.width for size in start.teacher_sizes})
        if start.widths and widths and widths != start.widths:
            found = (
                f"the vectors of {start.teacher} have {widths[0]} entries, the student's {start.widths[0]}"
            )
            yield f"teacher: {found}. Name another."
