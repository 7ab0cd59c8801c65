"""Word frequencies of a corpus, and lists of the most frequent ones."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
from pydantic import Field

from workflow_scripts.config import Slice
from workflow_scripts.errors import DataError
from workflow_scripts.schemas import WORD_COUNTS


class Words(Slice):
    """How the frequencies of words are read."""

    peak_window: int = Field(
        gt=0, description="Ranks to either side over which a peak of the change rate is highest."
    )


def count_words(sentences: Iterable[str], words: Words) -> pa.Table:
    """Count white-space separated words, case and punctuation kept (3R lists "York" and "King").

    Returns:
        Columns of ``schemas.WORD_COUNTS``, most frequent first, equal counts in alphabetical order.
    """
    counts: Counter[str] = Counter()
    for sentence in sentences:
        counts.update(sentence.split())
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    texts, numbers = zip(*ordered, strict=True) if ordered else ((), ())
    rates = change_rates(np.array(numbers, dtype=np.int64))
    columns = [
        pa.array(range(1, len(ordered) + 1), pa.int32()),
        pa.array(texts, pa.string()),
        pa.array(numbers, pa.int64()),
        pa.array(rates, pa.float64(), mask=np.isnan(rates)),
        pa.array(local_peaks(rates, words.peak_window)),
    ]
    return pa.table(columns, schema=WORD_COUNTS)


def change_rates(counts: np.ndarray) -> np.ndarray:
    """(T_{n-1} - T_n) / T_n of falling counts T; nan for the first.

    3R prints (T_n - T_{n+1}) / T_{n+1} in appendix B; this is what gives its Table 5 (O-70).
    """
    rates = np.full(len(counts), np.nan)
    rates[1:] = (counts[:-1] - counts[1:]) / counts[1:]
    return rates


def local_peaks(rates: np.ndarray, window: int) -> np.ndarray:
    """Where a rate is higher than all others up to ``window`` ranks away; the first rank is no peak.

    ASSUME: 3R names peaks at 103, 176, 199, 300, 393 and 472 and no rule. Its Table 5 has smaller maxima beside them
    (101, 198), so that a neighbour on either side is too small a window.
    """
    if not len(rates):
        return np.zeros(0, dtype=bool)
    padded = np.pad(np.nan_to_num(rates, nan=-np.inf), window, constant_values=-np.inf)
    around = np.lib.stride_tricks.sliding_window_view(padded, 2 * window + 1)
    centre = around[:, window]
    highest = around.max(axis=1, initial=-np.inf)
    alone = (around == highest[:, None]).sum(axis=1) == 1
    peaks: np.ndarray = (centre == highest) & alone & (centre > 0)
    return peaks


def top_words(counts: pa.Table, length: int, *, drop_capitalised: bool) -> list[str]:
    """The ``length`` most frequent words.

    Args:
        counts: Columns of ``schemas.WORD_COUNTS``.
        length: Words of the list.
        drop_capitalised: Leave out "The" where "the" is more frequent. The ten words that 3R prints lack "The", which
            in the first 11,914 lines of its corpus stands ninth; "York" stays, whose small form is no word.

    Raises:
        DataError: if the corpus has fewer words.
    """
    words: Sequence[str] = counts["word"].to_pylist()
    if drop_capitalised:
        rank = {word: place for place, word in enumerate(words)}
        words = [word for place, word in enumerate(words) if rank.get(word.lower(), place) >= place]
    if len(words) < length:
        raise DataError(
            f"words: the corpus has {len(words)} different ones; a list of {length} is asked for."
        )
    return list(words[:length])
