"""Options of reader text_tab_label."""

from typing import ClassVar

from workflow_scripts.settings.readers import PARTS, ReaderConfig


class Config(ReaderConfig):
    """Lines of a text, a tab and a label, without a header: SST-2 as distributed with SentEval."""

    forms: ClassVar[tuple[str, ...]] = ("labelled",)
    roles: ClassVar[tuple[str, ...]] = PARTS
    all_roles: ClassVar[bool] = False
