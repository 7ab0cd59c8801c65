"""Memory and time that jobs ask for, at the papers' scale."""

import ast
from pathlib import Path

import pytest
from snakemake.iocontainers import Wildcards

from tests.planning import ROOT, study_in
from workflow_scripts.graph.requests import LONGEST, OF_SIZE, REQUESTS, Requests

LOADERS = {"load_backbone", "load_encoder", "SentenceTransformer"}
"""Functions that load an encoder's weights."""
HUGE = "llama2_7b_mntp"


@pytest.fixture(scope="module")
def papers():
    return study_in(ROOT, [])


def asked(study, rule, attempt=1, **wildcards):
    functions = Requests(study).of(rule)
    return tuple(functions[name](Wildcards(fromdict=wildcards), attempt) for name in ("mem", "runtime"))


def run_from(study, encoder):
    return next(name for name, run in study.runs.items() if run.encoder == encoder)


@pytest.mark.parametrize(
    ("encoder", "attempt", "memory", "minutes"),
    [
        ("bert_base", 1, "8GB", 60),
        ("roberta_large", 3, "24GB", 540),
        ("bert_twin", 1, "8GB", 120),
        ("bert_six", 1, "8GB", 360),
        (HUGE, 1, "40GB", 3600),
    ],
)
def test_a_job_asks_by_the_size_of_its_encoders_and_each_try_for_as_much_again(
    papers, encoder, attempt, memory, minutes
):
    assert asked(papers, "evaluate_sts", attempt, run=run_from(papers, encoder)) == (memory, minutes)


def test_no_job_asks_for_longer_than_a_week(papers):
    assert asked(papers, "evaluate_mteb", run=run_from(papers, HUGE)) == ("160GB", LONGEST)
    assert asked(papers, "evaluate_mteb", 2, run=run_from(papers, "bert_base")) == ("64GB", 48 * 60)


def loads(module: Path, *, deep: bool = True) -> bool:
    """Whether a module calls a loader of weights, or imports another that does."""
    tree = ast.parse(module.read_text("utf-8"))
    calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    imported = [
        name for node in froms for name in (node.module, *(f"{node.module}.{one.name}" for one in node.names))
    ]
    files = (
        ROOT / f"{name.replace('.', '/')}.py"
        for name in imported
        if str(name).startswith("workflow_scripts.")
    )
    near = (file for file in files if deep and file.exists() and file.parent.name != "models")
    return bool(calls & LOADERS) or any(loads(file, deep=False) for file in near)


def test_every_rule_that_loads_an_encoder_asks_for_more_for_a_larger_one(papers, monkeypatch):
    jobs = {file.stem: file for file in (ROOT / "workflow_scripts/jobs").glob("[a-z]*.py")}
    assert jobs.keys() == REQUESTS.keys()
    loading = {rule for rule, file in jobs.items() if loads(file)}
    loading ^= {
        "draw_figures",
        "fetch_tasks",
    }  # figures load what they show; data of mteb's tasks need no encoder
    assert {rule for rule, request in REQUESTS.items() if request.encoder} == loading
    named = {"run": run_from(papers, "bert_base"), "encoder": "bert_base", "teacher": "bert_base"}
    named["experiment"] = "simcse"
    before = {rule: asked(papers, rule, **named) for rule in REQUESTS}
    monkeypatch.setitem(OF_SIZE, "base", OF_SIZE["huge"])
    for rule, (memory, minutes) in before.items():
        more, longer = asked(papers, rule, **named)
        assert int(more[:-2]) == (5 if rule in loading else 1) * int(memory[:-2]), rule
        assert longer > minutes if rule in loading else longer == minutes, rule
