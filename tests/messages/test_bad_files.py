"""Files that are damaged, of another kind, or hold what is not a text: each ends in one line that names it."""

import bz2
import gzip
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workflow_scripts.data.datasets import load
from workflow_scripts.errors import DataError
from workflow_scripts.settings.sources import Dataset

CSV = {
    "separator": ",",
    "quoted": True,
    "columns": {"anchor": "sent0", "positive": "sent1", "negative": "hard_neg"},
}
SICK = {"columns": {"sentence1": "sentence_A", "sentence2": "sentence_B", "score": "relatedness_score"}}
LINES = "The first sentence of all.\nThe second one is longer.\nThe third.\n"
TRIPLES = "sent0,sent1,hard_neg\nA man is here.,Someone is here.,Nobody is here.\nTwo.,A pair.,One.\n"
TSV = "sentence_A\tsentence_B\trelatedness_score\tentailment_judgment\nA man.\tSomeone.\t4.5\tNEUTRAL\n"
KINDS = {
    "lines": ("sentences", "lines", {"text": "text.txt"}, {"cleaning": "none"}, LINES),
    "triples": ("triples", "delimited", {"all": "nli.csv"}, CSV, TRIPLES),
    "sick": ("pairs", "delimited", {"all": "sick.txt"}, SICK, TSV),
    "gzip": ("sentences", "lines", {"text": "text.txt.gz"}, {}, None),
    "dump": ("sentences", "wikipedia_xml", {"dump": "dump.bz2"}, {"min_words": 1, "max_words": 50}, None),
    "wikitext": ("sentences", "wikitext", {"train": "train.parquet"}, {"unknown": None, "min_characters": 1}, None),
}  # fmt: skip


@pytest.fixture
def loaded(tmp_path):
    """A function that loads a file with some content as one of the kinds."""

    def make(kind, content, **contract):
        form, reader, files, options, _ = KINDS[kind]
        ((role, name),) = files.items()
        (tmp_path / name).write_bytes(content)
        source = {"kind": "local", "files": {role: {"path": name, "sha256": None}}, "options": options}
        block = {"form": form, "sources": [source | {"reader": reader}], "contract": contract}
        return load("toy", Dataset.parse(block, "datasets.toy"), tmp_path)[0].table

    return make


BAD = {
    "UTF-16": ("utf-16", "UTF-?8|null character|column"),
    "Latin-1": ("latin-1", "UTF-?8"),
    "a null character": ("nul", "null character|NUL"),
    "a second byte order mark": ("bom", "byte order mark"),
    "a line of a megabyte": ("long", "longer than|larger than|columns"),
    "a lone surrogate": ("surrogate", "UTF-?8"),
}


@pytest.mark.parametrize("kind", ["lines", "triples", "sick"])
@pytest.mark.parametrize(("fault", "found"), BAD.values(), ids=BAD)
def test_what_is_no_text_is_named(loaded, kind, fault, found):
    good = KINDS[kind][4]
    content = {
        "utf-16": good.encode("utf-16"),
        "latin-1": good.replace("man", "m\xe4n").replace("first", "f\xefrst").encode("latin-1"),
        "nul": good.replace("man", "m\0n").replace("first", "f\0rst").encode(),
        "bom": ("\ufeff\ufeff" + good if kind == "lines" else good.replace("A man", "\ufeffA man")).encode(),
        "long": good.replace("man", "m" * 1_000_000).replace("first", "f" * 1_000_000).encode(),
        "surrogate": good.replace("man", "\ud800")
        .replace("first", "\ud800")
        .encode("utf-8", "surrogatepass"),
    }[fault]
    assert len(loaded(kind, good.encode())) >= 1
    assert content != good.encode()
    with pytest.raises(DataError, match=found):
        loaded(kind, content)


def parquet(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path.read_bytes()


def dump(text):
    page = (
        f"<page><title>A</title><ns>0</ns><id>1</id><revision><id>2</id><text>{text}</text></revision></page>"
    )
    return f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/">{page}</mediawiki>'


def test_a_broken_file_is_one_line_and_not_half_a_corpus(loaded, tmp_path):
    """What breaks off or is of another kind is one line and not half a corpus."""
    noise = os.urandom(4000).hex()
    whole = {
        "gzip": gzip.compress(noise.encode()),
        "dump": bz2.compress(dump(f"A paragraph {noise}. It goes on.").encode()),
        "wikitext": parquet(tmp_path / "whole", text=["A paragraph. It goes on.", "Another."]),
    }
    for kind, content in whole.items():
        assert len(loaded(kind, content)) >= 1
        for damaged in (content[:-8], content[: len(content) // 2], b"of another kind", content[40:]):
            found = r"/\S+: not in the format of reader \w+: .*put a complete copy there"
            with pytest.raises(DataError, match=found):
                loaded(kind, damaged)
    for kind, content, found in (
        ("dump", bz2.compress(b"<mediawiki><page>"), r"dump.bz2: not in the format of reader wikipedia_xml"),
        (
            "wikitext",
            parquet(tmp_path / "other", words=["x"]),
            r"train.parquet: no column text; columns of text: words",
        ),
        ("wikitext", parquet(tmp_path / "null", text=["x", None]), "row 2: text is missing"),
    ):
        with pytest.raises(DataError, match=found):
            loaded(kind, content)


def test_a_file_cut_in_a_word_breaks_a_contract_of_exact_rows(loaded):
    lines = [f"Sentence {n} of many.\n" for n in range(1000)]
    assert len(loaded("lines", "".join(lines)[:-12].encode(), rows=1000)) == 1000
    with pytest.raises(DataError, match="rows 930; its contract says 1000"):
        loaded("lines", "".join(lines[:930])[:-12].encode(), rows=1000)
