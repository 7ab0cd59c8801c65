"""Readers of one text a line with its label: SST-2, SST-5, TREC."""

import pytest

from workflow_scripts.data.readers import label_space_text, text_tab_label
from workflow_scripts.errors import DataError


def rows(parsed):
    return [tuple(row.values()) for row in parsed.table.to_pylist()]


def write(path, text):
    path.write_text(text, "utf-8")
    return path


def test_sst2_has_the_text_before_its_label(tmp_path):
    files = {"dev": write(tmp_path / "dev", "a charming journey . \t1\nbleak\t0\n")}
    assert rows(text_tab_label.read(files, text_tab_label.Config())) == [
        ("dev", "a charming journey .", None, "1"),
        ("dev", "bleak", None, "0"),
    ]


def test_sst5_has_the_label_before_its_text(tmp_path):
    files = {"train": write(tmp_path / "train", "4 a stirring film : good\n0 bad\n")}
    assert rows(label_space_text.read(files, label_space_text.Config(coarse=False))) == [
        ("train", "a stirring film : good", None, "4"),
        ("train", "bad", None, "0"),
    ]


def test_trec_labels_are_cut_at_the_colon_and_quotes_taken_out_as_senteval_did(tmp_path):
    files = {"test": write(tmp_path / "test", "ENTY:plant What is Australia 's `` flower '' : which ?\n")}
    assert rows(label_space_text.read(files, label_space_text.Config(coarse=True, remove="`'"))) == [
        ("test", "What is Australia s  flower  : which ?", None, "ENTY")
    ]


def test_sentevals_copy_of_trec_and_the_release_are_read_alike(tmp_path):
    """SentEval took quotes out; one letter of both is in Latin-1, which somebody's copy has in UTF-8."""
    question = "LOC:city Which city is the ``sisterðcity '' of Athens ?\n"
    for name, content in {
        "release": question.encode("latin-1"),
        "senteval": question.replace("`", "").replace("'", "").encode("latin-1"),
        "utf8": question.replace("`", "").replace("'", "").encode(),
    }.items():
        (tmp_path / name).write_bytes(content)
        found = label_space_text.read(
            {"train": tmp_path / name},
            label_space_text.Config(coarse=True, remove="`'", otherwise="latin-1"),
        )
        assert rows(found) == [("train", "Which city is the sisterðcity  of Athens ?", None, "LOC")]
    with pytest.raises(DataError, match="release:1: byte 0xf0 is not UTF-8"):
        label_space_text.read({"train": tmp_path / "release"}, label_space_text.Config(coarse=True))


@pytest.mark.parametrize("line", ["no label", "two\ttabs\t1", "\t", "text\t "])
def test_an_sst2_line_without_one_text_and_one_label_is_named(tmp_path, line):
    with pytest.raises(DataError, match="dev:2: "):
        text_tab_label.read({"dev": write(tmp_path / "dev", f"fine\t1\n{line}\n")}, text_tab_label.Config())


@pytest.mark.parametrize("line", ["4", "", " text", "4 "])
def test_an_sst5_line_without_label_and_text_is_named(tmp_path, line):
    with pytest.raises(DataError, match="dev:2: "):
        label_space_text.read(
            {"dev": write(tmp_path / "dev", f"3 fine\n{line}\n")}, label_space_text.Config(coarse=False)
        )


def test_a_trec_line_without_a_colon_in_its_label_is_named(tmp_path):
    with pytest.raises(DataError, match=r"dev:1: .*COARSE:fine"):
        label_space_text.read(
            {"dev": write(tmp_path / "dev", "NUM When : now ?\n")}, label_space_text.Config(coarse=True)
        )
