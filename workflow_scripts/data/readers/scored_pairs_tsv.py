"""Scored pairs in tab-separated columns with a header: subset (optional), score, sentence1, sentence2."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from workflow_scripts.data.readers import Reading
from workflow_scripts.errors import DataError
from workflow_scripts.schemas import PAIRS


def read(files: Mapping[str, Path]) -> Reading:
    """Read the file of role ``pairs``; rows without a score were never judged and are dropped.

    Raises:
        DataError: naming the line that has too few columns or a score that is no number.
    """
    path = files["pairs"]
    header, *lines = path.read_text("utf-8").removesuffix("\n").split("\n")
    names = header.split("\t")
    dropped: Counter[str] = Counter()
    rows = []
    for number, line in enumerate(lines, start=2):
        cells = line.split("\t")
        if len(cells) != len(names):
            raise DataError(f"{path}:{number}: {len(cells)} columns; the header has {len(names)}. Get the file again.")
        row = dict(zip(names, cells, strict=True))
        if not row["score"]:
            dropped["no score"] += 1
            continue
        try:
            score = float(row["score"])
        except ValueError as error:
            raise DataError(f"{path}:{number}: score {row['score']!r} is no number. Get the file again.") from error
        rows.append((row.get("subset", ""), row["sentence1"], row["sentence2"], score))
    columns = list(zip(*rows, strict=True)) or [()] * len(PAIRS)
    return Reading(pa.table(list(map(list, columns)), schema=PAIRS), dropped)
