"""Rows of datasets and corpora before anything is read."""

from workflow_scripts.data import sources
from workflow_scripts.graph.rows import Rows


def test_a_small_file_is_read_once_for_all_that_ask(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    source = {"kind": "local", "files": {"text": {"path": "a.txt", "sha256": None}}, "reader": "lines"}
    trip = {"corpus": "all", "max_sentences": None, "form": "expanded"}
    config = {
        "datasets": {"mine": {"form": "sentences", "sources": [source], "contract": {}}},
        "corpora": {
            "all": {"dataset": "mine", "dev_sentences": 0, "max_sentences": None},
            "two": {"dataset": "mine", "dev_sentences": 1, "max_sentences": None},
            "none": {"dataset": "mine", "dev_sentences": 3, "max_sentences": None},
            "twice": {"round_trip": trip},
        },
    }
    reads, load = [], sources.load
    monkeypatch.setattr(sources, "load", lambda *given: reads.append(given[0]) or load(*given))
    rows = Rows(config, tmp_path)
    assert {corpus: rows.most(corpus) for corpus in config["corpora"]} == {
        "all": 3, "two": 2, "none": None, "twice": 6
    }  # fmt: skip
    assert [*rows.findings()] == [
        "corpora.none.dev_sentences: 3; mine has 3 sentences. Lower it, or take more text."
    ]
    assert reads == ["mine"]
