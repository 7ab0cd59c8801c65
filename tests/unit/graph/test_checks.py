"""What the graph knows of kinds of suites, against the rules that run them."""

import re

from tests.planning import ROOT
from workflow_scripts.graph.references import datasets_in
from workflow_scripts.graph.suites import evaluators
from workflow_scripts.settings.study import EvaluationBlock


def test_kinds_that_may_have_a_gpu_are_those_whose_rules_ask_for_one():
    texts = [file.read_text("utf-8") for file in (ROOT / "rules").glob("*.smk")]
    asked = [kinds for text in texts for kinds in re.findall(r"EVALUATION\.gpus\((.+)\)", text)]
    named = {kind for kinds in asked for kind in re.findall(r'"(\w+)"', kinds)}
    may = EvaluationBlock.model_json_schema()["properties"]["on_gpu"]["items"]["enum"]
    assert "wildcards.kind" in asked and named | set(evaluators()) == set(may)


def test_a_suite_names_each_dataset_once():
    measure = {"dataset": "sts12"}
    assert datasets_in({"positives": {"p": measure}, "samples": {"c": measure}}) == ["sts12"]
    assert datasets_in({"energy": measure, "maps": {}}) == ["sts12"]
    assert datasets_in({"tokens": 64}) == []
