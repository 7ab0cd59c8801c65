"""Evaluations whose tasks fail, are killed half-way, damaged, added and taken out."""

import os
import shutil
import signal
from functools import partial
from itertools import pairwise

import pytest

from tests.support import toys
from tests.support.evaluation_jobs import dataset, gaps_of, run, scores_in
from tests.support.training_jobs import in_child
from workflow_scripts.columns import PAIRS, SIMILARITIES
from workflow_scripts.errors import DataError
from workflow_scripts.evaluation import sts
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.provenance.artefacts import read_record, read_table
from workflow_scripts.provenance.cache import Cache

NAMES = ["one", "two", "three"]
TEXTS = {name: toys.sentences(30, seed=number) for number, name in enumerate(NAMES)}
TEXTS["three"][:10] = TEXTS["one"][:10]  # as STS-B has sentences of the tasks before it


def pairs(folder, name):
    texts = TEXTS[name]
    rows = [
        {"subset": None, "sentence1": one, "sentence2": two, "score": float(number % 5)}
        for number, (one, two) in enumerate(pairwise(texts))
    ]
    return dataset(folder, name, PAIRS, rows)


class Suite:
    """One job of evaluate_sts in a folder, called again and again; counts what it computes."""

    def __init__(self, model, folder, cached, monkeypatch):
        self.model, self.folder, self.cached = model, folder, cached
        self.paths = {name: pairs(folder, name) for name in NAMES}
        self.scores, self.pairs = folder / "seed0.parquet", folder / "seed0.pairs.parquet"
        self.computed, self.encoded, self.broken = [], [], {}
        monkeypatch.setattr(sts, "load", partial(self._load, sts.load))
        encode = SentenceEncoder.encode

        def counted(encoder, texts, max_tokens):
            self.encoded += texts
            return encode(encoder, texts, max_tokens)

        monkeypatch.setattr(SentenceEncoder, "encode", counted)

    def _load(self, load, name, table, config):
        task = load(name, table, config)

        def score(*vectors):
            self.computed.append(name)
            if name in self.broken:
                raise self.broken[name]
            return task.score(*vectors)

        return task._replace(score=score)

    def run(self, names=NAMES, **settings):
        """One job; what it computed, and the bytes that it made."""
        self.computed, self.encoded = [], []
        for path in (self.scores, self.pairs):  # as Snakemake does
            path.unlink(missing_ok=True)
        settings = {"suite": {"datasets": list(names), "max_tokens": 32} | settings}
        files = {"datasets": [self.paths[name] for name in names], "scores": self.scores, "pairs": self.pairs}
        run("evaluate_sts", settings, cache=self.cached, model=self.model, **files)
        return self.computed, [path.read_bytes() for path in (self.scores, self.pairs)]

    def values(self):
        return {
            (row["task"], row["aggregation"], row["metric"]): row["value"] for row in scores_in(self.scores)
        }


@pytest.fixture
def suite(model, tmp_path, cached, monkeypatch):
    return Suite(model, tmp_path, cached, monkeypatch)


def test_a_task_that_raises_costs_its_cell_and_is_tried_again(suite, capfd):
    _, whole = suite.run()
    values = suite.values()
    shutil.rmtree(suite.cached.folder)
    suite.broken = {"two": RuntimeError("CUDA out of memory.\nTried to allocate")}
    suite.run()
    reason = "RuntimeError: CUDA out of memory. Tried to allocate"
    assert f"\nevaluate_sts: task two failed: {reason}" in f"\n{capfd.readouterr().err}"
    (note,) = gaps_of(scores_in(suite.scores)).values()
    assert reason in note
    assert f"snakemake --forcerun {suite.scores}" in note
    left = {cell: value for cell, value in suite.values().items() if value is not None}
    assert left == {cell: value for cell, value in values.items() if cell[0] != "two"}
    assert set(read_table(suite.pairs, SIMILARITIES)["task"].to_pylist()) == {"one", "three"}
    (label,) = map(str, read_record(suite.scores).labels)
    assert label.startswith(f"gap: demo, task two of frozen_avg.tiny, seed 0, failed: {reason}")
    suite.broken = {}
    assert suite.run() == (["two"], whole)
    assert suite.run() == ([], whole)


