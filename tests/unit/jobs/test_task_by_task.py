"""Evaluations whose tasks fail, are killed half-way, damaged, added and taken out."""

import json
import os
import shutil
import signal
import subprocess
import sys
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests import tiny
from tests.unit.jobs.test_evaluation_jobs import dataset, run, scores_in
from workflow_scripts.columns.corpora import LABELLED, PAIRS
from workflow_scripts.columns.scores import SIMILARITIES
from workflow_scripts.errors import DataError
from workflow_scripts.evaluation import opened, search, sts, transfer
from workflow_scripts.evaluation.embeddings import SharedTexts, texts_asked_for
from workflow_scripts.models import encoding
from workflow_scripts.models.folders import load_encoder
from workflow_scripts.provenance import job, kept
from workflow_scripts.provenance.artefacts import read_record, read_table

ROOT = Path(__file__).parents[3]
NAMES = ["one", "two", "three"]
TEXTS = {name: tiny.sentences(30, seed=number) for number, name in enumerate(NAMES)}
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

    def __init__(self, model, folder, monkeypatch):
        self.model, self.folder = model, folder
        self.paths = {name: pairs(folder, name) for name in NAMES}
        self.scores, self.pairs = folder / "seed0.parquet", folder / "seed0.pairs.parquet"
        self.checkpoints = folder / "seed0.checkpoints"
        self.computed, self.encoded, self.broken = [], [], {}
        self.at_end = []
        register = SimpleNamespace(
            register=lambda function, *values: self.at_end.append((function, values)),
            unregister=lambda gone: self.at_end.__setitem__(slice(None), []),
        )
        monkeypatch.setattr(job, "atexit", register)
        monkeypatch.setattr(sts, "evaluate", partial(self._evaluate, sts.evaluate))
        monkeypatch.setattr(opened, "encode", self._encode)

    def _encode(self, *given, **named):
        self.encoded += given[2]
        return encoding.encode(*given, **named)

    def _evaluate(self, evaluate, datasets, encode):
        def noted(sentences):
            vectors = encode(sentences)  # ends the call that only asks for texts
            self.computed.append(name)
            if name in self.broken:
                raise self.broken[name]
            return vectors

        (name,) = datasets
        return evaluate(datasets, noted)

    def run(self, names=NAMES, **settings):
        """One job; what it computed, and the bytes that it made."""
        self.computed, self.encoded, self.at_end = [], [], []
        for path in (self.scores, self.pairs):  # as Snakemake does
            path.unlink(missing_ok=True)
        suite = {"datasets": list(names), "max_tokens": 32} | settings
        paths = [self.paths[name] for name in names]
        files = {"model": self.model, "datasets": paths, "scores": self.scores, "pairs": self.pairs}
        run("evaluate_sts", {"suite": suite}, **files)
        return self.computed, self.made()

    def end(self):
        """What a process does at its end."""
        for function, values in self.at_end:
            function(*values)

    def made(self):
        return [path.read_bytes() for path in (self.scores, self.pairs)]

    def values(self):
        return {
            (row["task"], row["aggregation"], row["metric"]): row["value"] for row in scores_in(self.scores)
        }


@pytest.fixture
def suite(model, tmp_path, monkeypatch):
    return Suite(model, tmp_path, monkeypatch)


