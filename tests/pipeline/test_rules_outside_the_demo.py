"""Jobs of rules that the demo has no use for, as Snakemake calls them, on what the demo has trained."""

import re

import pytest
import yaml

from tests.support import fault_server, toys
from tests.support.fault_server import FaultServer, fault
from tests.support.local_datasets import block_of, source_of
from tests.support.short_demo import CONFIGS
from tests.support.snakemake_plans import ROOT, run, run_alone
from workflow_scripts.columns import SCORES, TABLE
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


QUESTIONS = block_of(
    "labelled", source_of("questions.tsv", columns={name: name for name in ("text1", "text2", "label")})
)
WORDS = {
    "kind": "words", "source": {"kind": "local", "path": "vectors.txt", "sha256": None}, "drop_frequent": 0, "licence": "toy",
}  # fmt: skip
POOL = {
    "generator": "llm", "llm": "local", "prompt": "three_r_exemplars", "corpus": "wiki_extract", "encoder": "minilm",
    "word_list_size": 50, "words_per_call": 50, "sentences_per_call": 5, "sentences": 10, "min_uses_per_word": 1,
    "max_tokens": 64, "listed_share": 0.5, "max_calls": 40, "seed": 0, "label": None,
}  # fmt: skip
CELLS = {
    "kinds": ["sts"], "representations": ["toy"], "mixing_weights": [0], "layers": ["static"], "weightings": ["avg"],
    "postprocessings": ["none"],
}  # fmt: skip
LEE = {"name": "Lee", "split": "", "dataset": "lee", "graded": True, "words": "marks_apart"}
OF_EVALUATIONS = {
    "experiments": ["kinds"],
    "datasets": {"questions": QUESTIONS},
    "suites": {
        "search": {"questions": {"datasets": ["questions"], "max_tokens": 16, "max_pairs": None}},
        "attention": {
            "attention": {"energy": {"dataset": "lee", "max_sentences": 4}, "maps": {"layers": [6]}}
        },
        "mteb": {
            "one": {"lists": ["one"], "max_tokens": 16, "batch_size": 8, "metrics": ["cosine_spearman"]}
        },
    },
    "mteb": {"lists": {"one": {"STS12": "STS12"}}},
    "exemplars": {"toy": POOL},
    "exemplar_pools": ["toy"],
    "extraction": {
        "representations": {"toy": WORDS},
        "blocks": [CELLS],
        "statistics": {"toy": {"title": "Lee", "source": "test", "rows": [LEE]}},
        "show": {"statistics": ["toy"], "tables": [], "figures": []},
    },
}
OF_QUESTIONS = {"suite": "questions", "task": "questions", "aggregation": ""}
KINDS = {
    "title": "Kinds of suites",
    "source": "test",
    "seeds": [1],
    "baseline": None,
    "suites": {"search": ["questions"], "attention": ["attention"], "mteb": ["one"]},
    "runs": [{"method": "frozen_avg", "encoder": "minilm"}],
    "columns": [
        OF_QUESTIONS | {"heading": "recall", "metric": "recall@1", "scale": 100, "digits": 0},
        OF_QUESTIONS | {"heading": "ms", "metric": "retrieval_ms", "measured": True, "scale": 1, "digits": 3},
    ],
}
FROZEN = "frozen_avg.minilm/seed0.parquet"
MADE = {
    "evaluate_suite": f"results/demo/scores/search/questions/{FROZEN}",
    "time_search": f"benchmarks/demo/times/search/questions/{FROZEN}",
    "tabulate_times": "benchmarks/demo/tabulate_times/kinds.parquet",
    "map_attention": f"results/demo/scores/attention/attention/{FROZEN}",
    "fetch_tasks": "results/demo/mteb/one.parquet",
    "evaluate_mteb": f"results/demo/scores/mteb/one/{FROZEN}",
    "write_exemplars": "results/demo/exemplars/toy.parquet",
    "read_word_vectors": "results/demo/extraction/words/toy.parquet",
    "describe_datasets": "results/demo/tables/toy.parquet",
}


@pytest.mark.slow
def test_each_kind_of_suite_a_written_pool_words_and_statistics(smoke_copy):
    """The data of mteb's task are not on the Hub, so that it is a gap."""
    data = smoke_copy / "data"
    data.mkdir()
    pairs = [f"{text}\tAgain: {text}\t{number % 2}" for number, text in enumerate(toys.sentences(20))]
    (data / "questions.tsv").write_text("\n".join(["text1\ttext2\tlabel", *pairs]))
    (data / "vectors.txt").write_text("2 3\nthe 0.5 1.0 2.0\nriver -1.0 0.0 1.0\n")
    (smoke_copy / "config/experiments/kinds.yaml").write_text(yaml.safe_dump(KINDS))
    options = [
        "-m",
        "snakemake",
        "--cores",
        "2",
        "--quiet",
        "rules",
        "--configfile",
        *CONFIGS,
        "config/kinds.yaml",
        "--",
    ]
    with FaultServer(fault_server.chat(fault_server.numbered)) as model:
        service = {"base_url": f"{model.url}v1", "response_format": "text"}
        study = OF_EVALUATIONS | {"data_root": str(data), "llms": {"local": service}}
        (smoke_copy / "config/kinds.yaml").write_text(yaml.safe_dump(study))
        finished = run(smoke_copy, *options, *(path for path in MADE.values() if "mteb" not in path))
    assert finished.returncode == 0, finished.stdout[-3000:] + finished.stderr[-3000:]
    with FaultServer(lambda asked: "", [fault(404, X_Error_Code="RepoNotFound")] * 99) as hub:
        place = {"HF_ENDPOINT": hub.url.rstrip("/"), "HF_HUB_OFFLINE": "0", "HF_HOME": str(data)}
        finished = run_alone(
            smoke_copy, *options, MADE["evaluate_mteb"], **place
        )  # forks know another address
    assert finished.returncode == 0, finished.stdout[-3000:] + finished.stderr[-3000:]
    assert {path: read_record(smoke_copy / path).rule for path in MADE.values()} == {
        path: rule for rule, path in MADE.items()
    }
    (time,) = read_table(smoke_copy / MADE["tabulate_times"], TABLE).to_pylist()
    assert time["mean"] > 0
    (lost, *_) = read_table(smoke_copy / MADE["evaluate_mteb"], SCORES).to_pylist()
    assert lost["value"] is None
    assert "404 Not Found" in lost["note"]


TRANSLATED = {"translate_shard", "compare_round_trips", "gather_round_trips"}
"""Rules of ``test_services``."""


def test_every_rule_is_run_by_a_test(smoke):
    texts = [file.read_text() for file in (ROOT / "rules").glob("*.smk")]
    rules = [part for text in texts for part in re.split(r"^rule ", text, flags=re.MULTILINE)[1:]]
    with_jobs = {rule.partition(":")[0] for rule in rules if "\n    shell:" in rule}
    of_demo = {folder.name for folder in (smoke / "logs/demo").iterdir()}
    assert with_jobs - of_demo == {*WANTED, *MADE} | TRANSLATED
