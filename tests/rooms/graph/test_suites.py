"""Evaluators write the scores that the settings of their suites declare."""

import importlib
from fnmatch import fnmatchcase
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from transformers import AutoModel, AutoTokenizer

from tests.support import toys
from workflow_scripts.columns import LABELLED, PAIRS
from workflow_scripts.evaluation import attention, cost, mteb_scores
from workflow_scripts.settings.grids import Column
from workflow_scripts.settings.suites import SUITES, Attention, Suite
from workflow_scripts.settings.suites import Sts as Sts

TEXTS = toys.sentences(60)


def encode(texts):
    """Distinct vectors that the texts determine."""
    return np.array([np.random.default_rng(len(text)).normal(size=8) + sum(map(ord, text)) % 97 for text in texts],
                    dtype=np.float32)  # fmt: skip


SCORED = [["one", "two"] * 10, TEXTS[:20], TEXTS[20:40], [row % 6 for row in range(20)]]


def labelled(second=True, labels="01"):
    rows = [
        {
            "split": ("train", "dev", "test")[row % 3],
            "text1": TEXTS[row],
            "text2": TEXTS[row + 1] if second else None,
            "label": labels[row // 3 % len(labels)],
        }
        for row in range(54)
    ]
    return pa.Table.from_pylist(rows, schema=LABELLED)


def of_vectors(kind, datasets):
    """Scores of every task of a suite."""
    evaluator = importlib.import_module(f"workflow_scripts.evaluation.{kind}")

    def scores(suite):
        config = evaluator.Config(**suite)
        tasks = (evaluator.load(name, datasets[of], config) for name, of in config.tasks.items())
        return [score for task in tasks for score in task.score(*map(encode, task.columns))]

    return scores


def of_cost(measure):
    """Scores or times of an encoder beside itself."""

    def scores(suite):
        model = toys.make_backbone("bert", 50)
        encoder = model, lambda ids, mask: cost.run_backbone(model, ids % 50, mask)
        return measure(cost.Config(**suite), encoder, encoder)

    return scores


TRANSFER = {
    "graded": ["grades"],
    "classifier": "exact",
    "folds": 2,
    "seed": 0,
}
POSITIVE = {"dataset": "pairs", "comparison": "above", "threshold": 2, "normalise": True}
TEXTS_OF = {"pairs": pa.table(SCORED, schema=PAIRS), "texts": labelled(second=False)}
COST = {"tokens": 8, "batch_sizes": [1], "repeats": 1, "warmup": 0}
CASES = {
    "sts": (
        of_vectors("sts", TEXTS_OF),
        {
            "datasets": ["pairs"],
            "max_tokens": 16,
            "positives": {"near": POSITIVE},
            "samples": {"all": {"dataset": "pairs", "min_characters": 0, "max_sentences": 40}},
        },
    ),
    "clustering": (
        of_vectors("clustering", TEXTS_OF),
        {"datasets": ["texts"], "max_tokens": 16, "seeds": 2, "n_init": 1},
    ),
    "search": (
        of_vectors("search", {"texts": labelled()}),
        {"datasets": ["texts"], "max_tokens": 16, "max_pairs": None},
    ),
    "search by lists": (
        of_vectors("search", {"texts": labelled()}),
        {"datasets": ["texts"], "max_tokens": 16, "max_pairs": None,
         "index": {"nlist": 2, "nprobe": 1}},
    ),
    "transfer": (
        of_vectors("transfer", {"texts": labelled(), "grades": labelled(labels="12345")}),
        {"datasets": ["texts", "grades"], "max_tokens": 16} | TRANSFER,
    ),
    "cost": (of_cost(cost.evaluate), COST),
}  # fmt: skip


class Declared(Suite):
    """A suite that writes what it is told."""

    cells: Any

    def written(self, _lists):
        return self.cells


def held_against(scores, tasks):
    """Every score is declared, and every declared cell is a score."""
    found = {(score.task, score.aggregation, score.metric) for score in scores if score.value is not None}
    assert found
    for task, aggregation, metric in found:
        score = {"suite": "s", "task": task, "aggregation": aggregation, "metric": metric}
        column = Column(heading="x", scale=1, digits=2, **score)
        assert list(column.score_errors(Declared(cells=tasks), {})) == []
    for task, cells in tasks.items():
        for pattern, metric in cells:
            assert any(
                (one, name) == (task, metric) and fnmatchcase(aggregation, pattern)
                for one, aggregation, name in found
            ), f"{task} {pattern} {metric} is declared and not written"


@pytest.mark.parametrize("kind", CASES)
def test_a_suite_writes_what_is_declared_and_nothing_else(kind):
    evaluate, suite = CASES[kind]
    held_against(evaluate(suite), SUITES[kind.split()[0]].parse(suite, kind).written({}))


def test_the_times_of_a_suite_are_what_is_declared():
    """The times of a suite are what is declared and nothing else."""
    held_against(of_cost(cost.time_against_base)(COST), cost.Config(**COST).timed())
    assert Sts(**CASES["sts"][1]).timed() == {}


def test_an_attention_suite_writes_what_is_declared(tiny_bert):
    """An attention suite writes what is declared and nothing else."""
    energy = {"dataset": "texts", "max_sentences": 4, "max_tokens": 16, "batch_size": 2}
    suite = Attention(energy=energy, maps={"sentences": ["a"], "layers": [1], "max_tokens": 16})
    model = AutoModel.from_pretrained(tiny_bert, attn_implementation="eager")
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    scores = attention.cls_energy([model], tokenizer, TEXTS, suite.energy)
    held_against(scores, suite.written({}))


def test_an_mteb_suite_writes_what_is_declared_and_nothing_else():
    task = SimpleNamespace(metadata=SimpleNamespace(descriptive_stats=None))
    scores = {"hf_subset": "en", "main_score": 0.5, "cosine_spearman": 0.5, "other": 0.1}
    result = SimpleNamespace(task_name="STS22.v2", mteb_version="0", dataset_revision="0",
                             scores={"test": [scores]}, get_score=lambda: 0.5)  # fmt: skip
    suite = {"lists": ["mine"], "metrics": ["cosine_spearman"]}
    lists = {"mine": {"STS22": "STS22.v2"}}
    more = {"max_tokens": 16, "batch_size": 1}
    scores = mteb_scores._scores(task, result, suite["metrics"])
    means = mteb_scores.list_means(scores, lists, mteb_scores.Config(**suite, **more))
    held_against([*scores, *means], mteb_scores.Config(**suite, **more).written(lists))


def test_every_kind_of_suite_is_declared():
    assert {kind.split()[0] for kind in CASES} | {"attention", "mteb"} == SUITES.keys()
