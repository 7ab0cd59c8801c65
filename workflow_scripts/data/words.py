"""Word frequencies of a corpus."""

from collections import Counter
from collections.abc import Iterable

import pyarrow as pa

from workflow_scripts.schemas import WORD_COUNTS


def count_words(sentences: Iterable[str]) -> pa.Table:
    """Count white-space separated words, case kept (3R lists "York" and "King").

    Returns:
        Columns of ``schemas.WORD_COUNTS``, most frequent first, equal counts in alphabetical order.
    """
    counts: Counter[str] = Counter()
    for sentence in sentences:
        counts.update(sentence.split())
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    words, numbers = zip(*ordered, strict=True) if ordered else ((), ())
    columns = [range(1, len(ordered) + 1), words, numbers]
    return pa.table(
        [pa.array(c, field.type) for c, field in zip(columns, WORD_COUNTS, strict=True)], schema=WORD_COUNTS
    )
