"""Lines of a label, a space and a text: SST-5, and TREC with labels such as ``NUM:date``."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from workflow_scripts.data.readers.base import Rows
from workflow_scripts.data.text_files import labelled, parts, read_lines
from workflow_scripts.errors import DataError
from workflow_scripts.settings.readers.label_space_text import Config


def read(files: Mapping[str, Path], options: Config) -> Rows:
    """Read the parts train, dev and test.

    Returns:
        Rows of the form ``labelled``.

    Raises:
        DataError: naming a line without label and text, or without a colon if ``coarse``.
    """
    gone = str.maketrans("", "", options.remove)
    rows = []
    for split, path in parts(files):
        for number, line in enumerate(read_lines(path, options.otherwise), start=1):
            label, _, text = line.partition(" ")
            if not label or not text.strip() or (options.coarse and ":" not in label):
                expected = "COARSE:fine, a space" if options.coarse else "a label, a space"
                raise DataError(
                    f"{path}:{number}: {line!r} is not {expected} and a text. Download the file again."
                )
            rows.append(
                (
                    split,
                    text.translate(gone).strip(),
                    None,
                    label.partition(":")[0] if options.coarse else label,
                )
            )
    return Rows(labelled(rows), Counter())
