"""A small study made up for reporting: its artefacts as the pipeline leaves them."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.support.snakemake_plans import expanded
from tests.support.training_jobs import begin_here, call_of, module_of
from workflow_scripts.columns import (
    CLAIMS,
    CONTAMINATION,
    DROPPED,
    EXEMPLARS,
    HISTORY,
    PAIRS,
    SENTENCES,
    SIMILARITIES,
)
from workflow_scripts.evaluation.base import Score, gap, score_table
from workflow_scripts.figures.base import all_figures
from workflow_scripts.provenance.artefacts import job_record, write_table
from workflow_scripts.provenance.closure import ROOT, code_hashes, packages

STAND_IN = "all-MiniLM-L6-v2 stands in for BERT-base"
ADAPTED = "minilm_mlm, adapted by masked language modelling, stands in for a raw pretrained encoder"
SIGNIFICANCE = {"alpha": 0.05, "power": 0.8, "resamples": 1000, "seed": 0}
REPORT = {
    "learning_curves": {"loss_blocks": 40},
    "cosine_density": {"task": "stsb_test", "edges": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], "bandwidth": 0.03},
    "alignment_uniformity": {"task": "space"},
    "page": {"can_show": "That it runs.", "cannot_show": "Which method is better."},
}
CLAIMED = {
    "table": "lab", "run": "simcse.minilm_mlm.wiki_extract", "heading": "STS-B", "difference": 2.5, "low": 2.25, "high": 2.75,
}  # fmt: skip
STS = {"suite": "sts", "aggregation": "all", "metric": "spearman", "scale": 100, "digits": 2}
GRID = {
    "title": "Unsupervised SimCSE on a small encoder",
    "source": "Gao et al. 2021, Table 5",
    "seeds": [1, 2, 3],
    "baseline": "frozen_cls.minilm_mlm",
    "suites": {"sts": ["sts"]},
    "runs": [
        {"method": ["frozen_cls", "frozen_avg"], "encoder": "minilm_mlm"},
        {"method": ["simcse", "s2sent"], "encoder": "minilm_mlm", "corpus": "wiki_extract"},
    ],
    "columns": [
        {"heading": "STS12", "task": "sts12", **STS},
        {"heading": "STS16", "task": "sts16", **STS},
        {"heading": "STS-B", "task": "stsb_test", **STS},
        {"heading": "Avg.", "mean_of": ["STS12", "STS-B"], "digits": 2},
    ],
}
QUALITY = {"frozen_cls": 0.627, "frozen_avg": 0.462, "simcse": 0.736, "s2sent": 0.751}
TRAINING = {"batch_size": 64, "max_tokens": 32, "learning_rate": 3e-5}
RUNS = [(row["run"], seed) for row in expanded(GRID)["rows"] for seed in row["seeds"]]
TRAINED = [(name, seed) for name, seed in RUNS if seed]


def history(run: str, seed: int) -> pa.Table:
    """150 steps, evaluated every 25."""
    random = np.random.default_rng(seed)
    step = np.arange(1, 151)
    loss = 0.02 + 1.6 * np.exp(-step / 12) * random.uniform(0.8, 1.2, 150)
    score = QUALITY[run.split(".")[0]] - 0.11 * np.exp(-step / 40) + random.normal(0, 0.004, 150)
    dev = [value if number % 25 == 0 else None for number, value in zip(step, score, strict=True)]
    return pa.table([step, loss, loss, loss, dev], names=HISTORY.names).cast(HISTORY)


def similarities(run: str, seed: int) -> pa.Table:
    """700 pairs of one task."""
    random = np.random.default_rng(seed)
    gold = random.uniform(0, 5, 700).round(1)
    start, slope = (0.62, 0.05) if "frozen" in run else (0.15, 0.15)
    noise = random.normal(0, slope * (1.9 - 1.6 * QUALITY[run.split(".")[0]]), 700)
    cosine = np.clip(start + slope * gold + noise, -1, 1)
    return pa.table([["stsb_test"] * 700, [""] * 700, gold, cosine], schema=SIMILARITIES)


@dataclass
class Study:
    """Files of a study below ``root``, a path relative to the working directory, as in a job."""

    root: Path = Path("results/demo")
    labels: tuple[str, ...] = (ADAPTED, STAND_IN)
    gap_reason: str = "no source of the dataset is available"
    claim_p: float | None = 0.0004
    drawn: tuple[str, ...] = ("learning_curves", "cosine_density", "alignment_uniformity")

    def write(
        self,
        path: str,
        table: pa.Table,
        rule: str = "evaluate_sts",
        settings: Mapping[str, Any] = MappingProxyType({}),
        inputs: Mapping[str, Path] = MappingProxyType({}),
        **wildcards: str,
    ) -> Path:
        """Write an artefact that carries the study's labels."""
        file = self.root / path
        made = job_record(
            rule,
            settings=settings,
            inputs=inputs,
            outputs=[file],
            wildcards=wildcards,
            code_hashes=code_hashes(module_of(rule)),
            versions=packages(module_of(rule)),
            labels=self.labels,
        )
        write_table(file, table, made)
        return file

    def per_run(
        self,
        path: str,
        table_of: Callable[[str, int], pa.Table],
        runs: Sequence[tuple[str, int]] = RUNS,
        **more: Any,
    ) -> list[Path]:
        """A file of every run and seed, whose names stand in ``path``."""
        return [
            self.write(path.format(name, seed), table_of(name, seed), run=name, seed=str(seed), **more)
            for name, seed in runs
        ]

    def scores(self, run: str, seed: int) -> pa.Table:
        """A suite in which STS16 is a gap."""
        quality = QUALITY[run.split(".")[0]] + 0.004 * np.sin(7 * seed + len(run))
        note = "stsb_dev, score > 4, normalised"
        found = [
            Score("sts12", "all", "spearman", quality - 0.03, 3108),
            gap("sts16", self.gap_reason),
            Score("stsb_test", "all", "spearman", quality, 1379),
            Score("space", "", "alignment", 0.9 - quality + 0.01 * seed, 300, note),
            Score("space", "", "uniformity", 0.6 - 4 * quality + 0.03 * seed, 3000, note),
        ]
        return score_table(found, run=run, seed=str(seed), suite="sts")

    def corpus(self) -> dict[str, Path]:
        """Dataset, corpus and development set, by their roles in the report."""
        sentences = pa.table([["A sentence."] * 15402, [0] * 15402, range(15402)], schema=SENTENCES)
        pool = [
            ["The town is old.", "It is in the north."],
            [6, 8],
            [4, 6],
            [3, 6],
            ["wiki_extract"] * 2,
            [3, 8],
        ]
        dropped = [["fewer than 5 words", "more than 50 words", "seen before"], [5210, 811, 95]]
        pairs = [["neighbours", "strangers"] * 2, ["a"] * 4, ["b"] * 4, [1.0, 0.0] * 2]
        dataset, corpus = {"dataset": "wiki_extract"}, {"corpus": "wiki_extract"}
        path = "corpora/wiki_extract"
        return {
            "datasets": self.write("datasets/wiki_extract.parquet", sentences, "read_dataset", **dataset),
            "dropped": self.write(
                "datasets/wiki_extract.dropped.parquet",
                pa.table(dropped, schema=DROPPED),
                "read_dataset",
                **dataset,
            ),
            "train": self.write(f"{path}/train.parquet", sentences.slice(500), "split_corpus", **corpus),
            "development": self.write(
                f"{path}/dev.parquet", pa.table(pairs, schema=PAIRS), "split_corpus", **corpus
            ),
            "lost": self.write(
                f"{path}/dropped.parquet",
                pa.table([["rejected: not in en", "unchanged"], [20, 480]], schema=DROPPED),
                "gather_round_trips",
                **corpus,
            ),
            "contamination": self.write(
                "contamination/wiki_extract.parquet", self.overlap(), "measure_contamination", **corpus
            ),
            "exemplars": self.write(
                "exemplars/toy_pool.parquet",
                pa.table(pool, schema=EXEMPLARS),
                "pick_exemplars",
                pool="toy_pool",
            ),
        }

    def claims(self) -> Path:
        """A claim that is borne out, and one that nothing was made for."""
        said = {"paper": "jtcse", "claim": "one", "place": "Table I", "expects": "higher", "labels": []}
        rows = [
            said
            | {"labels": ["a stand-in", "gap: nothing"], "says": "SimCSE is better than nothing.", "printed_ours": 76.25, "verdict": "supported",
               "reason": "2.50 higher (2.25 to 2.75) over 3 seeds", **CLAIMED, "p_value": self.claim_p, "corrected_p": self.claim_p and 0.012},
            said | {"says": "It is fast, too.", "verdict": "not run", "reason": self.gap_reason},
        ]  # fmt: skip
        claims = pa.Table.from_pylist(rows, schema=CLAIMS)
        return self.write("claims.parquet", claims, "judge_claims", {"significance": SIGNIFICANCE})

    def overlap(self) -> pa.Table:
        """Overlap of the corpus with two evaluation sets, one of them missing."""
        counts = ("texts", "shared_texts", "share", "rows", "rows_with_any", "rows_with_all")
        found = {
            ("stsb_test", "exact"): (2552, 12, 12 / 2552, 1379, 13, 1),
            ("stsb_test", "normalised"): (2552, 51, 51 / 2552, 1379, 57, 2),
            ("sts16", "exact"): (0, 0, None, 0, 0, 0),
            ("stsb_test", "contained"): (2552, 33, 33 / 2552, 1379, 34, 1),
            ("sts16", "normalised"): (0, 0, None, 0, 0, 0),
            ("sts16", "contained"): (0, 0, None, 0, 0, 0),
        }
        rows = [
            {"task": task, "match": match, **dict(zip(counts, values, strict=True)), "examples": []}
            for (task, match), values in found.items()
        ]
        return pa.Table.from_pylist(rows, schema=CONTAMINATION)

    def jobs(self) -> list[tuple[str, dict[str, Any]]]:
        """Rule and call of every job of the reporting stage, in order; writes their inputs."""
        tables, figures = self.root / "tables", self.root / "figures" / "lab"
        scores = self.per_run("scores/sts/sts/{}/seed{}.parquet", self.scores, suite="sts")
        pairs = self.per_run("scores/sts/sts/{}/seed{}.pairs.parquet", similarities, suite="sts")
        table = tables / "lab.parquet"
        corpus = self.corpus()
        histories = self.per_run(
            "runs/{}/seed{}/history.parquet",
            history,
            TRAINED,
            rule="train_encoder",
            settings={"training": TRAINING},
            inputs={"corpus": corpus["train"], "dev": corpus["development"]},
        )
        read = {
            "learning_curves": {"histories": histories},
            "cosine_density": {"similarities": pairs},
            "alignment_uniformity": {"table": [table], "scores": scores},
        }
        jobs = [
            command(
                "make_table",
                {"experiment": expanded(GRID), "significance": SIGNIFICANCE},
                experiment="lab",
                scores=scores,
                published=[],
                table=table,
            )
        ]
        asked = {name: (REPORT[name], read[name]) for name in self.drawn}
        jobs.append(drawing(figures, asked, title=GRID["title"]))
        claims, gains = self.claims(), self.root / "figures/claims"
        jobs.append(
            drawing(gains, {"gains": ({}, {"verdicts": [claims], "tables": [table]})}, experiment="claims")
        )
        jobs.append(
            command(
                "write_report",
                {"name": "demo", "page": REPORT["page"]},
                template=ROOT / "resources/report/report.html.j2",
                claims=claims,
                tables=[table],
                extraction=[],
                figures=[figures / "record.json", gains / "record.json"],
                **corpus,
                histories=histories,
                report=self.root / "report.html",
            )
        )
        return jobs


