import gzip

import pytest

from workflow_scripts.data.readers.labelled_tsv import Config, read
from workflow_scripts.errors import DataError


def rows(parsed):
    return [tuple(row.values()) for row in parsed.table.to_pylist()]


def test_quotes_are_text_and_the_part_is_the_split(tmp_path):
    path = tmp_path / "test.txt"
    path.write_text('Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\t" so\the said "\n', "utf-8")
    options = {"label": "Quality", "text1": "#1 String", "text2": "#2 String"}
    assert rows(read({"test": path}, Config(**options))) == [("test", '" so', 'he said "', "1")]


def test_single_texts_of_a_packed_file_have_no_second_text(tmp_path):
    path = tmp_path / "train.tsv.gz"
    path.write_bytes(gzip.compress(b"label\tstring\nmethod\tWe did\n"))
    assert rows(read({"train": path}, Config(label="label", text1="string"))) == [
        ("train", "We did", None, "method")
    ]


def test_a_split_column_goes_before_the_part(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("split\tdup\tq1\tq2\ndev\t1\ta\tb\ntest\t0\tc\td\n", "utf-8")
    options = {"label": "dup", "text1": "q1", "text2": "q2", "split": "split"}
    assert rows(read({"all": path}, Config(**options))) == [("dev", "a", "b", "1"), ("test", "c", "d", "0")]


def test_a_missing_column_is_named(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("label\ttext\n1\ta\n", "utf-8")
    with pytest.raises(DataError, match=r"pairs\.tsv:1: no column 'string'"):
        read({"all": path}, Config(label="label", text1="string"))
