"""Every kind of evaluation reruns for its own settings, and for no other's."""

from pathlib import Path

import pytest
import yaml

from tests.planning import copy_tree, pretend_finished
from tests.planning import planned_by_figure as planned_jobs

SUITES = {
    "sts": ["sts"],
    "clustering": ["short_texts"],
    "search": ["quora_search"],
    "transfer": ["senteval"],
    "cost": ["cost"],
    "attention": ["attention"],
    "mteb": ["mteb_tasks"],
}
COLUMN = {"suite": "cost", "task": "cost", "aggregation": "", "metric": "parameters", "scale": 1, "digits": 0}
GRID = {
    "title": "Every kind",
    "source": "a test",
    "seeds": [1],
    "baseline": None,
    "suites": SUITES,
    "runs": [{"method": "frozen_avg", "encoder": ["minilm", "minilm_mlm"]}],
    "columns": [{"heading": "parameters"} | COLUMN],
}
STUDY = {
    "name": "kinds",
    "experiments": ["kinds"],
    "contamination": {"examples": 1},
    "suites": {"attention": {"attention": {"maps": {"layers": [6]}}}},  # MiniLM has six
    "extraction": {"show": {"statistics": [], "tables": [], "figures": []}},
    # A set that this study does not evaluate on, so that it has no such figure.
    "report": {"cosine_density": {"task": "stsb_dev"}},
}
TABLE = {"make_table": 1, "write_report": 1}
RUNS = 2
CASES = [
    ({"suites": {"clustering": {"short_texts": {"seeds": 3}}}}, {"evaluate_suite": RUNS} | TABLE),
    ({"suites": {"search": {"quora_search": {"max_pairs": 6}}}}, {"evaluate_suite": RUNS} | TABLE),
    ({"suites": {"transfer": {"senteval": {"folds": 5}}}}, {"evaluate_suite": RUNS} | TABLE),
    ({"suites": {"cost": {"cost": {"repeats": 3}}}}, {"evaluate_cost": RUNS} | TABLE),
    (
        {"suites": {"attention": {"attention": {"energy": {"max_sentences": 7}}}}},
        {"map_attention": RUNS, "draw_figure:attention_maps": 1} | TABLE,
    ),
    ({"suites": {"mteb": {"mteb_tasks": {"batch_size": 8}}}}, {"evaluate_mteb": RUNS} | TABLE),
    (
        {"mteb": {"lists": {"jtcse_sts22": {"More": "STS12"}}}},
        {"fetch_tasks": 1, "evaluate_mteb": RUNS} | TABLE,
    ),
    ({"mteb": {"lists": {"english_retrieval": {"More": "STS12"}}}}, {}),
    ({"suites": {"transfer": {"twelve_tasks": {"folds": 5}}}}, {}),
    ({"contamination": {"examples": 2}}, {"measure_contamination": 1, "write_report": 1}),
    ({"contamination": None}, {"write_report": 1}),
    (
        {"datasets": {"mr": {"contract": {"rows": 5}}}},
        {"read_dataset": 1, "evaluate_suite": RUNS, "measure_contamination": 1} | TABLE,
    ),
]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of two frozen runs on every kind of suite, as if it had run."""
    folder = copy_tree(tmp_path_factory.mktemp("kinds"))
    (folder / "config/experiments/kinds.yaml").write_text(yaml.safe_dump(GRID))
    (folder / "study.yaml").write_text(yaml.safe_dump(STUDY))
    pretend_finished(folder, "study.yaml")
    return folder


def plan(folder: Path, *overlays: str) -> dict[str, int]:
    return planned_jobs(folder, *overlays, configfile="study.yaml")


def test_a_finished_study_of_every_kind_has_nothing_to_do(finished):
    assert plan(finished) == {}


@pytest.mark.parametrize(("change", "reruns"), CASES)
def test_a_changed_evaluation_reruns_what_reads_it(finished, tmp_path, change, reruns):
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text(yaml.safe_dump(change))
    assert plan(finished, str(overlay)) == reruns
