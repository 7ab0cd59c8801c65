import gzip

import pytest

from workflow_scripts.data.text_files import parts, read_lines
from workflow_scripts.errors import DataError


def test_a_line_ends_at_a_line_feed_only(tmp_path):
    path = tmp_path / "texts"
    path.write_bytes("one\u0085still one\u2028and still\r\n\ntwo".encode())
    assert read_lines(path) == ["one\u0085still one\u2028and still\r", "", "two"]


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


def test_parts_come_as_train_dev_test_whatever_the_order_of_the_configuration(tmp_path):
    files = {role: tmp_path / role for role in ("test", "dev", "train")}
    assert [split for split, _ in parts(files)] == ["train", "dev", "test"]
    assert parts({"all": tmp_path / "x"}) == [("", tmp_path / "x")]
