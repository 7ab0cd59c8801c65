"""SICK as released: tab-separated pairs of sentences with a relatedness score and an entailment judgement.

Marelli et al. 2014, A SICK cure for the evaluation of compositional distributional semantic models.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from workflow_scripts.columns.corpora import PAIRS
from workflow_scripts.data.readers.base import Rows
from workflow_scripts.data.text_files import labelled, number, parts, read_rows
from workflow_scripts.settings.readers.sick_txt import Config

_COLUMNS = ("sentence_A", "sentence_B", "relatedness_score", "entailment_judgment")


def read(files: Mapping[str, Path], options: Config) -> Rows:
    """Read the parts train, dev (called trial in the release) and test.

    Returns:
        Rows of the form ``pairs`` or ``labelled``.

    Raises:
        DataError: naming a line with too few cells or a score that is not a number.
    """
    rows = [
        (split, path, line, cells)
        for split, path in parts(files)
        for line, cells in read_rows(path, _COLUMNS)
    ]
    if options.target == "entailment":
        judged = ((split, one, two, judgement) for split, _, _, (one, two, _, judgement) in rows)
        return Rows(labelled(judged), Counter())
    scored = [
        (split, one, two, number(score, path, line)) for split, path, line, (one, two, score, _) in rows
    ]
    if options.target == "graded":
        return Rows(labelled((split, one, two, f"{score:g}") for split, one, two, score in scored), Counter())
    pairs = [
        {"subset": "", "sentence1": one, "sentence2": two, "score": score} for _, one, two, score in scored
    ]
    return Rows(pa.Table.from_pylist(pairs, schema=PAIRS), Counter())
