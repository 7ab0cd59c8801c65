"""References of suites: every dataset and list that one names is there, and of the form its kind reads."""

import re

import pytest

from tests.planning import ROOT
from workflow_scripts.errors import ConfigError
from workflow_scripts.graph.findings import refuse
from workflow_scripts.graph.references import datasets_in, on_gpu, reference_findings
from workflow_scripts.graph.suites import evaluators

DATASETS = {
    "sts12": {"form": "pairs"},
    "agnews": {"form": "labelled"},
    "wiki": {"form": "sentences"},
}


def config(**suites):
    return {
        "corpora": {},
        "encoders": {"minilm": {"fetch": {}}},
        "methods": {"simcse": {"module": "simcse"}},
        "exemplars": {},
        "translators": {},
        "exemplar_pools": [],
        "evaluation": {"on_gpu": []},
        "development": {"dataset": None},
        "datasets": DATASETS,
        "mteb": {"lists": {"jtcse_sts22": {}}},
        "significance": {"alpha": 0.05, "power": 0.8},
        "suites": suites,
    }


def check(**suites):
    refuse(reference_findings(config(**suites)))


def test_suites_that_name_what_is_there_pass():
    check(
        sts={"a": {"datasets": ["sts12"]}},
        geometry={
            "b": {
                "positives": {"p": {"dataset": "sts12", "comparison": "above", "threshold": 4}},
                "samples": {"c": {"dataset": "wiki"}},
            }
        },
        clustering={"c": {"datasets": ["agnews"]}},
        transfer={"d": {"datasets": ["agnews"], "graded": ["agnews"]}},
        cost={"e": {"tokens": 8}},
        attention={"f": {"energy": {"dataset": "wiki"}}},
        mteb={"g": {"lists": ["jtcse_sts22"]}},
    )


@pytest.mark.parametrize(
    ("suites", "message"),
    [
        (
            {"clustering": {"c": {"datasets": ["agnew"]}}},
            r"suites\.clustering\.c\.datasets: agnew is not .* mean agnews\?",
        ),
        (
            {"attention": {"a": {"energy": {"dataset": "wikis"}}}},
            r"suites\.attention\.a\.energy\.dataset: wikis is not .* mean wiki\?",
        ),
        (
            {"transfer": {"t": {"datasets": ["agnews"], "graded": ["agnew"]}}},
            r"suites\.transfer\.t\.graded: agnew is not .* mean agnews\?",
        ),
        (
            {"mteb": {"m": {"lists": ["jtcse_sts"]}}},
            r"suites\.mteb\.m\.lists: jtcse_sts is not .* mean jtcse_sts22\?",
        ),
        (
            {"search": {"s": {"datasets": ["sts12"]}}},
            r"suites\.search\.s\.datasets: sts12 has the form pairs; labelled are read there",
        ),
        (
            {"sts": {"one": {"datasets": ["sts12"]}}, "clustering": {"one": {"datasets": ["agnews"]}}},
            r"suites\.clustering\.one: suites\.sts has that name too",
        ),
    ],
)
def test_a_suite_with_a_mistake_is_named_in_one_line(suites, message):
    with pytest.raises(ConfigError, match=message):
        check(**suites)


def test_kinds_that_may_have_a_gpu_are_those_whose_rules_ask_for_one():
    texts = [file.read_text("utf-8") for file in (ROOT / "rules").glob("*.smk")]
    asked = [kinds for text in texts for kinds in re.findall(r"EVALUATION\.gpus\((.+)\)", text)]
    named = {kind for kinds in asked for kind in re.findall(r'"(\w+)"', kinds)}
    assert "wildcards.kind" in asked and named | set(evaluators()) == set(on_gpu())


def test_a_suite_names_each_dataset_once():
    measure = {"dataset": "sts12"}
    assert datasets_in({"positives": {"p": measure}, "samples": {"c": measure}}) == ["sts12"]
    assert datasets_in({"energy": measure, "maps": {}}) == ["sts12"]
    assert datasets_in({"tokens": 64}) == []


@pytest.mark.parametrize(
    ("section", "block", "message"),
    [
        (
            "methods",
            {"a": {"base": "simce"}},
            r"methods\.a\.base: simce is not defined. Did you mean simcse\?",
        ),
        (
            "methods",
            {"a": {"base": "b"}, "b": {"base": "simcse"}},
            r"methods\.a\.base: b has a base itself",
        ),
        ("methods", {"a": {"base": "simcse", "pool": "toy"}}, r"methods\.a\.pool: toy is not defined"),
        (
            "encoders",
            {"twin": {"runs": [{"method": "simcs", "encoder": "minilm"}]}},
            r"encoders\.twin\.runs\.0\.method: simcs is not defined",
        ),
        (
            "encoders",
            {"two": {"runs": [{"method": "simcse", "encoder": "minilm", "of_seeds": True}]}},
            r"encoders\.two\.runs\.0\.of_seeds: true for a frozen run of an encoder that consists of runs",
        ),
        (
            "encoders",
            {"a": {"runs": [{"method": "simcse", "encoder": "minilm", "teacher": "minilm"}]}},
            r"runs\.0\.teacher: minilm is not one run",
        ),
    ],
)
def test_names_in_methods_and_in_runs_of_runs_are_checked(section, block, message):
    study = config()
    study[section] = study[section] | block
    with pytest.raises(ConfigError, match=message):
        refuse(reference_findings(study))
