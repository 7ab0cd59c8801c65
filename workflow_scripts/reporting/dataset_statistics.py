"""Statistics of datasets: rows, classes, balance, vocabulary, lengths (extraction study, Tables 2 and 3).

The study does not describe its "plain word tokenisation". ASSUME: for datasets that are already tokenised, words are
separated by spaces (``whitespace`` gives exactly the vocabularies that Table 2 prints for biomedical and googleTS); for
other datasets, texts are lower-cased and punctuation marks are words (``marks_apart``), which comes within 6% of Table
3.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from workflow_scripts.columns import PAIRS, TABLE
from workflow_scripts.data.printed import Printed, as_printed, look_up
from workflow_scripts.data.tables import read_dataset_table
from workflow_scripts.errors import ConfigError
from workflow_scripts.models.backbone import load_tokenizer
from workflow_scripts.provenance.job import Job
from workflow_scripts.provenance.record import Label
from workflow_scripts.reporting.cells import CellValues, cell
from workflow_scripts.reporting.records import record_of
from workflow_scripts.settings.extraction import DIGITS, Statistics
from workflow_scripts.settings.extraction import DatasetRow as Row

_WORDS_AND_MARKS = re.compile(r"\w+|[^\w\s]")
Tokenise = Callable[[list[str]], Iterable[Sequence[str]]]


def build(
    table: Statistics,
    datasets: Mapping[str, pa.Table],
    pieces: Tokenise,
    labels: Sequence[Label],
    printed: Mapping[tuple[str, ...], Printed],
) -> pa.Table:
    """Return the statistics of the dataset of every row, in the columns of ``columns.TABLE``.

    Args:
        table: The datasets to describe.
        datasets: Scored pairs or labelled texts, by name; an empty one is a gap.
        pieces: Function that splits texts into the encoder's pieces.
        labels: Labels of substitutions that affect the pieces.
        printed: The paper's numbers.

    Raises:
        ConfigError: if a dataset lacks the split of a row.
    """
    cells = []
    for row in table.rows:
        rows = _rows_of(row, datasets[row.dataset])
        statistics = describe(rows, row.graded, row.words, pieces) if len(rows) else {}
        run, shows = ", ".join(filter(None, (row.name, row.split))), {"suite": "statistics", "scale": 1.0}
        gaps = dict.fromkeys(DIGITS, "no source of the dataset is available")
        gaps |= {"C": "grades, no classes"} if row.graded else {}
        for heading, digits in DIGITS.items():
            by_seed, notes = (
                ({0: statistics[heading]}, ()) if heading in statistics else ({}, (gaps[heading],))
            )
            held = CellValues(by_seed, len(rows), notes)
            shows |= {"task": row.dataset, "aggregation": row.split, "metric": heading, "digits": digits}
            of_pieces = labels if heading.split(",")[0].endswith("B") else ()
            cells.append(
                cell(run, heading, held, shows, of_pieces, look_up(printed, row.split, row.name, heading))
            )
    return pa.Table.from_pylist(cells, schema=TABLE)


def _rows_of(row: Row, table: pa.Table) -> pa.Table:
    if not row.split or "split" not in table.column_names:
        return table
    rows = table.filter(pa.compute.equal(table["split"], row.split))
    if len(table) and not len(rows):
        known = ", ".join(sorted(set(map(str, table["split"].to_pylist()))))
        raise ConfigError(
            f"{row.name}: dataset {row.dataset} has no split {row.split}. Choose one of {known}."
        )
    return rows


def describe(table: pa.Table, graded: bool, words: str, pieces: Tokenise) -> dict[str, float]:
    """Return the statistics of one dataset by column; the sentences of a pair count as one text.

    Args:
        table: Columns of ``columns.PAIRS`` or ``columns.LABELLED``; at least one row.
        graded: Whether the score or label is a grade.
        words: Name of the way to split texts into words.
        pieces: Function that splits texts into the encoder's pieces.
    """
    of_pairs = ("sentence1", "sentence2", "score")
    first, second, label = of_pairs if table.schema.equals(PAIRS) else ("text1", "text2", "label")
    both = zip(table[first].to_pylist(), table[second].to_pylist(), strict=True)
    texts = [" ".join(filter(None, pair)) for pair in both]
    numbers = {"N": float(len(texts))}
    if graded:
        numbers["L/S"] = end_ratio(table[label])
    else:
        counts = Counter(table[label].to_pylist()).values()
        numbers |= {"L/S": max(counts) / min(counts), "C": float(len(counts))}
    of_words = [
        text.split() if words == "whitespace" else _WORDS_AND_MARKS.findall(text.lower()) for text in texts
    ]
    return numbers | token_numbers(of_words, "W") | token_numbers([*pieces(texts)], "B")


def end_ratio(grades: pa.ChunkedArray) -> float:
    """Return the number of grades within a point of the highest, divided by that within a point of the lowest."""
    values_N = np.asarray(grades.cast(pa.float64()))
    return float((values_N >= values_N.max() - 1).sum() / (values_N <= values_N.min() + 1).sum())


def token_numbers(texts: Sequence[Sequence[str]], mark: str) -> dict[str, float]:
    """Return the number of distinct tokens, tokens per text, and the percentage of tokens that are only letters."""
    counts = Counter(chain.from_iterable(texts))
    letters = sum(count for token, count in counts.items() if token.isalpha())
    return {
        f"vocabulary {mark}": float(len(counts)),
        f"tokens {mark}": counts.total() / len(texts),
        f"alphabetic {mark}, %": 100 * letters / counts.total(),
    }


def describe_datasets(job: Job) -> None:
    """Describe the datasets of a study: rows, classes, vocabulary, lengths (rule describe_datasets)."""
    name = job.wildcards["statistics"]
    table = Statistics.parse(job.settings["table"], f"extraction.statistics.{name}")
    tokenizer = load_tokenizer(job.input("encoder").parent)

    names: Any = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))

    def pieces(texts: list[str]) -> Iterable[list[str]]:
        encoded = tokenizer(texts, add_special_tokens=False, verbose=False)
        return ([names[number] for number in ids] for ids in encoded["input_ids"])

    datasets = {path.stem: read_dataset_table(path) for path in job.inputs("datasets")}
    printed = {
        key: number
        for path in job.inputs("published")
        for key, number in as_printed(path.read_bytes(), str(path)).items()
    }
    labels = record_of(job.input("encoder")).labels
    job.write({"cells": build(table, datasets, pieces, labels, printed)})
