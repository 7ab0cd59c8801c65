"""Options of reader scored_pairs_tsv."""

from typing import ClassVar

from workflow_scripts.settings.readers import ReaderConfig


class Config(ReaderConfig):
    """Scored pairs in tab-separated columns with a header: subset (optional), score, sentence1, sentence2."""

    forms: ClassVar[tuple[str, ...]] = ("pairs",)
    roles: ClassVar[tuple[str, ...]] = ("pairs",)
