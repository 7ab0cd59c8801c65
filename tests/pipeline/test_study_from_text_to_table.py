"""A study of a user's own, with a tiny encoder of theirs, from text to table."""

from itertools import pairwise

import pytest
import yaml

from tests import tiny
from tests.planning import copy_tree, snakemake
from workflow_scripts.columns import TABLE
from workflow_scripts.provenance.artefacts import read_table

ABOUT = {
    "origin": "made up",
    "url": "not stated",
    "language": "en",
    "licence": "CC0 1.0",
    "citation": "nobody",
}
STUDY = {
    "name": "mine",
    "data_root": "data",
    "experiments": ["mine"],
    "exemplar_pools": [],
    "claims": {"papers": []},
    "training": {"epochs": None, "max_steps": 4, "batch_size": 8, "cpu_threads": 1, "precision": "float32"},
    "development": {"dataset": "own_pairs", "every": 2},
    "datasets": {
        "own_text": {
            "form": "sentences",
            "sources": [{"kind": "local", "files": {"text": {"path": "text.txt", "sha256": None}}, "reader": "lines"}],
            "contract": {"min_rows": 100},
            "about": ABOUT,
        },
        "own_pairs": {
            "form": "pairs",
            "sources": [
                {
                    "kind": "local",
                    "files": {"all": {"path": "pairs.tsv", "sha256": None}},
                    "reader": "delimited",
                    "options": {"columns": {name: name for name in ("sentence1", "sentence2", "score")}},
                }
            ],
            "contract": {"score_range": [0, 4]},
            "about": ABOUT,
        },
    },
    "corpora": {"own": {"dataset": "own_text", "dev_sentences": 0, "max_sentences": None}},
    "encoders": {"tiny": {"fetch": {"licence": "CC0 1.0", "sources": [{"kind": "local", "path": "tiny"}]}}},
    "methods": {"informin_cl": {"training": {"batch_size": 8, "chunk": 5}}},
    "suites": {"sts": {"own": {"datasets": ["own_pairs"], "max_tokens": 32}}},
}  # fmt: skip
GRID = {
    "title": "Mine",
    "source": "our own",
    "seeds": [1],
    "baseline": "frozen_cls.tiny",
    "suites": {"sts": ["own"]},
    "runs": [
        {"method": "frozen_cls", "encoder": "tiny"},
        {"method": "informin_cl", "encoder": "tiny", "corpus": "own"},
    ],
    "columns": [
        {"heading": metric, "suite": "own", "task": "own_pairs", "aggregation": "all",
         "metric": metric, "scale": 100, "digits": 2}
        for metric in ("spearman", "pearson")
    ],
}  # fmt: skip


@pytest.mark.slow
def test_an_encoder_learns_and_each_metric_has_a_column(tmp_path):
    folder = copy_tree(tmp_path)
    (folder / "data").mkdir()
    texts = tiny.sentences(200)
    tiny.write_model(folder / "data/tiny", "bert")
    (folder / "data/text.txt").write_text("\n".join(texts))
    rows = [f"{number % 5}\t{one}\t{two}" for number, (one, two) in enumerate(pairwise(texts))]
    (folder / "data/pairs.tsv").write_text("\n".join(["score\tsentence1\tsentence2", *rows]))
    (folder / "config/mine.yaml").write_text(yaml.safe_dump(STUDY))
    (folder / "config/experiments/mine.yaml").write_text(yaml.safe_dump(GRID))
    command = ["--cores", "2", "--quiet", "rules", "--configfile", "config/demo.yaml", "config/mine.yaml"]
    code, printed = snakemake(folder, *command)
    assert code == 0, printed[-3000:]
    cells = read_table(folder / "results/mine/tables/mine.parquet", TABLE).to_pylist()
    values = {(row["run"], row["heading"]): row["mean"] for row in cells}
    assert len(values) == 4 and len({*values.values()}) == 4
