"""Overlap of each evaluation set with the training text, exact or nearly so.

Two texts match exactly if they have the same characters. They match normalised if they are equal after Unicode
normalisation (NFKC), case folding, and removal of punctuation, symbols and white space. White space is removed because
tokenised and natural forms of a sentence differ in it (``do n't``, ``don't``). Characters between two digits become one
space, which keeps ``1 5.`` apart from ``15``. A text without a letter or digit, such as a blank line, matches nothing.

A text is contained if its words, at least five, are consecutive words of a training text. Words are compared after
normalisation, so ``do n't`` is not found in ``I don't know what to say.``
"""

import re
import sys
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

import pyarrow as pa

from workflow_scripts.columns import CONTAMINATION
from workflow_scripts.data.tables import TEXT_COLUMNS, read_dataset_table, texts_of
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.report import Contamination as Config

_NO_WORDS = dict.fromkeys(
    code for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code))[0] in "PSZC"
)
_BETWEEN_DIGITS = re.compile(r"(?<=\d)[\W_]+(?=\d)")
_WORD = re.compile(r"[^\W_]+")
_MIN_WORDS = 5  # of a contained text; shorter sequences occur by chance


def contamination(
    training: Iterable[pa.Table], evaluation: Mapping[str, pa.Table], examples: int
) -> pa.Table:
    """Return counts of the texts and rows of each evaluation set that occur in the training text.

    Args:
        training: Tables of training text, such as ``columns.SENTENCES``.
        evaluation: Tables of scored pairs or labelled texts by task.
        examples: Maximum number of shared texts to list, the first in the evaluation set.

    Returns:
        Columns of ``columns.CONTAMINATION``, tasks in the given order. A null or missing second text is
        ignored; a task without texts has a null share.
    """
    trained = {text for table in training for text in texts_of(table)}
    evaluated = {text for table in evaluation.values() for text in texts_of(table)}
    known = {normalised(text) for text in trained} - {""}
    shared = {
        "exact": {text for text in evaluated & trained if exact(text)},
        "normalised": {text for text in evaluated if normalised(text) in known},
        "contained": contained(trained, evaluated),
    }
    rows = [
        {"task": task, "match": match, **_overlap(table, texts, examples)}
        for task, table in evaluation.items()
        for match, texts in shared.items()
    ]
    return pa.Table.from_pylist(rows, schema=CONTAMINATION)


def exact(text: str) -> str:
    """Return a text for exact comparison; empty if it has no letter or digit."""
    return text if any(map(str.isalnum, text)) else ""


def normalised(text: str) -> str:
    """Return a text in normalised form for comparison; empty if it has no letter or digit."""
    return exact(" ".join(part.translate(_NO_WORDS) for part in _BETWEEN_DIGITS.split(_folded(text))))


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def contained(trained: Iterable[str], evaluated: Iterable[str]) -> set[str]:
    """Return the evaluation texts whose words are consecutive words of a training text."""
    by_start: dict[tuple[str, ...], dict[str, tuple[str, ...]]] = defaultdict(dict)
    for text in evaluated:
        words = _words(text)
        if len(words) >= _MIN_WORDS:
            by_start[words[:_MIN_WORDS]][text] = words
    matches = set()
    for words in map(_words, trained):
        for start in range(len(words) - _MIN_WORDS + 1):
            candidates = by_start.get(words[start : start + _MIN_WORDS], {})
            matches |= {
                text
                for text, sequence in candidates.items()
                if words[start : start + len(sequence)] == sequence
            }
    return matches


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(_folded(text)))


def _overlap(
    table: pa.Table, matches: Collection[str], examples: int
) -> dict[str, int | float | list[str] | None]:
    texts = dict.fromkeys(texts_of(table))
    shared = [text for text in texts if text in matches]
    columns = [table[name].to_pylist() for name in TEXT_COLUMNS if name in table.column_names]
    rows = [[text in matches for text in row if text is not None] for row in zip(*columns, strict=True)]
    return {
        "texts": len(texts),
        "shared_texts": len(shared),
        "share": len(shared) / len(texts) if texts else None,
        "rows": len(rows),
        "rows_with_any": sum(map(any, rows)),
        "rows_with_all": sum(bool(row) and all(row) for row in rows),
        "examples": shared[:examples],
    }


def measure_contamination(job: Job) -> None:
    """Measure how much of the evaluation sets occurs in one corpus (rule measure_contamination)."""
    config = Config.parse(job.settings["contamination"], "contamination")
    train = read_dataset_table(job.input("train"))
    evaluation = {path.stem: read_dataset_table(path) for path in job.inputs("datasets")}
    job.write({"table": contamination([train], evaluation, config.examples)})