Asked = tuple[dict[str, Any], Mapping[str, list[Path]]]
"""The block of settings of a figure, and its inputs by role."""


def drawing(
    folder: Path, figures: Mapping[str, Asked], title: str = "A grid", experiment: str = "lab"
) -> tuple[str, dict[str, Any]]:
    """The rule that draws ``figures`` of an experiment into a folder, and the call of its job."""
    shared = {"runs": [], "title": title, "names": {}, "run_names": {}}
    told = {
        name: shared
        | {part: getattr(all_figures()[name], part) for part in ("module", "caption")}
        | {"kind": name, "config": config}
        for name, (config, _) in figures.items()
    }
    read = {f"{name}.{role}": paths for name, (_, files) in figures.items() for role, paths in files.items()}
    return command(
        "draw_figures", {"figures": told}, experiment=experiment, **read, figures=folder / "record.json"
    )


def command(rule: str, settings: dict[str, Any], **named: Any) -> tuple[str, dict[str, Any]]:
    """A rule and a call of its job."""
    return rule, call_of(rule, settings, **named)


def finish(folder: Path, **changes: Any) -> Path:
    """Make a study and its whole reporting stage below ``folder``; returns the study's folder."""
    study = Study(**changes)
    with chdir(folder):  # as Snakemake works in its own: records keep relative paths
        for rule, call in study.jobs():
            begin_here(rule, call)
    return folder / study.root


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reporting stage of the small study, made once."""
    return finish(tmp_path_factory.mktemp("study"))
