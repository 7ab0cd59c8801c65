import numpy as np
import pytest

from workflow_scripts.errors import DataError
from workflow_scripts.extraction.representations import WordTokeniser, word_vocabulary
from workflow_scripts.extraction.word_vectors import read

CONTENT = "3 2\nthe 0.5 1.0 \nriver -1.0 2e-3 \n, 3.0 4.0 \n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text(CONTENT)
    return path


def test_words_are_read_in_order_with_their_vectors(file):
    """F16: X2Static ends every line with a blank."""
    table = read(file, 0)
    assert table["word"].to_pylist() == ["the", "river", ","]
    assert table["rank"].to_pylist() == [1, 2, 3]
    np.testing.assert_allclose(table["vector"].to_pylist(), [[0.5, 1], [-1, 0.002], [3, 4]], rtol=1e-6)


def test_the_most_frequent_words_are_the_first_of_the_file(file):
    table = read(file, 1)
    assert (table["word"].to_pylist(), table["rank"].to_pylist()) == (["river", ","], [2, 3])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("3 2\nthe 0.5 1.0\n", "1 words; the header says 3"),
        ("1 2\nthe 0.5\n", ":2: "),
        ("the 0.5 1.0\n", ":1: "),
        ("1 2\nthe 0.5 1.0\nof 1 2\n", ":3: "),
    ],
)
def test_a_file_that_is_not_whole_is_refused(file, content, message):
    file.write_text(content)
    with pytest.raises(DataError, match=message):
        read(file, 0)


def test_whole_words_are_looked_up_in_lower_case_and_unknown_ones_left_out():
    tokenise = WordTokeniser(["the", "river", ","])
    text = tokenise(["The river, the sea", "sea", ""], 10)
    assert np.split(text.ids, text.starts[1:-1])[0].tolist() == [1, 2, 3, 1]
    assert text.lengths.tolist() == [4, 1, 1]
    assert text.ids[-2:].tolist() == [0, 0]


def test_words_have_no_subwords_and_drop_the_same_lists():
    """F11"""
    vocabulary = word_vocabulary(["the", "river", ","], ["the", "##s"], [",", "."])
    assert (vocabulary.biased["frequent"], vocabulary.biased["punctuation"]) == ([1], [3])
    assert not vocabulary.biased["subword"]
