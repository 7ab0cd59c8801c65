"""Overlap of each evaluation set with the training text, exact or nearly so.

Two texts match exactly if they have the same characters. They match normalised if they are equal after Unicode
normalisation (NFKC), case folding, and removal of punctuation, symbols and white space. White space is removed because
tokenised and natural forms of a sentence differ in it (``do n't``, ``don't``). Characters between two digits become one
space, which keeps ``1 5.`` apart from ``15``. A text without a letter or digit, such as a blank line, matches nothing.

A text is contained if its words, at least five, are consecutive words of a training text. Words are compared after
normalisation, so ``do n't`` is not found in ``I don't know what to say.`` Vowel signs and accents belong to their word.

ASSUME: In scripts that put no space between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese) every letter counts as
a word. Without this, a sentence would be one word, and never be contained.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping

import pyarrow as pa

from workflow_scripts.columns import CONTAMINATION
from workflow_scripts.data.tables import TEXT_COLUMNS, read_dataset_table, texts_of
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.report import Contamination as Config

_BETWEEN_DIGITS = re.compile(r"(?<=\d)[\W_]+(?=\d)")
_ACCENT = re.compile(r"(?<=\s)[\u0300-\u036f]+")
"""Pattern of accents without a letter, such as U+00B4 for an apostrophe: NFKC writes it as a space and an accent."""
_MIN_WORDS = 5  # of a contained text; shorter sequences occur by chance
_UNSPACED = re.compile("CJK (UNIFIED|COMPATIBILITY) IDEOGRAPH|HIRAGANA|KATAKANA|THAI|LAO|KHMER|MYANMAR")
"""Beginnings of the names of letters in scripts without spaces between words."""


class _Replacements(dict[int, str | None]):
    """A table for ``str.translate``; the replacement of a character is computed when it is first met."""

    def __init__(self, replace: Callable[[str], str]) -> None:
        super().__init__()
        self._replace = replace

    def __missing__(self, code: int) -> str | None:
        self[code] = replacement = self._replace(chr(code)) or None  # None is faster than an empty text
        return replacement


def _is_hidden(character: str) -> bool:
    """Return whether a character only changes the form of others, such as a joiner, a soft hyphen or a keycap."""
    is_selector = "VARIATION SELECTOR" in unicodedata.name(character, "")
    return is_selector or unicodedata.category(character) in ("Cf", "Me")


def _joined(character: str) -> str:
    """Return a letter, digit or mark; an empty text for any other character."""
    return "" if _is_hidden(character) or unicodedata.category(character)[0] in "PSZC" else character


def _separated(character: str) -> str:
    """Return a letter, digit or mark, after a space if it begins a word; a space for a character between words."""
    if _is_hidden(character):
        return ""
    if _UNSPACED.match(unicodedata.name(character, "")) and unicodedata.category(character) == "Lo":
        return f" {character}"
    return _joined(character) or " "


_JOINED, _SEPARATED = _Replacements(_joined), _Replacements(_separated)


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
    return exact(" ".join(part.translate(_JOINED) for part in _BETWEEN_DIGITS.split(_folded(text))))


def _folded(text: str) -> str:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return _ACCENT.sub("", folded)


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
    return tuple(_folded(text).translate(_SEPARATED).split())


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
