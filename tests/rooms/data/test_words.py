import os
from pathlib import Path

import numpy as np
import pytest

from workflow_scripts.columns import WORD_COUNTS
from workflow_scripts.data.exemplars import Validator
from workflow_scripts.data.word_lists import top_words
from workflow_scripts.data.words import change_rates, local_peaks, word_counts
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import job_record, write_table
from workflow_scripts.settings.corpora import ExtractivePool, Words
from workflow_scripts.training.data import read_auxiliary

WORDS = Words(peak_window=20)
POOL = ExtractivePool(
    corpus="toy", encoder="toy", word_list_size=5, sentences=4, min_uses_per_word=2, max_tokens=12,
    listed_share=0.5, generator="extractive", max_candidates=100,
)  # fmt: skip
DATA = os.environ.get("SEMBLANCE_DATA")
WIKI1M = Path(DATA or "/nonexistent", "corpus/wiki1m_for_simcse.txt")


def test_the_most_frequent_word_comes_first():
    """The most frequent word comes first and ties are alphabetical."""
    table = word_counts(["b a b", "c  a\tb", "York york"], WORDS)
    assert table.schema == WORD_COUNTS
    counted = [[1, 2, 3, 4, 5], ["b", "a", "York", "c", "york"], [3, 2, 1, 1, 1]]
    assert [table[name].to_pylist() for name in ("rank", "word", "count")] == counted


RATES = change_rates(np.array([14143, 14053, 14020, 13874, 13788]))  # ranks 100 to 104


def test_the_change_rate_is_the_one_of_table_5():
    """O-70: 3R's printed formula does not give its own table, this one does."""
    np.testing.assert_allclose(RATES[1:], [0.00640, 0.00235, 0.01052, 0.00624], atol=5e-6)
    assert change_rates(np.array([5795, 5765]))[1] == pytest.approx(0.00520, abs=5e-6)
    assert np.isnan(RATES[0])


@pytest.mark.parametrize(
    ("rates", "window", "peaks"),
    [
        (RATES, 1, [1, 3]),  # 101 and 103
        (RATES, 2, [3]),  # 103 alone, as 3R says
        ([np.nan, 0.0, 0.0, 0.0], 1, []),
        ([np.nan, 1.0, 1.0, 0.5], 1, []),  # a plateau has no top
        ([], 3, []),
    ],
)
def test_a_peak_is_higher_than_all_within_its_window(rates, window, peaks):
    assert np.flatnonzero(local_peaks(np.array(rates), window)).tolist() == peaks


def test_a_list_is_as_long_as_asked():
    """A list is as long as asked and may leave out capitalised doubles."""
    counts = word_counts(["the the the The The of of of of York York of"], WORDS)
    assert top_words(counts, 3) == ["of", "the", "York"]
    with pytest.raises(DataError, match="has 3 different words; word_list_size is 4"):
        top_words(counts, 4)


def test_methods_read_the_list_that_pools_read(tmp_path):
    """Without "The" next to "the", punctuation, and second spellings."""
    counts = word_counts(["the the the of of The - - of the, the, king King king King king"], WORDS)
    record = job_record("count_words", settings={}, inputs={}, outputs=[])
    write_table(tmp_path / "words.parquet", counts, record)
    assert counts["word"].to_pylist() == ["king", "of", "the", "-", "King", "the,", "The"]
    read = read_auxiliary([], [tmp_path / "words.parquet"], 5)
    assert read == {"word": ["king", "of", "the"]}
    assert Validator(POOL, top_words(counts, 5), len).listed == read["word"]


@pytest.mark.skipif(not WIKI1M.exists(), reason="wiki1m_for_simcse.txt is not below SEMBLANCE_DATA")
def test_the_counts_of_the_whole_corpus_are_those_of_3r():
    """O-69."""
    with WIKI1M.open(encoding="utf-8") as lines:
        counts = word_counts(lines, WORDS)
    published = {
        "the": 1437106, "of": 678338, "in": 583691, "and": 568586, "a": 413817,
        "to": 408457, "was": 250346, "is": 186236, "on": 170559, "as": 169463, "Road": 5765,
    }  # fmt: skip
    found = dict(zip(counts["word"].to_pylist(), counts["count"].to_pylist(), strict=True))
    assert {word: found.get(word) for word in published} == published
