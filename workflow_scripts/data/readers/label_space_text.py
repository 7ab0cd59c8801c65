"""Lines of a label, a space and a text: SST-5, and TREC with labels such as ``NUM:date``."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from workflow_scripts.data.readers.base import Rows
from workflow_scripts.data.text_files import labelled, parts, read_lines
from workflow_scripts.errors import DataError


def read(files: Mapping[str, Path], *, coarse: bool, remove: str = "", otherwise: str | None = None) -> Rows:
    """Read the parts train, dev and test.

    Args:
        files: Any of ``train``, ``dev`` and ``test``, or ``all`` for the one part of a task without splits.
        coarse: Keep only the part of a label before the colon.
        remove: Characters to remove from every text, where parts are formatted differently.
        otherwise: The encoding of a file that is not UTF-8.

    Returns:
        Rows of the form ``labelled``.

    Raises:
        DataError: naming a line without label and text, or without a colon if ``coarse``.
    """
    gone = str.maketrans("", "", remove)
    rows = []
    for split, path in parts(files):
        for number, line in enumerate(read_lines(path, otherwise), start=1):
            label, _, text = line.partition(" ")
            if not label or not text.strip() or (coarse and ":" not in label):
                expected = "COARSE:fine, a space" if coarse else "a label, a space"
                raise DataError(
                    f"{path}:{number}: {line!r} is not {expected} and a text. Download the file again."
                )
            rows.append(
                (split, text.translate(gone).strip(), None, label.partition(":")[0] if coarse else label)
            )
    return Rows(labelled(rows), Counter())
