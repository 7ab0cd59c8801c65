"""Scored pairs in tab-separated columns with a header: subset (optional), score, sentence1, sentence2."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from workflow_scripts.columns.corpora import PAIRS
from workflow_scripts.data.readers.base import Rows
from workflow_scripts.data.text_files import number, read_rows
from workflow_scripts.settings.readers.scored_pairs_tsv import Config


def read(files: Mapping[str, Path], _options: Config) -> Rows:
    """Read the file of role ``pairs``; rows without a score were never judged and are dropped.

    Returns:
        Rows of the form ``pairs``.

    Raises:
        DataError: naming a line with too few cells or a score that is not a number.
    """
    path = files["pairs"]
    dropped: Counter[str] = Counter()
    rows = []
    for line, (score, one, two, subset) in read_rows(path, ("score", "sentence1", "sentence2"), ("subset",)):
        if score:
            judged = number(score, path, line)
            rows.append({"subset": subset, "sentence1": one, "sentence2": two, "score": judged})
        else:
            dropped["no score"] += 1
    return Rows(pa.Table.from_pylist(rows, schema=PAIRS), dropped)
