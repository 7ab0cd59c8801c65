"""What translators and language models make reruns for its own settings, and keeps what other settings decide."""

from pathlib import Path

import pytest
import yaml

from tests.planning import copy_tree, pretend_finished, snakemake
from tests.planning import planned_by_figure as planned_jobs

GRID = {
    "title": "Round trips",
    "source": "a test",
    "seeds": [1],
    "baseline": None,
    "suites": {"sts": ["sts"]},
    "runs": [{"method": "simcse", "encoder": "minilm", "corpus": ["wiki_spa", "wiki_spa_text"]}],
    "columns": [{"heading": "STS-B", "suite": "sts", "task": "stsb_test", "aggregation": "all", "metric": "spearman", "scale": 100, "digits": 1}],
}  # fmt: skip
TRIP = {
    "corpus": "wiki_sentences", "translator": "apertium", "source": "eng", "via": "spa", "max_sentences": 100,
    "form": "pairs", "unchanged": "drop",
}  # fmt: skip
POOL = {
    "generator": "llm", "llm": "deepseek_v3", "prompt": "three_r_exemplars", "corpus": "wiki_sentences", "encoder": "minilm",
    "list_words": 300, "drop_capitalised": True, "words_per_call": 50, "sentences_per_call": 5, "sentences": 64, "uses": 2,
    "max_tokens": 32, "listed_share": 0.5, "max_calls": 400, "seed": 0, "label": None,
}  # fmt: skip
STUDY = {
    "name": "augment",
    "experiments": ["augment"],
    "exemplar_pools": ["toy"],
    "round_trip": {"shards": 3},
    "contamination": None,
    "corpora": {
        "wiki_spa": {"round_trip": TRIP, "label": "one"},
        "wiki_spa_text": {"round_trip": TRIP | {"form": "corpus"}, "label": "two"},
    },
    "exemplars": {"toy": POOL},
    "development": {"dataset": "stsb_dev"},
    "extraction": {"show": {"statistics": [], "tables": [], "figures": []}},
}
EVALUATED = {"evaluate_sts": 1, "make_table": 1, "draw_figure:cosine_density": 1, "write_report": 1}
TRAINED = {"train_encoder": 1, "draw_figure:learning_curves": 1} | EVALUATED
GATHERED = {"gather_round_trips": 1, "count_words": 1} | TRAINED
BOTH = {"translate_shard": 6, "gather_round_trips": 2, "count_words": 2, "train_encoder": 2} | (
    {"draw_figure:learning_curves": 1} | EVALUATED | {"evaluate_sts": 2}
)
WRITTEN = {"write_exemplars": 1, "write_report": 1}
CASES = [
    ({"corpora": {"wiki_spa": {"round_trip": {"unchanged": "keep"}}}}, GATHERED),
    ({"corpora": {"wiki_spa": {"round_trip": {"max_sentences": 500}}}}, {"translate_shard": 3} | GATHERED),
    ({"corpora": {"wiki_spa": {"round_trip": {"via": "cat"}}}}, {"translate_shard": 3} | GATHERED),
    ({"round_trip": {"shortened_ratio": 0.4}}, BOTH),
    ({"exemplars": {"toy": {"uses": 1}}}, WRITTEN),
    ({"llms": {"deepseek_v3": {"temperature": 0.5}}}, WRITTEN),
    ({"words": {"peak_window": 5}}, {"count_words": 3} | WRITTEN),
    (
        {
            "translators": {
                "apertium": {"batch_sentences": 7, "timeout_seconds": 1},
                "google": {"calls": {"attempts": 2}},
            },
            "llms": {
                "deepseek_v3": {"price": None, "base_url": "http://127.0.0.1:1/v1", "calls": {"workers": 9}}
            },
            "round_trip": {"refused_share": 0.5},
            "answers": "elsewhere.sqlite",
            "offline": True,
        },
        {},
    ),
]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of two round trips and a pool, as if it had run."""
    folder = copy_tree(tmp_path_factory.mktemp("augment"))
    (folder / "config/experiments/augment.yaml").write_text(yaml.safe_dump(GRID))
    (folder / "study.yaml").write_text(yaml.safe_dump(STUDY))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEEPSEEK_API_KEY", "none")
        pretend_finished(folder, "study.yaml")
    return folder


def plan(folder: Path, *overlays: str) -> dict[str, int]:
    return planned_jobs(folder, *overlays, configfile="study.yaml")


def test_a_finished_study_has_nothing_to_do(finished):
    assert plan(finished) == {}


@pytest.mark.parametrize(("change", "reruns"), CASES)
def test_a_changed_key_reruns_what_reads_it(finished, tmp_path, change, reruns):
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text(yaml.safe_dump(change))
    assert plan(finished, str(overlay)) == reruns


def test_an_edited_prompt_asks_anew_and_a_missing_key_stops_a_run_before_any_job(finished, monkeypatch):
    monkeypatch.delenv("DEEPSEEK_API_KEY", raising=False)
    prompt = finished / "resources/prompts/three_r_exemplars.txt"
    before = prompt.read_text()
    prompt.write_text(f"{before} Please.")
    try:
        assert plan(finished) == WRITTEN
        code, printed = snakemake(finished, "--cores", "1", "--configfile", "study.yaml")
    finally:
        prompt.write_text(before)
    assert code != 0
    assert "environment variable DEEPSEEK_API_KEY is not set" in printed
