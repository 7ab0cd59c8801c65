"""How much of each evaluation set occurs in the training text, word for word or nearly so.

Two texts match exactly if they have the same characters, and match normalised if they are the same after Unicode
normalisation (NFKC), case folding, and removal of punctuation, symbols and white space. White space is removed
because tokenised and natural forms of a sentence differ in it (``do n't``, ``don't``); what stands between two digits
becomes one space, so that ``1 5.`` is not ``15``. A text without a letter or digit, such as a blank line, matches
nothing.

A text is contained if its words, five at least, stand in a row in a training text that may go on before and after. It
is looked for as normalised words, so that ``do n't`` is not found in ``I don't know what to say.``
"""

import re
import sys
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from workflow_scripts.columns.corpora import CONTAMINATION
from workflow_scripts.data.tables import TEXT_COLUMNS

_NO_WORDS = dict.fromkeys(
    code for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code))[0] in "PSZC"
)
_BETWEEN_DIGITS = re.compile(r"(?<=\d)[\W_]+(?=\d)")
_WORD = re.compile(r"[^\W_]+")
_LEAST_WORDS = 5  # of a text that is looked for in others: fewer occur in a row by chance


def contamination(
    training: Iterable[pa.Table], evaluation: Mapping[str, pa.Table], examples: int
) -> pa.Table:
    """Count the texts and rows of each evaluation set that occur in the training text.

    Args:
        training: Tables whose text columns are trained on, such as ``columns.corpora.SENTENCES``.
        evaluation: Task to a table of scored pairs or labelled texts.
        examples: List at most so many shared texts, the first in the evaluation set.

    Returns:
        Columns of ``columns.corpora.CONTAMINATION``, tasks in the given order. A null or missing second text is
        ignored; a task without texts has a null share.
    """
    tables = list(training)
    shared = {match: _shared(evaluation, _keys(tables, key), key) for match, key in MATCHES.items()}
    shared["contained"] = contained(texts_of_all(tables), texts_of_all(evaluation.values()))
    rows = [
        {"task": task, "match": match, **_overlap(table, found, examples)}
        for task, table in evaluation.items()
        for match, found in shared.items()
    ]
    return pa.Table.from_pylist(rows, schema=CONTAMINATION)


def exact(text: str) -> str:
    """The text itself for an exact match; empty if it has no letter or digit."""
    return text if any(map(str.isalnum, text)) else ""


def normalised(text: str) -> str:
    """What is left of ``text`` for a normalised match; empty if it has no letter or digit."""
    return exact(" ".join(part.translate(_NO_WORDS) for part in _BETWEEN_DIGITS.split(_folded(text))))


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def texts_of_all(tables: Iterable[pa.Table]) -> Iterator[str]:
    """Every distinct text of each column of the tables."""
    columns = (table[name] for table in tables for name in TEXT_COLUMNS if name in table.column_names)
    return (text for column in columns for text in pc.unique(column).to_pylist() if text)


def contained(training: Iterable[str], evaluation: Iterable[str]) -> set[str]:
    """Those evaluation texts whose words stand in a row in a training text."""
    by_start: dict[tuple[str, ...], list[tuple[tuple[str, ...], str]]] = defaultdict(list)
    for text in set(evaluation):
        words = _words(text)
        if len(words) >= _LEAST_WORDS:
            by_start[words[:_LEAST_WORDS]].append((words, text))
    found = set()
    for text in training:
        words = _words(text)
        for place in range(len(words) - _LEAST_WORDS + 1):
            for other, evaluated in by_start.get(words[place : place + _LEAST_WORDS], ()):
                if words[place : place + len(other)] == other:
                    found.add(evaluated)
    return found


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(_folded(text)))


MATCHES: dict[str, Callable[[str], str]] = {"exact": exact, "normalised": normalised}


def _texts(table: pa.Table) -> list[list[str | None]]:
    return [table[name].to_pylist() for name in TEXT_COLUMNS if name in table.column_names]


def _keys(tables: Iterable[pa.Table], key: Callable[[str], str]) -> set[str]:
    return {key(text) for text in texts_of_all(tables)} - {""}


def _shared(evaluation: Mapping[str, pa.Table], trained: set[str], key: Callable[[str], str]) -> set[str]:
    return {text for text in texts_of_all(evaluation.values()) if key(text) in trained}


def _overlap(table: pa.Table, found: set[str], examples: int) -> dict[str, int | float | list[str] | None]:
    columns = _texts(table)
    texts = dict.fromkeys(text for column in columns for text in column if text is not None)
    shared = {text: None for text in texts if text in found}
    rows = [[text in shared for text in row if text is not None] for row in zip(*columns, strict=True)]
    return {
        "texts": len(texts),
        "shared_texts": len(shared),
        "share": len(shared) / len(texts) if texts else None,
        "rows": len(rows),
        "rows_with_any": sum(map(any, rows)),
        "rows_with_all": sum(bool(row) and all(row) for row in rows),
        "examples": list(shared)[:examples],
    }
