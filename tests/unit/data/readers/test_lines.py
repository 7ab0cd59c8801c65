import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from workflow_scripts.data.readers.lines import Config, read
from workflow_scripts.errors import DataError

DATA = os.environ.get("SEMBLANCE_DATA")


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


def test_as_published_nothing_is_cut(tmp_path):
    parsed = read(
        write(tmp_path / "text.txt", b"a\nb c\n" + b"d " * 900), Config(min_words=1, max_words=1000)
    )
    assert [len(row[0].split()) for row in rows(parsed)] == [1, 2, 900]
    assert not parsed.dropped


@pytest.mark.parametrize("name", ["text.txt", "text.txt.gz"])
def test_a_line_that_is_not_utf8_is_named(tmp_path, name):
    files = write(tmp_path / name, "gut\n\nschön\n".encode() + "schön\nok\n".encode("latin-1"))
    with pytest.raises(DataError, match=rf"{name}:4: byte 0xf6 is not UTF-8"):
        read(files, Config(min_words=1, max_words=9))


def test_only_a_line_feed_ends_a_line(tmp_path):
    content = "one\u2028two\u0085three\x0bfour\n".encode()
    assert rows(read(write(tmp_path / "text.txt", content), Config(min_words=1, max_words=9))) == [
        ("one two three four", 0, 0)
    ]


def test_a_mark_of_byte_order_is_no_part_of_the_first_sentence(tmp_path):
    content = b"\xef\xbb\xbfone two\none two\n"
    parsed = read(write(tmp_path / "text.txt", content), Config(min_words=1, max_words=9))
    assert rows(parsed) == [("one two", 0, 0)]
    assert parsed.dropped == {"repeated": 1}


def test_a_file_that_breaks_off_is_an_error_and_not_half_a_corpus(tmp_path):
    content = gzip.compress(os.urandom(4000).hex().encode() + b"\n")
    for damaged in (content[:-6], content[:-200], content[:1000] + b"\0" + content[1001:], b"plain text\n"):
        (tmp_path / "text.txt.gz").write_bytes(damaged)
        with pytest.raises(DataError, match=r"text\.txt\.gz: not a complete gzip file"):
            read({"text": tmp_path / "text.txt.gz"}, Config(min_words=1, max_words=9))


def test_an_empty_file_gives_no_sentences(tmp_path):
    for name in ("text.txt", "text.txt.gz"):
        assert rows(read(write(tmp_path / name, b""), Config(min_words=1, max_words=9))) == []


@pytest.mark.skipif(not DATA, reason="SEMBLANCE_DATA is not set: the laboratory's corpus is not here")
def test_the_laboratorys_corpus_has_its_sentences():
    parsed = read({"text": Path(DATA, "corpus/wiki_sentences.txt.gz")}, Config(min_words=5, max_words=50))
    texts = parsed.table["sentence"].to_pylist()
    assert len(texts) == len(set(texts)) >= 50_000
    assert (np.diff(parsed.table["document"].to_numpy()) > 0).all()
    assert not parsed.table["position"].to_numpy().any()
