import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.snakemake_plans import DEMO, ROOT, merged_config, settings_with
from tests.support.training_jobs import call
from workflow_scripts.columns import WORD_VECTORS
from workflow_scripts.errors import DataError
from workflow_scripts.extraction.representations import Key, TableVectors
from workflow_scripts.extraction.vocabulary import split_into_words, word_vocabulary
from workflow_scripts.extraction.weighting import weigh
from workflow_scripts.extraction.word_vectors import locate, read
from workflow_scripts.graph.extraction import Extraction
from workflow_scripts.graph.study import Study
from workflow_scripts.provenance.artefacts import read_record, read_table
from workflow_scripts.provenance.record import sha256_of
from workflow_scripts.settings.extraction import WordRepresentation

LABEL = "toy vectors stand in for others"
WORDS, VECTORS = ["the", ",", "river"], np.array([[0.5, 1], [-1, 2e-3], [3, 4]], np.float32)
CONTENT = "3 2\nthe 0.5 1.0 \nriver -1.0 2e-3 \n, 3.0 4.0 \n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text(CONTENT)
    return path


@pytest.mark.parametrize("dropped", [0, 1])
def test_words_are_read_in_order_with_their_vectors(file, dropped):
    """F16: X2Static ends every line with a blank."""
    table = read({"vectors": file}, dropped)
    assert table["word"].to_pylist() == ["the", "river", ","][dropped:]
    assert table["rank"].to_pylist() == [1, 2, 3][dropped:]
    np.testing.assert_allclose(
        table["vector"].to_pylist(), [[0.5, 1], [-1, 0.002], [3, 4]][dropped:], rtol=1e-6
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("3 2\nthe 0.5 1.0\n", "1 words instead of the header's 3"),
        ("1 2\nthe 0.5\n", ":2: "),
        ("the 0.5 1.0\n", ":1: "),
        ("1 2\nthe 0.5 1.0\nof 1 2\n", ":3: "),
    ],
)
def test_a_file_that_is_not_whole_is_refused(file, content, message):
    file.write_text(content)
    with pytest.raises(DataError, match=message):
        read({"vectors": file}, 0)


# Of an installed package.


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The folder of a package that can be imported."""
    folder = tmp_path / "site/toy_vectors"
    (folder / "data").mkdir(parents=True)
    (folder / "__init__.py").touch()
    np.save(folder / "data/vectors.npy", np.asfortranarray(VECTORS))
    pq.write_table(pa.table({"index": WORDS}), folder / "data/words.parquet")
    monkeypatch.syspath_prepend(str(folder.parent))
    return folder


def block(folder):
    """The representation of a package, pinned as it is now."""
    files = {"vectors": "data/vectors.npy", "words": "data/words.parquet"}
    pinned = {role: {"path": path, "sha256": sha256_of(folder / path)} for role, path in files.items()}
    source = {"kind": "package", "package": folder.name} | pinned
    return {"kind": "words", "source": source, "drop_frequent": 0, "licence": "PDDL-1.0", "label": LABEL}


def test_bytes_that_are_not_pinned_are_refused(package):
    representation = WordRepresentation.parse(block(package), "toy")
    np.save(package / "data/vectors.npy", VECTORS[::-1])
    with pytest.raises(DataError, match=r"vectors\.npy: sha256 \w+; pinned \w+"):
        locate(representation, None)


def read_as_planned(representation, folder):
    """The source that the graph names for the job, the rows that the job then reads, and their labels."""
    extraction = merged_config(DEMO)["extraction"]
    extraction["representations"]["toy"] = representation
    study = Study(settings_with(name=folder.name, extraction=extraction), {}, ROOT)
    slice_ = json.loads(Extraction(study).word_vectors(SimpleNamespace(representation="toy")))
    call("read_word_vectors", slice_, representation="toy", vectors="toy.parquet")
    rows = len(read_table(Path("toy.parquet"), WORD_VECTORS))
    return slice_["source"], rows, [*map(str, read_record(Path("toy.parquet")).labels)]


def test_the_job_reads_what_the_graph_has_planned_and_labels_it(package, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = {
        f"package:toy_vectors/{path}": sha256_of(package / path)
        for path in ("data/vectors.npy", "data/words.parquet")
    }
    plan, rows, labels = read_as_planned(block(package), tmp_path)
    assert (plan["kind"], plan["files"], rows, labels) == ("files", files, 3, [LABEL])


def test_a_package_that_is_not_installed_is_a_gap(package, tmp_path, monkeypatch):
    """A package that is not installed is a gap that names its files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(package.parent)])
    source, rows, (label,) = read_as_planned(block(package), tmp_path)
    assert (source["kind"], rows) == ("none", 0)
    assert label.startswith("gap: toy: not found; expected package:toy_vectors/data/vectors.npy (sha256 ")
    assert label.endswith(f"words.parquet (sha256 {sha256_of(package / 'data/words.parquet')})")


def test_words_are_looked_up_in_lower_case():
    """Whole words are looked up in lower case and unknown ones left out."""
    text = split_into_words(["the", "river", ","], ["The river, the sea", "sea", ""], 10)
    assert np.split(text.ids, text.starts[1:-1])[0].tolist() == [1, 2, 3, 1]
    assert text.lengths.tolist() == [4, 1, 1]
    assert text.ids[-2:].tolist() == [0, 0]


def test_the_first_vector_of_a_repeated_word_counts():
    """Words are in descending order of frequency; gensim ignores all vectors but the first, too."""
    words = ["the", "river", "the"]
    assert split_into_words(words, ["the river"], 10).ids.tolist() == [1, 2]
    assert word_vocabulary(words, ["the"], []).biased["frequent"] == [1]


def test_texts_without_a_known_word_are_counted_in_the_note():
    words = ["the", "river", ","]
    texts = ["The river", "sea", "seas", ","]
    tables = [np.concatenate([np.zeros((1, 2), np.float32), VECTORS])]
    vectors = TableVectors(lambda texts, most: split_into_words(words, texts, most), tables)
    for chosen, note in [(texts, "2 of 4 texts without a known word: zero vector"), (["the"], "")]:
        tokens = vectors.tokens(chosen, 10).filled
        weights = {"avg": weigh(tokens, np.ones((1, 4)), np.zeros(len(tokens), np.int64))}
        (made,) = vectors.make(tokens, weights, [Key(0, 0, "static", "avg")])
        assert made.note == note


def test_words_have_no_subwords_and_drop_the_same_lists():
    """F11"""
    vocabulary = word_vocabulary(["the", "river", ","], ["the", "##s"], [",", "."])
    assert (vocabulary.biased["frequent"], vocabulary.biased["punctuation"]) == ([1], [3])
    assert not vocabulary.biased["subword"]
