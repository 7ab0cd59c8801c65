"""Blocks of ``encoders``: those that are fetched, adapted, or made of runs."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from workflow_scripts.config import OPERATIONAL, Settings
from workflow_scripts.settings.datasets import Below, Local, Packaged, Pinned, Sha256


class _Source(Settings):
    sha256: dict[str, Sha256] | None = Field(
        default=None,
        description="Hash of each file to take, by its name; null takes every file that a loader reads.",
    )


class EncoderFolder(_Source):
    """A folder on this machine."""

    path: Below


class LocalEncoder(EncoderFolder, Local):
    """A folder below the data root."""


class PackageEncoder(EncoderFolder, Packaged):
    """A folder in an installed Python package."""


class HubEncoder(_Source, Pinned):
    """A repository of the Hugging Face Hub at one commit."""

    kind: Literal["hub"]


EncoderSource = Annotated[LocalEncoder | PackageEncoder | HubEncoder, Field(discriminator="kind")]


class Fetch(Settings):
    """Settings that decide which encoder is fetched."""

    sources: list[EncoderSource] = Field(min_length=1)
    label: str | None = Field(
        default=None, description="Substitution to print, where this encoder is used in place of another."
    )


class EncoderBlock(Fetch):
    """A block of ``encoders`` that is fetched, not trained here."""

    licence: str = Field(json_schema_extra=OPERATIONAL)
    size: Literal["base", "large", "huge"] = Field(
        default="base",
        description="As BERT-base or smaller, as BERT-large, or billions of parameters: what its jobs ask a queue for.",
        json_schema_extra=OPERATIONAL,
    )


class Sizes(Settings):
    """Sizes of an encoder that starts from random weights."""

    layers: int = Field(gt=0)
    width: int = Field(gt=0, description="Of the hidden states; a multiple of the heads.")
    heads: int = Field(gt=0, description="Of attention, each of width divided by their number.")
    feed_forward: int = Field(gt=0, description="Width within a layer's feed-forward part.")

    def conflicts(self) -> Iterator[str]:
        """The heads share the width."""
        if self.width % self.heads:
            yield f"width: {self.width} is not a multiple of the {self.heads} heads. Make it one."
