"""Lists of the most frequent words of a corpus, without case and punctuation."""

import re
from collections.abc import Iterable

import pyarrow as pa

from workflow_scripts.errors import DataError

_AROUND_WORDS = re.compile(r"^[\W_]+|[\W_]+$")


def spoken(word: str) -> str:
    """Return a word in lower case, without the punctuation around it.

    ASSUME: "The", "the" and "the," are the same word of a list. An uncased tokeniser ignores case, and 3R underlines
    words in its examples regardless of case and punctuation.
    """
    return _AROUND_WORDS.sub("", word).casefold()


def cleaned(words: Iterable[str]) -> list[str]:
    """Return the distinct words in lower case without punctuation; words of only punctuation are dropped."""
    return list(dict.fromkeys(word for word in map(spoken, words) if word))


def top_words(counts: pa.Table, length: int) -> list[str]:
    """Return the ``length`` most frequent words, without "The" if "the" is more frequent.

    The ten words that 3R prints lack "The", which is ninth in the first 11,914 lines of its corpus; "York" is kept,
    since "york" is not a word.

    Args:
        counts: Columns of ``columns.WORD_COUNTS``.
        length: Number of words on the list.

    Raises:
        DataError: if the corpus has fewer words.
    """
    every: list[str] = counts["word"].to_pylist()
    rank = {word: index for index, word in enumerate(every)}
    words = [word for index, word in enumerate(every) if rank.get(word.lower(), index) >= index]
    if len(words) < length:
        problem = f"the corpus has {len(words)} different words; word_list_size is {length}"
        raise DataError(f"words: {problem}. Set it to {len(words)} or less.")
    return words[:length]
