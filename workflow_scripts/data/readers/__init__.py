"""One reader per source format, imported by the name that a dataset's source gives.

A reader module has ``read(files, **options) -> Reading``: files by role in, rows in the columns of
one form (``schemas.FORMS``) out, with a count of what was dropped and why.
"""

from collections import Counter
from typing import NamedTuple

import pyarrow as pa


class Reading(NamedTuple):
    """What a reader made of its files."""

    table: pa.Table
    dropped: Counter[str]
