"""Time nested cross-validation of a transfer task against the loop over scikit-learn that SentEval runs.

Both fit every inner fold with every penalty and every outer fold with its own, on one thread and on float32
features, as SentEval gives them to scikit-learn. scikit-learn stops at its default tolerance; the batched
solver goes on to the optimum all the same.
"""

import argparse
import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import time

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from workflow_scripts.evaluation import logistic

ROWS, WIDTH, FOLDS = 10_662, 384, 10  # MR with all-MiniLM-L6-v2
STRENGTHS = [2.0**power for power in range(-2, 4)]
SAMPLE = 12
"""Fits of scikit-learn timed per penalty; all fits of one penalty are alike, so the rest is extrapolated."""


def main() -> None:
    """Print the ratio of times."""
    torch.set_num_threads(1)
    random = np.random.default_rng(0)
    features = random.normal(size=(ROWS, WIDTH)).astype(np.float32) / np.float32(np.sqrt(WIDTH))
    labels = (features @ random.normal(size=WIDTH) * 3 + random.logistic(size=ROWS) > 0).astype(int)
    masks = subsets(labels)

    start = time.perf_counter()
    solutions = logistic.solve(features, np.eye(2)[labels], masks, STRENGTHS)
    batched = time.perf_counter() - start

    start = time.perf_counter()
    worst = 0.0
    for strength, weights in zip(STRENGTHS, solutions, strict=True):
        for index in range(SAMPLE):
            model = LogisticRegression(C=strength).fit(features[masks[index]], labels[masks[index]])
            ours = features @ weights[index, 1, :-1].numpy() + float(weights[index, 1, -1]) > 0
            worst = max(worst, float((model.predict(features) != ours).mean()))
    looped = (time.perf_counter() - start) / SAMPLE * len(masks)
    print(f"bench transfer_solver {looped / batched:.1f} x batched-solver-against-scikit-learn")
    print(
        f"# {batched:.1f} s against {looped:.1f} s; predictions differ on at most {100 * worst:.3f}% of rows"
    )


def subsets(labels: np.ndarray) -> np.ndarray:
    """Training rows of all inner and outer folds, shape (FOLDS * FOLDS + FOLDS, rows)."""
    splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=1111)
    outer = [rows for rows, _ in splitter.split(labels, labels)]
    inner = [rows[kept] for rows in outer for kept, _ in splitter.split(rows, labels[rows])]
    masks = np.zeros((len(inner) + len(outer), len(labels)), dtype=bool)
    for mask, rows in zip(masks, inner + outer, strict=True):
        mask[rows] = True
    return masks


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
