"""A label, one space and its text on each line: SST-5, and TREC with labels such as ``NUM:date``."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from workflow_scripts.data.readers import Reading
from workflow_scripts.data.text_files import labelled, parts, read_lines
from workflow_scripts.errors import DataError


def read(files: Mapping[str, Path], *, coarse: bool, remove: str = "") -> Reading:
    """Read the parts train, dev and test.

    Args:
        files: Part to file.
        coarse: Cut the label at its colon.
        remove: Characters to take out of every text, where parts come in different forms.

    Raises:
        DataError: naming the line that has no label and text, or no colon where labels are to be cut.
    """
    gone = str.maketrans("", "", remove)
    rows = []
    for split, path in parts(files):
        for number, line in enumerate(read_lines(path), start=1):
            label, _, text = line.partition(" ")
            if not label or not text.strip() or (coarse and ":" not in label):
                expected = "COARSE:fine, a space" if coarse else "a label, a space"
                raise DataError(
                    f"{path}:{number}: {line!r} is not {expected} and a text. Get the file again."
                )
            rows.append(
                (split, text.translate(gone).strip(), None, label.partition(":")[0] if coarse else label)
            )
    return Reading(labelled(rows), Counter())
