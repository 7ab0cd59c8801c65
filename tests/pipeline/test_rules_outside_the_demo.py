"""Jobs of rules that the demo has no use for, as Snakemake calls them, on what the demo has trained."""

import re

import yaml

from tests.support.short_demo import CONFIGS
from tests.support.snakemake_plans import run
from workflow_scripts.columns import TABLE
from workflow_scripts.provenance.artefacts import read_record, read_table

STUDY = {
    "experiments": ["demo", "others"],
    "contamination": {"examples": 5},
    "encoders": {
        "demo_jtcse": {
            "label": None,
            "runs": [{"method": "jtcse", "encoder": "demo_twin", "corpus": "wiki_extract"}],
        }
    },
    "suites": {"cost": {"cost": {"tokens": 16, "batch_sizes": [1], "repeats": 1, "warmup": 1}}},
    "methods": {"distil": {"training": {"max_steps": 2, "batch_size": 8}}},
}
GRID = {
    "title": "A student and an ensemble",
    "source": "test",
    "seeds": [1],
    "baseline": None,
    "suites": {"sts": ["lee"], "cost": ["cost"]},
    "runs": [
        {"method": "distil", "encoder": "minilm_mlm", "corpus": "wiki_extract", "teacher": "demo_jtcse",
         "name": "A student", "show_best": True},
        {"method": "ensemble", "encoder": "demo_twin", "per_seed": True},
    ],
    "columns": [
        {"heading": "Lee", "suite": "lee", "task": "lee", "aggregation": "all", "metric": "spearman", "scale": 100, "digits": 2},
        {"heading": "parameters", "suite": "cost", "task": "cost", "aggregation": "", "metric": "parameters", "scale": 1, "digits": 0},
    ],
}  # fmt: skip
STUDENT = "distil.minilm_mlm.wiki_extract.demo_jtcse"
WANTED = {
    "encode_teacher": "teachers/demo_jtcse/wiki_extract/seed1.parquet",
    "build_ensemble": "runs/ensemble.demo_twin/seed1/model/record.json",
    "evaluate_cost": f"scores/cost/cost/{STUDENT}/seed1.parquet",
    "measure_contamination": "contamination/wiki_extract.parquet",
    "write_model_card": f"runs/{STUDENT}/seed1/card/README.md",
}


def test_a_student_an_ensemble_and_the_overlap_of_texts(smoke_copy):
    """A student, an ensemble, their costs, cards and the overlap of texts."""
    (smoke_copy / "config/others.yaml").write_text(yaml.safe_dump(STUDY))
    (smoke_copy / "config/experiments/others.yaml").write_text(yaml.safe_dump(GRID))
    targets = [f"results/demo/{path}" for path in (*WANTED.values(), "tables/others.parquet")]
    options = ["--cores", "2", "--quiet", "rules", "--configfile", *CONFIGS, "config/others.yaml", "--"]
    finished = run(smoke_copy, "-m", "snakemake", *options, *targets)
    assert finished.returncode == 0, finished.stdout[-3000:] + finished.stderr[-3000:]
    for rule, path in WANTED.items():
        if not path.endswith(".md"):
            assert read_record(smoke_copy / "results/demo" / path).rule == rule
    cells = read_table(smoke_copy / "results/demo/tables/others.parquet", TABLE).to_pylist()
    values = {(row["run"], row["heading"]): row["mean"] for row in cells}
    assert all("the best of 1 runs" in row["note"] for row in cells if row["run"] == STUDENT)
    printed = run(smoke_copy, "-m", "workflow_scripts", "show", "results/demo/tables/others.parquet")
    assert "A student" in printed.stdout
    assert STUDENT not in printed.stdout
    assert len(values) == 4
    assert None not in values.values()
    both, one = values["ensemble.demo_twin", "parameters"], values[STUDENT, "parameters"]
    assert 2 * one <= both < 2.1 * one  # the student has no pooler
    card = (smoke_copy / "results/demo" / WANTED["write_model_card"]).read_text("utf-8")
    assert re.search(r"2 steps; ", card)
