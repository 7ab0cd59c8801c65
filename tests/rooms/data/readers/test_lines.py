import gzip

import pytest

from workflow_scripts.data.readers.lines import Config, read
from workflow_scripts.errors import DataError


def write(path, content):
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return {"text": path}


def rows(parsed):
    return [tuple(row.values()) for row in parsed.table.to_pylist()]


@pytest.mark.parametrize("name", ["text.txt", "text.txt.gz"])
def test_every_line_is_a_document_of_one_sentence(tmp_path, name):
    content = b"One two.\n\n  \t\nThree  four\tfive.\r\nOne two.\nSix\nSeven eight nine ten.\n"
    parsed = read(write(tmp_path / name, content), Config(min_words=2, max_words=3))
    assert rows(parsed) == [("One two.", 0, 0), ("Three four five.", 1, 0)]
    assert parsed.dropped == {"blank": 2, "repeated": 1, "under 2 words": 1, "over 3 words": 1}
    assert rows(read(write(tmp_path / name, b""), Config())) == []


def test_a_published_file_is_read_as_it_is(tmp_path):
    """Without the mark of its byte order; only a line feed ends a line."""
    content = "\ufeffOne  two.\nOne  two.\n\nx\u2028y\u0085z\nThe\tend. \r\n".encode()
    parsed = read(write(tmp_path / "text.txt", content), Config(cleaning="none"))
    texts = ["One  two.", "One  two.", "", "x\u2028y\u0085z", "The\tend. "]
    assert rows(parsed) == [(text, document, 0) for document, text in enumerate(texts)]
    assert not parsed.dropped


@pytest.mark.parametrize("name", ["text.txt", "text.txt.gz"])
def test_a_line_that_is_not_utf8_is_named(tmp_path, name):
    files = write(tmp_path / name, "gut\n\nsch\xf6n\n".encode() + "sch\xf6n\nok\n".encode("latin-1"))
    with pytest.raises(DataError, match=rf"{name}:4: byte 0xf6 is not UTF-8"):
        read(files, Config())
