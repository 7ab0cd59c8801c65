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
from collections.abc import Collection, Iterable, Mapping

import pyarrow as pa

from workflow_scripts.columns.corpora import CONTAMINATION
from workflow_scripts.data.tables import TEXT_COLUMNS, texts_of

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
    trained = {text for table in training for text in texts_of(table)}
    evaluated = {text for table in evaluation.values() for text in texts_of(table)}
    shared = {
        "exact": {text for text in evaluated & trained if exact(text)},
        "normalised": _alike(evaluated, trained),
        "contained": contained(trained, evaluated),
    }
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


def _alike(evaluated: Iterable[str], trained: Iterable[str]) -> set[str]:
    """Those evaluation texts that are the same as a training text when both are normalised."""
    known = {normalised(text) for text in trained} - {""}
    return {text for text in evaluated if normalised(text) in known}


def contained(trained: Iterable[str], evaluated: Iterable[str]) -> set[str]:
    """Those evaluation texts whose words stand in a row in a training text."""
    by_start: dict[tuple[str, ...], dict[str, tuple[str, ...]]] = defaultdict(dict)
    for text in evaluated:
        words = _words(text)
        if len(words) >= _LEAST_WORDS:
            by_start[words[:_LEAST_WORDS]][text] = words
    found = set()
    for words in map(_words, trained):
        for place in range(len(words) - _LEAST_WORDS + 1):
            looked_for = by_start.get(words[place : place + _LEAST_WORDS], {})
            found |= {
                text for text, other in looked_for.items() if words[place : place + len(other)] == other
            }
    return found


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(_folded(text)))


def _overlap(
    table: pa.Table, found: Collection[str], examples: int
) -> dict[str, int | float | list[str] | None]:
    texts = dict.fromkeys(texts_of(table))
    shared = [text for text in texts if text in found]
    columns = [table[name].to_pylist() for name in TEXT_COLUMNS if name in table.column_names]
    rows = [[text in found for text in row if text is not None] for row in zip(*columns, strict=True)]
    return {
        "texts": len(texts),
        "shared_texts": len(shared),
        "share": len(shared) / len(texts) if texts else None,
        "rows": len(rows),
        "rows_with_any": sum(map(any, rows)),
        "rows_with_all": sum(bool(row) and all(row) for row in rows),
        "examples": shared[:examples],
    }
