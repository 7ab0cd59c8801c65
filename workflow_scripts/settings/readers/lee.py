"""Options of reader lee."""

from typing import ClassVar

from workflow_scripts.settings.readers import ReaderConfig


class Config(ReaderConfig):
    """Lee and Pincombe's 50 news documents with the mean human rating of each of 1,225 pairs."""

    forms: ClassVar[tuple[str, ...]] = ("pairs",)
    roles: ClassVar[tuple[str, ...]] = ("documents", "ratings")
