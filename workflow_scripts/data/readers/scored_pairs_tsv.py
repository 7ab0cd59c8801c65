"""Scored pairs in tab-separated columns with a header: subset (optional), score, sentence1, sentence2."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from workflow_scripts.data.readers import Reading
from workflow_scripts.data.text_files import number, read_rows
from workflow_scripts.schemas import PAIRS


def read(files: Mapping[str, Path]) -> Reading:
    """Read the file of role ``pairs``; rows without a score were never judged and are dropped.

    Raises:
        DataError: naming the line that has too few columns or a score that is no number.
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
    return Reading(pa.Table.from_pylist(rows, schema=PAIRS), dropped)
