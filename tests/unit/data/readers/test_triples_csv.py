import gzip

import pytest

from workflow_scripts.columns.corpora import TRIPLES
from workflow_scripts.data.readers.triples_csv import Config, read
from workflow_scripts.errors import DataError

HEADER = b"sent0,sent1,hard_neg\n"


def rows(tmp_path, content, name="nli.csv", negative="hard_neg"):
    (tmp_path / name).write_bytes(content)
    parsed = read({"triples": tmp_path / name}, Config(anchor="sent0", positive="sent1", negative=negative))
    assert parsed.table.schema == TRIPLES
    return [tuple(row.values()) for row in parsed.table.to_pylist()], dict(parsed.dropped)


def test_quotes_commas_line_feeds_and_words_that_look_like_nothing_are_text(tmp_path):
    content = HEADER + b'"a, b","says ""no""",NA\n"two\nlines",null,1\n'
    assert rows(tmp_path, content) == ([("a, b", 'says "no"', "NA"), ("two\nlines", "null", "1")], {})


def test_columns_are_named_and_others_left_out(tmp_path):
    content = b"source,sent1,sent0\nsnli,b,a\n"
    assert rows(tmp_path, content, negative=None) == ([("a", "b", None)], {})


def test_a_packed_file_and_one_with_a_byte_order_mark_read_the_same(tmp_path):
    content = HEADER + b"a,b,c\n"
    assert rows(tmp_path, gzip.compress(content), "nli.csv.gz") == rows(tmp_path, b"\xef\xbb\xbf" + content)


def test_a_row_with_an_empty_text_is_dropped_and_counted(tmp_path):
    assert rows(tmp_path, HEADER + b"a,b,c\n,b,c\na, ,c\na,b,\n") == ([("a", "b", "c")], {"empty text": 3})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"sent0,sent1\na,b\n", r"nli\.csv:1: Column 'hard_neg' .*Correct the block's options"),
        (HEADER + b"a,b\n", r"nli\.csv: .*Expected 3 columns, got 2"),
        (HEADER + b'"a,b\n', "Download the file again"),
        (HEADER + b"\xff,b,c\n", "invalid UTF8"),
        (b"", "Empty CSV file"),
    ],
)
def test_a_damaged_file_ends_in_one_line(tmp_path, content, message):
    with pytest.raises(DataError, match=message) as stopped:
        rows(tmp_path, content)
    assert "\n" not in str(stopped.value)


def test_a_cut_archive_is_no_whole_file(tmp_path):
    with pytest.raises(DataError, match=r"Truncated compressed stream\. Download the file again"):
        rows(tmp_path, gzip.compress(HEADER + b"a,b,c\n")[:-9], "nli.csv.gz")