def test_a_task_that_cannot_be_loaded_costs_its_cell(suite):
    rows = [{"subset": None, "sentence1": "a town", "sentence2": "a city", "score": 1.0}] * 2
    suite.paths["two"] = dataset(suite.folder, "two", PAIRS, rows)
    assert suite.run()[0] == ["one", "three"]
    assert gaps_of(scores_in(suite.scores))["two"].startswith(
        "failed: DataError: two: all 2 judgements are 1"
    )


def test_a_job_whose_every_task_fails_fails_in_one_line(suite):
    suite.broken = dict.fromkeys(NAMES, RuntimeError("no"))
    with pytest.raises(
        DataError, match=r"no task gave a score, 3 failed, one with RuntimeError: no \(.*line"
    ):
        suite.run()
    assert not suite.scores.exists()


def test_an_added_dataset_is_the_only_one_computed(suite):
    """A dataset that is added is the only one computed, and one taken out costs nothing."""
    suite.run(["one", "two"])
    before = suite.values()
    computed, _ = suite.run()
    assert computed == ["three"]
    assert set(suite.encoded) == set(TEXTS["three"])
    assert before.items() <= suite.values().items()
    assert suite.run(["three", "one"])[0] == []
    assert {task for task, *_ in suite.values()} == {"three", "one"}
    assert set(read_table(suite.pairs, SIMILARITIES)["task"].to_pylist()) == {"three", "one"}


def test_settings_and_data_of_a_task_compute_it_again(suite, monkeypatch):
    suite.run()
    assert suite.run(max_tokens=16)[0] == NAMES
    monkeypatch.setitem(TEXTS, "two", [*TEXTS["two"], "Another sentence."])
    suite.paths["two"] = pairs(suite.folder, "two")
    assert suite.run(max_tokens=16)[0] == ["two"]


def test_a_killed_job_goes_on_behind_its_finished_tasks(suite, monkeypatch):
    """A job that is killed goes on behind its finished tasks and ends in the same bytes."""
    _, whole = suite.run()
    assert len(suite.encoded) == len({text for name in NAMES for text in TEXTS[name]})  # each text once
    shutil.rmtree(suite.cached.folder)
    put = Cache.put

    def die(*given):
        if suite.computed[-1] == "two":
            os.kill(os.getpid(), signal.SIGKILL)
        put(*given)

    with monkeypatch.context() as patch:
        patch.setattr(Cache, "put", die)
        assert in_child(suite.run, suite.folder / "log") == -signal.SIGKILL
    assert not suite.scores.exists()
    assert suite.run() == (["two", "three"], whole)


# Geometry, from the vectors of scored pairs

SPACE = {
    "positives": {"near": {"dataset": "one", "comparison": "at_least", "threshold": 4, "normalise": True}},
    "samples": {"sentences": {"dataset": "two", "min_characters": 0, "max_sentences": 30}},
}


def test_geometry_is_finished_like_any_task(suite):
    """Geometry is measured on existing vectors, and finished like any task."""
    suite.run()
    pairs_alone, encoded = suite.values(), sorted(suite.encoded)
    shutil.rmtree(suite.cached.folder)
    _, whole = suite.run(**SPACE)
    assert sorted(suite.encoded) == encoded
    values = suite.values()
    assert {task for task, *_ in values} == {*NAMES, "near", "sentences"}
    assert {cell: values[cell] for cell in pairs_alone} == pytest.approx(pairs_alone, abs=1e-6)
    assert set(read_table(suite.pairs, SIMILARITIES)["task"].to_pylist()) == set(NAMES)
    assert suite.run(**SPACE) == ([], whole)
    other = SPACE | {"positives": {"near": SPACE["positives"]["near"] | {"threshold": 3}}}
    assert suite.run(**other)[0] == ["near"]
