"""How much of each evaluation set occurs in the training text, word for word or nearly so.

Two texts match exactly if they have the same characters, and match normalised if they are the same after Unicode
normalisation (NFKC), case folding, and removal of punctuation, symbols and white space. White space is removed
because tokenised and natural forms of a sentence differ in it (``do n't``, ``don't``). A text without a letter or
digit, such as a blank line, matches nothing.
"""

import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from workflow_scripts.columns.corpora import CONTAMINATION
from workflow_scripts.config import Settings
from workflow_scripts.data.tables import TEXT_COLUMNS

_NO_WORDS = dict.fromkeys(
    code for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code))[0] in "PSZC"
)


class Config(Settings):
    """What a contamination table shows."""

    examples: int = Field(ge=0, description="Shared texts to list for each task and kind of match.")


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
    trained = {match: _keys(tables, key) for match, key in MATCHES.items()}
    rows = [
        {"task": task, "match": match, **_overlap(table, trained[match], key, examples)}
        for task, table in evaluation.items()
        for match, key in MATCHES.items()
    ]
    return pa.Table.from_pylist(rows, schema=CONTAMINATION)


def exact(text: str) -> str:
    """The text itself for an exact match; empty if it has no letter or digit."""
    return text if any(map(str.isalnum, text)) else ""


def normalised(text: str) -> str:
    """What is left of ``text`` for a normalised match; empty if it has no letter or digit."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return exact(folded.translate(_NO_WORDS))


MATCHES: dict[str, Callable[[str], str]] = {"exact": exact, "normalised": normalised}


def _texts(table: pa.Table) -> list[list[str | None]]:
    return [table[name].to_pylist() for name in TEXT_COLUMNS if name in table.column_names]


def _keys(tables: Iterable[pa.Table], key: Callable[[str], str]) -> set[str]:
    columns = (table[name] for table in tables for name in TEXT_COLUMNS if name in table.column_names)
    return {key(text) for column in columns for text in pc.unique(column).to_pylist() if text} - {""}


def _overlap(
    table: pa.Table, trained: set[str], key: Callable[[str], str], examples: int
) -> dict[str, int | float | list[str] | None]:
    columns = _texts(table)
    texts = dict.fromkeys(text for column in columns for text in column if text is not None)
    shared = {text: None for text in texts if key(text) in trained}
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
