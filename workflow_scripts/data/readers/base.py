"""The contract of a reader: a file of this folder that turns the files of a source into rows of a form."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from workflow_scripts.settings.readers import ReaderConfig


class Rows(NamedTuple):
    """What a reader made of its files."""

    table: pa.Table
    """In the columns of one form (``columns.corpora.FORMS``), in the order of the files."""

    dropped: Counter[str]
    """Reason to the number of rows that were left out for it; they are listed in the report."""


class Reader(Protocol):
    """A module of this folder; ``reader`` of a source in config/datasets.yaml names it."""

    @property
    def Config(self) -> type[ReaderConfig]:  # noqa: N802
        """The class of its options."""

    def read(self, files: Mapping[str, Path], options: Any) -> Rows:
        """Read the files of a source.

        Args:
            files: Role (the keys of the source's ``files``) to file; their hashes are checked before.
            options: The source's ``options``, as ``Config`` reads them, which is in ``settings/readers``.

        Returns:
            Rows of a form that ``Config`` names.

        Raises:
            DataError: naming file and line, what was found there and what was expected.
        """
