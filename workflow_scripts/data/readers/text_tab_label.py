"""A text, a tab and its label on each line, no header: SST-2 as SentEval keeps it."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from workflow_scripts.data.readers import Reading
from workflow_scripts.data.text_files import labelled, parts, read_lines
from workflow_scripts.errors import DataError


def read(files: Mapping[str, Path]) -> Reading:
    """Read the parts train, dev and test.

    Raises:
        DataError: naming the line that has not one text and one label.
    """
    rows = []
    for split, path in parts(files):
        for number, line in enumerate(read_lines(path), start=1):
            text, tab, label = line.partition("\t")
            if not tab or not label.strip() or "\t" in label:
                raise DataError(
                    f"{path}:{number}: {line!r} is not a text, a tab and a label. Get the file again."
                )
            rows.append((split, text.strip(), None, label.strip()))
    return Reading(labelled(rows), Counter())
