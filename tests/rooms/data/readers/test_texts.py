"""Readers of texts: a file per class, lines, Wikitext, and Lee's documents with their ratings."""

import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workflow_scripts.data.readers.rows import class_files, lee
from workflow_scripts.data.readers.sentences import lines, wikitext
from workflow_scripts.errors import DataError
from workflow_scripts.settings.sources import ClassFiles, Lee, Lines, WikitextReader

WIKITEXT = """ \n = Heading = \n \n The first <unk> is 1 @.@ 5 m long . It was well @-@ known . No .\n = = Part = = \n One more , here .\n"""


@pytest.fixture
def written(tmp_path):
    """A function that writes files by their roles; names may end in .gz."""

    def write(suffix="", **contents):
        for role, content in contents.items():
            content = content.encode() if isinstance(content, str) else content
            (tmp_path / f"{role}{suffix}").write_bytes(gzip.compress(content) if suffix else content)
        return {role: tmp_path / f"{role}{suffix}" for role in contents}

    return write


def rows(parsed):
    return [tuple(row.values()) for row in parsed.table.to_pylist()]


# A file per class


def test_the_role_is_the_label_in_any_order(written):
    """The role is the label and the order of the configuration does not matter."""
    files = written(positive="good \nfine\n", negative="bad\n")
    found = class_files(files, ClassFiles())
    texts = [("bad", "negative"), ("good", "positive"), ("fine", "positive")]
    assert rows(found) == [("", text, None, label) for text, label in texts]
    assert class_files(dict(reversed(files.items())), ClassFiles()).table.equals(found.table)


def test_blank_lines_are_kept_and_escapes_are_counted(written):
    files = written(p="good\n\n \nclichM-is pile up M-^E M-^E\nup ^ down\nM- \n")
    table, counted = class_files(files, ClassFiles())
    assert table["text1"].to_pylist() == ["good", "", "", "clichM-is pile up M-^E M-^E", "up ^ down", "M-"]
    assert counted == {"kept: escapes of cat -v": 2}


# Lines


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_every_line_is_a_document_of_one_sentence(written, suffix):
    content = "One two.\n\n  \t\nThree  four\tfive.\r\nOne two.\nSix\nSeven eight nine ten.\n"
    parsed = lines(written(suffix, text=content), Lines(min_words=2, max_words=3))
    assert rows(parsed) == [("One two.", 0, 0), ("Three four five.", 1, 0)]
    assert parsed.dropped == {"blank": 2, "repeated": 1, "under 2 words": 1, "over 3 words": 1}
    assert rows(lines(written(suffix, text=""), Lines())) == []


def test_a_published_file_is_read_as_it_is(written):
    """Without the mark of its byte order; only a line feed ends a line."""
    content = "\ufeffOne  two.\nOne  two.\n\nx\u2028y\u0085z\nThe\tend. \r\n"
    parsed = lines(written(text=content), Lines(cleaning="none"))
    texts = ["One  two.", "One  two.", "", "x\u2028y\u0085z", "The\tend. "]
    assert rows(parsed) == [(text, document, 0) for document, text in enumerate(texts)]
    assert not parsed.dropped


# Wikitext


def test_paragraphs_become_sentences_and_headings_go(written):
    parsed = wikitext(written(".gz", train=WIKITEXT), WikitextReader(unknown="[UNK]", min_characters=10))
    assert rows(parsed) == [
        ("The first [UNK] is 1.5 m long .", 0, 0),
        ("It was well-known .", 0, 1),
        ("One more , here .", 1, 0),
    ]
    assert parsed.dropped == {"blank": 2, "heading": 2, "under 10 characters": 1}


PARAGRAPH = "It was known . "


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_a_column_of_texts_is_read_from_parquet(tmp_path, kind):
    pq.write_table(pa.table({"text": pa.array([PARAGRAPH], kind), "n": [1]}), tmp_path / "train.parquet")
    parsed = wikitext({"train": tmp_path / "train.parquet"}, WikitextReader(unknown=None, min_characters=0))
    assert rows(parsed) == [("It was known .", 0, 0)]


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ({"text": [1, 2]}, "column text is int64; columns of text: none"),
        ({"text": [b"a"], "title": ["a"]}, "column text is binary; columns of text: title"),
        ({"text": [["a"]]}, "column text is list<.*>; columns of text: none"),
        ({"sentence": ["a"]}, "no column text; columns of text: sentence"),
    ],
)
def test_a_column_that_is_no_text_is_named(tmp_path, columns, found):
    pq.write_table(pa.table(columns), path := tmp_path / "train.parquet")
    with pytest.raises(DataError, match=rf"train\.parquet: {found}\. Obtain a file with"):
        wikitext({"train": path}, WikitextReader(unknown=None, min_characters=0))


