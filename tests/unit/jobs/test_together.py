"""Several jobs of one process: scored pairs of a run, and its geometry behind them."""

import json
import shutil
from itertools import pairwise
from types import SimpleNamespace

import pytest

from tests import tiny
from tests.jobs import planned_code
from tests.unit.jobs.conftest import made
from tests.unit.jobs.test_evaluation_jobs import dataset, scores_in
from workflow_scripts.columns.corpora import PAIRS
from workflow_scripts.evaluation import opened, sts
from workflow_scripts.jobs import __main__ as together
from workflow_scripts.models import encoding
from workflow_scripts.provenance import job
from workflow_scripts.provenance.artefacts import read_record, read_table, write_table

NAMES = ["one", "two"]
SUITE = {"datasets": NAMES, "max_tokens": 32}
SPACE = {
    "max_tokens": 32,
    "positives": {"close": {"dataset": "two", "comparison": "at_least", "threshold": 3, "normalise": True}},
    "samples": {"some": {"dataset": "two", "min_characters": 0, "max_sentences": 12}},
}


class Study:
    """Both jobs of a run in a folder, in one process or each in its own; counts what they compute."""

    def __init__(self, model, folder, monkeypatch):
        self.model, self.folder = model, folder
        self.datasets = [self._pairs(number, name) for number, name in enumerate(NAMES)]
        self.scores, self.pairs = folder / "sts/seed0.parquet", folder / "sts/seed0.pairs.parquet"
        self.geometry = folder / "geometry/seed0.parquet"
        self.encoded, self.correlated, self.at_end = [], [], []
        register = SimpleNamespace(
            register=lambda function, *values: self.at_end.append((function, values)),
            unregister=lambda gone: self.at_end.remove((gone, ())),
        )
        monkeypatch.setattr(job, "atexit", register)
        monkeypatch.setattr(opened, "encode", self._encode)
        correlations = sts.correlations
        monkeypatch.setattr(
            sts, "correlations", lambda *given: self.correlated.append(given[1]) or correlations(*given)
        )

    def _pairs(self, number, name):
        texts = tiny.sentences(30, seed=number)
        rows = [
            {"subset": None, "sentence1": one, "sentence2": two, "score": float(count % 5)}
            for count, (one, two) in enumerate(pairwise(texts))
        ]
        return dataset(self.folder, name, PAIRS, rows)

    def _encode(self, *given, **named):
        self.encoded += given[2]
        return encoding.encode(*given, **named)

    def line(self, script, settings, **files):
        words = [script, *planned_code(script), "--config", json.dumps(settings), "--gpus", "0"]
        named = {"suite": "demo", "run": "frozen_avg.tiny", "seed": "0", "model": self.model}
        for name, value in (named | files).items():
            words += [f"--{name}", *map(str, value if isinstance(value, list) else [value])]
        return words

    def sts(self):
        files = {"datasets": self.datasets, "scores": self.scores, "pairs": self.pairs}
        return self.line("evaluate_sts", {"suite": SUITE}, **files)

    def space(self, **changes):
        settings = {"suite": SPACE | changes, "beside": SUITE}
        files = {"datasets": self.datasets[1:], "beside": self.datasets, "scores": self.geometry}
        return self.line("evaluate_geometry", settings, **files)

    def process(self, *jobs):
        """A process with these jobs, and the bytes that are there when it has ended."""
        opened._opened.cache_clear()
        self.encoded, self.correlated, self.at_end = [], [], []
        for path in (self.scores, self.pairs, self.geometry):  # as Snakemake does
            path.unlink(missing_ok=True)
        with pytest.raises(SystemExit) as ended:
            together.main([word for line in jobs for word in ("--then", *line)])
        self.code = ended.value.code
        for function, values in self.at_end:
            function(*values)
        return [path.read_bytes() for path in (self.scores, self.pairs, self.geometry) if path.exists()]


@pytest.fixture
def study(model, tmp_path, monkeypatch):
    for folder in ("sts", "geometry"):
        (tmp_path / folder).mkdir()
    return Study(model, tmp_path, monkeypatch)


def forget(study):
    """As if nothing had been made."""
    for folder in ("sts", "geometry"):
        shutil.rmtree(study.folder / folder)
        (study.folder / folder).mkdir()


def test_two_jobs_of_one_process_make_what_each_makes_alone_and_encode_a_text_once(study):
    both = study.process(study.sts(), study.space())
    assert len(both) == 3 and study.code == 0
    assert len(study.encoded) == len(set(study.encoded)) > 40
    forget(study)
    alone = study.process(study.sts())
    forget(study)
    assert both == [*alone, *study.process(study.space())]
    assert read_record(study.geometry).rule == "evaluate_geometry"
    assert {row["task"] for row in scores_in(study.geometry)} == {"close", "some"}


def test_another_setting_of_the_geometry_computes_no_score_of_pairs(study):
    scores, pairs, geometry = study.process(study.sts(), study.space())
    assert study.correlated == NAMES
    samples = {"some": SPACE["samples"]["some"] | {"max_sentences": 13}}
    again = study.process(study.sts(), study.space(samples=samples))
    assert again[:2] == [scores, pairs] and again[2] != geometry
    assert study.correlated == []
    assert len(study.encoded) == len(set(study.encoded))


def test_a_job_that_fails_does_not_stop_the_next_and_is_told_of(study, capfd):
    study.datasets[0].write_bytes(b"damaged")
    space = study.space()
    space[space.index("--beside") + 1 :] = [str(study.datasets[1]), *space[space.index("--scores") :]]
    study.process(study.sts(), space)
    assert study.code == 1
    assert study.geometry.exists() and not study.scores.exists()
    said = capfd.readouterr().err
    assert said.startswith(f"DataError: {study.datasets[0]}")
    assert said.endswith("What 1 of 2 jobs of this command made is kept, and put back by the next run.\n")


def test_what_is_measured_beside_other_texts_is_labelled_by_its_own_alone(study):
    label = "a stand-in for one"
    write_table(
        study.datasets[0],
        read_table(study.datasets[0], PAIRS),
        made(study.datasets[0]).model_copy(update={"labels": [label]}),
    )
    study.process(study.sts(), study.space())
    assert label in read_record(study.scores).labels
    record = read_record(study.geometry)
    assert {role.partition("/")[0] for role in record.inputs} == {"model", "datasets", "beside"}
    assert label not in record.labels


@pytest.mark.parametrize(("codes", "ended", "begun"), [((0, 0), 0, 2), ((75, 1), 75, 2), ((130, 0), 130, 1)])
def test_the_first_failure_is_the_exit_code_and_an_interruption_ends_all(monkeypatch, codes, ended, begun):
    answers = list(codes)
    monkeypatch.setattr(together, "_run", lambda *_: answers.pop(0))
    with pytest.raises(SystemExit) as end:
        together.main(["one", "--suite", "a", "--then", "two"])
    assert (end.value.code, len(codes) - len(answers)) == (ended, begun)
