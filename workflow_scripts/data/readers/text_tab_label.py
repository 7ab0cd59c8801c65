"""Lines of a text, a tab and a label, without a header: SST-2 as distributed with SentEval."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from workflow_scripts.data.readers.base import Rows
from workflow_scripts.data.text_files import labelled, parts, read_lines
from workflow_scripts.errors import DataError
from workflow_scripts.settings.readers.text_tab_label import Config


def read(files: Mapping[str, Path], _options: Config) -> Rows:
    """Read the parts train, dev and test.

    Returns:
        Rows of the form ``labelled``.

    Raises:
        DataError: naming a line that is not one text and one label.
    """
    rows = []
    for split, path in parts(files):
        for number, line in enumerate(read_lines(path), start=1):
            text, tab, label = line.partition("\t")
            if not tab or not label.strip() or "\t" in label:
                raise DataError(
                    f"{path}:{number}: {line!r} is not a text, a tab and a label. Download the file again."
                )
            rows.append((split, text.strip(), None, label.strip()))
    return Rows(labelled(rows), Counter())
