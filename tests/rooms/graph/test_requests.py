"""Memory and time that jobs ask for, at the papers' scale."""

import pytest
from snakemake.iocontainers import Wildcards

from tests.planning import ROOT, study_in
from workflow_scripts.graph.requests import LONGEST, Requests

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
