"""Word frequencies of a corpus."""

from collections import Counter
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from workflow_scripts.columns import WORD_COUNTS
from workflow_scripts.data.tables import read_dataset_table, texts_of
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.corpora import Words


def word_counts(texts: Iterable[str], words: Words) -> pa.Table:
    """Return counts of words separated by white space, with case and punctuation (3R lists "York" and "King").

    Returns:
        Columns of ``columns.WORD_COUNTS``, most frequent first, equal counts in alphabetical order.
    """
    counts = Counter(word for text in texts for word in text.split())
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    rates = change_rates(np.array([count for _, count in ordered], dtype=np.int64))
    columns = {
        "rank": range(1, len(ordered) + 1),
        "word": [word for word, _ in ordered],
        "count": [count for _, count in ordered],
        "change_rate": pa.array(rates, from_pandas=True),  # NaN becomes null
        "peak": local_peaks(rates, words.peak_window),
    }
    return pa.table(columns, schema=WORD_COUNTS)


def change_rates(counts: np.ndarray) -> np.ndarray:
    """Return (T_{n-1} - T_n) / T_n of descending counts T; nan for the first.

    3R's appendix B has (T_n - T_{n+1}) / T_{n+1}, but this formula reproduces its Table 5 (O-70).
    """
    rates = np.full(len(counts), np.nan)
    rates[1:] = (counts[:-1] - counts[1:]) / counts[1:]
    return rates


def local_peaks(rates: np.ndarray, window: int) -> np.ndarray:
    """Return True for each rate that exceeds all others up to ``window`` ranks away; the first rank is no peak.

    ASSUME: 3R lists peaks at 103, 176, 199, 300, 393 and 472, but states no rule. Its Table 5 has smaller maxima next
    to them (101, 198), so a window of one neighbour on either side is too small.
    """
    known = np.nan_to_num(rates, nan=-np.inf)
    padded = np.pad(known, (window, window + 1), constant_values=-np.inf)
    around = np.lib.stride_tricks.sliding_window_view(padded, 2 * window + 1)[:-1]
    before, after = around[:, :window].max(axis=1), around[:, window + 1 :].max(axis=1)
    peaks: np.ndarray = known > np.maximum(np.maximum(before, after), 0)
    return peaks


def count_words(job: Job) -> None:
    """Count the words of one corpus (rule count_words)."""
    settings = Words.parse(job.settings["words"], "words")
    texts = texts_of(read_dataset_table(job.input("sentences")))
    job.write({"counts": word_counts(texts, settings)})
