import pytest

from workflow_scripts.columns.corpora import LABELLED, PAIRS
from workflow_scripts.data.readers.stsb_csv import Config, read
from workflow_scripts.errors import DataError


def write(path, text):
    path.write_bytes(text.encode())
    return path


def test_quoted_commas_quotes_and_line_breaks_stay_in_their_sentence(tmp_path):
    path = write(tmp_path / "dev.csv", '"He said ""no"", twice.","Two\nlines.",2.6\r\nplain,too,0\r\n')
    table = read({"dev": path}, Config(form="pairs")).table
    assert table.schema == PAIRS
    assert table.to_pylist() == [
        {"subset": "", "sentence1": 'He said "no", twice.', "sentence2": "Two\nlines.", "score": 2.6},
        {"subset": "", "sentence1": "plain", "sentence2": "too", "score": 0.0},
    ]


def test_graded_labels_are_the_scores_as_text_with_their_split(tmp_path):
    files = {
        "test": write(tmp_path / "test.csv", "c,d,2.615\n"),
        "train": write(tmp_path / "train.csv", "a,b,5.0\n"),
    }
    table = read(files, Config(form="labelled")).table
    assert table.schema == LABELLED
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        ("train", "a", "b", "5"),
        ("test", "c", "d", "2.615"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,1\n\n", "dev.csv:2: 0 columns"),
        ("a,b,1\na,b\n", "dev.csv:2: 2 columns"),
        ("a,b,high\n", "dev.csv:1: score 'high' is not a number"),
        ('a,b,1\n"open,b,1\n', "dev.csv:2: broken quoting"),
    ],
)
def test_a_broken_row_is_named_by_its_line(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read({"dev": write(tmp_path / "dev.csv", text)}, Config(form="pairs"))
