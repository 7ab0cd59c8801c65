"""Studies that the demo is not: every kind of evaluation; translators and language models. Each key reruns its readers."""

from pathlib import Path

import pytest
import yaml

from tests.support.snakemake_plans import copy_tree, holding, planned_jobs, pretend_finished, snakemake

# Two frozen runs on every kind of suite

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
KINDS = {
    "title": "Every kind",
    "source": "a test",
    "seeds": [1],
    "baseline": None,
    "suites": SUITES,
    "runs": [{"method": "frozen_avg", "encoder": ["minilm", "minilm_mlm"]}],
    "columns": [{"heading": "parameters"} | COLUMN],
}
OF_KINDS = {
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
CASES_OF_KINDS = [
    ({"suites": {"clustering": {"short_texts": {"seeds": 3}}}}, {"evaluate_suite": RUNS} | TABLE),
    ({"suites": {"search": {"quora_search": {"index": {"nprobe": 6}}}}}, {"evaluate_suite": RUNS} | TABLE),
    ({"suites": {"transfer": {"senteval": {"folds": 5}}}}, {"evaluate_suite": RUNS} | TABLE),
    ({"suites": {"cost": {"cost": {"repeats": 3}}}}, {"evaluate_cost": RUNS} | TABLE),
    (
        {"suites": {"attention": {"attention": {"energy": {"max_sentences": 7}}}}},
        {"map_attention": RUNS, "draw_figures": 1} | TABLE,
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
    ({"datasets": {"mr": {"contract": {"rows": 5}}}}, {}),  # it refuses, and makes no row
]

# Two round trips and a pool

AUGMENTED = {
    "title": "Round trips",
    "source": "a test",
    "seeds": [1],
    "baseline": None,
    "suites": {"sts": ["sts"]},
    "runs": [{"method": "simcse", "encoder": "minilm", "corpus": ["wiki_spa", "wiki_spa_text"]}],
    "columns": [{"heading": "STS-B", "suite": "sts", "task": "stsb_test", "aggregation": "all", "metric": "spearman", "scale": 100, "digits": 1}],
}  # fmt: skip
TRIP = {
    "corpus": "wiki_sentences", "translator": "apertium", "source": "eng", "pivot_language": "spa", "max_sentences": 100,
    "training_text": "pairs", "unchanged": "drop",
}  # fmt: skip
POOL = {
    "generator": "llm", "llm": "deepseek_v3", "prompt": "three_r_exemplars", "corpus": "wiki_sentences", "encoder": "minilm",
    "word_list_size": 300, "words_per_call": 50, "sentences_per_call": 5, "sentences": 64, "min_uses_per_word": 2,
    "max_tokens": 32, "listed_share": 0.5, "max_calls": 400, "seed": 0, "label": None,
}  # fmt: skip
OF_AUGMENTED = {
    "name": "augment",
    "experiments": ["augment"],
    "exemplar_pools": ["toy"],
    "round_trip": {"shards": 3},
    "contamination": None,
    "corpora": {
        "wiki_spa": {"round_trip": TRIP, "label": "one"},
        "wiki_spa_text": {"round_trip": TRIP | {"training_text": "corpus"}, "label": "two"},
    },
    "exemplars": {"toy": POOL},
    "development": {"dataset": "stsb_dev"},
    "extraction": {"show": {"statistics": [], "tables": [], "figures": []}},
}
EVALUATED = {"evaluate_sts": 1, "make_table": 1, "draw_figures": 1, "write_report": 1}
TRAINED = {"train_encoder": 1} | EVALUATED
GATHERED = {"gather_round_trips": 1} | TRAINED
COMPARED = {"compare_round_trips": 3} | GATHERED
BOTH = {"translate_shard": 6, "compare_round_trips": 6, "gather_round_trips": 2, "train_encoder": 2} | (
    EVALUATED | {"evaluate_sts": 2}
)
WRITTEN = {"write_exemplars": 1, "write_report": 1}
CASES_OF_AUGMENTED = [
    ({"corpora": {"wiki_spa": {"round_trip": {"unchanged": "keep"}}}}, GATHERED),
    ({"corpora": {"wiki_spa": {"round_trip": {"max_sentences": 500}}}}, {"translate_shard": 3} | COMPARED),
    ({"corpora": {"wiki_spa": {"round_trip": {"pivot_language": "cat"}}}}, {"translate_shard": 3} | COMPARED),
    ({"round_trip": {"shortened_ratio": 0.4}}, BOTH),
    (
        {"round_trip": {"similarity": {"max_tokens": 64}}},
        {key: BOTH[key] for key in BOTH if key != "translate_shard"},
    ),
    (
        {"round_trip": {"similarity": {"minimum": 0.4}}},
        {key: BOTH[key] for key in BOTH if key not in ("translate_shard", "compare_round_trips")},
    ),
    ({"exemplars": {"toy": {"min_uses_per_word": 1}}}, WRITTEN),
    ({"llms": {"deepseek_v3": {"temperature": 0.5}}}, WRITTEN),
    ({"words": {"peak_window": 5}}, {"count_words": 1} | WRITTEN),
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
            "answer_store": "elsewhere.sqlite",
            "offline": True,
        },
        {},
    ),
]

STUDIES = {"kinds": (KINDS, OF_KINDS), "augment": (AUGMENTED, OF_AUGMENTED)}
CASES = [("kinds", *case) for case in [({}, {}), *CASES_OF_KINDS]] + [
    ("augment", *case) for case in [({}, {}), *CASES_OF_AUGMENTED]
]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both studies as if they had run, in one folder."""
    folder = copy_tree(tmp_path_factory.mktemp("studies"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEEPSEEK_API_KEY", "none")
        for name, (grid, study) in STUDIES.items():
            (folder / f"config/experiments/{name}.yaml").write_text(yaml.safe_dump(grid))
            (folder / f"{name}.yaml").write_text(yaml.safe_dump(study))
            pretend_finished(folder, f"{name}.yaml")
    return folder


@pytest.mark.parametrize(("study", "change", "reruns"), CASES)
def test_a_changed_key_reruns_what_reads_it(finished, tmp_path, study, change, reruns):
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text(yaml.safe_dump(change))
    assert planned_jobs(finished, str(overlay), configfile=f"{study}.yaml") == reruns


def test_an_edited_prompt_asks_anew(finished, monkeypatch):
    """An edited prompt is sent again, and a missing key stops a run before any job."""
    monkeypatch.delenv("DEEPSEEK_API_KEY", raising=False)
    prompt = finished / "resources/prompts/three_r_exemplars.txt"
    with holding(prompt, f"{prompt.read_text()} Please."):
        assert planned_jobs(finished, configfile="augment.yaml") == WRITTEN
        code, printed = snakemake(finished, "--cores", "1", "--configfile", "augment.yaml")
    assert code != 0
    assert "environment variable DEEPSEEK_API_KEY is not set" in printed
