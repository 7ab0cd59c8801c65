"""Options of reader class_files."""

from typing import ClassVar

from workflow_scripts.settings.readers import ReaderConfig


class Config(ReaderConfig):
    """One file per class, one text per line: MR, CR, SUBJ and MPQA as distributed with SentEval."""

    forms: ClassVar[tuple[str, ...]] = ("labelled",)