ERRORS = [
    DataError("two.parquet: nothing in it. Mend it."),
    np.linalg.LinAlgError("Singular matrix"),
    MemoryError("Unable to allocate 9 TiB"),
    RuntimeError("CUDA out of memory.\nTried to allocate"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_task_that_raises_costs_its_cell_and_is_tried_again(suite, error, capfd):
    _, whole = suite.run()
    values = suite.values()
    shutil.rmtree(suite.checkpoints)
    suite.broken = {"two": error}
    suite.run()
    suite.end()
    reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
    (line,) = [line for line in capfd.readouterr().err.splitlines() if "failed" in line]
    assert line.startswith(f"evaluate_sts: task two failed: {reason}")
    rows = [row for row in scores_in(suite.scores) if row["task"] == "two"]
    assert [row["value"] for row in rows] == [None]
    assert reason in rows[0]["note"] and f"snakemake --forcerun {suite.scores}" in rows[0]["note"]
    assert {cell: value for cell, value in suite.values().items() if cell[0] != "two"} == {
        cell: value for cell, value in values.items() if cell[0] != "two"
    }
    assert set(read_table(suite.pairs, SIMILARITIES)["task"].to_pylist()) == {"one", "three"}
    (label,) = read_record(suite.scores).labels
    assert label.startswith(f"gap: demo, task two of frozen_avg.tiny, seed 0, failed: {reason}")
    assert not kept.folder_of([suite.scores, suite.pairs]).exists()
    suite.broken = {}
    assert suite.run() == (["two"], whole)
    suite.end()
    assert kept.folder_of([suite.scores, suite.pairs]).exists()


def test_the_label_of_a_failed_task_is_a_gap_on_the_page_and_below_tables(suite):
    from workflow_scripts.reporting.labels import split_labels

    suite.broken = {"two": RuntimeError("no")}
    suite.run()
    labels = split_labels(read_record(suite.scores).labels)
    assert not labels.substitutions
    assert "task two of frozen_avg.tiny, seed 0, failed: RuntimeError: no" in labels.gaps[0]


def test_an_interrupt_ends_the_job(suite):
    suite.broken = {"two": KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        suite.run()
    assert not suite.scores.exists()
    suite.broken = {}
    assert suite.run()[0] == ["two", "three"]


def test_a_job_whose_every_task_fails_fails_in_one_line(suite):
    suite.broken = dict.fromkeys(NAMES, RuntimeError("no"))
    with pytest.raises(
        DataError, match=r"no task gave a score, 3 failed, one with RuntimeError: no \(.*line"
    ):
        suite.run()
    assert not suite.scores.exists()


def test_a_task_alone_scores_as_in_its_suite_and_each_text_is_encoded_once(suite, model):
    suite.run()
    assert (
        len(suite.encoded) == len(set(suite.encoded)) == len({text for name in NAMES for text in TEXTS[name]})
    )
    together = suite.values()
    encoder, tokenizer = load_encoder(model.parent)
    tables = {name: read_table(path, PAIRS) for name, path in suite.paths.items()}
    at_once = sts.evaluate.args[0](tables, partial(encoding.encode, encoder, tokenizer, max_tokens=32))[0]
    assert {(s.task, s.aggregation, s.metric) for s in at_once} == together.keys()
    for score in at_once:
        assert together[score.task, score.aggregation, score.metric] == pytest.approx(score.value, abs=1e-6)
    for name in NAMES:
        shutil.rmtree(suite.checkpoints)
        suite.run([name])
        for cell, value in suite.values().items():
            assert together[cell] == pytest.approx(value, abs=1e-6)


def test_a_dataset_that_is_added_is_computed_alone_and_one_taken_out_costs_nothing(suite):
    suite.run(["one", "two"])
    before = suite.values()
    computed, _ = suite.run()
    assert computed == ["three"]
    assert set(suite.encoded) == set(TEXTS["three"])
    assert before.items() <= suite.values().items()
    assert suite.run(["three", "one"])[0] == []
    assert {task for task, *_ in suite.values()} == {"three", "one"}
    assert set(read_table(suite.pairs, SIMILARITIES)["task"].to_pylist()) == {"three", "one"}


def test_settings_and_data_of_a_task_compute_it_again(suite):
    suite.run()
    assert suite.run(max_tokens=16)[0] == NAMES
    TEXTS["two"].append("Another sentence.")
    suite.paths["two"] = pairs(suite.folder, "two")
    assert suite.run(max_tokens=16)[0] == ["two"]
    TEXTS["two"].pop()


def flip(path):
    content = path.read_bytes()
    path.write_bytes(content[:40] + bytes([content[40] ^ 1]) + content[41:])


DAMAGE = {
    "a flipped bit": flip,
    "half a file": lambda path: path.write_bytes(path.read_bytes()[:200]),
    "no file": Path.unlink,
    "nothing in it": lambda path: path.write_bytes(b""),
    "another task's": lambda path: shutil.copy(path.with_name(path.name.replace("two", "one")), path),
}


@pytest.mark.parametrize("role", ["scores", "pairs"])
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_or_foreign_checkpoint_is_made_again(suite, role, damage):
    _, whole = suite.run()
    damage(suite.checkpoints / f"two.{role}.parquet")
    assert suite.run() == (["two"], whole)
    assert suite.run() == ([], whole)


KILLED = """
import json, os, sys
from workflow_scripts.evaluation import task_by_task
write = task_by_task.write_table
def die(path, *given):
    if path.name.startswith("two"):
        os.kill(os.getpid(), 9)
    write(path, *given)
task_by_task.write_table = die
from workflow_scripts.jobs import evaluate_sts
from workflow_scripts.provenance.job import begin
evaluate_sts.main(begin("evaluate_sts", json.loads(sys.argv[1])))
"""


def test_a_job_that_is_killed_goes_on_behind_its_finished_tasks_and_ends_in_the_same_bytes(
    suite, monkeypatch
):
    _, whole = suite.run()
    shutil.rmtree(suite.checkpoints)
    calls = []
    monkeypatch.setattr(
        "tests.unit.jobs.test_evaluation_jobs.begin_here", lambda _, call: calls.append(json.dumps(call))
    )
    with pytest.raises(FileNotFoundError):
        suite.run()
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, *calls],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not suite.scores.exists()
    names = {path.name for path in suite.checkpoints.iterdir() if not path.name.startswith(".")}
    assert names == {"one.scores.parquet", "one.pairs.parquet"}
    monkeypatch.undo()
    again = Suite(suite.model, suite.folder, monkeypatch)
    assert again.run() == (["two", "three"], whole)


def questions(folder, name):
    texts = TEXTS[name]
    rows = [
        {"split": "", "text1": one, "text2": two, "label": f"{number % 2}"}
        for number, (one, two) in enumerate(zip(texts, reversed(texts), strict=True))
    ]
    return dataset(folder, name, LABELLED, rows)


SEARCH = {
    "max_tokens": 32,
    "corpus": "question2",
    "max_pairs": None,
    "nlist": 1,
    "nprobe": 1,
    "readout": None,
}


def test_search_keeps_times_with_its_finished_tasks(model, tmp_path, monkeypatch):
    monkeypatch.setattr(job, "atexit", SimpleNamespace(register=lambda *_: None, unregister=lambda *_: None))
    files = {"model": model, "scores": tmp_path / "scores.parquet", "times": tmp_path / "times.parquet"}
    paths = [questions(tmp_path, name) for name in ("one", "two")]
    run("evaluate_search", {"suite": SEARCH | {"datasets": ["one"]}}, datasets=paths[:1], **files)
    monkeypatch.setattr(search, "_search", lambda *_: 1 / 0)
    run("evaluate_search", {"suite": SEARCH | {"datasets": ["one", "two"]}}, datasets=paths, **files)
    for file in (files["scores"], files["times"]):
        found = {(row["task"], row["aggregation"]): row["value"] for row in scores_in(file)}
        assert found["one", "flat"] > 0 and found["two", ""] is None
    assert "ZeroDivisionError" in read_record(files["scores"]).labels[0]


TRANSFER = {
    "grades": [1, 5],
    "classifier": "exact",
    "folds": 2,
    "seed": 1,
    "standardise": False,
    "max_tokens": 32,
}


def test_what_is_graded_is_part_of_that_task_alone(tmp_path):
    config = transfer.Config(datasets=["a", "b"], graded=["b"], **TRANSFER)
    assert config.of_task("a").graded == []
    assert config.of_task("b").graded == ["b"]
    assert config.of_task("a") == transfer.Config(datasets=["a", "c"], graded=["c"], **TRANSFER).of_task("a")


# Texts that tasks share


def counted(asked):
    def encode(texts):
        asked.append(list(texts))
        return np.array([[len(asked), ord(text[0])] for text in texts], dtype=np.float32)

    return encode


def test_units_are_the_same_whichever_task_is_left_to_do():
    texts = {"first": ["a", "b", "c"], "second": ["b", "d"], "third": ["b", "c"]}
    asked = []
    shared = SharedTexts(counted(asked), texts)
    assert shared.of("second")(["d", "b", "b"])[:, 1].tolist() == [100, 98, 98]
    assert asked == [["d"], ["b"]]
    shared.of("first")(["a", "b", "c"])
    shared.of("third")(["b", "c"])
    assert asked == [["d"], ["b"], ["a"], ["c"]]


def test_vectors_are_let_go_of_behind_the_last_task_that_asks_for_them():
    asked = []
    shared = SharedTexts(counted(asked), {"first": ["a", "b"], "second": ["b"]})
    shared.of("first")(["a", "b"])
    shared.forget("first")
    assert [unit.texts for unit in shared._units if unit.vectors is not None] == [["b"]]
    shared.of("second")(["b"])
    shared.forget("second")
    assert [unit for unit in shared._units if unit.vectors is not None] == []
    assert asked == [["a"], ["b"]]


def test_a_task_may_ask_for_more_than_at_first_and_for_nothing():
    asked = []
    shared = SharedTexts(counted(asked), {"first": ["a"], "second": ["b"]})
    first = shared.of("first")
    assert first(["a", "b"])[:, 1].tolist() == first(["b", "a"])[::-1, 1].tolist() == [97, 98]
    assert asked == [["a"], ["b"]]
    assert len(first([])) == 0


def test_what_a_task_asks_for_is_found_without_computing_it():
    assert texts_asked_for(lambda encode: encode(["b", "a", "b"])) == ["b", "a"]
    assert texts_asked_for(lambda encode: None) == []
    assert texts_asked_for(lambda encode: 1 / 0) == []
