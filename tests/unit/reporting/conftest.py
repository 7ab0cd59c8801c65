"""A small study made up for reporting: its artefacts as the pipeline leaves them."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from workflow_scripts.artefacts import job_record, write_table
from workflow_scripts.closure import ROOT
from workflow_scripts.dag import runs_of
from workflow_scripts.evaluation.scores import Score, gap, score_table
from workflow_scripts.schemas import DROPPED, HISTORY, PAIRS, SENTENCES, SIMILARITIES, WORD_COUNTS

STAND_IN = "all-MiniLM-L6-v2 stands in for BERT-base"
ADAPTED = "minilm_mlm, adapted by masked language modelling, stands in for a raw pretrained encoder"
EDGES = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
SIGNIFICANCE = {"alpha": 0.05, "power": 0.8, "permutations": 1000, "resamples": 1000, "seed": 0}
REPORT = {
    "figure": {"width_inches": 7.3},
    "learning_curves": {"loss_blocks": 40},
    "cosine_density": {"task": "stsb_test", "edges": EDGES, "bandwidth": 0.03},
    "alignment_uniformity": {"suite": "geometry", "task": "stsb_dev"},
    "page": {"top_words": 12},
}
GRID = {
    "title": "Unsupervised SimCSE on a small encoder",
    "source": "Gao et al. 2021, Table 5",
    "seeds": [1, 2, 3],
    "baseline": "untrained_cls.minilm_mlm",
    "suites": {"sts": ["sts"], "geometry": ["geometry"]},
    "runs": [
        {"method": ["untrained_cls", "untrained_avg"], "encoder": "minilm_mlm"},
        {"method": ["simcse", "s2sent"], "encoder": "minilm_mlm", "corpus": "wiki_extract"},
    ],
    "columns": [
        {
            "heading": heading,
            "suite": "sts",
            "task": task,
            "aggregation": "all",
            "metric": "spearman",
            "scale": 100,
            "digits": 2,
        }
        for heading, task in {"STS12": "sts12", "STS16": "sts16", "STS-B": "stsb_test"}.items()
    ]
    + [{"heading": "Avg.", "mean_of": ["STS12", "STS-B"], "digits": 2}],
}
QUALITY = {"untrained_cls": 0.627, "untrained_avg": 0.462, "simcse": 0.736, "s2sent": 0.751}


class Study:
    """Files of a study below ``root``."""

    def __init__(self, root: Path, grid: dict = GRID, labels: tuple[str, ...] = (ADAPTED, STAND_IN)) -> None:
        self.root, self.grid, self.labels = root, grid, labels
        self.runs = [(name, seed) for name, run in runs_of(grid).items() for seed in run.seeds]

    def _write(self, path: str, table: pa.Table, rule: str = "evaluate_sts", **wildcards: str) -> Path:
        file = self.root / path
        made = job_record(
            rule, settings={}, inputs={}, outputs=[file], wildcards=wildcards, labels=self.labels
        )
        write_table(file, table, made)
        return file

    def scores(self) -> list[Path]:
        files = []
        for name, seed in self.runs:
            shift = QUALITY[name.split(".")[0]] + 0.004 * np.sin(7 * seed + len(name))
            scores = [Score(task, "all", "spearman", shift + more, n) for task, more, n in
                      [("sts12", -0.03, 3108), ("stsb_test", 0.0, 1379)]]  # fmt: skip
            scores.append(gap("sts16", "no source of the dataset is there"))
            place = Score(
                "stsb_dev", "", "alignment", 0.9 - shift + 0.01 * seed, 300, "stsb_dev, score > 4, normalised"
            )
            spread = Score("stsb_dev", "", "uniformity", 0.6 - 4 * shift + 0.03 * seed, 3000, place.note)
            for suite, found in {"sts": scores, "geometry": [place, spread]}.items():
                table = score_table(found, run=name, seed=str(seed), suite=suite)
                path = f"scores/{suite}/{suite}/{name}/seed{seed}.parquet"
                files.append(self._write(path, table, run=name, seed=str(seed), suite=suite))
        return files

    def histories(self) -> list[Path]:
        files = []
        for name, seed in self.runs:
            if seed:
                random = np.random.default_rng(seed)
                step = np.arange(1, 151)
                loss = 0.02 + 1.6 * np.exp(-step / 12) * random.uniform(0.8, 1.2, 150)
                top = QUALITY[name.split(".")[0]]
                dev = top - 0.11 * np.exp(-step / 40) + random.normal(0, 0.004, 150)
                dev = [value if number % 25 == 0 else None for number, value in zip(step, dev, strict=True)]
                table = pa.table([step, loss, loss, loss, dev], names=HISTORY.names).cast(HISTORY)
                files.append(
                    self._write(
                        f"runs/{name}/seed{seed}/history.parquet",
                        table,
                        "train_encoder",
                        run=name,
                        seed=str(seed),
                    )
                )
        return files

    def similarities(self) -> list[Path]:
        files = []
        for name, seed in self.runs:
            random = np.random.default_rng(seed)
            gold = random.uniform(0, 5, 700).round(1)
            quality = QUALITY[name.split(".")[0]]
            start, slope = (0.62, 0.05) if "untrained" in name else (0.15, 0.15)
            cosine = np.clip(
                start + slope * gold + random.normal(0, slope * (1.9 - 1.6 * quality), 700), -1, 1
            )
            table = pa.table([["stsb_test"] * 700, [""] * 700, gold, cosine], schema=SIMILARITIES)
            path = f"scores/sts/sts/{name}/seed{seed}.pairs.parquet"
            files.append(self._write(path, table, run=name, seed=str(seed), suite="sts"))
        return files

    def corpus(self, words: tuple[str, ...] = ("the", "of", "and", "in", "to", "a")) -> dict[str, Path]:
        sentences = pa.table([["A sentence."] * 15402, [0] * 15402, range(15402)], schema=SENTENCES)
        counts = [int(60000 / rank) for rank in range(1, len(words) + 1)]
        ranks = range(1, len(words) + 1)
        dropped = {
            "reason": ["fewer than 5 words", "more than 50 words", "seen before"],
            "count": [5210, 811, 95],
        }
        pairs = pa.table([["neighbours"] * 4, ["a"] * 4, ["b"] * 4, [1.0] * 4], schema=PAIRS)
        words = pa.table([ranks, words, counts], schema=WORD_COUNTS)
        made = {
            "datasets": ("datasets/wiki_extract.parquet", sentences, "read_dataset"),
            "dropped": (
                "datasets/wiki_extract.dropped.parquet",
                pa.table(dropped, schema=DROPPED),
                "read_dataset",
            ),
            "train": ("corpora/wiki_extract/train.parquet", sentences.slice(500), "split_corpus"),
            "development": ("corpora/wiki_extract/dev.parquet", pairs, "split_corpus"),
            "words": ("corpora/wiki_extract/words.parquet", words, "count_words"),
        }
        return {
            role: self._write(
                path, table, rule, **{"dataset" if rule == "read_dataset" else "corpus": "wiki_extract"}
            )
            for role, (path, table, rule) in made.items()
        }


def run_rule(
    rule: str, settings: dict, **arguments: str | Path | list[Path]
) -> subprocess.CompletedProcess[str]:
    """Run an entry script as its rule does."""
    line = [sys.executable, "-m", f"workflow_scripts.{rule}", "--config", json.dumps(settings)]
    for name, value in arguments.items():
        line += [f"--{name}", *map(str, value if isinstance(value, list) else [value])]
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return Study(tmp_path / "results" / "demo")


@pytest.fixture
def make_study() -> Callable[..., Study]:
    return Study
