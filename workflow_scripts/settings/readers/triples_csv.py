"""Options of reader triples_csv."""

from typing import ClassVar

from pydantic import Field

from workflow_scripts.settings.readers import ReaderConfig


class Config(ReaderConfig):
    """Triples as comma-separated values with quotes and a header, plain text or gzip."""

    forms: ClassVar[tuple[str, ...]] = ("triples",)
    roles: ClassVar[tuple[str, ...]] = ("triples",)

    anchor: str = Field(description="Column of the sentence.")
    positive: str = Field(description="Column of the sentence with the same meaning.")
    negative: str | None = Field(description="Column of the hard negative; None if the file has none.")
