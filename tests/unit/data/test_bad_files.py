"""Files that are damaged, of another kind, or hold what is no text: each ends in one line that names it."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workflow_scripts.data.sources import load
from workflow_scripts.errors import DataError
from workflow_scripts.settings.datasets import Dataset

LINES = "The first sentence of all.\nThe second one is longer.\nThe third.\n"
TRIPLES = "sent0,sent1,hard_neg\nA man is here.,Someone is here.,Nobody is here.\nTwo.,A pair.,One.\n"
TSV = "sentence_A\tsentence_B\trelatedness_score\tentailment_judgment\nA man.\tSomeone.\t4.5\tNEUTRAL\n"
CSV = {
    "separator": ",",
    "quoted": True,
    "columns": {"anchor": "sent0", "positive": "sent1", "negative": "hard_neg"},
}
SICK = {"columns": {"sentence1": "sentence_A", "sentence2": "sentence_B", "score": "relatedness_score"}}
KINDS = {
    "lines": ("sentences", "text", "text.txt", {"cleaning": "none"}, LINES),
    "cleaned lines": ("sentences", "text", "text.txt", {"min_words": 1, "max_words": 100}, LINES),
    "triples": ("triples", "all", "nli.csv", CSV, TRIPLES),
    "sick": ("pairs", "all", "sick.txt", SICK, TSV),
    "wikitext": ("sentences", "train", "train.parquet", {"unknown": None, "min_characters": 1}, None),
}  # fmt: skip
READERS = {"cleaned lines": "lines", "triples": "delimited", "sick": "delimited"}


def parquet(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path.read_bytes()


@pytest.fixture
def loaded(tmp_path):
    """A function that loads a file with some content as one of the kinds."""

    def make(kind, content, name=None):
        form, role, file, options, _ = KINDS[kind]
        path = tmp_path / (name or file)
        if content is None:
            path.mkdir()
        else:
            path.write_bytes(content)
        source = {"kind": "local", "files": {role: {"path": path.name, "sha256": None}}, "options": options}
        source["reader"] = READERS.get(kind, kind)
        block = {"form": form, "sources": [source], "contract": {"min_rows": 1}}
        return load("toy", Dataset.parse(block, "datasets.toy"), tmp_path)[0].table

    return make


@pytest.mark.parametrize("kind", [kind for kind in KINDS if KINDS[kind][4]])
def test_a_good_file_is_read(loaded, kind):
    assert len(loaded(kind, KINDS[kind][4].encode())) >= 1


def test_a_published_file_is_read_as_it_is_and_cleaning_is_counted(loaded):
    content = "One  two.\nOne  two.\n\nx\nThe\tend. \n"
    assert loaded("lines", content.encode())["sentence"].to_pylist() == [
        "One  two.",
        "One  two.",
        "",
        "x",
        "The\tend. ",
    ]
    assert loaded("cleaned lines", content.encode())["sentence"].to_pylist() == ["One two.", "x", "The end."]


BAD = {
    "a folder": (None, "a folder, or no file"),
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
        None: None,
        "utf-16": good.encode("utf-16"),
        "latin-1": good.replace("man", "m\xe4n").replace("first", "f\xefrst").encode("latin-1"),
        "nul": good.replace("man", "m\0n").replace("first", "f\0rst").encode(),
        "bom": ("\ufeff\ufeff" + good if kind == "lines" else good.replace("A man", "\ufeffA man")).encode(),
        "long": good.replace("man", "m" * 1_000_000).replace("first", "f" * 1_000_000).encode(),
        "surrogate": good.replace("man", "\ud800")
        .replace("first", "\ud800")
        .encode("utf-8", "surrogatepass"),
    }[fault]
    assert content != good.encode()
    with pytest.raises(DataError, match=found):
        loaded(kind, content)


def test_damaged_parquet_missing_columns_and_nulls_are_named(loaded, tmp_path):
    whole = parquet(tmp_path / "whole", text=["A paragraph. It goes on.", "Another."])
    assert len(loaded("wikitext", whole)) == 3
    flipped = bytearray(whole)
    flipped[len(whole) // 3] ^= 255
    for content in (whole[:-20], whole[: len(whole) // 2], b"", b"PAR1 of another kind", whole[40:]):
        with pytest.raises(DataError, match=r"train\.parquet: not what reader wikitext reads"):
            loaded("wikitext", content)
    with pytest.raises(DataError, match=r"not what reader wikitext reads: .*text"):
        loaded("wikitext", parquet(tmp_path / "other", words=["x"]))
    with pytest.raises(DataError, match="row 2: text is missing"):
        loaded("wikitext", parquet(tmp_path / "null", text=["x", None]))


def test_a_file_cut_in_a_word_breaks_a_contract_of_exact_rows(tmp_path):
    (tmp_path / "wiki.txt").write_text("".join(f"Sentence {n} of many.\n" for n in range(1000))[:-12])
    source = {"kind": "local", "files": {"text": {"path": "wiki.txt", "sha256": None}}, "reader": "lines", "options": {"cleaning": "none"}}  # fmt: skip
    block = {"form": "sentences", "sources": [source], "contract": {"rows": 1000}}
    assert len(load("wiki", Dataset.parse(block, "datasets.wiki"), tmp_path)[0].table) == 1000
    (tmp_path / "wiki.txt").write_text("".join(f"Sentence {n} of many.\n" for n in range(930))[:-12])
    with pytest.raises(DataError, match="rows 930; its contract says 1000"):
        load("wiki", Dataset.parse(block, "datasets.wiki"), tmp_path)


def test_a_negative_that_some_rows_lack_is_named(loaded):
    table = pa.table({"anchor": ["a", "b"], "positive": ["c", "d"], "negative": ["e", None]})
    from workflow_scripts.data.sources import check_contract

    block = {"form": "triples", "sources": [json.loads('{"kind": "hub", "repository": "a/b", "revision": "' + "0" * 40 + '", "splits": ["train"], "columns": {}}')], "contract": {}}  # fmt: skip
    with pytest.raises(DataError, match="row 2: negative is missing"):
        check_contract("toy", Dataset.parse(block, "datasets.toy"), table)
