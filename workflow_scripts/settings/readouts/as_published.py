"""Settings of an encoder that is read as its authors published it."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from workflow_scripts.settings.readouts import ReadoutConfig
from workflow_scripts.settings.start import Start


class Config(ReadoutConfig):
    """What is not in the encoder's own folder: which of its prompts."""

    kind: Literal["as_published"]
    prompt: str | None = Field(
        description="Name of a published prompt; null for the folder's default, which is mostly none."
    )

    @property
    def needs_frozen(self) -> bool:
        """What follows the encoder was trained with the weights that it has."""
        return True

    def misfits(self, start: Start) -> Iterator[str]:
        """Reasons why the folder cannot be read as it was published."""
        for found in (found for size in start.sizes for found in size.unpublished):
            take = "Take the method frozen_avg or frozen_cls, or another encoder."
            yield f"readout.kind: as_published; {found}. {take}"
