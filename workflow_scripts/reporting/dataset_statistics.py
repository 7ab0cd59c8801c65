"""Statistics of datasets: rows, classes, balance, vocabulary, lengths (extraction study, Tables 2 and 3).

The study does not describe its "plain word tokenisation". ASSUME: for datasets that are already tokenised, words are
separated by spaces (``whitespace`` gives exactly the vocabularies that Table 2 prints for biomedical and googleTS);
elsewhere, texts are lower-cased and punctuation marks are words (``marks_apart``), which comes within 6% of Table 3.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from workflow_scripts.columns.corpora import PAIRS
from workflow_scripts.columns.tables import TABLE
from workflow_scripts.errors import ConfigError
from workflow_scripts.reporting.cells import Values, cell
from workflow_scripts.reporting.extraction_tables import Numbers
from workflow_scripts.reporting.published import look_up
from workflow_scripts.settings.extraction.statistics import DIGITS, Row, Statistics

Tokenise = Callable[[list[str]], Iterable[Sequence[str]]]


def build(
    table: Statistics,
    datasets: Mapping[str, pa.Table],
    pieces: Tokenise,
    labels: Sequence[str],
    printed: Numbers,
) -> pa.Table:
    """Describe the dataset of every row, in the columns of ``columns.tables.TABLE``.

    Args:
        table: The datasets to describe.
        datasets: Scored pairs or labelled texts, by name; an empty one is a gap.
        pieces: Splits texts into the encoder's pieces.
        labels: Labels of substitutions that affect the pieces.
        printed: The paper's numbers.

    Raises:
        ConfigError: if a dataset lacks the split of a row.
    """
    cells = [
        one
        for row in table.rows
        for one in _cells(row, _rows_of(row, datasets[row.dataset]), pieces, labels, printed)
    ]
    return pa.Table.from_pylist(cells, schema=TABLE)


def _cells(
    row: Row, rows: pa.Table, pieces: Tokenise, labels: Sequence[str], printed: Numbers
) -> Iterable[dict[str, Any]]:
    values = describe(rows, row.graded, row.words, pieces) if len(rows) else {}
    for heading, digits in DIGITS.items():
        found = {0: values[heading]} if heading in values else {}
        yield cell(
            ", ".join(filter(None, (row.name, row.split))),
            heading,
            Values(found, len(rows), () if found else (_gap(row, heading),)),
            {"suite": "statistics", "task": row.dataset, "aggregation": row.split, "metric": heading}
            | {"scale": 1.0, "digits": digits},
            labels if heading.split(",")[0].endswith("B") else (),
            look_up(printed, row.split, row.name, heading),
        )


def _gap(row: Row, heading: str) -> str:
    return "grades, no classes" if heading == "C" and row.graded else "no source of the dataset is available"


def _rows_of(row: Row, table: pa.Table) -> pa.Table:
    if not row.split or "split" not in table.column_names:
        return table
    found = table.filter(pa.compute.equal(table["split"], row.split))
    if len(table) and not len(found):
        known = ", ".join(sorted(set(map(str, table["split"].to_pylist()))))
        raise ConfigError(
            f"{row.name}: dataset {row.dataset} has no split {row.split}; has {known}. Name one."
        )
    return found


def describe(table: pa.Table, graded: bool, words: str, pieces: Tokenise) -> dict[str, float]:
    """The statistics of one dataset by column; the sentences of a pair count as one text.

    Args:
        table: Columns of ``columns.corpora.PAIRS`` or ``columns.corpora.LABELLED``; at least one row.
        graded: Whether the score or label is a grade.
        words: How texts are split into words.
        pieces: How they are split into pieces.
    """
    first, second, label = (
        ("sentence1", "sentence2", "score") if table.schema.equals(PAIRS) else ("text1", "text2", "label")
    )
    texts = [
        " ".join(filter(None, pair))
        for pair in zip(*(table[n].to_pylist() for n in (first, second)), strict=True)
    ]
    counts = Counter(table[label].to_pylist())
    found = {
        "N": float(len(texts)),
        "L/S": end_ratio(table[label]) if graded else max(counts.values()) / min(counts.values()),
    }
    if not graded:
        found["C"] = float(len(counts))
    for mark, tokens in (("W", [WORDS[words](text) for text in texts]), ("B", pieces(texts))):
        found |= token_numbers(list(tokens), mark)
    return found


WORDS: dict[str, Callable[[str], list[str]]] = {
    "whitespace": str.split,
    "marks_apart": lambda text: re.findall(r"\w+|[^\w\s]", text.lower()),
}


def end_ratio(grades: pa.ChunkedArray) -> float:
    """Number of grades within one point of the highest, divided by the number within one point of the lowest."""
    values_N = np.asarray(grades.cast(pa.float64()))
    return float((values_N >= values_N.max() - 1).sum() / (values_N <= values_N.min() + 1).sum())


def token_numbers(texts: Sequence[Sequence[str]], mark: str) -> dict[str, float]:
    """Number of distinct tokens, tokens per text, and the percentage of tokens that consist of letters only."""
    counts = Counter(chain.from_iterable(texts))
    tokens = counts.total()
    letters = sum(count for token, count in counts.items() if token.isalpha())
    return {
        f"vocabulary {mark}": float(len(counts)),
        f"tokens {mark}": tokens / len(texts),
        f"alphabetic {mark}, %": 100 * letters / tokens,
    }
