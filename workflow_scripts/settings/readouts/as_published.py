"""Settings of an encoder that is read as its authors published it."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from workflow_scripts.settings.readouts import ReadoutConfig
from workflow_scripts.settings.start import Start, first_token_alone


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
        """The folder is one of sentence-transformers, all that it names is done, and it has the prompt."""
        published = [size.published for size in start.sizes if size.published]
        for one in published:
            yield from one.misfits(self.prompt, start.encoder)
        if any(one.first_token for one in published):
            yield from first_token_alone("readout.kind", start)
