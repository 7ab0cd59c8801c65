"""A study of which a corpus and an encoder cannot be had: its table is made with their rows as gaps."""

from pathlib import Path

import pytest
import yaml

from tests.support import toys
from tests.support.local_datasets import PAIR_COLUMNS, block_of, source_of
from tests.support.snakemake_plans import copy_tree, planned_jobs, snakemake
from workflow_scripts.columns import TABLE
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.reporting.records import record_of

STUDY, TABLES = "config/toy.yaml", "results/toy/tables"
NO_CORPUS = "dataset lost: not found; expected local:lost.txt (sha256 not pinned)"
NO_ENCODER = "encoder lost: not found; expected local:models/lost"


def encoder(path: str, **more: object) -> dict:
    return {"fetch": {"licence": "toy", "sources": [{"kind": "local", "path": path}]} | more}


SUITE = {"aggregation": "all", "metric": "spearman", "scale": 100, "digits": 2}
CORPUS = {"dev_sentences": 0, "max_sentences": None}
LOST = {"method": "simcse", "encoder": "mini", "corpus": "lost"}
RUNS = {
    "simcse.mini.kept": None,
    "simcse.mini.lost": NO_CORPUS,
    "pooled_cls.of_lost": NO_CORPUS,
    "frozen_avg.mini": None,
    "frozen_avg.lost": NO_ENCODER,
}


def study(data: Path) -> dict:
    """Two corpora and two encoders, of which one of each is optional and missing."""
    return {
        "name": "toy",
        "experiments": ["toy"],
        "data_root": str(data),
        "contamination": None,
        "claims": {"papers": []},
        "training": {"epochs": None, "max_steps": 2, "batch_size": 4, "max_tokens": 16, "cpu_threads": 1},
        "development": {"dataset": "pairs", "every": 2, "max_tokens": 16},
        "datasets": {
            "pairs": block_of("pairs", source_of("pairs.tsv", columns=PAIR_COLUMNS)),
            "kept": block_of("sentences", source_of("kept.txt", "lines", "text")),
            "lost": block_of("sentences", source_of("lost.txt", "lines", "text"), optional=True),
        },
        "corpora": {name: CORPUS | {"dataset": name} for name in ("kept", "lost")},
        "encoders": {
            "mini": encoder("models/mini"),
            "lost": encoder("models/lost", optional=True),
            "of_lost": {"label": None, "runs": [LOST]},
        },
        "suites": {"sts": {"toy": {"datasets": ["pairs"], "max_tokens": 16}}},
        "extraction": {"suites": {"sts": None, "clustering": None, "transfer": None}},
    }


GRID = {
    "title": "Toys",
    "source": "test",
    "seeds": [1],
    "baseline": "simcse.mini.lost",
    "suites": {"sts": ["toy"]},
    "runs": [
        {"method": "simcse", "encoder": "mini", "corpus": ["kept", "lost"]},
        {"method": "pooled_cls", "encoder": "of_lost", "per_seed": True},
        {"method": "frozen_avg", "encoder": ["mini", "lost"]},
    ],
    "columns": [
        {"heading": "pairs", "suite": "toy", "task": "pairs"} | SUITE,
        {"heading": "gain", "gain_of": "pairs", "digits": 2},
    ],
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the whole study has run without the sources that are optional."""
    folder = copy_tree(tmp_path_factory.mktemp("gaps"))
    data, texts = folder / "data", toys.sentences(60)
    toys.write_model(data / "models/mini", "bert")
    pairs = (
        f"{one}\t{other}\t{number % 6}"
        for number, (one, other) in enumerate(zip(texts[:12], texts[12:24], strict=True))
    )
    (data / "pairs.tsv").write_text("\n".join(["sentence1\tsentence2\tscore", *pairs]) + "\n")
    (data / "kept.txt").write_text("\n".join(texts[24:]))
    (folder / STUDY).write_text(yaml.safe_dump(study(data)))
    (folder / "config/experiments/toy.yaml").write_text(yaml.safe_dump(GRID))
    code, printed = snakemake(folder, "--cores", "2", "--quiet", "rules", "--configfile", STUDY)
    assert code == 0, printed[-3000:]
    return folder


def test_the_table_has_possible_runs_and_gaps_with_reasons(finished):
    """The table has the runs that could be made and gaps with reasons."""
    rows = read_table(finished / f"{TABLES}/toy.parquet", TABLE).to_pylist()
    of_pairs = {row["run"]: row for row in rows if row["heading"] == "pairs"}
    assert {run: row["note"] if row["mean"] is None else None for run, row in of_pairs.items()} == RUNS
    assert [*of_pairs] == [*RUNS]
    assert {row["difference"] for row in rows} == {None}  # the baseline is a gap
    labels = {f"gap: {reason}" for reason in (NO_CORPUS, NO_ENCODER)}
    assert {*map(str, record_of(finished / f"{TABLES}/toy.parquet").labels)} == labels
    page = (finished / "results/toy/report.html").read_text()
    assert NO_CORPUS in page
    assert NO_ENCODER in page
    assert not (finished / "results/toy/corpora/lost").exists()
    assert planned_jobs(finished, configfile=STUDY) == {}


def test_a_source_that_appears_is_trained_on_and_ends_its_gaps(finished):
    (finished / "data/lost.txt").write_text("\n".join(toys.sentences(20)))
    try:
        planned = planned_jobs(finished, configfile=STUDY)
    finally:
        (finished / "data/lost.txt").unlink()
    made = {"read_dataset": 1, "split_corpus": 1, "train_encoder": 1, "build_ensemble": 1, "evaluate_sts": 2}
    again = {"make_table": 1, "draw_figures": 1, "write_report": 1}
    assert planned == made | again
    assert planned_jobs(finished, configfile=STUDY) == {}


def test_a_run_failing_for_another_reason_stops_its_table(finished, tmp_path):
    """A run that fails for another reason still stops its table."""
    (finished / "data/lost.txt").write_text("")  # there, and not what its contract asks for
    (tmp_path / "other.yaml").write_text("name: other\n")
    try:
        code, printed = snakemake(
            finished, "--cores", "2", "--quiet", "rules", "--configfile", STUDY, str(tmp_path / "other.yaml")
        )
    finally:
        (finished / "data/lost.txt").unlink()
    assert code == 1
    assert "datasets.lost" in printed
    assert not (finished / "results/other/tables/toy.parquet").exists()
