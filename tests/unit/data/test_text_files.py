import gzip

import pytest

from workflow_scripts.data.text_files import number, parts, read_lines, read_rows
from workflow_scripts.errors import DataError


def test_a_line_ends_at_a_line_feed_only(tmp_path):
    path = tmp_path / "texts"
    path.write_bytes("one\u0085still one\u2028and still\r\n\ntwo".encode())
    assert read_lines(path) == ["one\u0085still one\u2028and still\r", "", "two"]


def test_a_packed_file_reads_as_the_plain_one(tmp_path):
    plain, packed = tmp_path / "texts.tsv", tmp_path / "texts.tsv.gz"
    plain.write_text("a\tb\n1\t2\n", "utf-8")
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert list(read_rows(packed, ["b"])) == list(read_rows(plain, ["b"])) == [(2, ["2"])]


@pytest.mark.parametrize("content", [b"no gzip", gzip.compress(b"cut short" * 99, mtime=0)[:-9]])
def test_a_damaged_gzip_file_is_named(tmp_path, content):
    path = tmp_path / "texts.gz"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"texts\.gz: not a complete gzip file"):
        read_lines(path)


def test_a_byte_that_is_not_utf8_is_named_by_its_line(tmp_path):
    path = tmp_path / "texts"
    path.write_bytes(b"good\nsister\xf0city\n")
    with pytest.raises(DataError, match="texts:2: byte 0xf0 is not UTF-8"):
        read_lines(path)


def test_columns_come_in_the_order_asked_for_and_missing_optional_ones_are_empty(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text("score\tone\n5\ta\n", "utf-8")
    assert list(read_rows(path, ["one", "score"], ["subset"])) == [(2, ["a", "5", ""])]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\tb\n1\t2\n1\n", "t.tsv:3: 1 columns; the header has 2"),
        ("a\tb\n1\t2\t3\n", "t.tsv:2: 3 columns; the header has 2"),
        ("a\tc\n1\t2\n", "t.tsv:1: no column 'b'"),
        ("", "t.tsv:1: no column"),
        (
            "a,b\n1,2\n",
            r"t.tsv:1: no column 'a'; has \['a,b'\]. Name the columns in the first line, set off by tabs",
        ),
        ("a\tb\r\n1\t2\r\n", r"t.tsv:1: no column 'b'; .* Save the file with line ends of Unix."),
        ("\ufeffa\tb\n1\t2\n", "t.tsv:1: no column 'a'; .* Save the file without a byte order mark"),
    ],
)
def test_a_row_that_does_not_fit_the_header_is_named_by_its_line(tmp_path, content, message):
    path = tmp_path / "t.tsv"
    path.write_text(content, "utf-8")
    with pytest.raises(DataError, match=message):
        list(read_rows(path, ["a", "b"]))


def test_parts_come_as_train_dev_test_whatever_the_order_of_the_configuration(tmp_path):
    files = {role: tmp_path / role for role in ("test", "dev", "train")}
    assert [split for split, _ in parts(files)] == ["train", "dev", "test"]
    assert parts({"all": tmp_path / "x"}) == [("", tmp_path / "x")]


def test_an_unknown_part_is_refused(tmp_path):
    with pytest.raises(DataError, match="role 'trial'"):
        parts({"trial": tmp_path / "x"})


@pytest.mark.parametrize("text", ["", "five", "nan", "inf", "-inf"])
def test_a_score_that_is_no_finite_number_is_refused(tmp_path, text):
    with pytest.raises(DataError, match=":7: score"):
        number(text, tmp_path / "f", 7)
