"""Nested cross-validation of a transfer task, against the loop over scikit-learn that SentEval runs.

Both fit every inner fold with every penalty and every outer fold with its own, on float32 features, as SentEval gives
them to scikit-learn. scikit-learn stops at its default tolerance; the batched solver goes on to the optimum all the
same. All fits of one penalty are alike, so a few of scikit-learn's are timed and multiplied.
"""

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from benchmarks.harness import Measured, Timing, ratios
from workflow_scripts.evaluation import logistic

CODE = ("workflow_scripts/evaluation/logistic.py",)
ROWS, WIDTH, FOLDS = 10_662, 384, 10  # MR with all-MiniLM-L6-v2
STRENGTHS = [2.0**power for power in range(-2, 4)]
SAMPLE = 4
"""Fits of scikit-learn timed per penalty."""


def measure(timing: Timing) -> Iterator[Measured]:
    """Fit both ways, print how far their predictions differ."""
    rows = 400 if timing.small else ROWS
    random = np.random.default_rng(0)
    features = random.normal(size=(rows, WIDTH)).astype(np.float32) / np.float32(np.sqrt(WIDTH))
    labels = (features @ random.normal(size=WIDTH) * 3 + random.logistic(size=rows) > 0).astype(int)
    masks = subsets(labels)
    found: dict[str, Any] = {}

    def batched() -> None:
        found["ours"] = logistic.solve(features, np.eye(2)[labels], masks, STRENGTHS)

    def looped() -> None:
        found["theirs"] = [
            [LogisticRegression(C=strength).fit(features[mask], labels[mask]) for mask in masks[:SAMPLE]]
            for strength in STRENGTHS
        ]

    seconds = timing.interleaved({"batched": batched, "scikit-learn": looped})
    worst = 0.0
    for weights, models in zip(found["ours"], found["theirs"], strict=True):
        for weight, model in zip(weights, models, strict=False):
            ours = features @ weight[1, :-1].numpy() + float(weight[1, -1]) > 0
            worst = max(worst, float((model.predict(features) != ours).mean()))
    print(f"# predictions differ on at most {100 * worst:.3f}% of rows", file=sys.stderr)
    faster = [ratio / SAMPLE * len(masks) for ratio in ratios(seconds, "scikit-learn", "batched")]
    yield Measured("transfer_solver", faster, "times-as-fast", "batched-solver-against-scikit-learn")


def subsets(labels: np.ndarray) -> np.ndarray:
    """Training rows of all inner and outer folds, shape (FOLDS * FOLDS + FOLDS, rows)."""
    splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=1111)
    outer = [rows for rows, _ in splitter.split(labels, labels)]
    inner = [rows[kept] for rows in outer for kept, _ in splitter.split(rows, labels[rows])]
    masks = np.zeros((len(inner) + len(outer), len(labels)), dtype=bool)
    for mask, rows in zip(masks, inner + outer, strict=True):
        mask[rows] = True
    return masks