# Documents with ratings


@pytest.mark.parametrize("ratings", ["1 .2 .3\n.2 1 .4\n.3 .4 1\n", "1 .2 .3\n0 1 .4\n0 0 1\n"])
def test_the_upper_triangle_is_read_row_by_row(written, ratings):
    """In Latin-1 as released, or in UTF-8; a line ends at a line feed only."""
    text = "caf\xe9\u2028 on\nb\nc\n"
    pairs = [("caf\xe9\u2028 on", "b", 0.2), ("caf\xe9\u2028 on", "c", 0.3), ("b", "c", 0.4)]
    assert rows(lee(written(documents=text.encode(), ratings=ratings), Lee())) == [
        ("", *pair) for pair in pairs
    ]
    files = written(documents=text.replace("\u2028", "").encode("latin-1"), ratings=ratings)
    assert rows(lee(files, Lee()))[0] == ("", "caf\xe9 on", "b", 0.2)


@pytest.mark.filterwarnings("ignore:loadtxt")
@pytest.mark.parametrize(
    ("documents", "ratings"),
    [
        ("a\nb\nc\n", "1 .5\n.5 1\n"),
        ("a\nb\n", "1 .5\n"),
        ("a\nb\n", "x .5\n.5 1\n"),
        ("a\nb\n", "1 .5\n.5\n"),
        ("a\nb\n", "1 nan\n.5 1\n"),
        ("a\nb\n", "1 0\n.5 1\n"),
        ("a\nb\nc\n", "1 .5 .5\n0 1 .5\n0 .5 1\n"),
        ("a\nb\n", "1 .5\n.51 1\n"),
        ("a\nb\n", ""),
    ],
)
def test_ratings_that_do_not_fit_the_documents_are_refused(written, documents, ratings):
    with pytest.raises(DataError, match="ratings"):
        lee(written(documents=documents, ratings=ratings), Lee())


NO_TEXTS = {
    "One dog.\t1\nTwo dogs.\t0\n": "all lines have 2 cells separated by tabs",
    '{"text": "One dog."}\n{"text": "Two dogs."}\n': "the contents are JSON",
    "{'text': 'One dog.'}\n{'text': 'Two dogs.'}\n": "all lines are JSON",
    '[\n  {\n    "text": "One dog."\n  }\n]\n': "the contents are JSON",
    '["One dog.", "Two dogs."]': "the contents are JSON",
    '{\n "text": "One dog."\n}\n{\n "text": "Two dogs."\n}\n': "the contents are JSON",
    '"One dog."\n"Two ""dogs""."\n': "have quotation marks around them",
}
READERS = {
    "lines": lambda files: lines({"text": files["text"]}, Lines()),
    "class_files": lambda files: class_files(files, ClassFiles()),
    "wikitext": lambda files: wikitext(files, WikitextReader(unknown=None, min_characters=0)),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize(("content", "found"), NO_TEXTS.items())
def test_lines_that_are_rows_of_something_else_are_no_texts(written, read, content, found):
    with pytest.raises(DataError, match=f"text: .*{found}"):
        read(written(text=content))
    more = "[Music] It begins.\n[1]\n{a} brace\n"
    assert len(read(written(text=f"{content}\nA plain one.\n")).table)
    assert len(read(written(text=more)).table) == 3


LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
PAGE = '\n<!DOCTYPE html>\n<html lang="en">\n<head><title>Sign in</title></head>\n</html>\n'


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize(
    ("content", "found"),
    [
        (LFS, "a Git LFS pointer, not the file"),
        (PAGE, "an HTML page, not the file"),
        (PAGE.lower(), "an HTML page"),
        ("<html>\n<body>404</body></html>", "an HTML page"),
        ("One dog.\n".encode("utf-16"), "the file is UTF-16"),
        ("One dog.\n".encode("utf-16-be"), "the file is UTF-16 without a byte order mark"),
        (b"PK\x03\x04\x14\0\x06\0", r"the file is a ZIP archive or spreadsheet \(.xlsx\)"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", r"the file is an Excel file \(.xls\)"),
        (b"BZh91AY&SY\x99", "the file is compressed with bzip2"),
        (b"PAR1\x15\x04", "the file is Parquet"),
    ],
)  # fmt: skip
def test_a_file_of_another_format_is_named(written, read, suffix, content, found):
    with pytest.raises(DataError, match=f"text{suffix}: {found}.*[.]$"):
        read(written(suffix, text=content))


def test_gzip_is_read_whatever_the_name(tmp_path):
    for name in ("a.GZ", "a.txt", "a.gz"):
        (tmp_path / name).write_bytes(gzip.compress(b"One dog.\nTwo dogs.\n"))
        assert len(lines({"text": tmp_path / name}, Lines()).table) == 2
